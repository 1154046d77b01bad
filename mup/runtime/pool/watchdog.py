"""Workers that have had one request for too long, and what becomes of them.

A request that takes longer than the limit of its service is answered 504. What becomes of its worker depends
on what that is: a process is killed and replaced; a task of an event loop is cancelled; a thread cannot be
ended. A process all of whose workers are over the limit cannot serve any more, and is replaced as a whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mup.runtime.pool.front import WorkerLink

__all__ = ["BUSY_SECONDS", "Watchdog"]

BUSY_SECONDS = 30.0
"""How long all workers may be busy with the same requests until a replica says that it is not ready."""

_GRACE_SECONDS = 1.0
"""What tasks that have been cancelled get to end."""


class Watchdog:
    """Looks after the time that the requests of one replica take.

    Args:
        workers: The ones that are set up; looked at, never changed.
        request_seconds: How long a worker may have one request; None = as long as it takes.
        busy_seconds: After which a replica is not ready if all its workers are busy; 0 = never.
        overdue: Told once of each worker that is over the limit.
        stuck: Told of the process whose workers all are.
    """

    def __init__(
        self,
        workers: Mapping[int, WorkerLink],
        request_seconds: float | None,
        busy_seconds: float,
        overdue: Callable[[WorkerLink], None],
        stuck: Callable[[int], None],
    ) -> None:
        self._workers = workers
        self._limit = request_seconds
        self._busy_seconds = busy_seconds
        self._overdue = overdue
        self._stuck = stuck
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on, if there is a limit."""
        if self._limit is not None:
            interval = min(max(self._limit / 10, 0.02), 1.0)
            self._timer = asyncio.get_running_loop().call_later(interval, self._look, self._limit)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def longest(self) -> float:
        """Return for how many seconds the request that has been in work the longest has been there."""
        return max(self._seconds(), default=0.0)

    def long_busy(self) -> int:
        """Return how many workers have had one request for longer than a replica's readiness allows."""
        return sum(seconds > self._busy_seconds > 0 for seconds in self._seconds())

    def why_not_ready(self) -> str:
        """Return why no request will be served soon; "" = some will."""
        count = self.long_busy()
        if not count or count < len(self._workers):
            return ""
        return (
            f"all {count} workers have been busy with the same requests for more than"
            f" {self._busy_seconds:g} s (busy_limit), the longest for {self.longest():.0f} s"
        )

    def _seconds(self) -> list[float]:
        now = time.monotonic()
        return [now - link.since for link in self._workers.values() if link.ticket is not None]

    def _look(self, limit: float) -> None:
        now = time.monotonic()
        overdue = [
            link for link in self._workers.values() if link.ticket is not None and now - link.since > limit
        ]
        for link in overdue:
            if not link.overdue:
                link.overdue = True
                self._overdue(link)
        late = limit + _GRACE_SECONDS
        if len(overdue) == len(self._workers) and all(now - link.since > late for link in overdue):
            for pid in {link.pid for link in overdue}:
                self._stuck(pid)
        self.start()
