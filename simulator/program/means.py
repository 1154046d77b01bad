"""What does one cycle of a source of load add up to, whatever waits for what?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mup.lqn.distributions import Distribution
from mup.lqn.model import Model, Task
from mup.lqn.visits import EntryKey, activity_visits
from simulator.program.servers import speeds_of
from simulator.program.tables import Nominal, ServerSpec

__all__ = ["nominal_of"]


def nominal_of(
    model: Model, source: Task, rates: Mapping[EntryKey, float], servers: Sequence[ServerSpec]
) -> Nominal:
    """Add up one cycle of a source of load over everything it calls.

    Args:
        model: Calibrated where the source gets to.
        source: The reference task, or the task whose entry has arrivals.
        rates: Requests to each entry per cycle.
        servers: Of the model.
    """
    tasks = {t.name: t for t in model.tasks}
    speeds = speeds_of(model)
    think = source.think.mean if source.think is not None else 0.0
    total = think
    demand = dict.fromkeys((s.name for s in servers), 0.0)
    for (name, entry_name), requests in rates.items():
        task = tasks[name]
        entry = task.entry(entry_name)
        works: list[tuple[float, Distribution | None, str | None]] = []
        if task.front is not None:
            home = model.front_processor(task)
            works += [(requests, task.front.request, home), (requests, task.front.reply, home)]
        visits = activity_visits(entry)
        for activity in entry.activities:
            times = requests * visits[activity.name]
            if times == 0:
                continue
            works.append((times, activity.demand, task.processor))
            pause = times * activity.delay.mean if activity.delay is not None else 0.0
            total += pause
            if activity.kind == "think" and task.is_reference:
                think += pause
        for times, distribution, place in works:
            if distribution is None:
                continue
            busy = times * distribution.mean / speeds.get(place or "", 1.0)
            total += busy
            processor = place
            while processor in demand:
                # Whatever keeps a part busy keeps the processor it is a part of busy, too.
                demand[processor] += busy * model.processor(processor).speed
                processor = model.processor(processor).parent
    # A request takes any replica, so copies get equal shares.
    return Nominal(think, tuple(demand[s.name] / s.copies for s in servers), total)
