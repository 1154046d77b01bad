"""How many servers does the station have?

Two things tell. A request that overtakes others was served beside them: that is a lower bound (the smallest
K without negative service times; Harbaoui et al., RR-7027, section 4.2). Times that hardly vary never
overtake, though, and the bound is 1 whatever K is. Therefore the likelihood decides among what is left.
Service times follow from departures by subtraction of what is known at the start, so that the likelihood of
the departures is the product of the densities of the service times. By Gibbs' inequality no wrong K has a
larger one, whatever the distribution: too few servers take work for waiting, too many take waiting for
work, and both blur the times. The density is estimated without a family, from the distances of order
statistics (Vasicek, "A test for normality based on sample entropy", 1976).

The latency outside of the servers is found the same way: with the wrong one, times of requests that waited
and of others differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.blackbox.inversion import FloatArray, Trace, overtakings, service_times
from mup.errors import UsageError

__all__ = ["MAX_CANDIDATES", "NOISE", "Servers", "count_servers", "log_densities"]

NOISE = 2e-4
"""Seconds by which times seen over a network differ although nothing else does."""

NEGATIVE_SHARE = 0.02
"""So many requests may seem to leave before they start: two sent together may be swapped on their way."""

SIGNIFICANT = 3.0
"""Standard errors by which the likelihood must be larger to prefer more servers."""

PARAMETER = 1.0
"""So much a parameter must add to the logarithm of the likelihood (Akaike)."""

MAX_CANDIDATES = 64
"""So many numbers of servers are compared, from the lower bound up."""

LATENCY_STEPS = 16
LARGEST_LATENCY = 0.9
"""Share of the shortest responses: some of them is service."""
FEWEST_WAITED = 30
"""Requests that must have waited: latency is what they do not notice and others do."""
SMALLEST_SAMPLE = 8
"""Fewer requests have no density."""


@dataclass(frozen=True, slots=True)
class Servers:
    """A number of servers and how well it is supported.

    Attributes:
        count: The smallest number that explains what was seen. latency: Seconds of each response outside of
        the servers. at_least: The smallest number without negative service times. bounded: Whether more
        servers would explain it worse. If not, requests never waited enough to tell, and
            ``count`` is a lower bound.
    """

    count: int
    latency: float
    at_least: int
    bounded: bool


def count_servers(traces: Sequence[Trace], *, noise: float = NOISE) -> Servers:
    """Return the number of servers that explains all traces, and the latency outside of them.

    Args:
        traces: Each from an empty station on, of at least 8 requests.
        noise: Seconds below which differences of times mean nothing.

    Raises:
        UsageError: There is no trace, or one is too short.
    """
    if not traces or any(trace.size < SMALLEST_SAMPLE for trace in traces):
        raise UsageError(f"servers are counted from traces of at least {SMALLEST_SAMPLE} requests each")
    beside = np.concatenate([overtakings(trace, noise) for trace in traces])
    at_least = _without_negatives(beside)
    # More servers than were ever needed at once leave everything as it is.
    most = max(_most_present(trace) for trace in traces)
    candidates = range(at_least, max(at_least, min(most, at_least + MAX_CANDIDATES)) + 1)
    scores = {k: _densities(traces, k, 0.0, noise) for k in candidates}
    best = max(scores, key=lambda k: (float(scores[k].sum()), -k))
    count = next(k for k in candidates if k == best or not _exceeds(scores[best], scores[k]))
    latency = _latency(traces, count, scores[count], noise)
    chosen = _densities(traces, count, latency, noise)
    bounded = _exceeds(chosen, _densities(traces, count + 1, latency, noise))
    return Servers(count, latency, at_least, bounded)


def log_densities(times: FloatArray, noise: float = NOISE) -> FloatArray:
    """Return the logarithm of the estimated density at each of the times, shape (n,).

    Args:
        times: Seconds, shape (n,), n >= 3.
        noise: Seconds below which differences mean nothing.
    """
    n = times.size
    m = max(1, round(math.sqrt(n)))
    order = np.argsort(times, kind="stable")
    ascending = times[order]
    index = np.arange(n)
    high, low = np.minimum(index + m, n - 1), np.maximum(index - m, 0)
    width = np.maximum(ascending[high] - ascending[low], noise)
    result = np.empty(n)
    result[order] = np.log((high - low) / (n * width))
    return result


def _without_negatives(beside: npt.NDArray[np.int64]) -> int:
    """Return the smallest K with which hardly any service time is negative."""
    tolerated = int(NEGATIVE_SHARE * beside.size)
    ranked = np.sort(beside)
    return int(ranked[beside.size - 1 - tolerated]) + 1


def _most_present(trace: Trace) -> int:
    """Return the largest number of requests that were there at once."""
    left = np.searchsorted(np.sort(trace.departures), trace.arrivals, side="right")
    return int((np.arange(1, trace.size + 1) - left).max())


def _densities(traces: Sequence[Trace], servers: int, latency: float, noise: float) -> FloatArray:
    """Return log-densities of all service times; every trace has its own density, for load may change it."""
    parts = [log_densities(service_times(trace, servers, latency)[0], noise) for trace in traces]
    joined: FloatArray = np.concatenate(parts)
    return joined


def _exceeds(better: FloatArray, worse: FloatArray) -> bool:
    """Tell whether a sum of log-densities is larger beyond chance, from the paired differences."""
    difference = better - worse
    spread = float(difference.std()) * math.sqrt(difference.size)
    return float(difference.sum()) > SIGNIFICANT * spread


def _latency(traces: Sequence[Trace], servers: int, none: FloatArray, noise: float) -> float:
    """Return the likeliest latency; 0 unless it explains more than a further parameter costs."""

    def score(latency: float) -> float:
        return float(_densities(traces, servers, latency, noise).sum())

    waited = sum(int((service_times(trace, servers)[1] > noise).sum()) for trace in traces)
    if waited < FEWEST_WAITED:
        return 0.0
    # No response is shorter than the latency, but for the noise of the measurement.
    largest = LARGEST_LATENCY * min(float(np.quantile(trace.responses, 0.01)) for trace in traces)
    best, step = 0.0, largest / LATENCY_STEPS
    highest = float(none.sum()) + PARAMETER
    around = step * np.arange(1, LATENCY_STEPS + 1)
    while step > noise:
        scores = {float(o): score(float(o)) for o in around}
        likeliest = max(scores, key=lambda o: scores[o])
        if scores[likeliest] > highest:
            best, highest = likeliest, scores[likeliest]
        step /= 2
        around = np.array([o for o in (best - step, best + step) if o > 0])
    return best
