"""How do customers share stations whose speed depends on how many of them are there?

The numerical kernels of the analytic estimate. A *station* is described by rates: ``rates[n - 1]`` visits
per second are completed while ``n`` customers are there; beyond the end of the array the last rate holds.

``Chain`` is a closed network of such stations and a delay in product form (Buzen's convolution): exact
for processor sharing, for infinite servers, and for first come first served with exponential times of one
class. Its throughput as a function of the number of customers is what replaces the whole network, as one
station, in the network around it (Chandy, Herzog and Woo, "Parametric analysis of queueing networks", 1975).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.analytic.replicas import Replicas

__all__ = ["Chain", "Crowd", "FloatArray", "Queue", "SharedView", "extended", "rising"]

FloatArray = npt.NDArray[np.float64]

TINY = 1e-290
ROOT = 1e-145
"""Of two factors this large the product is a normal number."""
LONG = 0.8
"""Part of the lengths told apart from which on a queue that can be longer is taken as full."""
RELAXATION = 0.7
"""Part of a change of the speeds of a queue that is made at once."""
MOST = 3.0
"""Load offered to a busy server beyond which it makes no more difference; more than anyone waits for."""
FIRST = 2.0
"""Factor on the speed with all servers busy and nobody waiting, or its inverse, at most; for services so
variable that their queue is more than that many times as long as with exponential ones, so many times."""
WINDOW = 2000
"""Customers at the stations together at most, if those in the delay are to be distinguished from them."""


def extended(rates: FloatArray, length: int) -> FloatArray:
    """Return the first ``length`` rates, the last one repeated if there are not so many."""
    if len(rates) >= length:
        return rates[:length]
    return np.concatenate((rates, np.full(length - len(rates), rates[-1])))


def rising(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the nearest sequence that never falls (least squares, by the weights; None: all alike)."""
    if bool(np.all(values[1:] >= values[:-1])):
        return values
    given = np.ones(len(values)) if weights is None else weights
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), np.maximum(given, TINY).tolist(), strict=True):
        mean, mass, count = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            before, heavy, many = blocks.pop()
            mean = (mean * mass + before * heavy) / (mass + heavy)
            mass, count = mass + heavy, count + many
        blocks.append((mean, mass, count))
    return np.repeat([m for m, _, _ in blocks], [c for _, _, c in blocks])


def _weights(ratios: FloatArray) -> FloatArray:
    """Return 1, r1, r1 r2, ... divided by their maximum."""
    logs = np.concatenate(((0.0,), np.cumsum(np.log(np.maximum(ratios, TINY)))))
    return np.asarray(np.exp(logs - logs.max()))


class Chain:
    """A closed network of one class for every population 0 .. ``population``.

    Args:
        population: Customers at most.
        delay: Seconds per cycle that nobody contends for.
        visits: Per station, visits per cycle.
        rates: Per station, its rates.
        guess: Throughput to scale by; the closer to the truth, the fewer underflows.
    """

    def __init__(
        self,
        population: int,
        delay: float,
        visits: Sequence[float],
        rates: Sequence[FloatArray],
        guess: float,
    ) -> None:
        window = max(WINDOW, int(8 * math.sqrt(population)))
        size = min(population, window) + 1
        self.population = population
        self._stations = [
            _weights(guess * v / extended(r, size - 1)) for v, r in zip(visits, rates, strict=True)
        ]
        if delay > 0:
            logs = _delay_logs(guess * delay, population, size)
            own = np.exp(logs - logs.max())
        else:
            own = np.zeros(size)
            own[0] = 1.0
        self._tail: FloatArray | None = None
        if population > window:
            # Customers in the delay are the rest: own[k] belongs to k customers at the stations.
            self._tail = own
            own = np.zeros(size)
            own[0] = 1.0
        # Products of all stations before, and of all behind: their product leaves one station out.
        before = [own]
        for station in self._stations:
            before.append(_product(before[-1], station, size))
        self._without: list[FloatArray] = []
        behind: FloatArray | None = None
        for index in range(len(self._stations) - 1, -1, -1):
            self._without.append(before[index] if behind is None else _product(before[index], behind, size))
            behind = (
                self._stations[index] if behind is None else _product(behind, self._stations[index], size)
            )
        self._without.reverse()
        self._all = before[-1]
        if self._tail is not None:
            weights = self._all * self._tail
            thinking = population - float(weights @ np.arange(size)) / float(weights.sum())
            self.throughput: FloatArray = np.array([thinking / delay])
            """Cycles per second with 1, 2, ... customers; only with all of them if they are many."""
            return
        lightest = delay + sum(v / r[0] for v, r in zip(visits, rates, strict=True))
        light = np.arange(1.0, size) / lightest
        usable = (self._all[:-1] > TINY) & (self._all[1:] > TINY)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Populations too small to matter at this scale underflow: there, nobody waits.
            self.throughput = np.where(usable, guess * self._all[:-1] / self._all[1:], light)

    def marginal(self, station: int, populations: FloatArray) -> FloatArray:
        """Return how likely 0, 1, ... customers are at a station.

        Args:
            station: Its index.
            populations: Probability of 0, 1, ... customers in the network (ignored if they are many:
                then all of them are there).
        """
        if self._tail is not None:
            scaled = self._tail
        else:
            scaled = np.where(self._all > TINY, populations / np.maximum(self._all, TINY), 0.0)
        others = np.correlate(scaled, self._without[station], mode="full")[len(scaled) - 1 :]
        found = self._stations[station] * others
        total = float(found.sum())
        if total <= 0:
            found[0] = total = 1.0
        return found / total


