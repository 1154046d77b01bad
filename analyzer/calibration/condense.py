"""Condense a sample of times into an empirical distribution with exactly the sample's mean.

Up to ``SIZE`` equally likely values are kept: the means of equally large groups of the sorted sample.
Group means preserve the mean exactly and lose only the variance inside a group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mup.lqn import Constant, Distribution, Empirical

__all__ = ["SIZE", "condense"]

SIZE = 100
_SIGNIFICANT = 6


def condense(sample: ArrayLike, *, shift: float = 0.0) -> Distribution | None:
    """Return the distribution of ``max(0, sample - shift)`` with mean ``max(0, mean(sample) - shift)``.

    Args:
        sample: Seconds, shape (n,).
        shift: Seconds that something else already accounts for, on average. It is taken off every
            value; values it would make negative become 0, and the rest is scaled so that the mean is
            right all the same.

    Returns:
        A ``Constant`` where all values are equal, else an ``Empirical``; None for an empty sample.
    """
    values = np.sort(np.asarray(sample, dtype=float))
    if values.size == 0:
        return None
    target = max(0.0, float(values.mean()) - shift)
    values = np.maximum(values - shift, 0.0)
    total = float(values.mean())
    if target == 0.0 or total == 0.0:
        return Constant(0.0)
    values *= target / total
    groups = np.array_split(values, min(SIZE, values.size))
    weights = np.array([g.size for g in groups], dtype=float)
    means = np.array([g.mean() for g in groups])
    # Groups differ by at most one element; equal likelihood needs the mean put right once more.
    means *= target / float(means.mean()) if weights.min() != weights.max() else 1.0
    rounded = tuple(float(f"{v:.{_SIGNIFICANT}g}") for v in means)
    if rounded[0] == rounded[-1]:
        return Constant(rounded[0])
    return Empirical(rounded)
