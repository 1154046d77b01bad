"""Whether a learned model explains what it was learned from: its misplacement beside that of a true model.

Means of R runs scatter, so the true model misplaces clients, too. How many, simulation of the learned model
tells: as many runs from the same beginnings at the same moments, and around their mean what is not known
exactly of the prediction. More than that is the model's fault: the service is not exponential, or the
numbers of servers or the structure are not as stated.

Where the traces do not say how many runs they are the mean of, their numbers do: means of n runs are
multiples of 1/n. Numbers that were rounded are multiples of a power of ten, too; then the roughness tells,
for the sum of the squares of short steps falls with n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.learning.traces import FloatArray

__all__ = ["GoodnessOfFit", "NoiseOfRuns", "fluctuations", "goodness_of_fit", "runs_of"]

DRAWS = 200
"""Data sets of a true model."""
DEVIATIONS = 4.0
"""Of the misplacement of a true model, that are still believed. Three would do if all that is uncertain of a
prediction were known; of true networks, 1 in 24 was above three and none above four."""
ROUGH = 2
"""Differences of this order have no trend in them."""
MOST_RUNS = 2000
"""Looked for in the numbers."""
MULTIPLE = 1e-6
"""How far a multiple may be off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodnessOfFit:
    """The error of a model, and what it would be if the model were true.

    Attributes:
        misplaced: Percent of the clients, mean over the traces.
        expected: Of a true model.
        limit: Above it the model is not true.
        runs: Averaged in a trace, the mean over the traces.
        runs_known: Whether the traces said so.
        traces: Compared.
    """

    misplaced: float
    expected: float
    limit: float
    runs: float
    runs_known: bool
    traces: int

    @property
    def holds(self) -> bool:
        """Whether a true model can have misplaced so much."""
        return self.misplaced <= self.limit

    def alarm(self, learned: str, *, exponential: bool = True) -> str | None:
        """Return what to say if it does not hold.

        Args:
            learned: What was learned, plural.
            exponential: Whether services are taken to be; else other shapes were tried, too.
        """
        if self.holds:
            return None
        cause = (
            "Services are not exponential, or servers or structure not as stated"
            if exponential
            else "Services are not exponential and have none of the shapes that were tried, or servers or"
            " structure are not as stated"
        )
        return (
            f"the model does not explain the traces: it puts {self.misplaced:.2f} % of the clients in the"
            f" wrong place, a true one at most {self.limit:.2f} %. {cause}: {learned} and intervals do not"
            " hold"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "misplaced": self.misplaced,
            "expected": self.expected,
            "limit": self.limit,
            "runs": self.runs,
            "runs_known": self.runs_known,
            "traces": self.traces,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseOfRuns:
    """How means of a few simulated runs scatter.

    Attributes:
        around: Independent deviations from the mean; shape (B, R, H, M).
        runs: In each mean.
    """

    around: FloatArray
    runs: int


def fluctuations(means: FloatArray, runs: int) -> NoiseOfRuns:
    """Return the noise of independent simulations; shape (B, R, H, M), B >= 2."""
    many = len(means)
    return NoiseOfRuns(around=(means - means.mean(axis=0)) * math.sqrt(many / (many - 1)), runs=runs)


def runs_of(x: FloatArray, off: FloatArray, noise: NoiseOfRuns) -> float:
    """Return how many runs traces are the mean of, if they do not say so.

    Args:
        x: Queue lengths; shape (R, H, M).
        off: The same less what a model predicts.
        noise: Of that model, simulated for the same traces.
    """
    several = (n for n in range(1, MOST_RUNS + 1) if _multiples(x[0], n) and _multiples(x, n))
    least = next(several, None)
    if least is not None and (least == 1 or not math.log10(least).is_integer()):
        return float(least)
    order = min(ROUGH, off.shape[1] - 1)
    rough = float(np.square(np.diff(off, n=order, axis=1)).sum())
    one = noise.runs * float(np.square(np.diff(noise.around, n=order, axis=2)).sum(axis=(1, 2, 3)).mean())
    return max(1.0, one / rough) if rough > 0 else math.inf


def _multiples(values: FloatArray, many: int) -> bool:
    """Whether all values are multiples of 1/many."""
    return bool((np.abs(values * many - np.round(values * many)) < MULTIPLE * many).all())


def goodness_of_fit(
    off: FloatArray,
    noise: NoiseOfRuns,
    *,
    runs: FloatArray,
    runs_known: bool,
    uncertain: FloatArray,
    error: Callable[[FloatArray], FloatArray],
    seed: int,
) -> GoodnessOfFit:
    """Compare the error of a prediction with that of a true one.

    Args:
        off: Queue lengths observed less predicted by the learned model; shape (R, H, M).
        noise: Of the learned model, simulated.
        runs: Averaged in each trace, shape (R,).
        runs_known: Whether the traces said so.
        uncertain: Directions in which the prediction may be off, each by a standard normal number of times;
            shape (K, R, H, M).
        error: Misplaced clients, percent, of differences of the shape (R, H, M); shape (R,).
        seed: Same seed, same result.
    """
    scale = np.sqrt(noise.runs / runs)[:, None, None]
    generator = np.random.default_rng([seed, 1])
    rows = np.arange(len(off))
    drawn = np.empty(DRAWS)
    for draw in range(DRAWS):
        picked = noise.around[generator.integers(len(noise.around), size=len(off)), rows]
        shift = np.tensordot(generator.standard_normal(len(uncertain)), uncertain, axes=1)
        drawn[draw] = error(picked * scale + shift).mean()
    expected = float(drawn.mean())
    return GoodnessOfFit(
        misplaced=float(error(off).mean()),
        expected=expected,
        limit=expected + DEVIATIONS * float(drawn.std(ddof=1)),
        runs=float(runs.mean()),
        runs_known=runs_known,
        traces=len(off),
    )
