"""How often does a flow come straight back to the station it has just left?

Such a visit does not find a service that is partly over, as one at a random moment does, but one that is
just beginning: how variable services are makes no difference to how long it waits.
"""

from __future__ import annotations

from simulator.layers import Layers, Plan, Step

__all__ = ["Returns"]

NOWHERE: frozenset[int] = frozenset()


class Returns:
    """Follows the flows of all plans from step to step."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._first: dict[int, frozenset[int]] = {}
        self._last: dict[int, frozenset[int]] = {}

    def visits(self) -> list[dict[int, float]]:
        """Return, per plan, how many immediate returns to which station one request adds."""
        layers = self._layers
        found: list[dict[int, float]] = [{} for _ in layers.plans]
        for index in reversed(layers.order):
            plan, returns = layers.plans[index], found[index]
            graph = plan.graph
            steps = {s.name: s for s in plan.steps}
            own = NOWHERE if plan.station is None else frozenset((plan.station,))
            self._first[index] = own | self._begin(plan, steps[graph.start])
            ends = [self._end(plan, steps[n]) for n in graph.ends if n in steps]
            self._last[index] = own | (frozenset.intersection(*ends) if ends else NOWHERE)
            for step in plan.steps:
                self._inside(plan, step, graph.visits[step.name], returns)
            for before, after, times in graph.links():
                _add(returns, self._end(plan, steps[before]) & self._begin(plan, steps[after]), times)
        return found

    def _begin(self, plan: Plan, step: Step) -> frozenset[int]:
        """Return the stations a step starts at: the pool it asks for a thread, the processor behind it."""
        if step.slices:
            return _processor(plan)
        if step.delay[0] > 0 or not step.calls or step.calls[0].kind == "send":
            return NOWHERE
        return self._first.get(step.calls[0].target, NOWHERE)

    def _end(self, plan: Plan, step: Step) -> frozenset[int]:
        """Return the stations a step ends at."""
        if step.calls:
            last = step.calls[-1]
            return NOWHERE if last.kind == "send" else self._last.get(last.target, NOWHERE)
        return _processor(plan) if step.slices and step.delay[0] == 0 else NOWHERE

    def _inside(self, plan: Plan, step: Step, visits: float, found: dict[int, float]) -> None:
        """Count the returns between the demand of a step and its calls, and between calls."""
        here = _processor(plan) if step.slices and step.delay[0] == 0 else NOWHERE
        for call in step.calls:
            if call.kind == "send":
                continue
            first = self._first.get(call.target, NOWHERE)
            _add(found, here & first, visits * min(call.count[0], 1.0))
            here = self._last.get(call.target, NOWHERE)
            _add(found, here & first, visits * max(call.count[0] - 1, 0.0))


def _processor(plan: Plan) -> frozenset[int]:
    return NOWHERE if plan.processor is None else frozenset((plan.processor,))


def _add(found: dict[int, float], stations: frozenset[int], times: float) -> None:
    if times > 0:
        for station in stations:
            found[station] = found.get(station, 0.0) + times
