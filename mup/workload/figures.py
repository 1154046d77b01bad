"""Which figures does a window give, and how sure are they?

- Response times of consecutive cycles depend on each other (they queue behind one another), so the 95 %
  interval of their mean comes from batch means: the window is cut into spans, cycles belong to the span they
  began in. With three or more runs their means count too, where they differ more.
- Throughput likewise, from the completions in each span.
- A worker is busy between ``begin`` and ``done`` of a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from mup.events.reader import Log
from mup.events.record import Event
from mup.workload.result import LoadResult

__all__ = ["Figure", "ResponseTime", "busy_seconds", "response_time", "throughput"]

BATCH_SECONDS = 1.0
FEWEST_BATCHES, MOST_BATCHES = 5, 20
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean and the half-width of its 95 % interval (None: too few data to tell)."""

    mean: float
    ci95: float | None


@dataclass(frozen=True, slots=True)
class ResponseTime:
    """Seconds per cycle, think time excluded.

    Attributes:
        mean: 0 if no cycle succeeded; look at the number of errors first.
        ci95: Half-width of the 95 % interval of the mean; None with fewer than two batches.
        p50, p90, p95, p99: Percentiles over all cycles.
    """

    mean: float
    ci95: float | None
    p50: float
    p90: float
    p95: float
    p99: float


def response_time(results: Sequence[LoadResult]) -> ResponseTime:
    """Return mean, interval and percentiles over all successful cycles of one or more runs."""
    everything = np.array([value for result in results for value in result.response_times])
    if not len(everything):
        return ResponseTime(0.0, None, 0.0, 0.0, 0.0, 0.0)
    batches, means = [], []
    for result in results:
        values = np.array(result.response_times)
        starts = np.array([cycle.start_ns for cycle in result.cycles])
        batch = _batch_of(starts, result)
        batches += [
            float(values[batch == k].mean()) for k in range(_batch_count(result)) if (batch == k).any()
        ]
        if len(values):
            means.append(float(values.mean()))
    p50, p90, p95, p99 = (float(p) for p in np.percentile(everything, PERCENTILES))
    return ResponseTime(float(everything.mean()), _half_width(batches, means), p50, p90, p95, p99)


def throughput(results: Sequence[LoadResult]) -> Figure:
    """Return successful cycles per second, averaged over one or more runs, with its interval."""
    batches: list[float] = []
    means = [result.throughput for result in results]
    for result in results:
        count = _batch_count(result)
        ends = _batch_of(np.array(result.completions), result)
        batches += list(np.bincount(ends, minlength=count) * count / result.window_seconds)
    return Figure(float(np.mean(means)), _half_width(batches, means))


def busy_seconds(log: Log, start: int, end: int) -> float:
    """Return how long one worker was between ``begin`` and ``done`` within a window."""
    records = log.records[np.isin(log.records["event"], (Event.BEGIN, Event.DONE))]
    # One request at a time: a begin without a done right after it belongs to a worker that died.
    pairs = np.flatnonzero((records["event"][:-1] == Event.BEGIN) & (records["event"][1:] == Event.DONE))
    begin = np.maximum(records["time"][pairs], start)
    done = np.minimum(records["time"][pairs + 1], end)
    return float(np.maximum(done - begin, 0).sum() * 1e-9)


def _batch_count(result: LoadResult) -> int:
    return max(FEWEST_BATCHES, min(MOST_BATCHES, int(result.window_seconds / BATCH_SECONDS)))


def _batch_of(times: npt.NDArray[np.int64], result: LoadResult) -> npt.NDArray[np.int64]:
    """Return the number of the batch each time of a window falls into."""
    share = (times.astype(np.float64) - result.start_ns) / (result.end_ns - result.start_ns)
    count = _batch_count(result)
    return np.minimum((share * count).astype(np.int64), count - 1)


def _half_width(batches: Sequence[float], means: Sequence[float]) -> float | None:
    """Return the 95 % half-width of the mean: of batches, or of whole runs where these differ more."""
    widths = [
        float(stats.t.ppf(0.975, len(sample) - 1) * np.std(sample, ddof=1) / np.sqrt(len(sample)))
        for sample, fewest in ((batches, 2), (means, 3))
        if len(sample) >= fewest
    ]
    return max(widths) if widths else None
