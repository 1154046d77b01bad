"""Find the examples of this installation, and copy one so that no half copy remains."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from mup.cli.installation import installed_folder
from mup.errors import UsageError

__all__ = ["copy_example", "examples_folder"]


def examples_folder() -> Path:
    """Return the folder of the examples: inside the package when installed, beside it in a clone.

    Raises:
        UsageError: The installation has no examples.
    """
    folder = installed_folder("examples", "translator/mup.toml")
    if folder is None:
        raise UsageError(
            "this installation has no examples", hint="install mup again from its wheel or a clone"
        )
    return folder


def copy_example(name: str, folder: Path, extra: Mapping[str, str]) -> None:
    """Copy an example; of what cannot be copied whole, nothing stays in a folder that was empty or missing.

    Args:
        name: Of the example.
        folder: Where it goes.
        extra: Further files: name and text.

    Raises:
        UsageError: The folder cannot be written.
    """
    existed = folder.exists()
    occupied = existed and any(folder.iterdir())
    try:
        shutil.copytree(
            examples_folder() / name,
            folder,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", ".mup", ".pytest_cache"),
        )
        for file, text in extra.items():
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as error:
        if not occupied:
            shutil.rmtree(folder, ignore_errors=True)
            if existed:
                folder.mkdir(exist_ok=True)
        raise UsageError(f"cannot write: {_reason(error)}", where=str(folder)) from error


def _reason(error: OSError) -> str:
    """Return why; of many files that could not be copied, why the first one could not."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        # What it knows of each is a text: "[Errno 28] No space left on device: 'from' -> 'to'".
        text = str(error.args[0][0][2])
        return re.sub(r"^\[Errno \d+\] ([^:]*).*$", r"\1", text, flags=re.DOTALL)
    return error.strerror or str(error)
