"""Formats of model files, and the readers and writers of each.

A file that is read says itself what it is: its first word decides, and only if that says nothing the
suffix. A file that is written has no words yet: its suffix decides. ``-`` is standard input where a model is
read, and standard output, in the native format, where one is written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final, Literal

from mup.errors import ModelError, UsageError
from mup.lqn.model import Model
from mup.whole_file import STANDARD_STREAM

__all__ = ["Format", "format_of_input", "format_of_output", "read_model", "write_model"]

Format = Literal["json", "lqnx", "lqn"]

_WRITTEN: Final[dict[str, Format]] = {".json": "json", ".lqnx": "lqnx", ".xml": "lqnx"}
_READ: Final[dict[str, Format]] = {**_WRITTEN, ".lqn": "lqn", ".xlqn": "lqn", ".in": "lqn"}

_HEAD: Final = 1 << 16
"""Bytes; comments before the first word are not longer."""

_MOST_INPUT: Final = 1 << 28
"""Bytes of standard input that are read; the largest models known have a few million."""

_STANDARD_INPUT: Final = "standard input"

_FIRST_WORDS: Final[dict[Format, re.Pattern[bytes]]] = {
    "lqnx": re.compile(rb"<"),
    "json": re.compile(rb"[{\[]"),
    "lqn": re.compile(rb"(?:\#[^\n]*\n\s*)*(?:\$\w+\s*[=,]|\$solver|G\s*\"|P\s*\d)"),
}


def read_model(path: str | Path) -> Model:
    """Read a model in the native format, as lqnx, or as an LQNS text; ``-`` is standard input.

    Raises:
        ModelError: The file cannot be read, or breaks rules; all problems are listed.
    """
    if str(path) == STANDARD_STREAM:
        return _read_standard_input()
    found = format_of_input(path)
    if found == "lqnx":
        from mup.lqn.lqnx.importer import load_lqnx  # noqa: PLC0415  (most models are native)

        return load_lqnx(path)
    if found == "lqn":
        from mup.lqn.lqntext.grammar import load_lqn_text  # noqa: PLC0415

        return load_lqn_text(path)
    from mup.lqn.json_io import load_model  # noqa: PLC0415

    return load_model(path)


def _read_standard_input() -> Model:
    data = b"" if sys.stdin is None else sys.stdin.buffer.read(_MOST_INPUT + 1)
    if not data.strip():
        raise ModelError("is empty", where=_STANDARD_INPUT, hint="'-' as a model reads it from there")
    if len(data) > _MOST_INPUT:
        raise ModelError(f"is longer than {_MOST_INPUT >> 20} MiB", where=_STANDARD_INPUT)
    found = _format_of(data)
    if found == "lqnx":
        from mup.lqn.lqnx.elements import parse_xml  # noqa: PLC0415
        from mup.lqn.lqnx.importer import model_from_element  # noqa: PLC0415

        return model_from_element(parse_xml(data, _STANDARD_INPUT), _STANDARD_INPUT)
    if found == "lqn":
        from mup.lqn.lqntext.grammar import parse_lqn_text  # noqa: PLC0415
        from mup.lqn.lqnx.importer import model_from_element  # noqa: PLC0415

        text = data.decode("utf-8-sig", errors="replace")
        return model_from_element(parse_lqn_text(text, _STANDARD_INPUT), _STANDARD_INPUT)
    from mup.lqn.json_io import model_from_text  # noqa: PLC0415

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError("is not UTF-8 text", where=_STANDARD_INPUT) from error
    return model_from_text(text, _STANDARD_INPUT)


def format_of_input(path: str | Path) -> Format:
    """Return the format a file is in, by how it begins, or else by its suffix.

    Raises:
        ModelError: The file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ModelError(f"cannot read the model: {error.strerror}", where=str(path)) from error
    return _format_of(head) or _READ.get(Path(path).suffix.lower(), "json")


def _format_of(head: bytes) -> Format | None:
    """Return the format a text is in by how it begins; None if that says nothing."""
    head = head[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    for found, first_word in _FIRST_WORDS.items():
        if first_word.match(head):
            return found
    return None


def format_of_output(path: str | Path) -> Format:
    """Return the format a file of this name is written in.

    Raises:
        UsageError: Its suffix says nothing.
    """
    if str(path) == STANDARD_STREAM:
        return "json"
    suffix = Path(path).suffix.lower()
    found = _WRITTEN.get(suffix)
    if found is None:
        raise UsageError(
            "the text format of LQNS is read, but not written"
            if suffix in _READ
            else f"the name ends in {Path(path).suffix!r}, which is no format of a model",
            where=str(path),
            hint="name it .json for the native format, .lqnx for the layered queueing tools",
        )
    return found


def write_model(model: Model, path: str | Path, *, approximate: bool = False) -> tuple[list[str], list[str]]:
    """Write a model in the format its name says.

    Args:
        model: Any model.
        path: The file; it is written whole or not at all.
        approximate: Write what lqnx has no words for as the nearest thing it has.

    Returns:
        What was approximated, and what has no place in the format and was left out.

    Raises:
        ModelError: lqnx cannot express the model, or the file cannot be written.
        UsageError: The suffix says nothing.
    """
    if format_of_output(path) == "lqnx":
        from mup.lqn.lqnx.exporter import save_lqnx  # noqa: PLC0415

        written = save_lqnx(model, path, approximate=approximate)
        return list(written.approximated), list(written.notes)
    from mup.lqn.json_io import save_model  # noqa: PLC0415

    save_model(model, path)
    return [], []
