"""Covariance of the measured means.

Measures of one trial are not independent: where a station happened to be busy, its response time is high
and throughput low. Intervals that take them for independent and equally sure are too narrow or too wide by
factors. Three sources, the first that the data have:

- *rows*: several measurements of the same configuration; their scatter;
- *stated*: half-widths that came with the measurements; the correlation is taken from the residuals;
- *residuals*: nothing; a constant relative error per measure and their correlation, both from the residuals
  of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import polygamma

from analyzer.fitting.data import NORMAL_95, Data, Trial

__all__ = [
    "FINEST",
    "Errors",
    "errors_of",
    "half_width_deviations",
    "relative_covariance",
    "shrunk",
    "whitener",
]

FloatArray = npt.NDArray[np.float64]
Source = Literal["rows", "stated", "residuals"]

ASSUMED: Final = 0.05
"""Relative standard deviation of a mean as long as nothing is known."""
LEAST_PRIOR, MOST_PRIOR = 4.0, 1e4
"""Weight, in rows, of what all configurations together say about the spread of one."""
MOST_ALIKE: Final = 0.8
"""Correlation of neighbouring rows beyond which they are not taken for more alike."""
SHARED: Final = 8.0
"""Rows per measure that the correlation of all configurations together is worth for that of one."""
FINEST: Final = 1e-4
"""Relative standard deviation below which no mean is taken to be known: a full pool is busy all the time in
every row, and a model that says 0.9999 is not wrong."""
FLOOR: Final = 0.02
"""Smallest eigenvalue of a correlation matrix, relative to the mean one, that weights make use of. Measures
that determine each other (clients are throughput times cycle time) would else weigh the rounding of both
above everything else."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Covariances of the measured means.

    Attributes:
        source: Where they come from.
        covariances: One per trial, shape (trials, measures, measures); rows and columns of a measure that a
            trial lacks are of no use.
        freedom: Degrees of freedom they were estimated with; infinite if stated.
        inflation: Factor on the variance of estimates because their weights are estimates as well.
    """

    source: Source
    covariances: FloatArray
    freedom: float
    inflation: float = 1.0


def errors_of(data: Data, predicted: FloatArray | None = None, fitted: int = 0) -> Errors:
    """Return what is known about the errors of measured means.

    Args:
        data: The measurements.
        predicted: Means as a first fit predicts them, shape (trials, measures); None before it. Relative
            errors are relative to these: relative to the measured ones, what came out too low by chance
            would weigh too much.
        fitted: How many parameters that fit had.
    """
    freedom = sum(len(t.rows) - 1 for t in data.trials)
    if freedom >= max(len(data.measures), 4):
        return _from_rows(data, freedom, predicted)
    with_half_widths = all(np.isfinite(t.half_widths[np.isfinite(t.rows)]).all() for t in data.trials)
    means = np.array([t.means for t in data.trials])
    levels = means if predicted is None else np.where(np.isfinite(means), predicted, math.nan)
    deviations = np.array(
        [
            half_width_deviations(t) if with_half_widths else _assumed(t, row)
            for t, row in zip(data.trials, levels, strict=True)
        ]
    )
    if predicted is None:
        covariances = np.array([np.diag(d**2) for d in np.nan_to_num(deviations, nan=1.0)])
        return Errors("stated" if with_half_widths else "residuals", covariances, math.inf)
    rows = np.count_nonzero(np.isfinite(deviations).any(axis=1))
    left = max(rows - fitted / len(data.measures), 1.0)
    relative = (predicted - means) / deviations
    spread = _spread(relative, left)
    scales = np.ones_like(spread) if with_half_widths else spread
    correlation = shrunk(_correlation(relative), left)
    covariances = np.array(
        [correlation * np.outer(d * scales, d * scales) for d in np.nan_to_num(deviations, nan=1.0)]
    )
    return Errors("stated" if with_half_widths else "residuals", covariances, left)


def _from_rows(data: Data, freedom: int, predicted: FloatArray | None) -> Errors:
    """Return covariances from the scatter of rows, each configuration's drawn towards that of all."""
    measures = len(data.measures)
    # As for ratios: how much more than its share a row adds to the weighted sum.
    usable = [np.nan_to_num(t.weights / t.weights.mean(axis=0) * (t.rows - t.means)) for t in data.trials]
    widening = _widening(usable)
    means = np.array([t.means for t in data.trials])
    levels = means if predicted is None else np.where(np.isfinite(means), predicted, math.nan)
    squares = np.array([(u**2).sum(axis=0) for u in usable])
    left = np.array([np.maximum(np.isfinite(t.rows).sum(axis=0) - 1, 0) for t in data.trials])
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.nan_to_num(squares / levels**2).sum(axis=0) / np.maximum(left.sum(axis=0), 1)
        prior = _prior_rows(squares / levels**2 / left, left)
        variances = (prior * relative * levels**2 + squares) / (prior + left)
        unit = [np.nan_to_num(u / np.sqrt(v)) for u, v in zip(usable, variances, strict=True)]
    together = shrunk(_correlation(np.concatenate(unit)), freedom)
    covariances = np.empty((len(data.trials), measures, measures))
    for index, (trial, own) in enumerate(zip(data.trials, unit, strict=True)):
        weight = SHARED * measures
        rows = len(trial.rows) - 1
        correlation = (weight * together + rows * _correlation(own, together)) / (weight + rows)
        deviation = np.sqrt(np.nan_to_num(variances[index], nan=1.0) * widening[index])
        number = np.maximum(np.isfinite(trial.rows).sum(axis=0), 1)
        scale = np.maximum(deviation / np.sqrt(number), FINEST * np.nan_to_num(np.abs(trial.means)))
        scale[scale == 0] = 1.0
        covariances[index] = correlation * np.outer(scale, scale)
    # Meier, "Variance of a weighted mean" (1953): 1 + 4 sum(w (1 - w)) / freedom of a weight; the sum is < 1.
    each = float(np.mean(left + prior))
    return Errors("rows", covariances, float(freedom), 1 + 4 / each)


