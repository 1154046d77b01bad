"""What exactly does an engine execute?

``compile_model`` turns a model into a flat program: one array of instructions with integer operands,
and tables (distributions, choices, tasks, entries, processors) the operands point into. Engines know
nothing of activities and precedences; whatever two engines could understand differently is decided here.

A *flow* is a program counter that moves through the code with a stream of random numbers. It works for
a *request* (one execution of an entry) and either *carries* the request or is an auxiliary branch.
Instructions (``a``, ``b``, ``c`` are the operands):

    USE a b c     spend a time drawn from distribution b on processor a (a drawn time of 0 never visits it);
                  c is BY_WORKER; BY_FRONT if the front does it; BY_REPLICA if a is the first of as many
                  servers as the task has replicas: that of the request's own is used
    DELAY b       let a time drawn from distribution b pass
    THINK b       the same; it counts as think time if the flow carries a client's cycle
    THOUGHT       ... which has ended
    SERVED a b    a USE of processor b has ended, for activity a
    CALL a b      send a request to entry a from call site b: pick a replica, continue at the entry's first
                  instruction; RETURN comes back
    SEND a b      the same without reply: a new flow executes the entry, this one goes on
    FORWARD a b   leave the request; its reply will be that of entry a
    FRONT_TAKE, FRONT_GIVE   wait for, and free, the front of the request's replica (one at a time, FIFO)
    ADMIT a       wait for a thread of the request's replica (a is FOR_THREAD), or to hold a lock
                  (FOR_READING, FOR_WRITING), or for nothing (FOR_NOTHING)
    RELEASE       give the thread back for a while
    REACQUIRE     wait for a thread again
    FORK a        start an auxiliary flow at address a
    FORK_JOIN a   the same where the flow goes on to a JOIN of just these two; see ``optimise``
    JOIN a        arrive at join a
    BRANCH_END a  the JOIN at the end of the branch that a FORK_JOIN started
    CHOICE a      continue at one of the addresses of choice a
    GOTO a        continue at address a
    COUNT a b     draw how often a loop is run (distribution b) into register a
    LOOP a b      continue at address b if register a is 0, else subtract 1
    BEGIN a b     activity a begins; note the time in clock b
    FINISH a b    it ends
    SPLIT a       branches begin; note the time in clock a
    REPLY         the flow leaves the request behind with the reply; a new flow carries on the work after it
    END           the flow is over: free the thread if it carries the request, and reply if nobody has
    RETURN        hand the reply to the flow that called
    CYCLE         a client's cycle is complete; begin the next one
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mup.errors import SimulationError, UncalibratedError
from mup.lqn.distributions import Constant, Distribution, Exponential, Geometric, Uniform
from mup.lqn.model import (
    LOCK,
    Activity,
    Call,
    Entry,
    Migration,
    Model,
    Precedence,
    Processor,
    Task,
    entry_label,
)
from mup.lqn.visits import activity_visits
from simulator.limits import check_size
from simulator.warmth import settled

__all__ = [
    "ActivitySpec",
    "Choice",
    "EntryCode",
    "Instruction",
    "JoinSpec",
    "Nominal",
    "Population",
    "Program",
    "ServerSpec",
    "SiteSpec",
    "TaskSpec",
    "compile_model",
    "optimise",
    "processor_servers",
    "server_trees",
    "sticky_parts",
]

# Plain integers, not an Enum: engines compare them millions of times.
USE: Final = 0
DELAY: Final = 1
THINK: Final = 2
CALL: Final = 3
FRONT_TAKE: Final = 4
FRONT_GIVE: Final = 5
ADMIT: Final = 6
FORK: Final = 7
JOIN: Final = 8
CHOICE: Final = 9
GOTO: Final = 10
REPLY: Final = 11
END: Final = 12
RETURN: Final = 13
CYCLE: Final = 14
SEND: Final = 15
FORWARD: Final = 16
RELEASE: Final = 17
REACQUIRE: Final = 18
COUNT: Final = 19
LOOP: Final = 20
BEGIN: Final = 21
FINISH: Final = 22
SPLIT: Final = 23
FORK_JOIN: Final = 24
BRANCH_END: Final = 25
THOUGHT: Final = 26
SERVED: Final = 27

LATE: Final = 0
"""Address of the END where a flow goes on that comes to a join that has already let the others go on."""

BY_WORKER: Final = 0
BY_FRONT: Final = 1
BY_REPLICA: Final = 2

# What kind of server a processor is.
FCFS: Final = 0
SHARED: Final = 1
PREEMPTIVE: Final = 2
STICKY: Final = 3

# Who gets the next free thread.
FIFO: Final = 0
RANDOM: Final = 1
PRIORITY: Final = 2
LOCKED: Final = 3
"""Readers share the threads, a writer has them alone (``simulator.servers.Lock``)."""

# What happens to the thread at the end of an entry.
PLAIN: Final = 0
ACQUIRES: Final = 1
RELEASES: Final = 2
UNREADS: Final = 3
UNWRITES: Final = 4
ENDS: Final = {
    "": PLAIN,
    "acquire": ACQUIRES,
    "release": RELEASES,
    "read-lock": ACQUIRES,
    "read-unlock": UNREADS,
    "write-lock": ACQUIRES,
    "write-unlock": UNWRITES,
}
GIVE_BACK: Final = (RELEASES, UNREADS, UNWRITES)

# What a request waits for.
FOR_THREAD: Final = 0
FOR_NOTHING: Final = 1
FOR_READING: Final = 2
FOR_WRITING: Final = 3
ADMITS: Final = {
    "": FOR_THREAD,
    "acquire": FOR_THREAD,
    "release": FOR_NOTHING,
    "read-lock": FOR_READING,
    "read-unlock": FOR_NOTHING,
    "write-lock": FOR_WRITING,
    "write-unlock": FOR_NOTHING,
}

Instruction = tuple[int, int, int, int]
"""Operation, a, b, c."""

MAX_EMPTY_CYCLES: Final = 10_000
"""Cycles of no duration in a row before a client is declared to spin."""

MAX_STANDSTILL: Final = 50_000_000
"""Steps at one instant before it is declared to be endless."""

MAX_LISTED = 20

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
        slot: Which counter of the request counts the arrivals.
        needed, arrivals: How many let the join go on; how many come in all.
        timer: Which clock of the request says when the branches began; -1 if none does.
        carried: The flow that carries the request is among those that arrive.
    """

    where: str
    label: str
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
    """

    name: str
    threads: float
    replicas: int
    admission: int
    rank: int
    server: int
    front: bool
    front_server: int

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
        token: PLAIN, ACQUIRES, RELEASES, UNREADS or UNWRITES.
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
        by_priority: Whoever waits in an FCFS queue is served by rank.
        parent: Index of the server this one is a part of; -1 if none.
        nested: It has a parent or children.
        pace: Seconds of demand served per second by a core of its own: the speed, parents included.
        migration: Of STICKY servers.
        seats: Of a part of a STICKY server: the core each of its own begins on; else ().
        pinned: These seats never leave their cores.
        background: Seconds of demand per second that nobody in the model asks for.
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
    """

    think: float
    demand: tuple[float, ...]
    total: float


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


