"""Names of the segments that make up the log of one process, shared by writer and reader.

``A.0.w0.mlog`` is the first segment of a process, ``A.0.w0.00002.mlog`` its second one; ``A.0.w0-2.mlog`` and
``A.0.w0-2.00002.mlog`` are those of the process that came after it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["SUFFIX", "Segment", "segment_path", "segments_in"]

SUFFIX = ".mlog"
_NAME = re.compile(r"(?P<stem>.+?)(?:-(?P<process>[1-9]\d*))?(?:\.(?P<number>\d{5,}))?\.mlog", re.DOTALL)


class Segment(NamedTuple):
    """One file of a log; sorts by process slot, then in the order of writing.

    Attributes:
        stem: What the file is called without the numbers: ``A.0.w0``.
        process: Number of the process among those of this stem, from 1.
        number: Of the segment of this process, from 1.
        path: The file.
    """

    stem: str
    process: int
    number: int
    path: Path


def segment_path(folder: Path, stem: str, process: int, number: int) -> Path:
    """Return the file of a segment."""
    first = f"{stem}-{process}" if process > 1 else stem
    return folder / (f"{first}.{number:05d}{SUFFIX}" if number > 1 else f"{first}{SUFFIX}")


def segments_in(folder: Path, stem: str = "") -> list[Segment]:
    """Return the segments in a folder, sorted; only those of one stem if one is given."""
    found = []
    for name in os.listdir(folder):  # noqa: PTH208 - names are all that is needed
        match = _NAME.fullmatch(name)
        if match is not None and (not stem or match["stem"] == stem):
            process, number = int(match["process"] or 1), int(match["number"] or 1)
            found.append(Segment(match["stem"], process, number, folder / name))
    return sorted(found)
