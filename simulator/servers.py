"""How do processors share their cores, and how do requests wait for threads? The SimPy building blocks.

A processor offers ``use(demand)``: an event that happens when ``demand`` seconds of work (at speed 1)
have been done. It also keeps two independent accounts of itself, busy core-seconds and service given,
which must agree at any moment.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from simpy import Environment, Event, Timeout

__all__ = ["FcfsProcessor", "Processor", "SharedProcessor", "Station"]


class SharedProcessor:
    """Work-conserving processor sharing: n runnable flows get ``min(1, cores / n)`` of a core each.

    Virtual time runs at the rate every flow is served with. A flow that needs d seconds of work is done
    when virtual time has advanced by d, whatever comes and goes in between: one heap of such moments and
    one timer for the first are enough, O(log n) per flow.
    """

    def __init__(self, env: Environment, cores: int, speed: float) -> None:
        self._env = env
        self._cores = cores
        self._speed = speed
        self._jobs: list[tuple[float, int, float, Event]] = []  # virtual end, arrival number, demand
        self._arrivals = 0
        self._virtual = 0.0
        self._last = 0.0
        self._rate = speed
        self._timer: Timeout | None = None
        self._busy = 0.0
        self._done = 0.0

    def use(self, demand: float) -> Event:
        """Return the event that ``demand`` (> 0) seconds of work are done."""
        self._advance()
        event = Event(self._env)
        self._arrivals += 1
        heappush(self._jobs, (self._virtual + demand, self._arrivals, demand, event))
        self._reschedule()
        return event

    def _advance(self) -> None:
        """Bring virtual time and the busy account up to now."""
        now = self._env.now
        if self._jobs:
            elapsed = now - self._last
            self._busy += min(len(self._jobs), self._cores) * elapsed
            self._virtual += elapsed * self._rate
        else:
            self._virtual = 0.0  # nobody refers to it: forget its rounding errors
        self._last = now

    def _reschedule(self) -> None:
        """Set the timer for the first flow that will be done at the present rate."""
        if not self._jobs:
            self._timer = None
            return
        self._rate = self._speed * min(1.0, self._cores / len(self._jobs))
        # Rounding may have carried virtual time a hair beyond the end of the first flow.
        left = max(0.0, self._jobs[0][0] - self._virtual)
        self._timer = Timeout(self._env, left / self._rate)
        self._timer.callbacks.append(self._finish)

    def _finish(self, timer: Event) -> None:
        if timer is not self._timer:
            return  # somebody came or went since it was set
        self._advance()
        # Invariant: at this moment virtual time is the first flow's end; take it without rounding.
        self._virtual = self._jobs[0][0]
        while self._jobs and self._jobs[0][0] <= self._virtual:
            _, _, demand, event = heappop(self._jobs)
            self._done += demand
            event.succeed()
        self._reschedule()

    def accounts(self, now: float) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds, with nothing left to do before now."""
        elapsed = now - self._last
        busy = self._busy + min(len(self._jobs), self._cores) * elapsed
        virtual = self._virtual + elapsed * self._rate
        underway = sum(demand - (end - virtual) for end, _, demand, _ in self._jobs)
        return busy, (self._done + underway) / self._speed


class FcfsProcessor:
    """Every core serves one flow to the end; the others wait, first come first served."""

    def __init__(self, env: Environment, cores: int, speed: float) -> None:
        self._env = env
        self._cores = cores
        self._speed = speed
        self._waiting: deque[tuple[float, Event]] = deque()
        self._started: dict[Timeout, tuple[float, float, Event]] = {}  # demand, start, who waits
        self._last = 0.0
        self._busy = 0.0
        self._done = 0.0

    def use(self, demand: float) -> Event:
        """Return the event that ``demand`` (> 0) seconds of work are done."""
        event = Event(self._env)
        if len(self._started) < self._cores:
            self._account()
            self._start(demand, event)
        else:
            self._waiting.append((demand, event))
        return event

    def _account(self) -> None:
        now = self._env.now
        self._busy += len(self._started) * (now - self._last)
        self._last = now

    def _start(self, demand: float, event: Event) -> None:
        timer = Timeout(self._env, demand / self._speed)
        timer.callbacks.append(self._finish)
        self._started[timer] = (demand, self._env.now, event)

    def _finish(self, timer: Event) -> None:
        self._account()
        demand, _, event = self._started.pop(timer)  # type: ignore[call-overload]
        self._done += demand
        event.succeed()
        if self._waiting:
            self._start(*self._waiting.popleft())

    def accounts(self, now: float) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds, with nothing left to do before now."""
        busy = self._busy + len(self._started) * (now - self._last)
        underway = sum(now - start for _, start, _ in self._started.values())
        return busy, self._done / self._speed + underway


Processor = SharedProcessor | FcfsProcessor


class Station:
    """A few identical places (threads of a replica, or its front) with one queue, first come first served.

    A place that is given back goes to the head of the queue at that very moment, so nobody who arrives
    later in the same instant can take it.
    """

    __slots__ = ("_env", "_free", "_waiting")

    def __init__(self, env: Environment, places: float) -> None:
        self._env = env
        self._free = places
        self._waiting: deque[Event] = deque()

    def take(self) -> Event | None:
        """Take a place, or return the event to wait for if there is none."""
        if self._free > 0:
            self._free -= 1
            return None
        event = Event(self._env)
        self._waiting.append(event)
        return event

    def give(self) -> None:
        """Give a place back."""
        if self._waiting:
            self._waiting.popleft().succeed()
        else:
            self._free += 1

    @property
    def stuck(self) -> bool:
        """True if somebody waits for a place."""
        return bool(self._waiting)
