"""Batch-means confidence intervals of measured means.

Consecutive measurements of a running system are correlated, so the interval of their mean is taken
from the spread of batch means (Fishman and Yarberry 1997), not of single values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

__all__ = ["MIN_BATCHES", "half_width_of_batches"]

MIN_BATCHES = 3


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
    filled = [np.asarray(b, dtype=float) for b in batches if len(b)]
    k = len(filled)
    if k < MIN_BATCHES:
        return None
    sums = np.array([b.sum() for b in filled])
    sizes = np.array([b.size for b in filled], dtype=float)
    mean = sums.sum() / sizes.sum()
    residual = (sums - mean * sizes) / sizes.mean()
    error = float(np.sqrt((residual**2).sum() / (k - 1) / k))
    return float(student.ppf(0.5 + level / 2, k - 1)) * error
