"""Digest behind a library on disk: loading one that was cut off would end the process."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

__all__ = ["is_whole", "seal"]

_BYTES: Final = 16


def seal(file: Path) -> None:
    """Append the digest to a library; loaders do not look at what lies behind one."""
    whole = file.read_bytes()
    file.write_bytes(whole + _digest(whole))


def is_whole(file: Path) -> bool:
    """Tell whether a library is there, with the digest of its contents."""
    try:
        whole = file.read_bytes()
    except OSError:
        return False
    return whole[-_BYTES:] == _digest(whole[:-_BYTES])


def _digest(whole: bytes) -> bytes:
    return hashlib.blake2b(whole, digest_size=_BYTES).digest()
