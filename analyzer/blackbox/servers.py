"""Number of servers of the station.

A request that overtakes others was served beside them, so that the smallest K without negative service
times is a lower bound (Harbaoui et al., RR-7027, section 4.2). It is not enough: times that hardly vary
never overtake, and noise makes requests seem to overtake that did not. Therefore the likelihood decides,
among all K that do not leave a large share of negative times. Service times follow from departures by
subtraction of what is known at the start, so that the likelihood of the departures is the product of the
densities of the service times. By Gibbs' inequality no wrong K has a larger one, whatever the distribution:
too few servers take work for waiting, too many take waiting for work, and both blur the times. The density
is estimated without a family, from the distances of order statistics (Vasicek, "A test for normality based
on sample entropy", 1976).

Latency outside of the servers makes service seem longer for those requests that did not wait.
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

NOISY_SHARE = 0.2
"""So many where response times are noisy: what is further off is left out, the likelihood judges the rest."""

SIGNIFICANT = 3.0
"""Standard errors by which the likelihood must be larger to prefer more servers."""

MAX_CANDIDATES = 64
"""So many numbers of servers are compared, from the lower bound up."""

LATENCY_STEPS = 16
LARGEST_LATENCY = 0.9
"""Share of the shortest responses: some of them is service."""
DIFFERENCES = 3
TRIMMED = 0.05
"""Share left out at both ends: a machine that stood still for a moment is neither service nor latency."""
FEWEST_WAITED = 30
"""Requests that must have waited: latency is what they do not notice and others do."""
SMALLEST_SAMPLE = 8
"""Fewer requests have no density."""


@dataclass(frozen=True, slots=True)
class Servers:
    """A number of servers and how well it is supported.

    Attributes:
        count: The smallest number that explains what was seen.
        latency: Seconds of each response outside of the servers.
        at_least: The smallest number with which hardly any service time is negative.
        bounded: Whether more servers would explain it worse beyond chance. If not, too few requests waited
            to tell, and ``count`` is a lower bound.
        at_limit: What ended at a bound of the search, one sentence each.
    """

    count: int
    latency: float
    at_least: int
    bounded: bool
    at_limit: tuple[str, ...] = ()


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
    at_least = _fewest(beside, NEGATIVE_SHARE)
    fewest = _fewest(beside, NOISY_SHARE)
    # More servers than were ever needed at once leave everything as it is.
    most = max(_most_present(trace) for trace in traces)
    candidates = range(fewest, max(fewest, min(most, fewest + MAX_CANDIDATES)) + 1)
    scores = {k: _densities(traces, k, 0.0, noise) for k in candidates}
    best = max(scores, key=lambda k: (float(scores[k].sum()), -k))
    count = next(k for k in candidates if k == best or not _exceeds(scores[best], scores[k]))
    latency = _latency(traces, count, noise)
    chosen = _densities(traces, count, latency, noise)
    bounded = _exceeds(chosen, _densities(traces, count + 1, latency, noise))
    at_limit = []
    if count == candidates[-1] < most:
        at_limit.append(
            f"{count} servers are the most that were compared, and up to {most} requests were there at once:"
            " there may be more"
        )
    largest = _largest_latency(traces)
    if latency >= largest - noise / 4 and latency > noise:
        at_limit.append(
            f"a latency of {1e3 * latency:.3g} ms outside of the servers is the longest that was looked for,"
            f" {LARGEST_LATENCY:.0%} of the shortest responses: what of a response is service is not known"
        )
    return Servers(count, latency, at_least, bounded, tuple(at_limit))


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


def _fewest(beside: npt.NDArray[np.int64], tolerated: float) -> int:
    """Return the smallest K with which no larger share of the service times is negative."""
    ranked = np.sort(beside)
    return int(ranked[beside.size - 1 - int(tolerated * beside.size)]) + 1


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


def _latency(traces: Sequence[Trace], servers: int, noise: float) -> float:
    """Return the latency by which service seems longer for requests that did not wait.

    Two sources: the difference of means, which is right also where latency varies, but coarse for times that
    vary much themselves; and the likelihood, which is sharp there. The first counts by how exact it is.
    """
    waited = sum(int((service_times(trace, servers)[1] > noise).sum()) for trace in traces)
    if waited < FEWEST_WAITED:
        return 0.0
    largest = _largest_latency(traces)
    expected = 0.0
    for _ in range(DIFFERENCES):
        # With a latency, fewer requests have waited for a server.
        change, error = _difference(traces, servers, expected)
        expected = min(max(expected + change, 0.0), largest)

    def score(latency: float) -> float:
        off = (latency - expected) / max(error, noise / 10)
        return float(_densities(traces, servers, latency, noise).sum()) - off**2 / 2

    step = largest / LATENCY_STEPS
    scores = {float(o): score(float(o)) for o in (*(step * np.arange(LATENCY_STEPS + 1)), expected)}
    while step > noise / 4:
        best = max(scores, key=lambda o: scores[o])
        step /= 2
        scores |= {o: score(o) for o in (best - step, best + step) if 0 <= o <= largest}
    return max(scores, key=lambda o: scores[o])


def _largest_latency(traces: Sequence[Trace]) -> float:
    # No response is shorter than the latency, but for the noise of the measurement.
    return LARGEST_LATENCY * min(float(np.quantile(trace.responses, 0.01)) for trace in traces)


def _difference(traces: Sequence[Trace], servers: int, latency: float) -> tuple[float, float]:
    """Return by how much service seems longer without waiting, and the standard error of that; seconds."""
    inferred = [service_times(trace, servers, latency) for trace in traces]
    service = np.concatenate([times for times, _ in inferred])
    waited = np.concatenate([waiting for _, waiting in inferred]) > 0
    if min(waited.sum(), (~waited).sum()) < FEWEST_WAITED:
        return 0.0, math.inf
    (alone, alone_error), (behind, behind_error) = (
        _trimmed(np.sort(service[~waited])),
        _trimmed(np.sort(service[waited])),
    )
    return alone - behind, math.hypot(alone_error, behind_error)


def _trimmed(ascending: FloatArray) -> tuple[float, float]:
    """Return the mean without the outermost values, and its standard error."""
    left_out = int(TRIMMED * ascending.size)
    inner = ascending[left_out : ascending.size - left_out]
    winsorised = np.clip(ascending, inner[0], inner[-1])
    error = float(winsorised.std(ddof=1)) / (1 - 2 * TRIMMED) / math.sqrt(ascending.size)
    return float(inner.mean()), error
