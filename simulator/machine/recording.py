"""What an engine counts while it runs, kept in bounded memory.

An engine counts in ever-growing sums (requests, seconds, thread-seconds). At regular moments of
simulated time it takes a snapshot of them; the differences between snapshots are *bins*. When there are
too many bins, neighbours are added up and the bins become twice as wide, so a run of any length keeps
between half and all of a fixed number of them. ``Layout`` says which column of a snapshot is what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from simulator.machine.variates import mix, mixed
from simulator.program import Program

__all__ = [
    "MAX_BINS",
    "Bins",
    "FloatArray",
    "Layout",
    "Level",
    "Samples",
    "most_bins",
    "sample_capacities",
    "stays",
]

FloatArray = npt.NDArray[np.float64]

MAX_BINS = 2000
MIN_MAX_BINS = 64
"""So many bins are kept at least: half of them, less the warm-up, are enough for the batches of a window."""
BIN_CELLS = 1 << 26
"""Sums that bins hold, half a gigabyte of them: models of which 2000 bins take more have fewer bins."""

# Columns of a level, relative to its first.
ENTERED, LEFT, CONTENT, AREA, RESIDENCE, COMPLETED_TIME = range(6)
LEVEL_WIDTH = 6

MAX_REPLICA_LEVELS = 64
"""Up to this many replicas in all, each has figures of its own."""


MAX_SAMPLES = 1 << 20
"""Single times kept per run, all entries together; half of them again for cycles."""
MIN_SAMPLES = 1 << 6
"""Of every entry, however many there are. (Up to 4096 entries it is four times as many, or more.)"""


@dataclass(frozen=True, slots=True)
class Capacities:
    """How many single times are kept per population and per entry."""

    population: int
    entry: int


def sample_capacities(program: Program) -> Capacities:
    """Share the memory for single times among populations and entries."""
    return Capacities(
        population=_power_of_two(MAX_SAMPLES // 2 // max(1, len(program.populations))),
        entry=min(1 << 15, _power_of_two(MAX_SAMPLES // max(1, len(program.entries)))),
    )


def _power_of_two(limit: int) -> int:
    return max(MIN_SAMPLES, 1 << max(0, limit.bit_length() - 1))


class Level:
    """How many are somewhere (waiting, holding a thread, inside an entry), integrated over time.

    The integral of the content (``area``) and the sum of the residence times are kept from separate
    sums, so that one checks the other: they differ as soon as an arrival or a departure is missed.
    """

    __slots__ = ("_area", "_last", "_since", "completed_time", "content", "entered", "left")

    def __init__(self) -> None:
        self.content = 0
        self.entered = 0
        self.left = 0
        self.completed_time = 0.0
        self._area = 0.0
        self._last = 0.0
        self._since = 0.0  # sum of the moments of entry of those inside

    def enter(self, now: float) -> None:
        """Count one that comes in."""
        self._area += self.content * (now - self._last)
        self._last = now
        self.content += 1
        self.entered += 1
        self._since += now

    def leave(self, now: float, since: float) -> None:
        """Count one that goes out again, having come in at ``since``."""
        self._area += self.content * (now - self._last)
        self._last = now
        self.content -= 1
        self.left += 1
        self.completed_time += now - since
        # An empty place forgets the rounding errors of its past.
        self._since = self._since - since if self.content else 0.0

    def leave_any(self, now: float) -> None:
        """Count one that goes out of which is not known when it came: it takes the mean of all with it."""
        self.leave(now, self._since / self.content if self.content else now)

    def snapshot(self, now: float) -> tuple[float, ...]:
        """Return the six sums as of now, without changing anything."""
        area = self._area + self.content * (now - self._last)
        residence = self.completed_time + (self.content * now - self._since)
        return (self.entered, self.left, self.content, area, residence, self.completed_time)


class Layout:
    """Which column of a snapshot holds what, for one program.

    A *station* is a replica of a task, a *place* what is counted together: every station has its own as
    long as there are few, else one per task. Levels come first (see ``LEVEL_WIDTH``): waiting and busy
    of every place, then the requests inside every entry, then the thinking clients of every population.
    Then per server its busy core-seconds and the service given (in core-seconds); per population its
    cycles, the sum of their response times and the sum of their cycle times; per call site its requests
    and how long they waited for a thread; per join its completions and the time since the branches
    began; per timed activity its executions, their time, and how much of it was waiting for a processor; per
    set-up how often it was added after sleep, and the seconds.
    """

    def __init__(self, program: Program) -> None:
        self.tasks = len(program.tasks)
        self.entries = len(program.entries)
        self.populations = len(program.populations)
        self.servers = len(program.servers)
        self.sites = len(program.sites)
        self.joins = len(program.joins)
        self.activities = len(program.activities)
        self.setups = len(program.setups)
        closed = {p.task for p in program.populations if not p.is_open}
        replicas = [0 if i in closed else t.replicas for i, t in enumerate(program.tasks)]
        self.first_station = [0, *accumulate(replicas)]
        self.stations = self.first_station[-1]
        self.by_replica = self.stations <= MAX_REPLICA_LEVELS
        if self.by_replica:
            self.place_of = list(range(self.stations))
            self.places_of = [
                list(range(self.first_station[i], self.first_station[i + 1])) for i in range(self.tasks)
            ]
            self.places = self.stations
        else:
            self.place_of = [i for i, count in enumerate(replicas) for _ in range(count)]
            self.places_of = [[i] for i in range(self.tasks)]
            self.places = self.tasks
        self.levels = 2 * self.places + self.entries + self.populations
        self._servers_at = self.levels * LEVEL_WIDTH
        self._cycles_at = self._servers_at + 2 * self.servers
        self._sites_at = self._cycles_at + 3 * self.populations
        self._joins_at = self._sites_at + 2 * self.sites
        self._activities_at = self._joins_at + 2 * self.joins
        self._setups_at = self._activities_at + 3 * self.activities
        self.width = self._setups_at + 2 * self.setups

    def waiting(self, place: int) -> int:
        """Return the first column of a place's waiting requests."""
        return 2 * place * LEVEL_WIDTH

    def busy(self, place: int) -> int:
        """Return the first column of a place's held threads."""
        return (2 * place + 1) * LEVEL_WIDTH

    def inside(self, entry: int) -> int:
        """Return the first column of the requests inside an entry (arrived, not yet answered)."""
        return (2 * self.places + entry) * LEVEL_WIDTH

    def thinking(self, population: int) -> int:
        """Return the first column of a population's thinking clients."""
        return (2 * self.places + self.entries + population) * LEVEL_WIDTH

    def server(self, server: int) -> int:
        """Return the column of a server's busy core-seconds; the next is the service it gave."""
        return self._servers_at + 2 * server

    def cycles(self, population: int) -> int:
        """Return the column of a population's cycles; the next two are response and cycle times."""
        return self._cycles_at + 3 * population

    def site(self, site: int) -> int:
        """Return the column of a call site's requests; the next is the time they waited for a thread."""
        return self._sites_at + 2 * site

    def join(self, join: int) -> int:
        """Return the column of a join's completions; the next is the time since the branches began."""
        return self._joins_at + 2 * join

    def activity(self, activity: int) -> int:
        """Return the column of an activity's executions; then their time and processor waiting."""
        return self._activities_at + 3 * activity

    def setup(self, setup: int) -> int:
        """Return the column of how often a set-up was added; the next is the seconds."""
        return self._setups_at + 2 * setup


