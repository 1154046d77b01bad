"""Is compiled code that was kept on disk still that of the sources?

Left to itself numba looks at the file of a function alone, not at what is compiled into it. This module needs
no numba: simulator and estimators share it, and neither has to load the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["Stamp", "note_sources", "stamp_of"]

Stamp = tuple[tuple[int, int], ...]


def note_sources(dispatcher: Any, stamp: Stamp) -> None:
    """Let what is kept on disk be valid only as long as no source that could be part of it has changed.

    Args:
        dispatcher: The compiled function.
        stamp: Of these sources.
    """
    file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if file is not None:  # there is none if compilation is switched off
        file._source_stamp = stamp  # noqa: SLF001 - there is no public way


def stamp_of(files: Iterable[Path]) -> Stamp:
    """Return what changes when one of some files does."""
    return tuple((file.st_mtime_ns, file.st_size) for file in map(Path.stat, files))
