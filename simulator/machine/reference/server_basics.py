"""Parts of the reference engine's processors: seats, nodes, and times to wake up."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Final

from simpy import Environment, Event

from simulator.program import FCFS, ServerSpec

__all__ = ["FLOWS", "SERVERS", "Node", "Seat", "wake", "wake_at"]

SERVERS: Final = 2
"""Turn of the events of the first processor."""
FLOWS: Final = 1 << 32
"""Turn of the timed steps of flows, to which their key is added."""


class Seat:
    """Which core a thread ran on last; -1 if it never ran.

    Where threads take turns: when it last ended a job (-1 if never), of which flow, on which server, and when
    its turn ends.
    """

    __slots__ = ("core", "stopped", "stopped_key", "stopped_on", "stopped_until")

    def __init__(self, core: int = -1) -> None:
        self.core = core
        self.stopped = -1.0
        self.stopped_key = 0
        self.stopped_on = 0
        self.stopped_until = inf


def wake(env: Environment, event: Event, turn: int, delay: float) -> Event:
    """Let an event happen after ``delay`` seconds, in its turn among those of that moment."""
    event._ok = True  # noqa: SLF001 - as SimPy's own Timeout does
    event._value = None  # noqa: SLF001
    env.schedule(event, turn, delay)  # type: ignore[arg-type]
    return event


def wake_at(env: Environment, event: Event, turn: int, moment: float) -> None:
    """Let an event happen at a moment (not after a delay: adding to the clock could round)."""
    event._ok = True  # noqa: SLF001
    event._value = None  # noqa: SLF001
    queue: list[Any] = env._queue  # noqa: SLF001
    heappush(queue, (moment, turn, next(env._eid), event))  # noqa: SLF001


class Node:
    """A processor within a tree of processors; alone if nothing is nested."""

    def __init__(self, spec: ServerSpec, parent: int, chain: float) -> None:
        self.cores = spec.cores
        self.speed = spec.speed
        self.chain = chain  # speed including that of the parents
        self.parent = parent  # position in the tree, -1 for the root
        self.queues_up = spec.kind == FCFS
        # Virtual end, arrival number, demand, who; since when it has its place.
        self.jobs: list[tuple[float, int, float, Event, float]] = []
        self.waiting: deque[tuple[float, Event]] = deque()
        self.virtual = 0.0
        self.rate = 0.0
        self.busy = 0.0
        self.done = 0.0
        self.idle_since = 0.0

    def slept(self, now: float) -> float | None:
        """Return how long nothing has worked here (0: something does); None if work does not queue here."""
        if not self.queues_up:
            return None
        return 0.0 if self.jobs else now - self.idle_since

    def begins(self, number: int, demand: float, event: Event, since: float | None, now: float) -> bool:
        """Start a job, or queue it where others have all places; return whether it was started.

        Who has its place since some moment begins at once, instead of who began when it stopped. The value of
        the event will be the moment since which it has its place.
        """
        if self.queues_up and len(self.jobs) >= self.cores:
            if since is None:
                self.waiting.append((demand, event))
                return False
            self._step_back(now)
        if not self.jobs:
            self.virtual = 0.0  # no job refers to it: forget its rounding errors
        job = (self.virtual + demand, number, demand, event, now if since is None else since)
        heappush(self.jobs, job)
        return True

    def finish(self, arrivals: int, now: float) -> int:
        """End the first job and whatever ends with it; let those that wait have the places.

        Args:
            arrivals: So many jobs have been started.
            now: The moment.

        Returns:
            How many jobs have been started now.
        """
        # Invariant: at this moment virtual time is the first flow's end; take it without rounding.
        self.virtual = self.jobs[0][0]
        while self.jobs and self.jobs[0][0] <= self.virtual:
            _, _, demand, event, since = heappop(self.jobs)
            self.done += demand
            event.succeed(since)
        while self.waiting and len(self.jobs) < self.cores:
            demand, event = self.waiting.popleft()
            arrivals += 1
            heappush(self.jobs, (self.virtual + demand, arrivals, demand, event, now))
        if not self.jobs:
            self.idle_since = now
        return arrivals

    def _step_back(self, now: float) -> None:
        """Make the job that began last, of those that began in this moment, the next to begin."""
        latest = max((job for job in self.jobs if job[4] == now), key=lambda job: job[1])
        self.jobs.remove(latest)
        heapify(self.jobs)
        self.waiting.appendleft((latest[2], latest[3]))
