"""Tables that the operands of a program point into."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from mup.lqn.distributions import Distribution
from mup.lqn.model import Migration, Turns
from simulator.program.instructions import SHARED, STICKY, Instruction

__all__ = [
    "UNTIMED",
    "ActivitySpec",
    "Choice",
    "EntryCode",
    "JoinSpec",
    "Nominal",
    "Population",
    "Program",
    "ServerSpec",
    "SetupSpec",
    "SiteSpec",
    "SleepSpec",
    "TaskSpec",
    "processor_servers",
    "server_trees",
    "sticky_parts",
]

UNTIMED: Final = -1


@dataclass(frozen=True, slots=True)
class Choice:
    """Where an OR continues: the first address whose cumulative probability exceeds a uniform draw."""

    cumulative: tuple[float, ...]
    addresses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """A join.

    Attributes:
        where, label: Path of the precedence; the name results use.
        entry: Index of the entry it is in.
        slot: Which counter of the request counts the arrivals.
        needed, arrivals: How many let the join go on; how many come in all. Of a fan-out,
            whose own flow comes, too, the counter begins below 0, and 1 lets it go on.
        timer: Which clock of the request says when the branches began; -1 if none does.
        carried: The flow that carries the request is among those that arrive.
    """

    where: str
    label: str
    entry: int
    slot: int
    needed: int
    arrivals: int
    timer: int
    carried: bool


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as engines see it.

    Attributes:
        name: Unique.
        threads: Per replica; may be infinite.
        replicas: How many.
        admission: FIFO, RANDOM, PRIORITY or LOCKED.
        rank: Of its work on processors with priorities; 0 is the most urgent.
        server: Where it runs if that is a processor whose threads stick to cores, else -1.
        front: It has a front that does something.
        front_server: Where that runs if it is a processor whose threads stick to cores, else -1.
        sleep: Index of what its work costs after sleep; -1 if that does not matter.
    """

    name: str
    threads: float
    replicas: int
    admission: int
    rank: int
    server: int
    front: bool
    front_server: int
    sleep: int = -1

    @property
    def seated(self) -> tuple[tuple[int, int], ...]:
        """Servers, and how many threads of each replica stick to their cores, its front behind the others."""
        threads = int(self.threads) if math.isfinite(self.threads) else 0
        found = ((self.server, threads), (self.front_server, int(self.front)))
        return tuple((server, count) for server, count in found if server >= 0 and count)


@dataclass(frozen=True, slots=True)
class EntryCode:
    """Where the code of an entry lies.

    Attributes:
        task, label: Index of its task; the name results use.
        start: Address of its first instruction; -1 if no client can ever reach it.
        epilogue: Address of what happens to the reply once it has left the flow.
        replies_elsewhere: An auxiliary flow may send the reply.
        waits: The thread is held until every flow of the request has ended.
        token: PLAIN, LOCKS, ACQUIRES, RELEASES, UNREADS or UNWRITES.
    """

    task: int
    label: str
    start: int
    epilogue: int
    replies_elsewhere: bool
    waits: bool
    token: int


@dataclass(frozen=True, slots=True)
class SiteSpec:
    """A place requests come from: an activity's call, a forwarding entry, or the outside.

    Attributes:
        label: ``ENTRY:ACTIVITY -> ENTRY`` for results.
        entry: Where they go.
        rank: Of the requests where they queue by priority; 0 is the most urgent.
        population: Which population a request begins a cycle of; -1 if none.
    """

    label: str
    entry: int
    rank: int
    population: int


@dataclass(frozen=True, slots=True)
class SleepSpec:
    """How the set-up of a task depends on sleep: the numbers of ``mup.lqn.Setup``.

    Attributes:
        task: Index of the task.
        gaps, worker, core: The knots, and the shares at each of them.
        by_thread: Its threads sleep one by one; never so if they are unlimited.
    """

    task: int
    gaps: tuple[float, ...]
    worker: tuple[float, ...]
    core: tuple[float, ...]
    by_thread: bool


@dataclass(frozen=True, slots=True)
class SetupSpec:
    """What is added to the times of one USE or DELAY after sleep.

    Attributes:
        sleep: Index of the sleep of its task.
        server: Where the time is spent; -1 if on no processor that can be waited for.
        pause: It is added to a delay, not to processor time.
        by_front: It is the front that slept.
        worker, core: Seconds on top where the worker is fully cold, and where the core is.
    """

    sleep: int
    server: int
    pause: bool
    by_front: bool
    worker: float
    core: float


