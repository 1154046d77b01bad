"""How is the operating point found? Networks from the bottom up, how full they are from the top down, again.

What stations have in common (a processor under several tasks, a task with several callers) is found by
iteration, as in the method of layers (Rolia and Sevcik, "The method of layers", 1995) and in LQNS (Franks
et al., "Enhanced modeling and solution of layered queueing networks", 2009): successive substitution, with
steps that become smaller (under-relaxation) where it does not converge soon.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mup.errors import SimulationError
from simulator.analytic.approximations.aggregation import busy_servers, job_rates
from simulator.analytic.approximations.convolution import Chain, FloatArray
from simulator.analytic.approximations.felt_variability import feedback_to, felt_variability
from simulator.analytic.approximations.general_service import Queue
from simulator.analytic.approximations.interlock import Interlock
from simulator.analytic.approximations.many_customers import LARGEST, customers_needed
from simulator.analytic.approximations.parallel_branches import (
    ParallelBranches,
    has_parallel_jobs,
    rates_of_parallel,
)
from simulator.analytic.approximations.second_phases import SecondPhases
from simulator.analytic.approximations.unawaited import Unawaited
from simulator.analytic.entries.feedback import FeedbackSearch
from simulator.analytic.evaluation import Evaluation
from simulator.analytic.layers import Layers
from simulator.analytic.operating_point import LONGEST, TIME, VISITS, WORK, Customers, OperatingPoint

__all__ = ["TOLERANCE", "FixedPoint"]

TOLERANCE: Final = 1e-4
"""Relative change of times from one iteration to the next that counts as none."""
MAX_ITERATIONS: Final = 40
"""Rounds after which an iteration that does not converge is given up, with a warning."""
ADAPTIVE: Final = 15
"""Rounds after which stations keep the speeds they were given for the variability of their services."""
UNDAMPED: Final = 8
"""Rounds of whole steps."""
GAIN: Final = 0.25
"""Part of a step that is taken from then on: with larger ones some iterations do not converge."""
SHORT: Final = 0.01
"""Part of the shortest cycle: shorter times are compared with that, for they do not matter."""
SHIFT: Final = 10
"""Tolerances that make a difference to parallel branches."""
START: Final = 0.95
"""Utilization of the fullest station at the start, at most."""
SATURATED: Final = 1e-6
"""What is missing to full utilization where an open load is beyond what a station can do."""
PARALLEL_JOBS: Final = 4
"""Jobs at a station, per customer, that are told apart if customers have parallel jobs there."""
OPEN_JOBS: Final = 300
"""Jobs at a station that are told apart besides, if there are some that nothing bounds."""
LEAST_THETA: Final = 0.02
"""Customers per job at least: so many parallel branches make no difference beyond."""


class FixedPoint:
    """The iteration.

    Attributes:
        point: The operating point reached.
        converged: It no longer changed.
    """

    def __init__(self, layers: Layers) -> None:
        self.point = OperatingPoint(layers)
        self.converged = False
        self._layers = layers
        feedback = FeedbackSearch(layers).visits()
        self._feedback = feedback_to(feedback, len(layers.stations))
        self._second = SecondPhases(self.point, feedback)
        self._branches = ParallelBranches(self.point)
        self._unawaited = Unawaited(self.point)
        self._evaluation = Evaluation(self.point, self._branches, self._second)
        self._releases = self._evaluation.releases
        self._interlock = Interlock(self.point, self._releases, self._second, self._unawaited)

    def solve(self, tolerance: float, *, rates_only: bool = False) -> None:
        """Iterate to the fixed point."""
        point = self.point
        self._begin()
        before: list[float] = []
        for iteration in range(1, MAX_ITERATIONS + 1):
            point.iterations = iteration
            for at in reversed(point.order):
                self._solve_network(point.pools[at], at)
            for customers in point.clients:
                if not customers.is_open:
                    self._solve_network(customers, None)
            self._operate(1.0 if iteration <= UNDAMPED else GAIN)
            self._evaluation.evaluate()
            self._flow()
            self._profiles()
            lengths = [self._cycle_time(c, r) for c, r in zip(point.clients, self._layers.roots, strict=True)]
            now = lengths if rates_only and lengths else [*lengths, *point.wait, *point.stretch]
            scale = min(lengths, default=0.0)
            if before and all(
                abs(a - b) <= tolerance * max(abs(a), SHORT * scale) for a, b in zip(now, before, strict=True)
            ):
                self.converged = True
                break
            before = now
        self._bound()

    def _cycle_time(self, customers: Customers, root: int) -> float:
        if customers.is_open:
            return self.point.times[root].hold[0]
        return customers.population / customers.rate

    def _flow(self) -> None:
        self.point.flow()
        self._second.add_up()

    def _profiles(self) -> None:
        self.point.profiles(self._releases)
        self._unawaited.take_off(self._second.work)
        self._interlock.note_profiles()

    # ------------------------------------------------------------------ start and end

    def _begin(self) -> None:
        """Start from an empty system, as fast as its slowest station allows (asymptotic bounds)."""
        point = self.point
        self._evaluation.evaluate()
        for root in self._layers.roots:
            point.clients.append(self._customers_of(root))
        self._check_open()
        for customers in point.clients:
            if not customers.is_open:
                customers.rate = customers.population / customers.profile.total(TIME)
        self._flow()
        full = max((point.utilization(i) for i in range(len(point.stations))), default=0.0)
        if full > START:
            for customers in point.clients:
                if not customers.is_open:
                    customers.rate *= START / full
            self._flow()
        self._profiles()
        self._arrange()
        for at, station in enumerate(point.stations):
            most = max(self._most_jobs(at), 1)
            length = int(min(most, LONGEST))
            point.queues.append(Queue(station.servers, station.replicas, length, cut=most > LONGEST))
            point.jobs[at] = float(point.total[WORK, at])

    def _customers_of(self, root: int) -> Customers:
        """Return the clients of a root, or what stands for its arrivals from outside."""
        task = self._layers.model.tasks[self.point.plans[root].task]
        profile = self.point.with_think(root)
        if task.is_open:
            return Customers(1, self.point.empty(), rate=self.point.plans[root].arrivals, is_open=True)
        if profile.total(TIME) <= 0:
            raise SimulationError(
                "a cycle takes no time at all, so it would repeat for ever at time 0",
                where=f"tasks[{task.name!r}]",
                hint="give it a think time, or some demand or delay on the way",
            )
        return Customers(int(task.threads), profile)

    def _most_jobs(self, at: int) -> float:
        """Return how many jobs there can be at a station, or are told apart if nothing bounds them."""
        point = self.point
        users = sum(
            c.population * (PARALLEL_JOBS if has_parallel_jobs(c, at) else 1) for _, c in point.visitors[at]
        )
        second = point.servers(at) if self._second.rate[at] else 0.0
        return users + second + OPEN_JOBS * (self._unawaited.visits[at] > 0)

    def _check_open(self) -> None:
        """Refuse arrivals from outside beyond what a station can do."""
        self._flow()
        for at, station in enumerate(self.point.stations):
            load = self.point.utilization(at)
            if load >= 1 - SATURATED:
                raise SimulationError(
                    f"requests arrive that keep {load:.3g} times its servers busy: its queue grows for ever",
                    where=station.name,
                    hint="lower the rate of arrivals, or add servers",
                )

    def _arrange(self) -> None:
        """Order pools such that each comes before those it visits."""
        point = self.point
        done: set[int] = set()
        order: list[int] = []

        def visit(customers: Customers) -> None:
            for number in customers.profile.stations(VISITS):
                if number in point.pools and number not in done:
                    done.add(number)
                    visit(point.pools[number])
                    order.append(number)

        for clients in point.clients:
            visit(clients)
        for number, pool in point.pools.items():
            if number not in done:
                done.add(number)
                visit(pool)
                order.append(number)
        point.order = order[::-1]

    def _bound(self) -> None:
        """Keep to what processors can do at most, which approximations may miss by a little."""
        point = self.point
        full = [
            point.utilization(i)
            for i in range(len(point.stations))
            if i not in point.pools or point.stations[i].parent is not None
        ]
        if full and max(full) > 1:
            for customers in point.clients:
                if not customers.is_open:
                    customers.rate /= max(full)
            self._flow()

    # ------------------------------------------------------------------ from the bottom up

    def _solve_network(self, customers: Customers, own: int | None) -> None:
        """Solve the network of customers for every number of them.

        Args:
            customers: Clients, or servers of a station.
            own: That station.
        """
        profile = customers.profile
        customers.stations = profile.stations(VISITS)
        customers.views, customers.thetas = [], []
        visits, rates = [], []
        for at in customers.stations:
            count, work = profile[VISITS, at], profile[WORK, at]
            theta = min(profile[TIME, at] / work, 1.0) if work > 0 else 1.0
            theta = max(theta, LEAST_THETA)
            view, relative = self._interlock.of_customers(customers, own, at, theta)
            customers.views.append(view)
            customers.thetas.append(theta)
            visits.append(count * theta * relative)
            rates.append(rates_of_parallel(view, customers, at, theta))
        delay = profile[TIME, -1]
        size = customers.population
        customers.capacity = min([np.inf, *(float(r[-1]) / v for v, r in zip(visits, rates, strict=True))])
        if own is None:
            size, customers.slowest = customers_needed(size, delay, visits, rates)
            customers.surplus = customers.population - size
        guess = _guess(customers, own, size, delay, visits, rates)
        customers.network = Chain(size, delay, visits, rates, guess)

    # ------------------------------------------------------------------ from the top down

    def _operate(self, gain: float) -> None:
        """Find out how full everything is, from the clients down."""
        point = self.point
        sums = _Sums(point)
        for customers in point.clients:
            if customers.network is not None:
                customers.rate += gain * (float(customers.network.throughput[-1]) - customers.rate)
                customers.busy = np.zeros(len(customers.network.throughput) + 1)
                customers.busy[-1] = 1.0
                sums.add(customers)
        for at in point.order:
            # Messages and arrivals hold threads, too: whatever these visit sees them.
            self._add_unawaited(sums, at)
            pool = point.pools[at]
            pool.busy = busy_servers(point, pool, sums.occupancy[at], at)
            if pool.network is not None:
                sums.add(pool)
        for at, station in enumerate(point.stations):
            if at not in point.pools:
                self._add_unawaited(sums, at)
            if sums.visits[at] <= 0:
                continue
            occupancy = sums.occupancy[at] / sums.occupancy[at].sum()
            if station.shared:
                stretch = max(float(sums.jobs[at] / sums.work[at]), 1.0)
                point.stretch[at] += gain * (stretch - point.stretch[at])
            else:
                wait = max(float(sums.waiting[at] / sums.visits[at]), 0.0)
                point.wait[at] += gain * (wait - point.wait[at])
                if point.iterations <= ADAPTIVE:
                    point.queues[at].adapt(felt_variability(point, self._feedback[at], at), occupancy)
            point.jobs[at] = sums.jobs[at]
            if self._branches.tell_apart(at) and point.iterations <= ADAPTIVE:
                self._branches.bound(at)
                pace = job_rates(point, self._releases, at, point.queues[at].busy)
                self._branches.adapt(at, occupancy, pace, SHIFT * TOLERANCE)

    def _add_unawaited(self, sums: _Sums, at: int) -> None:
        """Account for the jobs of a station that no customer waits for (and open arrivals)."""
        rate = self._unawaited.visits[at]
        if rate <= 0:
            return
        view, relative = self._interlock.of_unawaited(at)
        there = self._unawaited.jobs(at, view, relative)
        sums.visits[at] += rate
        sums.work[at] += self._unawaited.work[at]
        sums.jobs[at] += float(there @ np.arange(len(there)))
        sums.waiting[at] += view.waiting_of(there, 1.0)
        view.add_total(there, 1.0, sums.occupancy[at], rate)


class _Sums:
    """Per station, over all its users: visits and work per second, jobs, those that wait, occupancy."""

    def __init__(self, point: OperatingPoint) -> None:
        count = len(point.stations)
        self.visits, self.waiting, self.jobs, self.work = ([0.0] * count for _ in range(4))
        self.occupancy = [np.zeros(q.length + 1) for q in point.queues]
        """Probability of 0, 1, ... jobs as each user sees it, times the visits of that user."""

    def add(self, customers: Customers) -> None:
        """Add what the customers of a network have at its stations."""
        network = customers.network
        assert network is not None  # noqa: S101 - only solved networks are added
        cycles = customers.cycles
        for k, at in enumerate(customers.stations):
            theta, view = customers.thetas[k], customers.views[k]
            there = network.marginal(k, customers.busy)
            visited = cycles * customers.profile[VISITS, at]
            present = float(there @ np.arange(len(there))) / theta
            surplus = customers.surplus / theta if customers.surplus and k == customers.slowest else 0.0
            present += surplus
            self.waiting[at] += surplus
            self.visits[at] += visited
            self.work[at] += cycles * customers.profile[WORK, at]
            self.jobs[at] += present
            self.waiting[at] += view.waiting_of(there, theta)
            view.add_total(there, theta, self.occupancy[at], visited)


def _guess(
    customers: Customers,
    own: int | None,
    size: int,
    delay: float,
    visits: list[float],
    rates: list[FloatArray],
) -> float:
    """Return the throughput of a network to scale its weights by.

    By what the slowest station can do at its best, not by what it does: where speeds fall with the length,
    weights of hundreds of customers would else leave the range of numbers.
    """
    if own is not None and customers.network is not None:
        return float(customers.network.throughput[-1])
    if own is not None:
        guess = size / (delay + sum(v / r[0] for v, r in zip(visits, rates, strict=True)))
        return float(min([guess, *(r[-1] / v for v, r in zip(visits, rates, strict=True))]))
    if size > LARGEST:
        # With that many clients the numbers at the stations must come out right at once.
        lightest = delay + sum(v / float(r[0]) for v, r in zip(visits, rates, strict=True))
        return min(size / lightest, customers.capacity)
    return min((float(r.max()) / v for v, r in zip(visits, rates, strict=True)), default=customers.rate)
