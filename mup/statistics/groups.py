"""Batch-means intervals of the mean of measurements.

Consecutive measurements of a running system are correlated, so the interval of their mean is taken
from the spread of batch means (Fishman and Yarberry 1997), not of single values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mup.statistics.student import t_quantile

__all__ = ["MIN_BATCHES", "half_width_of_batches", "half_width_of_sums"]

MIN_BATCHES = 3
"""With two, Student's t of one degree of freedom makes intervals twelve times as wide as their deviation."""


def half_width_of_batches(batches: Sequence[Sequence[float]], *, level: float = 0.95) -> float | None:
    """Return the half-width of the interval of the overall mean.

    Batches of different sizes weigh by their size (ratio estimator), so that a batch with few values
    does not widen the interval for being short.

    Args:
        batches: Values of each batch; empty batches are ignored.
        level: Confidence level.

    Returns:
        Half-width in the unit of the values; None with fewer than three batches.
    """
    arrays = [np.asarray(b, dtype=float) for b in batches]
    return half_width_of_sums([float(a.sum()) for a in arrays], [a.size for a in arrays], level=level)


def half_width_of_sums(sums: Sequence[float], sizes: Sequence[int], *, level: float = 0.95) -> float | None:
    """Return the same from the sum and the number of the values of each batch."""
    counts = np.asarray(sizes, dtype=float)
    filled = counts > 0
    counts, totals = counts[filled], np.asarray(sums, dtype=float)[filled]
    k = len(counts)
    if k < MIN_BATCHES:
        return None
    mean = totals.sum() / counts.sum()
    residual = (totals - mean * counts) / counts.mean()
    error = float(np.sqrt((residual**2).sum() / (k - 1) / k))
    return t_quantile(k - 1, level) * error
