"""Likelihood of departures from two stations in series, by a particle filter.

When a request leaves the first station is not seen. If it were, service times would follow from arrivals and
departures as they do for one station; so the likelihood is an integral over these times, request by request
(Gordon, Salmond and Smith, "Novel approach to nonlinear/non-Gaussian Bayesian state estimation", 1993).
A particle says when each server of the first station is free. It is moved by a service time that ends before
the request was answered, and weighed by how probable that is, times the density of what is then left for the
second station, where requests wait for departures that were measured.

Requests are taken in the order of their arrival. If the first station has several servers, some come to the
second one in another order: an approximation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.blackbox.inversion import FloatArray, Trace, service_times
from mup.native.binding import compiled
from mup.native.shapes import Floats1, Floats2

__all__ = ["Series", "log_likelihood"]

OUTLIERS = 0.002
"""Share of requests that may have taken any time up to the longest: two sent together may be swapped."""
IMPOSSIBLE = 1e-12
"""Probability below which a service time does not end before the answer."""
DEGENERATE = 2.0
"""Times as uneven as equal weights: particles are drawn again from there on."""


@dataclass(frozen=True, slots=True)
class Series:
    """Two stations of known service times, first come first served, one after the other.

    Attributes:
        servers: Of each.
        means: Of their service times, seconds, > 0.
        shape: Of the service times of both: of a Weibull distribution, > 0, or the squared coefficient of
            variation, > 1, of a hyperexponential one with balanced means.
        hyperexponential: Which of the two.
        latency: Seconds of every response before the stations.
    """

    servers: tuple[int, int]
    means: tuple[float, float]
    shape: float
    hyperexponential: bool
    latency: float


def log_likelihood(series: Series, traces: Sequence[Trace], uniform: Sequence[FloatArray]) -> float:
    """Return the logarithm of the density of all departures, given the arrivals; of times in seconds.

    Args:
        series: What may have served the requests.
        traces: Each from empty stations on.
        uniform: Numbers between 0 and 1 of each trace, shape (n, particles + 1). The same numbers for all
            candidates make their differences those of the candidates.
    """
    shape, share = series.shape, 1.0
    if series.hyperexponential:
        share = (1 - math.sqrt((shape - 1) / (shape + 1))) / 2
        scales = [(mean / 2 / share, mean / 2 / (1 - share)) for mean in series.means]
        shape = 1.0
    else:
        scales = [(mean / math.gamma(1 + 1 / shape), 1.0) for mean in series.means]
    total = 0.0
    for trace, numbers in zip(traces, uniform, strict=True):
        service, _ = service_times(trace, series.servers[1], series.latency)
        free = np.full((series.servers[0], numbers.shape[1] - 1), -math.inf)
        total += _filtered(
            trace.arrivals + series.latency, trace.departures, trace.departures - service, numbers,
            share, *scales[0], *scales[1], shape, OUTLIERS / float(trace.responses.max()),
            free, np.empty_like(free), np.empty(free.shape[1]),
        )  # fmt: skip
    return total


@compiled
def _filtered(
    ready: Floats1,
    leave: Floats1,
    behind: Floats1,
    uniform: Floats2,
    share: float,
    long1: float,
    short1: float,
    long2: float,
    short2: float,
    shape: float,
    outlier: float,
    free: Floats2,
    drawn: Floats2,
    weights: Floats1,
) -> float:
    """Return the log-likelihood of one trace.

    A service time is Weibull (``long``, ``shape``) with probability ``share``, else exponential (``short``).
    ``behind``: when a server of the second station was free. Work space: when the servers of the first one
    are, of each particle, before and after drawing, and weights.
    """
    servers, many = free.shape
    total_log = 0.0
    for j in range(many):
        weights[j] = 1.0 / many
    for i in range(len(ready)):
        total = 0.0
        for j in range(many):
            first = 0
            for k in range(1, servers):
                if free[k, j] < free[first, j]:
                    first = k
            start = max(ready[i], free[first, j])
            longest = leave[i] - start
            density = outlier
            took = 0.0
            if longest > 0.0:
                ends_long = share * (1.0 - math.exp(-((longest / long1) ** shape)))
                ends = ends_long + (1.0 - share) * (1.0 - math.exp(-longest / short1))
                if ends > IMPOSSIBLE:
                    below = uniform[i, j] * ends
                    if below < ends_long:
                        took = long1 * (-math.log(1.0 - below / share)) ** (1.0 / shape)
                    else:
                        took = -short1 * math.log(1.0 - (below - ends_long) / (1.0 - share))
                    took = min(took, longest)
                    left = leave[i] - max(start + took, behind[i])
                    if left > 0.0:
                        power = (left / long2) ** shape
                        of_left = share * shape * power / left * math.exp(-power)
                        of_left += (1.0 - share) / short2 * math.exp(-left / short2)
                        density += ends * of_left
            free[first, j] = start + took
            weights[j] *= density
            total += weights[j]
        total_log += math.log(total)
        squares = 0.0
        for j in range(many):
            weights[j] /= total
            squares += weights[j] * weights[j]
        if squares * many > DEGENERATE:
            # Systematic resampling: one number draws all.
            at = 0
            cumulative = weights[0]
            for j in range(many):
                while cumulative * many < j + uniform[i, many] and at < many - 1:
                    at += 1
                    cumulative += weights[at]
                for k in range(servers):
                    drawn[k, j] = free[k, at]
            for j in range(many):
                weights[j] = 1.0 / many
                for k in range(servers):
                    free[k, j] = drawn[k, j]
    return total_log
