"""Option values several commands share: lists of numbers, and ``NAME=NUMBER`` pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mup.errors import UsageError

__all__ = ["assignments", "check_output", "named_texts", "registry_url", "whole_numbers"]


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
    target = Path(path)
    if not target.parent.is_dir():
        raise UsageError("cannot write: its folder does not exist", where=str(path))
    if target.is_dir():
        raise UsageError("cannot write: it is a folder", where=str(path))
    if starts and target.is_file() and target.stat().st_size:
        with target.open("rb") as file:
            head = file.read(200).decode("utf-8", "replace").lstrip()
        if not head.startswith(tuple(starts)):
            raise UsageError(
                "exists and is something else; it is not overwritten",
                where=str(path),
                hint="name another file, or delete this one first",
            )
