"""Times of a layered queueing network to be learned, and their way back into the model.

Times that are null in the model are unknown. If none is (an ``lqnx`` file has no null), all positive times
are learned and the file's numbers only count as structure. Where both the demand and the delay of an activity
are null, the demand is learned and the delay is 0: no queue length tells one from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from mup.errors import UsageError
from mup.lqn.distributions import Constant, Distribution, Exponential
from mup.lqn.model import Activity, Model, Task
from simulator.networks.inlined import TimeKey

__all__ = ["Unknowns", "find_unknowns", "with_means", "with_times"]

PLACEHOLDER = Exponential(0.1)
"""Where a number is needed before it is known; only its family matters."""


@dataclass(frozen=True, slots=True)
class Unknowns:
    """A model that can be inlined, and what is to be learned of it.

    Attributes:
        model: Unknown times have placeholders.
        keys: The unknown times, reachable or not.
        all: All positive times of the model, because none was null.
    """

    model: Model
    keys: frozenset[TimeKey]
    all: bool


def find_unknowns(model: Model) -> Unknowns:
    """Find the unknown times and put placeholders in their places.

    Raises:
        UsageError: The model has no positive time at all.
    """
    keys = {
        TimeKey(task.name, entry.name, activity.name, kind)
        for task, entry, activity in model.walk()
        for kind in _unknown(activity)
    }
    if keys:
        tasks = tuple(_filled(task) for task in model.tasks)
        return Unknowns(replace(model, tasks=tasks, uncertainty=None), frozenset(keys), all=False)
    keys = {
        TimeKey(task.name, entry.name, activity.name, kind)
        for task, entry, activity in model.walk()
        for kind, time in (("demand", activity.demand), ("delay", activity.delay))
        if time is not None and time.mean > 0
    }
    keys |= {
        TimeKey(t.name, t.entries[0].name, "", "think")
        for t in model.reference_tasks
        if t.think is not None and t.think.mean > 0
    }
    if not keys:
        raise UsageError(
            "no time of the model is unknown, and none is positive: there is nothing to learn",
            where=model.name,
            hint="write null for the demands to be learned",
        )
    return Unknowns(replace(model, uncertainty=None), frozenset(keys), all=True)


def with_means(model: Model, means: Mapping[TimeKey, float]) -> Model:
    """Return the model with other means, in seconds; a time that was null becomes exponential."""
    return _changed(model, means, lambda key, time: _scaled(time, means[key]))


def with_times(model: Model, times: Mapping[TimeKey, Distribution]) -> Model:
    """Return the model with other times."""
    return _changed(model, times, lambda key, _: times[key])


Change = Callable[[TimeKey, Distribution | None], Distribution]


def _changed(model: Model, keys: Collection[TimeKey], change: Change) -> Model:
    tasks = []
    for task in model.tasks:
        think = task.think
        key = TimeKey(task.name, task.entries[0].name, "", "think") if task.is_reference else None
        if think is not None and key is not None and key in keys:
            think = change(key, think)
        entries = tuple(
            replace(
                entry,
                activities=tuple(
                    _with_times(a, TimeKey(task.name, entry.name, a.name, ""), keys, change)
                    for a in entry.activities
                ),
            )
            for entry in task.entries
        )
        tasks.append(replace(task, think=think, entries=entries))
    return replace(model, tasks=tuple(tasks), uncertainty=None)


def _unknown(activity: Activity) -> Iterable[str]:
    if activity.demand is None:
        yield "demand"
    elif activity.delay is None:
        yield "delay"


def _filled(task: Task) -> Task:
    def fill(activity: Activity) -> Activity:
        if activity.demand is None:
            return replace(activity, demand=PLACEHOLDER, delay=activity.delay or Constant(0.0))
        return replace(activity, delay=activity.delay or PLACEHOLDER)

    entries = tuple(replace(e, activities=tuple(map(fill, e.activities))) for e in task.entries)
    return replace(task, entries=entries)


def _with_times(activity: Activity, place: TimeKey, keys: Collection[TimeKey], change: Change) -> Activity:
    demand, delay = activity.demand, activity.delay
    of_demand, of_delay = place._replace(time="demand"), place._replace(time="delay")
    if of_demand in keys:
        demand = change(of_demand, demand)
        delay = delay or Constant(0.0)
    if of_delay in keys:
        delay = change(of_delay, delay)
    return replace(activity, demand=demand, delay=delay)


def _scaled(time: Distribution | None, mean: float) -> Distribution:
    return Exponential(mean) if time is None else time.scaled(mean / time.mean)
