"""Choose the method that fits the data, and run it: one call for all estimators.

``estimate`` takes a trace, arrival samples or windows. A trace can be reduced to arrival samples; nothing
else can be turned into something it is not. ``auto`` takes the method with the smallest error for what is
known: ``bl`` for a trace, ``ldps`` for arrival samples, ``ur`` for windows
(docs/explanation/demand-estimation.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.estimation import baseline, comparisons, fluid, markov, regression
from analyzer.estimation.fit import Fit, resampling_counts
from analyzer.estimation.likelihood import admission_rates
from analyzer.estimation.samples import (
    ArrivalSamples,
    FloatArray,
    IntArray,
    Trace,
    Windows,
    arrival_samples,
    seen_in_all,
)
from mup.errors import UsageError

__all__ = ["METHODS", "Estimate", "Observations", "estimate"]

Observations = Trace | ArrivalSamples | Windows

LEVEL = 0.95
FEW = 30
"""Samples of a class below which its interval is itself a rough guess."""
AT_ONCE = 2_000_000
"""Counts of a resampling held in memory at a time."""
NEVER_SHARED = (
    "no request had to share a core, so demands are response times: if anything but processor "
    "time is in them (waiting for others, for locks, for disks), it is in the demands, too"
)
LONG_TAIL = 2.0
"""Squared coefficient of variation of the work of requests from which a hundred samples are too few."""


@dataclass(frozen=True)
class Method:
    """One estimator.

    Attributes:
        needs: ``trace``, ``samples`` or ``windows``.
        pool: It has to know the size of the thread pool.
        run: Maps observations, cores and threads to a fit.
    """

    needs: str
    pool: bool
    run: Callable[[Any, float, float], Fit]


METHODS: dict[str, Method] = {
    "bl": Method("trace", False, lambda data, cores, _: baseline.baseline(data, cores)),
    "ldps": Method("samples", False, lambda data, cores, _: regression.ldps(data, cores)),
    "rps": Method("samples", False, lambda data, cores, _: regression.rps(data, cores)),
    "erps": Method("samples", False, lambda data, cores, _: regression.erps(data, cores)),
    "mlps": Method("samples", True, markov.mlps),
    "minps": Method("samples", True, markov.minps),
    "fmlps": Method("samples", True, fluid.fmlps),
    "fmlps-he": Method("samples", True, fluid.fmlps_hyperexponential),
    "fcfs": Method("samples", False, lambda data, *_: comparisons.fcfs(data)),
    "ur": Method("windows", False, lambda data, cores, _: comparisons.utilization_regression(data, cores)),
    "pf": Method("windows", False, lambda data, cores, _: comparisons.open_product_form(data, cores)),
}

_BEST = {"trace": "bl", "samples": "ldps", "windows": "ur"}
_KNOWN = {
    "trace": "every admission and completion is known, so the work each request got can be added up",
    "samples": (
        "what requests saw on admission is known, and mean response time over mean stretch, "
        "max(1, seen / cores), needs neither think times nor the thread pool"
    ),
    "windows": "utilization and throughputs are known, which the utilization law connects",
}
_DATA = {
    "trace": "arrival and departure of every request",
    "samples": "what each request saw on admission",
    "windows": "utilization and throughputs over windows",
}


@dataclass(frozen=True)
class Estimate:
    """Demands of one station.

    Attributes:
        method: Name of the method that was used.
        reason: Why, in one sentence.
        cores, threads: Of the station.
        classes: Name of each class, R of them.
        samples: Requests (or windows) each demand rests on; shape (R,).
        demand: Mean demand, s; NaN where a class was never observed; shape (R,).
        low, high: 95 % bootstrap interval, NaN where there are fewer than two samples; shape (R,).
        draws: Demands of the resamples, shape (B, R).
        rates: Admissions (completions) per second; shape (R,).
        scv: Squared coefficient of variation of the work of single requests, shape (R,); None = not known.
        notes: What the reader should know about the data.
    """

    method: str
    reason: str
    cores: float
    threads: float
    classes: tuple[str, ...]
    samples: IntArray
    demand: FloatArray
    low: FloatArray
    high: FloatArray
    draws: FloatArray
    rates: FloatArray
    scv: FloatArray | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document of ``mup estimate``; what is not known is null."""
        classes = {
            name: {
                "demand": {
                    "mean": _finite(self.demand[r]),
                    "low": _finite(self.low[r]),
                    "high": _finite(self.high[r]),
                },
                "scv": None if self.scv is None else _finite(self.scv[r]),
                "rate": _finite(self.rates[r]),
                "samples": int(self.samples[r]),
            }
            for r, name in enumerate(self.classes)
        }
        return {
            "method": self.method,
            "reason": self.reason,
            "cores": self.cores if math.isfinite(self.cores) else "inf",
            "threads": self.threads if math.isfinite(self.threads) else "inf",
            "classes": classes,
            "notes": list(self.notes),
        }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def estimate(
    data: Observations,
    *,
    cores: float,
    threads: float = math.inf,
    method: str = "auto",
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Estimate the mean demands of the classes of a station.

    Args:
        data: What was observed.
        cores: Cores the requests in process share.
        threads: Requests in process at once at most.
        method: One of ``METHODS``, or ``auto``.
        resamples: Of the bootstrap behind the intervals.
        seed: Of the bootstrap.

    Raises:
        UsageError: The method is unknown, does not fit the data or lacks the number of threads, or the data
            cannot come from such a station.
    """
    kind = _kind(data)
    name = _BEST[kind] if method == "auto" else method
    if name not in METHODS:
        raise UsageError(f"no method {method!r}", hint=f"known: auto, {', '.join(METHODS)}")
    chosen = METHODS[name]
    if chosen.needs != kind and (chosen.needs, kind) != ("samples", "trace"):
        fitting = [
            n for n, m in METHODS.items() if m.needs == kind or (m.needs, kind) == ("samples", "trace")
        ]
        raise UsageError(
            f"method {name} needs {_DATA[chosen.needs]}, and the data has {_DATA[kind]}",
            hint=f"methods for this data: {', '.join(fitting)}",
        )
    if chosen.pool and math.isinf(threads):
        raise UsageError(f"method {name} has to know the thread pool", hint="say --pool N")
    reason = _KNOWN[kind] if method == "auto" else "asked for"
    if isinstance(data, Trace) and not data.counts_mask.any():
        raise UsageError(
            "the log is too short: no request began and ended far enough from both of its ends",
            hint="give more of it",
        )
    try:
        used = arrival_samples(data) if isinstance(data, Trace) and chosen.needs == "samples" else data
        most = _most_seen(used)
        _check_pool(most, threads)
        fit = chosen.run(used, cores, threads)
    except ValueError as error:
        raise UsageError(f"method {name}: {error}") from error
    observations = len(used.utilization) if isinstance(used, Windows) else len(used.kind)
    observations = fit.units or observations
    draws = _draws(fit, observations, resamples, seed)
    low, high = _interval(draws)
    counts = _counts(used)
    low, high = np.where(counts < 2, np.nan, low), np.where(counts < 2, np.nan, high)
    scv = _scv(used, fit.work) if isinstance(used, Trace) and fit.work is not None else None
    notes = _notes(used, counts, scv)
    if most is not None and most[0] <= cores:
        notes += (NEVER_SHARED,)
    if isinstance(data, Trace):
        notes += data.notes
    if chosen.pool and isinstance(used, ArrivalSamples):
        notes += _warnings(name, low, regression.ldps(used, cores).demand, used.classes)
    return Estimate(
        method=name,
        reason=reason,
        cores=cores,
        threads=threads,
        classes=used.classes,
        samples=counts,
        demand=fit.demand,
        low=low,
        high=high,
        draws=draws,
        rates=_rates(used),
        scv=scv,
        notes=notes,
    )


def _kind(data: Observations) -> str:
    if isinstance(data, Trace):
        return "trace"
    return "samples" if isinstance(data, ArrivalSamples) else "windows"


def _most_seen(data: Observations) -> tuple[int, int] | None:
    """Return the most requests one saw in process, itself included, and which one; None for windows."""
    if isinstance(data, Windows):
        return None
    seen = seen_in_all(data) if isinstance(data, Trace) else data.total
    worst = int(np.argmax(seen))
    return int(seen[worst]), worst


def _check_pool(most: tuple[int, int] | None, threads: float) -> None:
    if most is not None and most[0] > threads:
        raise UsageError(
            f"request {most[1] + 1} saw {most[0]} in process, itself included, with {threads:g} threads",
            hint="only requests a thread has taken count, not those that wait for one; or --pool is wrong",
        )


def _draws(fit: Fit, observations: int, resamples: int, seed: int) -> FloatArray:
    size = max(1, min(resamples, AT_ONCE // observations))
    parts = [
        fit.resampled(resampling_counts(observations, min(size, resamples - done), seed + done))
        for done in range(0, resamples, size)
    ]
    return np.concatenate(parts) if parts else np.empty((0, len(fit.demand)))


def _interval(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return percentiles of the draws; a resample without any request of a class does not count for it."""
    low, high = np.full(draws.shape[1], np.nan), np.full(draws.shape[1], np.nan)
    for r in range(draws.shape[1]):
        if len(known := draws[np.isfinite(draws[:, r]), r]):
            low[r], high[r] = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return low, high


def _counts(data: Observations) -> IntArray:
    if isinstance(data, Windows):
        return np.asarray(np.count_nonzero(data.throughput > 0, axis=0), dtype=np.int64)
    kind = data.kind[data.counts_mask] if isinstance(data, Trace) else data.kind
    return np.bincount(kind, minlength=len(data.classes)).astype(np.int64)


def _rates(data: Observations) -> FloatArray:
    if isinstance(data, Windows):
        return np.asarray(data.throughput.mean(axis=0), dtype=np.float64)
    if isinstance(data, Trace) and data.rates is not None:
        return data.rates
    return admission_rates(arrival_samples(data) if isinstance(data, Trace) else data)


def _scv(trace: Trace, work: FloatArray) -> FloatArray:
    kind = trace.kind[trace.counts_mask]
    result = np.full(len(trace.classes), np.nan)
    for r in range(len(trace.classes)):
        mine = work[kind == r]
        if len(mine) > 1 and mine.mean() > 0:
            result[r] = mine.var(ddof=1) / mine.mean() ** 2
    return result


def _warnings(name: str, low: FloatArray, other: FloatArray, classes: tuple[str, ...]) -> tuple[str, ...]:
    """Return notes on demands that are above what ``ldps`` finds, by more than chance explains."""
    return tuple(
        f"{what}: ldps finds {value:.3g} s, below all of this interval: under load {name} errs upwards, and "
        "its interval does not show that"
        for what, least, value in zip(classes, low.tolist(), other.tolist(), strict=True)
        if value < least
    )


def _notes(data: Observations, counts: IntArray, scv: FloatArray | None) -> tuple[str, ...]:
    notes = []
    for name, count in zip(data.classes, counts.tolist(), strict=True):
        if count < FEW:
            what = "windows" if isinstance(data, Windows) else "samples"
            notes.append(f"{name}: {count} {what}; with fewer than {FEW} the interval is a rough guess")
    if scv is not None:
        for name, value in zip(data.classes, scv.tolist(), strict=True):
            if value > LONG_TAIL:
                notes.append(
                    f"{name}: the work of requests varies much (squared coefficient of variation "
                    f"{value:.1f}): the mean of few of them says little, and this class may be several"
                )
    return tuple(notes)
