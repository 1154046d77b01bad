"""What does the fixed point consist of? Rates, times and loads of plans, waits of stations, and customers.

The approximations (``simulator.analytic.approximations``) read and improve it in turn, until it no longer
changes. Symbols: see ``simulator.analytic``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from mup.lqn.lowered import passed_on
from simulator.analytic.approximations.convolution import Chain, FloatArray
from simulator.analytic.approximations.general_service import Queue
from simulator.analytic.approximations.shared_station import SharedView
from simulator.analytic.entries.entry_times import EntryTimes, Moments
from simulator.analytic.entries.loads import Columns, Load, Places
from simulator.analytic.layers import Layers

__all__ = [
    "BRANCH_DELAY",
    "LONGEST",
    "OVERLAP_ANYWHERE",
    "OVERLAP_HERE",
    "OWN_ROWS",
    "ROWS",
    "SQUARES",
    "TIME",
    "VISITS",
    "WORK",
    "Customers",
    "OperatingPoint",
]

VISITS, WORK, SQUARES, TIME, OVERLAP_HERE, OVERLAP_ANYWHERE, BRANCH_DELAY = range(7)
"""Rows of a load (``simulator.analytic.entries.loads``): visits, seconds of service, sum of squares
of the service times, seconds of service as far as a customer waits for it (parallel work counts once), work
times the work in parallel branches, at the same station and anywhere, and seconds that parallel branches of
a request delay each other there."""
ROWS: Final = 7
OWN_ROWS: Final = 4
"""The first rows, which follow from a step alone."""
LONGEST: Final = 600
"""Requests at a station that are told apart; beyond, its speed is taken as constant."""


@dataclass(slots=True)
class Customers:
    """Those who share a closed network: the clients of a root, the threads of a pool, the cores of a part.

    Attributes:
        population: N, how many there are at most.
        is_open: They come from outside and leave again: no customer waits for what they ask.
        profile: D, load per cycle.
        visits: The stations they visit, and how often per cycle.
        reached: Visits per cycle of every station they get to, those by one pool they visit included; found
            when it is first asked for.
        rate: X, cycles per second.
        network: The network of what they visit, solved; None before.
        stations: Those they visit.
        views: The same, as they see them.
        thetas: theta, customers per job, for each of the stations.
        capacity: Cycles per second that the slowest of the stations allows.
        surplus: Customers left out of the network, who queue at the slowest station.
        slowest: Which one that is, as an index of ``stations``.
        busy: Probability of 0, 1, ... customers at once.
    """

    population: int
    profile: Load
    visits: dict[int, float] = field(default_factory=dict)
    reached: dict[int, float] | None = None
    rate: float = 0.0
    is_open: bool = False
    network: Chain | None = None
    stations: list[int] = field(default_factory=list)
    views: list[SharedView] = field(default_factory=list)
    thetas: list[float] = field(default_factory=list)
    capacity: float = math.inf
    surplus: int = 0
    slowest: int = 0
    busy: FloatArray = field(default_factory=lambda: np.zeros(1))

    @property
    def cycles(self) -> float:
        """Cycles per second by the network, at the numbers of customers there are."""
        return 0.0 if self.network is None else float(self.busy[1:] @ self.network.throughput)


class OperatingPoint:
    """One iterate of the fixed point.

    Attributes:
        rates: Per plan, requests per second.
        times: Per plan, until its reply is out and its thread is free.
        called: Per plan, moments of what a caller waits for, queue included.
        held, as_called, local: Per plan, what a request asks of the stations while its thread is held, while
            its caller waits, and in total of those it uses itself.
        total: What all requests ask of the stations per second.
        wait: W, per station, seconds in the queue per visit.
        stretch: Per station that is shared by processor sharing, residence per second of service.
        jobs: L, per station, jobs there on average.
        queues: Per station.
        clients: Those of the roots, in the order of the layers.
        pools: Customers who are servers of a station, by that station.
        visitors: Per station, the customers who visit it, those of pools with that of the pool.
        plans_of: Per station, the plans whose requests hold its servers.
        order: Stations of pools, those before others they visit first.
        iterations: Rounds so far.
    """

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.plans = layers.plans
        self.stations = layers.stations
        count, plans = len(self.stations), len(self.plans)
        self.width = count + 1
        empty = self.empty()
        self.rates = [0.0] * plans
        self.times: list[EntryTimes] = [EntryTimes((0.0, 0.0), (0.0, 0.0))] * plans
        self.called: list[Moments] = [(0.0, 0.0)] * plans
        self.held, self.as_called, self.local = [empty] * plans, [empty] * plans, [empty] * plans
        self.total: FloatArray = np.zeros((ROWS, self.width))
        self.wait = [0.0] * count
        self.stretch = [1.0] * count
        self.jobs = [0.0] * count
        self.queues: list[Queue] = []
        self.clients: list[Customers] = []
        self.pools: dict[int, Customers] = {}
        self.visitors: list[list[tuple[int | None, Customers]]] = [[] for _ in self.stations]
        self.plans_of: list[list[int]] = [[] for _ in self.stations]
        for index, plan in enumerate(self.plans):
            if plan.station is not None:
                self.plans_of[plan.station].append(index)
        self._order: dict[int, int] = {}
        self._of_pools: dict[int, Columns] = {}
        self._in_pools: dict[int, Places] = {}
        self.order: list[int] = []
        self.iterations = 0

    def empty(self) -> Load:
        """Return the load of those who ask nothing."""
        columns = Columns((), len(self.stations))
        return Load(columns, np.zeros((ROWS, len(columns))))

    def flow(self) -> None:
        """Propagate the rates of the roots to all they call, and add up the loads (forced flow law)."""
        layers = self.layers
        arriving = [plan.arrivals for plan in self.plans]
        for customers, root in zip(self.clients, layers.roots, strict=True):
            arriving[root] = customers.rate
        self.rates = rates = passed_on(layers.order, layers.caused, layers.handed, arriving)
        total = np.zeros((ROWS, self.width))
        for rate, load in zip(rates, self.local, strict=True):
            total[:, load.columns.of] += rate * load.values
        for at in range(len(self.stations) - 1, -1, -1):
            # Parts are listed behind what they are a part of.
            parent = self.stations[at].parent
            if parent is not None:
                total[:, parent] += total[:, at]
        self.total = total

    def profiles(self, releases: list[float]) -> None:
        """Give all customers their load per cycle.

        Args:
            releases: Per plan, how often a request gives up its thread on the way.
        """
        for customers, root in zip(self.clients, self.layers.roots, strict=True):
            if not customers.is_open:
                customers.profile = self.with_think(root)
        sums: dict[int, tuple[float, Load]] = {}
        for index, plan in enumerate(self.plans):
            if plan.station is not None and self.rates[index] > 0:
                rate, load = sums.get(plan.station) or (0.0, self._of_pool(plan.station))
                cycles = self.rates[index] * (1 + releases[index])
                load.values[:, self._in_pools[index]] += self.rates[index] * self.held[index].values
                sums[plan.station] = rate + cycles, load
        for at, station in enumerate(self.stations):
            if station.parent is not None and self.total[VISITS, at] > 0:
                columns = Columns((station.parent,), len(self.stations))
                load = Load(columns, np.zeros((ROWS, len(columns))))
                load.values[:, columns.where[station.parent]] = self.total[:, at]
                sums[at] = float(self.total[VISITS, at]), load
        for at, (rate, load) in sums.items():
            if at not in self.pools:
                self.pools[at] = Customers(int(min(self.servers(at), LONGEST)), load)
            pool = self.pools[at]
            pool.rate, pool.profile = rate, Load(load.columns, load.values / rate)
        self._note_visitors()

    def _of_pool(self, at: int) -> Load:
        """Return an empty load with the columns of all that the servers of a pool can get to."""
        if at not in self._of_pools:
            held = [self.held[index].columns for index in self.plans_of[at]]
            columns = Columns((number for each in held for number in each.of.tolist()), len(self.stations))
            self._of_pools[at] = columns
            for index, each in zip(self.plans_of[at], held, strict=True):
                self._in_pools[index] = columns.places(each)
        return Load(self._of_pools[at], np.zeros((ROWS, len(self._of_pools[at]))))

    def _note_visitors(self) -> None:
        """Note who visits which station."""
        self._order = {at: number for number, at in enumerate(self.pools)}
        self.visitors = [[] for _ in self.stations]
        for number, customers in (*((None, c) for c in self.clients), *self.pools.items()):
            customers.visits = {
                at: customers.profile[VISITS, at] for at in customers.profile.stations(VISITS)
            }
            customers.reached = None
            for at in customers.visits:
                self.visitors[at].append((number, customers))

    def reached_by(self, customers: Customers) -> dict[int, float]:
        """Return how often per cycle customers get to stations, themselves or by a pool they visit."""
        if customers.reached is None:
            found = dict(customers.visits)
            for pool in sorted(customers.visits.keys() & self._order.keys(), key=self._order.__getitem__):
                other = self.pools[pool]
                if other is not customers:
                    often = customers.visits[pool]
                    for at, times in other.visits.items():
                        if at != pool:
                            found[at] = found.get(at, 0.0) + often * times
            customers.reached = found
        return customers.reached

    def servers(self, at: int) -> float:
        """Return how many servers a station has, all replicas together."""
        return self.stations[at].servers * self.stations[at].replicas

    def utilization(self, at: int) -> float:
        """Return how busy the servers of a station are; more than 1 if they cannot do what is asked."""
        return float(self.total[WORK, at]) / self.servers(at)

    def with_think(self, root: int) -> Load:
        """Return the load of a cycle, its think time included."""
        task = self.layers.model.tasks[self.plans[root].task]
        held = self.held[root]
        profile = Load(held.columns, held.values.copy())
        if task.think is not None:
            profile.values[TIME, -1] += task.think.mean
        return profile
