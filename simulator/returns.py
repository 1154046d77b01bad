"""How often does a flow come straight back to the station it has just left?

Such a visit differs from one at a random moment. It does not find a service that is partly over, but one
that is just beginning; and before it are only those who came during the last visit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.layers import Layers, Plan, Step

__all__ = ["Return", "Returns"]


@dataclass(frozen=True, slots=True)
class Return:
    """Immediate returns to a station.

    Attributes:
        station: Which one.
        times: How often per request.
        service: Mean service time of the visit before, in seconds; None: how long ``plan`` holds it.
        plan: The plan that held it.
        step: The activity that returns.
    """

    station: int
    times: float
    service: float | None
    plan: int
    step: str = ""


class Returns:
    """Follows the flows of all plans from step to step."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._first: dict[int, frozenset[int]] = {}
        self._last: dict[int, dict[int, Return]] = {}

    def visits(self) -> list[list[Return]]:
        """Return, per plan, the immediate returns that one request adds."""
        layers = self._layers
        found: list[list[Return]] = [[] for _ in layers.plans]
        for index in reversed(layers.order):
            plan, returns = layers.plans[index], found[index]
            graph = plan.graph
            steps = {s.name: s for s in plan.steps}
            self._first[index] = self._begin(plan, steps[graph.start])
            ends = [self._end(plan, steps[n]) for n in graph.ends if n in steps]
            last = {k: v for k, v in ends[0].items() if all(k in e for e in ends)} if ends else {}
            if plan.station is not None:
                self._first[index] |= {plan.station}
                last[plan.station] = Return(plan.station, 1.0, None, index)
            self._last[index] = last
            for step in plan.steps:
                self._inside(plan, step, graph.visits[step.name], returns)
            for before, after, times in graph.links():
                _add(returns, self._end(plan, steps[before]), self._begin(plan, steps[after]), times, after)
        return found

    def _begin(self, plan: Plan, step: Step) -> frozenset[int]:
        """Return the stations a step starts at: the pool it asks for a thread, the processor behind it."""
        if step.slices:
            return NOWHERE if plan.processor is None else frozenset((plan.processor,))
        if step.delay[0] > 0 or not step.calls or step.calls[0].kind == "send":
            return NOWHERE
        return self._first.get(step.calls[0].target, NOWHERE)

    def _end(self, plan: Plan, step: Step) -> dict[int, Return]:
        """Return the stations a step ends at."""
        if step.calls:
            last = step.calls[-1]
            return {} if last.kind == "send" else self._last.get(last.target, {})
        return _worked(plan, step)

    def _inside(self, plan: Plan, step: Step, visits: float, found: list[Return]) -> None:
        """Count the returns between the demand of a step and its calls, and between calls."""
        here: Mapping[int, Return] = _worked(plan, step)
        for call in step.calls:
            if call.kind == "send":
                continue
            first = self._first.get(call.target, NOWHERE)
            _add(found, here, first, visits * min(call.count[0], 1.0), step.name)
            here = self._last.get(call.target, {})
            _add(found, here, first, visits * max(call.count[0] - 1, 0.0), step.name)


NOWHERE: frozenset[int] = frozenset()


def _worked(plan: Plan, step: Step) -> dict[int, Return]:
    if plan.processor is None or not step.slices or step.delay[0] > 0:
        return {}
    return {plan.processor: Return(plan.processor, 1.0, step.demand[0], -1)}


def _add(
    found: list[Return], before: Mapping[int, Return], after: frozenset[int], times: float, step: str
) -> None:
    if times > 0:
        for station in after & before.keys():
            last = before[station]
            found.append(Return(station, times, last.service, last.plan, step))
