"""Interval of a ratio of two sums from batches of one run: batch means with Student's t.

Time per request, requests per second, thread-seconds per second: every figure of a run is a ratio of two
sums, so its batches are judged by the residuals of the ratio estimator. A positive correlation that remains
between neighbouring batches widens the interval as it would in a first-order autoregressive process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mup.statistics.series import widening
from mup.statistics.student import t_quantile

__all__ = ["batch_half_width", "independent_mean", "ratio_of_sums", "residuals"]

FloatArray = npt.NDArray[np.float64]


def residuals(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return what each batch has above the overall ratio; they sum to 0."""
    total = float(denominator.sum())
    result: FloatArray = numerator - (float(numerator.sum()) / total if total else 0.0) * denominator
    return result


def ratio_of_sums(numerator: FloatArray, denominator: FloatArray) -> tuple[float, float]:
    """Return a ratio and its 95 % half-width from the batches; the denominators must not sum to 0."""
    total = float(denominator.sum())
    mean = float(numerator.sum()) / total
    rest = residuals(numerator, denominator)
    return mean, batch_half_width(rest) * len(rest) / total


def batch_half_width(rest: FloatArray) -> float:
    """Return the 95 % half-width of the mean of batches that have these residuals."""
    count = len(rest)
    variance = float(rest @ rest) / (count - 1)
    return t_quantile(count - 1) * math.sqrt(variance * widening(rest) / count)


def independent_mean(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of two or more independent values and its 95 % half-width."""
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return mean, t_quantile(count - 1) * math.sqrt(variance / count)
