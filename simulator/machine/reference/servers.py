"""Processors that share their cores, and threads that requests wait for, on SimPy.

A processor offers ``use``: an event that happens when a demand (seconds of work at speed 1) has been
served. It also keeps two independent accounts of itself, busy core-seconds and service given, which must
agree at any moment.

Simultaneous events need an order that does not depend on who asked first. What is scheduled for a moment
carries a *turn*: at one instant everything that has become possible happens first (SimPy's own priorities
0 and 1), then the processors' own events in the order of the processors, then the timed steps of flows in the
order of their keys.
"""

from __future__ import annotations

from collections import deque
from math import inf

from simpy import Environment, Event

from simulator.machine.reference.server_basics import FLOWS, SERVERS, Node, Seat, wake, wake_at
from simulator.machine.reference.sleep import Levels, Rest
from simulator.machine.reference.sticky_server import StickyPart, StickyServer
from simulator.machine.reference.turns_server import TurnsServer
from simulator.machine.variates import Stream
from simulator.program import (
    FCFS,
    FIFO,
    PREEMPTIVE,
    RANDOM,
    Program,
    ServerSpec,
    server_trees,
    sticky_parts,
)

__all__ = ["FLOWS", "Lock", "Seat", "Server", "SharedServer", "Station", "servers", "wake"]


class FcfsServer:
    """Every core serves one flow to the end; the others wait, first come first served or by rank."""

    def __init__(self, env: Environment, spec: ServerSpec, ranks: int) -> None:
        self._env = env
        self._free = int(spec.cores)
        self._speed = spec.speed
        self._queues: list[deque[tuple[float, int, Event]]] = [
            deque() for _ in range(ranks if spec.by_priority else 1)
        ]
        self._by_priority = spec.by_priority
        self._levels = Levels(spec.cores)
        self._running: dict[Event, tuple[float, float]] = {}  # demand, start
        self._last = 0.0
        self._busy = 0.0
        self._done = 0.0

    def use(self, demand: float, key: int, rank: int, seat: Seat, *, since: float | None) -> Event:  # noqa: ARG002
        """Return the event that ``demand`` (> 0) seconds of work are done."""
        event = Event(self._env)
        if self._free > 0:
            self._free -= 1
            self._start(demand, key, event)
        else:
            self._queues[rank if self._by_priority else 0].append((demand, key, event))
        return event

    def _account(self) -> None:
        now = self._env.now
        self._busy += len(self._running) * (now - self._last)
        self._last = now

    def _start(self, demand: float, key: int, event: Event) -> None:
        self._account()
        self._running[event] = (demand, self._env.now)
        self._levels.set(len(self._running), self._env.now)
        event.callbacks.insert(0, self._finish)
        wake(self._env, event, FLOWS + key, demand / self._speed)

    def _finish(self, event: Event) -> None:
        self._account()
        demand, _ = self._running.pop(event)
        self._done += demand
        for queue in self._queues:
            if queue:
                self._start(*queue.popleft())
                return
        self._free += 1
        self._levels.set(len(self._running), self._env.now)

    def slept(self, home: int, otherwise: float) -> float:  # noqa: ARG002
        """Return how long the core has slept that work gets which begins now."""
        return self._levels.slept(self._env.now, otherwise)

    def accounts(self) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds, as of now."""
        now = self._env.now
        busy = self._busy + len(self._running) * (now - self._last)
        underway = sum(now - start for _, start in self._running.values())
        return busy, self._done / self._speed + underway


class PreemptiveServer:
    """The most urgent flows have the cores; who is interrupted is the next of its rank to go on."""

    def __init__(self, env: Environment, index: int, spec: ServerSpec, ranks: int) -> None:
        self._env = env
        self._turn = SERVERS + index
        self._cores = int(spec.cores)
        self._speed = spec.speed
        self._levels = Levels(spec.cores)
        self._queues: list[deque[tuple[float, Event]]] = [deque() for _ in range(ranks)]
        self._running: list[tuple[float, int, int, Event]] = []  # end, arrival number, rank, who
        self._arrivals = 0
        self._timer: Event | None = None
        self._last = 0.0
        self._busy = 0.0
        self._demanded = 0.0

    def use(self, demand: float, key: int, rank: int, seat: Seat, *, since: float | None) -> Event:  # noqa: ARG002
        """Return the event that ``demand`` (> 0) seconds of work are done."""
        event = Event(self._env)
        self._account()
        self._demanded += demand
        if len(self._running) < self._cores:
            self._start(demand, rank, event)
        else:
            worst = max(self._running, key=lambda job: (job[2], job[1]))
            if worst[2] > rank:
                self._running.remove(worst)
                end, _, loser, who = worst
                self._queues[loser].appendleft(((end - self._env.now) * self._speed, who))
                self._start(demand, rank, event)
            else:
                self._queues[rank].append((demand, event))
        self._reschedule()
        return event

    def _account(self) -> None:
        now = self._env.now
        self._busy += len(self._running) * (now - self._last)
        self._last = now

    def _start(self, left: float, rank: int, event: Event) -> None:
        self._arrivals += 1
        self._running.append((self._env.now + left / self._speed, self._arrivals, rank, event))

    def slept(self, home: int, otherwise: float) -> float:  # noqa: ARG002
        """Return how long the core has slept that work gets which begins now."""
        return self._levels.slept(self._env.now, otherwise)

    def _reschedule(self) -> None:
        self._levels.set(len(self._running), self._env.now)
        self._timer = None
        if self._running:
            end = min(job[0] for job in self._running)
            self._timer = Event(self._env)
            self._timer.callbacks.append(self._finish)
            wake_at(self._env, self._timer, self._turn, end)

    def _finish(self, timer: Event) -> None:
        if timer is not self._timer:
            return  # a job came since it was set
        self._account()
        job = min(self._running)
        self._running.remove(job)
        job[3].succeed()
        for rank, queue in enumerate(self._queues):
            if queue:
                left, event = queue.popleft()
                self._start(left, rank, event)
                break
        self._reschedule()

    def accounts(self) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds, as of now."""
        now = self._env.now
        busy = self._busy + len(self._running) * (now - self._last)
        left = sum((end - now) * self._speed for end, *_ in self._running)
        left += sum(work for queue in self._queues for work, _ in queue)
        return busy, (self._demanded - left) / self._speed


