"""Kalman filter: update a drifting state by measurements, and test whether they fit it.

    x' = x + w
    y  = H x + v

The innovation of a period, what was measured less what was expected, has covariance S = H P H' + noise. Two
tests ask whether the model explains it:

- *size*: innovation' S^-1 innovation (NIS) is chi-squared; that of the last period, and its sum over the last
  periods, are compared with its distribution. It is large after a jump, or when something acts that the
  model lacks.
- *whiteness*: normalised innovations of consecutive periods are uncorrelated. They are not while the state
  drifts faster than the filter follows, or depends on what it is taken not to depend on.

Shared by ``analyzer.estimation.tracking`` (demands of a station) and ``analyzer.fitting.tracking`` (any
numbers of a layered model).

Source: Bar-Shalom, Li, Kirubarajan, "Estimation with Applications to Tracking and Navigation", sections 5.2
and 5.4; of the smoother, Rauch, Tung and Striebel, "Maximum likelihood estimates of linear dynamic systems",
AIAA Journal 3 (1965).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, fdtri, ndtr, ndtri, stdtrit

__all__ = [
    "MEMORY",
    "Finding",
    "Innovation",
    "Linear",
    "Watch",
    "chi_squared_limit",
    "filtered",
    "innovation_of",
    "smoothed",
    "whiteness_limit",
]

FloatArray = npt.NDArray[np.float64]

MEMORY = 10
"""Periods the tests look back on."""


@dataclass(frozen=True, slots=True)
class Innovation:
    """What a period measured less what was expected; m numbers about n of the state.

    Attributes:
        value: Shape (m,).
        covariance: S, shape (m, m).
        gain: By how much the state moves per unit of it, shape (n, m).
    """

    value: FloatArray
    covariance: FloatArray
    gain: FloatArray

    @property
    def whitened(self) -> FloatArray:
        """As m numbers that are uncorrelated and of variance 1 if the model is right."""
        found: FloatArray = np.linalg.solve(np.linalg.cholesky(self.covariance), self.value)
        return found

    @property
    def normalised(self) -> FloatArray:
        """Each number in its own standard deviations; they remain correlated."""
        found: FloatArray = self.value / np.sqrt(np.diag(self.covariance))
        return found

    @property
    def log_determinant(self) -> float:
        """Logarithm of det S."""
        return float(np.linalg.slogdet(self.covariance)[1])


def innovation_of(value: FloatArray, slopes: FloatArray, spread: FloatArray, noise: FloatArray) -> Innovation:
    """Return the innovation of a period.

    Args:
        value: Measured less expected, shape (m,).
        slopes: H, shape (m, n).
        spread: P, covariance of the state before the period, shape (n, n).
        noise: Covariance of what was measured, shape (m, m).
    """
    covariance = slopes @ spread @ slopes.T + noise
    gain = np.asarray(np.linalg.solve(covariance, slopes @ spread).T, dtype=np.float64)
    return Innovation(value, covariance, gain)


@dataclass(frozen=True, slots=True)
class Linear:
    """What a period measured, linear in the state: value = slopes @ state + noise.

    Attributes:
        value: Shape (m,).
        slopes: H, shape (m, n).
        noise: Covariance, shape (m, m).
    """

    value: FloatArray
    slopes: FloatArray
    noise: FloatArray


def filtered(
    periods: Sequence[Linear], mean: FloatArray, spread: FloatArray, drift: float
) -> tuple[list[FloatArray], list[FloatArray], float]:
    """Follow a state that walks at random.

    Args:
        periods: T of them.
        mean: The state before the first period, shape (n,).
        spread: Its covariance.
        drift: Standard deviation of the change of each component between two periods.

    Returns:
        States and covariances after each period, and the logarithm of the likelihood of all innovations
        without its constant part.
    """
    unit, states, covariances, total = np.eye(len(mean)), [], [], 0.0
    for number, one in enumerate(periods):
        if number:
            spread = spread + drift**2 * unit
        found = innovation_of(one.value - one.slopes @ mean, one.slopes, spread, one.noise)
        whitened = found.whitened
        total -= (found.log_determinant + float(whitened @ whitened)) / 2
        mean = mean + found.gain @ found.value
        spread = (unit - found.gain @ one.slopes) @ spread
        states.append(mean)
        covariances.append(spread)
    return states, covariances, total


def smoothed(
    periods: Sequence[Linear], mean: FloatArray, spread: FloatArray, drift: float
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return states and covariances as all periods have them, those that came later too; see ``filtered``."""
    states, covariances, _ = filtered(periods, mean, spread, drift)
    walk = drift**2 * np.eye(len(mean))
    for t in range(len(periods) - 2, -1, -1):
        before = covariances[t] + walk
        back = np.linalg.solve(before, covariances[t]).T
        states[t] = states[t] + back @ (states[t + 1] - states[t])
        covariances[t] = covariances[t] + back @ (covariances[t + 1] - before) @ back.T
    return states, covariances


