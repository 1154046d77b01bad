"""Program of a flow, when every time is a sequence of exponential stages.

Turns the entries that can be reached into flat code, one block per entry; ``simulator.fluid.states``
runs it to find the states of the fluid model. A *flow* moves through the code; it works for a request
(one execution of an entry) and either carries the request's thread or is an auxiliary branch.

A time is replaced by stages (``simulator.fluid.phases``). Counts are followed exactly up to ``MAX_REPEATS``
repetitions; longer ones become geometric with the same mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, Literal, NamedTuple, NoReturn

from mup.errors import UsageError
from mup.lqn.distributions import (
    Constant,
    Distribution,
    Empirical,
    Geometric,
)
from mup.lqn.lowered import (
    Arc,
    FanOut,
    Following,
    Fork,
    Graph,
    Join,
    Loop,
    Lowered,
    Request,
    Slices,
    Source,
    Then,
    check_sources,
    has_front,
    held_by_front,
    measured,
    onward,
    pinned_together,
    requests_of,
    slices_of,
    targets,
)
from mup.lqn.model import LOCK, Activity, Call, Entry, Model, Processor, Task
from mup.lqn.refs import ActivityRef, EntryRef, Names
from simulator.fluid.phases import phases

__all__ = [
    "MAX_REPEATS",
    "Code",
    "Do",
    "EntrySpec",
    "JoinRule",
    "Op",
    "Pool",
    "Population",
    "Stages",
    "compile_code",
]

JoinRule = Literal["siblings", "anonymous"]

MAX_REPEATS: Final = 8
NEGLIGIBLE: Final = 1e-12
"""A stage shorter than this part of the model's longest time takes none: calibration leaves remainders of
1e-28 s, which would make the equations singular in double precision."""


class Do(IntEnum):
    """What an instruction does; STAGE, ADMIT, TAKE and AWAIT may take time, the others never do."""

    STAGE = 0  # spend an exponential time: on processor a, or as a delay if a is -1
    ADMIT = 1  # wait for a thread of pool a (only the flow that carries the thread; -1: there is one)
    YIELD = 2  # give that thread back for the time of a call
    TAKE = 3  # wait for a place in pool a (a core, a front)
    GIVE = 4  # leave it
    AWAIT = 5  # wait for a branch that arrives at anonymous join a
    DEPOSIT = 6  # be such a branch, and end
    CALL = 7  # request entry a and wait for its reply
    SEND = 8  # request entry a and go on
    FORK = 9  # start an auxiliary flow at address a
    JOIN = 10  # arrive at join a, which needs b arrivals
    CHOICE = 11  # continue at one of the targets
    GOTO = 12  # continue at address a
    REPLY = 13  # the reply leaves
    FORWARD = 14  # hand the request on to entry a
    END = 15  # the flow is over; if it carries the thread, it gives it back and replies unless it has
    RETURN = 16  # the reply has arrived at the caller
    ARRIVE = 17  # a request for source a comes from outside


class Op(NamedTuple):
    """An instruction.

    ``rate`` is per second at full speed, ``targets`` are (probability, address), ``holding`` the pools in
    which the flow itself has a place meanwhile. ``activity`` is the one the instruction belongs to, "" if
    none; ``time`` which time a stage is part of: ``demand``, ``delay``, ``think``, ``front.request``,
    ``front.reply`` or ``arrivals``.
    """

    do: Do
    a: int = 0
    b: int = 0
    rate: float = 0.0
    targets: tuple[tuple[float, int], ...] = ()
    holding: tuple[int, ...] = ()
    think: bool = False
    activity: str = ""
    time: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """Something of which there are ``capacity`` places: threads, cores, fronts; 0 for an anonymous join.

    ``joined``: of an anonymous join, the branch that waits there, by the activity it ended with.
    """

    name: str
    capacity: float
    joined: ActivityRef | None = None


@dataclass(frozen=True, slots=True)
class EntrySpec:
    """Where the code of an entry lies, and what holds for its requests.

    Attributes:
        task, label: Index of its task; the name results use.
        start, epilogue: Addresses of the first instruction and of the way of the reply.
        pool: Of the task's threads; -1 if there are enough.
        waits: The thread is held until all branches have ended.
        replies_elsewhere: An auxiliary flow may send the reply.
        client: The entry is the scenario of a reference task.
        anonymous: Its joins take any branch of any request (equation 4.6), not siblings.
    """

    task: int
    label: str
    start: int
    epilogue: int
    pool: int
    waits: bool
    replies_elsewhere: bool
    client: bool
    anonymous: bool


@dataclass(frozen=True, slots=True)
class Population:
    """What makes requests: the clients of a reference task, or arrivals from outside.

    Attributes:
        task, entry: Indices.
        clients: How many; 0 for arrivals.
        source: Address of the code that makes arrivals; -1 for clients.
    """

    task: int
    entry: int
    clients: float
    source: int


class Stages(NamedTuple):
    """Instructions that stand for one time: from ``begin`` to before ``end``.

    ``entered`` are the first stages, by (probability, address).
    """

    begin: int
    end: int
    entered: tuple[tuple[float, int], ...]


@dataclass(slots=True)
class Code:
    """The compiled model; indices in the instructions point into these lists.

    ``times`` are in the order of the instructions: of the same model with other shapes of times, the same.
    """

    model: Model
    ops: list[Op] = field(default_factory=list)
    times: list[Stages] = field(default_factory=list)
    pools: list[Pool] = field(default_factory=list)
    entries: dict[int, EntrySpec] = field(default_factory=dict)
    populations: list[Population] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def compile_code(model: Model, *, stages: int, join: JoinRule) -> Code:
    """Compile everything that load can reach.

    Raises:
        UncalibratedError: A number on the way was never measured; all of them are listed.
        SimulationError: The model has no load, or an element that the fluid cannot express.
    """
    return _Compiler(_with_shared_cores(model), stages, join).run()


def _with_shared_cores(model: Model) -> Model:
    """Return the model with a processor for each core that several parts are pinned to, with them as parts.

    These processors come last, behind those of the model.
    """
    pinned = pinned_together(model)
    if not pinned:
        return model
    place = {p.name: at for at, p in enumerate(model.processors)}
    processors = list(model.processors)
    added = []
    for (parent, core), parts in sorted(pinned.items(), key=lambda item: place[item[0][0]]):
        name = f"{parent}.core{core}"
        while name in place:
            name += "'"
        added.append(Processor(name=name, parent=parent))
        for part in parts:
            processors[place[part.name]] = replace(part, parent=name, core=None)
    return replace(model, processors=(*processors, *added))


def _times(model: Model) -> Iterator[Distribution | None]:
    """Yield every time of a model; None where it was never measured."""
    for task, entry, activity in model.walk():
        yield from (task.think, entry.arrivals, activity.demand, activity.delay)


def _hazards(count: Distribution) -> list[float] | float:
    """Return P(one more | k so far) for k = 0, 1, ... of a count, or its mean if it is to be geometric."""
    if isinstance(count, Constant) and count.value == int(count.value) and count.value <= MAX_REPEATS:
        return [1.0] * int(count.value)
    if isinstance(count, Empirical) and count.values[-1] <= MAX_REPEATS:
        alive = [sum(v > k for v in count.values) for k in range(int(count.values[-1]))]
        return [n / before for n, before in zip(alive, [len(count.values), *alive], strict=False)]
    return float(count.mean)


class _Compiler:
    """Emits the code of everything that is reachable, one entry at a time."""

    def __init__(self, model: Model, stages: int, join: JoinRule) -> None:
        self.model = model
        self.lowered = Lowered(model)
        self.stages = stages
        self.join_rule = join
        self.code = Code(model)
        self.tasks = {t.name: i for i, t in enumerate(model.tasks)}
        self.processors = {p.name: i for i, p in enumerate(model.processors)}
        self.entry_index = {
            (t.name, e.name): i for i, (t, e) in enumerate((t, e) for t in model.tasks for e in t.entries)
        }
        self.names = Names(model.tasks)
        self.code.labels = list(self.names.entries.values())
        self.wanted: list[tuple[Task, Entry]] = []
        self.seen: set[int] = set()
        self.known_pools: dict[tuple[str, str | ActivityRef], int] = {}
        self.holding: tuple[int, ...] = ()
        longest = max((time.mean for time in _times(model) if time is not None), default=0.0)
        self.too_fast = 1 / (NEGLIGIBLE * longest) if longest > 0 else math.inf
        self.joins = 0
        self.activity = ""

    def run(self) -> Code:
        self.check_processors()
        check_sources(self.model)
        self.lowered.check_measured()
        for source in self.lowered.sources:
            if not source.is_open:
                task = source.task
                population = Population(
                    self.tasks[task.name], self.want(task, source.entry), float(task.threads), -1
                )
                self.code.populations.append(population)
        for source in self.lowered.sources:
            if source.is_open:
                self.source(source)
        while self.wanted:
            task, entry = self.wanted.pop()
            self.compile_entry(task, entry)
        return self.code

    def check_processors(self) -> None:
        for processor in self.model.processors:
            where = f"processors[{processor.name!r}].discipline"
            users = [t for t in self.model.tasks if t.processor == processor.name]
            if processor.discipline in ("hol", "pp") and _mixed_priorities(users):
                _refuse(f"requests of different priority on a {processor.discipline!r} processor", where)
            if processor.discipline == "cores" and processor.cores > 1:
                self.code.warnings.append(
                    f"processor {processor.name!r}: threads that stick to a core are treated as sharing all"
                )

    def want(self, task: Task, entry: Entry) -> int:
        index = self.entry_index[task.name, entry.name]
        if index not in self.seen:
            self.seen.add(index)
            self.wanted.append((task, entry))
        return index

    def source(self, source: Source) -> None:
        task, entry = source.task, source.entry
        begin = len(self.code.ops)
        self.emit_phases(-1, measured(entry.arrivals), 1.0, "arrivals")
        self.emit(Op(Do.ARRIVE, len(self.code.populations)))
        self.emit(Op(Do.GOTO, begin))
        population = Population(self.tasks[task.name], self.want(task, entry), 0.0, begin)
        self.code.populations.append(population)

    def pool(self, kind: str, name: str, capacity: float, joined: ActivityRef | None = None) -> int:
        """Return the index of a pool; -1 for one without a limit, which is never waited for."""
        if capacity == math.inf:
            return -1
        index = self.known_pools.setdefault((kind, joined or name), len(self.code.pools))
        if index == len(self.code.pools):
            self.code.pools.append(Pool(f"{kind} {name}", capacity, joined))
        return index

    def threads(self, task: Task) -> int:
        """Return the pool of a task's threads: those of all replicas, for the fluid spreads evenly."""
        return self.pool("threads of", task.name, task.threads * task.replicas)

    def emit(self, op: Op) -> int:
        """Append an instruction; return its address."""
        self.code.ops.append(op._replace(holding=self.holding, activity=self.activity))
        return len(self.code.ops) - 1

    def patch(self, address: int, **changes: object) -> None:
        self.code.ops[address] = self.code.ops[address]._replace(**changes)  # type: ignore[arg-type]

    def compile_entry(self, task: Task, entry: Entry) -> None:
        where = f"tasks[{task.name!r}].entries[{entry.name!r}]"
        if entry.token:
            kind = "lock" if entry.token in LOCK else "semaphore"
            _refuse(f"a {kind} (token {entry.token!r})", f"{where}.token")
        if task.admission == "hol" and _mixed_priorities([task, *self.callers(task)]):
            _refuse("requests of different priority in one queue", f"tasks[{task.name!r}].admission")
        start = len(self.code.ops)
        pool = -1
        if task.is_reference:
            if task.think is not None and not task.is_open:
                self.emit_phases(-1, task.think, 1.0, "think", think=True)
        else:
            pool = self.threads(task)
            self.front(task, "request")
            self.emit(Op(Do.ADMIT, pool))
        body = _Body(self, task, self.lowered.graph(task.name, entry.name), where)
        body.emit()
        epilogue = len(self.code.ops)
        if not task.is_reference and not body.held:
            self.front(task, "reply")
        self.emit(Op(Do.RETURN))
        index = self.entry_index[task.name, entry.name]
        self.code.entries[index] = EntrySpec(
            task=self.tasks[task.name],
            label=self.names.entries[EntryRef(task.name, entry.name)],
            start=start,
            epilogue=epilogue,
            pool=pool,
            waits=entry.waits,
            replies_elsewhere=not task.is_reference and body.graph.replies_elsewhere,
            client=task.is_reference,
            anonymous=self.join_rule == "anonymous",
        )

    def callers(self, task: Task) -> list[Task]:
        """Return the tasks whose requests, or those they hand on, get to a task."""
        return [
            other
            for other in self.model.tasks
            if any(target == task.name for entry in other.entries for target, _ in targets(entry))
        ]

    def front(self, task: Task, phase: str) -> None:
        if not has_front(task):
            return
        time: Distribution | None = getattr(task.front, phase)
        home = replace(task, processor=self.model.front_processor(task))
        with self.place(self.pool("front of", task.name, task.replicas)):
            self.spend(home, measured(time), part=f"front.{phase}")

    @contextmanager
    def place(self, pool: int) -> Iterator[None]:
        """Hold a place in a pool while the code inside runs."""
        if pool < 0:
            yield
            return
        before = self.holding
        self.emit(Op(Do.TAKE, pool))
        self.holding = (*before, pool)
        yield
        self.emit(Op(Do.GIVE, pool))
        self.holding = before

    def spend(self, task: Task, demand: Distribution, share: float = 1.0, *, part: str = "demand") -> None:
        """Emit ``share`` of a demand on the task's processor."""
        if demand.mean <= 0 or share <= 0:
            return
        if task.processor is None:
            self.emit_phases(-1, demand, 1 / share, part)
            return
        processor = self.model.processor(task.processor)
        with self.place(self.core_pool(processor)):
            self.emit_phases(self.processors[processor.name], demand, processor.speed / share, part)

    def core_pool(self, processor: Processor) -> int:
        queueing = processor.discipline in ("fcfs", "hol", "pp")
        return self.pool(
            "cores of", processor.name, processor.cores * processor.available if queueing else math.inf
        )

    def emit_phases(
        self, processor: int, time: Distribution, speed: float, part: str, *, think: bool = False
    ) -> None:
        choices = [
            (p, [rate for rate in rates if rate < self.too_fast]) for p, rates in phases(time, self.stages)
        ]
        begin = len(self.code.ops)
        choice = self.emit(Op(Do.CHOICE)) if len(choices) > 1 else -1
        targets, exits = [], []
        for probability, rates in choices:
            targets.append((probability, len(self.code.ops)))
            for rate in rates:
                self.emit(Op(Do.STAGE, processor, rate=rate * speed, think=think, time=part))
            if choice >= 0:
                exits.append(self.emit(Op(Do.GOTO)))
        if choice >= 0:
            self.patch(choice, targets=tuple(targets))
            for address in exits:
                self.patch(address, a=len(self.code.ops))
        self.code.times.append(Stages(begin, len(self.code.ops), tuple(targets)))

    def repeat(self, count: Distribution, body: Callable[[], None]) -> None:
        """Emit a body that is repeated as often as a count says."""
        hazards = _hazards(count)
        if isinstance(hazards, float):
            if not isinstance(count, Geometric):
                note = "counts above " + str(MAX_REPEATS) + " are treated as geometric with the same mean"
                if note not in self.code.warnings:
                    self.code.warnings.append(note)
            if hazards <= 0:
                return
            head = self.emit(Op(Do.CHOICE))
            body()
            self.emit(Op(Do.GOTO, head))
            again = hazards / (1 + hazards)
            self.patch(head, targets=((again, head + 1), (1 - again, len(self.code.ops))))
            return
        exits = []
        for hazard in hazards:
            if hazard < 1:
                exits.append((self.emit(Op(Do.CHOICE)), hazard))
            body()
        for address, hazard in exits:
            self.patch(address, targets=((hazard, address + 1), (1 - hazard, len(self.code.ops))))


