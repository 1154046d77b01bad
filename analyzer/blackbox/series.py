"""One station or two in series? Their likelihoods, given every single request.

Two stations in series keep the order of requests and fill up like one, so that summaries of a load hardly
tell them apart. The departures do: behind one station service times that follow from them are independent;
behind two, a request that left the first one late meets an empty second one. Both likelihoods are of the
same departures, given the arrivals, and differences count as in Schwarz's criterion (BIC).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analyzer.blackbox.alternatives import weibull_shape
from analyzer.blackbox.families import CONSTANT_CV
from analyzer.blackbox.inversion import FloatArray, Trace, service_times
from analyzer.blackbox.search import least
from analyzer.blackbox.series_filter import Series, log_likelihood
from analyzer.blackbox.servers import NOISE, log_densities
from analyzer.blackbox.station import Station
from analyzer.calibration.fitting import MAX_RANKED, fit

__all__ = ["advantage_of_series"]

PARTICLES = 64
SEARCHED, SEARCHING = 300, 32
"""Requests of every load, and particles, with which candidates are searched; the best one has all."""
EVALUATIONS, POLISHING = 60, 80
"""Of every candidate, and then of the best one."""
HOPELESS = 60.0
"""Difference of the criterion, at the end of a search, beyond which the best candidate is given up."""
BURSTY = 1.15
"""Coefficient of variation from which on services may be hyperexponential, too."""
MOST_SERVERS = 16
"""Of one station that is compared: of more, two in series differ in nothing that is seen."""
LATENCY = 5e-4
"""Seconds at which searches for the latency begin."""
SMALLEST_PART = 0.1
"""Of the mean service time of both together: what is shorter is a link, not a station."""
SUM = 1.3
"""Shape of the services over that of the responses, where searches begin."""
SHAPES = (0.1, 50.0)
"""Smallest and largest shape: beyond, the powers of a density are no numbers."""
FURTHEST = 4.0
"""Factor, as a logarithm, by which a parameter may differ from where its search began."""


def advantage_of_series(
    station: Station, traces: Sequence[Trace], *, seed: int = 0
) -> tuple[float, Series] | None:
    """Return by how much the BIC of two stations in series is lower than that of one, and these stations.

    Args:
        station: As identified.
        traces: Of all loads.
        seed: Of the particles.

    Returns:
        None where they are not compared: one of the two would serve next to nothing, there are too many
        servers, or service takes the same time always (two in series are then one station and a latency).
    """
    if station.servers.count > MOST_SERVERS:
        return None
    service = [service_times(t, station.servers.count, station.servers.latency)[0] for t in traces]
    whole = np.concatenate(service)
    if float(whole.std()) < CONSTANT_CV * float(whole.mean()):
        return None
    rng = np.random.default_rng([seed, 6])
    uniform = [rng.uniform(1e-12, 1.0, (trace.size, PARTICLES + 1)) for trace in traces]
    few = _Search(
        [Trace(t.arrivals[:SEARCHED], t.responses[:SEARCHED]) for t in traces],
        [np.ascontiguousarray(u[:SEARCHED, : SEARCHING + 1]) for u in uniform],
    )
    found = max((few.best(start, EVALUATIONS, 0.25) for start in _starts(station, traces)), key=_first)
    if float(whole.std()) > BURSTY * float(whole.mean()):
        scv = max(float(whole.var()) / float(whole.mean()) ** 2, 1.5)
        bursty = replace(found[1], shape=scv, hyperexponential=True)
        found = max(found, few.best(bursty, EVALUATIONS, 0.25), key=_first)
    behind = few.criterion(found[0]) - _of_one(np.concatenate([s[:SEARCHED] for s in service]))
    if behind > HOPELESS:
        return -behind, found[1]
    everything = _Search(traces, uniform)
    likelihood, series = everything.best(found[1], POLISHING, 0.1)
    if min(series.means) < SMALLEST_PART * sum(series.means):
        return None
    return _of_one(whole) - everything.criterion(likelihood), series


def _starts(station: Station, traces: Sequence[Trace]) -> list[Series]:
    """Return the candidates, and where the searches for their parameters begin."""
    k = station.servers.count
    mean = float(traces[0].responses.mean())
    # A sum of two varies less than each.
    shape = SUM * weibull_shape(float(traces[0].responses.std()) / mean)
    pairs = [(1, k), (k, 1), (max(k - 1, 1), max(k - 1, 1)), (k, k)]
    parts = [0.6, 0.4] if k == 1 else [0.5]
    return [
        Series(pair, (part * mean, (1 - part) * mean), shape, hyperexponential=False, latency=LATENCY)
        for pair in dict.fromkeys(pairs)
        for part in parts
    ]


class _Search:
    """For the parameters that are most likely, given some traces."""

    def __init__(self, traces: Sequence[Trace], uniform: Sequence[FloatArray]) -> None:
        self._traces, self._uniform = traces, uniform
        self._size = sum(trace.size for trace in traces)
        self._shortest = min(float(trace.responses.min()) for trace in traces)

    def criterion(self, likelihood: float) -> float:
        """Return the criterion: of the means of both, their shape, and latency.

        How many servers there are costs nothing, here and of one station: few numbers are possible.
        """
        return 4 * math.log(self._size) - 2 * likelihood

    def best(self, start: Series, evaluations: int, step: float) -> tuple[float, Series]:
        """Return the largest log-likelihood found from some parameters on, and where."""
        # A hyperexponential distribution has a squared cv above 1.
        least_shape = 1.0 if start.hyperexponential else 0.0

        def at(values: list[float]) -> Series:
            first, second, spread, latency = values
            shape = least_shape + min(max(spread, SHAPES[0]), SHAPES[1])
            return replace(
                start, means=(first, second), shape=shape, latency=min(latency, 0.9 * self._shortest)
            )

        values, distance = least(
            lambda values: -log_likelihood(at(values), self._traces, self._uniform),
            [*start.means, start.shape - least_shape, start.latency],
            evaluations=evaluations,
            step=step,
            furthest=FURTHEST,
            tolerance=0.2,
        )
        return -distance, at(values)


def _first(found: tuple[float, Series]) -> float:
    return found[0]


def _of_one(service: FloatArray) -> float:
    """Return the criterion of one station: with a family, or with the density that its times show."""
    size = service.size
    positive = np.maximum(service, NOISE / 10)
    # Latency, and what a family or a density without one has.
    found = [2 * math.log(size) - 2 * float(log_densities(positive).sum())]
    families = fit(positive).log_likelihood
    if families:
        # Of large samples a part of the quantiles stands for all.
        ranked = min(1.0, MAX_RANKED / size)
        found.append(3 * math.log(size) - 2 * max(families.values()) / ranked)
    return min(found)
