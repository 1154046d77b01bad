"""How often does a flow come straight back to the processor it has just left?

Such a visit does not find a service that is partly over, as one at a random moment does, but one that is
just beginning: how variable services are makes no difference to how long it waits.
"""

from __future__ import annotations

from simulator.layers import Layers, Plan, Step

__all__ = ["Returns"]


class Returns:
    """Follows the flows of all plans from step to step."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._first: dict[int, int | None] = {}
        self._last: dict[int, int | None] = {}

    def visits(self) -> list[dict[int, float]]:
        """Return, per plan, how many immediate returns to which station one request adds."""
        layers = self._layers
        found: list[dict[int, float]] = [{} for _ in layers.plans]
        for index in reversed(layers.order):
            plan = layers.plans[index]
            entry = plan.graph
            steps = {s.name: s for s in plan.steps}
            self._first[index] = self._begin(plan, steps[entry.start])
            ends = {self._end(plan, steps[n]) for n in entry.ends if n in steps}
            self._last[index] = ends.pop() if len(ends) == 1 else None
            for step in plan.steps:
                self._inside(plan, step, plan.graph.visits[step.name], found[index])
            for before, after, times in entry.links():
                if before in steps and after in steps:
                    station = self._end(plan, steps[before])
                    if station is not None and station == self._begin(plan, steps[after]):
                        found[index][station] = found[index].get(station, 0.0) + times
        return found

    def _begin(self, plan: Plan, step: Step) -> int | None:
        """Return the station a step starts at."""
        if step.slices:
            return plan.processor
        if step.delay[0] > 0 or not step.calls or step.calls[0].kind == "send":
            return None
        return self._first.get(step.calls[0].target)

    def _end(self, plan: Plan, step: Step) -> int | None:
        """Return the station a step ends at."""
        if step.calls:
            return None if step.calls[-1].kind == "send" else self._last.get(step.calls[-1].target)
        return plan.processor if step.slices and step.delay[0] == 0 else None

    def _inside(self, plan: Plan, step: Step, visits: float, found: dict[int, float]) -> None:
        """Count the returns between the demand of a step and its calls, and between calls."""
        station = plan.processor if step.slices and step.delay[0] == 0 else None
        for call in step.calls:
            if call.kind == "send":
                continue
            if station is not None and station == self._first.get(call.target):
                found[station] = found.get(station, 0.0) + visits * min(call.count[0], 1.0)
            station = self._last.get(call.target)
            if station is not None and station == self._first.get(call.target) and call.count[0] > 1:
                found[station] = found.get(station, 0.0) + visits * (call.count[0] - 1)
