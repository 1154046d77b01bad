"""What does an engine count while it runs, and how is that kept in bounded memory?

An engine counts in ever-growing sums (requests, seconds, thread-seconds). At regular moments of
simulated time it takes a snapshot of them; the differences between snapshots are *bins*. When there are
too many bins, neighbours are added up and the bins become twice as wide, so a run of any length keeps
between ``MAX_BINS / 2`` and ``MAX_BINS`` of them. ``Layout`` says which column of a snapshot is what.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from simulator.program import Program

__all__ = ["MAX_BINS", "Bins", "FloatArray", "Layout", "Level", "Samples"]

FloatArray = npt.NDArray[np.float64]

MAX_BINS = 2000

# Columns of a level, relative to its first.
ENTERED, LEFT, CONTENT, AREA, RESIDENCE, COMPLETED_TIME = range(6)
LEVEL_WIDTH = 6


class Level:
    """How many are somewhere (waiting, holding a thread, inside an entry), integrated over time.

    The integral of the content (``area``) and the sum of the residence times are kept from separate
    sums, so that one checks the other: they differ as soon as somebody enters or leaves unnoticed.
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

    def snapshot(self, now: float) -> tuple[float, ...]:
        """Return the six sums as of now, without changing anything."""
        area = self._area + self.content * (now - self._last)
        residence = self.completed_time + (self.content * now - self._since)
        return (self.entered, self.left, self.content, area, residence, self.completed_time)


class Layout:
    """Which column of a snapshot holds what, for one program.

    Levels come first (see ``LEVEL_WIDTH``): waiting and busy of every task, then the requests inside
    every entry, then the thinking clients of every population. Then per server its busy core-seconds
    and the service given (in core-seconds), then per population its cycles, the sum of their response
    times and the sum of their cycle times.
    """

    def __init__(self, program: Program) -> None:
        self.tasks = len(program.tasks)
        self.entries = len(program.entries)
        self.populations = len(program.populations)
        self.servers = len(program.servers)
        self.levels = 2 * self.tasks + self.entries + self.populations
        self._servers_at = self.levels * LEVEL_WIDTH
        self._cycles_at = self._servers_at + 2 * self.servers
        self.width = self._cycles_at + 3 * self.populations

    def waiting(self, task: int) -> int:
        """Return the first column of a task's waiting requests."""
        return 2 * task * LEVEL_WIDTH

    def busy(self, task: int) -> int:
        """Return the first column of a task's held threads."""
        return (2 * task + 1) * LEVEL_WIDTH

    def inside(self, entry: int) -> int:
        """Return the first column of the requests inside an entry (arrived, not yet answered)."""
        return (2 * self.tasks + entry) * LEVEL_WIDTH

    def thinking(self, population: int) -> int:
        """Return the first column of a population's thinking clients."""
        return (2 * self.tasks + self.entries + population) * LEVEL_WIDTH

    def server(self, server: int) -> int:
        """Return the column of a server's busy core-seconds; the next is the service it gave."""
        return self._servers_at + 2 * server

    def cycles(self, population: int) -> int:
        """Return the column of a population's cycles; the next two are response and cycle times."""
        return self._cycles_at + 3 * population


class Bins:
    """The differences between snapshots, fewer than ``MAX_BINS`` of equal width (seconds)."""

    def __init__(self, columns: int, width: float) -> None:
        self.width = width
        self.count = 0
        self._previous = np.zeros(columns)
        self._rows = np.zeros((MAX_BINS, columns))

    @property
    def end(self) -> float:
        """The simulated time of the last snapshot."""
        return self.count * self.width

    @property
    def next_time(self) -> float:
        """The simulated time of the next snapshot (a product, so that no rounding adds up)."""
        return (self.count + 1) * self.width

    def add(self, snapshot: Sequence[float]) -> None:
        """Store the snapshot taken at ``next_time``."""
        now = np.asarray(snapshot, dtype=np.float64)
        self._rows[self.count] = now - self._previous
        self._previous = now
        self.count += 1
        if self.count == MAX_BINS:
            self.count = MAX_BINS // 2
            self._rows[: self.count] = self._rows[0::2] + self._rows[1::2]
            self.width *= 2

    @property
    def rows(self) -> FloatArray:
        """The bins, shape (count, columns)."""
        return self._rows[: self.count]


class Samples:
    """Single times for percentiles: all of them, or every 2nd, 4th, ... once there are too many."""

    __slots__ = ("_capacity", "_ends", "_skip", "_stride", "_values")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._ends = array("d")
        self._values = array("d")
        self._stride = 1
        self._skip = 0

    def add(self, end: float, value: float) -> None:
        """Record that ``value`` seconds ended at time ``end``; ends never decrease."""
        if self._skip:
            self._skip -= 1
            return
        self._ends.append(end)
        self._values.append(value)
        self._skip = self._stride - 1
        if len(self._ends) == self._capacity:
            # The first and every second one stay; the next to keep comes as soon as it would have.
            self._ends = self._ends[::2]
            self._values = self._values[::2]
            self._stride *= 2

    def arrays(self) -> tuple[FloatArray, FloatArray]:
        """Return copies of the ends and the values."""
        return np.array(self._ends), np.array(self._values)