class _Body:
    """Emits the activity graph of one entry."""

    def __init__(self, compiler: _Compiler, task: Task, graph: Graph, where: str) -> None:
        self.compiler = compiler
        self.task = task
        self.graph = graph
        self.where = where
        self.held = held_by_front(task, graph)

    def emit(self) -> None:
        if self.compiler.join_rule == "anonymous" and self.graph.replies_elsewhere:
            _refuse("a reply by an auxiliary branch, with anonymous joins", self.where)
        self.part(self.graph.start)
        if onward(self.graph.entry) and not self.graph.replying:
            self.reply()
        self.compiler.emit(Op(Do.END))

    def part(self, start: str) -> None:
        """Emit what is reachable from an activity; its flow leaves behind the last instruction."""
        _Graph(self).emit(start)

    def reply(self) -> None:
        """Emit the reply, or the hand-over to an entry that will reply."""
        if self.task.is_reference:
            return
        emit = self.compiler.emit
        forwards = onward(self.graph.entry)
        if not forwards:
            emit(Op(Do.REPLY))
            return
        choices: list[tuple[float, int]] = []
        rest = 1.0
        choice = emit(Op(Do.CHOICE))
        exits = []
        for forward in forwards:
            entry = self.compiler.want(*self.compiler.lowered.target(forward.task, forward.entry))
            choices.append((forward.probability, emit(Op(Do.FORWARD, entry))))
            exits.append(emit(Op(Do.GOTO)))
            rest -= forward.probability
        if rest > 1e-12:
            choices.append((rest, emit(Op(Do.REPLY))))
        total = sum(p for p, _ in choices)
        self.compiler.patch(choice, targets=tuple((p / total, a) for p, a in choices))
        for address in exits:
            self.compiler.patch(address, a=len(self.compiler.code.ops))

    def activity(self, activity: Activity) -> None:
        compiler = self.compiler
        compiler.activity = activity.name
        requests = requests_of(activity)
        slices = slices_of(activity, requests)
        if slices is not None:
            self.delay(activity)
            self.interleaved(activity, requests, slices)
        else:
            compiler.spend(self.task, measured(activity.demand))
            self.delay(activity)
            for request in requests:
                compiler.repeat(request.count, lambda call=request.call: self.call(call))  # type: ignore[misc]
        compiler.activity = ""
        if activity.name in self.held:
            compiler.front(self.task, "reply")
        if activity.replies:
            self.reply()

    def delay(self, activity: Activity) -> None:
        delay = measured(activity.delay)
        if delay.mean > 0:
            think = activity.kind == "think" and self.task.is_reference
            self.compiler.emit_phases(-1, delay, 1.0, "delay", think=think)

    def interleaved(self, activity: Activity, requests: Sequence[Request], slices: Slices) -> None:
        compiler, demand = self.compiler, measured(activity.demand)
        slice_ = 1 / slices.number
        if not slices.drawn and slices.number <= 1 + MAX_REPEATS:
            compiler.spend(self.task, demand, slice_)
            for request in requests:
                for _ in range(int(request.count.mean)):
                    self.call(request.call)
                    compiler.spend(self.task, demand, slice_)
            return
        again = len(compiler.code.ops)
        compiler.spend(self.task, demand, slice_)
        choice = compiler.emit(Op(Do.CHOICE))
        choices = []
        for request in requests:
            choices.append((request.count.mean * slice_, len(compiler.code.ops)))
            self.call(request.call)
            compiler.emit(Op(Do.GOTO, again))
        choices.append((slice_, len(compiler.code.ops)))
        compiler.patch(choice, targets=tuple(choices))

    def call(self, call: Call) -> None:
        compiler = self.compiler
        entry = compiler.want(*compiler.lowered.target(call.task, call.entry))
        if call.kind == "send":
            compiler.emit(Op(Do.SEND, entry))
        elif call.kind == "releasing" and not self.task.is_reference:
            compiler.emit(Op(Do.YIELD))
            compiler.emit(Op(Do.CALL, entry))
            compiler.emit(Op(Do.ADMIT, compiler.threads(self.task)))
        else:
            compiler.emit(Op(Do.CALL, entry))


