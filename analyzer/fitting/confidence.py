"""Single and joint intervals of fitted parameters, by linearisation or by the shape of E.

Near its minimum E is taken for quadratic, so that estimates are normal with covariance P: interval
x +- t sqrt(P_kk). That fails where a parameter has little influence or sits at a bound. There, the profile
says it: all values of a parameter with which, the others refitted, E rises by at most t squared times the
variance factor (a likelihood-ratio test of every value).

Sources: Woodside, "The Relationship of Performance Models to Data", appendix; Bates and Watts, "Nonlinear
Regression Analysis and its Applications", chapter 6 (profile t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri

from analyzer.fitting.regression import Problem, Solution, minimise
from mup.statistics.student import t_quantile

__all__ = ["METHODS", "Confidence", "Ellipsoid", "Interval", "Method", "confidence"]

FloatArray = npt.NDArray[np.float64]
Method = Literal["auto", "linear", "profile", "bootstrap"]
METHODS: Final = ("auto", "linear", "profile", "bootstrap")

QUADRATIC: Final = (0.6, 1.6)
"""Rise of E at the ends of a linear interval, relative to what it should be, that is believed."""
DRAWS: Final = 200
"""Of the bootstrap; the ends of its 95 % intervals rest on five of them each."""
MAX_STEPS: Final = 12
"""Of the search for an end of a profile interval."""
REACHED: Final = 0.02
"""Relative error of t at the end of a profile interval, which moves that end about as much."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, and how it was found."""

    low: float
    high: float
    method: str

    def contains(self, value: float) -> bool:
        """Tell whether a value is inside."""
        return self.low <= value <= self.high

    @property
    def half_width(self) -> float:
        """Half its length."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """All x with (x - centre)' inverse(covariance) (x - centre) <= radius: a joint confidence region."""

    centre: FloatArray
    covariance: FloatArray
    radius: float

    def contains(self, values: FloatArray) -> bool:
        """Tell whether a point is inside."""
        apart = values - self.centre
        return float(apart @ np.linalg.pinv(self.covariance, hermitian=True) @ apart) <= self.radius


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure the parameters are together.

    Attributes:
        level: 0.95, for instance.
        intervals: One per parameter, each for itself.
        joint: The box that contains all of them at once (Bonferroni: each at 1 - (1 - level) / n).
        ellipsoid: A joint region that follows their correlation.
        covariance: Of the estimates, the variance factor included.
        factor: By how much larger than expected the residuals are, as a variance; at least 1,
            and more if weights were estimated from few rows.
        freedom: Degrees of freedom of t.
    """

    level: float
    intervals: tuple[Interval, ...]
    joint: tuple[Interval, ...]
    ellipsoid: Ellipsoid
    covariance: FloatArray
    factor: float
    freedom: float

    def quantile(self, level: float | None = None) -> float:
        """Return the two-sided quantile of t."""
        return t_quantile(self.freedom, self.level if level is None else level)


def confidence(
    problem: Problem, solution: Solution, *, level: float = 0.95, method: Method = "auto", seed: int = 0
) -> Confidence:
    """Return how sure a solution is.

    Args:
        problem: What was minimised.
        solution: Its minimum.
        level: Of all intervals, between 0 and 1.
        method: ``linear``; ``profile``; ``bootstrap`` (refits to measurements drawn around the fitted
            ones); or ``auto``: linear, and profile for those parameters where that fails.
        seed: Of the bootstrap.
    """
    count = len(solution.values)
    left = max(problem.values - count, 1)
    spread = solution.squares / left
    factor = max(spread, problem.errors.inflation)
    freedom = problem.errors.freedom if spread <= 1.0 else min(problem.errors.freedom, left)
    covariance = factor * problem.covariance(solution.values)
    search = _Search(problem, solution, covariance, factor)
    draws = _bootstrap(problem, solution, factor, seed) if method == "bootstrap" else None

    def intervals(each: float) -> tuple[Interval, ...]:
        t = t_quantile(freedom, each)
        if draws is not None:
            # Draws know nothing of how uncertain the variance factor is; t does.
            wider = t / t_quantile(math.inf, each)
            ends = np.quantile(draws, [0.5 - each / 2, 0.5 + each / 2], axis=0)
            ends = solution.values + wider * (ends - solution.values)
            return tuple(Interval(float(a), float(b), "bootstrap") for a, b in ends.T)
        return tuple(search.interval(k, t, method) for k in range(count))

    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    return Confidence(
        level,
        intervals(level),
        intervals(1 - (1 - level) / count),
        Ellipsoid(solution.values, finite, count * float(fdtri(count, min(freedom, 1e9), level))),
        covariance,
        factor,
        freedom,
    )


class _Search:
    """The ends of intervals around one solution."""

    def __init__(self, problem: Problem, solution: Solution, covariance: FloatArray, factor: float) -> None:
        self.problem, self.solution, self.covariance, self.factor = problem, solution, covariance, factor
        self._jacobian: FloatArray | None = None
        self._memory: dict[tuple[int, float], float] = {}

    def interval(self, k: int, t: float, method: Method) -> Interval:
        """Return the interval of one parameter."""
        parameter = self.problem.parameters[k]
        value, deviation = float(self.solution.values[k]), math.sqrt(self.covariance[k, k])
        low, high = value - t * deviation, value + t * deviation
        if method != "profile" and (method == "linear" or self._quadratic(k, low, high, t)):
            return Interval(max(low, parameter.low), min(high, parameter.high), "linear")
        return Interval(self._end(k, -t, deviation), self._end(k, t, deviation), "profile")

    def _quadratic(self, k: int, low: float, high: float, t: float) -> bool:
        parameter = self.problem.parameters[k]
        if not parameter.low < low or not high < parameter.high:
            return False
        rises = [self._rise(k, end) / t**2 for end in (low, high)]
        return all(QUADRATIC[0] <= r <= QUADRATIC[1] for r in rises)

    def _rise(self, k: int, value: float) -> float:
        """Return by how much E rises, in variances, if a parameter has a value and the others adapt."""
        if (k, value) not in self._memory:
            squares = self._refitted(k, value)
            self._memory[k, value] = max(squares - self.solution.squares, 0.0) / self.factor
        return self._memory[k, value]

    def _refitted(self, k: int, value: float) -> float:
        here = self.solution.values
        step = value - here[k]
        start = (
            here + step * self.covariance[:, k] / self.covariance[k, k]
            if np.isfinite(self.covariance[k, k])
            else here.copy()
        )
        start[k] = value
        if self.problem.forward.exact:
            return minimise(self.problem, start, (k,)).squares
        return self._chord(start, k)

    def _chord(self, values: FloatArray, k: int) -> float:
        """Refit the others by steps with the derivatives at the solution: new ones take long."""
        problem = self.problem
        if self._jacobian is None:
            self._jacobian = problem.jacobian(self.solution.values)
        others = [i for i in range(len(values)) if i != k]
        low = np.array([p.low for p in problem.parameters])
        high = np.array([p.high for p in problem.parameters])
        solver = np.linalg.pinv(self._jacobian[:, others] * problem.scales[others], rcond=1e-8)
        values = np.clip(values, low, high)
        best = math.inf
        for _ in range(3):
            rest = problem.residuals(values)
            squares = float(rest @ rest)
            if squares > best * (1 - 1e-3):
                break
            best = squares
            values = values.copy()
            values[others] -= problem.scales[others] * (solver @ rest)
            values = np.clip(values, low, high)
        return best

    def _end(self, k: int, t: float, deviation: float) -> float:
        """Return where the profile reaches t, or the bound if it never does."""
        parameter, here = self.problem.parameters[k], float(self.solution.values[k])
        bound = parameter.high if t > 0 else parameter.low
        if here == bound:
            return bound
        reach = abs(t) * deviation
        scale = float(self.problem.scales[k])
        if not 0 < reach < 100 * scale:
            reach = 100 * scale if math.isinf(bound) else abs(bound - here)
        sign = 1.0 if t > 0 else -1.0
        inner, outer = 0.0, math.inf
        known = [(0.0, 0.0)]
        distance = min(reach, abs(bound - here))
        for _ in range(MAX_STEPS):
            at = math.sqrt(self._rise(k, here + sign * distance))
            known.append((distance, at))
            if abs(at - abs(t)) <= REACHED * abs(t):
                break
            if at < abs(t):
                if distance >= abs(bound - here):
                    return bound
                inner = distance
            else:
                outer = distance
            distance = _next(known, abs(t), inner, outer, abs(bound - here))
        return here + sign * distance


def _next(
    known: Sequence[tuple[float, float]], target: float, inner: float, outer: float, limit: float
) -> float:
    """Return where to look next: on the line through the two nearest points, kept in the bracket."""
    (d0, t0), (d1, t1) = sorted(known, key=lambda p: abs(p[1] - target))[:2]
    guess = d0 + (target - t0) * (d1 - d0) / (t1 - t0) if t1 != t0 else 2 * max(d0, d1)
    if math.isinf(outer):
        return min(max(guess, 1.2 * inner), 4 * max(inner, 1e-300), limit)
    if not inner + 0.05 * (outer - inner) < guess < outer - 0.05 * (outer - inner):
        return (inner + outer) / 2
    return guess


def _bootstrap(problem: Problem, solution: Solution, factor: float, seed: int) -> FloatArray:
    """Return refits to measurements drawn around what the solution predicts, shape (draws, n)."""
    random = np.random.default_rng(seed)
    fitted = problem.forward.means(solution.values) + problem.correction
    roots = [np.linalg.cholesky(c + 1e-12 * np.diag(np.diag(c))) for c in problem.errors.covariances]
    found = np.empty((DRAWS, len(solution.values)))
    for draw in range(DRAWS):
        noise = np.array([root @ random.standard_normal(len(root)) for root in roots])
        found[draw] = minimise(
            problem.with_measured(fitted + math.sqrt(factor) * noise), solution.values
        ).values
    return found
