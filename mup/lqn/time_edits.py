"""Edits of the mean demand or delay of an activity, or of a whole entry.

An activity is spelt ``TASK/entry:ACTIVITY`` and an entry ``TASK/entry``, as results name them
(``A/epA/:comp_8``, ``db.qry``). The shape of a distribution stays, only its mean changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Literal

from mup.errors import UsageError, did_you_mean
from mup.lqn.distributions import Distribution, Exponential, rescaled
from mup.lqn.model import Activity, Entry, Model, Task
from mup.lqn.refs import Names, WorkNames
from mup.lqn.routing_edits import place_of
from mup.lqn.visits import activity_visits

__all__ = ["TimeKind", "mean_time", "with_scaled_time", "with_time"]

TimeKind = Literal["demand", "delay"]


def mean_time(model: Model, kind: TimeKind, name: str) -> float | None:
    """Return the mean demand or delay of an activity, or of an entry per request; None if never measured.

    Args:
        model: The model to look into.
        kind: Processor time, or time that passes without using the processor; seconds.
        name: Of the activity or entry.

    Raises:
        UsageError: There is no such place.
        UncalibratedError: How often the activities of an entry run was never measured.
    """
    _, entry, activities = _activities(model, name)
    times = [getattr(a, kind) for a in activities]
    if any(t is None for t in times):
        return None
    if len(activities) == 1 and len(entry.activities) > 1:
        return float(times[0].mean)
    visits = activity_visits(entry)
    return math.fsum(visits[a.name] * t.mean for a, t in zip(activities, times, strict=True))


def with_time(model: Model, kind: TimeKind, name: str, seconds: float) -> Model:
    """Return the model with another mean demand or delay of an activity or entry.

    All activities of an entry are scaled by the same factor. A time that was unknown, or 0 where a factor
    has nothing to scale, becomes exponential: that is possible for single activities, and for entries that
    consist of one.

    Args:
        model: The model to change.
        kind: ``demand`` or ``delay``.
        name: Of the activity or entry.
        seconds: Its new mean, of an entry per request.

    Raises:
        UsageError: The time is no number of seconds >= 0, there is no such place, or an entry of several
            activities has no time to scale.
        UncalibratedError: How often the activities of an entry run was never measured.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise UsageError(f"{kind} of {name!r} must be a number of seconds >= 0, got {seconds!r}")
    task, entry, activities = _activities(model, name)
    now = mean_time(model, kind, name)
    changed: dict[str, Distribution] = {}
    if now:
        changed = {a.name: rescaled(getattr(a, kind), seconds / now) for a in activities}
    elif len(activities) == 1:
        runs = activity_visits(entry)[activities[0].name] if len(entry.activities) == 1 else 1.0
        changed = {activities[0].name: Exponential(seconds / runs)}
    elif now is None or seconds > 0:
        raise UsageError(
            f"the {kind} of {name!r} is {'unknown' if now is None else '0'}, so which of its "
            f"{len(activities)} activities takes how much of {seconds:g} s is unknown",
            hint=f"name one of them: {name}:{activities[0].name}",
        )
    found = tuple(
        replace(a, **{kind: changed[a.name]}) if a.name in changed else a  # type: ignore[arg-type]
        for a in entry.activities
    )
    entries = tuple(replace(e, activities=found) if e.name == entry.name else e for e in task.entries)
    return model.with_task(replace(task, entries=entries))


def with_scaled_time(model: Model, kinds: Sequence[TimeKind], name: str, factor: float) -> Model:
    """Return the model with times of an activity or entry that are so many times as long.

    What caches and sleep add to these times (``load_dependence``, ``setup``) is scaled with them. Unlike
    other edits this one depends on the value there is: done twice, it scales twice.

    Args:
        model: The model to change.
        kinds: Which times.
        name: Of the activity or entry.
        factor: >= 0.

    Raises:
        UsageError: The factor is out of range, there is no such place, or nothing there to scale.
    """
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor < math.inf:
        raise UsageError(f"the factor on the {' and '.join(kinds)} of {name!r} must be >= 0, got {factor!r}")
    task, entry, activities = _activities(model, name)
    known = [time.mean for a in activities for kind in kinds if (time := getattr(a, kind)) is not None]
    if not any(known):
        raise UsageError(
            f"{name!r} has no {' or '.join(kinds)} to scale: it is {'0' if known else 'unknown'}",
            hint="set it in seconds instead",
        )
    names = {a.name for a in activities}

    def scaled(old: Activity) -> Activity:
        times = {kind: getattr(old, kind) for kind in kinds}
        new = {kind: rescaled(time, factor) for kind, time in times.items() if time is not None}
        return replace(old, **new)  # type: ignore[arg-type]

    found = tuple(scaled(a) if a.name in names else a for a in entry.activities)
    entries = tuple(replace(e, activities=found) if e.name == entry.name else e for e in task.entries)
    texts = WorkNames(task.entries).texts
    works = {texts[entry.name, a] for a in names}
    load_dependence, setup = task.load_dependence, task.setup
    for kind in kinds:
        field = f"{kind}s"
        if load_dependence is not None:
            extra = _scaled_works(getattr(load_dependence, field), works, factor)
            load_dependence = replace(load_dependence, **{field: extra})  # type: ignore[arg-type]
        if setup is not None:
            extra = _scaled_works(getattr(setup, field), works, factor)
            setup = replace(setup, **{field: extra})  # type: ignore[arg-type]
    return model.with_task(replace(task, entries=entries, load_dependence=load_dependence, setup=setup))


def _scaled_works(
    seconds: Mapping[str, tuple[float, ...]], works: AbstractSet[str], factor: float
) -> dict[str, tuple[float, ...]]:
    return {
        key: tuple(factor * value for value in values) if key in works else values
        for key, values in seconds.items()
    }


def _activities(model: Model, name: str) -> tuple[Task, Entry, tuple[Activity, ...]]:
    """Return what a name stands for: an entry's activities, or one of them."""
    names = Names(model.tasks)
    ref = names.spoken_entry(name)
    if ref is not None:
        task = model.task(ref.task)
        entry = task.entry(ref.entry)
        return task, entry, entry.activities
    if ":" in name:
        place = place_of(model, name)
        return place.task, place.entry, (place.activity,)
    raise UsageError(f"no entry {name!r}; {did_you_mean(name, list(names.entries.values()))}")
