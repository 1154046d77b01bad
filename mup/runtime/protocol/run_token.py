"""Token of a running system without a configured one, for commands in other terminals.

A deployment without a token invents one, hands it down to its processes, and keeps it in a file for as long
as it runs: one file per registry, in a folder of the user (``~/.cache/mup/tokens``, or ``$XDG_CACHE_HOME``),
for that user's eyes only, and locked: what a killed run has left is not believed, and is removed. Commands
that know where the registry is find the file by that. Registries that other machines reach have tokens that
are configured, so all of this is about loopback.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
from pathlib import Path
from urllib.parse import urlsplit

from mup.addresses import is_loopback
from mup.environment import REGISTRY_TOKEN

__all__ = ["find_token", "forget_token", "is_run_token", "keep_token", "new_token", "token_file"]

_PREFIX = "run-"
_LONGEST = 200
_kept: dict[str, tuple[str, int | None]] = {}
"""Of the deployments of this process: their tokens, for which it needs no file, and what locks the files."""


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return _PREFIX + secrets.token_urlsafe(32)


def is_run_token(token: str) -> bool:
    """Whether a token was invented for one run, so that no user knows it."""
    return token.startswith(_PREFIX)


def keep_token(registry: str, token: str) -> Path | None:
    """Keep the token of a registry until it is forgotten.

    Returns:
        The file; None if there is no place for one: then other processes have to be given the token.
    """
    forget_token(registry)
    _kept[registry] = token, None
    file = token_file(registry)
    if file is None:
        return None
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_abandoned(file.parent)
        # Other users must not read it, not even for a moment; and it must not be found before it is locked.
        fresh = file.with_name(f"{file.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        _kept[registry] = token, descriptor
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, token.encode("ascii"))
        fresh.replace(file)
    except OSError:
        return None
    return file


def forget_token(registry: str) -> None:
    """Remove the token of a registry that ends, unless another one has taken its place."""
    token, descriptor = _kept.pop(registry, ("", None))
    if descriptor is None:
        return
    file = token_file(registry)
    if file is not None and _read(file) == token:
        with contextlib.suppress(OSError):
            file.unlink()
    os.close(descriptor)


def _remove_abandoned(folder: Path) -> None:
    """Remove what runs have left that were killed."""
    for file in folder.iterdir():
        if file.suffix:
            continue  # one that is being written
        with contextlib.suppress(OSError):
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.unlink()
            finally:
                os.close(descriptor)


def find_token(registry: str) -> str:
    """Return what the environment says, else the token of the run whose registry this is; "" = neither."""
    kept, _ = _kept.get(registry.rstrip("/"), ("", None))
    if token := os.environ.get(REGISTRY_TOKEN, "") or kept:
        return token
    file = token_file(registry)
    return "" if file is None else _read(file)


def token_file(registry: str) -> Path | None:
    """Return where the token of a registry is kept; None = nowhere: other machines reach it."""
    parts = urlsplit(registry)
    try:
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        return None
    if not port or not is_loopback(host):
        return None
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache")
    except RuntimeError:
        return None  # a user without a home
    # One process at most listens on a port, whatever loopback is called.
    return cache / "mup" / "tokens" / f"registry-{port}"


def _read(file: Path) -> str:
    """Return the token in a file; "" if there is none, its keeper is gone, or it may be forged."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as stream:
        state = os.fstat(descriptor)
        if state.st_uid != os.getuid() or state.st_mode & 0o077 or not stat.S_ISREG(state.st_mode):
            return ""
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return ""  # its keeper has ended
        token = stream.read(_LONGEST).decode("ascii", "replace").strip()
    return token if is_run_token(token) else ""
