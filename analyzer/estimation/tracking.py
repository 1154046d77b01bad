"""Track demands over time by a Kalman filter, with tests whether the model still fits.

Time is cut into periods (``analyzer.estimation.periods``). The state x (R,) are the demands; from one period
to the next they drift:

    x' = x + w,   w of standard deviation ``drift`` x        (Q = diag((drift x)^2))
    y  = H x + v                                             (noise covariance diagonal)

Every period is asked whether what was known before it explains it: by size and whiteness of the innovations
(``analyzer.kalman``), and for a step within the last periods (``analyzer.steps``). Where every request is
known the tests look at means of a power of the demands, chosen from the first periods: they are nearer to
normal, and say more where demands vary much. After an alarm the filter starts over from the periods since the
step.

Noise and drift are learned from the first periods and learned again as the past grows; what the tests take is
learned without the last periods, and they know of how many. Invariant: what is said of a period depends on no
later one (of the first ones that are learned from: on no later one than these).

Sources: Zheng, Woodside, Litoiu, "Performance Model Estimation and Tracking Using Optimal Filters", IEEE TSE
34 (2008), for Kalman filters on performance models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from analyzer.estimation.methods import Observations
from analyzer.estimation.period_noise import GAIN, learned_noise
from analyzer.estimation.periods import POWERS, Measurement, measurements, powers_of
from analyzer.estimation.samples import FloatArray, Trace, Windows, arrival_samples
from analyzer.kalman import Finding, Innovation, Watch, innovation_of
from analyzer.steps import Steps
from mup.errors import UsageError
from mup.statistics.student import t_quantile

__all__ = ["LEARNING", "Alarm", "Tracked", "track"]

LEARNING = 20
"""Periods the first demands, noise and drift are learned from. No alarm comes from them."""
FALSE_ALARM = 1e-5
"""Probability that the test of size, or of whiteness, fails in a period in which nothing has happened."""
FALSE_STEPS = 2e-4
"""Alarms of the test for steps per period in which nothing has happened."""
TOGETHER = 0.7
"""Share of these alarms for steps of all demands by the same factor, which other machines, versions and loads
cause: with a third, 92 instead of 94 % of such steps are noticed within ten periods of 52 requests."""
LAG = 10
"""Last periods that noise is not learned from: a step in them is still to be found."""
GROWTH = 1.5
"""Noise is learned again when the past has grown by this factor."""
RECENT = 3
"""Times as many periods as are learned from at first, the last ones, tell the drift that is followed."""
FLOOR = 0.05
"""Least demand a regression starts from, of the mean one: a state of 0 could not grow."""


@dataclass(frozen=True)
class Alarm:
    """The model does not explain a period.

    Attributes:
        period: Number of the period, from 0.
        test: ``step``, ``size`` or ``whiteness``.
        statistic, limit: What was found, and what it may be.
        since: Number of the first period it is about.
    """

    period: int
    test: str
    statistic: float
    limit: float
    since: int


@dataclass(frozen=True)
class Tracked:
    """Demands over T periods.

    Attributes:
        classes: Name of each class, R of them.
        end: Of each period, s; shape (T,).
        demand, low, high: Estimates and 95 % intervals after each period, s; shape (T, R); NaN before the
            first request of a class.
        size: NIS of each period over its degrees of freedom: 1 is what is expected; shape (T,).
        alarms: In order of time.
        drift: Relative, per period, as it was taken in the end.
        learning: Periods that were learned from before any test.
    """

    classes: tuple[str, ...]
    end: FloatArray
    demand: FloatArray
    low: FloatArray
    high: FloatArray
    size: FloatArray
    alarms: tuple[Alarm, ...]
    drift: float
    learning: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``mup estimate --period``."""
        return {
            "periods": [
                {
                    "end": float(self.end[t]),
                    "demand": {
                        name: {
                            "mean": _finite(self.demand[t, r]),
                            "low": _finite(self.low[t, r]),
                            "high": _finite(self.high[t, r]),
                        }
                        for r, name in enumerate(self.classes)
                    },
                    "size": _finite(self.size[t]),
                }
                for t in range(len(self.end))
            ],
            "alarms": [
                {
                    "period": a.period,
                    "end": float(self.end[a.period]),
                    "since": a.since,
                    "test": a.test,
                    "statistic": a.statistic,
                    "limit": a.limit,
                }
                for a in self.alarms
            ],
            "drift": self.drift,
            "learned": self.learning,
        }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def track(
    data: Observations,
    *,
    cores: float,
    period: float,
    drift: float | None = None,
    learning: int = LEARNING,
    threads: float = math.inf,
) -> Tracked:
    """Follow demands over time.

    Args:
        data: Every request, arrival samples with moments, or windows.
        cores: Cores the requests share.
        period: Length of a period, s.
        drift: Standard deviation of the change of a demand from one period to the next, relative to it;
            None = learned.
        learning: Periods that noise and drift are learned from before the first test.
        threads: Of the pool; arrival samples and traces are checked against it.

    Raises:
        UsageError: The data do not allow it.
    """
    powers = POWERS if isinstance(data, Trace) else (1.0,)
    by_power = measurements(data, cores=cores, period=period, powers=powers)
    means = by_power[0]
    if len(means) < learning + 2:
        raise UsageError(
            f"{len(means)} periods of {period:g} s are too few: the first {learning} are learned from",
            hint="choose a shorter --period, give more data, or learn from fewer (--learning-periods)",
        )
    _check(data, means, threads)
    demands = _Filter(means, len(data.classes), drift, learning, follows=True)
    chosen = 0 if len(powers) == 1 else powers_of([p[:learning] for p in by_power], powers)
    slower = None if drift is None else drift * powers[chosen]
    scores = _Filter(by_power[chosen], len(data.classes), slower, learning, follows=False)
    rows: list[tuple[FloatArray, FloatArray, FloatArray, float]] = []
    alarms: list[Alarm] = []
    watch, steps = Watch(FALSE_ALARM), Steps(FALSE_STEPS)
    for t in range(len(means)):
        demands.period(t)
        innovation, weight = scores.period(t)
        size = math.nan
        if innovation is not None:
            size = float(np.mean(innovation.whitened**2))
            if t >= learning:
                watch.freedom = scores.noise.freedom
                finding = steps.look(
                    innovation, weight, scores.directions, scores.shares, scores.noise.freedom
                )
                # Both look at every period; a step is also dated.
                unexplained = watch.look(innovation.whitened)
                finding = finding or unexplained
                if finding is not None:
                    alarms.append(_alarm(t, finding))
                    steps.forget()
                    watch.forget()
                    demands.start_over(alarms[-1].since, t)
                    scores.start_over(alarms[-1].since, t)
        rows.append((*demands.interval(), size))
    return Tracked(
        classes=data.classes,
        end=np.array([one.end for one in means]),
        demand=np.array([row[0] for row in rows]),
        low=np.array([row[1] for row in rows]),
        high=np.array([row[2] for row in rows]),
        size=np.array([row[3] for row in rows]),
        alarms=tuple(alarms),
        drift=demands.noise.drift,
        learning=learning,
    )


