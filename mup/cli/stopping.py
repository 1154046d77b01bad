"""Stop a command that has started processes: any signal that ends it does as Ctrl-C does.

Without this, ``kill`` would leave services to notice by themselves that it is gone, each with a
traceback of its own.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["code", "stop_cleanly", "uninterrupted"]

_received: list[int] = []


class _StoppedError(KeyboardInterrupt):
    """What a signal raises.

    CPython notes that a KeyboardInterrupt itself left the evaluation of a text (where a dataclass is defined:
    in any import), even one that was caught, and ``python -m mup`` would end by SIGINT for it.
    """


def stop_cleanly() -> None:
    """From now on SIGTERM and SIGHUP raise a KeyboardInterrupt; nohup and the like stay in force."""
    owner = os.getpid()

    def interrupt(number: int, _frame: object) -> None:
        if os.getpid() != owner:
            _end_child(number)
        if not _received:
            # A second one would only interrupt the cleaning up.
            _received.append(number)
            raise _StoppedError

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a signal that ends the command wait until something is done that must not be left halfway."""
    held: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: handler for n in numbers if callable(handler := signal.getsignal(n))}
    for number in before:
        signal.signal(number, lambda one, _frame: held.append(one))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for received in held[:1]:
            signal.raise_signal(received)


def code() -> int:
    """Return the exit code of a command that was stopped: 128 and the number of the signal."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def _end_child(number: int) -> NoReturn:
    """End a forked process as if nothing had been set up here."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise SystemExit(128 + number)
