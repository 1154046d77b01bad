"""Design of experiments: the further trial that tells most about the parameters.

A trial with derivatives H and covariance R of its errors adds H' R^-1 H to the information P^-1. Best is
the one after which the joint confidence region is smallest (D-optimality): its volume shrinks by the square
root of det(P^-1) / det(P^-1 + H' R^-1 H).

Source: Woodside, "The Relationship of Performance Models to Data", section 5 (test design); Atkinson, Donev
and Tobias, "Optimum Experimental Designs", chapter 17.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analyzer.fitting.covariance import whitener
from analyzer.fitting.fit import Fit
from analyzer.fitting.forward import Settings, forward_of

__all__ = ["Experiment", "elasticities", "experiments"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What a further trial would do.

    Attributes:
        settings: Its configuration.
        shrinkage: Volume of the joint confidence region afterwards, relative to now; small is good.
        half_widths: Of the parameters afterwards (linearised).
    """

    settings: Settings
    shrinkage: float
    half_widths: tuple[float, ...]


def experiments(fit: Fit, candidates: Sequence[Settings]) -> list[Experiment]:
    """Rank trials by what they would tell, the best first.

    Every figure is taken to be measured as precisely, relative to its mean, as in the trials there are.

    Args:
        fit: What is known so far.
        candidates: Configurations of further trials.

    Raises:
        UsageError: The model has no such setting.
    """
    problem, sure = fit.problem, fit.confidence
    if sure is None or not candidates:
        return []
    forward = forward_of(fit.model, problem.parameters, problem.scales, candidates, problem.data.measures)
    means, slopes = forward.sensitivities(fit.solution.values)
    relative = _relative_covariance(fit)
    scales = problem.scales
    finite = np.where(np.isfinite(sure.covariance), sure.covariance, 0.0) / np.outer(scales, scales)
    now = np.linalg.pinv(finite, hermitian=True)
    found = []
    for settings, level, slope in zip(candidates, means, slopes, strict=True):
        size = np.where(level == 0, 1.0, np.abs(level))
        weighted = whitener(sure.factor * relative * np.outer(size, size)) @ (slope * scales)
        after = now + weighted.T @ weighted
        ratio = np.linalg.slogdet(now)[1] - np.linalg.slogdet(after)[1]
        deviations = scales * np.sqrt(np.diag(np.linalg.pinv(after, hermitian=True)))
        halves = tuple(float(sure.quantile() * d) for d in deviations)
        found.append(Experiment(settings, math.exp(ratio / 2), halves))
    return sorted(found, key=lambda e: e.shrinkage)


def _relative_covariance(fit: Fit) -> FloatArray:
    """Return the mean covariance of relative errors."""
    levels = np.abs(fit.problem.measured)
    levels = np.where(np.isfinite(levels) & (levels > 0), levels, math.nan)
    each = [c / np.outer(z, z) for c, z in zip(fit.problem.errors.covariances, levels, strict=True)]
    mean: FloatArray = np.nanmean(np.array(each), axis=0)
    return mean


def elasticities(fit: Fit) -> FloatArray:
    """Return by how many percent each figure changes per percent of each parameter.

    Returns:
        Shape (trials, measures, n), at the fitted values.
    """
    means, slopes = fit.problem.forward.sensitivities(fit.solution.values)
    size = np.where(means == 0, 1.0, means)
    found: FloatArray = slopes * fit.solution.values / size[..., None]
    return found
