"""A station that several chains of customers use, as one of them sees it: the others are sources.

The method of layers solves one chain at a time and stands in for the others with a surrogate (Rolia and
Sevcik, "The method of layers", 1995). Here the surrogate of the others is a finite source: each sends a
job, waits for its end and pauses, such that their throughput is the one known from their own networks. How
many of their jobs are there is taken in equilibrium given the number of own customers, which is exact in a
network of product form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from simulator.analytic.approximations.convolution import ROUNDING, TINY, FloatArray, extended

__all__ = ["SEQUENTIAL", "Background", "SharedView", "grid"]

SEQUENTIAL: Final = 0.999
"""Customers per job from which on a customer has only one job there at a time (less by rounding alone)."""
EACH: Final = 24
"""Numbers of own customers up to which each is evaluated; in between beyond, figures are interpolated."""
PER_DOUBLING: Final = 8
"""Points of that coarser grid per doubling of the number."""


@dataclass(frozen=True, slots=True)
class Background:
    """Other users of a station, as sources that send a job, wait for its end and pause.

    Attributes:
        sources: How many there are; the fewer, the less others arrive while many of them are there.
        limit: At most how many jobs they have there at once.
        pause: Seconds between the end of a job and the source's next one.
        relative_work: Work of one of their jobs relative to the average job of the station.
        population: Sources and own customers together are at most that many.
        waiting_ratio: How likely one of their jobs there is waiting, relative to an own one.
        callees: How many of the sources work for own customers, who wait elsewhere meanwhile.
        callers: Own customers at most.
    """

    sources: float
    limit: float
    pause: float
    relative_work: float
    population: float
    waiting_ratio: float
    callees: float
    callers: float


class SharedView:
    """A station as the customers of one class see it.

    The others are in equilibrium given the number of own customers, and all get their share of the
    station: exact if the network is one of product form.

    Args:
        rates: Jobs per second with 1, 2, ... jobs there, of any customers.
        waiting: How many of 1, 2, ... jobs wait for a server.
        background: The others; None if there are none.
        customers: Own customers at most.

    Attributes:
        rates: Own jobs per second with 1, 2, ... own customers there.
    """

    def __init__(
        self, rates: FloatArray, waiting: FloatArray, background: Background | None, customers: int
    ) -> None:
        self._background = background
        self._length = len(rates)
        if background is None:
            self.rates = extended(rates, customers)
            self._queued = extended(waiting, customers)
            return
        at = np.concatenate(((0,), grid(customers)))
        self._grid = at[1:]
        own = at[:, None].astype(float)
        # Below nothing where an estimate of who waits elsewhere has more of them than there are.
        most = int(max(min(background.limit, background.population, len(rates)), 0.0))
        others = np.arange(most + 1.0)[None, :]
        index = np.maximum(np.minimum(at[:, None] + np.arange(most + 1)[None, :], len(rates)) - 1, 0)
        jobs = np.maximum(own + others, 1.0)
        rate = rates[index]
        callees = np.minimum(background.callees, np.maximum(background.callers - own, 0.0))
        sources = np.minimum(background.sources - background.callees + callees, background.population - own)
        sources = np.clip(sources, 0.0, None)
        left = np.maximum(sources - (others[:, 1:] - 1), 0.0)
        # A speed that rounding has made 0 is a very small one.
        speed = np.maximum(rate[:, 1:], ROUNDING * rates.max())
        ratio = left / background.pause * background.relative_work * jobs[:, 1:] / (speed * others[:, 1:])
        logs = np.cumsum(np.log(np.maximum(ratio, TINY)), axis=1)
        weight = np.concatenate((np.zeros((len(at), 1)), logs), axis=1)
        weight = np.exp(weight - weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        self._alone, self._weight = weight[0], weight[1:]
        every = np.arange(1, customers + 1)
        self.rates = np.interp(every, self._grid, (weight * own / jobs * rate).sum(axis=1)[1:])
        share = own[1:] / (own[1:] + background.waiting_ratio * others)
        self._queued = np.interp(every, self._grid, (self._weight * share * waiting[index[1:]]).sum(axis=1))

    def waiting_of(self, there: FloatArray, theta: float) -> float:
        """Return the mean number of own jobs that wait.

        Args:
            there: Probability of 0, 1, ... customers.
            theta: Customers per job, below 1 where jobs run side by side.
        """
        jobs = np.arange(1, len(there)) / theta
        return float(
            there[1:]
            @ np.interp(jobs, np.arange(len(self._queued) + 1.0), np.concatenate(((0.0,), self._queued)))
        )

    def add_total(self, there: FloatArray, theta: float, totals: FloatArray, factor: float) -> None:
        """Add ``factor`` times the probability of 0, 1, ... jobs, all others' included, to ``totals``."""
        if theta <= SEQUENTIAL:
            # A smooth distribution of n / theta: no gaps where no whole number n leads to.
            below = np.concatenate(((0.0,), np.cumsum(there)))
            edges = np.concatenate(((0.0,), np.arange(1, self._length + 2) - 0.5)) * theta
            edges[1:] = np.maximum(edges[1:], 0.5)  # 0 there are 0 there
            edges[-1] = len(there)
            own = np.diff(
                np.interp(edges, np.concatenate(((0.0,), np.arange(1, len(there) + 1) - 0.5)), below)
            )
        else:
            own = np.zeros(min(len(there), self._length + 1))
            own[:] = there[: len(own)]
            own[-1] += there[len(own) :].sum()
        if self._background is None:
            totals[: len(own)] += factor * own
            return
        # The others beside a number of customers between two points of the grid is that of the next point.
        ends = np.minimum(np.append(self._grid, len(own) - 1), len(own) - 1)
        start, width = 1, self._weight.shape[1]
        for row, end in zip((*self._weight, self._weight[-1]), ends, strict=True):
            if end >= start:
                found = np.convolve(own[start : end + 1], row)
                stop = min(start + len(found), len(totals))
                totals[start:stop] += factor * found[: stop - start]
                totals[-1] += factor * float(found[stop - start :].sum())
                start = end + 1
        width = min(width, len(totals))
        totals[:width] += factor * own[0] * self._alone[:width]


def grid(top: int) -> npt.NDArray[np.int64]:
    """Return 1, 2, ... ``top``, ever coarser beyond ``EACH``."""
    if top <= EACH:
        return np.arange(1, top + 1)
    count = int(PER_DOUBLING * math.log2(top / EACH)) + 2
    coarse = np.geomspace(EACH, top, count).astype(np.int64)
    # From EACH to top; not by np.unique, which imports numpy.ma.
    return np.concatenate((np.arange(1, EACH + 1), coarse[1:][np.diff(coarse) > 0]))
