"""A measured figure and how well it is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

__all__ = ["Estimate", "share", "typical"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and the half-width of its 95 % interval.

    Attributes:
        mean: The figure.
        half: Half-width in the same unit; None = unknown.
    """

    mean: float
    half: float | None = None


def typical(values: Sequence[float]) -> Estimate:
    """Return the median of independent values, with its interval from order statistics.

    A median, because a machine that stutters once must not spoil a figure of ten samples. With fewer than
    six values no two of them enclose the median with 95 %, and the whole range is the interval.

    Raises:
        ValueError: There are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered, count = sorted(values), len(values)
    if count == 1:
        return Estimate(ordered[0])
    # The number of values below the median is binomial (count, 1/2); find the largest tail within 2.5 %.
    rank, tail = 0, 0.0
    while (tail := tail + math.comb(count, rank) / 2**count) <= 0.025:
        rank += 1
    rank = max(0, rank - 1)
    return Estimate(median(ordered), (ordered[count - 1 - rank] - ordered[rank]) / 2)


def share(cases: int, of: int) -> Estimate:
    """Return the share of ``cases`` and the half-width of Wilson's interval; of nothing, 0 and unknown."""
    if not of:
        return Estimate(0.0)
    p, z2 = cases / of, 1.96**2
    return Estimate(p, 1.96 * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of)) / (1 + z2 / of))
