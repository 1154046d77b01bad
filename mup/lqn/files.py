"""In which format is a model file, and who reads and writes it?

The suffix decides: ``.json`` is the native format, ``.lqnx`` and ``.xml`` are lqnx. A file of any other
name is read as what its first character says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mup.errors import ModelError, UsageError
from mup.lqn.model import Model

__all__ = ["Format", "format_of_input", "format_of_output", "read_model", "write_model"]

Format = Literal["json", "lqnx"]

_SUFFIXES: dict[str, Format] = {".json": "json", ".lqnx": "lqnx", ".xml": "lqnx"}
_HEAD = 256


def read_model(path: str | Path) -> Model:
    """Read a model in the native format or as lqnx.

    Raises:
        ModelError: The file cannot be read, or breaks rules; all problems are listed.
    """
    if format_of_input(path) == "lqnx":
        from mup.lqn.lqnx.importer import load_lqnx  # noqa: PLC0415  (most models are not lqnx)

        return load_lqnx(path)
    from mup.lqn.json_io import load_model  # noqa: PLC0415

    return load_model(path)


def format_of_input(path: str | Path) -> Format:
    """Return the format a file is in, by its suffix, or else by how it begins.

    Raises:
        ModelError: The file cannot be read.
    """
    found = _SUFFIXES.get(Path(path).suffix.lower())
    if found is not None:
        return found
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise ModelError(f"cannot read the model: {error.strerror}", where=str(path)) from error
    return "lqnx" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else "json"


def format_of_output(path: str | Path) -> Format:
    """Return the format a file of this name is written in.

    Raises:
        UsageError: Its suffix says nothing.
    """
    found = _SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise UsageError(
            f"the name ends in {Path(path).suffix!r}, which is no format of a model",
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