class SharedServers:
    """Work-conserving processor sharing in a tree of processors.

    With n runnable flows on c cores each gets ``min(1, c / n)`` of a core. A nested processor lets at
    most as many of its flows compete for its parent's cores as it has cores itself.

    Virtual time of a processor runs at the rate its flows are served with. A flow that needs d seconds of
    work is done when virtual time has advanced by d, whatever comes and goes in between: one heap of such
    moments per processor and one timer for the first are enough.
    """

    def __init__(self, env: Environment, turn: int, specs: list[ServerSpec], parents: list[int]) -> None:
        self._env = env
        self._turn = SERVERS + turn
        chains: list[float] = []
        for spec, parent in zip(specs, parents, strict=True):
            chains.append(spec.speed * (chains[parent] if parent >= 0 else 1.0))
        self._nodes = [Node(s, p, c) for s, p, c in zip(specs, parents, chains, strict=True)]
        self._levels = Levels(specs[0].cores)
        self._arrivals = 0
        self._last = 0.0
        self._timer: Event | None = None
        self._next = 0

    def use(self, position: int, demand: float, *, since: float | None) -> Event:
        """Return the event that ``demand`` (> 0) seconds of work are done on one of the processors."""
        self._advance()
        event = Event(self._env)
        if self._nodes[position].begins(self._arrivals + 1, demand, event, since, self._env.now):
            self._arrivals += 1
            self._reschedule()
        return event

    def _advance(self) -> None:
        """Bring virtual time and the busy accounts up to now."""
        now = self._env.now
        elapsed = now - self._last
        for node in self._nodes:
            if node.jobs:
                node.busy += len(node.jobs) * node.rate / node.chain * elapsed
                node.virtual += elapsed * node.rate
        self._last = now

    def _reschedule(self) -> None:
        """Set all rates, and the timer for the first flow that will be done at these rates."""
        nodes = self._nodes
        load = [float(len(node.jobs)) for node in nodes]
        for position in range(len(nodes) - 1, 0, -1):
            load[nodes[position].parent] += min(load[position], nodes[position].cores)
        self._levels.set(min(load[0], nodes[0].cores), self._env.now)
        soonest = inf
        for position, node in enumerate(nodes):
            share = 1.0
            if load[position] > node.cores:
                share = node.cores / load[position]
            node.rate = node.speed * share
            if position:
                node.rate = node.rate * nodes[node.parent].rate
            if node.jobs:
                # Rounding may have carried virtual time a hair beyond the end of the first flow.
                left = max(0.0, node.jobs[0][0] - node.virtual) / node.rate
                if left < soonest:
                    soonest, self._next = left, position
        self._timer = None
        if soonest < inf:
            self._timer = Event(self._env)
            self._timer.callbacks.append(self._finish)
            wake(self._env, self._timer, self._turn, soonest)

    def _finish(self, timer: Event) -> None:
        if timer is not self._timer:
            return  # a job came or went since it was set
        self._advance()
        self._arrivals = self._nodes[self._next].finish(self._arrivals, self._env.now)
        self._reschedule()

    def loop_slept(self, position: int) -> float | None:
        """Return how long an event loop has slept; None if a processor is none."""
        return self._nodes[position].slept(self._env.now) if position else None

    def slept(self, otherwise: float) -> float:
        """Return how long the core has slept that work gets which begins now."""
        return self._levels.slept(self._env.now, otherwise)

    def accounts(self, position: int) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds of one processor and its parts."""
        elapsed = self._env.now - self._last
        busy = given = 0.0
        for index, node in enumerate(self._nodes):
            if not self._within(index, position):
                continue
            busy += node.busy + len(node.jobs) * node.rate / node.chain * elapsed
            virtual = node.virtual + elapsed * node.rate
            underway = sum(demand - (end - virtual) for end, _, demand, *_ in node.jobs)
            given += (node.done + underway) / node.chain
        return busy, given

    def _within(self, index: int, position: int) -> bool:
        while index >= 0 and index != position:
            index = self._nodes[index].parent
        return index == position


class SharedServer:
    """One processor of a tree, as flows use it."""

    def __init__(self, tree: SharedServers, position: int) -> None:
        self._tree = tree
        self._position = position

    def use(self, demand: float, key: int, rank: int, seat: Seat, *, since: float | None) -> Event:  # noqa: ARG002
        """Return the event that ``demand`` (> 0) seconds of work are done."""
        return self._tree.use(self._position, demand, since=since)

    def slept(self, home: int, otherwise: float) -> float:  # noqa: ARG002
        """Return how long the core has slept that work gets which begins now."""
        return self._tree.slept(otherwise)

    def loop_slept(self) -> float | None:
        """Return how long the event loop has slept that this is; None if it is none."""
        return self._tree.loop_slept(self._position)

    def accounts(self) -> tuple[float, float]:
        """Return busy core-seconds and service given in core-seconds, as of now."""
        return self._tree.accounts(self._position)


Server = FcfsServer | PreemptiveServer | SharedServer | StickyServer | StickyPart


def servers(env: Environment, program: Program, streams: list[Stream]) -> list[Server]:
    """Return the servers of a program; ``streams`` are theirs, one each."""
    specs = program.servers
    found: dict[int, Server] = {}
    for root, members in server_trees(program).items():
        parents = [members.index(m) if (m := specs[i].parent) >= 0 else -1 for i in members]
        tree = SharedServers(env, root, [specs[i] for i in members], parents)
        found.update({index: SharedServer(tree, at) for at, index in enumerate(members)})
    for root, members in sticky_parts(program).items():
        parents = [members.index(m) if (m := specs[i].parent) != root else -1 for i in members]
        spec, parts = specs[root], [specs[i] for i in members]
        if spec.turns is None:
            sticky = StickyServer(env, root, spec, streams[root], parts, parents)
        else:
            sticky = TurnsServer(env, root, spec, streams[root], parts, parents, spec.turns)
        found[root] = sticky
        found.update({index: StickyPart(sticky, at) for at, index in enumerate(members)})
    for index, spec in enumerate(specs):
        if spec.kind == PREEMPTIVE:
            found[index] = PreemptiveServer(env, index, spec, program.ranks)
        elif spec.kind == FCFS and not spec.nested:
            found[index] = FcfsServer(env, spec, program.ranks)
    return [found[index] for index in range(len(specs))]


class Station:
    """A few identical places (threads of a replica, or its front) with one queue.

    A place that is given back goes to the next in the queue at that very moment, so none that arrives
    later in the same instant can take it.

    Invariants: requests wait only while no place is free; no more places are free than there are.
    """

    __slots__ = ("_admission", "_env", "_queues", "_stream", "capacity", "free", "rest", "seats", "waiting")

    def __init__(
        self, env: Environment, places: float, admission: int, ranks: int, stream: Stream, seats: list[Seat]
    ) -> None:
        self._env = env
        self._admission = admission
        self._queues: list[deque[Event]] = [
            deque() for _ in range(1 if admission in (FIFO, RANDOM) else ranks)
        ]
        self._stream = stream
        self.capacity = places
        self.free = places
        self.seats = seats
        self.waiting = 0
        self.rest: Rest | None = None  # how long places have slept, where that matters

    def take(self, rank: int) -> Event | None:
        """Take a place, or return the event to wait for if there is none; its value is the seat."""
        if self.free > 0:
            assert self.waiting == 0  # noqa: S101 - invariant
            self.free -= 1
            return None
        event = Event(self._env)
        self._queues[rank if len(self._queues) > 1 else 0].append(event)
        self.waiting += 1
        return event

    def give(self, seat: Seat | None) -> None:
        """Give a place back, and the seat that goes with it."""
        for queue in self._queues:
            if queue:
                self.waiting -= 1
                position = 0
                if self._admission == RANDOM and len(queue) > 1:
                    position = int(self._stream.uniform() * len(queue))
                event = queue[position]
                del queue[position]
                event.succeed(seat)
                return
        self.free += 1
        assert self.waiting == 0  # noqa: S101 - invariant
        assert self.free <= self.capacity  # noqa: S101 - invariant
        if self.rest is not None:
            self.rest.give(self._env.now)
        if seat is not None:
            self.seats.append(seat)


class Lock(Station):
    """A station whose places readers share; a writer has the station for itself.

    Writers go first: a reader that comes while a writer waits or writes stays behind it, and behind all that
    come before the last of them has left. Readers that came before count as readers, even those that wait
    for a place: a writer waits for them, too.

    Invariants: readers that are let in wait only while no place is free; a writer writes if and only if
    there are writers, all places are free and no reader is let in.
    """

    __slots__ = ("_let_in", "_writers")

    def __init__(self, env: Environment, places: float, stream: Stream, seats: list[Seat]) -> None:
        super().__init__(env, places, FIFO, 1, stream, seats)
        self._queues = [deque(), deque()]  # readers, writers
        self._let_in = 0  # readers that wait for nothing but a place, the first of the queue
        self._writers = 0  # that wait or write

    def lock(self, *, writes: bool) -> Event | None:
        """Take a place, or the whole station; return the event to wait for if that is not possible now."""
        if writes:
            self._writers += 1
            if self._writers == 1 and self.free == self.capacity:
                return None
        elif self._writers == 0:
            if self.free > 0:
                self.free -= 1
                return None
            self._let_in += 1
        event = Event(self._env)
        self._queues[writes].append(event)
        self.waiting += 1
        return event

    def unlock(self, *, writes: bool) -> bool:
        """Give back what ``lock`` took; return False if the lock is not held so."""
        if writes:
            if self._writers == 0 or self.free < self.capacity:
                return False
            self._writers -= 1
            if self._writers == 0:
                self._let_in = self.waiting
        else:
            if self.free == self.capacity:
                return False
            self.free += 1
        while self._let_in > 0 and self.free > 0:
            self._let_in -= 1
            self.free -= 1
            self._admit(writes=False)
        if self._writers > 0 and self.free == self.capacity:
            self._admit(writes=True)
        assert self._let_in == 0 or self.free == 0  # noqa: S101 - invariant
        return True

    def _admit(self, *, writes: bool) -> None:
        self.waiting -= 1
        self._queues[writes].popleft().succeed(None)
