"""The part of a model that is drawn when the whole is too big: a task with its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mup.errors import ModelError
from mup.lqn.drawing.layout import is_folded
from mup.lqn.model import Entry, Model, Task

__all__ = ["MAX_DRAWN", "around", "check_size", "is_drawable"]

MAX_DRAWN: Final = 1000
"""Entries and tasks in a picture, at most. Arrows that pass the rows between make it grow with the square of
that: one of 10^4 tasks would have hundreds of megabytes, and none of its arrows could be followed."""

Place = tuple[str, str]


def is_drawable(model: Model) -> bool:
    """Tell whether a model is small enough for a picture."""
    return sum(1 if is_folded(task) else 1 + len(task.entries) for task in model.tasks) <= MAX_DRAWN


def check_size(model: Model, *, around: bool = False) -> None:
    """Refuse a model that is too big for a picture, or that part of one ``around`` a task.

    Raises:
        ModelError: It has more than ``MAX_DRAWN`` tasks and entries.
    """
    if is_drawable(model):
        return
    entries = sum(len(task.entries) for task in model.tasks)
    raise ModelError(
        f"{len(model.tasks)} tasks with {entries} entries are too many for a picture:"
        f" at most {MAX_DRAWN} in all",
        where=model.name,
        hint="draw the surroundings of a task with fewer callers"
        if around
        else "draw the surroundings of one task with --around TASK, or count with 'mup stats'",
    )


def around(model: Model, name: str) -> Model:
    """Return a task with those that call it and those it calls, and of their entries those that take part.

    Calls to anything else are left out, and so is what does not show in a picture.

    Raises:
        ModelError: There is no such task; the message suggests the closest name.
    """
    center = model.task(name)
    kept: set[Place] = {(name, entry.name) for entry in center.entries}
    kept |= {target for entry in center.entries for target in _targets(entry)}
    own = {entry.name for entry in center.entries}
    kept |= {
        (task.name, entry.name)
        for task in model.tasks
        for entry in task.entries
        if any(target == name and called in own for target, called in _targets(entry))
    }
    tasks = tuple(_reduced(task, kept, name) for task in model.tasks if any(_parts(task, kept)))
    used: set[str] = set()
    for task in tasks:
        place = task.processor
        while place is not None and place not in used:
            used.add(place)
            place = model.processor(place).parent
    processors = tuple(p for p in model.processors if p.name in used)
    return Model(name=f"{name} of {model.name}", processors=processors, tasks=tasks)


def _targets(entry: Entry) -> Iterator[Place]:
    """Yield what an entry calls or hands requests on to."""
    for activity in entry.activities:
        for call in activity.calls:
            yield call.task, call.entry
    for forward in entry.forwards:
        yield forward.task, forward.entry


def _parts(task: Task, kept: set[Place]) -> list[Entry]:
    """Return the entries of a task that are drawn: those of a semaphore or lock all together."""
    found = [entry for entry in task.entries if (task.name, entry.name) in kept]
    return list(task.entries) if found and any(entry.token for entry in task.entries) else found


def _reduced(task: Task, kept: set[Place], center: str) -> Task:
    """Return a task with the entries that take part, and of their calls those to or from the center."""

    def drawn(target: Place) -> bool:
        return target in kept and center in (task.name, target[0])

    entries = tuple(
        replace(
            entry,
            activities=tuple(
                replace(activity, calls=tuple(c for c in activity.calls if drawn((c.task, c.entry))))
                for activity in entry.activities
            ),
            forwards=tuple(f for f in entry.forwards if drawn((f.task, f.entry))),
        )
        for entry in _parts(task, kept)
    )
    return replace(task, entries=entries, load_dependence=None, setup=None)
