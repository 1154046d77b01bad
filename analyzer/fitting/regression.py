"""Weighted nonlinear least squares: parameter values that explain measurements best.

Minimises E(x) = sum over trials of (h(x, u) + c - z)' W (h(x, u) + c - z): h are the predictions, z the
measured means, W the inverse covariance of z, and c what a simulation adds to a prediction whose solver is
approximate. Experts' intervals enter as further measurements, of the parameters themselves.

Source: Woodside, "The Relationship of Performance Models to Data", section 2.3 and appendix. Instead of plain
Gauss-Newton: a trust region with bounds (scipy's), and the covariance of the estimate from the covariance of
the measurements, whatever W was ("sandwich").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from analyzer.fitting.covariance import Errors, whitener
from analyzer.fitting.data import Data
from analyzer.fitting.forward import Forward
from analyzer.fitting.parameters import Parameter

__all__ = ["MAX_EVALUATIONS", "Expert", "Problem", "Solution", "minimise"]

FloatArray = npt.NDArray[np.float64]

MAX_EVALUATIONS: Final = 60
CLOSE: Final = 1e-6
ROUGHLY: Final = 1e-4
"""Relative change of E or of the values at which a search ends whose forward model is no more precise."""
AT_BOUND: Final = 0.02
"""How near to a bound, relative to its scale, an estimate is also tried at the bound itself."""


@dataclass(frozen=True, slots=True)
class Expert:
    """Expert knowledge of a parameter: hardly outside of ``low`` .. ``high``, most likely ``likely``.

    Taken as a measurement of the parameter with 95 % of its error in between; not as a bound, so data can
    overrule it.
    """

    low: float
    likely: float
    high: float

    def deviation(self, value: float) -> float:
        """Return the standard deviation on the side a value is on."""
        return ((self.high - self.likely) if value >= self.likely else (self.likely - self.low)) / 1.959964


@dataclass(frozen=True, slots=True)
class Problem:
    """What is minimised.

    Attributes:
        parameters: The n that vary.
        scales: Typical values, > 0, shape (n,).
        forward: The predictions.
        data: The measurements.
        errors: What is known about them.
        experts: By index of the parameter.
        correction: What is added to predictions, shape (trials, measures).
    """

    parameters: Sequence[Parameter]
    scales: FloatArray
    forward: Forward
    data: Data
    errors: Errors
    experts: Mapping[int, Expert] = field(default_factory=dict)
    correction: FloatArray | float = 0.0
    weights: Sequence[tuple[npt.NDArray[np.intp], FloatArray]] = field(default=(), repr=False)
    measured: FloatArray = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    @classmethod
    def of(
        cls,
        parameters: Sequence[Parameter],
        scales: FloatArray,
        forward: Forward,
        data: Data,
        errors: Errors,
        experts: Mapping[int, Expert],
        correction: FloatArray | float = 0.0,
    ) -> Problem:
        """Return the problem with its weights, from the covariances of what each trial has."""
        measured = np.array([t.means for t in data.trials])
        weights = []
        for means, covariance in zip(measured, errors.covariances, strict=True):
            there = np.flatnonzero(np.isfinite(means))
            weights.append((there, whitener(covariance[np.ix_(there, there)])))
        return cls(parameters, scales, forward, data, errors, experts, correction, weights, measured)

    def with_measured(self, means: FloatArray) -> Problem:
        """Return the same problem with other measured means, shape (trials, measures)."""
        there = np.isfinite(self.measured)
        return replace(self, measured=np.where(there, means, math.nan))

    @property
    def values(self) -> int:
        """How many numbers are fitted to, those of experts included."""
        return self.data.values + len(self.experts)

    def residuals(self, values: FloatArray) -> FloatArray:
        """Return all weighted residuals, one after the other; E is the sum of their squares."""
        means = self.forward.means(values) + self.correction - self.measured
        parts = [w @ row[there] for row, (there, w) in zip(means, self.weights, strict=True)]
        own = [(values[k] - e.likely) / e.deviation(values[k]) for k, e in self.experts.items()]
        return np.concatenate([*parts, np.array(own)])

    def jacobian(self, values: FloatArray) -> FloatArray:
        """Return the derivatives of the residuals, shape (residuals, n)."""
        slopes = self.forward.sensitivities(values)[1]
        parts = [w @ rows[there] for rows, (there, w) in zip(slopes, self.weights, strict=True)]
        own = np.zeros((len(self.experts), len(values)))
        for row, (k, expert) in enumerate(self.experts.items()):
            own[row, k] = 1 / expert.deviation(values[k])
        return np.concatenate([*parts, own])

    def squares(self, values: FloatArray) -> float:
        """Return E."""
        rest = self.residuals(values)
        return float(rest @ rest)

    def covariance(self, values: FloatArray) -> FloatArray:
        """Return the covariance of the estimate, shape (n, n), as linearised at ``values``.

        With D the derivatives and R the covariance of the measurements: A R A', A = (D' W D)^-1 D' W. Where W
        is the inverse of R, that is (D' W D)^-1. A parameter that nothing depends on has infinite variance.
        """
        derivatives = self.jacobian(values)
        cross = []
        for covariance, (there, w) in zip(self.errors.covariances, self.weights, strict=True):
            cross.append(w @ covariance[np.ix_(there, there)] @ w.T)
        middle = np.zeros((len(values), len(values)))
        at = 0
        for block in cross:
            rows = derivatives[at : at + len(block)]
            middle += rows.T @ block @ rows
            at += len(block)
        middle += derivatives[at:].T @ derivatives[at:]
        scaled = derivatives * self.scales
        information = scaled.T @ scaled
        idle = np.diag(information) <= 1e-18 * max(float(np.max(np.diag(information))), 1e-300)
        inverse = np.linalg.pinv(information, rcond=1e-13, hermitian=True)
        found = inverse @ (middle * np.outer(self.scales, self.scales)) @ inverse
        found *= np.outer(self.scales, self.scales)
        found[idle, idle] = math.inf
        return found


@dataclass(frozen=True, slots=True)
class Solution:
    """The minimum.

    Attributes:
        values: The parameters, shape (n,).
        squares: E there.
        evaluations: How often the forward model was asked.
        converged: False if the iteration was cut off.
    """

    values: FloatArray
    squares: float
    evaluations: int
    converged: bool


def minimise(
    problem: Problem, start: FloatArray, fixed: Sequence[int] = (), evaluations: int = MAX_EVALUATIONS
) -> Solution:
    """Return the minimum of E that a start leads to.

    Args:
        problem: What to minimise.
        start: Values to begin with, shape (n,); those outside the bounds are moved inside.
        fixed: Indices of parameters that stay where they are.
        evaluations: How often the forward model may be asked.

    Returns:
        The minimum; E is infinite if the model cannot be solved where the search starts.
    """
    low = np.array([p.low for p in problem.parameters])
    high = np.array([p.high for p in problem.parameters])
    start = np.minimum(np.maximum(start, low), high)
    found = _descend(problem, start, low, high, fixed, evaluations)
    near = [
        (k, bound)
        for k in range(len(start))
        for bound in (low[k], high[k])
        if k not in fixed and 0 < abs(found.values[k] - bound) < AT_BOUND * problem.scales[k]
    ]
    for k, bound in near:
        # The trust region stays inside the bounds; the minimum may be on one.
        values = found.values.copy()
        values[k] = bound
        pinned = _descend(problem, values, low, high, (*fixed, k), evaluations)
        if pinned.squares <= found.squares * (1 + CLOSE):
            found = pinned
    return found


def _descend(
    problem: Problem,
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    fixed: Sequence[int],
    evaluations: int,
) -> Solution:
    free = [k for k in range(len(start)) if k not in fixed]
    squares = problem.squares(start)
    if not free or not math.isfinite(squares):
        return Solution(start, squares if math.isfinite(squares) else math.inf, 1, converged=not free)
    scales = problem.scales[free]

    def whole(part: FloatArray) -> FloatArray:
        values = start.copy()
        values[free] = part * scales
        return values

    if problem.forward.exact and evaluations == MAX_EVALUATIONS:
        # Most minima are not at a bound, and MINPACK's Levenberg-Marquardt, which knows none, is much faster.
        quick = least_squares(
            lambda part: problem.residuals(whole(part)),
            start[free] / scales,
            jac=lambda part: problem.jacobian(whole(part))[:, free] * scales,
            method="lm",
            xtol=1e-7,
        )
        values = whole(quick.x)
        if quick.status > 0 and np.all(low + AT_BOUND * problem.scales < values) and np.all(values < high):
            return Solution(values, 2 * float(quick.cost), int(quick.nfev), converged=True)
    inside = np.clip(start[free], low[free] + 1e-6 * scales, high[free] - 1e-6 * scales)
    found = least_squares(
        lambda part: problem.residuals(whole(part)),
        inside / scales,
        jac=lambda part: problem.jacobian(whole(part))[:, free] * scales,
        bounds=(low[free] / scales, high[free] / scales),
        ftol=1e-8 if problem.forward.exact else ROUGHLY,
        xtol=1e-6 if problem.forward.exact else ROUGHLY,
        gtol=1e-8,
        max_nfev=evaluations,
    )
    return Solution(whole(found.x), 2 * float(found.cost), int(found.nfev), bool(found.status > 0))
