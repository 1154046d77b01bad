"""Option values several commands share: lists of numbers, and ``NAME=NUMBER`` pairs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path

import click

from mup.errors import UsageError
from mup.whole_file import STANDARD_STREAM, check_writable, is_special

__all__ = [
    "assignments",
    "body_text",
    "check_ending",
    "check_least",
    "check_output",
    "check_picture",
    "check_result",
    "check_share",
    "header_lines",
    "named_texts",
    "registry_url",
    "shown",
    "whole_numbers",
]


def whole_numbers(text: str, option: str) -> list[int]:
    """Parse ``1,2,4``.

    Raises:
        UsageError: A part is not a whole number >= 1.
    """
    numbers = [_whole(part) for part in text.split(",")]
    if 0 in numbers:
        wrong = text.split(",")[numbers.index(0)].strip()
        raise UsageError(
            f"{option}: must be whole numbers >= 1 separated by commas, got {wrong!r}",
            hint=f"for example {option} 1,2,4,8",
        )
    return numbers


def assignments(values: Iterable[str], option: str) -> dict[str, int]:
    """Parse ``B=4`` pairs.

    Raises:
        UsageError: A value has no name or no whole number >= 1.
    """
    result = {}
    for text in values:
        name, _, number = text.partition("=")
        result[name] = _whole(number)
        if not name or result[name] == 0:
            raise UsageError(
                f"{option}: must be NAME=N with a whole number N >= 1, got {text!r}",
                hint=f"for example {option} B=4",
            )
    return result


def check_share(value: float | None, option: str) -> None:
    """Refuse a value that is no fraction between 0 and 1; None = it was not given.

    Raises:
        UsageError: It is none.
    """
    if value is not None and not 0 < value < 1:
        raise UsageError(
            f"{option}: must be a fraction between 0 and 1, got {value:g}", hint=f"for example {option} 0.02"
        )


def check_least(value: float | None, least: float, option: str) -> None:
    """Refuse a value that is too small; None = it was not given.

    Raises:
        UsageError: It is.
    """
    if value is not None and not value >= least:
        raise UsageError(f"{option}: must be >= {least:g}, got {value:g}")


def named_texts(values: Iterable[str], option: str, example: str) -> dict[str, str]:
    """Parse ``NAME=TEXT`` pairs.

    Raises:
        UsageError: A value has no name or no text.
    """
    result = {}
    for pair in values:
        name, _, text = pair.partition("=")
        if not name or not text:
            raise UsageError(
                f"{option}: must be NAME=TEXT, got {pair!r}", hint=f"for example {option} {example}"
            )
        result[name] = text
    return result


def header_lines(values: Iterable[str]) -> dict[str, str]:
    """Parse ``NAME:VALUE`` lines of ``--header``.

    Raises:
        UsageError: One has no name.
    """
    found = {}
    for text in values:
        name, colon, value = text.partition(":")
        if not colon:
            raise UsageError(
                f"--header: must be NAME:VALUE, got {text!r}", hint="for example --header Accept:text/html"
            )
        found[name.strip()] = value.strip()
    return found


def body_text(text: str) -> str:
    """Return what ``--body`` says: a text, or with ``@`` the file it is in.

    Raises:
        UsageError: The file cannot be read.
    """
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"--body: cannot read the file: {reason}", where=text[1:]) from error


def registry_url(text: str) -> str:
    """Return the URL of a registry as others write it.

    Raises:
        UsageError: It is none.
    """
    # Imported here: most commands have no registry.
    from mup.project import is_http_url

    if not is_http_url(text):
        raise UsageError(f"--registry: must be a URL such as http://10.0.0.5:9099, got {text!r}")
    return text.rstrip("/")


def _whole(text: str) -> int:
    """Return the whole number >= 1 a text stands for, or 0."""
    try:
        return max(0, int(text))
    except ValueError:
        return 0


def check_result(path: str | Path | None, starts: Sequence[str] = (), *, as_json: bool) -> None:
    """Refuse the file of ``--output`` before any work is done for it.

    If it is ``-``, all that is printed until the command ends goes to standard error: standard output is the
    file alone.

    Args:
        path: Where the result will go; None = nowhere.
        starts: See `check_output`.
        as_json: Whether standard output is a JSON document already.

    Raises:
        UsageError: It cannot be written there.
    """
    if path is None or str(path) != STANDARD_STREAM:
        check_output(path, starts)
        return
    if as_json:
        raise UsageError("--output - and --json both want standard output", hint="leave one of them out")
    click.get_current_context().with_resource(redirect_stdout(sys.stderr))


def shown(path: str | Path) -> str:
    """Return how a file that was written is called in a message."""
    return "standard output" if str(path) == STANDARD_STREAM else str(path)


def check_picture(path: str | Path | None) -> None:
    """Refuse the file of ``--plot`` before any work is done for it; see `check_output` and `check_ending`."""
    check_ending(path)
    check_output(path, starts=("<",))


def check_ending(path: str | Path | None) -> None:
    """Refuse a picture whose name promises another format than SVG.

    Raises:
        UsageError: It ends in something else than ``.svg``.
    """
    if path is None or str(path) == STANDARD_STREAM or is_special(path):
        return
    ending = Path(path).suffix
    if ending and ending.lower() != ".svg":
        raise UsageError(
            f"pictures are written as SVG, and this name ends in {ending}",
            where=str(path),
            hint=f"name it {Path(path).with_suffix('.svg').name}; every browser shows SVG",
        )


def check_output(path: str | Path | None, starts: Sequence[str] = ()) -> None:
    """Refuse an output file before any work is done for it.

    Args:
        path: Where the output will go; None = nowhere.
        starts: If given, an existing file is only overwritten if it begins with one of these, that is,
            if it is an earlier output.

    Raises:
        UsageError: Its folder does not exist, or it is something else that would be lost.
    """
    if path is None:
        return
    if str(path) == STANDARD_STREAM:
        raise UsageError(
            "'-': the figures go to standard output already", hint="name a file; only --output can be '-'"
        )
    target = Path(path)
    if not target.parent.is_dir():
        raise UsageError("cannot write: its folder does not exist", where=str(path))
    if target.is_dir():
        raise UsageError("cannot write: it is a folder", where=str(path))
    check_writable(target)
    if starts and target.is_file() and target.stat().st_size:
        with target.open("rb") as file:
            head = file.read(200).decode("utf-8", "replace").lstrip()
        if not head.startswith(tuple(starts)):
            raise UsageError(
                "exists and is something else; it is not overwritten",
                where=str(path),
                hint="name another file, or delete this one first",
            )
