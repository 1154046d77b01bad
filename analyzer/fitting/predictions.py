"""Predictions of a fitted model for another configuration, with intervals.

Parameters are uncertain together, so a prediction's variance is H P H' with its derivatives H (delta method).
Where an interval of a parameter was no linear one, parameters are drawn from their distribution instead,
cut at the bounds, and the interval is where their predictions lie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.fitting.confidence import Interval
from analyzer.fitting.correction import own_seed, simulated_means
from analyzer.fitting.fit import Fit
from analyzer.fitting.forward import Forward, Settings, forward_of
from mup.statistics.student import t_quantile

__all__ = ["Prediction", "draws_of", "predict"]

FloatArray = npt.NDArray[np.float64]

DRAWS: Final = 200
RELATIVE: Final = 0.01
"""Half-width to which predictions are simulated."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One predicted figure: its mean, its interval, and the one that holds for all figures at once."""

    mean: float
    interval: Interval
    joint: Interval


def predict(
    fit: Fit, settings: Sequence[Settings], measures: Sequence[str], *, correct: bool = True, seed: int = 0
) -> list[list[Prediction]]:
    """Predict figures of other configurations.

    Args:
        fit: The fitted model.
        settings: The configurations.
        measures: Names of the figures.
        correct: Simulate if the solver is approximate, and centre the intervals there.
        seed: Of simulations and draws.

    Returns:
        One list per configuration, one prediction per figure. Joint intervals hold for all of these at once.

    Raises:
        UsageError: The model has no such figure or setting.
    """
    problem, sure = fit.problem, fit.confidence
    forward = forward_of(fit.model, problem.parameters, problem.scales, settings, measures)
    values = fit.solution.values
    means, slopes = forward.sensitivities(values)
    centre, noise = means, np.zeros_like(means)
    if correct and not forward.exact:
        # Other random numbers than those of the fit, of which the parameters have absorbed some.
        found = simulated_means(
            fit.model, problem.parameters, values, settings, measures, relative=RELATIVE,
            seed=(*own_seed(problem.data, seed), 1),
        )  # fmt: skip
        centre, noise = found.means, found.variances
    if sure is None:
        return [[_exactly(m) for m in row] for row in centre]
    level, count = sure.level, means.size
    each = 1 - (1 - level) / count
    if all(i.method == "linear" for i in sure.intervals):
        covariance = np.where(np.isfinite(sure.covariance), sure.covariance, 0.0)
        deviations = np.sqrt(np.einsum("tmk,kl,tml->tm", slopes, covariance, slopes) + noise)
        return [
            [
                Prediction(
                    float(c),
                    _around(c, sure.quantile() * d, sure.quantile() * d, "linear"),
                    _around(c, sure.quantile(each) * d, sure.quantile(each) * d, "linear"),
                )
                for c, d in zip(row, spread, strict=True)
            ]
            for row, spread in zip(centre, deviations, strict=True)
        ]
    return _by_draws(fit, forward, centre - means, noise, each, seed)


def _around(mean: float, below: float, above: float, method: str) -> Interval:
    """Return an interval around a mean; no figure is below 0."""
    return Interval(max(float(mean - below), 0.0), float(mean + above), method)


def _exactly(mean: float) -> Prediction:
    return Prediction(
        float(mean), Interval(float(mean), float(mean), "linear"), Interval(mean, mean, "linear")
    )


def draws_of(fit: Fit, count: int, seed: int) -> FloatArray:
    """Return values of the parameters as sure as they are, shape (count, n).

    Normal, with half-widths of their intervals on either side, correlated as linearisation says, and cut at
    bounds.
    """
    sure, problem = fit.confidence, fit.problem
    if sure is None:
        return np.zeros((count, 0))
    covariance = np.where(np.isfinite(sure.covariance), sure.covariance, 0.0)
    deviation = np.sqrt(np.diag(covariance))
    scale = np.where(deviation > 0, deviation, 1.0)
    random = np.random.default_rng(seed)
    unit = random.multivariate_normal(
        np.zeros(len(deviation)), covariance / np.outer(scale, scale), size=count, method="eigh"
    )
    t = t_quantile(sure.freedom, sure.level)
    values = fit.solution.values
    below = np.array([(v - i.low) / t for v, i in zip(values, sure.intervals, strict=True)])
    above = np.array([(i.high - v) / t for v, i in zip(values, sure.intervals, strict=True)])
    drawn = values + np.where(unit < 0, unit * below, unit * above)
    low = np.array([p.low for p in problem.parameters])
    high = np.array([p.high for p in problem.parameters])
    found: FloatArray = np.clip(drawn, low, high)
    return found


def _by_draws(
    fit: Fit, forward: Forward, shift: FloatArray, noise: FloatArray, each: float, seed: int
) -> list[list[Prediction]]:
    sure = fit.confidence
    assert sure is not None  # noqa: S101 (there are parameters, else nothing is drawn)
    drawn = np.array([forward.means(values) for values in draws_of(fit, DRAWS, seed)])
    centre = forward.means(fit.solution.values) + shift
    found = []
    for t, row in enumerate(centre):
        figures = []
        for m, mean in enumerate(row):
            spans = []
            for level in (sure.level, each):
                low, high = np.quantile(drawn[:, t, m] + shift[t, m], [0.5 - level / 2, 0.5 + level / 2])
                more = sure.quantile(level) * math.sqrt(noise[t, m])
                down, up = max(mean - low, 0.0), max(high - mean, 0.0)
                spans.append(_around(mean, math.hypot(down, more), math.hypot(up, more), "draws"))
            figures.append(Prediction(float(mean), *spans))
        found.append(figures)
    return found
