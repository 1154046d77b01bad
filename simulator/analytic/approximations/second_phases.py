"""Second phases: work a thread does after its reply, which no caller waits for.

Phases of a request: Woodside, Neilson, Petriu and Majumdar, "The stochastic rendezvous network model for
performance of synchronous client-server-like distributed software" (1995). A request that comes straight
back to a server with one thread meets the second phase of the request before it; how likely a request comes
back in time is *overtaking* (Franks and Woodside, "Effectiveness of early replies in client-server
systems", 1999). Here only those requests are seen that come back at once.
"""

from __future__ import annotations

from simulator.analytic.approximations.convolution import ROUNDING
from simulator.analytic.entries.feedback import Feedback
from simulator.analytic.operating_point import OperatingPoint

__all__ = ["SecondPhases"]


class SecondPhases:
    """How long threads work after their replies.

    Attributes:
        overtaking: Per plan, the returns that may meet the second phase of the request before.
        length: Per plan, seconds after the reply.
        rate: Per station, requests per second that have one.
        work: Per station, threads that are busy with one.
    """

    def __init__(self, point: OperatingPoint, feedback: list[list[Feedback]]) -> None:
        self._point = point
        self.length = [0.0] * len(point.plans)
        self.rate = [0.0] * len(point.stations)
        self.work = [0.0] * len(point.stations)
        self.overtaking = [[b for b in found if b.gap == 0 and self._may_meet(b)] for found in feedback]

    def _may_meet(self, back: Feedback) -> bool:
        if back.plan < 0 or self._point.plans[back.plan].station != back.station:
            return False
        graph = self._point.plans[back.plan].graph
        return graph.awaited != graph.held and self._point.stations[back.station].servers == 1

    def wait(self, back: Feedback) -> float:
        """Return how long one waits on coming straight back to a server that is in its second phase."""
        station, places = self._point.stations[back.station], self._point.servers(back.station)
        idle = max(1 - self.work[back.station] / places, 0.0)
        return back.times * self.length[back.plan] * idle / station.replicas

    def add_up(self) -> None:
        """Find the rates and the work per station from the rates of the plans."""
        point = self._point
        self.rate = [0.0] * len(point.stations)
        self.work = [0.0] * len(point.stations)
        for index, (plan, rate) in enumerate(zip(point.plans, point.rates, strict=True)):
            second = self.length[index]
            if plan.station is not None and second > ROUNDING * point.times[index].hold[0]:
                self.rate[plan.station] += rate
                self.work[plan.station] += rate * second
