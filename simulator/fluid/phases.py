"""Exponential stages that stand for a time.

They keep its mean and, where that takes no more than so many stages, its squared coefficient of variation:
Erlang stages or a mixture of two Erlangs below 1 (Tijms, "Stochastic Models", 1994), a hyperexponential
above. A lognormal time begins later and ends later than that; where stages are enough, it is a mixture of
Erlangs whose means are those of Gauss and Hermite's quadrature of the normal distribution.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import gammainc, ndtr

from mup.lqn.distributions import Distribution, Erlang, Exponential, Hyperexponential, Lognormal, with_scv

__all__ = ["Phases", "phases"]

FloatArray = npt.NDArray[np.float64]
Phases = list[tuple[float, list[float]]]
"""Alternatives: probability, rates of the stages in a row."""

MAX_SCV: Final = 100.0
FEWEST: Final = 3
"""Alternatives of a lognormal time, of two stages at least."""
MOMENTS: Final = np.geomspace(1e-2, 30.0, 200)
"""Of a time of mean 1, at which distributions are compared."""
WIDEST: Final = 12.0
"""Standard deviation of the logarithm, at most."""


def phases(time: Distribution, stages: int) -> Phases:
    """Return the alternatives (probability, rates of the stages in a row) that stand for a time."""
    mean = time.mean
    if mean <= 0:
        return [(1.0, [])]
    if isinstance(time, Hyperexponential):
        return [
            (p, [1 / m] if m > 0 else [])
            for p, m in zip(time.probabilities, time.means, strict=True)
            if p > 0
        ]
    if isinstance(time, Erlang):
        count = min(time.stages, stages)
        return [(1.0, [count / mean] * count)]
    scv = time.scv
    if isinstance(time, Lognormal):
        found = _lognormal(scv, stages)
        if found:
            return [(p, [each / (m * mean)] * each) for p, m, each in found]
    if isinstance(time, Exponential) or math.isclose(scv, 1.0):
        return [(1.0, [1 / mean])]
    if scv > 1:
        return phases(with_scv(mean, min(scv, MAX_SCV)), stages)
    count = math.ceil(1 / scv - 1e-9) if scv * stages >= 1 else stages
    if scv * count <= 1 + 1e-9:
        return [(1.0, [count / mean] * count)]
    shorter = (count * scv - math.sqrt(max(0.0, count * (1 + scv) - count**2 * scv))) / (1 + scv)
    rate = (count - shorter) / mean
    return [(shorter, [rate] * (count - 1)), (1 - shorter, [rate] * count)]


@lru_cache(maxsize=1000)
def _lognormal(scv: float, stages: int) -> tuple[tuple[float, float, int], ...]:
    """Return alternatives (probability, mean, stages) of a lognormal time of mean 1.

    Few stages per alternative vary too much, many leave too few alternatives: those that are nearest to its
    distribution are taken. Empty if there are none.
    """
    width = math.sqrt(math.log1p(scv))
    wanted = ndtr((np.log(MOMENTS) + width**2 / 2) / width)
    best: tuple[tuple[float, float, int], ...] = ()
    least = math.inf
    for each in range(2, stages // FEWEST + 1):
        found = _mixture(scv, each, stages // each)
        reached = sum(p * gammainc(each, each * MOMENTS / m) for p, m, each in found)
        apart = float(np.abs(reached - wanted).max())
        if found and apart < least:
            best, least = found, apart
    return best


def _mixture(scv: float, each: int, nodes: int) -> tuple[tuple[float, float, int], ...]:
    """Return alternatives with the means of a quadrature; empty if none varies so much or so little."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    odds = weights / weights.sum()

    def means(width: float) -> FloatArray:
        grown = np.exp(width * (points - points[-1]))
        return np.asarray(grown / (odds @ grown))

    def apart(width: float) -> float:
        return float(odds @ np.square(means(width))) * (1 + 1 / each) - 1 - scv

    if not apart(0.0) < 0 < apart(WIDEST):
        return ()
    chosen = means(float(brentq(apart, 0.0, WIDEST)))
    return tuple((float(p), float(m), each) for p, m in zip(odds, chosen, strict=True))
