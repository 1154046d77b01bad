"""Sleep of what a request finds idle: one of several threads, or of several cores.

Threads and cores are taken in the same order: of the idle ones the last that was busy. So what a request
gets that finds k of them busy has slept for as long as no more than k are. With customers who come
independently of each other the number of busy ones is a birth-death process, and that time, seen backwards,
is as long as its first passage from k to k + 1: a mixture of exponentials. What the requesting customer
itself did before is known better than that, and limits it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Chain", "Rested", "mean_share"]

FloatArray = npt.NDArray[np.float64]

MANY = 200
"""Of so many customers each hardly matters."""
LEVELS = 40
"""So many levels are looked at; who finds more at work finds what has hardly slept."""
RARE = 1e-4
"""Chance of a level below which it is left out: what it adds to a mean is smaller by that factor."""
FULL = 0.999
"""Part of the servers from which on all of them always count as busy."""
SHARP = 0.02
"""A standard deviation below this part of the mean counts as none."""


@dataclass(frozen=True, slots=True)
class Rested:
    """How long ago the requesting customer itself was there: a constant time and an exponential one.

    Attributes:
        mean, sd: Seconds; the standard deviation is at most the mean.
    """

    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class Chain:
    """Customers who come to servers that sleep, as one of them finds the others.

    Attributes:
        seen: Probability to find 0, 1, 2, ... of the others at work, as far as a server is idle then.
        births: Rate at which one more of the others comes, by how many are there.
        deaths: Rate at which one less is at work.
        own: Rate at which the customer itself comes while it is away; 0 if each hardly matters.
    """

    seen: FloatArray
    births: FloatArray
    deaths: FloatArray
    own: float

    @classmethod
    def of(cls, servers: float, busy: float, rate: float, customers: float) -> Chain:
        """Return the chain of some servers of which ``busy`` work on average, visited at a rate.

        Args:
            servers: How many; may be infinite.
            busy: Of these.
            rate: Visits per second.
            customers: How many customers there are at most; infinite if that is unknown.
        """
        if busy > 0.9 * customers:
            customers = math.inf  # branches of a customer come side by side
        most = min(servers, customers)
        death = rate / busy if busy > 0 else math.inf
        if busy <= 0 or busy >= FULL * most:
            level = 0.0 if busy > 0 else 1.0
            births = 0.0 if customers <= 1 else rate
            return cls(np.array([level]), np.array([births]), np.array([0.0]), rate / min(customers, 1e9))
        if customers > MANY:
            count = int(min(servers, LEVELS + 10 * busy + 10))
            levels = np.arange(count, dtype=float)
            logs = levels * math.log(busy) - np.cumsum(np.log(np.maximum(levels, 1.0)))
            weights = np.exp(logs - logs.max())
            total = weights.sum()
            if count >= servers:
                last = weights[-1] * busy / servers
                total += last / (1 - busy / servers)
            return cls(weights / total, np.full(count, rate), levels * death, 0.0)
        clients = int(customers)
        alpha = _alpha(clients, servers, busy, death)
        others = np.arange(clients, dtype=float)
        weights = _weights(clients - 1, servers, alpha, death)
        count = int(min(servers, clients))
        coming, going = (clients - 1 - others) * alpha, np.minimum(others, servers) * death
        return cls(weights[:count], coming[:count], going[:count], alpha)

    def passage(self, level: int) -> tuple[FloatArray, FloatArray]:
        """Return amplitudes and rates of the probability that the next level is not reached for some time."""
        births, deaths = self.births[: level + 1], self.deaths[: level + 1]
        if level == 0:
            return np.ones(1), births
        off = np.sqrt(births[:-1] * deaths[1:])
        matrix = np.diag(births + deaths) - np.diag(off, 1) - np.diag(off, -1)
        rates, vectors = np.linalg.eigh(matrix)
        logs = np.concatenate([[0.0], np.cumsum(np.log(births[:-1]) - np.log(deaths[1:]))])
        roots = np.exp((logs - logs[-1]) / 2)
        return vectors[-1] * (roots @ vectors), np.maximum(rates, 0.0)

    def mean(
        self, gaps: Sequence[float], shares: Sequence[float], own: Rested | None, *, whole: bool
    ) -> float:
        """Return the mean share of a set-up that requests get.

        ``own`` says how long ago the customer itself was there; None: as the rate at which it comes says.
        ``whole``: all servers sleep together, while none is at work.
        """
        total = 0.0
        for level in range(1 if whole else min(len(self.seen), LEVELS)):
            if self.seen[level] > RARE:
                amplitudes, rates = self.passage(level)
                if own is None:
                    rates = rates + self.own
                total += self.seen[level] * mean_share(gaps, shares, amplitudes, rates, own)
        return min(1.0, total)


def _alpha(clients: int, servers: float, busy: float, death: float) -> float:
    """Return the rate at which a customer comes while it is away, by how many servers are busy."""
    # Imported here: it takes longer than the rest of the simulator, and few models need it.
    from scipy.optimize import brentq  # noqa: PLC0415

    here = np.minimum(np.arange(clients + 1.0), servers)

    def excess(log: float) -> float:
        return float(_weights(clients, servers, math.exp(log), death) @ here) - busy

    least = math.log(death * busy / clients)
    return math.exp(brentq(excess, least - 1.0, least + 60.0))


def _weights(clients: int, servers: float, alpha: float, death: float) -> FloatArray:
    """Return how likely 0, 1, ... all customers are there."""
    there = np.arange(clients, dtype=float)
    steps = np.log((clients - there) * alpha) - np.log(np.minimum(there + 1, servers) * death)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    found: FloatArray = weights / weights.sum()
    return found


def mean_share(
    gaps: Sequence[float],
    shares: Sequence[float],
    amplitudes: FloatArray,
    rates: FloatArray,
    own: Rested | None,
) -> float:
    """Return the mean share after a gap: the shorter of a mixture of exponentials, and of one's own.

    Of a share that is linear in the logarithm of the gap, that is an exponential integral per segment.
    """
    total = shares[0]
    for low, high, before, after in zip(gaps, gaps[1:], shares, shares[1:], strict=False):
        if after > before:
            slope = (after - before) / math.log(high / low)
            total += slope * _integral(low, high, amplitudes, rates, own)
    return total


def _integral(
    low: float, high: float, amplitudes: FloatArray, rates: FloatArray, own: Rested | None
) -> float:
    """Return the integral of P(gap > x) / x."""
    if own is None:
        return _plain(low, high, amplitudes, rates)
    sd = min(own.sd, own.mean)
    certain = own.mean - sd
    if sd <= SHARP * own.mean:
        return _plain(low, min(high, own.mean), amplitudes, rates)
    found = _plain(low, min(high, certain), amplitudes, rates)
    start = max(low, certain)
    if start < high:
        later = _plain(start, high, amplitudes, rates + 1 / sd)
        found += math.exp(certain / sd) * later
    return found


def _plain(low: float, high: float, amplitudes: FloatArray, rates: FloatArray) -> float:
    if high <= low:
        return 0.0
    from scipy.special import exp1  # noqa: PLC0415

    slow = rates * high < 1e-9  # hardly anything happens in that time
    safe = np.where(slow, 1.0, rates)
    parts = np.where(slow, math.log(high / low), exp1(safe * low) - exp1(safe * high))
    return float(amplitudes @ parts)
