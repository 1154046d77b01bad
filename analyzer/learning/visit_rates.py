"""Service of stations from visits, by counting.

A station of c servers that never idle while clients wait completes, in expectation, as many services as the
integral of its busy servers, min(clients, c), times the rate of one server: ``rate = completions / integral``.
That is the maximum of the likelihood of all events for exponential service under any discipline, and holds in
the mean for any service and any discipline (utilization law).

Where service is first come first served, every single service time is known by inversion
(``analyzer.blackbox.inversion``): then nothing is assumed about its distribution, and the interval is that of
a mean of independent times. Elsewhere the interval comes from leaving out parts of the time.

Sources: Basawa, Prabhu, "Large sample inference from single server queues", Queueing Systems 3, 1988 (complete
data); Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", 1982.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from analyzer.blackbox.inversion import Trace, service_times
from analyzer.blackbox.servers import count_servers
from analyzer.learning.traces import FloatArray
from analyzer.learning.visit_tables import IntArray, VisitTable
from mup.statistics.student import t_quantile

__all__ = ["StationRate", "of_sample", "station_rates"]

COUNTED = 2000
"""Visits that servers are counted from."""
NEGATIVE = 0.02
"""Part of the visits that may seem to end before they were served: clocks of a log are not exact."""
TOLERANCE = 0.02
"""Part of a mean service time by which they may."""
PARTS = 40
"""Parts of the time of which each is left out once."""
FEWEST = 10
"""Services below which there is no interval."""
DIFFERENT = 0.1
STANDARD_ERRORS = 4.0
"""Services after waiting differ from others if the means do by this part and by so many standard errors."""
SHORTEST = 1e-9
UNFINISHED = 1e6
"""Seconds after the last moment at which visits that had not ended are taken to end."""


@dataclass(frozen=True)
class StationRate:
    """What the visits of a station say.

    Attributes:
        name: Of the station.
        servers: Clients served at once; ``inf`` for a pure delay.
        counted: ``servers`` was found in the visits.
        rate: Services per second of one server.
        low, high: Its 95 % interval; NaN if there are too few visits.
        completions: Visits that ended while all was watched.
        utilization: Mean part of the servers that was busy; NaN for a pure delay.
        fcfs: Whether visits are first come first served with so many servers; False where they cannot be.
        services: Times of service in seconds, if they are known one by one; shape (n,).
        of: Which visit each of them belongs to; shape (n,).
        warnings: What speaks against the result.
    """

    name: str
    servers: float
    counted: bool
    rate: float
    low: float
    high: float
    completions: int
    utilization: float
    fcfs: bool
    services: FloatArray | None = field(repr=False)
    of: IntArray | None = field(repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of service, NaN if it is not known."""
        if self.services is None or len(self.services) < 2 or self.services.mean() <= 0:
            return math.nan
        return float(self.services.var(ddof=1) / self.services.mean() ** 2)


def station_rates(table: VisitTable, servers: dict[str, float]) -> list[StationRate]:
    """Return the rate of every station.

    Args:
        table: The visits.
        servers: Of the stations where they are known; the others are counted.
    """
    return [
        _station(table, name, servers.get(name), np.flatnonzero(table.station == i))
        for i, name in enumerate(table.stations)
    ]


def _station(table: VisitTable, name: str, given: float | None, rows: IntArray) -> StationRate:
    warnings: list[str] = []
    runs = [rows[table.run[rows] == r] for r in np.unique(table.run[rows])]
    servers = _counted(table, runs) if given is None else given
    times, of, negative = _services(table, runs, servers)
    fcfs = negative <= NEGATIVE
    if not fcfs and servers != math.inf:
        warnings.append(
            f"{negative:.0%} of the visits to {name} end before {servers:g} servers could have begun with "
            "them first "
            "come first served: the rate is right for any discipline, the distribution of service is not "
            "known"
        )
    ends, areas, length = _exposure(table, runs, servers)
    completions, busy = int(ends.sum()), float(areas.sum())
    utilization = busy / (servers * length) if math.isfinite(servers) and length > 0 else math.nan
    if fcfs and len(times):
        rate = len(times) / float(times.sum()) if times.sum() > 0 else math.nan
        half = of_sample(times)
        warnings += _after_waiting(table, name, times, of, servers)
        low, high = rate / (1 + half), rate / max(1 - half, 1e-12)
    else:
        rate = completions / busy if busy > 0 else math.nan
        half = _of_parts(ends, areas) if completions >= FEWEST else math.nan
        low, high = rate * (1 - half), rate * (1 + half)
    known = fcfs and len(times) > 0
    return StationRate(
        name,
        servers,
        given is None,
        rate,
        low,
        high,
        completions,
        utilization,
        fcfs,
        times if known else None,
        of if known else None,
        tuple(warnings),
    )