@dataclass(frozen=True, slots=True)
class ActivitySpec:
    """An activity whose executions are timed."""

    label: str


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A processor with finitely many cores (or a part of one); the infinite ones are just delays.

    A part whose cores belong to the replicas of a task, the same number to each, is one server per replica.

    Attributes:
        name: Of the processor.
        cores: How many; infinite only for a parent.
        speed: Factor.
        kind: FCFS, SHARED, PREEMPTIVE or STICKY.
        by_priority: An FCFS queue is served by rank.
        parent: Index of the server this one is a part of; -1 if none.
        nested: It has a parent or children.
        pace: Seconds of demand served per second by a core of its own: the speed, parents included.
        migration: Of STICKY servers.
        turns: Of STICKY servers whose threads take turns; None = they share their core.
        seats: Of a part of a STICKY server: the core each of its own begins on; else ().
        pinned: These seats never leave their cores.
        background: Seconds of demand per second that no request of the model causes.
        copies, copy: How many servers the processor consists of, one behind the other; which of them it is.
    """

    name: str
    cores: float
    speed: float
    kind: int
    by_priority: bool = False
    parent: int = -1
    nested: bool = False
    pace: float = 1.0
    migration: Migration = field(default_factory=Migration)
    turns: Turns | None = None
    seats: tuple[int, ...] = ()
    pinned: bool = False
    background: float = 0.0
    copies: int = 1
    copy: int = 0


@dataclass(frozen=True, slots=True)
class Nominal:
    """Means of one cycle that follow from the model alone, for checks and for scaling the run.

    Attributes:
        think: Seconds of think time.
        demand: Seconds of processor time (at speed 1), per server.
        total: Seconds of think time, processor time and delay together.
        visits: Requests to each entry, the one it begins with included.
        held: Seconds that threads of each task are held; infinite where they may have to wait meanwhile.
        branched: Other branches than the one that carries the client may have a part in ``think``.
    """

    think: float
    demand: tuple[float, ...]
    total: float
    visits: tuple[float, ...] = ()
    held: tuple[float, ...] = ()
    branched: bool = False


@dataclass(frozen=True, slots=True)
class Population:
    """Where load comes from.

    Attributes:
        name: Of the reference task, or label of the entry that has arrivals.
        task: The reference task's index; -1 if requests come to an entry from outside.
        entry: Index of the entry a cycle begins with.
        clients: How many; 0 for an open source.
        start: Address where each cycle of a client, or the source of an open population, starts.
        first: Address where clients and sources are created: clients come one by one.
        nominal: Means of one cycle.
        rate: Arrivals per second of an open source; 0 for clients.
    """

    name: str
    task: int
    entry: int
    clients: int
    start: int
    first: int
    nominal: Nominal
    rate: float = 0.0

    @property
    def is_open(self) -> bool:
        """True if cycles begin from outside."""
        return self.rate > 0


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled model. Indices in the code point into these tables.

    Attributes:
        code: The instructions.
        background: Addresses where work begins that no cycle contains; a flow each.
        timers, registers, slots: How many clocks, loop counters and join counters a request needs.
        ranks: Number of priority ranks.
    """

    name: str
    code: tuple[Instruction, ...]
    distributions: tuple[Distribution, ...]
    choices: tuple[Choice, ...]
    joins: tuple[JoinSpec, ...]
    tasks: tuple[TaskSpec, ...]
    entries: tuple[EntryCode, ...]
    sites: tuple[SiteSpec, ...]
    activities: tuple[ActivitySpec, ...]
    servers: tuple[ServerSpec, ...]
    populations: tuple[Population, ...]
    background: tuple[int, ...]
    timers: int
    registers: int
    slots: int
    ranks: int
    sleeps: tuple[SleepSpec, ...] = ()
    setups: tuple[SetupSpec, ...] = ()


def processor_servers(program: Program) -> list[tuple[ServerSpec, range]]:
    """Return the first server of every processor, and the indices of all it consists of."""
    return [(s, range(i, i + s.copies)) for i, s in enumerate(program.servers) if s.copy == 0]


def server_trees(program: Program) -> dict[int, list[int]]:
    """Return the members of every tree of servers that share by virtual time, by its root, parents first."""
    return {
        root: members for root, members in _families(program).items() if program.servers[root].kind == SHARED
    }


def sticky_parts(program: Program) -> dict[int, list[int]]:
    """Return the parts of every STICKY server, and theirs, parents first."""
    return {
        root: members[1:]
        for root, members in _families(program).items()
        if program.servers[root].kind == STICKY
    }


def _families(program: Program) -> dict[int, list[int]]:
    """Return every server that is no part and what is a part of it, directly or not, by its index."""
    families: dict[int, list[int]] = {}
    root_of: list[int] = []
    for index, spec in enumerate(program.servers):
        root_of.append(index if spec.parent < 0 else root_of[spec.parent])
        families.setdefault(root_of[index], []).append(index)
    return families