def _delay_logs(load: float, population: int, size: int) -> FloatArray:
    """Return the logarithms of load^n / n! for n = 0, 1, ..., or of the rest if that is too many."""
    if size == population + 1:
        steps = np.log(load / np.arange(1.0, size))
        return np.concatenate(((0.0,), np.cumsum(steps)))
    rest = np.log(np.arange(population, population - size + 1, -1.0) / load)
    return np.concatenate(((0.0,), np.cumsum(rest)))


def _product(a: FloatArray, b: FloatArray, size: int) -> FloatArray:
    # Whatever would underflow does not matter, but arithmetic with denormal numbers is slow.
    a, b = np.where(a > ROOT, a, 0.0), np.where(b > ROOT, b, 0.0)
    found = np.convolve(a, np.trim_zeros(b, "b") if b.any() else b)[:size]
    top = float(found.max())
    return found / top if top > 0 else found


class Queue:
    """A queue in front of servers, in ``replicas`` identical copies between which requests choose at random.

    Args:
        servers: Of each replica.
        replicas: How many there are.
        length: Numbers of requests that are told apart.
        cut: There can be more requests.

    Attributes:
        busy: Mean number of busy servers, all replicas together, with 1, 2, ... requests there.
        pace: The same, as it should be taken for the rate: it differs from ``busy`` where service times
            are less or more variable than exponential ones.
    """

    def __init__(self, servers: float, replicas: int, length: int, *, cut: bool) -> None:
        self.servers = servers
        self.replicas = replicas
        self.length = length
        self._cut = cut
        self._steps = np.minimum(np.arange(1.0, length + 1), servers)
        self._speeds = self._steps
        self._spread = Replicas(self._speeds, replicas)
        self.busy = self.pace = self._spread.speeds
        # Speeds with more requests than servers, and with as many, relative to exponential services.
        self._shape = np.ones(length - int(min(servers, length)))
        self._level = self._first = 1.0

    def adapt(self, variability: float, crowd: FloatArray) -> None:
        """Correct the pace for service times whose squared coefficient of variation is not 1.

        A queue of general service times behaves like one of exponential times whose speed depends on
        the load: with more variable ones it is slower while few arrive and faster while many do. The
        factor below makes the mean length of an open queue that of Pollaczek and Khinchine (one server),
        and its slope that of the heavy-traffic limit; here it is applied to the rate of arrivals at each
        length, as in Marie's method. The speed with exactly as many requests as servers is set such
        that servers are as busy as the throughput demands.

        Args:
            variability: Squared coefficient of variation of the service time.
            crowd: Probability of 0, 1, ... requests, all replicas together.
        """
        c = self.servers
        if c >= self.length or abs(variability - 1) < 1e-3:
            return
        at = int(c)  # index of the length with all servers busy and nobody waiting
        single = self._spread.single(crowd)
        # Load offered while all servers are busy: arrivals at that length, times service time, per server.
        usable = (single[at:-1] > TINY) & (single[at + 1 :] > TINY)
        lengths = np.flatnonzero(usable)
        if not len(lengths):
            return
        seen = single[at + 1 :][lengths] * self._speeds[at:][lengths] / single[at:-1][lengths]
        load = np.interp(np.arange(len(usable)), lengths, seen)
        load = np.minimum(load / c, MOST)
        light = max(1 + (variability - 1) / (c + 1), 0.05)
        heavy = (1 + variability) / 2
        mix = np.minimum(load, 1.0)
        excess = 1 / ((1 - mix) * light + mix * heavy) - 1
        beyond = (load > 1) & (excess > 0)
        factor = np.where(beyond, 1 / (1 + np.where(beyond, load - 1, 0.0) * excess), 1 + (1 - load) * excess)
        if self._cut:
            # The last length stands for all longer ones, and what is right there is not for those. A queue
            # as long as that is never empty: how much services vary makes no difference to its throughput.
            factor **= 1 - float(single[int(LONG * self.length) :].sum())
        old = 1 - RELAXATION
        self._shape = self._shape**old * factor**RELAXATION
        exact, above = float(single[at]), float(single[at + 1 :].sum())
        given = float(single[at + 1 :] @ self._shape)
        first = 1.0
        if exact > 1e-12:
            first = min(max(1 + (above - given) / exact, 1 / FIRST), max(FIRST, heavy))
        self._first = self._first**old * first**RELAXATION
        if given > 1e-12:
            # Where all requests queue at once, the factor is that of the greatest load.
            level = min(max((exact + above - first * exact) / given, 1 / MOST), MOST)
            # The queue of a full station follows its level: the speeds where the queue then is differ
            # ``heavy`` times as much. A correction of all of that would overshoot, ever more.
            new = min(RELAXATION, 1 / heavy)
            self._level = self._level ** (1 - new) * level**new
        self._speeds = self._steps.copy()
        self._speeds[at:] = c * self._shape * self._level
        self._speeds[at - 1] = c * self._first
        self._spread = Replicas(self._speeds, self.replicas)
        self.pace = self._spread.speeds


