"""Rules of a model. All violations are found at once; each names the element's path.

What a single activity graph has to obey is in ``graph_rules``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mup.errors import ModelError, did_you_mean
from mup.lqn.distributions import LARGEST, LEAST, Constant, Distribution, Empirical, Geometric
from mup.lqn.graph_rules import PROBABILITY_TOLERANCE, graph_problems, main_flow, precedence_problems
from mup.lqn.model import (
    LOCK,
    SEMAPHORE,
    Activity,
    Call,
    Entry,
    LoadDependence,
    Model,
    Precedence,
    Processor,
    Setup,
    Task,
    entry_label,
)
from mup.lqn.refs import WorkNames

__all__ = ["problems", "rule_problems"]

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What cannot be part of a picture or an XML file."""


def problems(model: Model) -> list[ModelError]:
    """Return every violated rule of a model whose single elements are already valid."""
    return [*_name_problems([model.name], "name"), *rule_problems(model.processors, model.tasks)]


def rule_problems(processors: Sequence[Processor], tasks: Sequence[Task]) -> list[ModelError]:
    """Return every violated rule of the elements of a model."""
    found: list[ModelError] = []
    found += _name_problems((p.name for p in processors), "processors")
    found += _name_problems((t.name for t in tasks), "tasks")
    known = {p.name: p for p in processors}
    for processor in processors:
        found += _processor_problems(known, processor)
    names = _Names(
        processors=known,
        tasks={t.name: (t, {e.name for e in t.entries}) for t in tasks},
    )
    for task in tasks:
        found += _task_problems(names, task)
    if not found:
        found += _call_cycles(tasks)
    return found


@dataclass(frozen=True, slots=True)
class _Names:
    """What elements can refer to."""

    processors: Mapping[str, Processor]
    tasks: Mapping[str, tuple[Task, set[str]]]


def _name_problems(names: Iterable[str], where: str) -> Iterator[ModelError]:
    for name, count in Counter(names).items():
        if _UNPRINTABLE.search(name):
            yield ModelError(f"a name contains control characters: {name!r}", where=where)
        if count > 1:
            yield ModelError(f"{count} elements are named {name!r}; names must be unique", where=where)
        if not name:
            yield ModelError("a name is empty", where=where)


