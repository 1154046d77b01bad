"""Half-widths of 95 % intervals of a real run, from batches and from repeats.

Values of consecutive cycles depend on each other (they queue behind one another), so a window is cut into
batches, and the figure is seen as a ratio: the sum over all batches over the number (or the seconds) in
them. Its error follows from how much the batches' sums differ from what their numbers let expect; batches
may be unequal, or empty. Where neighbouring batches still resemble each other, the interval is widened for
it. With three or more repeats, their differences alone decide if they are larger than the batches explain:
fresh services may differ by more than a run of them shows.

No scipy here: a load test would wait for its import on every start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mup.statistics.student import t_quantile

__all__ = ["Batches", "quantile_half_width", "ratio_half_width"]

Batches = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Per batch of one run: a sum, and the number (or seconds, or capacity) it is divided by."""

_NORMAL_ONE_SIDED = 1.644854
FEWEST_REPEATS = 3
"""Two repeats say next to nothing of how much repeats vary."""


def ratio_half_width(runs: Sequence[Batches]) -> float | None:
    """Return the half-width of a ratio over one or more runs; None with fewer than two batches.

    Args:
        runs: Batches of each run, in their order in time.
    """
    runs = [run for run in runs if run[1].sum() > 0]
    batches = sum(len(sums) for sums, _ in runs)
    if batches < 2:
        return None
    weight = float(sum(counts.sum() for _, counts in runs))
    mean = float(sum(sums.sum() for sums, _ in runs)) / weight
    # What each batch has more than its number lets expect; together 0.
    excess = [sums - mean * counts for sums, counts in runs]
    within = [run - run.mean() for run in excess]
    squares = float(sum((run**2).sum() for run in excess))
    error = batches * squares / (batches - 1) * _resemblance(within)
    freedom = batches - 1
    if len(runs) >= FEWEST_REPEATS:
        totals = np.array([run.sum() for run in excess])
        between = len(runs) * float(totals.var(ddof=1))
        rest = batches - len(runs)
        alike = float(sum((run**2).sum() for run in within)) * batches / rest if rest > 0 else 0.0
        if _differ(between, alike * _resemblance(within), len(runs) - 1, rest):
            error, freedom = between, len(runs) - 1
    return t_quantile(freedom) * float(np.sqrt(error)) / weight


def quantile_half_width(
    values: npt.NDArray[np.float64],
    share: float,
    batch_of: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], int]],
) -> float | None:
    """Return the half-width of a quantile; None where the data do not reach far enough beyond it.

    The share of values below the quantile is a mean, and has an interval like any mean; the quantiles at the
    ends of that interval are the ends of the quantile's.

    Args:
        values: All of them.
        share: Of the quantile, e.g. 0.95.
        batch_of: Per run its values, the batch each belongs to, and the number of batches.
    """
    if not len(values):
        return None
    quantile = np.quantile(values, share)
    runs = [
        (
            np.bincount(batch[own <= quantile], minlength=count).astype(np.float64),
            np.bincount(batch, minlength=count).astype(np.float64),
        )
        for own, batch, count in batch_of
    ]
    half = ratio_half_width(runs)
    if half is None or share + half >= 1.0 - 0.5 / len(values) or share - half <= 0.0:
        return None
    low, high = np.quantile(values, (share - half, share + half))
    return float(high - low) / 2


def _resemblance(runs: Sequence[npt.NDArray[np.float64]]) -> float:
    """Return the factor on a variance that the correlation of neighbouring batches calls for; at least 1."""
    squares = float(sum((run**2).sum() for run in runs))
    if squares <= 0.0:
        return 1.0
    return 1.0 + 2.0 * max(0.0, float(sum((run[1:] * run[:-1]).sum() for run in runs)) / squares)


def _differ(between: float, within: float, freedom: int, rest: int) -> bool:
    """Return whether repeats differ by more than their batches explain: an F test at 5 %.

    By the approximation of Paulson (1942) with the normal distribution.
    """
    if rest <= 0 or within <= 1e-12 * between:
        return between > 0.0
    root = (between / within) ** (1 / 3)
    a, b = 2 / (9 * freedom), 2 / (9 * rest)
    return bool(((1 - b) * root - (1 - a)) / np.sqrt(a + b * root**2) > _NORMAL_ONE_SIDED)
