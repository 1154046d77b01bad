"""Structures that a station of K servers may be taken for: each simulates the responses to known arrivals.

    one        K servers, first come first served
    series     two such stations, one after the other
    delay      a delay that varies (no queue), then a station
    cache      some requests are answered at once, the others by a station
    sharing    K cores that all requests share (processor sharing)
    dependent  a station whose service changes with the load

All start empty, and get the arrivals that were injected. Service times are Weibull, of a mean and of one
shape for all parts of a structure: from constant to hyperexponential-like with a single number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analyzer.blackbox.departures import served, shared
from analyzer.blackbox.inversion import FloatArray

__all__ = ["NAMES", "Kind", "Structure", "candidates", "weibull_shape"]

Kind = Literal["one", "series", "delay", "cache", "sharing", "dependent"]
NAMES: dict[Kind, str] = {
    "one": "one station",
    "series": "two stations in series",
    "delay": "a delay that varies, and then a station",
    "cache": "a cache before a station",
    "sharing": "processor sharing",
    "dependent": "service that changes with the load",
}

CONSTANT = 100.0
"""Shape of a Weibull distribution from which on all service times are the same (cv 1.3 %)."""
COMBINATIONS = 4
"""Numbers of servers that are tried of each structure."""
MOST_SHARE = 0.95
"""Of requests that a cache answers."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A kind, its whole numbers, and where a search for its other parameters begins.

    Attributes:
        kind: Which.
        servers: Of its stations.
        start: Natural units, all > 0: means in seconds, a share, a factor; the last one is the shape.
    """

    kind: Kind
    servers: tuple[int, ...]
    start: tuple[float, ...]

    def responses(
        self, values: Sequence[float], arrivals: FloatArray, load: float, drawn: FloatArray
    ) -> FloatArray:
        """Return the response time of every request; shape (..., n).

        Args:
            values: The parameters, as ``start``.
            arrivals: Seconds, ascending, shape (n,).
            load: Of this step relative to the largest, 0 to 1.
            drawn: Uniform numbers, shape (3, ..., n).
        """
        *rest, shape = values
        # Not quite constant is not enough: where cores are shared, the least difference overtakes.
        unit = np.ones_like(drawn[:2])
        if shape < CONSTANT:
            unit = (-np.log(drawn[:2])) ** (1 / shape) / math.gamma(1 + 1 / shape)
        return _RULES[self.kind](self.servers, rest, arrivals, load, unit, drawn[2])

    def capacity(self, values: Sequence[float]) -> float:
        """Return the requests per second that it can do, at the largest load it is told of."""
        k = self.servers
        match self.kind:
            case "series":
                return min(k[0] / values[0], k[1] / values[1])
            case "delay":
                return k[0] / values[1]
            case "cache":
                return k[0] / values[1] / (1 - min(values[2], MOST_SHARE))
            case "dependent":
                return k[0] / (values[0] * values[1])
            case _:
                return k[0] / values[0]


def candidates(alone: float, cv: float, shortest: float, capacity: float, servers: int) -> list[Structure]:
    """Return the structures to compare, from what is plain of a target.

    Args:
        alone: Mean response time of requests that hardly meet any others, s.
        cv: Their coefficient of variation.
        shortest: Their 10 % quantile, s.
        capacity: Requests per second that it can do.
        servers: As many as one station would need.
    """
    shape = weibull_shape(cv)
    full = alone * capacity
    found = [Structure("one", (servers,), (alone, shape))]
    pairs = [(a, b) for a in range(1, servers + 2) for b in range(a, servers + 2)]
    pairs.sort(key=lambda p: abs(sum(p) - full - 0.25) + 0.1 * abs(p[1] - p[0]))
    for a, b in pairs[:COMBINATIONS]:
        first = alone * a / (a + b)
        found.append(Structure("series", (a, b), (first, alone - first, min(shape * 1.3, 20.0))))
    for k in _near(full * 0.7, servers):
        mean = min(k / capacity, 0.8 * alone)
        found.append(Structure("delay", (k,), (alone - mean, mean, shape)))
    # Work that is constant is far from work that nearly is; then the quickest met no others.
    for mean, varied in ((alone, shape), (shortest, 2 * CONSTANT)):
        found += [Structure("sharing", (k,), (mean, varied)) for k in _near(full, servers)]
    for k in {1, max(1, round(full)), servers}:
        quick = min(shortest, 0.5 * alone)
        share = 0.5
        mean = max((alone - share * quick) / (1 - share), k / capacity / (1 - share) / 2)
        found.append(Structure("cache", (k,), (quick, mean, share, max(shape, 1.0))))
    found.append(Structure("dependent", (servers,), (alone, 1.0, shape)))
    return found


def weibull_shape(cv: float) -> float:
    """Return the shape of a Weibull distribution of some cv, roughly (Justus et al. 1978)."""
    return float(min(max(cv, 0.05), 3.0) ** -1.086)


def _near(wanted: float, most: int) -> list[int]:
    return sorted({max(1, math.floor(wanted)), max(1, math.ceil(wanted)), max(1, min(most, round(wanted)))})


def _one(
    servers: tuple[int, ...], v: list[float], arrivals: FloatArray, _: float, unit: FloatArray, __: FloatArray
) -> FloatArray:
    return served(arrivals, v[0] * unit[0], servers[0]) - arrivals


def _series(
    servers: tuple[int, ...], v: list[float], arrivals: FloatArray, _: float, unit: FloatArray, __: FloatArray
) -> FloatArray:
    between = served(arrivals, v[0] * unit[0], servers[0])
    leave: FloatArray = served(between, v[1] * unit[1], servers[1])
    return leave - arrivals


def _delay(
    servers: tuple[int, ...], v: list[float], arrivals: FloatArray, _: float, unit: FloatArray, __: FloatArray
) -> FloatArray:
    return served(arrivals + v[0] * unit[0], v[1] * unit[1], servers[0]) - arrivals


def _cache(
    servers: tuple[int, ...],
    v: list[float],
    arrivals: FloatArray,
    _: float,
    unit: FloatArray,
    which: FloatArray,
) -> FloatArray:
    quick, mean, share = v
    missed = which >= min(share, MOST_SHARE)
    # Service that takes no time delays nothing: those that are answered at once may pass the station.
    passed = served(arrivals, np.where(missed, mean * unit[1], 0.0), servers[0]) - arrivals
    return np.where(missed, passed, quick * unit[0])


def _sharing(
    servers: tuple[int, ...], v: list[float], arrivals: FloatArray, _: float, unit: FloatArray, __: FloatArray
) -> FloatArray:
    return shared(arrivals, v[0] * unit[0], servers[0]) - arrivals


def _dependent(
    servers: tuple[int, ...],
    v: list[float],
    arrivals: FloatArray,
    load: float,
    unit: FloatArray,
    __: FloatArray,
) -> FloatArray:
    mean, factor = v
    return served(arrivals, mean * factor**load * unit[0], servers[0]) - arrivals


_Rule = Callable[[tuple[int, ...], list[float], FloatArray, float, FloatArray, FloatArray], FloatArray]
_RULES: dict[Kind, _Rule] = {
    "one": _one,
    "series": _series,
    "delay": _delay,
    "cache": _cache,
    "sharing": _sharing,
    "dependent": _dependent,
}
