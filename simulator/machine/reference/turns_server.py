"""Processors on whose cores threads take turns, in the reference engine.

Who has the first place on a core runs. Places below 0 are of who runs and of those that were pushed aside,
the latest first; then come those that have woken up, and from ``HAD_TURN`` on those that have had their
quantum or have come from another core, both in order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from simpy import Environment, Event

from mup.lqn import Turns
from simulator.machine.reference.server_basics import Seat
from simulator.machine.reference.sticky_server import PartSeat, StickyServer
from simulator.machine.variates import Stream
from simulator.program import ServerSpec
from simulator.program.instructions import HAD_TURN

__all__ = ["TurnsServer"]


@dataclass(slots=True, eq=False)
class _Job:
    """Work of a thread on a core."""

    number: int
    place: int
    demand: float
    left: float
    event: Event
    seat: Seat
    key: int


@dataclass(slots=True, eq=False)
class _Queue:
    """What a core of this kind has beside its slots.

    Invariant: between events, ``first`` is the place of the slot that runs, below 0; 0 if there is none.
    """

    jobs: list[_Job]
    first: int = 0
    lowest: int = 0
    head: _Job | PartSeat | None = None
    until: float = inf
    expires: bool = False


class TurnsServer(StickyServer):
    """A `StickyServer` on each core of which one thread runs at a time. See ``mup.lqn.Turns``."""

    def __init__(
        self,
        env: Environment,
        index: int,
        spec: ServerSpec,
        stream: Stream,
        parts: list[ServerSpec],
        parents: list[int],
        turns: Turns,
    ) -> None:
        super().__init__(env, index, spec, stream, parts, parents)
        self._index = index
        self._turns = turns
        self._queues = [_Queue([]) for _ in self._cores]

    def use(self, demand: float, key: int, rank: int, seat: Seat, *, since: float | None) -> Event:  # noqa: ARG002
        """Return the event that ``demand`` (> 0) seconds of work are done by a thread."""
        self._advance()
        event = Event(self._env)
        before = seat.stopped, seat.stopped_key, seat.stopped_on
        goes_on = before == (self._last, key, self._index)
        if not goes_on:
            seat.core = self._choose(seat.core)
        self._arrivals += 1
        place = self._place_again(seat) if goes_on else self._place_of_woken(seat.core)
        self._queues[seat.core].jobs.append(_Job(self._arrivals, place, demand, demand, event, seat, key))
        self._cores[seat.core].slots += 1
        self._settle()
        return event

    def _place_of_woken(self, core: int) -> int:
        at_once = self._cores[core].slots and self._turns.preempt > 0
        if at_once and self._stream.uniform() < self._turns.preempt:
            return self._place_of_running(core)
        return self._arrivals

    def _place_of_running(self, core: int) -> int:
        """Return a place on a core before all others."""
        self._queues[core].lowest -= 1
        return self._queues[core].lowest

    def _place_again(self, seat: Seat) -> int:
        """Return the place of a thread that ended a job of the same flow in this moment: its turn goes on."""
        queue = self._queues[seat.core]
        queue.first, queue.until = self._place_of_running(seat.core), seat.stopped_until
        return queue.first

    def _wake_seat(self, seat: PartSeat) -> None:
        goes_on = seat.stopped == self._last
        seat.place = self._place_again(seat) if goes_on else self._place_of_woken(seat.core)
        super()._wake_seat(seat)

    def _stopped(self, seat: PartSeat) -> None:
        seat.stopped, seat.stopped_until = self._last, self._queues[seat.core].until

    def _slots(self, core: int) -> list[_Job | PartSeat]:
        """Return all that wants to run on a core."""
        seats = [seat for seats in self._seats for seat in seats if seat.number > 0 and seat.core == core]
        return [*self._queues[core].jobs, *seats]

    def _head(self, core: int) -> _Job | PartSeat | None:
        return min(self._slots(core), key=lambda slot: slot.place, default=None)

    def _serve(self, elapsed: float) -> None:
        for core, queue in zip(self._cores, self._queues, strict=True):
            if core.slots:
                self._busy += elapsed
                if isinstance(queue.head, _Job):
                    queue.head.left -= elapsed * self._speed

    def _pace(self, seat: PartSeat) -> float:
        return self._speed if self._queues[seat.core].head is seat else 0.0

    # Moves.

    def _movable(self, core: int) -> list[_Job | PartSeat]:
        """Return what waits on a core and may leave it: who runs stays."""
        head = self._head(core)
        waiting = [slot for slot in self._slots(core) if slot is not head]
        return [slot for slot in waiting if isinstance(slot, _Job) or not slot.pinned]

    def _fullest(self) -> int:
        """Return the first of the cores with the most slots, of those something can be moved from, or -1."""
        found = [core for core in range(len(self._cores)) if self._movable(core)]
        return max(found, key=lambda core: self._cores[core].slots, default=-1)

    def _move(self, source: int, target: int) -> None:
        """Move the thread that came last, of those that may be moved; it becomes the last of those there."""
        mover = max(self._movable(source), key=lambda slot: slot.number)
        self._cores[source].slots -= 1
        self._cores[target].slots += 1
        self._arrivals += 1
        mover.place = self._arrivals + HAD_TURN
        if isinstance(mover, _Job):
            self._queues[source].jobs.remove(mover)
            self._queues[target].jobs.append(mover)
            mover.seat.core = target
        else:
            mover.core = target

    # Events.

    def _ends(self, core: int) -> float:
        """Return when who runs on a core has done its work, or has to let another one run."""
        queue, now = self._queues[core], self._env.now
        end = inf
        if isinstance(queue.head, _Job):
            end = now + max(0.0, queue.head.left) / self._speed
        until = max(now, queue.until)
        queue.expires = self._cores[core].slots > 1 and until < end
        return until if queue.expires else end

    def _before_events(self) -> None:
        """Let who is the first on every core run; a turn begins where that is another one than before."""
        for core, queue in enumerate(self._queues):
            queue.head = self._head(core)
            place = queue.head.place if queue.head is not None else 0
            if place != queue.first:
                if queue.head is not None and place > 0:
                    # Who wakes up does not push this one aside any more.
                    place = queue.head.place = self._place_of_running(core)
                queue.first, queue.until = place, self._env.now + self._turns.quantum

    def _finish_on(self, core: int) -> None:
        queue = self._queues[core]
        head = queue.head
        assert head is not None  # noqa: S101 - there was an event
        if queue.expires:
            self._arrivals += 1
            head.place = self._arrivals + HAD_TURN
            return
        assert isinstance(head, _Job)  # noqa: S101 - parts have events of their own
        seat = head.seat
        seat.stopped, seat.stopped_key, seat.stopped_on = self._last, head.key, self._index
        seat.stopped_until = queue.until
        queue.jobs.remove(head)
        self._cores[core].slots -= 1
        self._done += head.demand
        head.event.succeed()
        self._steal(core)

    def _underway(self, core: int, elapsed: float) -> float:
        queue = self._queues[core]
        given = elapsed * self._speed if isinstance(queue.head, _Job) else 0.0
        return given + sum(job.demand - job.left for job in queue.jobs)
