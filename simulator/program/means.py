"""What does one cycle of a source of load add up to, whatever waits for what?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mup.lqn.distributions import Distribution
from mup.lqn.lowered import EntryKey, Lowered, has_front, machines, measured, speeds_of
from mup.lqn.model import Task
from simulator.program.tables import Nominal, ServerSpec

__all__ = ["nominal_of"]


def nominal_of(
    lowered: Lowered, source: Task, rates: Mapping[EntryKey, float], servers: Sequence[ServerSpec]
) -> Nominal:
    """Add up one cycle of a source of load over everything it calls.

    Args:
        lowered: A model that is calibrated where the source gets to.
        source: The reference task, or the task whose entry has arrivals.
        rates: Requests to each entry per cycle.
        servers: Of the model.
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
    return Nominal(think, tuple(demand[s.name] / s.copies for s in servers), total)
