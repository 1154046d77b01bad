"""What do the requests of a plan ask of the stations, and how long do they take, given what they meet there?

A *load* has a row per kind of quantity and a column per station, the last one for delays. The estimate adds
up loads in every round; what stays the same from round to round is in ``Rows``. Times are moments
(``entry_times``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.analytic.approximations.convolution import FloatArray
from simulator.analytic.entry_times import Overlap
from simulator.analytic.layers import Plan

__all__ = ["Rows"]


class Rows:
    """What does not change about the steps of a plan; one row per step.

    Attributes:
        of: The row of a step, by its name; in the order of the rows.
        visits: Executions per request.
        work: Visits to the processor, seconds of service, sum of their squares, and once more the seconds,
            per request; shape (steps, OWN_ROWS).
        delay: Seconds per request.
        calls: Row, plan and number per request of every synchronous call.
        releasing: Plan and number per request of every releasing call.
        held, awaited: 1 for what the thread, the caller waits for, else 0.
    """

    def __init__(self, plan: Plan) -> None:
        graph, steps = plan.graph, plan.steps
        self.of = {step.name: row for row, step in enumerate(steps)}
        self.visits = np.array([graph.visits[s.name] for s in steps])
        slices, mean = np.array([s.slices for s in steps]), np.array([s.demand[0] for s in steps])
        variance = np.array([s.demand[1] for s in steps])
        asked = slices, slices * mean, slices * (mean**2 + variance), slices * mean
        self.work = np.stack(asked, axis=1) * self.visits[:, None]
        self.delay = self.visits * np.array([s.delay[0] for s in steps])
        self.calls: list[tuple[int, int, float]] = []
        self.releasing: list[tuple[int, float]] = []
        for row, step in enumerate(steps):
            for call in step.calls:
                times = graph.visits[step.name] * call.count[0]
                if call.kind == "synchronous":
                    self.calls.append((row, call.target, times))
                elif call.kind == "releasing":
                    self.releasing.append((call.target, times))
        self.held = np.array([float(s.name in graph.held) for s in steps])
        self.awaited = np.array([float(s.name in graph.awaited) for s in steps])
        self._pairs: list[tuple[frozenset[str], frozenset[str]]] = []
        self._sides: tuple[FloatArray, FloatArray] = np.zeros((0, 0)), np.zeros((0, 0))

    def sides(self, overlaps: Sequence[Overlap]) -> tuple[FloatArray, FloatArray]:
        """Return which steps either branch of every overlap consists of: 1 or 0, shape (overlaps, steps)."""
        pairs = [(o.one, o.other) for o in overlaps]
        if pairs != self._pairs:
            self._pairs = pairs
            names = list(self.of)
            first, second = (
                np.array([[float(name in pair[side]) for name in names] for pair in pairs]) for side in (0, 1)
            )
            self._sides = first, second
        return self._sides
