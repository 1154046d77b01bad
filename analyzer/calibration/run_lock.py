"""Lock of a run directory, held while a run is written to it.

Its directory is locked for as long as a process explores. The kernel takes the lock away when that process
ends, however it does: a run whose explorer was killed counts as broken off at once, not when its files have
grown old.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mup.errors import UsageError

__all__ = ["is_being_written", "writing"]


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Be the only one who writes to a run directory.

    Args:
        directory: It has to exist.

    Raises:
        UsageError: Another process is writing to it.
    """
    with _open(directory) as handle:
        if not _lock(handle):
            raise UsageError(
                "another exploration is writing to this run",
                where=str(directory),
                hint="wait until it has ended, or start a run of its own",
            )
        yield


def is_being_written(directory: Path) -> bool:
    """Whether a process explores into this directory; False also if its lock cannot be read."""
    try:
        with _open(directory) as handle:
            return not _lock(handle)
    except OSError:
        return False


@contextmanager
def _open(directory: Path) -> Iterator[int]:
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
