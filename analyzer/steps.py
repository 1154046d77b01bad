"""Test of the last periods of a Kalman filter for a step of the state, at whichever moment it began.

A step of the state by d just before period s moves the innovation of period t >= s by a known amount

    H (d - m_t),   m_s = 0,   m_t+1 = m_t + K H (d - m_t)

where m is what the filter has followed of it by then. The likelihood ratio of a step of any size along d is
the correlation of the innovations with that: a number that is standard normal without a step. The statistic
is the one that is largest beside its limit, over beginnings within ``WINDOW`` periods and some directions.

Sources: Willsky, Jones, "A generalized likelihood ratio approach to the detection and estimation of jumps in
linear systems", IEEE Transactions on Automatic Control 21 (1976); of the limit, Siegmund, Venkatraman, "Using
the generalized likelihood ratio statistic for sequential detection of a change-point", Annals of Statistics
23 (1995).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from analyzer.kalman import Finding, Innovation

__all__ = ["WINDOW", "Steps", "step_limit"]

FloatArray = npt.NDArray[np.float64]

WINDOW = 30
"""Periods within which a step may have begun."""
OVERSHOOT = 0.7355
"""Integral over x > 0 of x nu(x)^2, where nu(x) = exp(-0.583 x): the sum passes the limit by some margin."""


def step_limit(false_alarms: float, directions: int, freedom: float = math.inf) -> float:
    """Return what the statistic exceeds so often that this many alarms per period are false.

    Args:
        false_alarms: Per period.
        directions: In which a step is looked for.
        freedom: Degrees of freedom the noise was estimated with; infinite if it is known.
    """
    low, high = 1.0, 40.0
    for _ in range(60):
        limit = (low + high) / 2
        rate = limit * OVERSHOOT / math.sqrt(2 * math.pi) * math.exp(-(limit**2) / 2)
        low, high = (limit, high) if rate > false_alarms / directions else (low, limit)
    return low if math.isinf(freedom) else -float(stdtrit(freedom, ndtr(-low)))


class Steps:
    """What the innovations since some moment say about a step since then.

    Args:
        false_alarms: Per period.
    """

    def __init__(self, false_alarms: float) -> None:
        self._false_alarms = false_alarms
        self.forget()

    def forget(self) -> None:
        """Look only at what follows."""
        self._followed: FloatArray | None = None
        self._sums = np.zeros((0, 0))
        self._squares = np.zeros((0, 0))

    def look(
        self,
        innovation: Innovation,
        slopes: FloatArray,
        directions: FloatArray,
        shares: FloatArray,
        freedom: float,
    ) -> Finding | None:
        """Take the innovation of a period; a finding is about the periods since the step.

        Args:
            innovation: m numbers about n of the state.
            slopes: H, shape (m, n).
            directions: Of the steps that are looked for, shape (D, n).
            shares: Of the false alarms, those that each direction may cause; they sum to 1, shape (D,).
            freedom: Degrees of freedom the noise was estimated with; infinite if it is known.
        """
        count = len(directions)
        # Newest beginning first; shape (beginnings, D, n).
        fresh = np.zeros((1, *directions.shape))
        followed = fresh if self._followed is None else np.concatenate([fresh, self._followed])[:WINDOW]
        zeros = np.zeros((1, count))
        sums = np.concatenate([zeros, self._sums.reshape(-1, count)])[:WINDOW]
        squares = np.concatenate([zeros, self._squares.reshape(-1, count)])[:WINDOW]
        moved = (directions - followed) @ slopes.T
        root = np.linalg.cholesky(innovation.covariance)
        shape = moved.reshape(-1, moved.shape[-1]).T
        signature = np.linalg.solve(root, shape).T.reshape(moved.shape)
        self._sums = sums + signature @ innovation.whitened
        self._squares = squares + np.sum(signature**2, axis=2)
        self._followed = followed + moved @ innovation.gain.T
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic = np.nan_to_num(self._sums / np.sqrt(self._squares))
        limits = np.array([step_limit(self._false_alarms * share, 1, freedom) for share in shares.tolist()])
        largest = int(np.argmax(np.abs(statistic) / limits))
        found, limit = float(statistic.flat[largest]), float(limits[largest % count])
        return Finding("step", found, limit, largest // count + 1) if abs(found) > limit else None
