"""Write a file so that neither a crash nor a full disk ever leaves half of one."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path

from mup.errors import MupError, UsageError

__all__ = ["STANDARD_STREAM", "check_writable", "is_special", "write_whole"]

STANDARD_STREAM = "-"
"""As a path: standard output where something is written, standard input where it is read."""


def check_writable(path: str | Path) -> None:
    """Find out whether a file could be written whole, by making an empty one beside it for a moment.

    Args:
        path: Where; its folder exists.

    Raises:
        UsageError: It cannot be written.
    """
    if is_special(path):
        return
    beside = Path(os.path.realpath(path)).with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        beside.open("x").close()
    except OSError as cause:
        raise UsageError(f"cannot write: {cause.strerror}", where=str(path)) from cause
    beside.unlink(missing_ok=True)


def write_whole(
    path: str | Path, text: str, *, what: str = "the file", error: type[MupError] = UsageError
) -> None:
    """Write a text file whole or not at all; ``-`` is standard output.

    What a link leads to is replaced, not the link. A device or a pipe (``/dev/stdout``) is written to as it
    is: nothing in it could be lost, and a file in its place would break it for all programs.

    Args:
        path: Where; its folder exists.
        text: All of it.
        what: What cannot be written, for the message.
        error: What to raise then.

    Raises:
        MupError: It cannot be written; of the kind ``error``.
    """
    unfinished: Path | None = None
    try:
        if str(path) == STANDARD_STREAM:
            # Not sys.stdout: what else is printed has been sent to standard error, and the text to this file.
            with open(1, "w", encoding="utf-8", newline="", closefd=False) as file:
                file.write(text)
            return
        if is_special(path):
            Path(path).write_text(text, encoding="utf-8", newline="")
            return
        target = Path(os.path.realpath(path))
        # Not of the module tempfile: its files are private, and the user's mask should decide that.
        unfinished = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.tmp")
        with unfinished.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        if target.exists():
            unfinished.chmod(stat.S_IMODE(target.stat().st_mode))
        unfinished.replace(target)
    except BrokenPipeError:
        # Its reader has gone (head, less): nothing was lost that is still wanted.
        raise
    except OSError as cause:
        where = "standard output" if str(path) == STANDARD_STREAM else str(path)
        raise error(f"cannot write {what}: {cause.strerror}", where=where) from cause
    finally:
        if unfinished is not None:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)


def is_special(path: str | Path) -> bool:
    """Tell whether this exists and is no ordinary file."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
