"""Work that no customer of a network waits for: messages, detached branches and arrivals from outside.

It is an open class (Poisson arrivals) beside the closed ones: at each station its number is that of a
birth-death process of the station's speeds, the others in equilibrium. Exact in a mixed network of product
form (Baskett, Chandy, Muntz and Palacios, "Open, closed, and mixed networks of queues with different
classes of customers", 1975).
"""

from __future__ import annotations

import numpy as np

from simulator.analytic.approximations.convolution import LEFT_OVER, FloatArray
from simulator.analytic.approximations.shared_station import SharedView
from simulator.analytic.operating_point import VISITS, WORK, OperatingPoint

__all__ = ["Unawaited"]


class Unawaited:
    """What is left of the load of a station when all customers' is taken off.

    Attributes:
        visits: Per station, visits per second.
        work: Per station, seconds of service per second.
        unbounded: There are messages or arrivals, whose number no client bounds.
    """

    def __init__(self, point: OperatingPoint) -> None:
        self._point = point
        calls = (call for plan in point.plans for step in plan.steps for call in step.calls)
        self.unbounded = any(not call.awaited for call in calls) or any(p.arrivals for p in point.plans)
        self.visits = [0.0] * len(point.stations)
        self.work = [0.0] * len(point.stations)

    def take_off(self, second_phases: list[float]) -> None:
        """Find the rest, given the work per station in second phases."""
        point = self._point
        for at, visitors in enumerate(point.visitors):
            visits = float(point.total[VISITS, at]) - sum(c.rate * c.profile[VISITS, at] for _, c in visitors)
            work = float(point.total[WORK, at]) - sum(c.rate * c.profile[WORK, at] for _, c in visitors)
            work -= second_phases[at]
            some = visits > LEFT_OVER * point.total[VISITS, at] and work > LEFT_OVER * point.total[WORK, at]
            self.visits[at], self.work[at] = (visits, work) if some else (0.0, 0.0)

    def jobs(self, at: int, view: SharedView, relative_work: float) -> FloatArray:
        """Return how likely 0, 1, ... of these jobs are at a station."""
        logs = np.cumsum(np.log(self.visits[at] * relative_work / view.rates))
        there = np.exp(np.concatenate(((0.0,), logs)) - max(0.0, float(logs.max())))
        there /= there.sum()
        return np.asarray(there)
