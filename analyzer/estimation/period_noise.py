"""Learn from some periods how much the next ones will vary, and how fast demands drift.

In units of the demands themselves, the state walks at random by ``drift`` per period, and the variance of a
value is ``scale`` times what independent requests would give. With the ratio of the two held, the scale that
makes the periods most likely is known in closed form (the concentrated likelihood), so that one pass over the
periods per ratio tells both.

Source: Harvey, "Forecasting, Structural Time Series Models and the Kalman Filter", section 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.estimation.periods import Measurement, varied
from analyzer.estimation.samples import FloatArray

__all__ = ["GAIN", "LEAST_DRIFT", "PeriodNoise", "learned_noise"]

RATIOS = np.concatenate([[0.0], np.geomspace(0.005, 4.0, 24)])
"""Drift over the standard deviation of what a period measures, those that are tried."""
GAIN = 2.0
"""By how much the logarithm of the likelihood must grow before a drift is believed (by chance in 2 %)."""
LEAST_DRIFT = 0.001
"""Per period: nothing stays the same for ever."""
LEAST_NOISE = 1e-4
"""Relative: where every request needs the same, what is left is rounding, which is not normal."""
VAGUE = 1e4
"""Variance of the state before the first period, of that of a value of it."""


@dataclass(frozen=True)
class PeriodNoise:
    """How much periods vary.

    Attributes:
        request: Standard deviation of one request of each class, relative to its mean; shape (R,).
        scale: Factor on the variance that independent requests would give a mean of them. Requests that are
            in process together share their luck, and windows come without any number of requests.
        drift: Standard deviation of the change of a demand from one period to the next, relative to it.
        freedom: Degrees of freedom of the scale.
    """

    request: FloatArray
    scale: float
    drift: float
    freedom: float

    def relative(self, one: Measurement) -> FloatArray:
        """Return the standard deviation of each value relative to what it measures; shape (m,)."""
        found: FloatArray = np.maximum(math.sqrt(self.scale) * _relative(one, self.request), LEAST_NOISE)
        return found


def _relative(one: Measurement, request: FloatArray) -> FloatArray:
    found: FloatArray = one.share * (request[one.kinds] if len(one.kinds) else 1.0)
    return found


def learned_noise(
    periods: Sequence[Measurement], level: FloatArray, drift: float | None, gain: float = GAIN
) -> PeriodNoise:
    """Return the noise that makes some periods most likely.

    Args:
        periods: In the order of time.
        level: Demands about which they are, shape (R,).
        drift: Relative, per period; None = the most likely one.
        gain: By how much the logarithm of the likelihood must grow before a drift is believed.
    """
    request = varied(periods)
    deviations = [_relative(one, request) for one in periods]
    usual = float(np.median(np.concatenate(deviations)))
    likelihood, scales, freedom = _likelihoods(periods, level, deviations, usual)
    drifts = RATIOS * usual * np.sqrt(scales)
    if drift is None:
        best = int(np.argmax(likelihood))
        best = best if likelihood[best] - likelihood[0] > gain else 0
        drift = max(float(drifts[best]), LEAST_DRIFT)
    else:
        best = int(np.argmin(np.abs(drifts - drift)))
    return PeriodNoise(request, float(scales[best]), drift, freedom)


def _likelihoods(
    periods: Sequence[Measurement], level: FloatArray, deviations: Sequence[FloatArray], usual: float
) -> tuple[FloatArray, FloatArray, float]:
    """Return the logarithm of the likelihood and the scale for each ratio, and their degrees of freedom."""
    count, unit = len(level), np.eye(len(level))
    walk = (RATIOS * usual)[:, None, None] ** 2 * unit
    spread = np.broadcast_to(VAGUE * usual**2 * unit, walk.shape)
    mean = np.ones((len(RATIOS), count))
    squares, logarithms, number = np.zeros(len(RATIOS)), np.zeros(len(RATIOS)), 0
    for one, deviation in zip(periods, deviations, strict=True):
        predicted = np.maximum(one.weight @ level, 1e-12)
        slopes = one.weight * level / predicted[:, None]
        spread = spread + walk
        crossed = slopes @ spread
        covariance = crossed @ slopes.T + np.diag(deviation**2)
        off = one.value / predicted - mean @ slopes.T
        gain = np.linalg.solve(covariance, crossed).transpose(0, 2, 1)
        squares += np.einsum("gm,gm->g", off, np.linalg.solve(covariance, off[:, :, None])[:, :, 0])
        logarithms += np.linalg.slogdet(covariance)[1]
        number += len(off[0])
        mean = mean + np.einsum("grm,gm->gr", gain, off)
        spread = spread - gain @ crossed
    # Each component of the state takes one value to be known at all.
    freedom = max(number - count, 1)
    scales = np.maximum(squares / freedom, 1e-12)
    return -(freedom * np.log(scales) + logarithms) / 2, scales, float(freedom)
