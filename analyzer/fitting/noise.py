"""Covariance of what a single period measured, from the first source there is.

- *rows*: a period has several rows (batches); their scatter, drawn towards that of all periods;
- *stated*: its half-widths, with the correlation that was learned;
- *learned*: the relative errors of the periods the filter learns from, with their correlation: those of
  periods of equal configuration around their mean, otherwise those of a fit. They fall with the square root
  of what a period stands for (columns ``count`` and ``seconds``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from analyzer.fitting.covariance import (
    FINEST,
    errors_of,
    half_width_deviations,
    relative_covariance,
    shrunk,
    whitener,
)
from analyzer.fitting.data import Data, Trial
from analyzer.fitting.fit import Fit
from mup.errors import UsageError

__all__ = ["Noise", "noise_of"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """Errors of what periods measured.

    Attributes:
        source: Of the periods that say most about themselves.
        relative: Covariance of the relative errors of a row of weight 1, shape (measures, measures).
        own: Covariances of the periods, where they come from their own rows; shape (periods, m, m).
        freedom: Degrees of freedom they were estimated with.
    """

    source: Literal["rows", "stated", "learned"]
    relative: FloatArray
    own: FloatArray | None
    freedom: float

    def of(self, index: int, trial: Trial, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the covariance of what a period measured, and the matrix that makes it independent.

        Args:
            index: Number of the period.
            trial: What it measured.
            predicted: What is expected, shape (measures,). Relative errors are relative to this.

        Returns:
            Both of shape (k, k), k being the number of figures the period has.
        """
        there = np.flatnonzero(np.isfinite(trial.means))
        if self.own is not None:
            covariance = self.own[index][np.ix_(there, there)]
        else:
            deviations = self._deviations(trial, predicted)[there]
            relative = self.relative[np.ix_(there, there)]
            spread = np.sqrt(np.diag(relative))
            covariance = relative / np.outer(spread, spread) * np.outer(deviations, deviations)
        weights = whitener(covariance)
        back = np.linalg.inv(weights)
        # With directions cut that are surer than others by far, as the fit has them.
        return back @ back.T, weights

    def _deviations(self, trial: Trial, predicted: FloatArray) -> FloatArray:
        if self.source == "stated" and np.isfinite(trial.half_widths[np.isfinite(trial.rows)]).all():
            return half_width_deviations(trial)
        found: FloatArray = np.sqrt(np.diag(self.relative)) * self.scale(trial, predicted)
        level = np.abs(predicted)
        return np.maximum(found, np.maximum(FINEST * level, 1e-9 * float(np.nanmax(level))))

    def scale(self, trial: Trial, predicted: FloatArray) -> FloatArray:
        """Return what errors of a period are relative to: what is expected, less the more it stands for."""
        if self.source == "stated" and np.isfinite(trial.half_widths[np.isfinite(trial.rows)]).all():
            return half_width_deviations(trial)
        weight = np.where(np.isfinite(trial.rows), trial.weights, 0.0).sum(axis=0)
        found: FloatArray = np.abs(predicted) / np.sqrt(np.maximum(weight, 1e-300))
        return found

    def learned(self, products: FloatArray, number: FloatArray) -> Noise:
        """Return the same noise with errors that have been found.

        Args:
            products: Sums of products of errors, each relative to ``scale``; shape (measures, measures).
            number: How many are in each sum.
        """
        mean = products / np.maximum(number, 1.0)
        spread = np.sqrt(np.maximum(np.diag(mean), 1e-300))
        correlation = shrunk(mean / np.outer(spread, spread), float(number.max()) - 1)
        return replace(self, relative=correlation * np.outer(spread, spread))


def noise_of(data: Data, learned: Fit) -> Noise:
    """Return what is known about the errors of periods.

    Args:
        data: The periods, a trial each.
        learned: A fit to the first of them, those of equal configuration together.

    Raises:
        UsageError: A figure is in none of the first periods.
    """
    problem = learned.problem
    levels = problem.forward.means(learned.solution.values) + problem.correction
    relative = relative_covariance(problem.errors, problem.data, levels)
    missing = np.flatnonzero(~np.isfinite(np.diag(relative)))
    if len(missing):
        raise UsageError(
            f"{data.measures[missing[0]]!r} is 0 or empty in all periods that are learned from",
            hint="leave the column out, or begin it with '#'; or learn from more periods: --learning-periods",
        )
    # Figures that never came together: nothing is known of how their errors go together.
    relative = np.nan_to_num(relative)
    own = errors_of(data)
    if own.source == "rows":
        return Noise("rows", relative, own.covariances, own.freedom)
    if own.source == "stated":
        return Noise("stated", relative, None, math.inf)
    return Noise("learned", relative, None, problem.errors.freedom)
