"""What exactly does an engine execute?

``compile_model`` turns a model into a flat program: one array of instructions with integer operands,
and tables (distributions, choices, tasks, entries, processors) the operands point into. Engines know
nothing of activities and precedences; whatever two engines could understand differently is decided here.

A *flow* is a program counter that moves through the code with a stream of random numbers. It works for
a *request* (one execution of an entry) and either *carries* the request's thread or is an auxiliary
branch. Instructions (``a``, ``b`` are the operands):

    USE a b       spend a time drawn from distribution b on processor a (a drawn time of 0 never visits it)
    DELAY b       let a time drawn from distribution b pass
    THINK b       the same; it counts as think time if the flow carries a client's cycle
    CALL a        send a request to entry a: pick a replica, continue at the entry's first instruction
    FRONT_TAKE, FRONT_GIVE   wait for, and free, the front of the request's replica (one at a time, FIFO)
    ADMIT         wait for a thread of the request's replica (first come first served)
    FORK a        start an auxiliary flow at address a
    JOIN a b      arrive at join a, which needs b arrivals of this request; see docs/explanation/simulation.md
    CHOICE a      continue at one of the addresses of choice a
    GOTO a        continue at address a
    REPLY         the flow leaves the request behind with the reply; a new flow carries on the work after it
    END           the flow is over: free the thread if it carries one, and reply if nobody has
    RETURN        hand the reply to the flow that called
    CYCLE         a client's cycle is complete; begin the next one
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from mup.errors import SimulationError, UncalibratedError
from mup.lqn.distributions import Distribution
from mup.lqn.model import Activity, Entry, Model, Precedence, Task, entry_label
from mup.lqn.visits import activity_visits

__all__ = [
    "Choice",
    "EntryCode",
    "Instruction",
    "Nominal",
    "Population",
    "Program",
    "ServerSpec",
    "TaskSpec",
    "compile_model",
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

Instruction = tuple[int, int, int]
"""Operation, a, b."""

MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """Where an OR continues: the first address whose cumulative probability exceeds a uniform draw."""

    cumulative: tuple[float, ...]
    addresses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as engines see it; ``threads`` per replica may be infinite."""

    name: str
    threads: float
    replicas: int


@dataclass(frozen=True, slots=True)
class EntryCode:
    """Where the code of an entry lies.

    Attributes:
        task, label: Index of its task; the name results use.
        start: Address of its first instruction; -1 if no client can ever reach it.
        epilogue: Address of what happens to the reply once it has left the flow.
        replies_elsewhere: An auxiliary flow may send the reply.
    """

    task: int
    label: str
    start: int
    epilogue: int
    replies_elsewhere: bool


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A processor with finitely many cores, ``shared`` (PS) or FCFS; the infinite ones are just delays."""

    name: str
    cores: int
    speed: float
    shared: bool


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
    """The clients of one reference task; ``start`` begins a cycle with its think time."""

    task: int
    clients: int
    start: int
    nominal: Nominal


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled model. Indices in the code point into these tables."""

    name: str
    code: tuple[Instruction, ...]
    distributions: tuple[Distribution, ...]
    choices: tuple[Choice, ...]
    joins: tuple[str, ...]
    tasks: tuple[TaskSpec, ...]
    entries: tuple[EntryCode, ...]
    servers: tuple[ServerSpec, ...]
    infinite_servers: tuple[str, ...]
    populations: tuple[Population, ...]


def compile_model(model: Model) -> Program:
    """Compile a model.

    Raises:
        UncalibratedError: A number a client can reach was never measured; all of them are listed.
        SimulationError: The model has no reference task, or a cycle that takes no time.
    """
    if not model.reference_tasks:
        raise SimulationError(
            "the model has no reference task: nothing would ever happen",
            where=model.name,
            hint="add a task of role 'reference' with the clients that send requests",
        )
    return _Compiler(model).program()


