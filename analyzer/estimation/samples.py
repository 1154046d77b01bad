"""Input of demand estimators: three kinds of observations of one station, as arrays.

A *station* is a pool of threads that share cores. A request is *admitted* when a thread takes it; what
happens before (a queue in front of the pool) is no part of any time here. Notation of all modules: i counts
requests (I of them), r counts classes (R), k counts windows (K). Times are in seconds.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["ArrivalSamples", "FloatArray", "IntArray", "Trace", "Windows", "admitted", "arrival_samples"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ArrivalSamples:
    """Requests that looked around when they were admitted, and how long each then took.

    Attributes:
        classes: Name of each class, R of them.
        kind: Class of each request; shape (I,).
        response_time: From admission to completion, without time spent waiting for others (remote calls);
            shape (I,).
        seen: Requests of each class in process on admission, the admitted one included; shape (I, R).
        rates: Admissions of each class per second, shape (R,); None = not known.
        time: Moment of admission, shape (I,); None = not known. Only tracking over time needs it.
    """

    classes: tuple[str, ...]
    kind: IntArray
    response_time: FloatArray
    seen: IntArray
    rates: FloatArray | None = None
    time: FloatArray | None = None

    def __post_init__(self) -> None:
        count, kinds = len(self.kind), len(self.classes)
        if self.response_time.shape != (count,) or self.seen.shape != (count, kinds):
            raise ValueError(
                f"{count} requests of {kinds} classes need response times of shape ({count},) and "
                f"states of shape ({count}, {kinds}), got {self.response_time.shape} and {self.seen.shape}"
            )
        if count == 0 or kinds == 0:
            raise ValueError("no samples")
        if np.any(self.seen < 0) or np.any(self.seen[np.arange(count), self.kind] < 1):
            raise ValueError("every request sees itself: its own class must be seen at least once")
        if not np.all(np.isfinite(self.response_time)) or np.any(self.response_time < 0):
            raise ValueError("response times must be finite and >= 0")

    @cached_property
    def total(self) -> IntArray:
        """Requests in process on admission, of all classes; shape (I,)."""
        total: IntArray = self.seen.sum(axis=1)
        return total

    @cached_property
    def counts(self) -> IntArray:
        """Samples of each class; shape (R,)."""
        return np.bincount(self.kind, minlength=len(self.classes)).astype(np.int64)

    def mean_per_class(self, values: FloatArray) -> FloatArray:
        """Return the mean of a value per request over each class, shape (R,); NaN where a class has none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.bincount(self.kind, values, minlength=len(self.classes)) / self.counts

    def chosen(self, index: IntArray) -> ArrivalSamples:
        """Return the samples at some positions, in that order; a position may come several times."""
        return replace(
            self,
            kind=self.kind[index],
            response_time=self.response_time[index],
            seen=self.seen[index],
            time=None if self.time is None else self.time[index],
        )


@dataclass(frozen=True)
class Trace:
    """Every request of a period: when it was in process.

    A request is in process during one or several *segments*; between two of its segments it waits for others.

    Attributes:
        classes: Name of each class, R of them.
        kind: Class of each request; shape (I,).
        owner: Request a segment belongs to, ascending; shape (S,).
        start, end: Of each segment, in order within a request; shape (S,).
    """

    classes: tuple[str, ...]
    kind: IntArray
    owner: IntArray
    start: FloatArray
    end: FloatArray

    def __post_init__(self) -> None:
        if len(self.kind) == 0:
            raise ValueError("no requests")
        if not (self.owner.shape == self.start.shape == self.end.shape):
            raise ValueError("owner, start and end must have one value per segment")
        if np.any(self.end < self.start):
            raise ValueError("a segment ends before it starts")

    @cached_property
    def first(self) -> IntArray:
        """First segment of each request; shape (I,)."""
        return np.searchsorted(self.owner, np.arange(len(self.kind))).astype(np.int64)

    @cached_property
    def response_time(self) -> FloatArray:
        """Time in process of each request; shape (I,)."""
        return np.bincount(self.owner, self.end - self.start, minlength=len(self.kind)).astype(np.float64)

    @cached_property
    def admitted(self) -> FloatArray:
        """Moment of admission of each request; shape (I,)."""
        return self.start[self.first]


@dataclass(frozen=True)
class Windows:
    """Averages over consecutive windows of time.

    Attributes:
        classes: Name of each class, R of them.
        utilization: Mean share of all cores that was busy, 0 to 1; shape (K,).
        throughput: Completions per second of each class; shape (K, R).
        response_time: Mean response time of each class; shape (K, R), NaN where nothing completed.
    """

    classes: tuple[str, ...]
    utilization: FloatArray
    throughput: FloatArray
    response_time: FloatArray


def arrival_samples(trace: Trace) -> ArrivalSamples:
    """Return what the requests of a trace saw on admission.

    Of two events at the same moment, the departure comes first. Rates are those between the first and the
    last admission.
    """
    kinds = trace.kind[trace.owner]
    now = trace.admitted
    seen = np.empty((len(trace.kind), len(trace.classes)), dtype=np.int64)
    for r in range(len(trace.classes)):
        begun = np.sort(trace.start[kinds == r])
        ended = np.sort(trace.end[kinds == r])
        seen[:, r] = np.searchsorted(begun, now, "right") - np.searchsorted(ended, now, "right")
    # A request that took no measurable time has left by its own admission.
    own = np.arange(len(trace.kind))
    seen[own, trace.kind] = np.maximum(seen[own, trace.kind], 1)
    period = float(now.max() - now.min())
    counts = np.bincount(trace.kind, minlength=len(trace.classes))
    rates = counts / period if period > 0 else None
    return ArrivalSamples(trace.classes, trace.kind, trace.response_time, np.maximum(seen, 0), rates, now)


def admitted(arrival: FloatArray, departure: FloatArray, threads: float) -> FloatArray:
    """Return when requests were admitted, first come first served, to a pool never idle while some wait.

    Args:
        arrival: Moments of arrival in front of the pool, ascending; shape (I,).
        departure: Moments of completion; shape (I,).
        threads: Of the pool.

    Returns:
        Moments of admission, shape (I,): of arrival if a thread was idle, else of the departure that freed
        one.

    Raises:
        ValueError: A request left before a thread could take it: there are more threads, or another order.
    """
    if threads >= len(arrival):
        return arrival
    # Request i is admitted once all but threads - 1 of those before it have left. A request admitted in
    # order of arrival finds a thread free from the (i - threads + 1)-th departure of its predecessors on.
    busy: list[float] = []
    result = arrival.copy()
    for i, (came, left) in enumerate(zip(arrival.tolist(), departure.tolist(), strict=True)):
        if len(busy) >= threads:
            result[i] = max(came, heapq.heappop(busy))
        heapq.heappush(busy, left)
    early = np.flatnonzero(departure < result)
    if len(early):
        raise ValueError(f"request {int(early[0]) + 1} left before any of {threads:g} threads was free")
    return result
