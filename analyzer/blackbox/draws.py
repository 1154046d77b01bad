"""Random times of a distribution, many at once, from a numpy generator."""

from __future__ import annotations

import math

import numpy as np

from analyzer.blackbox.inversion import FloatArray
from mup.lqn.distributions import (
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    TruncatedNormal,
    Uniform,
    Weibull,
)

__all__ = ["draws"]


def draws(distribution: Distribution, size: int, rng: np.random.Generator) -> FloatArray:
    """Return independent times in seconds, shape (size,).

    Raises:
        TypeError: No sample is ever fitted with this family.
    """
    times: FloatArray
    match distribution:
        case Constant(value):
            times = np.full(size, value)
        case Exponential(mean):
            times = rng.exponential(mean, size)
        case Erlang(mean, stages):
            times = rng.gamma(stages, mean / stages, size)
        case Gamma(mean, scv):
            times = rng.gamma(1 / scv, scv * mean, size)
        case Lognormal(mean, scv):
            spread = math.log1p(scv)
            times = rng.lognormal(math.log(mean) - spread / 2, math.sqrt(spread), size)
        case Weibull(mean, shape):
            times = mean / math.gamma(1 + 1 / shape) * rng.weibull(shape, size)
        case Uniform(low, high):
            times = rng.uniform(low, high, size)
        case Hyperexponential(probabilities, means):
            times = rng.exponential(np.asarray(means)[rng.choice(len(means), size, p=probabilities)])
        case TruncatedNormal(location, scale):
            times = _truncated_normal(location, scale, size, rng)
        case Empirical(values):
            times = rng.choice(np.asarray(values), size)
        case _:
            raise TypeError(f"no draws of {distribution.family!r}")
    return times


def _truncated_normal(location: float, scale: float, size: int, rng: np.random.Generator) -> FloatArray:
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 - rarely needed

    below = float(ndtr(-location / scale))
    shares = below + (1 - below) * rng.random(size)
    times: FloatArray = np.maximum(location + scale * ndtri(shares), 0.0)
    return times
