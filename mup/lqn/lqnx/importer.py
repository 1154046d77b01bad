"""Import an lqnx file as a native model.

lqnx is the file format of the layered queueing tools of Carleton University. What it says in a word or two
is written out here:

- Phases become a chain of activities with the reply behind the first.
- The calls of a phase or activity are interleaved with its demand: a geometric number of each
  (``STOCHASTIC``), or exactly that many (``DETERMINISTIC``).
- All branches of a fork have to end before the thread is free again, joined or not.
- Replication is written out (``mup.lqn.lqnx.replication``).

Source: Franks et al., "Layered Queueing Network Solver and Simulator User Manual".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from mup.errors import ModelError, did_you_mean
from mup.lqn.distributions import Constant, Distribution, Exponential, Geometric, Pareto, Uniform, with_scv
from mup.lqn.lqnx.elements import Element, read_xml
from mup.lqn.lqnx.flows import flow_ends, has_unjoined_branches
from mup.lqn.lqnx.graphs import TaskGraph
from mup.lqn.lqnx.reading import OUTPUT_REQUESTS, Report, join_problems
from mup.lqn.lqnx.replication import expand_replication
from mup.lqn.lqnx.variables import put_in_values
from mup.lqn.model import (
    Activity,
    Admission,
    Call,
    CallKind,
    Discipline,
    Entry,
    Forward,
    Model,
    Precedence,
    Processor,
    Task,
    Token,
)

__all__ = ["load_lqnx", "model_from_element"]

T = TypeVar("T")
Shape = tuple[str, tuple[Activity, ...], tuple[Precedence, ...]]
"""Start, activities and precedences of an entry."""

PHASES = 3

_TOKENS: dict[str, dict[str, Token]] = {
    "semaphore": {"wait": "acquire", "signal": "release"},
    "rwlock": {
        "r-lock": "read-lock",
        "r-unlock": "read-unlock",
        "w-lock": "write-lock",
        "w-unlock": "write-unlock",
    },
}
"""What the entries of a task of this scheduling do to it; the attribute of an entry has the same name."""


_PROCESSORS: dict[str, Discipline] = {
    "inf": "infinite",
    "delay": "infinite",
    "ps": "ps",
    "fcfs": "fcfs",
    "hol": "hol",
    "pp": "pp",
    "ppr": "pp",
    "pri": "pp",
}
_ADMISSIONS: dict[str, Admission] = {
    "fcfs": "fifo",
    "hol": "hol",
    "pp": "hol",
    "ppr": "hol",
    "pri": "hol",
    "rand": "random",
}
_REFERENCES = ("ref", "burst", "uniform")
_DELAYS = ("inf", "delay")
_REFUSED_PROCESSORS = {
    "cfs": "completely fair scheduling with shares",
    "rand": "service in random order",
    "ps-hol": "processor sharing with priorities",
    "ps-pp": "processor sharing with priorities",
}
_REFUSED_TASKS = {
    "poll": "polling of entries",
    "cfs": "completely fair scheduling",
    "ps": "processor sharing of threads",
}


def load_lqnx(path: str | Path) -> Model:
    """Read an lqnx file.

    Returns:
        The model. ``provenance["lqnx"]`` holds ``notes`` (what was left out or read in another form) and
        ``phases`` (entry: phase: name of the activity).

    Raises:
        ModelError: The file cannot be read, is not XML (with line and column), breaks rules (all of them
            are listed, with line and element), or contains what the model cannot express (named).
    """
    return model_from_element(read_xml(path), str(path))


def model_from_element(root: Element, where: str) -> Model:
    """Build the model of a parsed file.

    Args:
        root: The element ``lqn-model``.
        where: The name of the file, for messages.

    Raises:
        ModelError: See :func:`load_lqnx`.
    """
    if root.tag != "lqn-model":
        raise ModelError(
            f"the outermost element is <{root.tag}>", where=where, hint="an lqnx file has <lqn-model> there"
        )
    put_in_values(root, where)
    report = Report()
    report.vocabulary(root)
    if report.problems:
        raise join_problems(report.problems, where)
    try:
        flat = expand_replication(root)
    except ModelError as error:
        raise join_problems([error], where) from error
    if flat is not root:
        report.note("replication was written out: one task and processor per replica, named x_1, x_2, ...")
    model = _Importer(flat, report).model(root.attributes.get("name") or Path(where).stem, where)
    return _normalised(model)


@dataclass(frozen=True, slots=True)
class _Demands:
    """What the scheduling of a task says about its activities."""

    scheduling: str
    reference: bool

    def of(self, mean: float, scv: float) -> Distribution:
        """Return the distribution of a demand of this mean and squared coefficient of variation."""
        if mean == 0:
            return Constant(0.0)
        if self.scheduling == "uniform":
            return Uniform(0.0, 2 * mean)
        if self.scheduling == "burst" and scv > 0:
            return Pareto(mean, math.sqrt(1 / scv + 1) + 1)
        return with_scv(mean, scv)


class _Importer:
    """Reads one file without replication."""

    def __init__(self, root: Element, report: Report) -> None:
        self.root = root
        self.report = report
        self.owners: dict[str, str] = {}
        self.phases: dict[str, dict[str, str]] = {}

    def model(self, name: str, where: str) -> Model:
        report = self.report
        if any(e.tag in OUTPUT_REQUESTS for e in self.root.walk()):
            report.note("requests for histograms are not part of a model")
        self.find_owners()
        processors, tasks = [], []
        for element in self.root.all("processor"):
            home = element.attributes.get("name", "")
            processors.append(self.attempt(self.processor, element))
            tasks += [self.attempt(partial(self.task, processor=home), t) for t in element.all("task")]
        if not report.problems and not any(
            t.is_reference or any(e.arrivals is not None for e in t.entries) for t in tasks if t is not None
        ):
            report.problem(
                "nothing generates load",
                "",
                hint='a model needs a task with scheduling="ref", or an entry with an open-arrival-rate',
            )
        if report.problems:
            raise join_problems(report.problems, where)
        try:
            return Model(
                name=name,
                processors=tuple(p for p in processors if p is not None),
                tasks=tuple(t for t in tasks if t is not None),
                provenance={"lqnx": {"notes": list(report.notes), "phases": self.phases}},
            )
        except ModelError as error:
            error.where = where if error.where in ("", name) else f"{where}: {error.where}"
            raise

    def attempt(self, make: Callable[[Element], T], element: Element) -> T | None:
        """Run a step; a rule that an element of the model itself breaks is collected with its line."""
        try:
            return make(element)
        except ModelError as error:
            self.report.problem(error.message, f"line {element.line}: {error.where}", error.hint)
            return None

    def find_owners(self) -> None:
        for task in (e for e in self.root.walk() if e.tag == "task"):
            for entry in task.all("entry"):
                label = entry.attributes.get("name", "")
                if label in self.owners:
                    self.report.problem(
                        f"a second entry is named {label!r}; the names of entries are unique in a file",
                        f"line {entry.line}: entry {label!r}",
                    )
                self.owners[label] = task.attributes.get("name", "")

    # Processors and tasks.

    def processor(self, element: Element) -> Processor:
        report = self.report
        where = f"line {element.line}: processor {element.attributes.get('name', '')!r}"
        name = report.name(element, where)
        scheduling = element.attributes.get("scheduling", "fcfs")
        for group in element.all("group"):
            report.problem(
                "processor groups are not supported: no discipline of a model gives groups of tasks shares",
                f"line {group.line}: processor {name!r}, group {group.attributes.get('name', '')!r}",
            )
        if scheduling in _REFUSED_PROCESSORS:
            report.problem(
                f"scheduling {scheduling!r} ({_REFUSED_PROCESSORS[scheduling]}) is not supported", where
            )
        elif scheduling not in _PROCESSORS:
            report.problem(
                f"unknown scheduling {scheduling!r}; {did_you_mean(scheduling, list(_PROCESSORS))}", where
            )
        discipline = _PROCESSORS.get(scheduling, "fcfs")
        cores = report.whole(element, "multiplicity", where, 1, inf=True)
        speed = report.number(element, "speed-factor", where, 1.0)
        if report.number(element, "quantum", where, 0.0) > 0:
            report.note("quanta were dropped: processor sharing is exact, other disciplines have no slices")
        if discipline == "infinite" or cores == math.inf:
            discipline, cores = "infinite", math.inf
        return Processor(name=name, cores=cores, discipline=discipline, speed=speed)

    def task(self, element: Element, processor: str) -> Task:
        report = self.report
        path = f"task {element.attributes.get('name', '')!r}"
        where = f"line {element.line}: {path}"
        name = report.name(element, where)
        scheduling = element.attributes.get("scheduling", "fcfs")
        known = (*_REFERENCES, *_DELAYS, *_ADMISSIONS, *_TOKENS)
        if scheduling in _REFUSED_TASKS:
            report.problem(
                f"scheduling {scheduling!r} ({_REFUSED_TASKS[scheduling]}) is not supported", where
            )
        elif scheduling not in known:
            report.problem(f"unknown scheduling {scheduling!r}; {did_you_mean(scheduling, known)}", where)
        if scheduling in ("pp", "ppr", "pri"):
            report.note(f"task {name}: a thread is not preempted; the highest priority is served next")
        reference = scheduling in _REFERENCES
        threads = report.whole(element, "multiplicity", where, 1, inf=True)
        if scheduling in _DELAYS:
            threads = math.inf
        if report.whole(element, "queue-length", where, 0, low=0) > 0:
            report.problem("a bounded queue is not supported", f"{where}.queue-length")
        if report.whole(element, "initially", where, threads, low=0) != threads:
            report.problem(
                "a semaphore or lock that begins with fewer tokens than it can hold is not supported",
                f"{where}.initially",
            )
        think = report.number(element, "think-time", where, 0.0)
        if think and not reference:
            report.problem("only a reference task has a think time", f"{where}.think-time")
        entries = self.entries(element, _Demands(scheduling, reference), path)
        return Task(
            name=name,
            role="reference" if reference else "service",
            threads=threads,
            processor=processor,
            entries=tuple(entries),
            admission="fifo" if threads == math.inf else _ADMISSIONS.get(scheduling, "fifo"),
            priority=report.integer(element, "priority", where),
            think=Exponential(think) if think else None,
        )

    # Entries.

    def entries(self, task: Element, demands: _Demands, path: str) -> list[Entry]:
        graph = TaskGraph(task, self.report, f"line {task.line}: {path}")
        result = []
        for element in task.all("entry"):
            name = element.attributes.get("name", "")
            own = f"{path}, entry {name!r}"
            where = f"line {element.line}: {own}"
            self.report.name(element, where)
            phases = [a for part in element.all("entry-phase-activities") for a in part.all("activity")]
            if phases and name in graph.starts:
                self.report.problem("has phases and an activity graph; only one of them can be", where)
            elif phases:
                shape = self.from_phases(element, phases, demands, own)
                result.append(self.entry(element, shape, demands, own))
            elif name in graph.starts:
                shape = self.from_graph(element, graph, demands, own)
                result.append(self.entry(element, shape, demands, own))
            else:
                self.report.problem("has no activity: neither phases nor one that is bound to it", where)
        graph.report_unused([e.attributes.get("name", "") for e in task.all("entry")])
        return result

    def from_phases(self, element: Element, phases: list[Element], demands: _Demands, path: str) -> Shape:
        name = element.attributes.get("name", "")
        by_phase: dict[int, Activity] = {}
        for phase in phases:
            where = f"line {phase.line}: {path}"
            number = int(self.report.whole(phase, "phase", where, 1))
            if number > PHASES or number in by_phase:
                what = "is given twice" if number in by_phase else f"does not exist; the last one is {PHASES}"
                self.report.problem(f"phase {number} {what}", where)
            by_phase[number] = self.activity(phase, demands, f"{path}, phase {number}")
        if not demands.reference and 1 not in by_phase:
            nothing = Constant(0.0)
            by_phase[1] = Activity(name=f"{name}_ph1", demand=nothing, delay=nothing)
        numbers = sorted(by_phase)
        self.phases[name] = {str(number): by_phase[number].name for number in numbers}
        if not demands.reference and len(numbers) > 1:
            by_phase[1] = replace(by_phase[1], replies=True)
        activities = tuple(by_phase[number] for number in numbers)
        return activities[0].name, activities, _chain(activities)

    def from_graph(self, element: Element, graph: TaskGraph, demands: _Demands, path: str) -> Shape:
        name = element.attributes.get("name", "")
        start, elements, precedences = graph.of_entry(name, f"line {element.line}: {path}")
        replying = graph.replies.get(name, [])
        activities = []
        for part in elements:
            own = part.attributes["name"]
            spot = f"{path}, activity {own!r}"
            activity = self.activity(part, demands, spot)
            if own in replying and demands.reference:
                self.report.problem("a reference task has no caller to reply to", f"line {part.line}: {spot}")
            activities.append(replace(activity, replies=own in replying))
        return start, tuple(activities), precedences

    def entry(self, element: Element, shape: Shape, demands: _Demands, path: str) -> Entry:
        report = self.report
        where = f"line {element.line}: {path}"
        start, activities, precedences = shape
        rate = report.number(element, "open-arrival-rate", where, 0.0)
        if rate and demands.reference:
            report.problem("a reference task has no arrivals", f"{where}.open-arrival-rate")
        token: Token = ""
        for scheduling, roles in _TOKENS.items():
            role = element.attributes.get(scheduling, "none")
            if (role not in roles) if demands.scheduling == scheduling else (role != "none"):
                report.problem(
                    f"{_listed(roles)} are for the entries of a task with scheduling {scheduling!r}, which "
                    f"all have one of them; got {role!r}",
                    f"{where}.{scheduling}",
                )
            token = roles.get(role, token)
        forwards = []
        for part in element.all("forwarding"):
            spot = f"line {part.line}: {path}, forwarding"
            target = report.name(part, spot, "dest")
            forwards.append(
                Forward(
                    task=self.owner(target, spot),
                    entry=target,
                    probability=report.number(part, "prob", spot, 1.0),
                )
            )
        return Entry(
            name=element.attributes.get("name", ""),
            start=start,
            activities=activities,
            precedences=precedences,
            forwards=tuple(forwards),
            arrivals=Exponential(1 / rate) if rate else None,
            priority=report.integer(element, "priority", where),
            token=token,
        )

    def owner(self, entry: str, where: str) -> str:
        if entry and entry not in self.owners:
            self.report.problem(
                f"no entry is named {entry!r}; {did_you_mean(entry, list(self.owners))}", where
            )
        return self.owners.get(entry, "")

    # Activities.

    def activity(self, element: Element, demands: _Demands, path: str) -> Activity:
        report = self.report
        where = f"line {element.line}: {path}"
        name = report.name(element, where)
        mean = report.number(element, "host-demand-mean", where, 0.0)
        scv = report.number(element, "host-demand-cvsq", where, 1.0)
        think = report.number(element, "think-time", where, 0.0)
        if report.number(element, "max-service-time", where, 0.0) > 0:
            report.note("max-service-time asks for the share of longer times; it is not part of a model")
        order = element.attributes.get("call-order", "STOCHASTIC")
        if order not in ("STOCHASTIC", "DETERMINISTIC"):
            report.problem(f"must be STOCHASTIC or DETERMINISTIC, got {order!r}", f"{where}.call-order")
        calls = tuple(self.calls(element, path, constant=order == "DETERMINISTIC"))
        # Without a demand there is nothing to cut into slices; only geometric counts of several targets
        # still mix the order of the calls.
        mixed = order == "STOCHASTIC" and len(calls) > 1
        return Activity(
            name=name,
            demand=demands.of(mean, scv),
            delay=Exponential(think) if think else Constant(0.0),
            calls=calls,
            interleaved=bool(calls) and (mean > 0 or mixed),
        )

    def calls(self, activity: Element, path: str, *, constant: bool) -> Iterator[Call]:
        report = self.report
        for element in activity.children:
            if element.tag not in ("synch-call", "asynch-call"):
                continue
            spot = f"line {element.line}: {path}, {element.tag}"
            target = report.name(element, spot, "dest")
            for fan in ("fanin", "fanout"):
                if report.whole(element, fan, spot, 1) != 1:
                    report.problem("fans stand in the task, as <fan-in> and <fan-out>", f"{spot}.{fan}")
            task = self.owner(target, spot)
            count: Distribution
            if constant:
                count = Constant(report.whole(element, "calls-mean", spot, 1, low=0))
            else:
                count = Geometric(report.number(element, "calls-mean", spot, 1.0))
            if count.mean == 0:
                report.note(f"{path}: a call of {target!r} was dropped, its number is 0")
                continue
            kind: CallKind = "synchronous" if element.tag == "synch-call" else "send"
            yield Call(task=task, entry=target, count=count, kind=kind)


def _listed(words: Collection[str]) -> str:
    *first, last = map(repr, words)
    return f"{', '.join(first)} and {last}"


def _chain(activities: Sequence[Activity]) -> tuple[Precedence, ...]:
    return tuple(Precedence(pre=(a.name,), post=(b.name,)) for a, b in pairwise(activities))


def _normalised(model: Model) -> Model:
    """Say whether threads wait for branches, and leave out what goes without saying.

    In lqnx they always wait; here only where a branch can still run at the end of the flow. A reply that
    leaves there anyway is not marked.
    """
    tasks = []
    for task in model.tasks:
        entries = []
        for entry in task.entries:
            normalised = entry
            if has_unjoined_branches(entry):
                normalised = replace(entry, waits=True)
            else:
                ends, before_loops = flow_ends(entry)
                if not before_loops and ends == {a.name for a in entry.activities if a.replies}:
                    plain = tuple(replace(a, replies=False) for a in entry.activities)
                    normalised = replace(entry, activities=plain)
            entries.append(normalised)
        tasks.append(replace(task, entries=tuple(entries)))
    return replace(model, tasks=tuple(tasks))