def _widening(deviations: Sequence[FloatArray]) -> FloatArray:
    """Return by how much neighbouring rows that are alike raise variances of means, shape (trials, measures).

    Batches of one run are not independent if they are short. The correlation of neighbours, of each
    configuration and of all in equal parts, widens as in a first-order autoregressive process; where there
    is none by nature, what chance makes of it costs a few percent.
    """
    neighbours = np.array([(d[:-1] * d[1:]).sum(axis=0) for d in deviations])
    squares = np.array([(d**2).sum(axis=0) for d in deviations])
    rows = np.array([max(len(d), 1) for d in deviations])
    own = np.divide(neighbours, squares, out=np.zeros_like(squares), where=squares > 0)
    total = squares.sum(axis=0)
    everywhere = np.divide(neighbours.sum(axis=0), total, out=np.zeros_like(total), where=total > 0)
    # Deviations from their own mean are correlated by -1 / rows.
    correlation = (own + everywhere) / 2 + 1 / rows[:, None]
    correlation = np.clip(correlation, 0.0, MOST_ALIKE)
    found: FloatArray = (1 + correlation) / (1 - correlation)
    return found


def _prior_rows(variances: FloatArray, left: npt.NDArray[np.int64]) -> FloatArray:
    """Return how many rows the spread of all configurations together is worth for one of them, per measure.

    Estimated variances vary by chance; what they vary beyond that tells how different configurations are
    (Smyth, "Linear models and empirical Bayes methods", 2004, section 6.2, equations 15 and 16).
    """
    found = np.full(variances.shape[1], LEAST_PRIOR)
    for column in range(variances.shape[1]):
        usable = (left[:, column] > 0) & (variances[:, column] > 0)
        if usable.sum() > 2:
            logs = np.log(variances[usable, column])
            beyond = logs.var(ddof=1) - float(polygamma(1, left[usable, column] / 2).mean())
            # For large d, trigamma(d / 2) is 2 / d + 2 / d^2.
            found[column] = MOST_PRIOR if beyond <= 0 else (1 + math.sqrt(1 + 2 * beyond)) / beyond
    clipped: FloatArray = np.clip(found, LEAST_PRIOR, MOST_PRIOR)
    return clipped


