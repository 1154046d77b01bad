"""Measurements of a run that say nothing about the service.

Two kinds, and nothing else is ever left out:

- Stalls of the machine: single times far beyond anything the service does (``screen``).
- The beginning, while caches fill and connections open (``warmup_length``).

Both only report. Calibration leaves out what they name, and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from mup.errors import ModelError
from mup.statistics.series import mser5, widening

__all__ = ["MAX_SHARE", "MIN_EXCESS", "MIN_SEQUENCE", "SPREADS", "Screened", "screen", "warmup_length"]

SPREADS = 20
"""An outlier exceeds the median by more than this many distances between median and 95th percentile ..."""

MIN_EXCESS = 0.010
"""... and by more than these seconds ..."""

MAX_SHARE = 0.001
"""... and all of them together are at most this part of the sample. More is behaviour, however long."""

MIN_SEQUENCE = 50
"""In a shorter sequence no warm-up can be told from chance."""

_ERRORS = 3.0
"""Standard errors by which a beginning differs that is cut off: by chance one in 370."""
_GROUP = 5
"""Values that are averaged first, as MSER-5 does."""


@dataclass(frozen=True, slots=True)
class Screened:
    """What a screening found.

    Attributes:
        keep: For each value, whether it stays; shape (n,).
        limit: Seconds beyond which a value would be a stall.
        count: Values left out.
        share: Part of the sum of all values that they carried: how much lower the mean is without them.
        windows: Labels of the windows they were in, ascending; empty if no labels were given.
        reason: One sentence for people.
    """

    keep: npt.NDArray[np.bool_]
    limit: float
    count: int
    share: float
    windows: tuple[int, ...]
    reason: str


def screen(values: ArrayLike, windows: ArrayLike | None = None) -> Screened:
    """Tell stalls of the machine from the service's own long times, in doubt in favour of the service.

    A value is an outlier if it lies beyond ``median + SPREADS x (95th percentile - median)``, more than
    ``MIN_EXCESS`` beyond the median, and if at most ``MAX_SHARE`` of the sample does. A sample of less
    than 1000 values therefore has none: one long time in a few hundred may be the service's.

    Args:
        values: Seconds, shape (n,), of executions of the same piece of work.
        windows: For each value the number of the window it was measured in, shape (n,); only reported.

    Raises:
        ModelError: ``windows`` has another shape.
    """
    times = np.asarray(values, dtype=np.float64)
    labels = None if windows is None else np.asarray(windows)
    if labels is not None and labels.shape != times.shape:
        raise ModelError(
            f"one window per value is needed, got {labels.shape} windows for {times.shape} values",
            where="windows",
        )
    keep = np.ones(times.shape, dtype=np.bool_)
    if times.size == 0:
        return Screened(keep, np.inf, 0, 0.0, (), "no values")
    median, high = (float(q) for q in np.quantile(times, (0.5, 0.95)))
    limit = median + max(SPREADS * (high - median), MIN_EXCESS)
    beyond = times > limit
    count = int(np.count_nonzero(beyond))
    if count == 0:
        return Screened(keep, limit, 0, 0.0, (), f"nothing beyond {limit * 1e3:.3g} ms")
    part = f"{count} of {times.size} values beyond {limit * 1e3:.3g} ms"
    if count > MAX_SHARE * times.size:
        return Screened(keep, limit, 0, 0.0, (), f"{part} kept: too many to be stalls of the machine")
    share = float(times[beyond].sum() / times.sum())
    found = () if labels is None else tuple(int(w) for w in np.unique(labels[beyond]))
    where = f", in window {', '.join(map(str, found))}" if found else ""
    reason = f"{part} left out as stalls of the machine; they carried {share:.2%} of the mean{where}"
    return Screened(~beyond, limit, count, share, found, reason)


def warmup_length(values: ArrayLike) -> int:
    """Return how many values at the beginning of a sequence are warm-up; at most about half.

    MSER-5 (White, "An effective truncation heuristic for bias reduction in simulation output", 1997)
    proposes a cut, in groups of five, looking at the times without their longest twentieth: it would
    otherwise cut behind any stall in the first half. It proposes some cut for nearly every sequence, so
    a cut only counts if the means before and behind it differ by three standard errors, widened for
    the correlation of neighbours. A slow first group, which is often a single execution, counts alone.

    Args:
        values: Seconds of consecutive executions, in order, shape (n,). Screen them first.
    """
    times = np.asarray(values, dtype=np.float64)
    if times.size < MIN_SEQUENCE:
        return 0
    usual = np.minimum(times, np.quantile(times, 0.95))
    cut = mser5(usual) // _GROUP
    if cut and _differs(usual, cut):
        return cut * _GROUP
    return _GROUP if _differs(times, 1) else 0


def _differs(times: npt.NDArray[np.float64], cut: int) -> bool:
    """Tell whether the mean of the first ``cut`` groups differs from that of the rest."""
    groups = times[: times.size // _GROUP * _GROUP].reshape(-1, _GROUP).mean(axis=1)
    before, behind = groups[:cut], groups[cut:]
    rest = behind - behind.mean()
    variance = float(rest @ rest) / (behind.size - 1) * widening(rest)
    error = math.sqrt(variance * (1 / before.size + 1 / behind.size))
    # The means of equal values differ by rounding.
    rounding = 1e-12 * float(behind.mean())
    return abs(float(before.mean() - behind.mean())) > max(_ERRORS * error, rounding)
