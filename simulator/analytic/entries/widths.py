"""How long does a flow wait for a random number of copies of a branch, and how do these meet?

Copies are independent and equally distributed. Of W of them, all are over by a time that a single one is
over by with probability F with probability G(F), where G is the generating function of W: the order
statistic of a random number needs no sum over widths (David and Nagaraja, "Order Statistics", 2003, section
5.4). Where k suffice, there is one, over binomial probabilities.

With at most L copies at once, W > L of them take turns: (W - L) of them begin at the pace of L servers,
then the last L are waited for. Of exponential times that is exact, and so it is of constant ones.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt

from mup.lqn.distributions import Constant, Distribution, Geometric

__all__ = ["companions", "most", "unfinished", "widths_of"]

FloatArray = npt.NDArray[np.float64]

POINTS: Final = 400
"""Widths that are told apart; more are taken to be so many equally likely ones."""
RARE: Final = 1e-9
"""Probability of wider fan-outs that is left out."""


def widths_of(width: Distribution) -> tuple[FloatArray, FloatArray]:
    """Return the widths that occur, ascending, and how likely they are."""
    if isinstance(width, Geometric):
        if width.mean == 0:
            return np.zeros(1), np.ones(1)
        ratio = width.mean / (1 + width.mean)
        count = math.ceil(math.log(RARE) / math.log(ratio)) + 1
        if count <= POINTS:
            chances = (1 - ratio) * ratio ** np.arange(count)
            return np.arange(float(count)), chances / chances.sum()
        left = (np.arange(POINTS) + 0.5) / POINTS
        return np.floor(np.log(left[::-1]) / math.log(ratio)), np.full(POINTS, 1 / POINTS)
    values = getattr(width, "values", None) or (width.mean,)
    found = sorted(Counter(values).items())
    if len(found) > POINTS:
        ranks = ((np.arange(POINTS) + 0.5) / POINTS * len(values)).astype(int)
        return np.asarray(sorted(values))[ranks], np.full(POINTS, 1 / POINTS)
    return np.array([w for w, _ in found]), np.array([n for _, n in found]) / len(values)


def unfinished(done: FloatArray, width: Distribution, first: int | None) -> FloatArray:
    """Return how likely those that are waited for are not over yet.

    Args:
        done: How likely a single copy is over.
        width: How many there are.
        first: How many are waited for; None = all.
    """
    if first is None:
        if isinstance(width, Geometric):
            missing = width.mean * (1 - done)
            return np.asarray(missing / (1 + missing))
        if isinstance(width, Constant):
            return np.asarray(1 - done**width.mean)
    widths, chances = widths_of(width)
    if first is None:
        return np.asarray(1 - chances @ done[None, :] ** widths[:, None])
    from scipy import special  # noqa: PLC0415 - its import takes as long as a small simulation

    needed = np.minimum(widths, first)
    some = needed > 0
    left = special.bdtr(needed[some, None] - 1, widths[some, None].astype(int), done[None, :])
    return np.asarray(chances[some] @ left)


def most(width: Distribution, limit: int | None) -> float:
    """Return how many copies run at once, at most."""
    widest = math.inf if isinstance(width, Geometric) else max(getattr(width, "values", (width.mean,)))
    return min(widest, math.inf if limit is None else limit)


def companions(width: Distribution, limit: int | None) -> float:
    """Return how many other copies a copy has, on average over copies; no more than run at once with it."""
    others = width.variance / width.mean + width.mean - 1 if width.mean > 0 else 0.0
    return max(others if limit is None else min(others, limit - 1), 0.0)
