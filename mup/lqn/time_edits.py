"""Edits of the mean demand or delay of an activity, or of a whole entry.

An activity is spelt ``TASK/entry:ACTIVITY`` and an entry ``TASK/entry``, as results name them
(``A/epA/:comp_8``, ``db.qry``). The shape of a distribution stays, only its mean changes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from mup.errors import UsageError, did_you_mean
from mup.lqn.distributions import Distribution, Exponential, rescaled
from mup.lqn.model import Activity, Entry, Model, Task
from mup.lqn.refs import Names
from mup.lqn.routing_edits import place_of
from mup.lqn.visits import activity_visits

__all__ = ["TimeKind", "mean_time", "with_time"]

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
