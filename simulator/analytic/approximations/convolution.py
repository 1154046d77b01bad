"""Closed network of one class by convolution, for every number of customers at once.

Buzen, "Computational algorithms for closed queueing networks with exponential servers" (1973); with speeds
that depend on the number of customers: Reiser and Kobayashi, "Queuing networks with multiple closed chains:
theory and computational algorithms" (1975). Exact for processor sharing, for infinite servers, and for
first come first served with exponential times of one class.

A *station* is described by rates: ``rates[n - 1]`` visits per second are completed while ``n`` customers are
there; beyond the end of the array the last rate holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["LEFT_OVER", "ROUNDING", "TINY", "Chain", "FloatArray", "extended", "rising"]

FloatArray = npt.NDArray[np.float64]

TINY: Final = 1e-290
"""Weights below are as good as 0, and would be slow: they come near to denormal numbers."""
ROOT: Final = 1e-145
"""Of two factors this large the product is a normal number."""
ROUNDING: Final = 1e-9
"""Relative size of what is rounding alone, and a probability as good as 0."""
LEFT_OVER: Final = 1e-6
"""Part of a sum that is left over by rounding, and by times that have hardly changed (``SAME``)."""
WINDOW: Final = 2000
"""Customers at the stations together at most, if those in the delay are to be distinguished from them."""
WINDOW_DEVIATIONS: Final = 8
"""The same in standard deviations of the customers in the delay (Poisson), where they are many."""


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
        delay: Seconds per cycle without contention.
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
        window = max(WINDOW, int(WINDOW_DEVIATIONS * math.sqrt(population)))
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
            # Populations too small to matter at this scale underflow: there, no customer waits.
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
