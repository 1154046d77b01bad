"""Service of stations from visits, by counting.

A station of c servers that never idle while clients wait completes, in expectation, as many services as the
integral of its busy servers, min(clients, c), times the rate of one server: ``rate = completions /
integral``.
That is the maximum of the likelihood of all events for exponential service under any discipline, and holds in
the mean for any service and any discipline (utilization law).

Where service is first come first served, every single service time is known by inversion
(``analyzer.blackbox.inversion``): then nothing is assumed about its distribution, and the interval is that of
a mean of independent times. Elsewhere the interval comes from leaving out parts of the time.

Where all visitors share the servers, the service of a visit is the integral of its share over the visit;
which of the disciplines it was, the likelihood of the departures tells.

Sources: Basawa, Prabhu, "Large sample inference from single server queues", Queueing Systems 3, 1988
(complete data); Efron, "The Jackknife, the Bootstrap and Other Resampling Plans", 1982.
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
SHARED = 6.0
"""Log likelihood by which shared servers must explain departures better than those in order of arrival."""
MOST_SHARED = 64
SMALL = 1e-3
"""Part of a mean that a shorter service counts as."""
STEADY = 1e-6
"""Least spread of services that is told from none."""
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
    known = fcfs
    shared = _shared(table, runs, given, times if fcfs else None)
    if shared is not None:
        servers, times, of = shared
        fcfs, known = False, True
        warnings.append(
            f"visits to {name} take longer the more of them there are, as if all shared {servers:g} "
            f"server{'s' * (servers > 1)}: the model has the mean of their service, which is all that matters"
        )
    if not known and servers != math.inf:
        warnings.append(
            f"{negative:.0%} of the visits to {name} end before {servers:g} servers could have begun with "
            "them first come first served: the rate is right for any discipline, the distribution of service "
            "is not known"
        )
    ends, areas, length = _exposure(table, runs, servers)
    completions, busy = int(ends.sum()), float(areas.sum())
    utilization = busy / (servers * length) if math.isfinite(servers) and length > 0 else math.nan
    if known and len(times):
        rate = len(times) / float(times.sum()) if times.sum() > 0 else math.nan
        half = of_sample(times)
        if fcfs:
            warnings += _dependent(table, name, times, of, rows, servers)
        low, high = rate / (1 + half), rate / max(1 - half, 1e-12)
    else:
        rate = completions / busy if busy > 0 else math.nan
        half = _of_parts(ends, areas) if completions >= FEWEST else math.nan
        low, high = rate * (1 - half), rate * (1 + half)
    known = known and len(times) > 0
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


def _shared(
    table: VisitTable, runs: list[IntArray], given: float | None, times: FloatArray | None
) -> tuple[float, FloatArray, IntArray] | None:
    """Return shared servers that explain departures better, services and their visits; None if none do.

    Given arrivals, the density of the departures is the product of the densities of services, times the
    share of a server that each visit had when it ended: 1 in order of arrival.

    Args:
        table: Visits.
        runs: Those of the station, by run.
        given: Servers, if they are known.
        times: Services in order of arrival; None if they were not.
    """
    if given is not None and math.isinf(given):
        return None
    steps = [_Levels.of(table, rows) for rows in runs]
    most = min(MOST_SHARED, max(int(step.level.max(initial=0)) for step in steps))
    best: tuple[float, float, FloatArray] | None = None
    for servers in range(1, most) if given is None else (given,):
        found = [step.attained(servers) for step in steps]
        services = np.concatenate([service for service, _ in found])
        if len(services) < FEWEST:
            return None
        score = _likelihood(services) + float(np.log(np.concatenate([share for _, share in found])).sum())
        if best is None or score > best[0]:
            best = score, float(servers), services
    if best is None:
        return None
    if times is not None and best[0] <= _likelihood(times) + SHARED:
        return None
    return best[1], best[2], np.concatenate([step.visits for step in steps])


@dataclass(frozen=True)
class _Levels:
    """How many visitors there were, and which visits began and ended within the window of a run."""

    moments: FloatArray
    level: IntArray
    visits: IntArray
    begin: FloatArray
    end: FloatArray

    @classmethod
    def of(cls, table: VisitTable, rows: IntArray) -> _Levels:
        """Count the visitors of a station in a run."""
        low, high = table.windows[int(table.run[rows[0]])]
        begin, end = table.begin[rows], table.end[rows]
        moments = np.concatenate((begin, end[np.isfinite(end)]))
        moments = np.unique(moments)
        level = np.searchsorted(np.sort(begin), moments, "right") - np.searchsorted(
            np.sort(end), moments, "right"
        )
        chosen = np.isfinite(end) & (begin >= low) & (begin <= high)
        return cls(moments, level, rows[chosen], begin[chosen], end[chosen])

    def attained(self, servers: float) -> tuple[FloatArray, FloatArray]:
        """Return services if visitors share so many servers, and the share of each when it left."""
        share = np.minimum(1.0, servers / np.maximum(self.level, 1))
        served = np.concatenate(([0.0], np.cumsum(share[:-1] * np.diff(self.moments))))
        first = np.searchsorted(self.moments, self.begin)
        last = np.searchsorted(self.moments, self.end)
        return served[last] - served[first], share[np.maximum(last - 1, 0)]


def _likelihood(times: FloatArray) -> float:
    """Return the log likelihood of times under a gamma distribution fitted to them.

    The shape is the closed approximation of its maximum, within 1.5 %. Times far below the mean count as
    small ones: clocks do not tell them apart.
    """
    mean = float(times.mean())
    if not mean > 0:
        return -math.inf
    logs = float(np.log(np.maximum(times, SMALL * mean)).mean())
    spread = max(math.log(mean) - logs, STEADY)
    shape = (3 - spread + math.sqrt((spread - 3) ** 2 + 24 * spread)) / (12 * spread)
    return len(times) * (shape * math.log(shape / mean) - math.lgamma(shape) + (shape - 1) * logs - shape)


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


def _dependent(
    table: VisitTable, name: str, times: FloatArray, of: IntArray, rows: IntArray, servers: float
) -> list[str]:
    """Warn where services take another time in company than alone, or after waiting.

    The number of visitors on arrival is independent of the service to come if servers are as many and work
    as fast as is taken for granted.
    """
    there = np.zeros(len(of))
    for run in np.unique(table.run[of]):
        mine, these = rows[table.run[rows] == run], table.run[of] == run
        arrivals = table.begin[of[these]]
        there[these] = np.searchsorted(np.sort(table.begin[mine]), arrivals, "left") - np.searchsorted(
            np.sort(table.end[mine]), arrivals, "right"
        )
    splits = {"if others are there": there > np.median(there)}
    if math.isfinite(servers):
        waited = table.end[of] - table.begin[of] - times > TOLERANCE * float(times.mean())
        splits = {"after waiting": waited} | splits
    for when, chosen in splits.items():
        change, error = _change(times[chosen], times[~chosen])
        if abs(change) > max(DIFFERENT, STANDARD_ERRORS * error):
            found = "pure delay" if math.isinf(servers) else f"{servers:g} servers"
            text = f"service at {name} takes {change:+.0%} {when}: it is not {found} in order of arrival"
            return [f"{text}, or its speed depends on the load"]
    return []


def _change(times: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Return the relative difference of two means and its standard error; 0 if there are too few."""
    if min(len(times), len(others)) < 30 or not others.mean() > 0:
        return 0.0, 0.0
    base = float(others.mean())
    error = math.hypot(
        float(times.std()) / math.sqrt(len(times)), float(others.std()) / math.sqrt(len(others))
    )
    return float(times.mean()) / base - 1, error / base
