"""A worker under a debugger: it has the terminal, or a port to attach to, and no time limits."""

from __future__ import annotations

import os
import sys

import msgspec

__all__ = ["NO_HURRY", "Debugging", "prepare"]

NO_HURRY = 86_400.0
"""Seconds for everything that has a time limit otherwise, while a person debugs."""


class Debugging(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the worker of a replica is debugged with.

    Attributes:
        stdin: Descriptor of the terminal, for ``breakpoint()``.
        port: Where debugpy listens on loopback; 0 = it is not used.
    """

    stdin: int
    port: int = 0


def prepare(debugging: Debugging) -> None:
    """Connect this process to its debugger; to be called before anything of the service runs."""
    os.dup2(debugging.stdin, 0)
    sys.stdin = os.fdopen(0, closefd=False)
    if isinstance(sys.stdout, type(sys.stdin)):
        # What the service prints stands between the debugger's lines in the right order.
        sys.stdout.reconfigure(line_buffering=True)
    if debugging.port:
        # It warns of breakpoints inside of Python itself, which are not set.
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        import debugpy  # noqa: PLC0415, T100 - only for debugging

        debugpy.listen(("127.0.0.1", debugging.port))  # noqa: T100
