"""Which files does a source folder have, and what is in them?"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Literal

__all__ = ["content", "entered", "kind_of"]

SKIPPED_FOLDERS = {"__pycache__", "node_modules", "venv", "build", "dist"}

MAX_SEARCHED = 100_000_000
"""Larger files are not even searched for imports."""


def entered(folder: Path) -> bool:
    """Return whether a folder is searched for services: not if it is a link, hidden, or an environment."""
    if folder.is_symlink() or folder.name.startswith(".") or folder.name in SKIPPED_FOLDERS:
        return False
    try:
        return not (folder / "pyvenv.cfg").exists()
    except OSError:
        return True  # reading it reports the error


def kind_of(path: Path) -> Literal["file", "folder", "closed", ""]:
    """Return what a path leads to.

    "" is nothing, a broken link, a pipe or a device; what "closed" is cannot be seen without permission.
    """
    try:
        mode = path.stat().st_mode
    except PermissionError:
        return "closed"
    except (OSError, ValueError):
        return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else ""


def content(path: Path) -> bytes | None:
    """Return the bytes of a file; None if it cannot be read, or is so large that it need not be."""
    try:
        return None if path.stat().st_size > MAX_SEARCHED else path.read_bytes()
    except OSError:
        return None
