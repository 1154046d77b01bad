"""What several commands show the same way: the console, numbers with intervals, progress."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mup.errors import AnalysisError

if TYPE_CHECKING:
    from rich.console import Console

    from analyzer.static.application import Application


PIPE_WIDTH = 160


def console(*, stderr: bool = False) -> Console:
    """Return a console; results go to stdout, everything else to stderr. A pipe is not cut at 80 columns."""
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = max(made.width, PIPE_WIDTH)
    return made


def milliseconds(figure: dict[str, Any]) -> str:
    """Return a figure in seconds as ``12.3 +- 0.1`` milliseconds."""
    mean, half = figure["mean"] * 1e3, figure.get("ci95")
    digits = 1 if mean >= 10 else 2
    return f"{mean:.{digits}f}" if half is None else f"{mean:.{digits}f} +- {half * 1e3:.{digits}f}"


def percent(value: float | None) -> str:
    """Return a signed share as a percentage; ``-`` if unknown."""
    return "-" if value is None else f"{value:+.1%}"


def reject_errors(application: Application) -> None:
    """Refuse source code with errors, with every diagnostic in the message.

    Raises:
        AnalysisError: There is at least one error.
    """
    if application.errors:
        from analyzer.static import render
        from analyzer.static.diagnostics import summary

        listing = "\n".join(render(e, application.root) for e in application.errors)
        raise AnalysisError(
            f"{summary(application.errors)} in the source\n{listing}", hint="'mup paths' lists all findings"
        )
