"""Translate an application into a layered queueing network without times.

Follows Garbi's thesis, section 5.2.1: a task per service, an entry per endpoint, ``Net`` with an exchange
per call, a task per database with an entry per query, AND fork and join around every remote operation, an
OR choice between the paths of an entry. Differences: the respond operation is not an activity of its own
(the reply belongs to the last activity before it); the work between it and the return of the method is an
activity ``after_LINE``, because the worker is held until then; a loop without a visible bound is a loop of
the model, whose body is the choice between the paths of one iteration; a fan-out is one of the model,
likewise, and what of its calls nothing waits for a loop beside the flow; a race is an AND fork whose
branches meet in a join that needs one of them; a choice inside a path is an OR fork whose branches merge
again; and a semaphore or lock that requests share is a task of its own, which activities ``acquire_LINE``
and ``release_LINE`` around the operations call.

All times, counts and probabilities are None, except think times, which the source states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from analyzer.static.application import LEFT, Application, Held, Operation, Path
from analyzer.static.diagnostics import render, summary
from analyzer.static.holding import Holding, common, held_at, held_in_bodies
from mup.errors import AnalysisError
from mup.events.sites import Site
from mup.lqn.distributions import Constant
from mup.lqn.model import (
    Activity,
    ActivityKind,
    Call,
    Entry,
    Model,
    Precedence,
    Role,
    Task,
    Token,
    entry_label,
)
from mup.lqn.refs import EntryRef

__all__ = [
    "CLIENT_ENTRY",
    "NETWORK",
    "ChoicePlan",
    "LoopPlan",
    "PathPlan",
    "Place",
    "translate",
    "translate_with_plan",
    "translated_entries",
]

NETWORK = "Net"
INFINITE = float("inf")
CLIENT_ENTRY = "scenario"
ZERO = Constant(0.0)

Place = tuple[int, ...]
"""Where in a path: ``()`` is the path itself, ``(i, b)`` body ``b`` of the loop or choice that is operation
``i``, ``(i, b, j, c)`` body ``c`` of the loop or choice that is operation ``j`` of that body, and so on. A
task has one body, a race one for each of its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPlan:
    """How a loop or fan-out became part of the model.

    Attributes:
        pre: The activity before it; the precedence with ``fork="loop"`` (or ``"fan-out"``) starts there.
        choice: The activity that chooses between the bodies, "" if there is only one.
        bodies: The plan of each path of one iteration or copy; their operations refer to each other only.
    """

    pre: str
    choice: str
    bodies: tuple[PathPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePlan:
    """How a choice became part of the model.

    Attributes:
        choice: The activity before it; the precedence with ``fork="or"`` starts there.
        bodies: The plan of each body; their operations refer to each other only. An empty one is an
            activity of local work.
    """

    choice: str
    bodies: tuple[PathPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPlan:
    """How one path, or one body of a loop or choice, became activities: what calibration needs to fill them.

    Attributes:
        task: Name of the task.
        entry: Name of the entry.
        path: The path.
        segments: Activities of the main flow: before the first operation, between operations, after the last.
        registry: Per index of a call or query, the activity of the registry lookup.
        communication: Per index of a call or query, the activity that waits for the other side.
        exchange: Per index of a call, the entry of ``Net``.
        think: Per index of a think step, its activity.
        loops: Per index of a loop or fan-out, what became of it.
        choices: Per index of a choice, what became of it.
        tasks: Per index of a concurrent task, the plan of what it does.
        races: Per index of a race, the plan of what each of its tasks does.
    """

    task: str
    entry: str
    path: Path
    segments: tuple[str, ...]
    registry: Mapping[int, str]
    communication: Mapping[int, str]
    exchange: Mapping[int, str]
    think: Mapping[int, str]
    loops: Mapping[int, LoopPlan] = field(default_factory=dict)
    choices: Mapping[int, ChoicePlan] = field(default_factory=dict)
    tasks: Mapping[int, PathPlan] = field(default_factory=dict)
    races: Mapping[int, tuple[PathPlan, ...]] = field(default_factory=dict)

    def parts(self) -> Iterator[tuple[Place, PathPlan]]:
        """Yield this plan and those of all bodies inside it, outer ones first, each with its place."""
        yield (), self
        for index, bodies in self.bodies.items():
            for number, body in enumerate(bodies):
                for place, part in body.parts():
                    yield (index, number, *place), part

    @property
    def bodies(self) -> Mapping[int, tuple[PathPlan, ...]]:
        """Return the plans of all that is inside of what has bodies, per index."""
        tasks = {index: (task,) for index, task in self.tasks.items()}
        return {**{index: one.bodies for index, one in self.inside.items()}, **tasks, **self.races}

    @property
    def inside(self) -> Mapping[int, LoopPlan | ChoicePlan]:
        """Return what has bodies, per index."""
        return {**self.loops, **self.choices}

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Return the operations of the path."""
        return self.path.operations

    def describe(self) -> str:
        """Return the path as one line: its operations and where they are."""
        parts = [self._described(index) for index in range(len(self.operations))]
        if self.path.ends == "raise":
            parts.append(f"raise ({self.path.end_line})")
        return ", ".join(parts) or "no operation"

    def _described(self, index: int) -> str:
        operation = self.operations[index]
        place = f"({operation.site.line})"
        bodies = self.bodies.get(index)
        if bodies is None:
            return f"{operation.op} {operation.target}".strip() + f" {place}"
        return f"{operation.op} {place} [{' | '.join(body.describe() for body in bodies)}]"

    def to_json(self) -> dict[str, Any]:
        """Return the record kept in ``Entry.paths``.

        The operations of the bodies of a loop or choice follow it in the same list, so that every operation
        has one index; ``inside`` is the index of the loop or choice and the number of the body.
        """
        record: dict[str, Any] = {
            "operations": [],
            "ends": self.path.ends,
            "first": self.segments[0],
            "segments": list(self.segments),
            "registry": {},
            "communication": {},
            "exchange": {},
            "think": {},
        }
        _record(self, record, [])
        return record


def _record(
    plan: PathPlan, record: dict[str, Any], inside: list[int], around: tuple[list[int], ...] = ()
) -> None:
    """Append a plan's operations, and what they became, to the record of its path."""
    listing = record["operations"]
    places: list[int] = []

    def listed(of: int) -> int:
        known: list[int] = places
        for outer in reversed(around):
            if of >= 0:
                break
            # The last one so far is the task itself; -1 is the one before it.
            known, of = outer, len(outer) - 1 + of
        return known[of]

    for index, o in enumerate(plan.operations):
        place = len(listing)
        places.append(place)
        operation = {
            "op": o.op,
            "target": o.target,
            "file": o.site.file,
            "function": o.site.function,
            "ordinal": o.site.ordinal,
            "line": o.site.line,
            "of": None if o.of is None else listed(o.of),
        }
        if inside:
            operation["inside"] = inside
        listing.append(operation)
        for kind in ("registry", "communication", "exchange", "think"):
            names: Mapping[int, str] = getattr(plan, kind)
            if index in names:
                record[kind][str(place)] = names[index]
        repeated = "fan_outs" if o.op == "fan-out" else "loops"
        for field_name, found in ((repeated, plan.loops.get(index)), ("choices", plan.choices.get(index))):
            if found is not None:
                record.setdefault(field_name, {})[str(place)] = [list(b.segments) for b in found.bodies]
                for number, body in enumerate(found.bodies):
                    _record(body, record, [place, number])
        if index in plan.tasks:
            record.setdefault("tasks", {})[str(place)] = list(plan.tasks[index].segments)
            _record(plan.tasks[index], record, [place, 0], (*around, places))
        if index in plan.races:
            record.setdefault("races", {})[str(place)] = [list(t.segments) for t in plan.races[index]]
            for number, task in enumerate(plan.races[index]):
                _record(task, record, [place, number])


def translate(application: Application, *, name: str, client: str | None = None) -> Model:
    """Return the uncalibrated model; see `translate_with_plan`."""
    return translate_with_plan(application, name=name, client=client)[0]


def translate_with_plan(
    application: Application, *, name: str, client: str | None = None
) -> tuple[Model, dict[tuple[str, str], list[PathPlan]]]:
    """Translate an application to a model, and tell which activity stands for what.

    Args:
        application: Result of static analysis; without errors.
        name: Name of the model.
        client: Client class that becomes the reference task; None = none, such a model cannot be simulated.

    Returns:
        The model, and per (task, entry) the plans of its paths.

    Raises:
        AnalysisError: The application has errors, or two different things would become tasks of one name.
    """
    if application.errors:
        listing = "\n".join(render(e, application.root) for e in application.errors)
        raise AnalysisError(
            f"{summary(application.errors)} in the source\n{listing}",
            where=str(application.root),
            hint="a model of only a part of the code would be wrong; 'mup paths' lists all findings",
        )
    translation = _Translation()
    tasks: list[Task] = []
    if client is not None:
        chosen = application.client(client)
        start = chosen.scenario_line
        entry = translation.entry(chosen.name, CLIENT_ENTRY, start, chosen.paths, chosen.fingerprint)
        tasks.append(Task(name=chosen.name, role="reference", threads=1, entries=(entry,)))
    for service in application.services:
        entries = tuple(
            translation.entry(service.name, e.path, e.line, e.paths, e.fingerprint) for e in service.endpoints
        )
        if entries:
            tasks.append(
                Task(
                    name=service.name,
                    role="service",
                    threads=service.pool_size,
                    replicas=service.replicas,
                    admission=service.admission,
                    entries=entries,
                )
            )
    tasks += translation.passive_tasks()
    tasks += translation.semaphores({service.name: service.replicas for service in application.services})
    clashes = [n for n, count in Counter(t.name for t in tasks).items() if count > 1]
    if clashes:
        raise AnalysisError(
            f"{clashes[0]!r} names two of: a service, a client, a database, a semaphore, the network",
            where=str(application.root),
            hint="rename one of them",
        )
    whole = [e.label for e in application.endpoints() if e.whole]
    provenance = {"whole": whole} if whole else {}
    return Model(name=name, tasks=tuple(tasks), provenance=provenance), translation.plans


def translated_entries(application: Application) -> dict[EntryRef, Entry]:
    """Return every endpoint and every scenario as an entry, without the model around it.

    Args:
        application: Result of static analysis; without errors.
    """
    translation = _Translation()
    clients, endpoints = application.clients, application.endpoints()
    rows = [(c.name, CLIENT_ENTRY, c.scenario_line, c.paths, c.fingerprint) for c in clients]
    rows += [(e.service, e.path, e.line, e.paths, e.fingerprint) for e in endpoints]
    return {EntryRef(row[0], row[1]): translation.entry(*row) for row in rows}


@dataclass
class _Translation:
    """Collects what all entries share: exchanges, queries, semaphores and plans."""

    exchanges: list[str] = field(default_factory=list)
    queries: dict[str, dict[str, None]] = field(default_factory=dict)
    plans: dict[tuple[str, str], list[PathPlan]] = field(default_factory=dict)
    held: dict[tuple[str, Site, int], str] = field(default_factory=dict)

    def entry(self, task: str, name: str, line: int, paths: Iterable[Path], fingerprint: str) -> Entry:
        paths = tuple(paths)
        names = _Unique()
        activities: list[Activity] = []
        precedences: list[Precedence] = []
        plans: list[PathPlan] = []
        several = len(paths) > 1
        if several:
            start = names.take("start")
            activities.append(Activity(name=start, kind="choice", demand=ZERO, delay=ZERO, line=line))
        for number, path in enumerate(paths, 1):
            builder = _PathBuilder(
                shared=self,
                names=names,
                task=task,
                entry=name,
                line=line,
                path=path,
                suffix=f"#{number}" if several else "",
            )
            plans.append(builder.build())
            activities += builder.activities
            precedences += builder.precedences
        if several:
            firsts = tuple(plan.segments[0] for plan in plans)
            precedences.insert(0, Precedence(pre=(start,), post=firsts, fork="or"))
        self.plans[task, name] = plans
        return Entry(
            name=name,
            start=start if several else plans[0].segments[0],
            activities=tuple(activities),
            precedences=tuple(precedences),
            paths=tuple(plan.to_json() for plan in plans),
            fingerprint=fingerprint,
        )

    def passive_tasks(self) -> list[Task]:
        """Return the network and the databases: no limit on what they serve at once."""
        tasks = []
        if self.exchanges:
            tasks.append(_passive(NETWORK, "network", self.exchanges))
        tasks += [_passive(name, "database", queries) for name, queries in self.queries.items()]
        return tasks

    def semaphore(self, service: str, held: Held) -> str:
        """Return the name of the task that a semaphore or lock of a service becomes."""
        key = service, held.made, held.permits
        if key not in self.held:
            taken, name = set(self.held.values()), f"{service}.{held.name}"
            names = (name, *(f"{name}.{number}" for number in range(2, len(taken) + 2)))
            self.held[key] = next(one for one in names if one not in taken)
        return self.held[key]

    def semaphores(self, replicas: Mapping[str, int]) -> list[Task]:
        """Return the semaphores and locks; each replica has its own, and here they are one together."""
        return [
            Task(
                name=name,
                role="other",
                threads=permits * replicas[service],
                entries=tuple(
                    Entry(
                        name=token,
                        start=token,
                        activities=(Activity(name=token, demand=ZERO, delay=ZERO),),
                        token=token,
                    )
                    for token in TOKENS
                ),
            )
            for (service, _, permits), name in self.held.items()
        ]


TOKENS: tuple[Token, ...] = ("acquire", "release")


def _passive(name: str, role: Role, entries: Iterable[str]) -> Task:
    kind: ActivityKind = "communication" if role == "network" else "local"
    return Task(
        name=name,
        role=role,
        threads=INFINITE,
        entries=tuple(Entry(name=e, start=e, activities=(Activity(name=e, kind=kind),)) for e in entries),
    )


class _Unique:
    """Hands out names, numbering those that are taken."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    def take(self, base: str, suffix: str = "") -> str:
        self._taken[base + suffix] += 1
        count = self._taken[base + suffix]
        return base + (f".{count}" if count > 1 else "") + suffix


@dataclass(kw_only=True)
class _PathBuilder:
    """Turns one path into activities and precedences."""

    shared: _Translation
    names: _Unique
    task: str
    entry: str
    line: int
    path: Path
    suffix: str
    activities: list[Activity] = field(default_factory=list)
    precedences: list[Precedence] = field(default_factory=list)
    _segments: list[str] = field(default_factory=list)
    _registry: dict[int, str] = field(default_factory=dict)
    _communication: dict[int, str] = field(default_factory=dict)
    _exchange: dict[int, str] = field(default_factory=dict)
    _think: dict[int, str] = field(default_factory=dict)
    _loops: dict[int, LoopPlan] = field(default_factory=dict)
    _choices: dict[int, ChoicePlan] = field(default_factory=dict)
    _tasks: dict[int, PathPlan] = field(default_factory=dict)
    _races: dict[int, tuple[PathPlan, ...]] = field(default_factory=dict)
    _met: dict[int, str] = field(default_factory=dict)
    _holding: Holding = ()
    around: tuple[_PathBuilder, int] | None = None
    repeated: bool = False
    copied: bool = False
    serial: bool = False
    held_around: Holding = ()

    def build(self) -> PathPlan:
        joined = {o.of for o in self.path.operations if o.op in ("get", "join")}
        waited = joined | {
            index + place
            for index, o in enumerate(self.path.operations)
            if index in joined or not self._serial_task
            for place in o.outward()
        }
        current = self._segment(0, None)
        held = self.held_around
        for index, operation in enumerate(self.path.operations):
            segment = self._segment(index + 1, operation)
            now = held_at(self.path.operations, index, self.held_around, held)
            current = self._taken(now[len(held) :], current)
            held = self._kept(index, now)
            following = self._given_back(now[len(held) :], segment)
            self._holding = now
            if operation.op in ("call", "query"):
                self._fork(index, operation, current, following, detached=index not in waited)
            elif operation.op in ("get", "join") and (self.serial or self._is_met_at_once(operation.of)):
                self._sequence(current, following)
            elif operation.op in ("get", "join"):
                # One without `of` cannot happen in an application without errors.
                assert operation.of is not None  # noqa: S101
                pair = (current, self.ending(operation.of))
                self.precedences.append(Precedence(pre=pair, post=(following,), join="and"))
            elif operation.op == "respond":
                self._change(current, replies=True)
                self._sequence(current, following)
            elif operation.op == "loop" and operation.target == LEFT:
                self._sequence(current, following)  # it goes on beside the flow since the fan-out
            elif operation.op == "loop":
                self._loops[index] = self._loop(operation, current, following)
            elif operation.op == "fan-out":
                self._fan_out(index, operation, current, following)
            elif operation.op == "choice":
                self._choice(index, operation, current, following)
            elif operation.op == "task":
                self._task(index, operation, current, following, detached=index not in waited)
            elif operation.op == "race":
                self._race(index, operation, current, following)
            else:
                think = self._add("think", operation.site.line, kind="think")
                self._change(think, demand=ZERO, delay=operation.think)
                self._think[index] = think
                self._sequence(current, think, following)
            current = segment
        return PathPlan(
            task=self.task,
            entry=self.entry,
            path=self.path,
            segments=tuple(self._segments),
            registry=self._registry,
            communication=self._communication,
            exchange=self._exchange,
            think=self._think,
            loops=self._loops,
            choices=self._choices,
            tasks=self._tasks,
            races=self._races,
        )

    def _kept(self, index: int, now: Holding) -> Holding:
        """Return what is still held behind an operation: what the next one holds, too."""
        operations = self.path.operations
        if index + 1 == len(operations):
            return self.held_around
        return common([now, held_at(operations, index + 1, self.held_around, now)])

    def _taken(self, more: Holding, current: str) -> str:
        """Take semaphores and locks behind an activity; return the last activity of that."""
        for held in more:
            taking = self._of_semaphore("acquire", held)
            self._sequence(current, taking)
            current = taking
        return current

    def _given_back(self, held: Holding, following: str) -> str:
        """Give semaphores and locks back before an activity, the last first; return the first activity."""
        for one in held:
            giving = self._of_semaphore("release", one)
            self._sequence(giving, following)
            following = giving
        return following

    def _of_semaphore(self, token: Token, held: Held) -> str:
        name = self._idle(token, held.taken.line)
        self._change(name, calls=(Call(task=self.shared.semaphore(self.task, held), entry=token),))
        return name

    @property
    def _serial_task(self) -> bool:
        """Whether a task that is not waited for does one thing after the other, whatever its source says.

        Joins in the next round of a loop could meet the branches of this one, so there must be none.
        """
        return self.repeated or self.serial

    def ending(self, of: int) -> str:
        """Return the last activity beside the flow of what a path waits for; it is outside if ``of`` < 0."""
        if of < 0:
            assert self.around is not None  # noqa: S101
            builder, index = self.around
            return builder.ending(index + of)
        if of in self._met:
            return self._met[of]
        return self._tasks[of].segments[-1] if of in self._tasks else self._communication[of]

    def _task(
        self, index: int, operation: Operation, current: str, following: str, *, detached: bool
    ) -> None:
        """Add a task: the flow goes on, and beside it the task does."""
        serial = self.serial or (detached and self._serial_task)
        (plan,) = self._bodies(operation, around=(self, index), serial=serial)
        self._tasks[index] = plan
        first = plan.segments[0]
        if self.serial and not detached:
            self._sequence(current, first)
            self._sequence(plan.segments[-1], following)
            return
        if detached:
            self._change(first, detached=True)
        self.precedences.append(Precedence(pre=(current,), post=(following, first), fork="and"))

    def _race(self, index: int, operation: Operation, current: str, following: str) -> None:
        """Add a race: its tasks go on beside the flow, which waits until the first of them has ended."""
        line = operation.site.line
        plans = self._racing(operation)
        self._races[index] = plans
        wait, met = self._idle("race", line), self._idle("met", line)
        firsts = tuple(plan.segments[0] for plan in plans)
        lasts = tuple(plan.segments[-1] for plan in plans)
        self.precedences.append(Precedence(pre=(current,), post=(wait, *firsts), fork="and"))
        self.precedences.append(Precedence(pre=lasts, post=(met,), join="and", quorum=1))
        self.precedences.append(Precedence(pre=(wait, met), post=(following,), join="and"))

    def _loop(self, operation: Operation, current: str, following: str) -> LoopPlan:
        """Add a loop: its body is the choice between the paths of one iteration."""
        choice, plans = self._chosen("loop", operation)
        post = (choice or plans[0].segments[0], following)
        self.precedences.append(Precedence(pre=(current,), post=post, fork="loop", counts=(None,)))
        return LoopPlan(pre=current, choice=choice, bodies=plans)

    def _left(self, index: int, current: str) -> str:
        """Add, beside the flow, the calls of a loop nothing waits for; return where the flow goes on.

        The flow begins those that it waits for first: what is beside it begins as a flow of its own.
        """
        operation = self.path.operations[index]
        line = operation.site.line
        waited, left, done = (self._idle(prefix, line) for prefix in ("fan", "left", "done"))
        self._change(left, detached=True)
        self.precedences.append(Precedence(pre=(current,), post=(waited, left), fork="and"))
        self._loops[index] = self._loop(operation, left, done)
        return waited

    def _chosen(
        self, prefix: str, operation: Operation, *, raced: bool = False
    ) -> tuple[str, tuple[PathPlan, ...]]:
        """Add the bodies of a loop or fan-out, and the choice between several, which is "" for one."""
        several = len(operation.bodies) > 1
        choice = self._idle(prefix, operation.site.line, kind="choice") if several else ""
        plans = self._racing(operation) if raced else self._bodies(operation)
        if several:
            firsts = tuple(plan.segments[0] for plan in plans)
            self.precedences.append(Precedence(pre=(choice,), post=firsts, fork="or"))
        return choice, plans

    def _is_met_at_once(self, of: int | None) -> bool:
        """Return whether a join waits for a fan-out behind which the path does nothing else."""
        operations = self.path.operations
        if of is None or of < 0 or operations[of].op != "fan-out":
            return False
        behind = of + 1 if operations[of + 1].target != LEFT else of + 2
        return operations[behind].of == of and not any(self.path.local_lines[of + 1 : behind + 1])

    def _fan_out(self, index: int, operation: Operation, current: str, following: str) -> None:
        """Add a fan-out; if the flow goes on before it waits for the copies, another flow waits beside it."""
        line = operation.site.line
        if self.path.operations[index + 1].target == LEFT:
            current = self._left(index + 1, current)
        raced = self.path.is_raced(index)
        choice, plans = self._chosen("copy", operation, raced=raced)
        pre, behind = current, following
        if not (self.serial or self._is_met_at_once(index)):
            pre, behind = self._idle("fan", line), self._idle("met", line)
            self.precedences.append(Precedence(pre=(current,), post=(following, pre), fork="and"))
            self._met[index] = behind
        self._loops[index] = LoopPlan(pre=pre, choice=choice, bodies=plans)
        self.precedences.append(
            Precedence(
                pre=(pre,),
                post=(choice or plans[0].segments[0], behind),
                fork="fan-out",
                counts=(None,),
                first=1 if raced else None,
                limit=operation.limit,
            )
        )

    def _idle(self, prefix: str, line: int, *, kind: ActivityKind = "local") -> str:
        """Add an activity that takes no time."""
        name = self._add(prefix, line, kind=kind)
        self._change(name, demand=ZERO, delay=ZERO)
        return name

    def _choice(self, index: int, operation: Operation, current: str, following: str) -> None:
        """Add a choice: its bodies part behind the activity before it and meet again behind it."""
        plans = self._bodies(operation)
        firsts = tuple(plan.segments[0] for plan in plans)
        lasts = tuple(plan.segments[-1] for plan in plans)
        self._choices[index] = ChoicePlan(choice=current, bodies=plans)
        self.precedences.append(Precedence(pre=(current,), post=firsts, fork="or"))
        self.precedences.append(Precedence(pre=lasts, post=(following,), join="or"))

    def _racing(self, operation: Operation) -> tuple[PathPlan, ...]:
        """Add the activities of what races; what it does last counts with what the flow does next."""
        plans = self._bodies(operation)
        for plan in plans:
            self._change(plan.segments[-1], demand=ZERO, delay=ZERO)
        return plans

    def _sequence(self, *names: str) -> None:
        """Do one activity after the other."""
        self.precedences += (Precedence(pre=(one,), post=(other,)) for one, other in pairwise(names))

    def _bodies(
        self,
        operation: Operation,
        *,
        around: tuple[_PathBuilder, int] | None = None,
        serial: bool | None = None,
    ) -> tuple[PathPlan, ...]:
        """Add the activities of every body of a loop, fan-out, race, choice or task."""
        plans = []
        several = len(operation.bodies) > 1
        for number, path in enumerate(operation.bodies, 1):
            builder = _PathBuilder(
                shared=self.shared,
                names=self.names,
                task=self.task,
                entry=self.entry,
                line=operation.site.line,
                path=path,
                suffix=f"{self.suffix}~{number}" if several else self.suffix,
                around=around,
                repeated=self.repeated or operation.op == "loop",
                copied=self.copied or operation.op == "fan-out",
                held_around=held_in_bodies(operation, self._holding),
                serial=self.serial if serial is None else serial,
            )
            plans.append(builder.build())
            self.activities += builder.activities
            self.precedences += builder.precedences
        return tuple(plans)

    def _segment(self, index: int, previous: Operation | None) -> str:
        """Add the main flow's activity at a position, named by what the source has there."""
        local = self.path.local_lines[index]
        if previous is not None and previous.op == "respond":
            name = self._add("after", previous.site.line, kind="after")
        elif local:
            name = self._add("comp", local)
        elif previous is None:
            name = self._add("init", self.line)
        else:
            name = self._add("cont", previous.site.line)
        self._segments.append(name)
        return name

    def _fork(
        self, index: int, operation: Operation, current: str, following: str, *, detached: bool
    ) -> None:
        line = operation.site.line
        registry = self._add("reg", line, kind="registry")
        # A copy leaves no call behind but those that could not begin: it waits for the failure.
        failed = detached and self.copied
        if detached and not failed:
            self._change(registry, detached=True)
        communication = self._add("comm", line, kind="communication")
        self._registry[index] = registry
        self._communication[index] = communication
        self._change(communication, calls=self._calls(index, operation))
        if failed or (self.serial and not detached):
            self._sequence(current, registry, communication, following)
            return
        self.precedences.append(Precedence(pre=(current,), post=(following, registry), fork="and"))
        self._sequence(registry, communication)

    def _calls(self, index: int, operation: Operation) -> tuple[Call, ...]:
        if operation.op == "query":
            asked = operation.queried
            self.shared.queries.setdefault(asked.database, {})[asked.query] = None
            return (Call(task=asked.database, entry=asked.query),)
        place = entry_label(self.task, self.entry)
        exchange = self.names.take(f"exchange_{operation.site.line}", f"@{place}{self.suffix}")
        self.shared.exchanges.append(exchange)
        self._exchange[index] = exchange
        called = operation.called
        return (Call(task=NETWORK, entry=exchange), Call(task=called.service, entry=called.path))

    def _add(self, prefix: str, line: int, *, kind: ActivityKind = "local") -> str:
        name = self.names.take(f"{prefix}_{line}", self.suffix)
        self.activities.append(Activity(name=name, kind=kind, line=line))
        return name

    def _change(self, name: str, **changes: Any) -> None:
        self.activities = [replace(a, **changes) if a.name == name else a for a in self.activities]
