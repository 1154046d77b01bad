"""Which deployments cannot do the work, whatever the rest is like? No simulation is needed to tell.

By the utilization law (Denning and Buzen, "The operational analysis of queueing network models", 1978) a
throughput of X cycles per second keeps X times the busy seconds of a cycle busy, and nothing is busy for more
than all its threads or cores. A cycle keeps a thread or core busy for at least as long as that of a client
who is alone in the largest deployment: waiting only adds. How many cycles there have to be follows from the
load: all that arrive, or by Little's law the clients divided by the longest cycle that the objectives allow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mup.lqn.edits import with_arrivals, with_clients
from mup.lqn.lowered import is_awaited, sources_of
from mup.lqn.model import Model
from mup.lqn.refs import ResourceRef
from simulator.api import simulate
from simulator.figures.result import Result
from simulator.machine.budget import Budget
from simulator.studies.planning.slo import PERCENTILES, Slo
from simulator.studies.whatif import utilizations

__all__ = ["Capacity", "alone", "needed_capacity"]

ALONE: Final = 0.02
"""Relative half-width that the figures of a single client reach."""
ALONE_EVENTS: Final = 300_000
RARELY: Final = 0.02
"""Share of the arrivals that come where hardly any of them meets another one."""
CERTAIN: Final = 0.97
"""Share of the busy seconds seen that there are for sure: they come from a simulation."""
LOADED: Final = 0.7
"""The same where processor times depend on the load: under load, code and data stay in caches."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a deployment must be able to do.

    Attributes:
        busy: Threads, or cores, that are busy on average at least, by task or processor.
    """

    busy: Mapping[ResourceRef, float]

    def lacking(self, model: Model) -> list[ResourceRef]:
        """Return what cannot be busy enough in a deployment; then it fails."""
        found = []
        for ref, busy in self.busy.items():
            if ref.kind == "task":
                task = model.task(ref.name)
                most = task.threads * task.replicas
            else:
                processor = model.processor(ref.name)
                most = processor.cores * processor.available
            if busy > most:
                found.append(ref)
        return found


def alone(model: Model, *, seed: int = 0, budget: Budget | None = None) -> Result | None:
    """Simulate one client, or hardly any arrivals; None if there are several sources of load.

    Raises:
        UncalibratedError, SimulationError: As ``simulate``.
    """
    sources = sources_of(model)
    if len(sources) != 1:
        return None
    (source,) = sources
    single = with_arrivals(model, RARELY * source.rate) if source.is_open else with_clients(model, 1)
    return simulate(single, precision=ALONE, seed=seed, max_events=ALONE_EVENTS, budget=budget)


def needed_capacity(model: Model, slos: Sequence[Slo], single: Result | None) -> Capacity:
    """Return what every deployment of a model needs to meet objectives, as far as that is known.

    Args:
        model: The largest deployment, with its load.
        slos: The objectives.
        single: What ``alone`` says of it.
    """
    cycles = None if single is None else _cycles(model, slos, single)
    if (
        single is None
        or cycles is None
        or any(not is_awaited(call.kind) for _, _, activity in model.walk() for call in activity.calls)
    ):
        # Messages without a reply may pile up without any cycle getting longer.
        return Capacity({})
    depends = any(t.load_dependence is not None or t.setup is not None for t in model.tasks)
    depends = depends or any(p.idling for p in model.processors)
    certain = LOADED if depends else CERTAIN
    rate = single.cycle.throughput.mean
    found = {}
    for ref, figure in utilizations(single).items():
        if ref.kind == "task":
            busy = single.tasks[ref.name].busy.mean
        else:
            processor = model.processor(ref.name)
            # The background is there whether or not there are clients.
            busy = max(0.0, figure.mean - (1 - processor.available)) * processor.cores
        found[ref] = certain * cycles * busy / rate
    return Capacity(found)


def _cycles(model: Model, slos: Sequence[Slo], single: Result) -> float | None:
    """Return how many cycles per second there have to be; None if that is not known."""
    (source,) = sources_of(model)
    if source.is_open:
        return source.rate
    think = single.cycle.cycle_time.mean - single.cycle.response_time.mean
    needed = [0.0]
    for slo in slos:
        if slo.of in ("entry", "server"):
            continue
        if slo.at_least:
            needed.append(slo.limit)
        elif slo.is_time:
            time = single.cycle.response_time
            # The mean is below a percentile, unless a few cycles are very long. Queues make that rarer.
            if slo.figure in PERCENTILES and getattr(time, slo.figure).mean <= time.mean:
                continue
            needed.append(source.task.threads / (think + slo.limit))
    most = max(needed)
    return most if 0 < most < math.inf else None
