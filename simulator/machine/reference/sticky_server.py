"""Processors whose threads stick to cores, and their parts, in the reference engine.

Every core has a run queue of its own, of *slots* that share the core equally: one for each job of a thread,
and one for each *seat* of a part that runs. A part (an interpreter whose threads take turns, an event loop)
with c cores is c seats. While there are n jobs in it, n or at most c seats run; to the processor each of them
is a thread like any other: it wakes up on its home core, is moved and stolen, unless it is pinned. Within the
part all jobs get equal shares of what its seats get together. Which of several seats wakes up or goes to
sleep is random: seats of a part are not told apart (replicas with cores of their own are a part each).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf

from simpy import Environment, Event

from simulator.machine.reference.server_basics import SERVERS, Node, Seat, wake_at
from simulator.machine.setups import LIKELY
from simulator.machine.variates import Stream
from simulator.program import ServerSpec

__all__ = ["PartSeat", "StickyPart", "StickyServer"]


class _Core:
    """One core: the jobs of threads in its run queue, and how many slots that has with the seats of parts."""

    def __init__(self) -> None:
        self.jobs: list[tuple[float, int, float, Event, Seat]] = []
        self.virtual = 0.0
        self.slots = 0
        self.idle_since = -inf  # inf while it is not idle


class PartSeat(Seat):
    """What a part is to the processor: a thread."""

    __slots__ = ("number", "pinned", "place")

    def __init__(self, core: int, pinned: bool) -> None:
        super().__init__(core)
        self.pinned = pinned
        self.number = 0  # arrival number; 0 while it sleeps
        self.place = 0  # where threads take turns: the first one runs


class StickyServer:
    """Processor sharing within every core; threads come back to the core they ran on last.

    See ``mup.lqn.Migration`` for how they move.

    Invariants: the slots of a core are its jobs and the seats of parts that run on it (whose number is not
    0). Of a part of the processor itself, as many seats run as jobs compete for its cores, but not more than
    it has cores. Pinned seats never leave the core they begin on.

    Args:
        env: Where time passes.
        index: Of the server.
        spec: Its own.
        stream: Its own.
        parts: Those of its parts, and of theirs, parents first.
        parents: Position of the parent of each among the parts; -1 for the server itself.
    """

    def __init__(
        self,
        env: Environment,
        index: int,
        spec: ServerSpec,
        stream: Stream,
        parts: list[ServerSpec],
        parents: list[int],
    ) -> None:
        self._env = env
        self._turn = SERVERS + index
        self._speed = spec.speed
        self._migration = spec.migration
        self._stream = stream
        self._cores = [_Core() for _ in range(int(spec.cores))]
        self._parts = [Node(part, at, part.pace) for part, at in zip(parts, parents, strict=True)]
        self._seats = [[PartSeat(core, part.pinned) for core in part.seats] for part in parts]
        self._arrivals = 0
        self._last = 0.0
        self._timer: Event | None = None
        self._next = -1
        self._balance_at = inf
        self._busy = 0.0
        self._done = 0.0

    def use(self, demand: float, key: int, rank: int, seat: Seat, *, since: float | None) -> Event:  # noqa: ARG002
        """Return the event that ``demand`` (> 0) seconds of work are done by a thread."""
        self._advance()
        event = Event(self._env)
        seat.core = self._choose(seat.core)
        core = self._cores[seat.core]
        if not core.jobs:
            core.virtual = 0.0
        self._arrivals += 1
        heappush(core.jobs, (core.virtual + demand, self._arrivals, demand, event, seat))
        core.slots += 1
        self._settle()
        return event

    def use_part(self, position: int, demand: float, *, since: float | None) -> Event:
        """Return the event that ``demand`` (> 0) seconds of work are done in one of the parts."""
        self._advance()
        event = Event(self._env)
        if self._parts[position].begins(self._arrivals + 1, demand, event, since, self._env.now):
            self._arrivals += 1
            self._seat_parts()
            self._settle()
        return event

    def _choose(self, home: int) -> int:
        cores = self._cores
        if not 0 <= home < len(cores):
            return self._emptiest()
        if cores[home].slots and self._migration.wake > 0:
            idle = next((i for i, core in enumerate(cores) if not core.slots), -1)
            if idle >= 0 and self._stream.uniform() < self._migration.wake:
                return idle
        return home

    def _advance(self) -> None:
        now = self._env.now
        elapsed = now - self._last
        self._serve(elapsed)
        for part in self._parts:
            if part.jobs:
                part.busy += len(part.jobs) * part.rate / part.chain * elapsed
                part.virtual += elapsed * part.rate
        self._last = now

    def _serve(self, elapsed: float) -> None:
        """Do the work on the cores, and their busy account."""
        for core in self._cores:
            if core.slots:
                self._busy += elapsed
                core.virtual += elapsed * (self._speed / core.slots)

    # Parts.

    def _loads(self) -> list[float]:
        """Return how many jobs of every part compete for its cores, those of its parts included."""
        loads = [float(len(part.jobs)) for part in self._parts]
        for position in range(len(loads) - 1, -1, -1):
            part = self._parts[position]
            if part.parent >= 0:
                loads[part.parent] += min(loads[position], part.cores)
        return loads

    def _seat_parts(self) -> None:
        """Wake seats of parts, or let them go to sleep, until as many run as there is work for."""
        for part, seats, load in zip(self._parts, self._seats, self._loads(), strict=True):
            if part.parent >= 0:
                continue
            wanted = min(load, part.cores)
            running = sum(seat.number > 0 for seat in seats)
            while running < wanted:
                seat = self._pick([seat for seat in seats if seat.number == 0])
                if not seat.pinned and seat.stopped != self._last:
                    seat.core = self._choose(seat.core)
                self._arrivals += 1
                seat.number = self._arrivals
                self._wake_seat(seat)
                running += 1
            while running > wanted:
                seat = self._pick([seat for seat in seats if seat.number > 0])
                seat.number = 0
                self._cores[seat.core].slots -= 1
                self._stopped(seat)
                running -= 1
                self._steal(seat.core)

    def _wake_seat(self, seat: PartSeat) -> None:
        self._cores[seat.core].slots += 1

    def _stopped(self, seat: PartSeat) -> None:
        """Note that a seat has gone to sleep."""

    def _pick(self, seats: list[PartSeat]) -> PartSeat:
        return seats[int(self._stream.uniform() * len(seats))] if len(seats) > 1 else seats[0]

    def _pace_parts(self) -> None:
        """Set the rate at which each job of every part is served."""
        loads = self._loads()
        for part, seats, load in zip(self._parts, self._seats, loads, strict=True):
            if part.parent >= 0:
                share = part.cores / load if load > part.cores else 1.0
                part.rate = part.speed * share * self._parts[part.parent].rate
                continue
            total = 0.0
            for seat in seats:
                if seat.number > 0:
                    total += self._pace(seat)
            part.rate = part.speed * (total / load) if load > 0 else 0.0

    def _pace(self, seat: PartSeat) -> float:
        """Return how fast a seat that runs gets work done."""
        return self._speed / self._cores[seat.core].slots

    # Moves.

    def _fullest(self) -> int:
        """Return the first of the cores with the most slots, of those something can be moved from, or -1."""
        movable = [len(core.jobs) for core in self._cores]
        for seats in self._seats:
            for seat in seats:
                if seat.number > 0 and not seat.pinned:
                    movable[seat.core] += 1
        found = [i for i, count in enumerate(movable) if count]
        return max(found, key=lambda i: self._cores[i].slots, default=-1)

    def _emptiest(self) -> int:
        return min(range(len(self._cores)), key=lambda i: self._cores[i].slots)

    def _steal(self, thief: int) -> None:
        """Let a core that may have fallen idle take a thread from the fullest one."""
        if self._cores[thief].slots or self._migration.steal <= 0:
            return
        fullest = self._fullest()
        if (
            fullest >= 0
            and self._cores[fullest].slots >= 2
            and self._stream.uniform() < self._migration.steal
        ):
            self._move(fullest, thief)

    def _move(self, source: int, target: int) -> None:
        """Move the thread that came last, of those that may be moved."""
        there, here = self._cores[source], self._cores[target]
        there.slots -= 1
        here.slots += 1
        job = max(there.jobs, key=lambda j: j[1], default=None)
        latest = 0 if job is None else job[1]
        mover = None
        for seats in self._seats:
            for seat in seats:
                if seat.core == source and not seat.pinned and seat.number > latest:
                    mover, latest = seat, seat.number
        if mover is not None:
            mover.core = target
            return
        assert job is not None  # noqa: S101 - the source has something to move
        there.jobs.remove(job)
        heapify(there.jobs)
        end, number, demand, event, thread = job
        left = end - there.virtual
        if not here.jobs:
            here.virtual = 0.0
        heappush(here.jobs, (here.virtual + left, number, demand, event, thread))
        thread.core = target

    # Events.

    def _settle(self) -> None:
        """Balance after a change, if there is cause, and schedule the next event."""
        cores, now = self._cores, self._env.now
        if self._migration.balance > 0:
            fullest = self._fullest()
            if fullest < 0 or cores[fullest].slots - cores[self._emptiest()].slots < 2:
                self._balance_at = inf
            elif self._balance_at == inf:
                self._balance_at = now + self._stream.exponential(1 / self._migration.balance)
        self._before_events()
        self._pace_parts()
        for core in cores:
            if core.slots:
                core.idle_since = inf
            elif core.idle_since == inf:
                core.idle_since = now
        soonest, self._next = self._balance_at, -1
        for index in range(len(cores)):
            end = self._ends(index)
            if end < soonest:
                soonest, self._next = end, index
        for index, part in enumerate(self._parts, start=len(cores)):
            if part.jobs and part.rate > 0:
                left = max(0.0, part.jobs[0][0] - part.virtual) / part.rate
                if now + left < soonest:
                    soonest, self._next = now + left, index
        self._timer = None
        if soonest < inf:
            self._timer = Event(self._env)
            self._timer.callbacks.append(self._act)
            wake_at(self._env, self._timer, self._turn, soonest)

    def _before_events(self) -> None:
        """Note who runs on the cores."""

    def _ends(self, core: int) -> float:
        """Return when the next job on a core is done."""
        found = self._cores[core]
        if not found.jobs:
            return inf
        return self._env.now + max(0.0, found.jobs[0][0] - found.virtual) / (self._speed / found.slots)

    def _act(self, timer: Event) -> None:
        if timer is not self._timer:
            return
        self._advance()
        if self._next < 0:
            self._balance_at = inf
            self._move(self._fullest(), self._emptiest())
        elif self._next < len(self._cores):
            self._finish_on(self._next)
        else:
            part = self._parts[self._next - len(self._cores)]
            self._arrivals = part.finish(self._arrivals, self._env.now)
            self._seat_parts()
        self._settle()

    def _finish_on(self, index: int) -> None:
        """The first job on a core is done, and whatever ends with it."""
        core = self._cores[index]
        core.virtual = core.jobs[0][0]
        while core.jobs and core.jobs[0][0] <= core.virtual:
            _, _, demand, event, _ = heappop(core.jobs)
            core.slots -= 1
            self._done += demand
            event.succeed()
        self._steal(index)

    # Sleep.

    def slept(self, home: int, otherwise: float = 0.0) -> float:  # noqa: ARG002
        """Return how long the core has slept that a thread gets which begins now.

        It is the one it ran on last, or the idle one that it is likely to move to if that is busy.
        """
        cores = self._cores
        if not 0 <= home < len(cores) or (cores[home].slots and self._migration.wake >= LIKELY):
            home = self._emptiest()
        return 0.0 if cores[home].slots else self._env.now - cores[home].idle_since

    def part_slept(self, position: int) -> float:
        """Return the same of a thread of the outermost part around a part: its first that sleeps."""
        while self._parts[position].parent >= 0:
            position = self._parts[position].parent
        seat = next((seat for seat in self._seats[position] if seat.number == 0), None)
        return 0.0 if seat is None else self.slept(seat.core)

    def loop_slept(self, position: int) -> float | None:
        """Return how long an event loop has slept; None if a part is none."""
        return self._parts[position].slept(self._env.now)

    # Accounts.

    def accounts(self) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds, as of now."""
        elapsed = self._env.now - self._last
        busy, done = self._busy, self._done
        for index, core in enumerate(self._cores):
            if core.slots:
                busy += elapsed
                done += self._underway(index, elapsed)
        given = done / self._speed
        for part in self._parts:
            given += self._given(part, elapsed)
        return busy, given

    def _underway(self, index: int, elapsed: float) -> float:
        """Return the work that the jobs on a core have got so far."""
        core = self._cores[index]
        virtual = core.virtual + elapsed * (self._speed / core.slots)
        return sum(demand - (end - virtual) for end, _, demand, _, _ in core.jobs)

    def part_accounts(self, position: int) -> tuple[float, float]:
        """Return the same of one part and its own parts."""
        elapsed = self._env.now - self._last
        busy = given = 0.0
        for index, part in enumerate(self._parts):
            above = index
            while above > position:  # parents come first
                above = self._parts[above].parent
            if above == position:
                busy += part.busy + len(part.jobs) * part.rate / part.chain * elapsed
                given += self._given(part, elapsed)
        return busy, given

    def _given(self, part: Node, elapsed: float) -> float:
        virtual = part.virtual + elapsed * part.rate
        underway = sum(demand - (end - virtual) for end, _, demand, *_ in part.jobs)
        return (part.done + underway) / part.chain


class StickyPart:
    """A part of a processor whose threads stick to cores."""

    def __init__(self, server: StickyServer, position: int) -> None:
        self._server = server
        self._position = position

    def use(self, demand: float, key: int, rank: int, seat: Seat, *, since: float | None) -> Event:  # noqa: ARG002
        """Return the event that ``demand`` (> 0) seconds of work are done."""
        return self._server.use_part(self._position, demand, since=since)

    def slept(self, home: int, otherwise: float) -> float:  # noqa: ARG002
        """Return how long the core has slept that work gets which begins now."""
        return self._server.part_slept(self._position)

    def loop_slept(self) -> float | None:
        """Return how long the event loop has slept that the part is; None if it is none."""
        return self._server.loop_slept(self._position)

    def accounts(self) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds, as of now."""
        return self._server.part_accounts(self._position)