@dataclass(frozen=True, slots=True)
class Crowd:
    """Other users of a station, as sources that send a job, wait for its end and pause.

    Attributes:
        sources: How many there are; the fewer, the less others arrive while many of them are there.
        limit: At most how many jobs they have there at once.
        pause: Seconds between the end of a job and the source's next one.
        ease: Work of one of their jobs relative to the average job of the station.
        population: Sources and own customers together are at most that many.
        patience: How likely one of their jobs there is waiting, relative to an own one.
        callees: How many of the sources work for own customers, who wait elsewhere meanwhile.
        callers: Own customers at most.
    """

    sources: float
    limit: float
    pause: float
    ease: float
    population: float
    patience: float
    callees: float
    callers: float


class SharedView:
    """A station as the customers of one class see it.

    The crowd is in equilibrium given the number of own customers, and both get their share of the
    station: exact if the network is one of product form.

    Args:
        rates: Jobs per second with 1, 2, ... jobs there, whoever they belong to.
        waiting: How many of 1, 2, ... jobs wait for a server.
        crowd: The others; None if there are none.
        customers: Own customers at most.

    Attributes:
        rates: Own jobs per second with 1, 2, ... own customers there.
    """

    def __init__(self, rates: FloatArray, waiting: FloatArray, crowd: Crowd | None, customers: int) -> None:
        self._crowd = crowd
        self._length = len(rates)
        if crowd is None:
            self.rates = extended(rates, customers)
            self._queued = extended(waiting, customers)
            return
        at = np.concatenate(((0,), _grid(customers)))
        self._grid = at[1:]
        own = at[:, None].astype(float)
        # Below nothing where an estimate of who waits elsewhere has more of them than there are.
        most = int(max(min(crowd.limit, crowd.population, len(rates)), 0.0))
        others = np.arange(most + 1.0)[None, :]
        index = np.maximum(np.minimum(at[:, None] + np.arange(most + 1)[None, :], len(rates)) - 1, 0)
        jobs = np.maximum(own + others, 1.0)
        rate = rates[index]
        callees = np.minimum(crowd.callees, np.maximum(crowd.callers - own, 0.0))
        sources = np.minimum(crowd.sources - crowd.callees + callees, crowd.population - own)
        sources = np.clip(sources, 0.0, None)
        left = np.maximum(sources - (others[:, 1:] - 1), 0.0)
        ratio = left / crowd.pause * crowd.ease * jobs[:, 1:] / (rate[:, 1:] * others[:, 1:])
        logs = np.cumsum(np.log(np.maximum(ratio, TINY)), axis=1)
        weight = np.concatenate((np.zeros((len(at), 1)), logs), axis=1)
        weight = np.exp(weight - weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        self._alone, self._weight = weight[0], weight[1:]
        every = np.arange(1, customers + 1)
        self.rates = np.interp(every, self._grid, (weight * own / jobs * rate).sum(axis=1)[1:])
        share = own[1:] / (own[1:] + crowd.patience * others)
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
        """Add ``factor`` times the probability of 0, 1, ... jobs, the crowd's included, to ``totals``."""
        if theta <= 0.999:
            # A smooth distribution of n / theta: no gaps where no whole number n leads to.
            below = np.concatenate(((0.0,), np.cumsum(there)))
            edges = np.concatenate(((0.0,), np.arange(1, self._length + 2) - 0.5)) * theta
            edges[1:] = np.maximum(edges[1:], 0.5)  # nobody there is nobody there
            edges[-1] = len(there)
            own = np.diff(
                np.interp(edges, np.concatenate(((0.0,), np.arange(1, len(there) + 1) - 0.5)), below)
            )
        else:
            own = np.zeros(min(len(there), self._length + 1))
            own[:] = there[: len(own)]
            own[-1] += there[len(own) :].sum()
        if self._crowd is None:
            totals[: len(own)] += factor * own
            return
        # The crowd beside a number of customers between two points of the grid is that of the next point.
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


def _grid(top: int) -> npt.NDArray[np.int64]:
    """Return 1, 2, ... ``top``, ever coarser beyond 24."""
    if top <= 24:
        return np.arange(1, top + 1)
    count = int(8 * math.log2(top / 24)) + 2
    return np.unique(np.concatenate((np.arange(1, 25), np.geomspace(24, top, count).astype(np.int64), [top])))