SLICE: Final = 0.002
"""Seconds of processor time that work in the background takes at once: a heartbeat, a look around."""
MAX_SLICES: Final = 100
"""Per cycle. Where cycles are few and far between slices are longer: hardly anybody is there to meet them."""


def compile_model(model: Model, *, activities: bool = False, arrive_within: float | None = None) -> Program:
    """Compile a model.

    Args:
        model: What to compile. Where processor times depend on the load, those of its own load are compiled.
        activities: Time every execution of every activity.
        arrive_within: Seconds in which all clients have come. Default: as long as a cycle takes when nobody
            waits.

    Raises:
        UncalibratedError: A number a client can reach was never measured; all of them are listed.
        SimulationError: Nothing creates load, or a cycle takes no time.
        ModelError: It is too large for any machine's memory.
    """
    if not any(e.arrivals is not None for t in model.tasks for e in t.entries) and not model.reference_tasks:
        raise SimulationError(
            "the model has no reference task: nothing would ever happen",
            where=model.name,
            hint="add a task of role 'reference' with the clients that send requests, or arrivals",
        )
    model = settled(model)
    check_size(model)
    return _Compiler(model, activities=activities, arrive_within=arrive_within).program()


class _Compiler:
    """Emits the code of everything that load reaches, one entry at a time."""

    def __init__(self, model: Model, *, activities: bool, arrive_within: float | None) -> None:
        self.model = model
        self.timed = activities
        self.arrive_within = arrive_within
        self.code: list[Instruction] = []
        self.distributions: list[Distribution] = []
        self.known_distributions: dict[Distribution, int] = {}
        self.choices: list[Choice] = []
        self.joins: list[JoinSpec] = []
        self.sites: list[SiteSpec] = []
        self.activities: list[ActivitySpec] = []
        self.timers = self.registers = self.slots = 0
        self.missing: list[str] = []
        self.task_named = {t.name: t for t in model.tasks}
        self.ranks = sorted({t.priority for t in model.tasks} | self.request_priorities(), reverse=True)
        self.servers = _servers(model)
        self.server_index = {s.name: i for i, s in enumerate(self.servers) if s.copy == 0}
        self.tasks = {t.name: i for i, t in enumerate(model.tasks)}
        self.entries = {
            (t.name, e.name): i for i, (t, e) in enumerate((t, e) for t in model.tasks for e in t.entries)
        }
        self.compiled: dict[int, EntryCode] = {}
        self.wanted: list[tuple[Task, Entry]] = []
        self.starts: dict[str, int] = {}

    def request_priorities(self) -> set[int]:
        """Return the priority of every request that can be sent (task of the caller plus entry)."""
        found = {e.priority for t in self.model.tasks for e in t.entries}
        for task, entry, activity in self.model.walk():
            targets = [(c.task, c.entry) for c in activity.calls]
            targets += [(f.task, f.entry) for f in entry.forwards]
            found.update(task.priority + self.task_named[t].entry(e).priority for t, e in targets)
        return found

    def program(self) -> Program:
        model = self.model
        self.emit(END)  # at LATE
        sources = [(t, e) for t in model.tasks for e in t.entries if e.arrivals is not None or t.is_reference]
        populations = [self.source(task, entry, index) for index, (task, entry) in enumerate(sources)]
        while self.wanted:
            self.compile_entry(*self.wanted.pop())
        if self.missing:
            self.refuse()
        finished = []
        for (task, entry), population in zip(sources, populations, strict=True):
            nominal = _nominal(model, task, entry, self.servers)
            if nominal.total <= 0 and not population.is_open:
                raise SimulationError(
                    "a cycle takes no time at all, so it would repeat for ever at time 0",
                    where=f"tasks[{task.name!r}]",
                    hint="give it a think time, or some demand or delay on the way",
                )
            start = population.start if population.is_open else self.starts[task.name]
            # A single client meets nobody; it comes at its moment only where a run is repeated.
            least = 2 if self.arrive_within is None else 1
            first = self.entrance(start, nominal) if population.clients >= least else start
            finished.append(replace(population, start=start, first=first, nominal=nominal))
        cycles = sum(p.rate if p.is_open else p.clients / p.nominal.total for p in finished)
        background = tuple(at for i in range(len(self.servers)) if (at := self.background(i, cycles)) >= 0)
        self.check_capacity(finished)
        tasks = tuple(self.task_spec(t) for t in model.tasks)
        return Program(
            name=model.name,
            code=tuple(self.code),
            distributions=tuple(self.distributions),
            choices=tuple(self.choices),
            joins=tuple(self.joins),
            tasks=tasks,
            entries=tuple(
                self.compiled.get(i, EntryCode(self.tasks[t], entry_label(t, e), -1, -1, False, False, PLAIN))
                for (t, e), i in self.entries.items()
            ),
            sites=tuple(self.sites),
            activities=tuple(self.activities),
            servers=_with_seats(model, self.servers, tasks),
            populations=tuple(finished),
            background=background,
            timers=self.timers,
            registers=self.registers,
            slots=self.slots,
            ranks=len(self.ranks),
        )

    def sticky(self, processor: str | None) -> int:
        """Return the server of a processor if threads stick to its cores, else -1."""
        server = -1 if processor is None else self.server_index.get(processor, -1)
        return server if server >= 0 and self.servers[server].kind == STICKY else -1

    def task_spec(self, task: Task) -> TaskSpec:
        admission = {"fifo": FIFO, "random": RANDOM, "hol": PRIORITY}[task.admission]
        return TaskSpec(
            name=task.name,
            threads=task.threads,
            replicas=task.replicas,
            admission=LOCKED if any(e.token in LOCK for e in task.entries) else admission,
            rank=self.ranks.index(task.priority),
            server=self.sticky(task.processor),
            front=self.has_front(task),
            front_server=self.sticky(self.model.front_processor(task)),
        )

    def source(self, task: Task, entry: Entry, index: int) -> Population:
        """Note where load comes from; emit the code that creates it if it is open."""
        target = self.want(task, entry)
        nothing = Nominal(0.0, (), 0.0)
        if entry.arrivals is None:
            return Population(task.name, self.tasks[task.name], target, int(task.threads), -1, -1, nothing)
        label = task.name if task.is_reference else entry_label(task.name, entry.name)
        if entry.arrivals.mean <= 0:
            raise SimulationError(
                "requests would arrive all at once: the time between arrivals is 0",
                where=f"tasks[{task.name!r}].entries[{entry.name!r}].arrivals",
            )
        rank = self.ranks.index(entry.priority)
        self.sites.append(SiteSpec(f"-> {label}", target, rank, index))
        start = self.emit(DELAY, b=self.distribution(entry.arrivals))
        self.emit(SEND, target, len(self.sites) - 1)
        self.emit(GOTO, start)
        owner = self.tasks[task.name] if task.is_reference else -1
        return Population(label, owner, target, 0, start, start, nothing, 1 / entry.arrivals.mean)

    def background(self, index: int, cycles: float) -> int:
        """Emit what works on a processor without being asked; return where it starts, or -1.

        Each slice of it waits for a core like any other work, but the next one comes nevertheless: operating
        systems do not let those starve who want little.

        Args:
            index: Of the processor.
            cycles: So many begin per second if nobody waits.
        """
        server = self.servers[index]
        if not server.background:
            return -1
        work = max(SLICE, server.background / (MAX_SLICES * cycles))
        start = self.emit(DELAY, b=self.distribution(Exponential(work / server.background)))
        self.emit(FORK, start + 3)
        self.emit(GOTO, start)
        self.emit(USE, index, self.distribution(Constant(work)), BY_WORKER)
        self.emit(END)
        return start

    def entrance(self, start: int, nominal: Nominal) -> int:
        """Emit how a client comes: at a random moment of the first cycle or warm-up, as in a measured load.

        If all came at once, clients whose work always takes equally long would meet again and again.
        """
        within = nominal.total if self.arrive_within is None else self.arrive_within
        first = self.emit(THINK, b=self.distribution(Uniform(0.0, within)))
        self.emit(THOUGHT)
        self.emit(GOTO, start)
        return first

    def check_capacity(self, populations: list[Population]) -> None:
        """Refuse open load that a processor can never serve."""
        for index, server in enumerate(self.servers):
            if server.copy > 0:
                continue  # as much comes to each copy
            load = server.copies * sum(p.rate * p.nominal.demand[index] for p in populations if p.is_open)
            offered = server.copies * server.cores * server.speed - server.background
            if load >= offered and load > 0:
                raise SimulationError(
                    f"open arrivals alone demand {load:.6g} core-seconds per second of processor "
                    f"{server.name!r}, which offers {offered:g}: queues would only grow",
                    where=f"processors[{server.name!r}]",
                    hint="lower the arrival rate, or add cores or speed",
                )

    def refuse(self) -> None:
        shown = [f"  {path}" for path in self.missing[:MAX_LISTED]]
        if len(self.missing) > MAX_LISTED:
            shown.append(f"  ... and {len(self.missing) - MAX_LISTED} more")
        listing = "\n".join(shown)
        raise UncalibratedError(
            f"{len(self.missing)} numbers that clients can reach were never measured\n{listing}",
            where=self.model.name,
            hint="run 'mup explore' and 'mup model' to measure them, or set them in the model file",
        )

    def want(self, task: Task, entry: Entry) -> int:
        """Note that an entry is reachable; return its index."""
        index = self.entries[task.name, entry.name]
        if index not in self.compiled:
            label = entry_label(task.name, entry.name)
            ends = ENDS[entry.token]
            self.compiled[index] = EntryCode(self.tasks[task.name], label, 0, 0, False, entry.waits, ends)
            self.wanted.append((task, entry))
        return index

    def site(self, caller: Task, label: str, target: tuple[str, str]) -> int:
        """Add a place that requests come from; return its index."""
        task = self.task_named[target[0]]
        entry = task.entry(target[1])
        rank = self.ranks.index(caller.priority + entry.priority)
        name = f"{label} -> {entry_label(*target)}"
        self.sites.append(SiteSpec(name, self.want(task, entry), rank, -1))
        return len(self.sites) - 1

    def emit(self, operation: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        """Append an instruction; return its address."""
        self.code.append((operation, a, b, c))
        return len(self.code) - 1

    def emit_choice(self, probabilities: Iterable[float], addresses: Iterable[int]) -> int:
        """Append a CHOICE between known addresses; return its address."""
        self.choices.append(Choice(_cumulative(probabilities), tuple(addresses)))
        return self.emit(CHOICE, len(self.choices) - 1)

    def distribution(self, distribution: Distribution) -> int:
        index = self.known_distributions.setdefault(distribution, len(self.distributions))
        if index == len(self.distributions):
            self.distributions.append(distribution)
        return index

    def compile_entry(self, task: Task, entry: Entry) -> None:
        index = self.entries[task.name, entry.name]
        where = f"tasks[{task.name!r}].entries[{entry.name!r}]"
        client = task.is_reference and not task.is_open
        start = len(self.code)
        body = _Body(self, task, entry, where)
        if client:
            if task.think is not None and task.think.mean > 0:
                self.emit(THINK, b=self.distribution(task.think))
                self.emit(THOUGHT)
            self.starts[task.name] = start
        else:
            self.front(task, body, "request")
            self.emit(ADMIT, ADMITS[entry.token])
        body.emit()
        epilogue = len(self.code)
        if client:
            self.emit(CYCLE)
        else:
            self.front(task, body, "reply")
            self.forwards(task, entry)
            self.emit(RETURN)
        self.compiled[index] = replace(
            self.compiled[index],
            start=start,
            epilogue=epilogue,
            replies_elsewhere=not client and body.replies_elsewhere,
        )

    def forwards(self, task: Task, entry: Entry) -> None:
        """Emit where the reply turns into a request to somebody else."""
        chances = [f for f in entry.forwards if f.probability > 0]
        if not chances:
            return
        first = len(self.code) + 1
        rest = 1 - math.fsum(f.probability for f in chances)
        odds = [f.probability for f in chances] + ([rest] if rest > 1e-12 else [])
        self.emit_choice(odds, range(first, first + len(odds)))
        label = entry_label(task.name, entry.name)
        for forward in chances:
            site = self.site(task, f"{label}:forward", (forward.task, forward.entry))
            self.emit(FORWARD, self.sites[site].entry, site)

    def has_front(self, task: Task) -> bool:
        """Tell whether the front does anything: one that takes no time is never in the way."""
        front = task.front
        return front is not None and any(t is None or t.mean > 0 for t in (front.request, front.reply))

    def front(self, task: Task, body: _Body, phase: str) -> None:
        """Emit what the front does with a request or its reply; timed, it is an activity of the entry."""
        if not self.has_front(task):
            return
        time: Distribution | None = getattr(task.front, phase)
        home = replace(task, processor=self.model.front_processor(task))
        number = UNTIMED
        if self.timed:
            number = len(self.activities)
            # Behind the clocks of the activities, which may still go on when the reply leaves.
            clock = len(body.timers) + len(body.activities)
            self.timers = max(self.timers, clock + 1)
            self.activities.append(ActivitySpec(f"{body.label}:front.{phase}"))
            self.emit(BEGIN, number, clock)
        self.emit(FRONT_TAKE)
        self.spend(home, time, f"tasks[{task.name!r}].front.{phase}", number, BY_FRONT)
        self.emit(FRONT_GIVE)
        if number != UNTIMED:
            self.emit(FINISH, number, clock)

    def spend(
        self, task: Task, demand: Distribution | None, where: str, purpose: int, by: int = BY_WORKER
    ) -> None:
        """Emit processor time; where there is a core for every thread, it is a delay.

        Args:
            task: Whose.
            demand: How much.
            where: Path of the number.
            purpose: The timed activity it belongs to, or UNTIMED.
            by: BY_WORKER or BY_FRONT.
        """
        if demand is None:
            if where not in self.missing:
                self.missing.append(where)
        elif demand.mean > 0:
            if task.processor in self.server_index:
                server = self.server_index[task.processor]
                if self.servers[server].copies > 1:
                    by = BY_REPLICA  # never a front: those are on no part
                self.emit(USE, server, self.distribution(demand), by)
                if purpose >= 0:
                    self.emit(SERVED, purpose, server)
            else:
                speed = 1.0 if task.processor is None else self.model.processor(task.processor).speed
                self.emit(DELAY, b=self.distribution(demand if speed == 1.0 else demand.scaled(1 / speed)))

    def pause(self, delay: Distribution | None, where: str, *, think: bool) -> None:
        if delay is None:
            self.missing.append(where)
        elif delay.mean > 0:
            self.emit(THINK if think else DELAY, b=self.distribution(delay))
            if think:
                self.emit(THOUGHT)


def _cumulative(probabilities: Iterable[float]) -> tuple[float, ...]:
    cumulative, total = [], 0.0
    for chance in probabilities:
        total += chance
        cumulative.append(total)
    cumulative[-1] = 1.0  # rounding must not leave a draw without a branch
    return tuple(cumulative)


def _servers(model: Model) -> list[ServerSpec]:
    """Return the processors somebody can wait for, parents before their children."""
    named = {p.name: p for p in model.processors}
    parents = {p.parent for p in model.processors if p.parent is not None}

    def depth(name: str) -> int:
        parent = named[name].parent
        return 0 if parent is None else 1 + depth(parent)

    finite = [
        p
        for p in model.processors
        if p.name in parents or p.parent is not None or (p.discipline != "infinite" and p.cores < math.inf)
    ]
    finite.sort(key=lambda p: depth(p.name))
    speeds = _speeds(model)
    kinds = {"fcfs": FCFS, "hol": FCFS, "ps": SHARED, "infinite": SHARED, "pp": PREEMPTIVE, "cores": STICKY}
    index: dict[str, int] = {}
    result: list[ServerSpec] = []
    for p in finite:
        index[p.name] = len(result)
        copies = 1 if p.name in parents else _copies(model, p)
        spec = ServerSpec(
            name=p.name,
            cores=math.inf if p.discipline == "infinite" else p.cores / copies,
            speed=p.speed,
            kind=kinds[p.discipline],
            by_priority=p.discipline == "hol",
            parent=-1 if p.parent is None else index[p.parent],
            nested=p.parent is not None or p.name in parents,
            pace=speeds[p.name],
            migration=p.migration or Migration(),
            background=p.background,
            copies=copies,
        )
        result += [replace(spec, copy=number) for number in range(copies)]
    return result


def _copies(model: Model, processor: Processor) -> int:
    """Return how many servers a processor is: one for each replica where these have cores of their own."""
    users = [t for t in model.tasks if t.processor == processor.name]
    if processor.parent is None or len(users) != 1 or users[0].is_reference:
        return 1
    return users[0].replicas if processor.cores % users[0].replicas == 0 else 1


def _with_seats(
    model: Model, servers: Sequence[ServerSpec], tasks: Sequence[TaskSpec]
) -> tuple[ServerSpec, ...]:
    """Return the servers, parts of STICKY ones with the cores their seats begin on.

    The seats of parts that are pinned nowhere are counted on behind the threads of tasks.
    """
    taken = [0] * len(servers)
    for task in tasks:
        for server, count in task.seated:
            taken[server] += task.replicas * count
    result = []
    for spec in servers:
        if spec.parent < 0 or servers[spec.parent].kind != STICKY:
            result.append(spec)
            continue
        cores, count = int(servers[spec.parent].cores), int(spec.cores)
        first = model.processor(spec.name).core
        begin = taken[spec.parent] if first is None else first + spec.copy * count
        if first is None:
            taken[spec.parent] += count
        seats = tuple((begin + k) % cores for k in range(count))
        result.append(replace(spec, seats=seats, pinned=first is not None))
    return tuple(result)


class _Body:
    """Emits the activity graph of one entry; labels are patched once their addresses are known."""

    def __init__(self, compiler: _Compiler, task: Task, entry: Entry, where: str) -> None:
        self.compiler = compiler
        self.task = task
        self.entry = entry
        self.where = where
        self.label = entry_label(task.name, entry.name)
        self.activities = {a.name: a for a in entry.activities}
        self.successor = {name: i for i, p in enumerate(entry.precedences) for name in p.pre}
        self.carried = _carried(entry)
        self.joins = {
            i: n
            for n, i in enumerate(
                i for i, p in enumerate(entry.precedences) if p.join == "and" and len(p.pre) > 1
            )
        }
        self.join_timers = _join_timers(entry, list(self.joins))
        self.activity_address: dict[str, int] = {}
        self.precedence_address: dict[int, int] = {}
        self.patches: list[tuple[int, str]] = []
        self.choice_patches: list[tuple[int, tuple[float, ...], tuple[str, ...]]] = []
        self.pending: list[tuple[str, int]] = []
        self.registers = 0
        # One clock per activity where they are timed, and one per fork that a join refers to.
        self.timers = {fork: n for n, fork in enumerate(sorted(set(self.join_timers.values())))}

    @property
    def replies_elsewhere(self) -> bool:
        """Tell whether an activity off the flow that holds the thread may send the reply."""
        return not {a.name for a in self.entry.activities if a.replies}.issubset(self.carried)

    def emit(self) -> None:
        compiler = self.compiler
        first = len(compiler.code)
        self.pending.append((self.entry.start, -1))
        while self.pending:
            self.chain(*self.pending.pop())
        code = compiler.code
        for address, name in self.patches:
            operation, _, b, c = code[address]
            code[address] = (operation, self.activity_address[name], b, c)
        for index, odds, names in self.choice_patches:
            addresses = tuple(self.activity_address[n] for n in names)
            compiler.choices[index] = Choice(_cumulative(odds), addresses)
        self.drop_final_replies(first)
        compiler.slots = max(compiler.slots, len(self.joins))
        compiler.registers = max(compiler.registers, self.registers)
        timers = len(self.timers) + (len(self.activities) if compiler.timed else 0)
        compiler.timers = max(compiler.timers, timers)

    def chain(self, name: str, loop: int) -> None:
        """Emit an activity and what follows it, until code that exists already or the end.

        Args:
            name: First activity.
            loop: Where the end of the chain continues (the head of the loop whose body it is), or -1.
        """
        compiler = self.compiler
        while True:
            self.activity_address[name] = len(compiler.code)
            self.activity(self.activities[name])
            index = self.successor.get(name)
            if index is None:
                self.leave(loop)
                return
            if index in self.precedence_address:
                compiler.emit(GOTO, self.precedence_address[index])
                return
            self.precedence_address[index] = len(compiler.code)
            precedence = self.entry.precedences[index]
            if index in self.joins:
                compiler.emit(JOIN, self.join(index, precedence))
            # Every activity has one way in (a rule of the model), so its code comes right here.
            following = self.fork(precedence, index, loop)
            if following is None:
                self.leave(loop)
                return
            name = following

    def leave(self, loop: int) -> None:
        if loop >= 0:
            self.compiler.emit(GOTO, loop)
        else:
            self.compiler.emit(END)

    def join(self, index: int, precedence: Precedence) -> int:
        names = "&".join(precedence.pre)
        timer = self.timers[self.join_timers[index]] if index in self.join_timers else -1
        needed = len(precedence.pre) if precedence.quorum is None else precedence.quorum
        self.compiler.joins.append(
            JoinSpec(
                where=f"{self.where}.precedences[{index}]",
                label=f"{self.label}:{names}",
                slot=self.joins[index],
                needed=needed,
                arrivals=len(precedence.pre),
                timer=timer,
                carried=not self.carried.isdisjoint(precedence.pre),
            )
        )
        return len(self.compiler.joins) - 1

    def fork(self, precedence: Precedence, index: int, loop: int) -> str | None:
        """Emit the outgoing side; return the activity that follows directly, if any."""
        compiler, post = self.compiler, precedence.post
        if precedence.fork == "and":
            if index in self.timers:
                compiler.emit(SPLIT, self.timers[index])
            for name in post[1:]:
                self.patches.append((compiler.emit(FORK), name))
            # A branch that is not joined again ends where it ends, in a loop or not.
            self.pending.extend((name, -1) for name in reversed(post[1:]))
            return post[0]
        if precedence.fork == "loop":
            return self.loop(precedence, index)
        odds = precedence.probabilities
        if precedence.fork != "or" or len(post) == 1:
            return post[0]
        if odds is None:
            compiler.missing.append(f"{self.where}.precedences[{index}].probabilities")
            odds = (1 / len(post),) * len(post)
        # A branch that is never taken is not compiled: what it lacks does not matter.
        taken = [(p, n) for p, n in zip(odds, post, strict=True) if p > 0]
        names = tuple(n for _, n in taken)
        if len(taken) > 1:
            compiler.choices.append(Choice((), ()))
            self.choice_patches.append((len(compiler.choices) - 1, tuple(p for p, _ in taken), names))
            compiler.emit(CHOICE, len(compiler.choices) - 1)
            self.pending.extend((n, loop) for n in reversed(names[1:]))
        return names[0]

    def loop(self, precedence: Precedence, index: int) -> str | None:
        """Emit a loop; return the activity behind it."""
        compiler = self.compiler
        known: list[tuple[str, Distribution]] = []
        for number, (body, count) in enumerate(zip(precedence.bodies, precedence.counts, strict=True)):
            if count is None:
                compiler.missing.append(f"{self.where}.precedences[{index}].counts[{number}]")
            elif count.mean > 0:
                known.append((body, count))
        if known and all(isinstance(count, Geometric) for _, count in known):
            # Memoryless: before every round one of the bodies or the end is drawn.
            total = 1 + math.fsum(count.mean for _, count in known)
            skip = compiler.emit(GOTO)  # the bodies come first, the head of the loop behind them
            head = self.bodies([body for body, _ in known])
            compiler.code[skip] = (GOTO, head, 0, 0)
            odds = [count.mean / total for _, count in known]
            addresses = [self.activity_address[body] for body, _ in known]
            compiler.emit_choice([*odds, 1 - math.fsum(odds)], [*addresses, head + 1])
        else:
            for body, count in known:
                register = self.registers
                self.registers += 1
                compiler.emit(COUNT, register, compiler.distribution(count))
                skip = compiler.emit(GOTO)
                head = self.bodies([body])
                compiler.code[skip] = (GOTO, head, 0, 0)
                compiler.emit(LOOP, register, head + 2)
                compiler.emit(GOTO, self.activity_address[body])
        return precedence.continuation

    def bodies(self, names: list[str]) -> int:
        """Emit the bodies of a loop and all that belongs to them; return the address of its head."""
        compiler, first = self.compiler, len(self.compiler.code)
        outer, self.pending = self.pending, []
        ends = _Ends()
        for name in names:
            self.chain(name, ends.placeholder)
        beside: set[int] = set()
        while self.pending:
            name, loop = self.pending.pop()
            start = len(compiler.code)
            self.chain(name, loop)
            if loop < 0:
                beside.update(instruction[0] for instruction in compiler.code[start:])
        self.pending = outer
        if COUNT in beside and END in beside:
            # The counter belongs to the request: the branches of two rounds would share it.
            raise SimulationError(
                f"the loop body that starts with {names[0]!r} starts a branch that counts something and may "
                "still be at work when the next round starts it again",
                where=self.where,
                hint="join the branch within the body, or use geometric counts in it",
            )
        head = len(compiler.code)
        for address in range(first, head):
            operation, a, b, c = compiler.code[address]
            if operation == GOTO and a == ends.placeholder:
                compiler.code[address] = (GOTO, head, b, c)
        return head

    def activity(self, activity: Activity) -> None:
        compiler, where = self.compiler, f"{self.where}.activities[{activity.name!r}]"
        number = UNTIMED
        if compiler.timed and (activity.demand or activity.delay or activity.calls):
            number = len(compiler.activities)
            clock = len(self.timers) + list(self.activities).index(activity.name)
            compiler.activities.append(ActivitySpec(f"{self.label}:{activity.name}"))
            compiler.emit(BEGIN, number, clock)
        think = activity.kind == "think" and self.task.is_reference
        if activity.interleaved and activity.calls:
            compiler.pause(activity.delay, f"{where}.delay", think=think)
            self.interleaved(activity, where, number)
        else:
            compiler.spend(self.task, activity.demand, f"{where}.demand", number)
            compiler.pause(activity.delay, f"{where}.delay", think=think)
            for index, call in enumerate(activity.calls):
                self.repeated_call(activity, call, f"{where}.calls[{index}].count")
        if number != UNTIMED:
            compiler.emit(FINISH, number, clock)
        if activity.replies and not self.task.is_reference:
            compiler.emit(REPLY)

    def call(self, activity: Activity, call: Call) -> None:
        compiler = self.compiler
        site = compiler.site(self.task, f"{self.label}:{activity.name}", (call.task, call.entry))
        target = compiler.sites[site].entry
        if call.kind == "send":
            compiler.emit(SEND, target, site)
        elif call.kind == "releasing":
            compiler.emit(RELEASE)
            compiler.emit(CALL, target, site)
            compiler.emit(REACQUIRE)
        else:
            compiler.emit(CALL, target, site)

    def repeated_call(self, activity: Activity, call: Call, where: str) -> None:
        compiler, count = self.compiler, call.count
        if count is None:
            compiler.missing.append(where)
        elif isinstance(count, Constant) and count.value <= 1:
            if count.value == 1:
                self.call(activity, call)
        elif count.mean > 0:
            register = self.registers
            self.registers += 1
            compiler.emit(COUNT, register, compiler.distribution(count))
            head = compiler.emit(LOOP, register)
            self.call(activity, call)
            end = compiler.emit(GOTO, head) + 1
            compiler.code[head] = (LOOP, register, end, 0)

    def interleaved(self, activity: Activity, where: str, number: int) -> None:
        """Emit slices of demand around the calls."""
        compiler = self.compiler
        calls = []
        for index, call in enumerate(activity.calls):
            if call.count is None:
                compiler.missing.append(f"{where}.calls[{index}].count")
            elif call.count.mean > 0:
                calls.append((call, call.count.mean))
        total = 1 + math.fsum(mean for _, mean in calls)
        demand = None if activity.demand is None else activity.demand.scaled(1 / total)
        if calls and all(isinstance(call.count, Geometric) for call, _ in calls):
            head = len(compiler.code)
            compiler.spend(self.task, demand, f"{where}.demand", number)
            compiler.choices.append(Choice((), ()))
            choice = len(compiler.choices) - 1
            compiler.emit(CHOICE, choice)
            addresses = []
            for call, _ in calls:
                addresses.append(len(compiler.code))
                self.call(activity, call)
                compiler.emit(GOTO, head)
            odds = [mean / total for _, mean in calls]
            compiler.choices[choice] = Choice(
                _cumulative([*odds, 1 - math.fsum(odds)]), (*addresses, len(compiler.code))
            )
            return
        compiler.spend(self.task, demand, f"{where}.demand", number)
        for call, mean in calls:
            register, head = self.registers, -1
            if mean > 1:
                self.registers += 1
                compiler.emit(COUNT, register, compiler.distribution(Constant(mean)))
                head = compiler.emit(LOOP, register)
            self.call(activity, call)
            compiler.spend(self.task, demand, f"{where}.demand", number)
            if head >= 0:
                end = compiler.emit(GOTO, head) + 1
                compiler.code[head] = (LOOP, register, end, 0)

    def drop_final_replies(self, first: int) -> None:
        """A reply that is directly followed by the end needs no flow to carry on: END replies."""
        code = self.compiler.code
        if self.replies_elsewhere or self.entry.waits:
            return
        for address in range(first, len(code)):
            if code[address][0] == REPLY:
                target = address + 1
                while code[target][0] == GOTO:
                    target = code[target][1]
                if code[target][0] == END:
                    code[address] = (GOTO, target, 0, 0)


class _Ends:
    """An address that no code has: stands for the head of a loop until that is known."""

    _next = 1 << 40

    def __init__(self) -> None:
        _Ends._next += 1
        self.placeholder = _Ends._next


def _carried(entry: Entry) -> set[str]:
    """Return the activities that the flow holding the thread can reach."""
    reached = {entry.start}
    grows = True
    while grows:
        grows = False
        for precedence in entry.precedences:
            if reached.isdisjoint(precedence.pre):
                continue
            ends = precedence.post[:1] if precedence.fork == "and" else precedence.post
            if not reached.issuperset(ends):
                reached.update(ends)
                grows = True
    return reached


def _join_timers(entry: Entry, joins: list[int]) -> dict[int, int]:
    """Return per join the last fork that all of its branches come from."""
    before: dict[str, set[int]] = {}
    order: list[int] = []

    def ancestors(name: str) -> set[int]:
        if name not in before:
            before[name] = set()
            for index, precedence in enumerate(entry.precedences):
                if name in precedence.post:
                    found: set[int] = set().union(*(ancestors(p) for p in precedence.pre))
                    if precedence.fork == "and":
                        found = found | {index}
                        if index not in order:
                            order.append(index)
                    before[name] = found
        return before[name]

    result = {}
    for index in joins:
        common = set.intersection(*(ancestors(name) for name in entry.precedences[index].pre))
        if common:
            result[index] = max(common, key=order.index)
    return result


def optimise(program: Program) -> Program:
    """Return a program with the same trajectories and fewer steps.

    - A jump to a jump goes to the final address.
    - A fork of one branch whose forking flow goes straight to the join of the two: a compiled engine
      executes the branch like a subroutine, with the branch's stream (FORK_JOIN, BRANCH_END).
    """
    code = list(program.code)

    def final(address: int) -> int:
        for _ in range(len(code)):
            if code[address][0] != GOTO:
                break
            address = code[address][1]
        return address

    for address, (operation, a, b, c) in enumerate(program.code):
        if operation in (GOTO, FORK):
            code[address] = (operation, final(a), b, c)
        elif operation == LOOP:
            code[address] = (operation, a, final(b), c)
    # Where a quorum suffices, a late carrier may meet another one that has taken its place.
    overtaken = {_entry_of(j) for j in program.joins if j.needed < j.arrivals}
    for address, (operation, a, b, c) in enumerate(code):
        if operation != FORK:
            continue
        following = final(address + 1)
        if code[following][0] == JOIN:
            join = code[following][1]
            spec = program.joins[join]
            if _entry_of(spec) in overtaken:
                continue
            if spec.needed == spec.arrivals == 2 and _is_plain_branch(program, code, a, following):
                code[address] = (FORK_JOIN, a, following, c)
                code[following] = (BRANCH_END, join, b, c)
    choices = tuple(replace(c, addresses=tuple(final(a) for a in c.addresses)) for c in program.choices)
    return replace(program, code=tuple(code), choices=choices)


def _entry_of(join: JoinSpec) -> str:
    """Return the path of the entry a join belongs to."""
    return join.where.rpartition(".precedences")[0]


def _is_plain_branch(program: Program, code: list[Instruction], start: int, join: int) -> bool:
    """Tell whether a branch does all its work itself and always ends at this join."""
    reached, stack, arrives = set(), [start], False
    while stack:
        address = stack.pop()
        if address == join:
            arrives = True
            continue
        if address in reached:
            continue
        reached.add(address)
        operation, a, b, _ = code[address]
        if operation in (FORK, FORK_JOIN, JOIN, BRANCH_END, REPLY, END, RETURN, CYCLE, RELEASE, REACQUIRE):
            return False
        if operation == GOTO:
            stack.append(a)
        elif operation == CHOICE:
            stack.extend(program.choices[a].addresses)
        elif operation == LOOP:
            stack.extend((address + 1, b))
        else:
            stack.append(address + 1)
    return arrives


def _nominal(model: Model, source: Task, first: Entry, servers: Sequence[ServerSpec]) -> Nominal:
    """Add up one cycle of a source of load over everything it calls."""
    tasks = {t.name: t for t in model.tasks}
    speeds = _speeds(model)
    think = source.think.mean if source.think is not None else 0.0
    total = think
    demand = dict.fromkeys((s.name for s in servers), 0.0)
    for (name, entry_name), requests in _requests(model, source, first).items():
        task = tasks[name]
        entry = task.entry(entry_name)
        works: list[tuple[float, Distribution | None, str | None]] = []
        if task.front is not None:
            home = model.front_processor(task)
            works += [(requests, task.front.request, home), (requests, task.front.reply, home)]
        visits = activity_visits(entry)
        for activity in entry.activities:
            times = requests * visits[activity.name]
            if times == 0:
                continue
            works.append((times, activity.demand, task.processor))
            pause = times * activity.delay.mean if activity.delay is not None else 0.0
            total += pause
            if activity.kind == "think" and task.is_reference:
                think += pause
        for times, distribution, place in works:
            if distribution is None:
                continue
            busy = times * distribution.mean / speeds.get(place or "", 1.0)
            total += busy
            processor = place
            while processor in demand:
                # Whatever keeps a part busy keeps the processor it is a part of busy, too.
                demand[processor] += busy * model.processor(processor).speed
                processor = model.processor(processor).parent
    # A request takes any replica, so copies get equal shares.
    return Nominal(think, tuple(demand[s.name] / s.copies for s in servers), total)


MAX_ROUNDS = 1000


_Node = tuple[str, str, bool]
"""Task, entry, and whether somebody waits for the reply: only then a request is forwarded."""


def _requests(model: Model, source: Task, first: Entry) -> dict[tuple[str, str], float]:
    """Return the mean number of requests to every entry that one cycle of a source causes."""
    tasks = {t.name: t for t in model.tasks}
    root: _Node = (source.name, first.name, False)
    order: list[_Node] = []
    targets: dict[_Node, list[tuple[_Node, float]]] = {}
    stack: list[tuple[_Node, bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        if leaving:
            order.append(node)
        elif node not in targets:
            entry = tasks[node[0]].entry(node[1])
            visits = activity_visits(entry)
            targets[node] = [
                (
                    (c.task, c.entry, c.kind != "send"),
                    visits[a.name] * (c.count.mean if c.count is not None else 0.0),
                )
                for a in entry.activities
                for c in a.calls
                if visits[a.name] > 0
            ]
            if node[2]:
                targets[node] += [((f.task, f.entry, True), f.probability) for f in entry.forwards]
            stack.append((node, True))
            stack.extend((target, False) for target, _ in targets[node])
    # Callers come before what they call; only messages that run in circles need more than a few rounds.
    rates = dict.fromkeys(reversed(order), 0.0)
    for _ in range(MAX_ROUNDS):
        incoming = dict.fromkeys(rates, 0.0)
        incoming[root] = 1.0
        for node, rate in rates.items():
            for target, times in targets[node]:
                incoming[target] += rate * times
        settled = all(math.isclose(rates[n], incoming[n], rel_tol=1e-12, abs_tol=1e-15) for n in rates)
        rates = incoming
        if settled:
            break
    result: dict[tuple[str, str], float] = {}
    for (task, name, _), rate in rates.items():
        if rate > 0:
            result[task, name] = result.get((task, name), 0.0) + rate
    return result


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


def _speeds(model: Model) -> dict[str, float]:
    """Return the speed of every processor, that of its parents included."""
    named = {p.name: p for p in model.processors}

    def speed(name: str) -> float:
        processor = named[name]
        return processor.speed * (1.0 if processor.parent is None else speed(processor.parent))

    return {name: speed(name) for name in named}
