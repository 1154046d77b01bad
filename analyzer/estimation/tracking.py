"""Track demands over time by a Kalman filter, with a test whether the model still fits.

Time is cut into periods. The state x (R,) are the demands; from one period to the next they drift:

    x' = x + w,   w of standard deviation ``drift`` x        (Q = diag((drift x)^2))
    y  = H x + v                                             (noise covariance diagonal)

What a period measures depends on the data, and is linear in x in all cases (``measurements``):

    every request    y_r = mean work of the requests of class r              H = 1
    arrival samples  y_r = mean response time of class r                     H = mean of max(1, seen / V)
    windows          y   = busy cores                                        H = throughputs

``analyzer.kalman`` asks of every period whether the demands explain it (size and whiteness of innovations).
After an alarm the filter starts over from the data that follow, so that it follows a jump.

Sources: Zheng, Woodside, Litoiu, "Performance Model Estimation and Tracking Using Optimal Filters", IEEE TSE
34 (2008), for Kalman filters on performance models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.estimation.baseline import demands
from analyzer.estimation.methods import Observations, estimate
from analyzer.estimation.samples import ArrivalSamples, FloatArray, IntArray, Trace, Windows
from analyzer.kalman import Innovation, Watch, innovation_of
from mup.errors import UsageError

__all__ = ["Alarm", "Measurement", "Tracked", "measurements", "track"]

LEARNING = 10
"""Periods the first demands, and the noise of a period, are learned from. No alarm comes from them."""
FALSE_ALARM = 1e-5
"""Probability of an alarm of one test in one period in which nothing has happened, were innovations normal.

Means of few requests have longer tails: benchmarks/estimation counts some ten times as many."""
WIDE = 1.959963984540054
"""Half-width of a 95 % interval in standard deviations."""


@dataclass(frozen=True)
class Measurement:
    """What one period says; m numbers, linear in the demands.

    Attributes:
        end: Of the period, s since the first one began.
        value: y, shape (m,).
        weight: H, shape (m, R).
        relative_noise: Standard deviation of each value relative to what it measures, if requests were
            independent; shape (m,).
    """

    end: float
    value: FloatArray
    weight: FloatArray
    relative_noise: FloatArray


@dataclass(frozen=True)
class Alarm:
    """The model does not explain a period.

    Attributes:
        period: Number of the period, from 0.
        test: ``size`` or ``whiteness``.
        statistic, limit: What was found, and what it may be.
    """

    period: int
    test: str
    statistic: float
    limit: float


@dataclass(frozen=True)
class Tracked:
    """Demands over T periods.

    Attributes:
        classes: Name of each class, R of them.
        end: Of each period, s; shape (T,).
        demand, low, high: Estimates and 95 % intervals after each period, s; shape (T, R).
        size: NIS of each period over its degrees of freedom: 1 is what is expected; shape (T,).
        alarms: In order of time.
    """

    classes: tuple[str, ...]
    end: FloatArray
    demand: FloatArray
    low: FloatArray
    high: FloatArray
    size: FloatArray
    alarms: tuple[Alarm, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``mup estimate --period``."""
        return {
            "periods": [
                {
                    "end": float(self.end[t]),
                    "demand": {
                        name: {
                            "mean": float(self.demand[t, r]),
                            "low": float(self.low[t, r]),
                            "high": float(self.high[t, r]),
                        }
                        for r, name in enumerate(self.classes)
                    },
                    "size": float(self.size[t]) if math.isfinite(self.size[t]) else None,
                }
                for t in range(len(self.end))
            ],
            "alarms": [
                {
                    "period": a.period,
                    "end": float(self.end[a.period]),
                    "test": a.test,
                    "statistic": a.statistic,
                    "limit": a.limit,
                }
                for a in self.alarms
            ],
        }


def measurements(data: Observations, *, cores: float, period: float) -> list[Measurement]:
    """Return what each period measures.

    Args:
        data: Every request, arrival samples with moments, or windows (each is a period).
        cores: Cores the requests share.
        period: Length of a period, s; of windows, their length.

    Raises:
        UsageError: Samples have no moments, or there are too few periods to learn from.
    """
    if isinstance(data, Windows):
        found = [
            Measurement(
                (k + 1) * period, data.utilization[k : k + 1] * cores, data.throughput[k : k + 1], np.ones(1)
            )
            for k in range(len(data.utilization))
        ]
    else:
        found = _of_requests(data, cores, period)
    if len(found) < LEARNING + 2:
        raise UsageError(
            f"{len(found)} periods of {period:g} s are too few: the first {LEARNING} are learned from",
            hint="choose a shorter --period, or give more data",
        )
    return found


