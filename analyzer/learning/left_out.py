"""Intervals from leaving out independent groups of traces, one at a time (delete-a-group jackknife).

Source: Shao, Wu, "A general theory for jackknife variance estimation", Annals of Statistics 17 (1989).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.learning.traces import FloatArray
from mup.statistics.student import t_quantile

__all__ = ["GROUPS", "half_width", "rows_kept"]

GROUPS = 10
"""Groups of traces at most. With fewer of them intervals scatter themselves."""


def rows_kept(traces: int, seed: int) -> list[npt.NDArray[np.int64]]:
    """Return the traces that are left without each of the groups, ascending; empty if there are too few.

    Args:
        traces: How many there are.
        seed: Of the groups.
    """
    groups = min(GROUPS, traces)
    if groups < 2:
        return []
    order = np.random.default_rng(seed).permutation(traces)
    return [np.sort(np.delete(order, np.s_[g::groups])) for g in range(groups)]


def half_width(estimates: Sequence[FloatArray]) -> FloatArray:
    """Return the half-width of a 95 % interval, of the shape of an estimate.

    Args:
        estimates: Without each group, two or more.
    """
    groups = len(estimates)
    factor = t_quantile(groups - 1) * math.sqrt((groups - 1) ** 2 / groups)
    return np.asarray(np.std(estimates, axis=0, ddof=1) * factor)