def most_bins(columns: int) -> int:
    """Return how many bins of so many columns are kept: an even number, ``MAX_BINS`` of ordinary models."""
    return min(MAX_BINS, max(MIN_MAX_BINS, BIN_CELLS // max(1, columns) // 2 * 2))


class Bins:
    """The differences between snapshots, of equal width (seconds), fewer than ``most_bins`` of them.

    Attributes:
        width: Of a bin, in seconds.
        count: Bins so far.
        previous: The last snapshot.
    """

    def __init__(self, columns: int, width: float) -> None:
        self.width = width
        self.count = 0
        self._most = most_bins(columns)
        self.previous = np.zeros(columns)
        self._rows = np.empty((self._most, columns))

    @property
    def end(self) -> float:
        """The simulated time of the last snapshot."""
        return self.count * self.width

    @property
    def next_time(self) -> float:
        """The simulated time of the next snapshot (a product, so that no rounding adds up)."""
        return (self.count + 1) * self.width

    def add(self, snapshot: Sequence[float] | FloatArray) -> None:
        """Store the snapshot taken at ``next_time``."""
        np.subtract(snapshot, self.previous, out=self._rows[self.count])
        self.previous[:] = snapshot
        self.finish(1)

    def room(self, end: float) -> FloatArray:
        """Return the rows of the next bins, until one ends at ``end`` (seconds) or later, as far as they fit.

        An engine that fills the first of them says so by ``finish``, and has the snapshot behind them written
        into ``previous``.
        """
        last = self.count if end <= self.end else max(self.count, int(end / self.width))
        while last * self.width < end:
            last += 1
        return self._rows[self.count : min(last, self._most)]

    def finish(self, bins: int) -> None:
        """Take note that so many more bins are filled."""
        self.count += bins
        if self.count == self._most:
            self.count = self._most // 2
            for row in range(self.count):  # in place: together they may take half of the memory there is
                np.add(self._rows[2 * row], self._rows[2 * row + 1], out=self._rows[row])
            self.width *= 2

    @property
    def rows(self) -> FloatArray:
        """The bins, shape (count, columns)."""
        return self._rows[: self.count]


class Samples:
    """Single times for percentiles: all of them, or every 2nd, 4th, ... (at random) once there are too many.

    Which ones stay depends on their moment alone, not on the order in which an engine reports them.

    Attributes:
        mask: A moment stays if these bits of its hash are 0.
    """

    __slots__ = ("_capacity", "_ends", "_values", "mask")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._ends: list[float] = []
        self._values: list[float] = []
        self.mask = 0

    def add(self, end: float, value: float) -> None:
        """Record that ``value`` seconds ended at time ``end``."""
        if not stays(end, self.mask):
            return
        self._ends.append(end)
        self._values.append(value)
        while len(self._ends) >= self._capacity:
            self.mask = 2 * self.mask + 1
            pairs = zip(self._ends, self._values, strict=True)
            kept = [(end, value) for end, value in pairs if stays(end, self.mask)]
            self._ends, self._values = [end for end, _ in kept], [value for _, value in kept]

    def __len__(self) -> int:
        return len(self._ends)

    @classmethod
    def of(cls, ends: FloatArray, values: FloatArray, mask: int) -> Samples:
        """Return samples an engine has collected by itself."""
        samples = cls(0)
        samples._ends, samples._values, samples.mask = ends, values, mask  # type: ignore[assignment]
        return samples

    def arrays(self, mask: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return the ends, ascending, and the values; thinned out further if the mask is a stricter one."""
        ends, values = self.unordered(mask)
        order = np.lexsort((values, ends))
        return ends[order], values[order]

    def unordered(self, mask: int = 0) -> tuple[FloatArray, FloatArray]:
        """Return the same in no particular order, which is quicker."""
        ends, values = np.asarray(self._ends, dtype=np.float64), np.asarray(self._values, dtype=np.float64)
        if mask > self.mask:
            kept = (ends > 0) & ((mixed(ends.view(np.uint64)) & np.uint64(mask)) == 0)
            ends, values = ends[kept], values[kept]
        return ends, values


def stays(moment: float, mask: int) -> bool:
    """Return whether the times that ended at a moment are kept under a mask.

    The hash looks random but depends on the moment alone. Of 0 it is 0, which no mask would ever thin out,
    so times that ended at 0 (before anything could take time) go first.
    """
    return not mask or (moment > 0 and not int(mix(np.float64(moment).view(np.uint64))) & mask)
