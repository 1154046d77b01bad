"""The work of an event loop by its sleep: from what bursts need to what one user needs.

The curve of a run (``analyzer.calibration.setup.Shape``) is from rounds of one user, in which an event loop
has always slept. In bursts it often has not, and takes several messages at once: its work is not on the line
through hot and cold rounds then. So the shares of that curve are replaced by other ones, with corners at the
mean shares of bursts, hot rounds and cold ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Bend", "Rounds", "through"]

FloatArray = npt.NDArray[np.float64]

AWAKE = 0.02
"""Of the curve, by which loops have to sleep less in bursts than in hot rounds."""
SURE = 50.0
"""Condition number of the equations for the corners from which on these are a guess."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """What rounds of one kind show: the share of the curve before each request, and mean seconds of work."""

    shares: FloatArray
    seconds: float


@dataclass(frozen=True, slots=True)
class Bend:
    """A function of shares that never falls, from 0 at 0 to 1 at 1: linear between its corners.

    Attributes:
        before, after: Shares at the corners.
        base, amount: Seconds of work of a request without sleep, and on top after a long one.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    base: float
    amount: float

    def __call__(self, shares: FloatArray | Sequence[float]) -> FloatArray:
        """Return what replaces some shares."""
        return np.interp(shares, self.before, self.after)


def through(burst: Rounds, hot: Rounds, cold: Rounds, *, apart: float) -> Bend | None:
    """Return the shares over which the work of hot and cold rounds is on a line from that of bursts.

    Work that follows no sleep, or less than bursts have on average, needs as much as requests of bursts do;
    a system that is full needs that, or up to 5 % more, though some requests of bursts have followed sleep.
    Beyond cold rounds work grows as up to them.

    Args:
        burst: Rounds of several users; every kind has shares.
        hot: Of one user, back to back.
        cold: Of one user who thinks.
        apart: Share by which hot and cold rounds have to differ.

    Returns:
        None if work does not follow sleep: shares hardly differ, or work falls where there is more of it.
    """
    corners = np.array([float(kind.shares.mean()) for kind in (burst, hot, cold)])
    if corners[0] + AWAKE >= corners[1] or corners[1] + apart >= corners[2]:
        return None
    # The mean work of a kind is linear in the work at the corners.
    weights = np.stack([_weights(kind.shares, corners).mean(axis=0) for kind in (hot, cold)])
    if np.linalg.cond(weights[:, 1:]) > SURE:
        return None
    wanted = np.array([hot.seconds, cold.seconds]) - weights[:, 0] * burst.seconds
    work = np.array([burst.seconds, *np.linalg.solve(weights[:, 1:], wanted)])
    if not 0 < work[0] <= work[1] < work[2]:
        return None
    everywhere = _weights(np.array([0.0, *corners, 1.0]), corners) @ work
    base, amount = float(everywhere[0]), float(everywhere[-1] - everywhere[0])
    return Bend((0.0, *corners.tolist(), 1.0), tuple(((everywhere - base) / amount).tolist()), base, amount)


def _weights(shares: FloatArray, corners: FloatArray) -> FloatArray:
    """Return how much of the work at each corner is in that at some shares; one row per share."""
    first, second, third = corners
    below = np.clip((shares - first) / (second - first), 0.0, 1.0)
    above = np.maximum(0.0, (shares - second) / (third - second))
    return np.stack([1 - below, below - above, above], axis=1)
