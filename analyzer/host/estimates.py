"""A measured figure and how well it is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Estimate", "mean_of", "share"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and the half-width of its 95 % interval.

    Attributes:
        mean: The figure; NaN never occurs, a figure nobody could measure is None instead of an estimate.
        half: Half-width in the same unit; None = unknown.
    """

    mean: float
    half: float | None = None


def mean_of(values: Sequence[float]) -> Estimate:
    """Return the mean of independent values, with Student's interval.

    Raises:
        ValueError: There are none.
    """
    # scipy takes a third of a second to load; whoever only reads a profile does without.
    from scipy.stats import t as student  # noqa: PLC0415

    count = len(values)
    if not count:
        raise ValueError("no values")
    mean = math.fsum(values) / count
    if count < 2:
        return Estimate(mean)
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
    return Estimate(mean, float(student.ppf(0.975, count - 1)) * error)


def share(cases: int, of: int) -> Estimate:
    """Return the share of ``cases`` and the half-width of Wilson's interval; of nothing, 0 with unknown width."""
    if not of:
        return Estimate(0.0)
    p, z2 = cases / of, 1.96**2
    return Estimate(p, 1.96 * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of)) / (1 + z2 / of))
