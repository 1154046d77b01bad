"""Which models differ from another one by numbers alone, and by which?

Edits make a model, and a model checks all its rules. A planner asks for thousands that differ in numbers, so
these are edited without their entries: in a *skeleton*, whose tasks do nothing, but have what edits look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from mup.errors import MupError
from mup.lqn.distributions import Constant
from mup.lqn.model import Activity, Entry, Model, Processor, Task

__all__ = ["Candidate", "Change", "Skeleton", "candidate_of"]

NUMBERS: Final = frozenset(("clients", "think", "pool", "admission", "replicas", "cores", "speed", "place"))
"""Kinds of changes that look at tasks and processors alone, and at what clients do."""
NOTHING: Final = Constant(0.0)


class Change(Protocol):
    """An edit, such as ``simulator.studies.whatif.Change``."""

    @property
    def kind(self) -> str:
        """What is changed: one of ``simulator.studies.whatif.KINDS``."""

    def apply(self, model: Model) -> Model:
        """Return the changed model."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Tasks and processors of a model whose requests flow as in another one.

    Attributes:
        tasks, processors: In the same order.
        origin: The model that is changed.
        changes: What makes the candidate of it.
    """

    tasks: tuple[Task, ...]
    processors: tuple[Processor, ...]
    origin: Model
    changes: tuple[Change, ...] = ()

    def model(self) -> Model:
        """Return the whole model, with all rules checked."""
        changed = self.origin
        for change in self.changes:
            changed = change.apply(changed)
        return changed


class Skeleton:
    """A model without its flows.

    Args:
        model: The model; its tasks keep their names, numbers and places.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._bare: Model | None
        try:
            self._bare = Model(
                name=model.name, processors=model.processors, tasks=tuple(map(_bare, model.tasks))
            )
        except MupError:
            # A rule about what has been left out. Such a model is edited as a whole.
            self._bare = None

    def changed(self, changes: Iterable[Change]) -> Candidate | None:
        """Return the model under some changes; None if they change more than numbers.

        Raises:
            UsageError: A value is out of range, or a name unknown.
        """
        all_changes = tuple(changes)
        if self._bare is None or not all(change.kind in NUMBERS for change in all_changes):
            return None
        bare = self._bare
        for change in all_changes:
            bare = change.apply(bare)
        tasks = [
            whole if after is before else _filled(whole, before, after)
            for whole, before, after in zip(self._model.tasks, self._bare.tasks, bare.tasks, strict=True)
        ]
        return Candidate(tuple(tasks), bare.processors, self._model, all_changes)


def candidate_of(model: Model, other: Model) -> Candidate | None:
    """Return a model as one whose requests flow as in another one; None if they do not."""
    same = [t.name for t in model.tasks] == [t.name for t in other.tasks]
    same = same and [p.name for p in model.processors] == [p.name for p in other.processors]
    if not same or not all(map(_flows_alike, model.tasks, other.tasks)):
        return None
    return Candidate(model.tasks, model.processors, model)


def _bare(task: Task) -> Task:
    """Return a task whose entries make no calls; clients keep their steps, among which are think times."""
    entries = tuple(map(_quiet, task.entries)) if task.is_reference else tuple(map(_empty, task.entries[:1]))
    return replace(task, entries=entries, front=None, load_dependence=None, setup=None)


def _quiet(entry: Entry) -> Entry:
    activities = tuple(replace(a, calls=(), interleaved=False) if a.calls else a for a in entry.activities)
    return replace(entry, activities=activities, forwards=())


def _empty(entry: Entry) -> Entry:
    nothing = Activity(name=entry.start, demand=NOTHING, delay=NOTHING)
    return Entry(name=entry.name, start=entry.start, activities=(nothing,))


def _filled(whole: Task, before: Task, after: Task) -> Task:
    """Return a whole task with what was changed of its skeleton."""
    entries = whole.entries
    if after.entries is not before.entries:
        entries = tuple(map(_entry, whole.entries, before.entries, after.entries))
    return replace(
        whole,
        threads=after.threads,
        replicas=after.replicas,
        processor=after.processor,
        admission=after.admission,
        think=after.think,
        entries=entries,
    )


def _entry(whole: Entry, before: Entry, after: Entry) -> Entry:
    if after is before:
        return whole
    steps = zip(whole.activities, before.activities, after.activities, strict=False)
    changed = {
        step.name: new.delay for step, old, new in steps if new is not old and new.delay is not old.delay
    }
    activities = tuple(
        replace(step, delay=changed[step.name]) if step.name in changed else step for step in whole.activities
    )
    return replace(whole, activities=activities)


def _flows_alike(task: Task, other: Task) -> bool:
    if task is other:
        return True
    if (task.role, task.front is None, task.priority) != (other.role, other.front is None, other.priority):
        return False
    if task.entries is other.entries:
        return True
    return len(task.entries) == len(other.entries) and all(map(_same_flow, task.entries, other.entries))


def _same_flow(entry: Entry, other: Entry) -> bool:
    return entry is other or (
        _shape(entry) == _shape(other) and _same_steps(entry.activities, other.activities)
    )


def _shape(entry: Entry) -> tuple[Any, ...]:
    """Return what an entry has beside its steps."""
    open_ = entry.arrivals is not None
    return (
        entry.name,
        entry.start,
        entry.precedences,
        entry.forwards,
        open_,
        entry.priority,
        entry.token,
        entry.waits,
    )


def _same_steps(steps: Sequence[Activity], others: Sequence[Activity]) -> bool:
    def shape(step: Activity) -> tuple[Any, ...]:
        return step.name, step.kind, step.calls, step.interleaved, step.replies, step.calibrated

    return len(steps) == len(others) and all(map(lambda a, b: a is b or shape(a) == shape(b), steps, others))
