"""Mean and squared coefficient of variation that express a distribution in lqnx.

Numbers are found such that reading them gives exactly the distribution that was written, to the last bit
where floating point allows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mup.lqn.distributions import (
    Constant,
    Distribution,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Pareto,
    with_scv,
)

__all__ = ["arrival_rate", "burst_scv", "ordinary_moments"]

_NEIGHBOURS = 4


def _inverse(image: Callable[[float], object], target: object, guess: float) -> float:
    """Return the float next to ``guess`` whose image is the target, or the guess if none is."""
    up = down = guess
    for _ in range(_NEIGHBOURS + 1):
        for candidate in (up, down):
            if candidate > 0 and image(candidate) == target:
                return candidate
        up, down = math.nextafter(up, math.inf), math.nextafter(down, 0.0)
    return guess


def ordinary_moments(time: Distribution) -> tuple[float, float] | None:
    """Return mean and squared coefficient of variation that mean this very distribution in lqnx.

    None if there are none: lqnx knows constants, gamma, exponential, and one kind of hyperexponential.
    """
    if time.mean == 0 or isinstance(time, Constant):
        return time.mean, 0.0
    if isinstance(time, Exponential):
        return time.mean, 1.0
    if isinstance(time, Erlang):
        return time.mean, 1 / time.stages
    if isinstance(time, Gamma):
        return (time.mean, time.scv_value) if time.scv_value <= 1 else None
    if isinstance(time, Hyperexponential) and len(time.means) == 2 and time.means[1] > 0:
        # The mean of the phases would be rounded differently.
        mean = 2 * time.means[1]
        found = _inverse(lambda scv: with_scv(mean, scv), time, time.means[0] / mean)
        return (mean, found) if found > 1 and with_scv(mean, found) == time else None
    return None


def burst_scv(time: Pareto) -> float | None:
    """Return the squared coefficient of variation of a burst task's demand; None if it is infinite."""
    if time.shape <= 2:
        return None
    guess = 1 / ((time.shape - 1) ** 2 - 1)
    return _inverse(lambda scv: math.sqrt(1 / scv + 1) + 1, time.shape, guess)


def arrival_rate(interval: Exponential) -> float:
    """Return the rate whose reciprocal is the mean of the interval."""
    return _inverse(lambda rate: 1 / rate, interval.mean, 1 / interval.mean)
