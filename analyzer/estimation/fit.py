"""Result of every estimator: demands, also on other draws of the samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analyzer.estimation.samples import FloatArray

__all__ = ["Fit", "block_length", "resampling_counts"]


@dataclass(frozen=True)
class Fit:
    """Estimated demands.

    Attributes:
        demand: Mean demand of each class, s; shape (R,); NaN where a class was never observed.
        resampled: Maps counts of shape (B, I), how often each observation was drawn in each of B resamples,
            to the demands each would have given; shape (B, R).
        units: What is drawn where it is not single observations: that many groups of consecutive ones.
        work: Of every request that counts, s, if it is known; shape (I,).
    """

    demand: FloatArray
    resampled: Callable[[FloatArray], FloatArray]
    units: int | None = None
    work: FloatArray | None = None


def block_length(observations: int) -> int:
    """Return how many consecutive observations are drawn together.

    Requests that were in process at the same time are not independent. The cube root is the usual rate for
    blocks (Hall, Horowitz, Jing, "On blocking rules for the bootstrap with dependent data", Biometrika 1995).
    """
    return max(1, round(math.pow(observations, 1 / 3)))


def resampling_counts(observations: int, resamples: int, seed: int) -> FloatArray:
    """Return how often each observation is drawn in each resample, by circular blocks; shape (B, I)."""
    rng = np.random.default_rng(seed)
    length = block_length(observations)
    blocks = -(-observations // length)
    starts = rng.integers(observations, size=(resamples, blocks))
    drawn = (starts[:, :, None] + np.arange(length)).reshape(resamples, -1)[:, :observations] % observations
    counts = np.zeros((resamples, observations))
    np.add.at(counts, (np.arange(resamples)[:, None], drawn), 1.0)
    return counts
