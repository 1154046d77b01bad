"""Which context managers of libraries decide how a ``with`` block ends, or how many enter it at once?

All others are taken for what most are: they let every exception pass (files, locks, spans, transactions).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from analyzer.static.arguments import Arguments
from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import UNKNOWN, Const, ExitStack, Semaphore, Suppressing, Value

__all__ = ["FUNCTIONS", "SWALLOWING", "swallowing"]

SWALLOWING = {
    "anyio.CancelScope": False,
    "anyio.move_on_after": False,
    "anyio.move_on_at": False,
    "contextlib.suppress": True,
    "pytest.raises": True,
    "trio.CancelScope": False,
    "trio.move_on_after": False,
    "trio.move_on_at": False,
}
"""What may swallow an exception: of the classes it is given (True), or any (False)."""


def swallowing(name: str, arguments: Arguments, declared: Collection[str] = ()) -> Value | None:
    """Return the context manager that a call makes which may swallow exceptions; None if it makes none.

    Args:
        name: Of what is called.
        arguments: What it is given.
        declared: Names of further ones that may swallow any exception.
    """
    if name not in SWALLOWING and name not in declared:
        return None
    if not SWALLOWING.get(name, False):
        return Suppressing((UNKNOWN,))
    kinds: list[Value] = []
    for argument, value in arguments.pairs:
        kinds += [UNKNOWN] if argument.star else value.classes()
    return Suppressing(tuple(kinds))


def _exit_stack(call: LibraryCall) -> Results | None:
    return call.stored((), ExitStack)


def _semaphore(call: LibraryCall) -> Results | None:
    value = next(iter((*call.given, *call.keywords.values())), Const.of(1))
    known, given = value.python()
    permits = given if known and type(given) is int and given > 0 else 0
    site = call.walk.place(call.node)
    if not call.walk.in_request:
        return call.result(Semaphore(site, permits, _name(call)))
    # One that each iteration makes limits nothing.
    if not permits or call.walk.loops_around:
        return call.result(UNKNOWN)
    made = Semaphore(site, permits)
    call.walk.copies.made(made)
    return call.result(made)


def _name(call: LibraryCall) -> str:
    """Return the name of what is made for all requests: that of what the statement assigns."""
    line = call.walk.module.line(call.node)
    assigned = ASSIGNED.search(call.walk.module.lines[line - 1])
    return (assigned[1].strip("_") if assigned else "") or f"limit_{line}"


ASSIGNED = re.compile(r"([A-Za-z_]\w*)\s*(?::[^=]*)?=")
"""In a line: the last name of the first thing that is assigned."""


def _lock(call: LibraryCall) -> Results | None:
    return _semaphore(LibraryCall(call.walk, (), {}, call.node, call.state))


def _of_threads(call: LibraryCall) -> Results | None:
    # One that a request makes is held by none of the others.
    return call.result(UNKNOWN) if call.walk.in_request else _semaphore(call)


def _lock_of_threads(call: LibraryCall) -> Results | None:
    return _of_threads(LibraryCall(call.walk, (), {}, call.node, call.state))


FUNCTIONS: dict[str, Known] = {
    "asyncio.BoundedSemaphore": _semaphore,
    "asyncio.Lock": _lock,
    "asyncio.Semaphore": _semaphore,
    "contextlib.AsyncExitStack": _exit_stack,
    "contextlib.ExitStack": _exit_stack,
    "threading.BoundedSemaphore": _of_threads,
    "threading.Lock": _lock_of_threads,
    "threading.RLock": _lock_of_threads,
    "threading.Semaphore": _of_threads,
}
