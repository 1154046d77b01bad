"""Output that several commands share: the console, sentences, numbers with intervals."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from mup.errors import AnalysisError

if TYPE_CHECKING:
    from rich.console import Console

    from analyzer.static.application import Application


PIPE_WIDTH = 120
"""Columns of a table that goes to a file or a program; COLUMNS or a terminal beside it says others."""
MAX_ERRORS = 20
"""Errors in the source that are listed where something else was asked for."""


def console(*, stderr: bool = False) -> Console:
    """Return a console; results go to stdout, everything else to stderr."""
    from rich.console import Console

    # Names are shown as they are: ':fire:' may be part of one.
    made = Console(stderr=stderr, highlight=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ and not _terminal_beside():
        made.width = PIPE_WIDTH
    # rich would end the command with exit code 1, which is an answer of some commands.
    setattr(made, "on_broken_pipe", _reader_is_gone)  # noqa: B010 - what mypy takes for an assignment to a method
    return made


def _reader_is_gone() -> NoReturn:
    raise BrokenPipeError


def _terminal_beside() -> bool:
    """Return whether some standard stream has a width, as in ``mup ... | less``."""
    for stream in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.get_terminal_size(stream)
            return True
    return False


def say(out: Console, text: str, *, indent: str = "") -> None:
    """Print a sentence, broken between words where the width is known; other programs get one line.

    Args:
        out: Where.
        text: Printed as it is, without markup; lines of it stay lines.
        indent: Before all of it.
    """
    from mup.cli.output.tables import wrapped

    width = out.width - len(indent) if out.is_terminal or "COLUMNS" in os.environ else sys.maxsize
    for line in text.splitlines():
        out.print(indent + wrapped(line, width, indent=len(indent) + 2), soft_wrap=True, markup=False)


def milliseconds(figure: dict[str, Any]) -> str:
    """Return a figure in seconds as ``12.3 +- 0.1`` milliseconds."""
    mean, half = figure["mean"] * 1e3, figure.get("ci95")
    digits = 1 if mean >= 10 else 2
    return f"{mean:.{digits}f}" if half is None else f"{mean:.{digits}f} +- {half * 1e3:.{digits}f}"


def percent(value: float | None) -> str:
    """Return a signed share as a percentage; ``-`` if unknown."""
    if value is None:
        return "-"
    text = f"{value:+.1%}"
    return text if text.strip("+-0.%") else "0.0%"


def reject_errors(application: Application) -> None:
    """Refuse source code with errors, with every diagnostic in the message.

    Raises:
        AnalysisError: There is at least one error.
    """
    if application.errors:
        from analyzer.static import render
        from analyzer.static.diagnostics import summary

        listing = "\n".join(render(e, application.root) for e in application.errors[:MAX_ERRORS])
        if len(application.errors) > MAX_ERRORS:
            listing += f"\n... and {len(application.errors) - MAX_ERRORS} more"
        raise AnalysisError(
            f"{summary(application.errors)} in the source\n{listing}", hint="'mup paths' lists all findings"
        )
