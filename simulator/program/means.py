"""Sums over one cycle of a source of load, waiting excluded."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence

from mup.lqn.distributions import Distribution
from mup.lqn.lowered import EntryKey, FanOut, Fork, Graph, Lowered, has_front, machines, measured, speeds_of
from mup.lqn.model import Entry, Task
from simulator.program.tables import Nominal, ServerSpec

__all__ = ["nominal_of"]


def nominal_of(
    lowered: Lowered,
    source: Task,
    rates: Mapping[EntryKey, float],
    servers: Sequence[ServerSpec],
    entries: Iterable[EntryKey],
) -> Nominal:
    """Add up one cycle of a source of load over everything it calls.

    Args:
        lowered: A model that is calibrated where the source gets to.
        source: The reference task, or the task whose entry has arrivals.
        rates: Requests to each entry per cycle.
        servers: Of the model.
        entries: Of the model, in order of their indices.
    """
    model = lowered.model
    speeds = speeds_of(model)
    think = source.think.mean if source.think is not None else 0.0
    total = think
    demand = dict.fromkeys((s.name for s in servers), 0.0)
    for (name, entry_name), requests in rates.items():
        task, entry = lowered.target(name, entry_name)
        works: list[tuple[float, Distribution | None, str | None]] = []
        if task.front is not None and has_front(task):
            home = model.front_processor(task)
            works += [(requests, task.front.request, home), (requests, task.front.reply, home)]
        visits = lowered.graph(name, entry_name).visits
        for activity in entry.activities:
            times = requests * visits.get(activity.name, 0.0)
            if times == 0:
                continue
            works.append((times, activity.demand, task.processor))
            pause = times * measured(activity.delay).mean
            total += pause
            if activity.kind == "think" and task.is_reference:
                think += pause
        for times, distribution, place in works:
            busy = times * measured(distribution).mean / speeds.get(place or "", 1.0)
            total += busy
            # What keeps a part busy keeps the processor it is a part of busy, too.
            for machine in machines(model, place) if place in demand else ():
                demand[machine.name] += busy * machine.speed
    # A request takes any replica, so copies get equal shares.
    return Nominal(
        think,
        tuple(demand[s.name] / s.copies for s in servers),
        total,
        tuple(rates.get(key, 0.0) for key in entries),
        tuple(_held(lowered, task, rates, demand) for task in model.tasks),
        branched=source.is_reference and any(_thinks_in_branches(lowered, source, e) for e in source.entries),
    )


def _thinks_in_branches(lowered: Lowered, source: Task, entry: Entry) -> bool:
    """Tell whether a scenario has both branches and activities that are think time."""
    thinks = any(activity.kind == "think" for activity in entry.activities)
    return thinks and _has_branches(lowered.graph(source.name, entry.name))


def _has_branches(graph: Graph) -> bool:
    return bool(graph.joins) or any(isinstance(arc.then, Fork | FanOut) for arc in graph.after.values())


def _held(lowered: Lowered, task: Task, rates: Mapping[EntryKey, float], limited: Container[str]) -> float:
    """Return how long threads of a task are held per cycle, from the first activity to the last.

    Infinite if that depends on more than its own times: on a processor, a call, a branch, or sleep.
    """
    if task.is_reference or task.setup is not None:
        return math.inf
    held = 0.0
    for entry in task.entries:
        requests = rates.get((task.name, entry.name), 0.0)
        if not requests:
            continue
        graph = lowered.graph(task.name, entry.name)
        if _has_branches(graph):
            return math.inf
        for activity in entry.activities:
            times = requests * graph.visits.get(activity.name, 0.0)
            if times == 0:
                continue
            demand = measured(activity.demand).mean
            if activity.calls or (demand and task.processor in limited):
                return math.inf
            speed = speeds_of(lowered.model).get(task.processor or "", 1.0)
            held += times * (demand / speed + measured(activity.delay).mean)
    return held