def _number(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


# Processors.


def _utilization_problems(rows: Sequence[tuple[float, float, float]], where: str) -> Iterator[ModelError]:
    """Yield what is wrong with rows of a utilization and two probabilities."""
    wrong = [(n, row) for n, row in enumerate(rows) if not all(_number(value, 0, 1) for value in row)]
    for index, row in wrong:
        what = f"must be a utilization and two probabilities, from 0 to 1, got {row!r}"
        yield ModelError(what, where=f"{where}[{index}]")
    if not wrong and any(a[0] >= b[0] for a, b in pairwise(rows)):
        yield ModelError("utilizations must ascend", where=where)


def _processor_problems(known: Mapping[str, Processor], processor: Processor) -> Iterator[ModelError]:
    where = f"processors[{processor.name!r}]"
    if processor.discipline == "cores" and processor.cores == math.inf:
        yield ModelError("a processor of discipline 'cores' needs finitely many", where=f"{where}.cores")
    migration = processor.migration
    if migration is not None:
        spot = f"{where}.migration"
        if processor.discipline != "cores":
            yield ModelError(
                f"only between the cores of discipline 'cores', not {processor.discipline!r}", where=spot
            )
        for field in ("wake", "steal"):
            value = getattr(migration, field)
            if not _number(value, 0, 1):
                yield ModelError(
                    f"must be a probability between 0 and 1, got {value!r}", where=f"{spot}.{field}"
                )
        if not _number(migration.balance, 0, math.nextafter(math.inf, 0)):
            yield ModelError(
                f"must be a number of moves per second >= 0, got {migration.balance!r}",
                where=f"{spot}.balance",
            )
        yield from _utilization_problems(migration.by_utilization, f"{spot}.by_utilization")
    turns = processor.turns
    if turns is not None:
        spot = f"{where}.turns"
        if processor.discipline != "cores":
            yield ModelError(
                f"only on the cores of discipline 'cores', not {processor.discipline!r}", where=spot
            )
        if not _number(turns.quantum, LEAST, LARGEST):
            yield ModelError(
                f"must be a number of seconds between {LEAST:g} and {LARGEST:g}, got {turns.quantum!r}",
                where=f"{spot}.quantum",
            )
        if not _number(turns.preempt, 0, 1):
            yield ModelError(
                f"must be a probability between 0 and 1, got {turns.preempt!r}", where=f"{spot}.preempt"
            )
    if processor.background and processor.parent is not None:
        yield ModelError("only a machine has one, not a part of it", where=f"{where}.background")
    if processor.parent is not None:
        yield from _parent_problems(known, processor, processor.parent, f"{where}.parent")
    if processor.core is not None:
        yield from _core_problems(known.get(processor.parent or ""), processor.core, f"{where}.core")


def _core_problems(parent: Processor | None, core: object, where: str) -> Iterator[ModelError]:
    if isinstance(core, bool) or not isinstance(core, int):
        yield ModelError(f"must be a whole number, got {core!r}", where=where)
    elif parent is None or parent.discipline != "cores":
        yield ModelError("only a part of a processor of discipline 'cores' stays on one of them", where=where)
    elif core < 0:
        yield ModelError(f"cores are counted from 0, got {core}", where=where)


def _parent_problems(
    known: Mapping[str, Processor], child: Processor, name: str, where: str
) -> Iterator[ModelError]:
    parent = known.get(name)
    if parent is None:
        yield ModelError(f"no processor is named {name!r}; {did_you_mean(name, list(known))}", where=where)
        return
    if parent.discipline not in ("ps", "cores", "infinite"):
        yield ModelError(
            f"only a 'ps', 'cores' or 'infinite' processor has parts; {parent.name!r} is"
            f" {parent.discipline!r}",
            where=where,
        )
    if child.discipline not in ("ps", "fcfs") or child.cores == math.inf:
        yield ModelError(
            f"a part of a processor is 'ps' or 'fcfs' with finitely many cores, got {child.discipline!r}"
            f" with {child.cores:g}",
            where=where,
        )
    trail = [child.name]
    while parent is not None:
        trail.append(parent.name)
        if parent.name == child.name:
            yield ModelError(f"a processor is part of itself: {' in '.join(trail)}", where=where)
        if parent.name in trail[:-1]:
            return
        parent = known.get(parent.parent) if parent.parent is not None else None


# Tasks.


def _task_problems(names: _Names, task: Task) -> Iterator[ModelError]:
    where = f"tasks[{task.name!r}]"
    if task.processor is not None and task.processor not in names.processors:
        yield ModelError(
            f"no processor is named {task.processor!r};"
            f" {did_you_mean(task.processor, list(names.processors))}",
            where=f"{where}.processor",
        )
    if not task.entries:
        yield ModelError("a task needs at least one entry", where=f"{where}.entries")
    if task.admission not in ("fifo", "random", "hol"):
        yield ModelError(
            f"must be one of fifo, random, hol, got {task.admission!r}", where=f"{where}.admission"
        )
    yield from _priority_problems(task.priority, where)
    if task.is_reference:
        yield from _reference_problems(task, where)
    elif task.think is not None:
        yield ModelError("only a reference task has a think time", where=f"{where}.think")
    yield from _time_problems(task.think, f"{where}.think")
    if task.front is not None:
        yield from _time_problems(task.front.request, f"{where}.front.request")
        yield from _time_problems(task.front.reply, f"{where}.front.reply")
    yield from _load_dependence_problems(task, where)
    yield from _setup_problems(task, where)
    yield from _token_problems(task, where)
    yield from _name_problems((e.name for e in task.entries), f"{where}.entries")
    for entry in task.entries:
        yield from _entry_problems(names, task, entry, f"{where}.entries[{entry.name!r}]")


def _load_dependence_problems(task: Task, where: str) -> Iterator[ModelError]:
    """Yield what the load dependence of a task names that the task does not have."""
    if task.load_dependence is not None:
        yield from _unknown_works(task, task.load_dependence, f"{where}.load_dependence")


def _setup_problems(task: Task, where: str) -> Iterator[ModelError]:
    """Yield what the set-up of a task names that the task does not have, and where it cannot be."""
    if task.setup is None:
        return
    yield from _unknown_works(task, task.setup, f"{where}.setup")
    by_rate = task.load_dependence
    for field in ("demands", "delays"):
        both = getattr(task.setup, field).keys() & (getattr(by_rate, field).keys() if by_rate else ())
        for key in sorted(both):
            yield ModelError(
                "a time has either a set-up or load dependence: both say what it is after a rest",
                where=f"{where}.setup.{field}[{key!r}]",
                hint="remove one of them",
            )
    if any(entry.token for entry in task.entries):
        yield ModelError("a semaphore or lock has no workers that could sleep", where=f"{where}.setup")


def _unknown_works(task: Task, extra: LoadDependence | Setup, where: str) -> Iterator[ModelError]:
    known = WorkNames(task.entries).pairs
    for field in ("demands", "delays"):
        for key in getattr(extra, field):
            front = field == "demands" and key == "front" and task.front is not None
            if key not in known and not front:
                yield ModelError(
                    "the task has no such activity (ENTRY:ACTIVITY) or front",
                    where=f"{where}.{field}[{key!r}]",
                )


def _priority_problems(value: object, where: str) -> Iterator[ModelError]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield ModelError(f"must be a whole number, got {value!r}", where=f"{where}.priority")


def _reference_problems(task: Task, where: str) -> Iterator[ModelError]:
    if len(task.entries) > 1:
        yield ModelError("a reference task has exactly one entry", where=f"{where}.entries")
    if task.replicas != 1:
        yield ModelError("a reference task has no replicas; raise its clients", where=f"{where}.replicas")
    if task.is_open and task.threads != math.inf:
        yield ModelError(
            f"a reference task with arrivals has no clients, its threads are 'inf', got {task.threads!r}",
            where=f"{where}.threads",
        )
    if task.is_open and task.think is not None:
        yield ModelError(
            "a reference task with arrivals has no think time; its arrivals set the pace",
            where=f"{where}.think",
        )
    for entry in task.entries:
        spot = f"{where}.entries[{entry.name!r}]"
        if entry.forwards:
            yield ModelError("a reference task has no request to forward", where=f"{spot}.forwards")
        for activity in entry.activities:
            if activity.replies:
                yield ModelError(
                    "a reference task has no caller to reply to",
                    where=f"{spot}.activities[{activity.name!r}].replies",
                )


def _token_problems(task: Task, where: str) -> Iterator[ModelError]:
    tokens = {entry.token for entry in task.entries}
    for entry in task.entries:
        if entry.token not in ("", *SEMAPHORE, *LOCK):
            yield ModelError(
                f"must be one of {', '.join((*SEMAPHORE, *LOCK))} or empty, got {entry.token!r}",
                where=f"{where}.entries[{entry.name!r}].token",
            )
    lock = not tokens.isdisjoint(LOCK)
    if not lock and tokens.isdisjoint(SEMAPHORE):
        return
    own: tuple[str, ...] = LOCK if lock else SEMAPHORE
    what, does = ("lock", "locks or unlocks") if lock else ("semaphore", "acquires or releases")
    if lock and task.admission != "fifo":
        yield ModelError(
            f"a lock has an order of its own, its admission is 'fifo', got {task.admission!r}",
            where=f"{where}.admission",
        )
    if task.is_reference:
        yield ModelError(f"a reference task is no {what}", where=f"{where}.entries")
    elif task.threads == math.inf:
        yield ModelError(f"a {what} has finitely many threads to take", where=f"{where}.threads")
    if task.replicas != 1:
        yield ModelError(
            f"a {what} has no replicas, got {task.replicas}: {own[1]!r} could reach another one",
            where=f"{where}.replicas",
        )
    for token in own:
        if token not in tokens:
            yield ModelError(f"no entry of this {what} has the token {token!r}", where=f"{where}.entries")
    for entry in task.entries:
        if entry.token not in own and entry.token in ("", *SEMAPHORE):
            yield ModelError(
                f"every entry of a {what} {does}", where=f"{where}.entries[{entry.name!r}].token"
            )


# Entries.


def _entry_problems(names: _Names, task: Task, entry: Entry, where: str) -> Iterator[ModelError]:
    yield from _name_problems((a.name for a in entry.activities), f"{where}.activities")
    yield from _priority_problems(entry.priority, where)
    known = {a.name for a in entry.activities}
    if entry.start not in known:
        yield ModelError(f"no activity is named {entry.start!r}", where=f"{where}.start")
    if entry.arrivals is not None:
        yield from _time_problems(entry.arrivals, f"{where}.arrivals")
        if not entry.arrivals.mean > 0:
            yield ModelError(
                f"the mean time between arrivals must be > 0, got {entry.arrivals.mean!r}",
                where=f"{where}.arrivals.mean",
            )
    for index, forward in enumerate(entry.forwards):
        spot = f"{where}.forwards[{index}]"
        yield from _target_problems(names, forward.task, forward.entry, spot)
        if not _number(forward.probability, 0, 1):
            yield ModelError(
                f"must be a probability between 0 and 1, got {forward.probability!r}",
                where=f"{spot}.probability",
            )
    odds = [f.probability for f in entry.forwards if _number(f.probability, 0, 1)]
    if math.fsum(odds) > 1 + PROBABILITY_TOLERANCE:
        yield ModelError(
            f"the probabilities sum to {math.fsum(odds):.12g}, more than 1", where=f"{where}.forwards"
        )
    carried = main_flow(entry)
    for activity in entry.activities:
        spot = f"{where}.activities[{activity.name!r}]"
        yield from _activity_problems(names, activity, spot)
        for index, call in enumerate(activity.calls):
            if call.kind != "releasing":
                continue
            if task.is_reference:
                reason = "a reference task has no thread to give back"
            elif entry.token == "release":  # noqa: S105  (no password)
                reason = "a releasing entry of a semaphore has no thread to give back"
            elif entry.token in LOCK:
                reason = "an entry of a lock has no thread to give back"
            elif activity.name not in carried:
                reason = "an auxiliary branch of a fork or fan-out has no thread to give back"
            else:
                continue
            yield ModelError(f"{reason}; make it 'synchronous'", where=f"{spot}.calls[{index}].kind")
    for index, precedence in enumerate(entry.precedences):
        spot = f"{where}.precedences[{index}]"
        yield from precedence_problems(precedence, known, spot)
        yield from _loop_count_problems(precedence, spot)
    yield from graph_problems(entry, where)


def _activity_problems(names: _Names, activity: Activity, where: str) -> Iterator[ModelError]:
    yield from _time_problems(activity.demand, f"{where}.demand")
    yield from _time_problems(activity.delay, f"{where}.delay")
    for index, call in enumerate(activity.calls):
        yield from _call_problems(names, call, f"{where}.calls[{index}]")
    kinds = {type(c.count) for c in activity.calls if c.count is not None}
    if activity.interleaved and (len(kinds) > 1 or Empirical in kinds):
        yield ModelError(
            "the counts of interleaved calls are all constant or all geometric", where=f"{where}.interleaved"
        )


def _call_problems(names: _Names, call: Call, where: str) -> Iterator[ModelError]:
    yield from _target_problems(names, call.task, call.entry, where)
    if call.kind not in ("synchronous", "send", "releasing"):
        yield ModelError(
            f"must be one of synchronous, send, releasing, got {call.kind!r}", where=f"{where}.kind"
        )
    yield from _count_problems(call.count, f"{where}.count")


def _target_problems(names: _Names, task: str, entry: str, where: str) -> Iterator[ModelError]:
    if task not in names.tasks:
        yield ModelError(f"no task is named {task!r}; {did_you_mean(task, list(names.tasks))}", where=where)
        return
    target, entries = names.tasks[task]
    if target.is_reference:
        yield ModelError(f"{task!r} is a reference task and cannot be called", where=where)
    elif entry not in entries:
        yield ModelError(
            f"task {task!r} has no entry {entry!r}; {did_you_mean(entry, sorted(entries))}", where=where
        )


def _time_problems(time: Distribution | None, where: str) -> Iterator[ModelError]:
    if isinstance(time, Geometric):
        yield ModelError("'geometric' is a number of times, not a time", where=f"{where}.family")


def _loop_count_problems(precedence: Precedence, where: str) -> Iterator[ModelError]:
    for index, count in enumerate(precedence.counts):
        yield from _count_problems(count, f"{where}.counts[{index}]")


def _count_problems(count: Distribution | None, where: str) -> Iterator[ModelError]:
    values: tuple[float, ...] = ()
    if isinstance(count, Constant):
        values = (count.value,)
    elif isinstance(count, Empirical):
        values = count.values
    elif count is not None and not isinstance(count, Geometric):
        yield ModelError(
            f"a count is constant, geometric or empirical, got {count.family!r}", where=f"{where}.family"
        )
    wrong = next((v for v in values if v != math.floor(v)), None)
    if wrong is not None:
        yield ModelError(f"a count is a whole number, got {wrong!r}", where=where)


# Calls.


def _call_cycles(tasks: Iterable[Task]) -> Iterator[ModelError]:
    """Report the first cycle of awaited requests: it can deadlock on its own threads.

    A send does not wait, so a cycle that contains one is no deadlock.
    """
    graph: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for task in tasks:
        for entry in task.entries:
            calls = [(c.task, c.entry) for a in entry.activities for c in a.calls if c.kind != "send"]
            graph[task.name, entry.name] = calls + [(f.task, f.entry) for f in entry.forwards]
    done: set[tuple[str, str]] = set()
    for root, calls in graph.items():
        if root in done:
            continue
        trail = {root: None}  # an ordered set
        stack = [iter(calls)]
        while stack:
            nxt = next(stack[-1], None)
            if nxt is None:
                stack.pop()
                done.add(trail.popitem()[0])
            elif nxt in trail:
                nodes = list(trail)
                ring = [*nodes[nodes.index(nxt) :], nxt]
                labels = " -> ".join(entry_label(*node) for node in ring)
                yield ModelError(f"synchronous calls form a cycle: {labels}", where="tasks")
                return
            elif nxt not in done:
                trail[nxt] = None
                stack.append(iter(graph[nxt]))