def _of_requests(data: Trace | ArrivalSamples, cores: float, period: float) -> list[Measurement]:
    if isinstance(data, Trace):
        # A request counts when it is complete: nothing about it is known before.
        last = np.zeros(len(data.kind))
        np.maximum.at(last, data.owner, data.end)
        mine = data.counts_mask
        moment, value = last[mine], demands(data, cores)[mine]
        stretch, kind = np.ones(len(value)), data.kind[mine]
    elif data.time is None:
        raise UsageError("the samples have no moments", hint="add a column 'time' (seconds) to the file")
    else:
        moment, value = data.time + data.response_time, data.response_time
        stretch, kind = np.maximum(1.0, data.total / cores), data.kind
    number = ((moment - moment.min()) / period).astype(np.int64)
    noise = _relative_noise(kind, value, stretch, len(data.classes))
    order = np.argsort(number, kind="stable")
    bounds = np.flatnonzero(np.diff(number[order])) + 1
    result = []
    for rows in np.split(order, bounds):
        kinds = np.unique(kind[rows])
        weight = np.zeros((len(kinds), len(data.classes)))
        means, noises = np.empty(len(kinds)), np.empty(len(kinds))
        for i, r in enumerate(kinds.tolist()):
            alike = rows[kind[rows] == r]
            means[i] = value[alike].mean()
            weight[i, r] = stretch[alike].mean()
            noises[i] = noise[r] * math.sqrt(float(np.sum(stretch[alike] ** 2))) / float(stretch[alike].sum())
        result.append(Measurement(float((number[rows[0]] + 1) * period), means, weight, noises))
    return result


def _relative_noise(kind: IntArray, value: FloatArray, stretch: FloatArray, kinds: int) -> FloatArray:
    """Return the standard deviation of one request around its mean, relative to that; shape (R,)."""
    result = np.ones(kinds)
    for r in range(kinds):
        mine = kind == r
        if mine.sum() > 1 and value[mine].sum() > 0:
            ratio = value[mine] / stretch[mine]
            # A drift is in this, too, and makes it a little too large: the safe side.
            result[r] = float(ratio.std(ddof=1) / ratio.mean())
    return np.maximum(result, 1e-6)


def track(
    data: Observations, *, cores: float, period: float, drift: float = 0.02, threads: float = math.inf
) -> Tracked:
    """Follow demands over time.

    Args:
        data: Every request, arrival samples with moments, or windows.
        cores: Cores the requests share.
        period: Length of a period, s.
        drift: Standard deviation of the change of a demand from one period to the next, relative to it.
        threads: Of the pool; arrival samples and traces are checked against it.

    Raises:
        UsageError: The data do not allow it.
    """
    found = measurements(data, cores=cores, period=period)
    start = estimate(data, cores=cores, threads=threads, resamples=0).demand
    if np.any(~np.isfinite(start)):
        missing = data.classes[int(np.argmax(~np.isfinite(start)))]
        raise UsageError(f"class {missing!r} never completes, so nothing can be said about it")
    scale = _noise_scale(found[:LEARNING], start, drift)
    mean, spread = _learned(found[:LEARNING], start, scale)
    rows: list[tuple[FloatArray, FloatArray, float]] = []
    alarms: list[Alarm] = []
    watch = Watch(FALSE_ALARM)
    for t, one in enumerate(found):
        spread = spread + np.diag((drift * mean) ** 2)
        innovation = _innovation(one, mean, spread, scale)
        whitened = innovation.whitened
        mean, spread = _updated(one, mean, spread, innovation)
        rows.append((mean, np.sqrt(np.diag(spread)), float(whitened @ whitened) / len(whitened)))
        if t >= LEARNING and (finding := watch.look(whitened)) is not None:
            alarms.append(Alarm(t, finding.test, finding.statistic, finding.limit))
            # What was learned before no longer counts.
            spread = np.diag(mean**2)
    demand, sd = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return Tracked(
        classes=data.classes,
        end=np.array([one.end for one in found]),
        demand=demand,
        low=np.maximum(demand - WIDE * sd, 0.0),
        high=demand + WIDE * sd,
        size=np.array([row[2] for row in rows]),
        alarms=tuple(alarms),
    )


def _innovation(one: Measurement, mean: FloatArray, spread: FloatArray, scale: float) -> Innovation:
    predicted = one.weight @ mean
    noise = np.diag(scale * (one.relative_noise * np.maximum(predicted, 1e-12)) ** 2)
    return innovation_of(one.value - predicted, one.weight, spread, noise)


def _updated(
    one: Measurement, mean: FloatArray, spread: FloatArray, innovation: Innovation
) -> tuple[FloatArray, FloatArray]:
    """Return demands and covariance after a period."""
    after = np.maximum(mean + innovation.gain @ innovation.value, 1e-12)
    return after, (np.eye(len(mean)) - innovation.gain @ one.weight) @ spread


def _learned(found: Sequence[Measurement], start: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return demands and covariance from the first periods alone, without drift; vague before the first."""
    mean, spread = start, np.diag(start**2)
    for one in found:
        mean, spread = _updated(one, mean, spread, _innovation(one, mean, spread, scale))
    return mean, spread


def _noise_scale(found: Sequence[Measurement], start: FloatArray, drift: float) -> float:
    """Return by how much more periods vary than independent requests would, as a factor on the variance.

    Requests that are in process together share their luck, and windows come without any number of requests.
    """
    mean, _ = _learned(found, start, 1.0)
    squares = []
    for one in found:
        predicted = one.weight @ mean
        squares.append(((one.value - predicted) / (one.relative_noise * np.maximum(predicted, 1e-12))) ** 2)
    freedom = sum(len(s) for s in squares) - len(mean)
    return max(float(np.concatenate(squares).sum()) / max(freedom, 1), drift**2)
