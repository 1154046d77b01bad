"""Branches of a request that are under way at once: what they do to each other, and what others see of them.

How long pairs of branches overlap: Mak and Lundstrom, "Predicting performance of parallel computations"
(1990), and for layers Franks and Woodside, "Performance of multi-level client-server systems with parallel
service operations" (1998); the overlap itself is in ``simulator.analytic.entries.entry_times``. Two
deviations from product form follow:

- Branches of the same request delay each other more than those of others do, for they are surely there
  together. That time is told apart from all other waiting, so that what runs alone is not stretched by it.
- To a network, n parallel jobs of a customer are one customer with 1 / n of the time each (theta customers
  per job).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from simulator.analytic.approximations.convolution import ROUNDING, FloatArray
from simulator.analytic.approximations.shared_station import SEQUENTIAL, SharedView
from simulator.analytic.entries.entry_times import EntryTimes
from simulator.analytic.entries.loads import Columns, Rows
from simulator.analytic.operating_point import (
    BRANCH_DELAY,
    LONGEST,
    OVERLAP_ANYWHERE,
    OVERLAP_HERE,
    TIME,
    VISITS,
    WORK,
    Customers,
    OperatingPoint,
)

__all__ = ["ParallelBranches", "has_parallel_jobs", "rates_of_parallel"]

SIBLINGS: Final = 6
"""Parallel branches at one station beyond which more of them make no difference."""
MOST_DELAY: Final = 0.95
"""Part of all waiting at a station that branches of the same request can be the reason for, at most."""
LEAST_SCALE: Final = 0.2
"""Factor on their delays, towards that bound, by which one round changes them at most."""


class ParallelBranches:
    """What branches of the same request make of waits and stretches.

    Attributes:
        plain_wait, plain_stretch: Per station, without what parallel branches of a request do to each other.
        lost: The part of its time there that a job loses to 0, 1, ... branches of the same request.
        scale: Per station, factor on it.
        shifts: How often it has changed so much that times have to be evaluated again.
        delays: Per plan, seconds by which branches delay an execution of an activity.
    """

    def __init__(self, point: OperatingPoint) -> None:
        self._point = point
        self.plain_wait = np.zeros(point.width)
        self.plain_stretch = np.ones(point.width)
        self.lost = np.zeros((SIBLINGS + 1, point.width))
        self.scale = np.ones(point.width)
        self.shifts = 0
        self.delays: list[dict[str, float]] = [{}] * len(point.plans)

    def meet(self, index: int, rows: Rows, own: EntryTimes, columns: Columns, load: FloatArray) -> None:
        """Find out how long parallel branches delay each other where they meet.

        Args:
            index: The plan.
            rows: Of its steps.
            own: Its times.
            columns: Of their loads.
            load: Of every step, shape (steps, ROWS, columns); what is found is added to it.
        """
        here = columns.of
        one, other = rows.sides(own.overlaps)

        def beside(rows_of: FloatArray, scale: FloatArray | float = 1.0) -> FloatArray:
            """Return the sum over everything that runs in parallel branches, for every step."""
            return np.asarray(one.T @ (scale * (other @ rows_of)) + other.T @ (scale * (one @ rows_of)))

        plain = load[:, VISITS] * self.plain_wait[here] + load[:, WORK] * self.plain_stretch[here]
        total = plain.sum(axis=1)
        extra = np.array([self.delays[index].get(name, 0.0) for name in rows.of]) * rows.visits
        there = plain * (1 + np.divide(extra, total, out=np.zeros_like(total), where=total > 0))[:, None]
        there[:, -1] = 0.0
        often = np.array([o.together / (o.forks * o.times[0] * o.times[1]) for o in own.overlaps])
        company = np.minimum(beside(there, often[:, None]), SIBLINGS - ROUNDING)
        near = beside(load[:, TIME])
        load[:, OVERLAP_HERE] += load[:, WORK] * near
        load[:, OVERLAP_ANYWHERE] += load[:, WORK] * near.sum(axis=1)[:, None]
        low = company.astype(int)
        part = self.lost[low, here] * (1 - company + low) + self.lost[low + 1, here] * (company - low)
        met = self.scale[here] * plain * part / (1 - part)
        met[:, -1] = 0.0
        load[:, BRANCH_DELAY] += met
        found = np.where((one + other).any(axis=0), load[:, BRANCH_DELAY].sum(axis=1), 0.0)
        self.delays[index] = {
            name: more / visits
            for name, more, visits in zip(rows.of, found.tolist(), rows.visits.tolist(), strict=True)
            if more > 0
        }

    def tell_apart(self, at: int) -> bool:
        """Tell what branches of a request do to each other at a station from what all others do.

        Returns:
            Whether there is something to it, or may be.
        """
        point = self._point
        meeting = float(point.total[BRANCH_DELAY, at])
        if meeting <= 0 and point.iterations > 1:
            self.plain_wait[at], self.plain_stretch[at] = point.wait[at], point.stretch[at]
            return False
        if point.stations[at].shared:
            self.plain_stretch[at] = max(point.stretch[at] - meeting / float(point.total[WORK, at]), 1.0)
        else:
            self.plain_wait[at] = max(point.wait[at] - meeting / float(point.total[VISITS, at]), 0.0)
        return True

    def bound(self, at: int) -> None:
        """Keep what branches of a request do to each other below all waiting there is."""
        point = self._point
        meeting = float(point.total[BRANCH_DELAY, at])
        if meeting <= 0:
            return
        if point.stations[at].shared:
            most = MOST_DELAY * (point.stretch[at] - 1) * float(point.total[WORK, at])
        else:
            most = MOST_DELAY * point.wait[at] * float(point.total[VISITS, at])
        self.scale[at] = min(self.scale[at] * max(most / meeting, LEAST_SCALE), 1.0)

    def adapt(self, at: int, occupancy: FloatArray, pace: FloatArray, some: float) -> None:
        """Find what one more job takes from another with so many others there, waiting or slowed down.

        Args:
            at: The station.
            occupancy: Probability of 0, 1, ... jobs there.
            pace: Jobs per second with 1, 2, ... jobs there.
            some: Change of what is lost from which on times are evaluated again.
        """
        point = self._point
        before = self.lost[:, at] * self.scale[at]
        pace = np.concatenate((pace, np.full(SIBLINGS, pace[-1])))
        each = pace / np.arange(1.0, len(pace) + 1)
        population = sum(math.inf if c.is_open else c.population for c in point.clients) or math.inf
        length = len(each) - SIBLINGS
        for more in range(1, SIBLINGS + 1):
            lost = 1 - each[more : more + length] / each[:length]
            usual = float(occupancy[:length] @ lost[: len(occupancy)])
            self.lost[more, at] = lost[0] / population + (1 - 1 / population) * usual
        self.shifts += int(np.abs(self.lost[:, at] * self.scale[at] - before).max() > some)


def has_parallel_jobs(customers: Customers, at: int) -> bool:
    """Tell whether customers have several jobs at a station at once."""
    return bool(customers.profile[TIME, at] < SEQUENTIAL * customers.profile[WORK, at])


def rates_of_parallel(view: SharedView, customers: Customers, at: int, theta: float) -> FloatArray:
    """Return the rates of a station whose jobs come from branches that run side by side.

    Args:
        view: The station as these customers see it.
        customers: Those who have the branches.
        at: The station.
        theta: Customers per job.
    """
    profile = customers.profile
    if theta > SEQUENTIAL:
        return view.rates
    anywhere = profile[OVERLAP_ANYWHERE, at]
    here = profile[OVERLAP_HERE, at] / anywhere if anywhere > 0 else 0.0
    numbers = np.arange(1.0, min(customers.population, LONGEST) + 1)
    at_once = np.arange(len(view.rates) + 1.0)
    speeds = np.concatenate(((0.0,), view.rates))
    real = theta * np.interp(numbers / theta, at_once, speeds)
    company = 1 + (1 / theta - 1) * here
    alone = float(np.interp(company, at_once, speeds)) / company
    return np.asarray(real * (1 + (alone / real[0] - 1) / numbers))
