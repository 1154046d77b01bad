"""Compare two models.

Processors, tasks and entries are matched by name; nothing is taken for renamed. So are activities, unless
both models say what source their entries were translated from: then names, which move with lines, do not
count, and paths and calls are matched by what they do (``mup.lqn.matching``). What such an entry does
differently is told in operations (``mup.lqn.operation_changes``) instead of activities that came and went.
The order of processors, tasks, entries and activities means nothing and is not compared, nor is what is for
display or says where numbers come from (the model's name, source lines, provenance).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from mup.lqn.distributions import Distribution
from mup.lqn.matching import in_names_of
from mup.lqn.model import (
    Activity,
    Call,
    Entry,
    Front,
    LoadDependence,
    Migration,
    Model,
    Precedence,
    Processor,
    Setup,
    Task,
)
from mup.lqn.operation_changes import OperationChange, operation_changes
from mup.lqn.path_steps import routes
from mup.lqn.refs import entry_label

__all__ = ["Change", "compare"]

T = TypeVar("T")
Value = Distribution | str | float | bool | None
"""What a field can hold; None is a number that was never measured, or something that is not there."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        kind: ``added`` and ``removed`` elements have no values; ``operations`` has a text.
        where: Path of the element, in the names of the old model.
        field: What of it; "" for a whole element.
        old, new: The values; times in seconds.
        operations: What an entry does differently, in words; None for every other kind.
        subject: The task or entry it is about, as results name it; "" for a processor.
    """

    kind: Literal["added", "removed", "changed", "operations"]
    where: str
    field: str = ""
    old: Value = None
    new: Value = None
    operations: OperationChange | None = None
    subject: str = ""

    @property
    def relative(self) -> float | None:
        """Relative change of a number or a mean, as a fraction; None if there is none to state."""
        old, new = _number(self.old), _number(self.new)
        if old is None or new is None or not old or not math.isfinite(old) or not math.isfinite(new):
            return None
        return (new - old) / old

    def texts(self) -> tuple[str, str]:
        """Return both values for people, with as many digits as it takes to tell them apart."""
        if self.kind != "changed":
            return "", ""
        for digits in (4, 6, 9, 12, 17):
            old, new = _text(self.old, digits), _text(self.new, digits)
            if old != new:
                return old, new
        return old, f"{new} (other values)"

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        data: dict[str, Any] = {"kind": self.kind, "where": self.where}
        if self.kind == "changed":
            data |= {"field": self.field, "old": _json(self.old), "new": _json(self.new)}
            data["relative"] = self.relative
        if self.operations is not None:
            change = self.operations
            data |= {"field": self.field, "entry": self.subject, "text": change.text}
            data |= {"file": change.file, "line": change.line}
        return data


def _number(value: Value) -> float | None:
    if isinstance(value, Distribution):
        return value.mean
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(value: Value, digits: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Distribution):
        shape = f" (scv {value.scv:.{digits}g})" if value.variance > 0 else ""
        return f"{value.mean:.{digits}g} {value.family}{shape}"
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def _json(value: Value) -> Any:
    if isinstance(value, Distribution):
        scv = value.scv
        return {
            "family": value.family,
            "mean": value.mean,
            "scv": scv if math.isfinite(scv) else "inf",
        }
    return "inf" if value == math.inf else value


def compare(old: Model, new: Model) -> list[Change]:
    """Return every difference, in the order of the old model; empty if both predict the same."""
    changes: list[Change] = []
    for where, processors in _pairs(_named(old.processors), _named(new.processors), "processors", changes):
        changes += _processor(*processors, where)
    now = in_names_of(old, new)
    for where, tasks in _pairs(_named(old.tasks), _named(now), "tasks", changes):
        name = tasks[0].name
        changes += (replace(change, subject=name) for change in _task(*tasks, where))
        entries = _pairs(_named(tasks[0].entries), _named(tasks[1].entries), f"{where}.entries", changes)
        for spot, both in entries:
            label = entry_label(name, both[0].name)
            changes += (replace(change, subject=label) for change in _entry_and_activities(*both, spot))
    reported = _reported_by_operations(old.tasks, now)
    return [c for c in changes if c.kind not in ("added", "removed") or c.where not in reported]


def _reported_by_operations(*sides: tuple[Task, ...]) -> set[str]:
    """Return the paths of exchanges and queries, which come and go with calls, if both models have source."""
    if not all(any(entry.paths for task in tasks for entry in task.entries) for tasks in sides):
        return set()
    reported = set()
    for task in (task for tasks in sides for task in tasks if task.role in ("network", "database")):
        where = f"tasks[{task.name!r}]"
        reported |= {f"{where}.entries[{entry.name!r}]" for entry in task.entries}
        if task.role == "network":
            reported.add(where)
    return reported


def _entry_and_activities(old: Entry, new: Entry, where: str) -> Iterator[Change]:
    """Yield what changed in an entry; what its operations explain is left to them."""
    operations: list[OperationChange] = []
    if routes(old) and routes(new):
        operations = operation_changes(old, new)
    yield from (Change("operations", where, change.kind, operations=change) for change in operations)
    others = list(_entry(old, new, where))
    before, after = _named(old.activities), _named(new.activities)
    for place, activities in _pairs(before, after, f"{where}.activities", others):
        others += _activity(*activities, place)
    yield from (c for c in others if not operations or not _structural(c, where))


STRUCTURE = {
    "start",
    "source",
    "join",
    "fork",
    "quorum",
    "first",
    "limit",
    "replies",
    "detached",
    "order of calls",
}
"""Fields that say in which order an entry does what."""


def _structural(change: Change, entry: str) -> bool:
    """Return whether a difference within an entry follows from what it does."""
    if change.kind == "changed":
        return change.field in STRUCTURE
    return not change.where.startswith(f"{entry}.forwards[")


Named = TypeVar("Named", Processor, Task, Entry, Activity)


def _named(elements: tuple[Named, ...]) -> dict[str, Named]:
    return {element.name: element for element in elements}


def _pairs(
    old: Mapping[str, T], new: Mapping[str, T], where: str, changes: list[Change]
) -> Iterator[tuple[str, tuple[T, T]]]:
    """Yield the elements both sides have, with their path; report the others."""
    for name, element in old.items():
        spot = f"{where}[{name!r}]"
        if name in new:
            yield spot, (element, new[name])
        else:
            changes.append(Change("removed", spot))
    changes += [Change("added", f"{where}[{name!r}]") for name in new if name not in old]


def _fields(where: str, values: Mapping[str, tuple[Value, Value]]) -> Iterator[Change]:
    for field, (old, new) in values.items():
        if old != new or type(old) is not type(new):
            if isinstance(old, int | float) and isinstance(new, int | float) and old == new:
                continue
            yield Change("changed", where, field, old, new)


def _processor(old: Processor, new: Processor, where: str) -> Iterator[Change]:
    before, after = old.migration or Migration(), new.migration or Migration()
    turns = [(None, None) if p.turns is None else (p.turns.quantum, p.turns.preempt) for p in (old, new)]
    quanta, preemptions = zip(*turns, strict=True)
    yield from _fields(
        where,
        {
            "cores": (old.cores, new.cores),
            "discipline": (old.discipline, new.discipline),
            "speed": (old.speed, new.speed),
            "parent": (old.parent, new.parent),
            "core": (old.core, new.core),
            "background": (old.background, new.background),
            "migration.wake": (before.wake, after.wake),
            "migration.steal": (before.steal, after.steal),
            "migration.balance": (before.balance, after.balance),
            "migration.by_utilization": (str(before.by_utilization), str(after.by_utilization)),
            "turns.quantum": quanta,
            "turns.preempt": preemptions,
        },
    )


def _task(old: Task, new: Task, where: str) -> Iterator[Change]:
    nothing = Front(request=None, reply=None)
    before, after = old.front or nothing, new.front or nothing
    clients = old.is_reference and new.is_reference
    yield from _fields(
        where,
        {
            "role": (old.role, new.role),
            "clients" if clients else "threads": (old.threads, new.threads),
            "replicas": (old.replicas, new.replicas),
            "processor": (old.processor, new.processor),
            "admission": (old.admission, new.admission),
            "priority": (old.priority, new.priority),
            "front": (old.front is not None, new.front is not None),
            "front.request": (before.request, after.request),
            "front.reply": (before.reply, after.reply),
            "front.holds": (before.holds, after.holds),
            "think": (old.think, new.think),
        },
    )
    for before_it, after_it in (
        (_setup_values(old.setup), _setup_values(new.setup)),
        (_dependence_values(old.load_dependence), _dependence_values(new.load_dependence)),
    ):
        fields = dict.fromkeys((*before_it, *after_it))
        yield from _fields(where, {f: (before_it.get(f), after_it.get(f)) for f in fields})


def _setup_values(setup: Setup | None) -> dict[str, Value]:
    """Return everything a set-up says, by what it is called in a list of differences."""
    if setup is None:
        return {"setup": False}
    values: dict[str, Value] = {"setup": True, "setup.by_thread": setup.by_thread}
    for name in ("gaps", "worker", "core"):
        values[f"setup.{name}"] = _numbers(getattr(setup, name))
    for name in ("demands", "delays"):
        for key, (worker, core) in getattr(setup, name).items():
            values[f"setup.{name} of {key!r} (worker)"] = worker
            values[f"setup.{name} of {key!r} (core)"] = core
    return values


def _dependence_values(dependence: LoadDependence | None) -> dict[str, Value]:
    """Return everything a load dependence says, by what it is called in a list of differences."""
    if dependence is None:
        return {"load_dependence": False}
    values: dict[str, Value] = {
        "load_dependence": True,
        "load_dependence.rates": _numbers(dependence.rates),
        "load_dependence.by_thread": dependence.by_thread,
        "load_dependence.above": dependence.above,
    }
    for name in ("demands", "delays"):
        for key, extra in getattr(dependence, name).items():
            values[f"load_dependence.{name} of {key!r}"] = _numbers(extra)
    return values


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _entry(old: Entry, new: Entry, where: str) -> Iterator[Change]:
    yield from _fields(
        where,
        {
            "start": (old.start, new.start),
            "arrivals": (old.arrivals, new.arrivals),
            "priority": (old.priority, new.priority),
            "token": (old.token, new.token),
            "waits": (old.waits, new.waits),
        },
    )
    if old.fingerprint and new.fingerprint and old.fingerprint != new.fingerprint:
        yield Change("changed", where, "source", old.fingerprint, new.fingerprint)
    changes: list[Change] = []
    before, after = ({f"{f.task}.{f.entry}": f.probability for f in side.forwards} for side in (old, new))
    for spot, odds in _pairs(before, after, f"{where}.forwards", changes):
        changes += _fields(spot, {"probability": odds})
    arcs, others = ({_arc_label(p): p for p in side.precedences} for side in (old, new))
    for spot, both in _pairs(arcs, others, f"{where}.precedences", changes):
        changes += _precedence(*both, spot)
    yield from changes


def _arc_label(arc: Precedence) -> str:
    """Name an arc by its ends; the order of those that are merged or chosen from means nothing."""
    post = sorted(arc.post) if arc.fork == "or" else arc.post
    return f"{' + '.join(sorted(arc.pre))} -> {' + '.join(post)}"


def _precedence(old: Precedence, new: Precedence, where: str) -> Iterator[Change]:
    values: dict[str, tuple[Value, Value]] = {
        "join": (old.join, new.join),
        "fork": (old.fork, new.fork),
        "quorum": (old.quorum, new.quorum),
        "first": (old.first, new.first),
        "limit": (old.limit, new.limit),
    }
    if old.fork == new.fork == "or":
        odds = [dict(zip(p.post, p.probabilities or (), strict=False)) for p in (old, new)]
        for name in old.post:
            values[f"probability of {name!r}"] = (odds[0].get(name), odds[1].get(name))
    if old.repeats and old.fork == new.fork:
        what = "count" if old.fork == "loop" else "width"
        counts = [dict(zip(p.bodies, p.counts, strict=True)) for p in (old, new)]
        for name in old.post:
            values[f"{what} of {name!r}"] = (counts[0].get(name), counts[1].get(name))
    yield from _fields(where, values)


def _activity(old: Activity, new: Activity, where: str) -> Iterator[Change]:
    yield from _fields(
        where,
        {
            "demand": (old.demand, new.demand),
            "delay": (old.delay, new.delay),
            "interleaved": (old.interleaved, new.interleaved),
            "replies": (old.replies, new.replies),
            "detached": (old.detached, new.detached),
        },
    )
    before, after = _labelled(old.calls), _labelled(new.calls)
    changes: list[Change] = []
    for spot, calls in _pairs(before, after, f"{where}.calls", changes):
        changes += _fields(spot, {"count": (calls[0].count, calls[1].count)})
    yield from changes
    if not changes and list(before) != list(after) and not (old.interleaved and new.interleaved):
        yield Change("changed", where, "order of calls", ", ".join(before), ", ".join(after))


def _labelled(calls: tuple[Call, ...]) -> dict[str, Call]:
    """Name calls by target and kind, and those that are made twice by their number."""
    seen: Counter[str] = Counter()
    result = {}
    for call in calls:
        label = f"{call.task}.{call.entry}" + ("" if call.kind == "synchronous" else f" ({call.kind})")
        seen[label] += 1
        result[label if seen[label] == 1 else f"{label} #{seen[label]}"] = call
    return result
