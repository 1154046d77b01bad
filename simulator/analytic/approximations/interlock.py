"""Interlock: other customers that can be at a station while a given one is. Those waiting for it cannot.

In layers a server and its caller share the station below, and the caller, who waits for the server, is
never there at the same time (*interlock*: Franks et al., "Enhanced modeling and solution of layered
queueing networks", 2009). Here the number of sources that stand for the others (``shared_station``) is
reduced by them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.analytic.approximations.aggregation import job_rates
from simulator.analytic.approximations.convolution import LEFT_OVER, ROUNDING, TINY
from simulator.analytic.approximations.parallel_branches import has_parallel_jobs
from simulator.analytic.approximations.second_phases import SecondPhases
from simulator.analytic.approximations.shared_station import SEQUENTIAL, Background, SharedView
from simulator.analytic.approximations.unawaited import Unawaited
from simulator.analytic.operating_point import TIME, VISITS, WORK, Customers, OperatingPoint

__all__ = ["Interlock"]

UNBOUNDED: Final = 20.0
"""Sources, and as many times the jobs they have there, that stand for requests whose number is not bounded:
the more, the nearer to Poisson arrivals."""
PARALLEL: Final = 2
"""Jobs at a station at once of a customer who has parallel ones there. Twice as many make the largest errors
of response times two percentage points larger, one instead changes little."""
LEAST_FREE: Final = 0.05
"""Part of the others (and of one of them) that is free to come, however many are said to be elsewhere."""
LEAST_PAUSE: Final = 0.02
"""Pause of a source at least, in times that it has jobs there: a guard."""


@dataclass(frozen=True, slots=True)
class _Sources:
    """The others at a station, as sources.

    Attributes:
        usual: How many there are on average over all times.
        here: How many there are while the pool whose threads are the customers is busy.
        limit: At most how many jobs they have at the station.
        closed: Clients bound their number.
        callees: How many of them work for the customers: as many of these wait for them.
    """

    usual: float
    here: float
    limit: float
    closed: bool
    callees: float


class Interlock:
    """Stations as their users see them.

    Args:
        point: Operating point.
        releases: Per plan, how often a request gives up its thread on the way.
        second: Second phases.
        unawaited: Work that no customer waits for.
    """

    def __init__(
        self, point: OperatingPoint, releases: list[float], second: SecondPhases, unawaited: Unawaited
    ) -> None:
        self._point = point
        self._releases = releases
        self._second = second
        self._unawaited = unawaited
        self._flows = math.inf

    def of_unawaited(self, at: int) -> tuple[SharedView, float]:
        """Return a station as the work there that no customer waits for sees it."""
        length = self._point.queues[at].length
        return self._view(at, self._unawaited.visits[at], self._unawaited.work[at], length, 1.0, None, None)

    def of_customers(
        self, customers: Customers, own: int | None, at: int, theta: float
    ) -> tuple[SharedView, float]:
        """Return a station as customers see it, and their work relative to the average.

        Args:
            customers: Those of a network.
            own: The station whose servers they are; None if they are clients.
            at: The station.
            theta: Customers per job.
        """
        visits, work = customers.profile[VISITS, at], customers.profile[WORK, at]
        rate = customers.rate
        return self._view(at, rate * visits, rate * work, customers.population, theta, own, customers)

    def _view(
        self,
        at: int,
        rate: float,
        work: float,
        population: int,
        theta: float,
        own: int | None,
        user: Customers | None,
    ) -> tuple[SharedView, float]:
        """Return a station as one of its users sees it, and the user's work relative to the average.

        Args:
            at: The station.
            rate: Visits per second of the user.
            work: Seconds of service per second of the user.
            population: Customers of the user at most.
            theta: Customers per job of the user.
            own: The station whose servers the customers are; None if they are clients.
            user: The customers, if they are of a network.
        """
        point = self._point
        station, queue = point.stations[at], point.queues[at]
        everything, all_work = float(point.total[VISITS, at]), float(point.total[WORK, at])
        mean = all_work / everything
        others, other_work = max(everything - rate, 0.0), max(all_work - work, 0.0)
        waited = 0.0 if station.shared else point.wait[at]
        relative = (waited + work / rate) / (waited + mean) if rate > 0 and waited + mean > 0 else 1.0
        background = None
        behind = self._second.rate[at]
        if others + behind > LEFT_OVER * everything and other_work > 0:
            stretch = point.stretch[at] if station.shared else 1.0
            inside = others * waited + other_work * stretch
            mine = rate * waited + work * stretch
            callers = self._callers(own)
            sources = self._sources(at, rate, inside, own, user, callers)
            bound = self._flows if sources.closed else math.inf
            queued = 0.0 if own is None else max(point.jobs[own] - 1, 0.0)
            most = max(min(sources.usual, bound - queued - mine), 0.0)
            bound -= max(callers - 1, 0.0)
            per_job = inside / (others + behind)
            background = Background(
                sources=sources.here,
                limit=sources.limit,
                pause=max(most - inside, LEAST_PAUSE * inside) / (others + behind),
                relative_work=per_job / (stretch * (waited + mean)),
                population=bound,
                waiting_ratio=others / inside * (waited + work / rate) if rate > 0 else 1.0,
                callees=sources.callees,
                callers=population / theta,
            )
        customers = population if theta > SEQUENTIAL else math.ceil(population / theta)
        waiting = np.arange(1.0, queue.length + 1) - queue.busy
        rates = job_rates(point, self._releases, at, queue.pace)
        return SharedView(rates, waiting, background, min(customers, queue.length)), relative

    def note_profiles(self) -> None:
        """Find how many flows all clients have at most, on average over their parallel sections.

        Messages and arrivals have no bound.
        """
        self._flows = math.inf
        if self._unawaited.unbounded or any(c.is_open for c in self._point.clients):
            return
        flows = 0.0
        for customers in self._point.clients:
            work = customers.profile.total(WORK, delays=False)
            spent = customers.profile.total(TIME, delays=False)
            flows += customers.population * (max(work / spent, 1.0) if spent > 0 else 1.0)
        self._flows = flows

    def _callers(self, own: int | None) -> float:
        """Return how many requests are at a pool while it is not empty."""
        if own is None:
            return 0.0
        busy = float(self._point.pools[own].busy[1:].sum())
        return self._point.jobs[own] / busy if busy > ROUNDING else 0.0

    def _sources(
        self, at: int, rate: float, inside: float, own: int | None, user: Customers | None, callers: float
    ) -> _Sources:
        """Return the others at a station as sources.

        While a pool is full its threads are all there is; while it is not, arrivals depend on the clients.
        A customer who has called the pool ``own``, directly or not, waits there with a thread that cannot
        be at the station as well.
        """
        point = self._point
        usual = here = limit = callees = 0.0
        skipped = False
        everyone = min(self._flows, UNBOUNDED + UNBOUNDED * inside)
        for number, customers in point.visitors[at]:
            flow = customers.rate * customers.visits[at]
            if flow <= 0:
                continue
            if not skipped and math.isclose(flow, rate, rel_tol=ROUNDING):
                skipped = True
                continue
            most = customers.population * (PARALLEL if has_parallel_jobs(customers, at) else 1)
            full = float(customers.busy[-1])
            share = 0.0 if own is None else self._share(customers, own)
            away = share * point.jobs[own] if own is not None else 0.0
            usual += _count(most, away, full, everyone)
            count = _count(most, share * callers, full, everyone)
            here += count
            if user is not None and number is not None:
                awaited = 1 - self._second.work[number] / float(point.total[WORK, number])
                callees += count * awaited * self._share(user, number)
            limit += max(math.ceil(_free(most, share * callers)), 1)
        more = 0.0
        if self._unawaited.visits[at] > 0:
            more = UNBOUNDED + UNBOUNDED * inside
        elif self._second.rate[at] > 0:
            more = point.servers(at)
        return _Sources(usual + more, here + more, limit + more, more == 0, min(callees, here))

    def _share(self, customers: Customers, at: int) -> float:
        """Return which part of the requests to a pool comes from customers of a network, directly or not."""
        visits = self._point.reached_by(customers).get(at, 0.0)
        return min(customers.rate * visits / max(float(self._point.total[VISITS, at]), TINY), 1.0)


def _free(most: float, elsewhere: float) -> float:
    """Return how many of so many are free to come when that many of them wait elsewhere."""
    return max(most - elsewhere, LEAST_FREE * min(most, 1))


def _count(most: float, elsewhere: float, full: float, everyone: float) -> float:
    """Return how many sources customers are like: they while all are busy, else the clients behind them.

    Args:
        most: How many they are.
        elsewhere: How many of them wait elsewhere.
        full: Probability that all of them are busy.
        everyone: Clients.
    """
    free = _free(most, elsewhere)
    return 1 / (full / free + (1 - full) / max(everyone - elsewhere, free))
