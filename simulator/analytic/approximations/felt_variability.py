"""How variable services seem to the queue in front of them: less so if requests come straight back to it.

A random arrival finds a residual service, whose mean grows with the variability of services (Sevcik, Levy,
Tripathi and Zahorjan, "Improving approximations of aggregated queueing network subsystems", 1977; Reiser,
"A queueing network analysis of computer communication networks with window flow control", 1979). A request
that comes straight back finds a service at its beginning, however variable it is
(``simulator.analytic.entries.feedback``), and branches of the same request find each other. Where what the
servers visit is full, the variability of their times makes no difference at all.
"""

from __future__ import annotations

from simulator.analytic.approximations.aggregation import elasticity
from simulator.analytic.entries.feedback import Feedback
from simulator.analytic.operating_point import BRANCH_DELAY, SQUARES, VISITS, WORK, OperatingPoint

__all__ = ["feedback_to", "felt_variability"]


def feedback_to(feedback: list[list[Feedback]], stations: int) -> list[list[tuple[int, Feedback]]]:
    """Return the feedback to every station, with the plan it is of, given that of every plan."""
    found: list[list[tuple[int, Feedback]]] = [[] for _ in range(stations)]
    for index, of_plan in enumerate(feedback):
        for back in of_plan:
            found[back.station].append((index, back))
    return found


def felt_variability(point: OperatingPoint, feedback: list[tuple[int, Feedback]], at: int) -> float:
    """Return the squared coefficient of variation of services as the queue of a station feels it.

    A request that comes straight back has before it those only who came during its last visit, which may have
    been shorter than most. The longer it was elsewhere, compared with a service, the less that matters.
    """
    mean = point.total[WORK, at] / point.total[VISITS, at]
    scv = point.total[SQUARES, at] / point.total[VISITS, at] / mean**2 - 1 if mean > 0 else 1.0
    scv = max(scv, 0.0)
    coming = before = 0.0
    for index, back in feedback:
        if back.gap < mean:
            last = point.times[back.plan].reply[0] if back.service is None else back.service
            soon = point.rates[index] * back.times * (1 - back.gap / mean)
            coming += soon
            before += soon * last
    share = min(coming / float(point.total[VISITS, at]) / point.stations[at].replicas, 1.0)
    meeting = float(point.total[BRANCH_DELAY, at] / point.total[VISITS, at])
    alone = max(1 - meeting / point.wait[at], 0.0) if point.wait[at] > 0 else 1.0
    felt = 1 + (1 - share) * alone * elasticity(point, at) * (scv - 1)
    if share <= 0:
        return float(felt)
    waited = point.wait[at]
    less = (waited + before / coming) / (waited + mean)
    return float((1 + felt) * (1 - share + share * less) - 1)
