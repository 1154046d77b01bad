"""Input of demand estimators: three kinds of observations of one station, as arrays.

A *station* is a pool of threads that share cores. A request is *admitted* when a thread takes it; what
happens before (a queue in front of the pool) is no part of any time here. Notation of all modules: i counts
requests (I of them), r counts classes (R), k counts windows (K). Times are in seconds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "ArrivalSamples",
    "FloatArray",
    "IntArray",
    "Trace",
    "Windows",
    "admitted",
    "arrival_samples",
    "seen_in_all",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.signedinteger[Any]]

ALWAYS = (-math.inf, math.inf)
AT_ONCE = 100_000
"""Requests whose admission is found at a time: as lists of numbers they are large."""
LARGEST_STATE = 1 << 31
"""Bytes that what requests saw may take."""


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
        counted: Between which moments of admission requests count; the others are only company of these.
        notes: What the reader should know about the data.
    """

    classes: tuple[str, ...]
    kind: IntArray
    owner: IntArray
    start: FloatArray
    end: FloatArray
    counted: tuple[float, float] = ALWAYS
    notes: tuple[str, ...] = ()

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
        return self.start if len(self.start) == len(self.kind) else self.start[self.first]

    @property
    def counts_mask(self) -> npt.NDArray[np.bool_]:
        """Whether each request counts; shape (I,)."""
        low, high = self.counted
        now = self.admitted
        mask: npt.NDArray[np.bool_] = (now >= low) & (now <= high)
        return mask

    @property
    def rates(self) -> FloatArray | None:
        """Admissions per second from the first to the last one that counts, shape (R,); None = no time."""
        mine = self.counts_mask
        now = self.admitted[mine]
        period = float(now.max() - now.min()) if len(now) else 0.0
        counts = np.bincount(self.kind[mine], minlength=len(self.classes))
        return counts / period if period > 0 else None

    def with_notes(self, notes: Iterable[str]) -> Trace:
        """Return the same with more notes."""
        return replace(self, notes=(*self.notes, *notes))


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
    last admission. Only requests that count are samples.

    Raises:
        ValueError: So many requests of so many classes do not fit into memory.
    """
    kinds = trace.kind[trace.owner]
    mine = np.flatnonzero(trace.counts_mask)
    now = trace.admitted[mine]
    kind = trace.kind[mine]
    if len(mine) * len(trace.classes) * 8 > LARGEST_STATE:
        raise ValueError(
            f"what {len(mine)} requests of {len(trace.classes)} classes saw is too much for the memory: put "
            "classes together with --group, or take method bl, which needs none of it"
        )
    seen = np.empty((len(mine), len(trace.classes)), dtype=np.int64)
    for r in range(len(trace.classes)):
        begun = np.sort(trace.start[kinds == r])
        ended = np.sort(trace.end[kinds == r])
        seen[:, r] = np.searchsorted(begun, now, "right") - np.searchsorted(ended, now, "right")
    # A request that took no measurable time has left by its own admission.
    own = np.arange(len(mine))
    seen[own, kind] = np.maximum(seen[own, kind], 1)
    return ArrivalSamples(
        trace.classes, kind, trace.response_time[mine], np.maximum(seen, 0), trace.rates, now
    )


def seen_in_all(trace: Trace) -> IntArray:
    """Return how many requests were in process on the admission of each, itself included; shape (I,)."""
    now = trace.admitted
    total = np.searchsorted(np.sort(trace.start), now, "right")
    total -= np.searchsorted(np.sort(trace.end), now, "right")
    return np.maximum(total, 1)


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
    for first in range(0, len(arrival), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        pairs = zip(arrival[some].tolist(), departure[some].tolist(), strict=True)
        for i, (came, left) in enumerate(pairs, start=first):
            if len(busy) >= threads:
                result[i] = max(came, heapq.heappop(busy))
            heapq.heappush(busy, left)
    early = np.flatnonzero(departure < result)
    if len(early):
        raise ValueError(f"request {int(early[0]) + 1} left before any of {threads:g} threads was free")
    return result
