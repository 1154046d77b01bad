"""Mean queues of a closed network over time, from few runs and the fluid together.

How many servers are busy on average is all the fluid does not know. Simulation knows it, and how it changes
with the number of clients: a mean of the busy servers and the probability that one client more would be
served at once make a ``Closure``, and with it the fluid has the mean of the simulated process. Its noise is
that of what is nonlinear alone: where no client waits there is none. So some dozens of runs are as good as
thousands that are merely averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.statistics.student import t_quantile
from simulator.networks.closed_network import ClosedNetwork, FloatArray
from simulator.networks.fluid import Closure, fluid_means
from simulator.networks.simulation import TransientMeans, transient_means

__all__ = [
    "Prediction",
    "closed_busy",
    "closure_of",
    "closures",
    "predicted_means",
    "simulated_parts",
    "slope_of",
]

BATCHES = 4
"""Independent predictions; their mean is the result, their spread its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Mean queue lengths, for each of R starting states at H moments at M stations.

    Attributes:
        x: Clients at each station; shape (R, H, M).
        half: Half-width of the 95 % interval of each; same shape.
    """

    x: FloatArray
    half: FloatArray


def simulated_parts(
    network: ClosedNetwork,
    starts: npt.NDArray[Any],
    *,
    dt: float,
    samples: int,
    runs: int,
    parts: int,
    seed: int,
) -> list[TransientMeans]:
    """Return independent simulations, ``runs`` in all (at least two each)."""
    each = max(2, math.ceil(runs / parts))
    return [
        transient_means(network, starts, dt=dt, samples=samples, runs=each, seed=seed * parts + part)
        for part in range(parts)
    ]


def slope_of(part: TransientMeans) -> FloatArray:
    """Return by how much servers are busier if the mean queue is longer by one; shape (R, H - 1, M)."""
    return _between(part.free)


def closures(parts: Sequence[TransientMeans], further: Sequence[FloatArray] = ()) -> list[Closure]:
    """Return how busy servers are around the means of each of several independent simulations.

    The slope of one is that of the others: with its own, which is small by chance where its queue is long by
    chance, servers would seem busier than they are.

    Args:
        parts: The simulations.
        further: Slopes of other simulations of about the same network.
    """
    slopes = [slope_of(part) for part in parts]
    whole = np.sum([*slopes, *further], axis=0)
    found = []
    for part, own in zip(parts, slopes, strict=True):
        slope = (whole - own) / (len(slopes) + len(further) - 1)
        found.append(Closure(slope, np.diff(part.busy, axis=1) / part.dt - slope * _between(part.x)))
    return found


def closure_of(parts: Sequence[TransientMeans], further: Sequence[FloatArray] = ()) -> Closure:
    """Return how busy servers are around the means of independent simulations together."""
    each = closures(parts, further)
    return Closure(np.mean([c.slope for c in each], axis=0), np.mean([c.offset for c in each], axis=0))


def closed_busy(x: FloatArray, closure: Closure, dt: float) -> FloatArray:
    """Return the integral of busy servers from time 0 that belongs to queue lengths; shape (R, H, M).

    A mean of the minimum is at most the minimum of the means, but an estimate of it that has no bias is
    sometimes more. It is not cut off, for then it would have one.
    """
    steps = (closure.slope * _between(x) + closure.offset) * dt
    return np.concatenate((np.zeros_like(x[:, :1]), np.cumsum(steps, axis=1)), axis=1)


def predicted_means(
    network: ClosedNetwork,
    starts: npt.NDArray[Any],
    *,
    dt: float,
    samples: int,
    runs: int,
    seed: int,
) -> Prediction:
    """Predict mean queue lengths from given states.

    Args:
        network: What to predict.
        starts: Clients at each station at time 0, whole numbers; shape (R, M).
        dt: Seconds between samples.
        samples: Moments 0, dt, 2 dt, ...; H.
        runs: Simulated in all, at least 8 per starting state.
        seed: Same seed, same numbers.

    Raises:
        UsageError: A starting state is no number of clients.
    """
    parts = simulated_parts(network, starts, dt=dt, samples=samples, runs=runs, parts=BATCHES, seed=seed)
    begin = np.asarray(starts, dtype=float)
    if network.exponential:
        found = [fluid_means(network, begin, dt=dt, samples=samples, closure=c) for c in closures(parts)]
    else:  # how many are busy does not say how many leave: plain means
        found = [part.x for part in parts]
    x = np.mean(found, axis=0)
    spread = np.std(found, axis=0, ddof=1) / math.sqrt(BATCHES)
    return Prediction(x=x, half=t_quantile(BATCHES - 1) * spread)


def _between(values: FloatArray) -> FloatArray:
    middle: FloatArray = (values[:, 1:] + values[:, :-1]) / 2
    return middle
