"""Find compiled code: in the installation, else in the user's cache, compiled there if need be.

A library's file is named after the sources it was made of, so one that is out of date is never found.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from mup.errors import UsageError
from mup.native.libraries import MANIFEST, Library
from mup.native.sealing import is_whole

__all__ = ["BUILT", "cache_folder", "is_compiled", "loaded", "opened"]

BUILT: Final = Path(__file__).parent / "built"
"""What installing mup has compiled."""

KEPT: Final = 6
"""Libraries of one name in the user's cache: those of a few checkouts, and not of all versions there were."""

_libraries: dict[str, tuple[ctypes.CDLL, dict[str, Any]]] = {}
_loading = threading.Lock()


def cache_folder() -> Path:
    """Return where compiled code of this user is kept."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "mup" / "native"


def is_compiled(library: Library) -> bool:
    """Tell whether a library can be loaded without compiling it first."""
    return library.name in _libraries or _found(library) is not None


def loaded(library: Library) -> tuple[ctypes.CDLL, dict[str, Any]]:
    """Return a library, and what its functions take and return; compile it where that has not been done.

    Raises:
        UsageError: It is not compiled, and no compiler can do that.
    """
    known = _libraries.get(library.name)
    if known is not None:
        return known
    with _loading:
        if library.name not in _libraries:
            file = _found(library)
            _libraries[library.name] = opened(file) if file is not None else _compiled(library)
    return _libraries[library.name]


def _found(library: Library) -> Path | None:
    for folder in (BUILT, cache_folder()):
        file = folder / library.file_name()
        if is_whole(file):
            return file
    return None


def _compiled(library: Library) -> tuple[ctypes.CDLL, dict[str, Any]]:
    from mup.native.building import NoCompilerError, build  # noqa: PLC0415 - compiling is rare

    folder = cache_folder()
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / f"{library.name}.lock").open("w")
        except OSError:
            # Nowhere to keep it. It is compiled again the next time.
            with tempfile.TemporaryDirectory() as temporary:
                return opened(build(library, Path(temporary)))
        with lock:
            # Of two first commands one compiles, and the other waits for it.
            fcntl.flock(lock, fcntl.LOCK_EX)
            file = _found(library)
            if file is None:
                file = build(library, folder)
                _forget(library, folder)
            return opened(file)
    except NoCompilerError as error:
        raise UsageError(
            f"the {library.name} has not been compiled for this machine, and cannot be: {error}",
            hint="install a C compiler (Debian: apt install gcc; or pip install ziglang) and try again; "
            "or install a wheel of mup, which brings it compiled",
        ) from None


def _forget(library: Library, folder: Path) -> None:
    """Delete libraries of sources that were changed long ago."""
    files = sorted(folder.glob(f"{library.name}-*.so"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[KEPT:]:
        file.unlink(missing_ok=True)


def opened(file: Path) -> tuple[ctypes.CDLL, dict[str, Any]]:
    """Return a library from a file, and what its functions take and return."""
    library = ctypes.CDLL(str(file))
    text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, MANIFEST)))
    manifest: dict[str, Any] = json.loads(text)
    return library, manifest