def _counted(table: VisitTable, runs: list[IntArray]) -> float:
    """Return the servers that explain the visits best; ``inf`` if none of them can be seen to have waited."""
    rows = max(runs, key=len)
    rows = rows[np.argsort(table.begin[rows], kind="stable")][:COUNTED]
    rows = rows[np.isfinite(table.end[rows])]
    if len(rows) < 8:
        return math.inf
    took = np.maximum(table.end[rows] - table.begin[rows], SHORTEST)
    noise = float(took.mean()) * 1e-4
    found = count_servers([Trace.of(table.begin[rows], took)], noise=noise)
    return float(found.count) if found.bounded else math.inf


def _services(table: VisitTable, runs: list[IntArray], servers: float) -> tuple[FloatArray, IntArray, float]:
    """Return times of service within the windows, their visits, and the part that is negative."""
    times: list[FloatArray] = []
    of: list[IntArray] = []
    for rows in runs:
        ordered = rows[np.argsort(table.begin[rows], kind="stable")]
        begin, end = table.begin[ordered], table.end[ordered]
        finished = np.isfinite(end)
        low, high = table.windows[int(table.run[ordered[0]])]
        if math.isinf(servers):
            service = end - begin
        else:
            late = float(end[finished].max(initial=begin.max())) + UNFINISHED
            took = np.maximum(np.where(finished, end, late) - begin, SHORTEST)
            service = service_times(Trace(begin, took), int(servers))[0]
        chosen = finished & (begin >= low) & (begin <= high)
        times.append(service[chosen])
        of.append(ordered[chosen])
    joined = np.concatenate(times) if times else np.zeros(0)
    visits = np.concatenate(of) if of else np.zeros(0, dtype=np.int64)
    if not len(joined):
        return joined, visits, 0.0
    negative = float(np.mean(joined < -TOLERANCE * abs(float(joined.mean()))))
    return np.maximum(joined, 0.0), visits, negative


def _exposure(
    table: VisitTable, runs: list[IntArray], servers: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return completions and busy server-seconds in parts of the windows, and how long these are in all."""
    ends, areas, length = [], [], 0.0
    each = max(2, PARTS // len(runs))
    for rows in runs:
        low, high = table.windows[int(table.run[rows[0]])]
        if not high > low:
            continue
        length += high - low
        edges = np.linspace(low, high, each + 1)
        begin, end = np.sort(table.begin[rows]), np.sort(table.end[rows])
        inner = np.concatenate((begin, end))
        moments = np.unique(np.concatenate((edges, inner[(inner > low) & (inner < high)])))
        level = np.searchsorted(begin, moments, "right") - np.searchsorted(end, moments, "right")
        area = np.concatenate(([0.0], np.cumsum(np.minimum(level[:-1], servers) * np.diff(moments))))
        areas.append(np.diff(np.interp(edges, moments, area)))
        ends.append(np.histogram(end[np.isfinite(end)], edges)[0].astype(np.float64))
    if not ends:
        return np.zeros(1), np.zeros(1), 0.0
    return np.concatenate(ends), np.concatenate(areas), length


def of_sample(times: FloatArray) -> float:
    """Return the relative 95 % half-width of a mean of independent times; NaN if there are too few."""
    if len(times) < FEWEST or times.mean() <= 0:
        return math.nan
    return float(t_quantile(len(times) - 1) * times.std(ddof=1) / math.sqrt(len(times)) / times.mean())


def _of_parts(ends: FloatArray, areas: FloatArray) -> float:
    """Return the relative half-width of a ratio of sums, by leaving out one part at a time."""
    parts = len(ends)
    left_ends, left_areas = ends.sum() - ends, areas.sum() - areas
    if parts < 3 or np.any(left_areas <= 0):
        return math.nan
    left = left_ends / left_areas
    error = math.sqrt((parts - 1) / parts * float(((left - left.mean()) ** 2).sum()))
    return float(t_quantile(parts - 1) * error / (ends.sum() / areas.sum()))


def _after_waiting(
    table: VisitTable, name: str, times: FloatArray, of: IntArray, servers: float
) -> list[str]:
    """Warn where services after waiting take another time than others: there a rate depends on the load."""
    if math.isinf(servers):
        return []
    waited = table.end[of] - table.begin[of] - times > TOLERANCE * float(times.mean())
    if min(int(waited.sum()), int((~waited).sum())) < 30:
        return []
    after, alone = times[waited], times[~waited]
    change = float(after.mean() / alone.mean() - 1) if alone.mean() > 0 else 0.0
    error = math.hypot(
        float(after.std()) / math.sqrt(len(after)), float(alone.std()) / math.sqrt(len(alone))
    ) / float(alone.mean() or 1.0)
    if abs(change) > max(DIFFERENT, STANDARD_ERRORS * error):
        return [
            f"service at {name} takes {change:+.0%} after waiting: it has another number of servers than "
            f"{servers:g}, "
            "or its speed depends on the load"
        ]
    return []
