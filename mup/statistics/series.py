"""End of the warm-up of a series, and correlation of its neighbours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_WIDENING_CORRELATION", "lag1", "mser5", "widening"]

FloatArray = npt.NDArray[np.float64]

MAX_WIDENING_CORRELATION = 0.9
"""Correlation of neighbours up to which a variance is widened for it (a factor of 19): an estimate from some
dozens of values is too unsure for more."""


def mser5(series: FloatArray) -> int:
    """Return how many elements at the beginning are warm-up, at most half of them.

    MSER-5 (White, "An effective truncation heuristic for bias reduction in simulation output", 1997):
    averages groups of five and chooses the truncation that minimises the variance of the rest divided
    by its size, the estimated squared error of the remaining mean. NaN elements (nothing completed)
    do not count.
    """
    groups = len(series) // 5
    blocks = series[: groups * 5].reshape(groups, 5)
    seen = ~np.isnan(blocks)
    counts = seen.sum(axis=1)
    kept = np.flatnonzero(counts)
    if len(kept) < 4:
        return 0
    means = np.where(seen, blocks, 0.0).sum(axis=1)[kept] / counts[kept]
    # Around the overall mean, so that the difference of squares below does not cancel.
    means = means - means.mean()
    left = np.arange(len(means), 0, -1)
    tail = means[::-1].cumsum()[::-1]
    squares = (means**2)[::-1].cumsum()[::-1]
    error = np.maximum(squares - tail**2 / left, 0.0) / left.astype(float) ** 2
    candidates = kept <= groups // 2
    if not candidates.any():
        return groups // 2 * 5
    # Rounding noise of a run without any variation must not look like a trend.
    error[error <= 1e-24 * max(float(np.max(squares)), 1e-300)] = 0.0
    return int(kept[int(np.argmin(error[candidates]))]) * 5


def lag1(residuals: FloatArray) -> float:
    """Return the correlation between neighbours of a series of mean 0; 0 if it is constant."""
    power = float(residuals @ residuals)
    return float(residuals[:-1] @ residuals[1:]) / power if power > 0 else 0.0


def widening(residuals: FloatArray) -> float:
    """Return the factor on the variance of a mean that the correlation of neighbours calls for; at least 1.

    As in a first-order autoregressive process of the correlation that the residuals show; a negative one
    narrows nothing.
    """
    correlation = min(max(lag1(residuals), 0.0), MAX_WIDENING_CORRELATION)
    return (1 + correlation) / (1 - correlation)
