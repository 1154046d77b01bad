"""Executions, durations and failures of each endpoint, from event logs of any size.

Times go into a histogram whose bins are 2 % wide, so memory is constant and percentiles are good to 1 %;
means are exact. An execution lasts from `begin` to `end` (the reply), without what it waited for a worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.events.record import FAILED, QUEUED, Event

__all__ = ["Figures", "FileFigures", "merged"]

FIRST, WIDTH, BINS = 1e-6, 1.02, 1400
"""Seconds where the first bin ends, the ratio of the bins' ends, and how many there are (up to 10**6 s)."""


@dataclass(slots=True)
class Figures:
    """What is known of one endpoint (or of the scenario of a client).

    Attributes:
        count: Executions that ended.
        failed: Of these, those whose endpoint raised or whose reply was 500 or above.
        seconds: The sum of their times.
        arrived, queued: Requests a front read, and those that found no idle worker.
        histogram: Number of executions by time.
    """

    count: int = 0
    failed: int = 0
    seconds: float = 0.0
    arrived: int = 0
    queued: int = 0
    histogram: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))

    @property
    def mean(self) -> float | None:
        """Mean time of an execution in seconds; None without any."""
        return self.seconds / self.count if self.count else None

    def percentile(self, share: float) -> float | None:
        """Return the time that this share of the executions does not exceed; None without any."""
        if not self.count:
            return None
        index = int(np.searchsorted(np.cumsum(self.histogram), share * self.count))
        return FIRST * float(WIDTH ** (index - 0.5)) if index else FIRST

    def add(self, other: Figures) -> None:
        """Add what another log knows."""
        for name in ("count", "failed", "seconds", "arrived", "queued", "histogram"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add_times(self, seconds: npt.NDArray[np.float64], failed: int) -> None:
        """Add executions."""
        self.count += len(seconds)
        self.failed += failed
        self.seconds += float(seconds.sum())
        places = np.log(np.maximum(seconds, FIRST) / FIRST) / math.log(WIDTH)
        self.histogram += np.bincount(np.minimum(np.ceil(places), BINS - 1).astype(int), minlength=BINS)


class FileFigures:
    """The figures of one log, which is fed batch by batch.

    Attributes:
        by_name: Per name id.
    """

    def __init__(self) -> None:
        self.by_name: dict[int, Figures] = {}
        empty: npt.NDArray[Any] = np.empty(
            0, np.dtype([("request", "<u8"), ("time", "<i8"), ("flags", "u1")])
        )
        # Of executions that have not ended: what remains in a worker is what it works on.
        self._begun = self._replied = empty

    def add(self, batch: npt.NDArray[np.void]) -> None:
        """Add the next records of the log."""
        arrived = batch[batch["event"] == Event.ARRIVE]
        for name, some in _by_name(arrived):
            figures = self._of(name)
            figures.arrived += len(some)
            figures.queued += int(np.count_nonzero(some["flags"] & QUEUED))
        begun = np.concatenate([self._begun, _parts(batch[batch["event"] == Event.BEGIN])])
        replied = np.concatenate([self._replied, _parts(batch[batch["event"] == Event.END])])
        done = batch[batch["event"] == Event.DONE]
        for name, all_done in _by_name(done):
            start, known = _find(begun, all_done["request"])
            some, start = all_done[known], start[known]
            reply, replies = _find(replied, some["request"])
            ends = np.where(replies, reply["time"], some["time"])
            failed = (some["flags"] & FAILED) | np.where(replies, reply["flags"] & FAILED, 0)
            times = (ends - start["time"]) / 1e9
            self._of(name).add_times(times, int(np.count_nonzero(failed)))
        self._begun = begun[~np.isin(begun["request"], done["request"])]
        self._replied = replied[~np.isin(replied["request"], done["request"])]

    def _of(self, name: int) -> Figures:
        return self.by_name.setdefault(name, Figures())


def _parts(records: npt.NDArray[np.void]) -> npt.NDArray[Any]:
    found = np.empty(len(records), np.dtype([("request", "<u8"), ("time", "<i8"), ("flags", "u1")]))
    for part in ("request", "time", "flags"):
        found[part] = records[part]
    return found


def _by_name(records: npt.NDArray[np.void]) -> Iterator[tuple[int, npt.NDArray[np.void]]]:
    for name in np.unique(records["name"]).tolist():
        yield name, records[records["name"] == name]


def _find(
    records: npt.NDArray[Any], requests: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the first record of each request, and which of them there are; others are arbitrary ones."""
    if not len(records):
        return np.zeros(len(requests), records.dtype), np.zeros(len(requests), dtype=bool)
    ids, first = np.unique(records["request"], return_index=True)
    places = np.minimum(np.searchsorted(ids, requests), len(ids) - 1)
    return records[first[places]], ids[places] == requests


def merged(parts: list[dict[str, Figures]]) -> dict[str, Figures]:
    """Add the figures of several logs, by the name of the endpoint."""
    found: dict[str, Figures] = {}
    for part in parts:
        for name, figures in part.items():
            found.setdefault(name, Figures()).add(figures)
    return dict(sorted(found.items()))