@dataclass(frozen=True, slots=True)
class Finding:
    """A test that failed.

    Attributes:
        test: ``size``, ``whiteness``, or ``step`` (``analyzer.steps``).
        statistic, limit: What was found, and what it may be.
        periods: How many of the last periods it is about.
    """

    test: str
    statistic: float
    limit: float
    periods: int


def chi_squared_limit(count: int, probability: float, freedom: float = math.inf) -> float:
    """Return what a sum of squares of ``count`` standard normal numbers exceeds with a probability.

    Args:
        count: Degrees of freedom.
        probability: Of a sum beyond the limit.
        freedom: Degrees of freedom their variance was estimated with; infinite if it is known.
    """
    if math.isinf(freedom):
        return float(chdtri(count, probability))
    return count * float(fdtri(count, freedom, 1 - probability))


@lru_cache(maxsize=256)
def whiteness_limit(numbers: float, probability: float) -> float:
    """Return what the statistic of whiteness exceeds in magnitude with a probability.

    Products of normal numbers have longer tails than a normal number. The sum of those of neighbours is a
    quadratic form whose eigenvalues are cos(k pi / (MEMORY + 1)); its tail is that of a saddlepoint.

    Args:
        numbers: In an innovation.
        probability: Of a statistic beyond the limit, either way.

    Source: Lugannani, Rice, "Saddle point approximation for the distribution of the sum of independent random
    variables", Advances in Applied Probability 12 (1980).
    """
    eigenvalues = np.cos(np.arange(1, MEMORY + 1) * math.pi / (MEMORY + 1))

    def tail(s: float) -> tuple[float, float]:
        """Return the sum whose saddlepoint is s, and the probability of a larger one."""
        rest = 1 - 2 * s * eigenvalues
        total = numbers * float(np.sum(eigenvalues / rest))
        cumulant = -numbers / 2 * float(np.sum(np.log(rest)))
        curvature = 2 * numbers * float(np.sum((eigenvalues / rest) ** 2))
        w, u = math.sqrt(2 * (s * total - cumulant)), s * math.sqrt(curvature)
        density = math.exp(-(w**2) / 2) / math.sqrt(2 * math.pi)
        return total, float(ndtr(-w)) + density * (1 / u - 1 / w)

    # Halving: the tail falls as s grows to where the cumulant is infinite.
    low, high = 1e-3, (1 - 1e-9) / (2 * float(eigenvalues[0]))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle)[1] > probability / 2 else (low, middle)
    return tail(low)[0] / math.sqrt((MEMORY - 1) * numbers)


class Watch:
    """The two tests on the normalised innovations of the last periods.

    Args:
        false_alarm: Probability of an alarm of one test in one period in which nothing has happened, were
            innovations normal.
        freedom: Degrees of freedom the noise was estimated with; infinite if it is known. It may be set again
            as the noise is learned from more.
    """

    def __init__(self, false_alarm: float, freedom: float = math.inf) -> None:
        self._false_alarm, self.freedom = false_alarm, freedom
        self._recent: deque[FloatArray] = deque(maxlen=MEMORY)

    def look(self, whitened: FloatArray) -> Finding | None:
        """Take the innovation of a period, components uncorrelated and of variance 1.

        What is found empties the memory: the next finding is about what happens after it.
        """
        self._recent.append(whitened)
        finding = self._size() or self._whiteness()
        if finding is not None:
            self.forget()
        return finding

    def forget(self) -> None:
        """Look only at what follows."""
        self._recent.clear()

    def _size(self) -> Finding | None:
        """Look at the last period, and at all that are remembered."""
        for some in (list(self._recent)[-1:], list(self._recent)):
            count = sum(len(v) for v in some)
            total = float(sum(v @ v for v in some))
            limit = chi_squared_limit(count, self._false_alarm / 2, self.freedom)
            if total > limit:
                return Finding("size", total, limit, len(some))
        return None

    def _whiteness(self) -> Finding | None:
        pairs = [
            (float(a @ b), len(a))
            for a, b in zip(list(self._recent)[:-1], list(self._recent)[1:], strict=True)
            if len(a) == len(b)
        ]
        if len(pairs) < MEMORY - 1:
            return None
        # The sum of n products of independent standard normal variables has variance n.
        statistic = sum(p for p, _ in pairs) / math.sqrt(sum(n for _, n in pairs))
        limit = whiteness_limit(sum(n for _, n in pairs) / len(pairs), self._false_alarm)
        if math.isfinite(self.freedom):
            tail = 1 - self._false_alarm / 2
            limit *= float(stdtrit(self.freedom, tail) / ndtri(tail))
        return Finding("whiteness", statistic, limit, MEMORY) if abs(statistic) > limit else None