class _Graph:
    """Emits one copy of a connected part of an activity graph: a body, or one pass of a loop."""

    def __init__(self, body: _Body) -> None:
        self.body = body
        self.compiler = body.compiler
        self.activity_address: dict[str, int] = {}
        self.arc_address: dict[int, int] = {}
        self.fork_patches: list[tuple[int, str]] = []
        self.choice_patches: list[tuple[int, tuple[tuple[float, str], ...]]] = []
        self.exits: list[int] = []
        self.pending: list[tuple[str, bool]] = []

    def emit(self, start: str) -> None:
        compiler = self.compiler
        self.pending.append((start, True))
        while self.pending:
            name, at_exit = self.pending.pop()
            self.chain(name, at_exit=at_exit)
        for address, name in self.fork_patches:
            compiler.patch(address, a=self.activity_address[name])
        for address, choices in self.choice_patches:
            compiler.patch(address, targets=tuple((p, self.activity_address[n]) for p, n in choices))
        for address in self.exits:
            compiler.patch(address, a=len(compiler.code.ops))

    def chain(self, name: str, *, at_exit: bool) -> None:
        """Emit an activity and what follows it; ``at_exit`` if its last flow leaves the graph by the exit."""
        compiler, body = self.compiler, self.body
        while True:
            self.activity_address[name] = len(compiler.code.ops)
            body.activity(body.graph.activities[name])
            arc = body.graph.after.get(name)
            if arc is None:
                self.end(at_exit=at_exit)
                return
            if arc.join is not None:
                if not self.join(arc, arc.join, name):
                    return
            elif arc.number in self.arc_address:
                compiler.emit(Op(Do.GOTO, self.arc_address[arc.number]))
                return
            else:
                self.arc_address[arc.number] = len(compiler.code.ops)
            following = self.then(arc.then, at_exit=at_exit)
            if following is None:
                self.end(at_exit=at_exit)
                return
            name = following

    def end(self, *, at_exit: bool) -> None:
        if at_exit:
            self.exits.append(self.compiler.emit(Op(Do.GOTO)))
        else:
            self.compiler.emit(Op(Do.END))

    def join(self, arc: Arc, join: Join, name: str) -> bool:
        """Emit the arrival at a join; tell whether what follows it is to be emitted here."""
        compiler, branches = self.compiler, join.branches
        if join.quorum:
            _refuse(f"a quorum of {join.needed} of {len(branches)}", f"{self.body.where}.{arc.path}.quorum")
        if compiler.join_rule == "anonymous":
            leader = next((n for n in branches if n in self.body.graph.carried), branches[0])
            if name != leader:
                compiler.emit(Op(Do.DEPOSIT, self.joined(name)))
                return False
            for other in branches:
                if other != leader:
                    compiler.emit(Op(Do.AWAIT, self.joined(other)))
            return True
        if arc.number in self.arc_address:
            compiler.emit(Op(Do.GOTO, self.arc_address[arc.number]))
            return False
        self.arc_address[arc.number] = len(compiler.code.ops)
        compiler.emit(Op(Do.JOIN, compiler.joins, join.needed))
        compiler.joins += 1
        return True

    def joined(self, branch: str) -> int:
        """Return the pool of the branches that wait for the others of their fork."""
        owner = EntryRef(self.body.task.name, self.body.graph.entry.name)
        name = f"{self.compiler.names.entries[owner]}:({branch} joined)"
        return self.compiler.pool("join", name, 0.0, ActivityRef(*owner, branch))

    def then(self, then: Following, *, at_exit: bool) -> str | None:
        """Emit what follows an arc; return the activity that follows directly, if any."""
        compiler = self.compiler
        if isinstance(then, Then):
            return then.activity
        if isinstance(then, Fork):
            for name in then.others:
                self.fork_patches.append((compiler.emit(Op(Do.FORK)), name))
            self.pending.extend((name, False) for name in reversed(then.others))
            return then.first
        if isinstance(then, Loop):
            self.loop(then)
            return then.continuation
        if isinstance(then, FanOut):
            _refuse("a fan-out of random width", self.body.where)
        choices = tuple((chance, name) for name, chance in then.successors)
        if len(choices) > 1:
            self.choice_patches.append((compiler.emit(Op(Do.CHOICE)), choices))
            self.pending.extend((name, at_exit) for _, name in reversed(choices[1:]))
        return choices[0][1]

    def loop(self, loop: Loop) -> None:
        compiler, body = self.compiler, self.body
        if loop.mixed and len(loop.bodies) > 1:
            total = sum(repeated.count.mean for repeated in loop.bodies)
            head = compiler.emit(Op(Do.CHOICE))
            choices = []
            for repeated in loop.bodies:
                choices.append((repeated.count.mean / (1 + total), len(compiler.code.ops)))
                body.part(repeated.start)
                compiler.emit(Op(Do.GOTO, head))
            choices.append((1 / (1 + total), len(compiler.code.ops)))
            compiler.patch(head, targets=tuple(choices))
            return
        for repeated in loop.bodies:
            compiler.repeat(repeated.count, lambda first=repeated.start: body.part(first))  # type: ignore[misc]


def _mixed_priorities(tasks: Sequence[Task]) -> bool:
    levels = {t.priority + e.priority for t in tasks for e in t.entries}
    return len(levels) > 1


def _refuse(what: str, where: str) -> NoReturn:
    raise UsageError(
        f"the fluid model has no meaning for {what}",
        where=where,
        hint="simulate the model instead ('mup simulate')",
    )