def _alarm(period: int, finding: Finding) -> Alarm:
    since = period - finding.periods + 1
    return Alarm(period, finding.test, finding.statistic, finding.limit, since)


def _check(data: Observations, means: Sequence[Measurement], threads: float) -> None:
    seen = np.any([one.weight.any(axis=0) for one in means], axis=0)
    if not seen.all():
        missing = data.classes[int(np.argmin(seen))]
        raise UsageError(f"class {missing!r} never completes, so nothing can be said about it")
    if isinstance(data, Windows) or math.isinf(threads):
        return
    try:
        samples = arrival_samples(data) if isinstance(data, Trace) else data
    except ValueError as error:
        raise UsageError(str(error)) from error
    most = int(samples.total.max())
    if most > threads:
        raise UsageError(f"{most} requests were in process at once, more than {threads:g} threads")


class _Filter:
    """Follows the mean of a power of the demands, period by period.

    One that follows takes the drift that makes the last periods most likely, whatever it comes from. One that
    judges believes in no drift without evidence, and does not learn from the last periods: else a change
    would be taken for drift before it is found.

    Attributes:
        noise: As it was last learned.
        mean, spread: The state and its covariance; shapes (R,) and (R, R).
        known: Classes that were seen; shape (R,).
    """

    def __init__(
        self,
        periods: Sequence[Measurement],
        classes: int,
        drift: float | None,
        learning: int,
        *,
        follows: bool,
    ) -> None:
        self._periods, self._drift, self._learning, self._follows = periods, drift, learning, follows
        self._since, self._next = 0, self._first()
        first = periods[:learning]
        self.known = np.any([one.weight.any(axis=0) for one in first], axis=0)
        self.mean = _level(first, np.full(classes, np.nan))
        self.noise = learned_noise(first, self.mean, drift)
        self.spread = np.diag(self.mean**2)

    @property
    def shares(self) -> FloatArray:
        """Shares of the false alarms that each of these directions may cause; shape (D,)."""
        alone = len(self.mean)
        return np.ones(1) if alone == 1 else np.array([TOGETHER, *np.full(alone, (1 - TOGETHER) / alone)])

    @property
    def directions(self) -> FloatArray:
        """Steps that are looked for: of all demands by the same factor, and of each alone; shape (D, R)."""
        alone = np.diag(self.mean)
        return alone if len(alone) == 1 else np.concatenate([[self.mean], alone])

    def interval(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the state and its 95 % interval; NaN for what was never seen."""
        half = t_quantile(self.noise.freedom) * np.sqrt(np.diag(self.spread))
        mean = np.where(self.known, self.mean, np.nan)
        return mean, np.maximum(mean - half, 0.0), mean + half

    def period(self, t: int) -> tuple[Innovation | None, FloatArray]:
        """Take a period; return its innovation, of the classes that were known before, and their weights."""
        if t - self._since == self._next:
            first, last = self._since, t - LAG
            if self._follows:
                first, last = max(first, t - RECENT * self._learning), t
            self.noise = learned_noise(
                self._periods[first:last], self.mean, self._drift, gain=0.0 if self._follows else GAIN
            )
            self._next = self._next + LAG if self._follows else math.ceil(GROWTH * self._next)
        return self._take(self._periods[t])

    def _first(self) -> int:
        """Return after how many periods noise is learned again."""
        return self._learning + LAG if self._follows else math.ceil(GROWTH * self._learning) + LAG

    def _take(self, one: Measurement) -> tuple[Innovation | None, FloatArray]:
        self.spread = self.spread + np.diag((self.noise.drift * self.mean) ** 2)
        relative = self.noise.relative(one)
        old = self.known[one.kinds] if len(one.kinds) else np.ones(len(one.value), dtype=bool)
        innovation, weight = None, one.weight[old]
        if old.any():
            predicted = weight @ self.mean
            noise = np.diag((relative[old] * np.maximum(predicted, 1e-12)) ** 2)
            innovation = innovation_of(one.value[old] - predicted, weight, self.spread, noise)
            self.mean = np.maximum(self.mean + innovation.gain @ innovation.value, 1e-12)
            self.spread = (np.eye(len(self.mean)) - innovation.gain @ weight) @ self.spread
        for i in np.flatnonzero(~old).tolist():
            r = one.kinds[i]
            self.mean[r] = max(one.value[i] / one.weight[i, r], 1e-12)
            self.spread[r, r] = (relative[i] * self.mean[r]) ** 2
            self.known[r] = True
        return innovation, weight

    def start_over(self, since: int, until: int) -> None:
        """Forget what was before a period; take those from it on, up to one that is the last."""
        self._since, self._next = since, self._first()
        again = self._periods[since : until + 1]
        self.mean = _level(again, self.mean)
        self.spread = np.diag(self.mean**2)
        for one in again:
            self._take(one)


def _level(periods: Sequence[Measurement], before: FloatArray) -> FloatArray:
    """Return about what the demands are in some periods; what they do not tell is as it was before.

    Args:
        periods: One at least.
        before: NaN where nothing was known; shape (R,).
    """
    level: FloatArray
    number, total, _ = np.sum([one.sums for one in periods], axis=0)
    if number.any():
        level = np.where(number > 0, total / np.maximum(number, 1), before)
        level = np.where(np.isfinite(level), np.maximum(level, 1e-12), np.mean(level[number > 0]))
        return level
    value = np.concatenate([one.value for one in periods])
    weight = np.concatenate([one.weight for one in periods])
    factor = max(float(value.sum()), 1e-12) / max(float(weight.sum()), 1e-12)
    if len(value) > 2 * len(before):
        level = np.maximum(nnls(weight, value)[0], FLOOR * factor)
        return level
    known = np.isfinite(before)
    predicted = float((weight @ np.where(known, before, 0.0)).sum())
    level = before * (float(value.sum()) / predicted) if predicted > 0 else np.full(len(before), factor)
    return level
