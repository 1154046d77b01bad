"""Time a station needs to forget that it was empty.

The number of requests in a station of K servers with exponential times is a Markov chain with a tridiagonal
generator Q. Its distribution is followed step by step, ``pi <- pi P`` with ``P = I + Q dt`` and ``dt = 1 /
(lambda + K mu)``, until the mean number is close to its limit, which is known in closed form (Harbaoui et
al., RR-7027, section 3.3; they stop when two steps are alike, which a slow chain is from the start). Times
of another variability relax slower or faster by about ``(1 + cv^2) / 2``, as they do in the diffusion
limit.
"""

from __future__ import annotations

import numpy as np

from analyzer.blackbox.inversion import FloatArray

__all__ = ["CLOSE", "stabilisation_seconds"]

CLOSE = 0.05
"""Relative distance of the mean number from its limit at which a station counts as stable."""
MOST_STATES = 400
"""Requests that a queue is followed to; of M/M/1 at utilization 0.98 one in 3000 is longer."""
MOST_STEPS = 20_000
"""Steps of the uniformised chain after which the time to settle is given up."""


def stabilisation_seconds(rate: float, mean: float, servers: int, scv: float = 1.0) -> float:
    """Return the seconds from an empty station until its mean number of requests is close to its limit.

    A saturated station never gets there: the time it takes to fill the states that are followed is returned.

    Args:
        rate: Arrivals per second.
        mean: Seconds of service.
        servers: K.
        scv: Squared coefficient of variation of the service times.
    """
    states = max(MOST_STATES, 4 * servers)
    busy = np.minimum(np.arange(states + 1), servers)
    up = rate * np.ones(states)
    down = busy[1:] / mean
    step = 1 / (rate + servers / mean)
    limit = _mean_number(up, down)
    chance = np.zeros(states + 1)
    chance[0] = 1.0
    number = np.arange(states + 1)
    seconds = 0.0
    for _ in range(MOST_STEPS):
        if float(chance @ number) >= (1 - CLOSE) * limit:
            break
        flow = step * (chance[:-1] * up - chance[1:] * down)
        chance[:-1] -= flow
        chance[1:] += flow
        seconds += step
    return seconds * (1 + scv) / 2


def _mean_number(up: FloatArray, down: FloatArray) -> float:
    """Return the mean state of a birth-death chain."""
    weights = np.append(0.0, np.cumsum(np.log(up) - np.log(down)))
    shares = np.exp(weights - weights.max())
    return float(shares @ np.arange(shares.size) / shares.sum())
