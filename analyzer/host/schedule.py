"""Schedule of threads on cores, from a trace of the scheduler.

Text of tracefs' ``trace`` in; per thread its pieces of running, per wake-up where the thread was, where
it went and when it ran, and per core when it idled, out. `analyzer.host.behaviour` makes figures of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from mup.errors import LogError

__all__ = ["Event", "Move", "Piece", "Schedule", "Wakeup", "parse_trace", "replay"]

_LINE = re.compile(
    r"^.+?\s+\[(?P<cpu>\d+)\]\s+(?P<flags>\S+)\s+(?P<time>\d+\.\d+): (?P<kind>sched_\w+): (?P<rest>.*)$"
)
_SWITCH = re.compile(r"prev_pid=(\d+) prev_prio=\S+ prev_state=(\S+) ==> .*next_pid=(\d+) ")
_PID = re.compile(r" pid=(\d+) ")
_TARGET = re.compile(r"target_cpu=(\d+)")
_MOVE = re.compile(r"orig_cpu=(\d+) dest_cpu=(\d+)")

Kind = Literal["switch", "waking", "wakeup", "migrate"]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a trace.

    Attributes:
        time: Seconds of the trace's clock.
        cpu: Where it was written.
        kind: ``switch``: ``pid`` leaves and ``to`` (0 = idle) comes; ``waking``: the thread running on
            ``cpu`` wakes ``pid``; ``wakeup``: ``pid`` is in the queue of core ``to``; ``migrate``: ``pid``
            moves to core ``to``.
        by_timer: Written in a hardware interrupt: a timer's, or a call from another core.
        blocked: Of a switch: the thread that left sleeps; otherwise it waits for its turn.
    """

    time: float
    cpu: int
    kind: Kind
    pid: int
    to: int
    by_timer: bool = False
    blocked: bool = False


@dataclass(slots=True)
class Piece:
    """A thread ran on a core without interruption.

    Attributes:
        blocked: It went to sleep afterwards; False = something else ran instead of it.
        implied: The trace does not show when it started: the core was idle, so it started when it got there.
        awaited: From when on another thread waited for this core meanwhile; None = none did.
    """

    pid: int
    cpu: int
    start: float
    end: float = 0.0
    blocked: bool = False
    awaited: float | None = None
    implied: bool = False