class _Compiler:
    """Emits the code of everything that the reference tasks reach, one entry at a time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.code: list[Instruction] = []
        self.distributions: list[Distribution] = []
        self.known_distributions: dict[Distribution, int] = {}
        self.choices: list[Choice] = []
        self.joins: list[str] = []
        self.missing: list[str] = []
        finite = [p for p in model.processors if p.discipline != "infinite" and p.cores < math.inf]
        self.servers = [ServerSpec(p.name, int(p.cores), p.speed, p.discipline == "ps") for p in finite]
        self.server_index = {s.name: i for i, s in enumerate(self.servers)}
        self.tasks = {t.name: i for i, t in enumerate(model.tasks)}
        self.entries = {
            (t.name, e.name): i for i, (t, e) in enumerate((t, e) for t in model.tasks for e in t.entries)
        }
        self.compiled: dict[int, EntryCode] = {}
        self.wanted: list[tuple[Task, Entry]] = []
        self.starts: dict[str, int] = {}

    def program(self) -> Program:
        model = self.model
        for task in model.reference_tasks:
            self.want(task, task.entries[0])
        while self.wanted:
            task, entry = self.wanted.pop()
            self.compile_entry(task, entry)
        if self.missing:
            self.refuse()
        populations = []
        for task in model.reference_tasks:
            nominal = _nominal(model, task, self.server_index)
            if nominal.total <= 0:
                raise SimulationError(
                    "a cycle takes no time at all, so it would repeat for ever at time 0",
                    where=f"tasks[{task.name!r}]",
                    hint="give it a think time, or some demand or delay on the way",
                )
            populations.append(
                Population(self.tasks[task.name], int(task.threads), self.starts[task.name], nominal)
            )
        return Program(
            name=model.name,
            code=tuple(self.code),
            distributions=tuple(self.distributions),
            choices=tuple(self.choices),
            joins=tuple(self.joins),
            tasks=tuple(TaskSpec(t.name, t.threads, t.replicas) for t in model.tasks),
            entries=tuple(
                self.compiled.get(i, EntryCode(self.tasks[t], entry_label(t, e), -1, -1, False))
                for (t, e), i in self.entries.items()
            ),
            servers=tuple(self.servers),
            infinite_servers=tuple(p.name for p in model.processors if p.name not in self.server_index),
            populations=tuple(populations),
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
            blank = EntryCode(self.tasks[task.name], entry_label(task.name, entry.name), 0, 0, False)
            self.compiled[index] = blank
            self.wanted.append((task, entry))
        return index

    def emit(self, operation: int, a: int = 0, b: int = 0) -> int:
        """Append an instruction; return its address."""
        self.code.append((operation, a, b))
        return len(self.code) - 1

    def distribution(self, distribution: Distribution) -> int:
        index = self.known_distributions.setdefault(distribution, len(self.distributions))
        if index == len(self.distributions):
            self.distributions.append(distribution)
        return index

    def compile_entry(self, task: Task, entry: Entry) -> None:
        index = self.entries[task.name, entry.name]
        where = f"tasks[{task.name!r}].entries[{entry.name!r}]"
        start = len(self.code)
        if task.is_reference:
            if task.think is not None and task.think.mean > 0:
                self.emit(THINK, b=self.distribution(task.think))
            self.starts[task.name] = start
        else:
            if self.has_front(task):
                self.front(task, "request")
            self.emit(ADMIT)
        _Body(self, task, entry, where).emit()
        epilogue = len(self.code)
        if task.is_reference:
            self.emit(CYCLE)
        else:
            if self.has_front(task):
                self.front(task, "reply")
            self.emit(RETURN)
        elsewhere = not task.is_reference and _replies_elsewhere(entry)
        self.compiled[index] = replace(
            self.compiled[index], start=start, epilogue=epilogue, replies_elsewhere=elsewhere
        )

    def has_front(self, task: Task) -> bool:
        """Tell whether the front does anything: one that takes no time is never in the way."""
        front = task.front
        return front is not None and any(t is None or t.mean > 0 for t in (front.request, front.reply))

    def front(self, task: Task, phase: str) -> None:
        time: Distribution | None = getattr(task.front, phase)
        self.emit(FRONT_TAKE)
        self.spend(task, time, f"tasks[{task.name!r}].front.{phase}")
        self.emit(FRONT_GIVE)

    def spend(self, task: Task, demand: Distribution | None, where: str) -> None:
        """Emit processor time; where there is a core for every thread, it is a delay."""
        if demand is None:
            if where not in self.missing:
                self.missing.append(where)
        elif demand.mean > 0:
            if task.processor in self.server_index:
                self.emit(USE, self.server_index[task.processor], self.distribution(demand))
            else:
                speed = 1.0 if task.processor is None else self.model.processor(task.processor).speed
                self.emit(DELAY, b=self.distribution(demand if speed == 1.0 else demand.scaled(1 / speed)))

    def pause(self, delay: Distribution | None, where: str, *, think: bool) -> None:
        if delay is None:
            self.missing.append(where)
        elif delay.mean > 0:
            self.emit(THINK if think else DELAY, b=self.distribution(delay))


class _Body:
    """Emits the activity graph of one entry; labels are patched once their addresses are known."""

    def __init__(self, compiler: _Compiler, task: Task, entry: Entry, where: str) -> None:
        self.compiler = compiler
        self.task = task
        self.entry = entry
        self.where = where
        self.activities = {a.name: a for a in entry.activities}
        self.successor = {name: i for i, p in enumerate(entry.precedences) for name in p.pre}
        self.activity_address: dict[str, int] = {}
        self.precedence_address: dict[int, int] = {}
        self.patches: list[tuple[int, str]] = []
        self.choice_patches: list[tuple[int, tuple[float, ...], tuple[str, ...]]] = []
        self.pending: list[str] = []

    def emit(self) -> None:
        first = len(self.compiler.code)
        self.pending.append(self.entry.start)
        while self.pending:
            self.chain(self.pending.pop())
        code = self.compiler.code
        for address, name in self.patches:
            code[address] = (code[address][0], self.activity_address[name], code[address][2])
        for index, odds, names in self.choice_patches:
            cumulative, total = [], 0.0
            for chance in odds:
                total += chance
                cumulative.append(total)
            cumulative[-1] = 1.0  # rounding must not leave a draw without a branch
            addresses = tuple(self.activity_address[n] for n in names)
            self.compiler.choices[index] = Choice(tuple(cumulative), addresses)
        self.drop_final_replies(first)

    def chain(self, name: str) -> None:
        """Emit an activity and what follows it, until code that exists already or the end."""
        compiler = self.compiler
        while True:
            self.activity_address[name] = len(compiler.code)
            self.activity(self.activities[name])
            index = self.successor.get(name)
            if index is None:
                compiler.emit(END)
                return
            if index in self.precedence_address:
                compiler.emit(GOTO, self.precedence_address[index])
                return
            self.precedence_address[index] = len(compiler.code)
            precedence = self.entry.precedences[index]
            if precedence.join == "and" and len(precedence.pre) > 1:
                compiler.joins.append(f"{self.where}.precedences[{index}]")
                compiler.emit(JOIN, len(compiler.joins) - 1, len(precedence.pre))
            # Every activity has one way in (a rule of the model), so its code comes right here.
            name = self.fork(precedence, index)

    def fork(self, precedence: Precedence, index: int) -> str:
        """Emit the outgoing side; return the activity that follows directly."""
        compiler, post = self.compiler, precedence.post
        if precedence.fork == "and":
            for name in post[1:]:
                self.patches.append((compiler.emit(FORK), name))
            self.pending.extend(reversed(post[1:]))
            return post[0]
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
            self.pending.extend(reversed(names[1:]))
        return names[0]

    def activity(self, activity: Activity) -> None:
        compiler, where = self.compiler, f"{self.where}.activities[{activity.name!r}]"
        compiler.spend(self.task, activity.demand, f"{where}.demand")
        think = activity.kind == "think" and self.task.is_reference
        compiler.pause(activity.delay, f"{where}.delay", think=think)
        for call in activity.calls:
            target = compiler.model.task(call.task)
            compiler.emit(CALL, compiler.want(target, target.entry(call.entry)))
        if activity.replies and not self.task.is_reference:
            compiler.emit(REPLY)

    def drop_final_replies(self, first: int) -> None:
        """A reply that is directly followed by the end needs no flow to carry on: END replies."""
        code = self.compiler.code
        if _replies_elsewhere(self.entry):
            return
        for address in range(first, len(code)):
            if code[address][0] == REPLY:
                target = address + 1
                while code[target][0] == GOTO:
                    target = code[target][1]
                if code[target][0] == END:
                    code[address] = (GOTO, target, 0)


def _replies_elsewhere(entry: Entry) -> bool:
    """Tell whether an activity off the flow that holds the thread may send the reply."""
    replying = {a.name for a in entry.activities if a.replies}
    return not replying.issubset(_carried(entry))


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


def _nominal(model: Model, client: Task, servers: dict[str, int]) -> Nominal:
    """Add up one cycle of a reference task over everything it calls."""
    think = client.think.mean if client.think is not None else 0.0
    total = think
    demand = [0.0] * len(servers)
    flow: dict[tuple[str, str], float] = {(client.name, client.entries[0].name): 1.0}
    for task, entry in _callers_first(model, client):
        visits = flow.get((task.name, entry.name), 0.0)
        if visits == 0:
            continue
        front = task.front
        works: list[tuple[float, Distribution | None]] = []
        if front is not None:
            works += [(visits, front.request), (visits, front.reply)]
        per_request = activity_visits(entry)
        for activity in entry.activities:
            times = visits * per_request[activity.name]
            if times == 0:
                continue
            works.append((times, activity.demand))
            pause = times * activity.delay.mean if activity.delay is not None else 0.0
            total += pause
            if activity.kind == "think" and task.is_reference:
                think += pause
            for call in activity.calls:
                flow[call.task, call.entry] = flow.get((call.task, call.entry), 0.0) + times
        speed = 1.0 if task.processor is None else model.processor(task.processor).speed
        for times, distribution in works:
            if distribution is not None:
                total += times * distribution.mean / speed
                if task.processor in servers:
                    demand[servers[task.processor]] += times * distribution.mean
    return Nominal(think, tuple(demand), total)


def _callers_first(model: Model, client: Task) -> Iterable[tuple[Task, Entry]]:
    """Return the entries a client reaches, every caller before what it calls (calls have no cycle)."""
    order: list[tuple[Task, Entry]] = []
    done: set[tuple[str, str]] = set()
    root = (client.name, client.entries[0].name)
    stack: list[tuple[tuple[str, str], bool]] = [(root, False)]
    while stack:
        node, leaving = stack.pop()
        task = model.task(node[0])
        entry = task.entry(node[1])
        if leaving:
            order.append((task, entry))
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack.extend(((c.task, c.entry), False) for a in entry.activities for c in a.calls)
    return reversed(order)
