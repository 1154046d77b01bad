"""Who goes where and who calls whom, from the ids of visits.

Visits of one id either follow each other, as those of a client who goes from station to station, or lie
within each other, as those of services that wait for what they call. In the first case counting transitions
gives the routing; in the second, a visit has called those that lie directly within it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analyzer.learning.traces import FloatArray
from analyzer.learning.visit_tables import IntArray, VisitTable

__all__ = ["Nesting", "Routing", "covered", "nesting_of", "routing_of"]

NESTED = 0.01
"""Part of the visits that may lie within others by chance: clocks of several machines are not the same."""
SLACK = 1e-3
"""Part of a mean visit by which the next one may begin before this one's end."""
THINKS = 0.01
"""Part of the gaps between visits from which on clients are somewhere between visits."""
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Nesting:
    """Which visit made which.

    Attributes:
        parent: The visit that each one lies directly within, -1 if there is none; shape (I,).
        share: Part of the visits that have a parent.
        overlapping: Part of the pairs of neighbours with one parent that overlap.
        crossing: Part of the visits that begin during another one of their id and end after it.
    """

    parent: IntArray
    share: float
    overlapping: float
    crossing: float

    @property
    def layered(self) -> bool:
        """Whether stations call each other."""
        return self.share > NESTED


@dataclass(frozen=True)
class Routing:
    """Where clients go.

    Attributes:
        names: Stations; the last one is the rest, where clients are between visits, if there is one.
        counts: Transitions from the station of the row to that of the column; shape (M, M).
        rests: Times at the rest, s; None if clients go straight on.
        clients: Mean number of them at once.
    """

    names: tuple[str, ...]
    counts: IntArray
    rests: FloatArray | None
    clients: float

    @property
    def probabilities(self) -> FloatArray:
        """Shape (M, M); rows of stations that no client was seen to leave are 0."""
        sums = self.counts.sum(axis=1, keepdims=True)
        found: FloatArray = self.counts / np.maximum(sums, 1)
        return found

    @property
    def half_widths(self) -> FloatArray:
        """Of 95 % intervals of the probabilities (Wilson); shape (M, M)."""
        n = np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        p = self.probabilities
        z = NORMAL_95
        half: FloatArray = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        return half


def _by_id(table: VisitTable) -> Iterator[IntArray]:
    """Yield the visits of each id in the order of their beginnings; of equal ones, the longest first."""
    order = np.lexsort((-table.end, table.begin, table.id))
    bounds = np.flatnonzero(np.diff(table.id[order])) + 1
    yield from np.split(order, bounds)


def _slack(table: VisitTable) -> float:
    took = table.end - table.begin
    known = took[np.isfinite(took)]
    return SLACK * float(known.mean()) if len(known) else 0.0


def nesting_of(table: VisitTable) -> Nesting:
    """Return which visits lie within which others of the same id."""
    parent = np.full(len(table.begin), -1, dtype=np.int64)
    begin, end, slack = table.begin.tolist(), table.end.tolist(), _slack(table)
    overlapping = neighbours = crossing = 0
    last_of: dict[int, int] = {}
    for rows in _by_id(table):
        open_visits: list[int] = []
        for visit in rows.tolist():
            crosses = False
            while open_visits and end[open_visits[-1]] < end[visit] - slack:
                crosses |= end[open_visits.pop()] > begin[visit] + slack
            crossing += crosses
            while open_visits and end[open_visits[-1]] <= begin[visit] + slack:
                open_visits.pop()
            if open_visits:
                parent[visit] = open_visits[-1]
                before = last_of.get(open_visits[-1])
                if before is not None:
                    neighbours += 1
                    overlapping += end[before] > begin[visit] + slack
                last_of[open_visits[-1]] = visit
            open_visits.append(visit)
    share = float(np.mean(parent >= 0))
    return Nesting(parent, share, overlapping / neighbours if neighbours else 0.0, crossing / len(parent))


def routing_of(table: VisitTable, rest: str) -> Routing:
    """Return where clients go after each visit.

    Args:
        table: With ids of clients, whose visits follow each other.
        rest: Name of the place where they are between visits.
    """
    slack = _slack(table)
    m = len(table.stations)
    pairs: Counter[tuple[int, int]] = Counter()
    gaps: list[tuple[int, int, float]] = []
    present = 0
    windows = np.array(table.windows)
    for rows in _by_id(table):
        present += 1
        for one, following in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
            low, high = windows[table.run[one]]
            left = float(table.end[one])
            if not low <= left <= high:
                continue
            gaps.append(
                (int(table.station[one]), int(table.station[following]), float(table.begin[following]) - left)
            )
    thinks = bool(gaps) and np.mean([gap > slack for _, _, gap in gaps]) > THINKS
    counts = np.zeros((m + thinks, m + thinks), dtype=np.int64)
    times = []
    for one, following, gap in gaps:
        if thinks and gap > slack:
            pairs[one, m] += 1
            pairs[m, following] += 1
            times.append(gap)
        else:
            pairs[one, following] += 1
    for (i, j), number in pairs.items():
        counts[i, j] = number
    names = (*table.stations, rest) if thinks else table.stations
    clients = present / max(1, len(table.windows))
    return Routing(names, counts, np.array(times) if thinks else None, clients)


def covered(begin: FloatArray, end: FloatArray, low: float, high: float) -> float:
    """Return for how long between two moments at least one of some visits is going on."""
    total, reached = 0.0, low
    for first, last in sorted(zip(begin.tolist(), end.tolist(), strict=True)):
        start = max(first, reached)
        stop = min(last, high)
        if stop > start:
            total += stop - start
        reached = max(reached, min(last, high))
    return total if math.isfinite(total) else 0.0
