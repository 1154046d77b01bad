"""Figures of a window, with their intervals.

- Response times belong to the moment at which they began (under an open load: should have begun), throughput
to the
  end of cycles.
- A worker is busy while it has a request: see `mup.workload.occupancy`.
- The intervals come from batches of at least a second: see `mup.statistics.repeats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mup.statistics.repeats import Batches, quantile_half_width, ratio_half_width
from mup.workload.result import LoadResult

__all__ = [
    "Busy",
    "Figure",
    "Lateness",
    "Point",
    "ResponseTime",
    "Sample",
    "Window",
    "busy_figure",
    "lateness",
    "rate",
    "response_time",
    "series",
    "spread",
    "throughput",
]

BATCH_SECONDS = 1.0
"""Shorter batches of a load run are correlated by the requests that they share."""
MOST_BATCHES = 20
"""Student's t hardly narrows with more, and longer batches are less correlated."""
PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean and the half-width of its 95 % interval (None: too few data to tell)."""

    mean: float
    ci95: float | None


@dataclass(frozen=True, slots=True)
class ResponseTime:
    """Seconds, think time excluded.

    Attributes:
        mean: 0 if nothing succeeded; look at the number of errors first.
        ci95: Half-width of the 95 % interval of the mean; None with fewer than two batches.
        p50, p90, p95, p99: Percentiles over all.
        p95_ci95: Half-width of the 95 % interval of ``p95``; None with too few data beyond it.
    """

    mean: float
    ci95: float | None
    p50: float
    p90: float
    p95: float
    p99: float
    p95_ci95: float | None = None


@dataclass(frozen=True, slots=True)
class Lateness:
    """How far a generator was behind: seconds."""

    mean: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True)
class Point:
    """One batch of the window, averaged over the repeats.

    Attributes:
        seconds: Since the window opened, of the middle of the batch.
        starts, throughput: Cycles begun (should have begun) and completed, per second.
        response_time: Mean of the cycles begun in it; None if there is none.
    """

    seconds: float
    starts: float
    throughput: float
    response_time: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """When was measured, monotonic ns."""

    start_ns: int
    end_ns: int

    @classmethod
    def of(cls, result: LoadResult) -> Window:
        """Return the window of a round."""
        return cls(result.start_ns, result.end_ns)

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) * 1e-9

    @property
    def batches(self) -> int:
        """Number of batches of at least a second it is cut into."""
        # A window of 20 s may be some ns short of it.
        return max(1, min(MOST_BATCHES, int(self.seconds / BATCH_SECONDS + 1e-6)))

    def batch_of(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of the batch each time of the window falls into."""
        share = (times - self.start_ns) / (self.end_ns - self.start_ns)
        return np.clip((share * self.batches).astype(np.int64), 0, self.batches - 1)

    def inside(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which times are in the window."""
        return (times >= self.start_ns) & (times < self.end_ns)


@dataclass(frozen=True, slots=True)
class Sample:
    """Times something took in one window, each with the moment it counts for."""

    window: Window
    at_ns: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Busy:
    """Busy worker seconds of each batch of a window, and how many there were in all."""

    window: Window
    seconds: npt.NDArray[np.float64]
    capacity: npt.NDArray[np.float64]


def response_time(results: Sequence[LoadResult], *, from_intended: bool = True) -> ResponseTime:
    """Return mean, interval and percentiles over all successful cycles of one or more runs.

    Args:
        results: One per run.
        from_intended: Count from the intended start; else from the real one. They differ under open loads
            only.
    """
    return spread(
        [
            Sample(
                Window.of(result),
                np.array([cycle.intended_ns for cycle in result.cycles], dtype=np.int64),
                np.array(
                    [cycle.response if from_intended else cycle.service_response for cycle in result.cycles]
                ),
            )
            for result in results
        ]
    )


def spread(samples: Sequence[Sample]) -> ResponseTime:
    """Return mean, interval and percentiles of times, over one or more runs."""
    everything = np.concatenate([sample.seconds for sample in samples]) if samples else np.array([])
    if not len(everything):
        return ResponseTime(0.0, None, 0.0, 0.0, 0.0, 0.0)
    parts = [(s.seconds, s.window.batch_of(s.at_ns), s.window.batches) for s in samples]
    runs: list[Batches] = [
        (
            np.bincount(batch, weights=values, minlength=count).astype(np.float64),
            np.bincount(batch, minlength=count).astype(np.float64),
        )
        for values, batch, count in parts
    ]
    p50, p90, p95, p99 = (float(p) for p in np.percentile(everything, PERCENTILES))
    return ResponseTime(
        float(everything.mean()),
        ratio_half_width(runs),
        p50,
        p90,
        p95,
        p99,
        quantile_half_width(everything, 0.95, parts),
    )


def throughput(results: Sequence[LoadResult]) -> Figure:
    """Return successful cycles per second over one or more runs, with its interval."""
    return rate([(Window.of(result), np.array(result.completions, dtype=np.int64)) for result in results])


def rate(runs: Iterable[tuple[Window, npt.NDArray[np.int64]]]) -> Figure:
    """Return how many moments there are per second of the windows, with its interval."""
    batches: list[Batches] = []
    for window, times in runs:
        number = np.bincount(window.batch_of(times), minlength=window.batches).astype(np.float64)
        batches.append((number, np.full(window.batches, window.seconds / window.batches)))
    return _ratio(batches)


def busy_figure(runs: Sequence[Busy]) -> Figure:
    """Return the busy share of workers over one or more runs, with its interval."""
    return _ratio([(run.seconds, run.capacity) for run in runs])


def lateness(values: Sequence[float]) -> Lateness | None:
    """Return mean, 95th percentile and maximum; None of nothing."""
    if not values:
        return None
    array = np.asarray(values)
    return Lateness(float(array.mean()), float(np.percentile(array, 95)), float(array.max()))


def series(results: Sequence[LoadResult]) -> tuple[Point, ...]:
    """Return the course of a window, averaged over runs of the same length."""
    if not results:
        return ()
    count = min(Window.of(result).batches for result in results)
    width = min(result.window_seconds for result in results) / count
    starts, ends, seconds = (np.zeros(count) for _ in range(3))
    for result in results:
        window = Window.of(result)
        begun = window.batch_of(np.array([cycle.intended_ns for cycle in result.cycles], dtype=np.int64))
        starts += np.bincount(begun, minlength=count)[:count]
        seconds += np.bincount(begun, weights=result.response_times, minlength=count)[:count]
        done = window.batch_of(np.array(result.completions, dtype=np.int64))
        ends += np.bincount(done, minlength=count)[:count]
    total = width * len(results)
    return tuple(
        Point(
            (k + 0.5) * width,
            float(starts[k]) / total,
            float(ends[k]) / total,
            float(seconds[k] / starts[k]) if starts[k] else None,
        )
        for k in range(count)
    )


def _ratio(batches: Sequence[Batches]) -> Figure:
    whole = sum(float(counts.sum()) for _, counts in batches)
    mean = sum(float(sums.sum()) for sums, _ in batches) / whole if whole else 0.0
    return Figure(mean, ratio_half_width(batches))
