"""Processor time that the threads of a driver take for one query.

A driver that hands its work to threads does it beside the event loop whose code waits, on clocks that code
cannot read. The time belongs to the query, and is a part of how long the query took.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

__all__ = ["DriverThreads", "ThreadTime", "timed_threads"]

P = ParamSpec("P")
T = TypeVar("T")


class ThreadTime:
    """Processor time of threads, summed up.

    Attributes:
        nanoseconds: So much until now.
    """

    __slots__ = ("_lock", "nanoseconds")

    def __init__(self) -> None:
        self.nanoseconds = 0
        # A command that was given up may still be at work when the next one ends.
        self._lock = threading.Lock()

    def timed(self, work: Callable[P, T]) -> Callable[P, T]:
        """Return the same work for a thread of the driver; what the thread takes for it is counted."""

        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            before = time.thread_time_ns()
            try:
                return work(*args, **kwargs)
            finally:
                spent = time.thread_time_ns() - before
                with self._lock:
                    self.nanoseconds += spent

        return run


_counting: ContextVar[ThreadTime | None] = ContextVar("_counting", default=None)


@contextmanager
def timed_threads() -> Iterator[ThreadTime]:
    """Count what drivers' threads do for the code inside, and for what it awaits."""
    found = ThreadTime()
    token = _counting.set(found)
    try:
        yield found
    finally:
        _counting.reset(token)


class DriverThreads(ThreadPoolExecutor):
    """Threads of a driver; what they do inside `timed_threads` is counted there."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do something on one of the threads; see `concurrent.futures.Executor.submit`."""
        counting = _counting.get()
        if counting is None:
            return super().submit(fn, *args, **kwargs)
        return super().submit(counting.timed(fn), *args, **kwargs)
