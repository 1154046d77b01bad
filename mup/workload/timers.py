"""Wake up clients on time: one kernel timer for all pauses of an event loop.

Event loops count in whole milliseconds: pauses come out up to a millisecond too long or too short, and
whatever ends within the same millisecond ends together. A burst of requests at every full millisecond is a
load that was not asked for and that no model knows of. A timer of the kernel (``timerfd``) is exact to some
ten microseconds.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import itertools
import os
import time
from contextlib import suppress

__all__ = ["Timers"]

_NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_ABSOLUTE = 1
_SECOND = 1_000_000_000


class _Spec(ctypes.Structure):
    """``struct itimerspec``: interval, then time of the first expiry."""

    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class Timers:
    """Pauses of one event loop; to be created on it, and closed.

    Where the system has no ``timerfd``, the event loop's own timers are used.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heap: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self._armed = 0
        self._spec = _Spec()
        self._file = -1
        try:
            system = ctypes.CDLL(None, use_errno=True)
            self._set = system.timerfd_settime
            self._file = system.timerfd_create(time.CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC)
        except (AttributeError, OSError):
            return
        if self._file >= 0:
            self._reference = ctypes.byref(self._spec)
            self._loop.add_reader(self._file, self._ring)

    def wake(self, sleeper: asyncio.Future[None], when: int) -> None:
        """Give a future its result (None) at a monotonic time in ns, unless it is done by then."""
        if self._file < 0:
            self._loop.call_later(max(0, when - time.monotonic_ns()) / _SECOND, _wake, sleeper)
            return
        heapq.heappush(self._heap, (when, next(self._order), sleeper))
        if not self._armed or when < self._armed:
            self._arm(when)

    def close(self) -> None:
        """Forget every pause."""
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = -1
        self._heap.clear()

    def _arm(self, when: int) -> None:
        self._armed = when
        # A time of 0 would stop the timer.
        self._spec.seconds, self._spec.nanoseconds = divmod(max(when, 1), _SECOND)
        self._set(self._file, _ABSOLUTE, self._reference, None)

    def _ring(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._file, 8)
        heap, now = self._heap, time.monotonic_ns()
        while heap and heap[0][0] <= now:
            _wake(heapq.heappop(heap)[2])
        if heap:
            self._arm(heap[0][0])
        else:
            self._armed = 0


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
