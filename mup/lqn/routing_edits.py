"""Edits of what happens inside an entry: requests take another path, call more often, or fan out wider.

A place is spelt ``TASK/entry:ACTIVITY``, with the entry as results name it (``A/epA/:comp_8``,
``db.qry:read``); a call from there ``TASK/entry:ACTIVITY->TARGET``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Final

from mup.errors import ModelError, UsageError, did_you_mean
from mup.lqn.distributions import Constant, Distribution, Empirical, Geometric
from mup.lqn.model import Activity, Call, Entry, Model, Task
from mup.lqn.refs import ActivityRef, Names

__all__ = [
    "Place",
    "place_of",
    "probability_of",
    "with_count",
    "with_even_odds",
    "with_probability",
    "with_width",
]

WIDTH: Final = re.compile(r"(constant|geometric|empirical)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Place:
    """An activity and what it belongs to."""

    task: Task
    entry: Entry
    activity: Activity


def with_probability(model: Model, branch: str, probability: float) -> Model:
    """Return the model with another probability of one branch of an OR; the others keep their ratios.

    Args:
        model: The model to change.
        branch: ``TASK/entry:ACTIVITY``, the activity that the branch starts with.
        probability: Between 0 and 1.

    Raises:
        UsageError: The probability is out of range, no branch starts there, or how the others share the
            rest is not known.
    """
    if isinstance(probability, bool) or not isinstance(probability, int | float) or not 0 <= probability <= 1:
        raise UsageError(f"probability of {branch!r} must be between 0 and 1, got {probability!r}")
    place = place_of(model, branch)
    entry = place.entry
    for index, precedence in enumerate(entry.precedences):
        if precedence.fork == "or" and place.activity.name in precedence.post:
            chosen = precedence.post.index(place.activity.name)
            odds = _shared(branch, precedence.probabilities, len(precedence.post), chosen, probability)
            changed = list(entry.precedences)
            changed[index] = replace(precedence, probabilities=odds)
            return _with_entry(model, place.task, replace(entry, precedences=tuple(changed)))
    starts = [name for p in entry.precedences if p.fork == "or" for name in p.post]
    raise UsageError(
        f"{place.activity.name!r} is not the start of a branch of an OR;"
        f" {did_you_mean(place.activity.name, starts)}"
    )


def with_even_odds(model: Model) -> Model:
    """Return the model with equal probabilities for the branches of every OR of which none is known."""

    def entry(old: Entry) -> Entry:
        arcs = (
            replace(p, probabilities=(1 / len(p.post),) * len(p.post))
            if p.fork == "or" and p.probabilities is None
            else p
            for p in old.precedences
        )
        return replace(old, precedences=tuple(arcs))

    tasks = (replace(task, entries=tuple(map(entry, task.entries))) for task in model.tasks)
    return replace(model, tasks=tuple(tasks))


def probability_of(model: Model, branch: str) -> float | None:
    """Return the probability of one branch of an OR; None if it was never measured.

    Args:
        model: The model to read.
        branch: ``TASK/entry:ACTIVITY``, the activity that the branch starts with.

    Raises:
        UsageError: No branch starts there.
    """
    place = place_of(model, branch)
    for precedence in place.entry.precedences:
        if precedence.fork == "or" and place.activity.name in precedence.post:
            odds = precedence.probabilities
            return None if odds is None else odds[precedence.post.index(place.activity.name)]
    raise UsageError(f"{branch!r} is not the start of a branch of an OR")


def _shared(
    branch: str, now: tuple[float, ...] | None, size: int, chosen: int, probability: float
) -> tuple[float, ...]:
    """Return the probabilities with one of them set and the rest shared as before."""
    if size == 1 and probability != 1:
        raise UsageError(f"{branch!r} is the only branch, its probability is 1, got {probability!r}")
    others = [0.0 if i == chosen or now is None else now[i] for i in range(size)]
    if size == 2:
        others[1 - chosen] = 1.0
    elif now is None:
        raise UsageError(
            f"the probabilities beside {branch!r} were never measured, so how they share the rest is unknown",
            hint="set them in the model file",
        )
    total = math.fsum(others)
    if total == 0 and probability < 1:
        raise UsageError(
            f"all branches beside {branch!r} have probability 0, so how they share the rest is unknown",
            hint="set the probability of the branch that is to get the rest instead",
        )
    return tuple(
        probability if i == chosen else p / total * (1 - probability) if total else 0.0
        for i, p in enumerate(others)
    )


def with_count(model: Model, call: str, count: float) -> Model:
    """Return the model with another mean number of calls at one call site.

    A geometric count stays geometric, any other becomes constant.

    Args:
        model: The model to change.
        call: ``TASK/entry:ACTIVITY->TARGET``; the target as results name it, or its task if that is clear.
        count: Mean number of calls each time the activity runs; whole unless it is geometric.

    Raises:
        UsageError: The count is out of range or not whole, or there is no such call.
    """
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count < math.inf:
        raise UsageError(f"count of {call!r} must be a number >= 0, got {count!r}")
    ref = Names(model.tasks).spoken_call(call)
    place = _place(model, ref.caller)
    calls = place.activity.calls
    found = [i for i, c in enumerate(calls) if (c.task, c.entry) == ref.target]
    if len(found) != 1:
        raise UsageError(
            f"{call!r} is {len(found)} calls of the same activity, and only one can be changed",
            hint="make them one call in the model file",
        )
    changed = list(calls)
    changed[found[0]] = replace(calls[found[0]], count=_count(calls[found[0]], call, count))
    activity = replace(place.activity, calls=tuple(changed))
    activities = tuple(activity if a.name == activity.name else a for a in place.entry.activities)
    return _with_entry(model, place.task, replace(place.entry, activities=activities))


def _count(call: Call, label: str, count: float) -> Distribution:
    if isinstance(call.count, Geometric):
        return Geometric(count)
    if count != math.floor(count):
        raise UsageError(
            f"count of {label!r} must be a whole number, got {count!r}",
            hint="only a geometric count has any mean",
        )
    return Constant(count)


def with_width(model: Model, fan_out: str, width: float | str) -> Model:
    """Return the model with another width of a fan-out.

    Args:
        model: The model to change.
        fan_out: ``TASK/entry:ACTIVITY``, the first activity of its branch, or the one in front of it.
        width: A mean (a geometric width stays geometric, any other becomes constant), or a distribution as
            text: ``constant(4)``, ``geometric(2.5)``, ``empirical(0,2,2,7)``.

    Raises:
        UsageError: There is no such fan-out, or the width is out of range or not spelt like that.
    """
    place = place_of(model, fan_out)
    arcs = list(place.entry.precedences)
    fans = [i for i, p in enumerate(arcs) if p.fork == "fan-out"]
    name = place.activity.name
    # One that begins a branch may stand in front of a fan-out in it: its own is meant.
    found = [i for i in fans if name in arcs[i].bodies] or [i for i in fans if name in arcs[i].pre]
    if not found:
        known = [n for i in fans for n in (*arcs[i].bodies, *arcs[i].pre)]
        raise UsageError(f"there is no fan-out at {name!r}; {did_you_mean(name, known)}")
    old = arcs[found[0]].counts[0]
    arcs[found[0]] = replace(arcs[found[0]], counts=(_width(width, old, fan_out),))
    try:
        return _with_entry(model, place.task, replace(place.entry, precedences=tuple(arcs)))
    except ModelError as error:
        raise UsageError(f"width of {fan_out!r}: {error.message}") from None


def _width(width: float | str, old: Distribution | None, label: str) -> Distribution:
    """Return a width as a distribution."""
    spelt = WIDTH.fullmatch(width.strip()) if isinstance(width, str) else None
    try:
        if spelt is not None:
            family, numbers = spelt[1], sorted(float(text) for text in spelt[2].split(","))
            if family == "empirical":
                return Empirical(tuple(numbers))
            (mean,) = numbers
            return Geometric(mean) if family == "geometric" else Constant(mean)
        mean = float(width)
        return Geometric(mean) if isinstance(old, Geometric) else Constant(mean)
    except (ValueError, ModelError):
        raise UsageError(
            f"width of {label!r} must be a number >= 0, constant(N), geometric(MEAN) or empirical(N,N,..),"
            f" got {width!r}"
        ) from None


def _with_entry(model: Model, task: Task, entry: Entry) -> Model:
    entries = tuple(entry if e.name == entry.name else e for e in task.entries)
    return model.with_task(replace(task, entries=entries))


def place_of(model: Model, text: str) -> Place:
    """Return what ``TASK/entry:ACTIVITY`` means.

    Raises:
        UsageError: There is no such entry or activity.
    """
    return _place(model, Names(model.tasks).spoken_activity(text))


def _place(model: Model, ref: ActivityRef) -> Place:
    task = model.task(ref.task)
    entry = task.entry(ref.entry)
    return Place(task, entry, entry.activity(ref.activity))
