"""Validate a station at loads that it was not fitted to.

The arrivals of a held-back load, as they were, are given to the station many times with other service
times. So neither the luck of the arrivals nor the start from an empty station is taken for an error of the
model, and the spread of the replays is what a measurement of this length may show by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.blackbox.departures import served
from analyzer.blackbox.draws import draws
from analyzer.blackbox.inversion import FloatArray
from analyzer.blackbox.station import LoadStep, Station

__all__ = ["TOLERANCE", "Comparison", "compare", "replay", "verdict"]

TOLERANCE = 0.1
"""Relative error that is accepted beyond the interval of the replays."""
WIDEST = 1.5
"""Width of the interval of the replays, relative to their mean, beyond which agreement says nothing."""
REPLAYS = 200
"""Runs of the station for the interval of the held-out load; its ends rest on five of them each."""
INTERVAL = (0.025, 0.975)
NORMAL = 1.96


@dataclass(frozen=True, slots=True)
class Comparison:
    """One held-back load: response times in seconds.

    Attributes:
        rate: Arrivals per second, as they were.
        requests: How many.
        measured, predicted: Mean response time.
        interval: Of 95 % of the replays' means.
        measured_p95, predicted_p95, p95_interval: The same for the 95th percentile.
    """

    rate: float
    requests: int
    measured: float
    predicted: float
    interval: tuple[float, float]
    measured_p95: float
    predicted_p95: float
    p95_interval: tuple[float, float]

    @property
    def error(self) -> float:
        """Of the mean: (predicted - measured) / measured."""
        return self.predicted / self.measured - 1

    @property
    def holds(self) -> bool:
        """Whether the measured mean is within the interval, widened by the tolerance."""
        low, high = self.interval
        return (1 - TOLERANCE) * low <= self.measured <= (1 + TOLERANCE) * high

    @property
    def tells(self) -> bool:
        """Whether a wrong model would have shown: the interval is narrow, or the measured mean outside."""
        low, high = self.interval
        return not self.holds or high - low <= WIDEST * self.predicted

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "rate": self.rate,
            "requests": self.requests,
            "measured": {"response_time": self.measured, "p95": self.measured_p95},
            "predicted": {
                "response_time": {"mean": self.predicted, "interval95": list(self.interval)},
                "p95": {"mean": self.predicted_p95, "interval95": list(self.p95_interval)},
            },
            "error": {"response_time": self.error, "p95": self.predicted_p95 / self.measured_p95 - 1},
            "holds": self.holds if self.tells else None,
        }


def verdict(compared: Sequence[Comparison]) -> bool | None:
    """Return whether a station holds: at every load, and the highest one tells; None = no telling."""
    if not all(each.holds for each in compared):
        return False
    highest = max(compared, key=lambda each: each.rate, default=None)
    return True if highest is not None and highest.tells else None


def compare(station: Station, held_back: Sequence[LoadStep], *, seed: int = 0) -> tuple[Comparison, ...]:
    """Compare measured response times with what the station would have shown.

    Args:
        station: Identified from other loads.
        held_back: Loads that took no part in that.
        seed: Of the replays.
    """
    return tuple(
        _compare(station, step, np.random.default_rng([seed, i])) for i, step in enumerate(held_back)
    )


def _compare(station: Station, step: LoadStep, rng: np.random.Generator) -> Comparison:
    trace = step.trace
    replayed = replay(station, trace.arrivals, REPLAYS, rng)
    means, tails = replayed.mean(axis=1), np.quantile(replayed, 0.95, axis=1)
    low, high = np.quantile(means, INTERVAL)
    tail_low, tail_high = np.quantile(tails, INTERVAL)
    return Comparison(
        rate=trace.size / step.seconds,
        requests=trace.size,
        measured=float(trace.responses.mean()),
        predicted=float(means.mean()),
        interval=(float(low), float(high)),
        measured_p95=float(np.quantile(trace.responses, 0.95)),
        predicted_p95=float(tails.mean()),
        p95_interval=(float(tail_low), float(tail_high)),
    )


def replay(station: Station, arrivals: FloatArray, times: int, rng: np.random.Generator) -> FloatArray:
    """Return the response times of requests that arrive as they did, with service times drawn anew.

    Args:
        station: Empty before the first of them.
        arrivals: Seconds, ascending, shape (n,).
        times: How often.
        rng: Of the service times.

    Returns:
        Seconds, shape (times, n).
    """
    service = draws(station.distribution, times * arrivals.size, rng).reshape(times, arrivals.size)
    # How well the mean is known is part of what a prediction leaves open.
    mean = station.distribution.mean
    unsure = station.half_width / NORMAL / mean if mean > 0 else 0.0
    service *= np.maximum(rng.normal(1.0, unsure, (times, 1)), 0.0)
    return served(arrivals + station.servers.latency, service, station.servers.count) - arrivals
