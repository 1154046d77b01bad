"""The likelihood of two stations in series is the integral it claims to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analyzer.blackbox.inversion import FloatArray, Trace
from analyzer.blackbox.series_filter import OUTLIERS, Series, log_likelihood

POINTS = 400
ARRIVALS = np.array([0.0, 0.011, 0.019, 0.06])
LEAVE = np.array([0.05, 0.062, 0.09, 0.105])


def density(family: str, mean: float, shape: float, times: FloatArray) -> FloatArray:
    """Return the density of a service time, 0 for negative ones."""
    x = np.maximum(times, 1e-300)
    if family == "weibull":
        scale = mean / math.gamma(1 + 1 / shape)
        found = shape / scale * (x / scale) ** (shape - 1) * np.exp(-((x / scale) ** shape))
    else:
        p = (1 - math.sqrt((shape - 1) / (shape + 1))) / 2
        found = sum(q * 2 * q / mean * np.exp(-2 * q / mean * x) for q in (p, 1 - p))
    return np.where(times > 0, found, 0.0)


def by_quadrature(family: str, means: tuple[float, float], shape: float, servers: int) -> float:
    """Return the log-likelihood of the trace above by sums over a grid of times between the stations.

    The first station has one server, so its state is the last departure.
    """
    at = (np.arange(POINTS) + 0.5) * (LEAVE.max() / POINTS)
    width = LEAVE.max() / POINTS
    mass: FloatArray | None = None  # of the departure before, per grid point
    total = 0.0
    outlier = OUTLIERS / float((LEAVE - ARRIVALS).max())
    for i, (arrival, leave) in enumerate(zip(ARRIVALS, LEAVE, strict=True)):
        earlier = np.sort(LEAVE[:i])
        behind = earlier[-servers] if len(earlier) >= servers else -math.inf
        second = density(family, means[1], shape, leave - np.maximum(at, behind))
        start = np.maximum(arrival, at) if mass is not None else np.full(POINTS, arrival)
        weight = np.full(POINTS, 1 / POINTS) if mass is None else mass
        first = density(family, means[0], shape, at[None, :] - start[:, None])
        joint = (weight @ first) * second * width
        # With the small probability of an outlier a request passes the first station in no time.
        passed = np.bincount(np.clip((start / width).astype(int), 0, POINTS - 1), weight * outlier, POINTS)
        likelihood = float((joint + passed).sum())
        total += math.log(likelihood)
        mass = (joint + passed) / likelihood
    return total


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize(("family", "shape"), [("weibull", 1.0), ("weibull", 1.8), ("hyper", 3.0)])
def test_the_filter_is_the_integral_over_what_is_not_seen(family: str, shape: float, servers: int) -> None:
    """Of four requests, beside sums over a grid that share no line with it."""
    means = (0.02, 0.015)
    series = Series((1, servers), means, shape, family == "hyper", 0.0)
    uniform = [np.random.default_rng(1).uniform(1e-12, 1, (len(LEAVE), 40_001))]
    trace = Trace(ARRIVALS, LEAVE - ARRIVALS)
    expected = by_quadrature(family, means, shape, servers)
    assert log_likelihood(series, [trace], uniform) == pytest.approx(expected, abs=0.03)


def test_several_servers_at_the_first_station_overlap() -> None:
    """With three of them, requests that came together are as likely as three that came alone."""
    took = np.array([0.02, 0.015, 0.018])
    alone, together = Trace(np.array([0.0, 10.0, 20.0]), took), Trace(np.array([0.0, 1e-9, 2e-9]), took)
    uniform = [np.random.default_rng(2).uniform(1e-12, 1, (3, 20_001))]

    def found(servers: int, trace: Trace) -> float:
        series = Series((servers, 3), (0.02, 0.015), 1.0, hyperexponential=False, latency=0.0)
        return log_likelihood(series, [trace], uniform)

    assert found(3, together) == pytest.approx(found(3, alone), abs=0.05)
    assert found(1, together) < found(1, alone) - 0.5


def test_a_request_that_seems_to_leave_too_early_is_unlikely_and_not_impossible() -> None:
    """Two sent together may be swapped on their way."""
    swapped = Trace(np.array([0.0, 0.001]), np.array([0.05, 0.03]))
    uniform = [np.random.default_rng(3).uniform(1e-12, 1, (2, 2001))]
    found = log_likelihood(Series((1, 1), (0.02, 0.015), 1.0, False, 0.0), [swapped], uniform)
    assert math.isfinite(found)
    ordered = Trace(np.array([0.0, 0.001]), np.array([0.03, 0.05]))
    assert found < log_likelihood(Series((1, 1), (0.02, 0.015), 1.0, False, 0.0), [ordered], uniform) - 2