@dataclass(slots=True)
class Wakeup:
    """A thread became runnable.

    Attributes:
        time: When it was woken.
        waker: Thread that woke it; 0 if a timer or an interrupt did.
        waker_cpu: Core on which that happened.
        home: Core it ran on last; -1 = unknown.
        target: Core it was put on.
        running: Who ran on each core then (0 = the core was idle).
        waiting: How many threads waited on each core then.
        ran: When it ran; None = the trace does not show it, or not within the trace.
    """

    time: float
    pid: int
    waker: int
    waker_cpu: int
    home: int
    target: int
    running: tuple[int, ...]
    waiting: tuple[int, ...]
    ran: float | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A waiting thread was moved to another core.

    Attributes:
        pulled: The core it went to was about to fall idle, and looked for work.
    """

    time: float
    pid: int
    source: int
    target: int
    pulled: bool
    queues: tuple[int, ...]


@dataclass(slots=True)
class Schedule:
    """All that happened.

    Attributes:
        cores: Cores seen.
        start, end: First and last moment at which everything is known.
        changes: At each moment anything changed: who runs on each core, and how many wait for it.
        idled: When a core fell idle or would have while threads waited elsewhere: moment, core, threads
            (running and waiting) of every core, and whether it got one of those waiting.
    """

    cores: tuple[int, ...]
    start: float = 0.0
    end: float = 0.0
    pieces: list[Piece] = field(default_factory=list)
    wakeups: list[Wakeup] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    changes: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    idled: list[tuple[float, int, tuple[int, ...], bool]] = field(default_factory=list)


def parse_trace(text: str) -> Iterator[Event]:
    """Yield the events of a trace in the text form of tracefs; lines of other events are skipped.

    Raises:
        LogError: A line of one of the scheduler's events cannot be read.
    """
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match is None:
            if line.strip() and not line.startswith(("#", "CPU:")):
                raise LogError(f"not a line of a scheduler trace: {line[:80]!r}", where=f"line {number}")
            continue
        time, cpu, rest = float(match["time"]), int(match["cpu"]), match["rest"]
        interrupt = match["flags"][2:3] in ("h", "H")
        kind = match["kind"]
        if kind == "sched_switch" and (found := _SWITCH.search(rest)):
            # R = runnable, with any addition ("R+": preempted).
            state = found[2]
            yield Event(
                time, cpu, "switch", int(found[1]), int(found[3]), interrupt, not state.startswith("R")
            )
        elif kind == "sched_migrate_task" and (found := _MOVE.search(rest)) and (pid := _PID.search(rest)):
            yield Event(time, cpu, "migrate", int(pid[1]), int(found[2]), interrupt)
        elif kind in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            target, pid = _TARGET.search(rest), _PID.search(rest)
            if target is None or pid is None:
                raise LogError(f"not a line of a scheduler trace: {line[:80]!r}", where=f"line {number}")
            what: Kind = "waking" if kind == "sched_waking" else "wakeup"
            yield Event(time, cpu, what, int(pid[1]), int(target[1]), interrupt)


def replay(events: Iterable[Event], cores: Iterable[int]) -> Schedule:
    """Follow a trace through; threads and cores count from their first event on."""
    ordered = sorted(events, key=lambda e: e.time)
    # Of some threads some kernels do not show when they leave; whatever they do, it is short.
    heard = {event.pid for event in ordered if event.kind == "switch"} | {0}
    audible = [
        replace(event, to=0) if event.kind == "switch" and event.to not in heard else event
        for event in ordered
        if event.pid in heard
    ]
    return _Replay(tuple(sorted(cores))).run(audible)


class _Replay:
    def __init__(self, cores: tuple[int, ...]) -> None:
        self._schedule = Schedule(cores)
        self._place = {core: index for index, core in enumerate(cores)}
        self._running: dict[int, Piece | None] = dict.fromkeys(cores)
        self._waiting: dict[int, dict[int, float]] = {core: {} for core in cores}
        self._home: dict[int, int] = {}
        self._woken: dict[int, tuple[float, int, int, tuple[int, ...], tuple[int, ...]]] = {}
        self._pending: dict[int, Wakeup] = {}
        self._seen: set[int] = set()
        # Moves of waiting threads not yet followed by a switch of the core they went to.
        self._fresh: dict[int, list[Move]] = {core: [] for core in cores}

    def run(self, events: list[Event]) -> Schedule:
        for event in events:
            if event.kind == "switch":
                self._switch(event)
            elif event.kind == "waking":
                self._waking(event)
            elif event.kind == "wakeup":
                self._wakeup(event)
            else:
                self._migrate(event)
            if self._complete:
                if not self._schedule.changes:
                    self._schedule.start = event.time
                self._schedule.end = event.time
                self._schedule.changes.append((event.time, self._runners(), self._queues()))
        return self._schedule

    @property
    def _complete(self) -> bool:
        return len(self._seen) == len(self._place)

    def _runners(self) -> tuple[int, ...]:
        return tuple(piece.pid if piece else 0 for piece in self._running.values())

    def _queues(self) -> tuple[int, ...]:
        return tuple(len(queue) for queue in self._waiting.values())

    def _enqueue(self, pid: int, core: int, time: float) -> None:
        for queue in self._waiting.values():
            queue.pop(pid, None)
        piece = self._running[core]
        if piece is None and not self._waiting[core]:
            # Some kernels leave out the switches from the idle thread of some cores; it may still come.
            self._run(pid, core, time, implied=True)
            return
        self._waiting[core][pid] = time
        if piece is not None and piece.awaited is None:
            piece.awaited = time

    def _switch(self, event: Event) -> None:
        core = event.cpu
        if core not in self._place:
            return
        self._seen.add(core)
        leaving = self._running[core]
        for queue in self._waiting.values():
            queue.pop(event.pid, None)
        if leaving is not None and leaving.pid != event.pid:
            # It seemed to run, and another one did; or it comes now, which sets its start right.
            if leaving.implied and leaving.pid != event.to:
                self._waiting[core][leaving.pid] = leaving.start
            leaving = None
        if leaving is not None:
            leaving.end, leaving.blocked = event.time, event.blocked
            self._schedule.pieces.append(leaving)
            self._pending.pop(leaving.pid, None)
        self._running[core] = None
        if event.pid:
            self._home[event.pid] = core
            if not event.blocked:
                self._enqueue(event.pid, core, event.time)
        others = [index for index, other in enumerate(self._place) if other != core]
        fresh = [move for move in self._fresh[core] if move.pulled]
        own = len(self._waiting[core]) - len([m for m in fresh if m.pid in self._waiting[core]])
        if event.pid and event.blocked and own == 0:
            # The core had nothing left of its own; was there anything to pull?
            queues = list(self._lengths())
            for move in fresh:
                queues[self._place[core]] -= 1
                queues[self._place[move.source]] += 1
            if any(queues[index] >= 2 for index in others):
                self._schedule.idled.append((event.time, core, tuple(queues), event.to != 0 and bool(fresh)))
        self._fresh[core].clear()
        if event.to:
            self._run(event.to, core, event.time)
            woken = self._pending.pop(event.to, None)
            if woken is not None:
                woken.ran = event.time
        elif self._waiting[core]:
            # A core does not idle while it has threads: one that is not shown ran, and then the next one.
            pid = min(self._waiting[core], key=self._waiting[core].__getitem__)
            self._run(pid, core, event.time, implied=True)

    def _run(self, pid: int, core: int, time: float, *, implied: bool = False) -> None:
        for queue in self._waiting.values():
            queue.pop(pid, None)
        self._home[pid] = core
        awaited = time if self._waiting[core] else None
        self._running[core] = Piece(pid, core, time, awaited=awaited, implied=implied)

    def _lengths(self) -> tuple[int, ...]:
        """Running and waiting threads of every core."""
        return tuple(len(self._waiting[core]) + (self._running[core] is not None) for core in self._place)

    def _waking(self, event: Event) -> None:
        piece = self._running.get(event.cpu)
        waker = 0 if event.by_timer or piece is None else piece.pid
        self._woken[event.pid] = (event.time, waker, event.cpu, self._runners(), self._queues())

    def _wakeup(self, event: Event) -> None:
        if event.to not in self._place:
            return
        time, waker, cpu, running, waiting = self._woken.pop(
            event.pid, (event.time, 0, event.cpu, self._runners(), self._queues())
        )
        wakeup = Wakeup(
            time, event.pid, waker, cpu, self._home.get(event.pid, -1), event.to, running, waiting
        )
        # A thread that had not left its core when it was woken just goes on.
        if any(piece and piece.pid == event.pid for piece in self._running.values()):
            return
        if self._complete:
            self._schedule.wakeups.append(wakeup)
        self._pending[event.pid] = wakeup
        self._enqueue(event.pid, event.to, event.time)

    def _migrate(self, event: Event) -> None:
        source = next((core for core, queue in self._waiting.items() if event.pid in queue), None)
        # Anything else is the placement of a thread that is being woken.
        if source is None or event.to not in self._place or source == event.to:
            return
        target = self._running[event.to]
        move = Move(
            event.time,
            event.pid,
            source,
            event.to,
            event.cpu == event.to and target is not None,
            self._lengths(),
        )
        self._schedule.moves.append(move)
        self._enqueue(event.pid, event.to, self._waiting[source].get(event.pid, event.time))
        self._fresh[event.to].append(move)
