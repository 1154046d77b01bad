"""Which context managers of libraries decide how a ``with`` block ends, or how many enter it at once?

All others are taken for what most are: they let every exception pass (files, locks, spans, transactions).
"""

from __future__ import annotations

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
    known, permits = value.python()
    # One of all requests limits what these do together, which no fan-out of one of them says; one that each
    # iteration makes limits nothing.
    alone = call.walk.in_request and not call.walk.loops_around
    if not (known and alone) or type(permits) is not int or permits < 1:
        return call.result(UNKNOWN)
    made = Semaphore(call.walk.place(call.node), permits)
    call.walk.copies.made(made)
    return call.result(made)


def _lock(call: LibraryCall) -> Results | None:
    return _semaphore(LibraryCall(call.walk, (), {}, call.node, call.state))


FUNCTIONS: dict[str, Known] = {
    "asyncio.BoundedSemaphore": _semaphore,
    "asyncio.Lock": _lock,
    "asyncio.Semaphore": _semaphore,
    "contextlib.AsyncExitStack": _exit_stack,
    "contextlib.ExitStack": _exit_stack,
}