def half_width_deviations(trial: Trial) -> FloatArray:
    """Return the standard deviations of a trial's means that its half-widths say."""
    variances = (trial.half_widths / NORMAL_95) ** 2
    weights = np.where(np.isnan(trial.rows), 0.0, trial.weights)
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = np.sqrt((weights**2 * np.nan_to_num(variances)).sum(axis=0)) / total
    return np.where(total > 0, found, math.nan)


def _assumed(trial: Trial, levels: FloatArray) -> FloatArray:
    """Return standard deviations proportional to the means, and falling with what they stand for."""
    means = np.abs(levels)
    floor = np.nanmax(means) * 1e-6 if np.isfinite(means).any() else 1.0
    found: FloatArray = ASSUMED * np.maximum(means, floor) / np.sqrt(trial.weights.sum(axis=0))
    return found


def _spread(relative: FloatArray, left: float) -> FloatArray:
    """Return the standard deviation of each column, given the degrees of freedom left."""
    rows = np.maximum(np.isfinite(relative).sum(axis=0), 1)
    squares = np.nansum(relative**2, axis=0) / rows * (len(relative) / left)
    found: FloatArray = np.sqrt(np.maximum(squares, 1e-12))
    return found


def _correlation(columns: FloatArray, otherwise: FloatArray | None = None) -> FloatArray:
    """Return the correlation of columns around 0; where nothing varies, none or that of ``otherwise``."""
    filled = np.nan_to_num(columns)
    products = filled.T @ filled
    power = np.sqrt(np.diag(products))
    fallback = np.eye(len(power)) if otherwise is None else otherwise
    scale = np.outer(power, power)
    found = np.where(scale > 0, products / np.where(scale > 0, scale, 1.0), fallback)
    np.fill_diagonal(found, 1.0)
    return found


def shrunk(correlation: FloatArray, freedom: float) -> FloatArray:
    """Draw correlations towards 0, the more the fewer rows they are from."""
    share = len(correlation) / (len(correlation) + freedom)
    found: FloatArray = (1 - share) * correlation + share * np.eye(len(correlation))
    return found


def relative_covariance(errors: Errors, data: Data, levels: FloatArray) -> FloatArray:
    """Return the mean covariance of the relative errors of one row, were it of weight 1.

    Args:
        errors: Of the means of the trials.
        data: The trials.
        levels: What the errors are relative to, shape (trials, measures).

    Returns:
        Shape (measures, measures); NaN where a figure was never measured.
    """
    total, number = np.zeros((2, len(data.measures), len(data.measures)))
    for trial, covariance, level in zip(data.trials, errors.covariances, levels, strict=True):
        # The variance of a weighted mean falls with the weights: that of a row of weight 1 is so much larger.
        weight = np.where(np.isfinite(trial.rows), trial.weights, 0.0).sum(axis=0)
        scale = np.sqrt(weight) / np.where(level == 0, math.nan, np.abs(level))
        scale[weight == 0] = math.nan
        found = len(trial.rows) * covariance * np.outer(scale, scale)
        total += np.nan_to_num(found)
        number += len(trial.rows) * np.isfinite(found)
    mean: FloatArray = np.divide(total, number, out=np.full_like(total, math.nan), where=number > 0)
    return mean


def whitener(covariance: FloatArray) -> FloatArray:
    """Return a matrix that turns errors of a covariance into independent ones of variance 1.

    Directions that are surer than the others by far are taken for less sure, see ``FLOOR``.
    """
    deviation = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    values = np.maximum(values, FLOOR)
    found: FloatArray = (vectors / np.sqrt(values)).T / deviation
    return found
