"""Mean queues of a closed network over time where services are not exponential.

Who leaves a station depends on when services began, so the fluid remembers it: of the services that began at
u, the part ``F(t - u)`` has ended by t. How many are busy, a ``Closure`` says, from a simulation of a network
close by; as many services begin as end, and what more are busy. Everything else is linear and exact but for
the step of time, so this tells how the means change with rates, routing and shapes of the services.

Phases (Erlang stages, hyperexponential branches) would do the same with one state per phase; with the
distribution function any service costs the same, constant ones included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc, ndtr

from mup.lqn.distributions import Constant, Distribution, Exponential, Gamma, Hyperexponential, Lognormal
from simulator.networks.closed_network import ClosedNetwork, FloatArray
from simulator.networks.fluid import Closure

__all__ = ["Steps", "ended", "service_fluid", "steps_for"]

PER_SERVICE = 3.0
"""Steps of time in the shortest mean service."""
MOST = 500
"""Steps of time in a trace; what a trace costs grows with their square."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Time steps: ``each`` in every one of ``samples - 1`` intervals of ``dt`` seconds."""

    dt: float
    samples: int
    each: int


def steps_for(network: ClosedNetwork, dt: float, samples: int) -> Steps:
    """Return the steps of time for networks like this one."""
    each = math.ceil(dt * float(network.rates.max()) * PER_SERVICE)
    return Steps(dt, samples, max(1, min(each, MOST // max(1, samples - 1))))


def ended(shape: Distribution, t: FloatArray) -> FloatArray:
    """Return the part of services of mean 1 that takes at most t: the distribution function.

    Raises:
        TypeError: None of the families that networks are learned with.
    """
    t = np.maximum(t, 0.0)
    match shape:
        case Constant(value):
            return np.asarray(t >= value, dtype=np.float64)
        case Exponential(mean):
            return np.asarray(-np.expm1(-t / mean))
        case Gamma(mean, scv):
            return np.asarray(gammainc(1 / scv, t / (mean * scv)))
        case Lognormal(mean, scv):
            spread = math.log1p(scv)
            with np.errstate(divide="ignore"):
                return np.asarray(ndtr((np.log(t / mean) + spread / 2) / math.sqrt(spread)))
        case Hyperexponential(odds, means):
            parts = [p * -np.expm1(-t / mean) for p, mean in zip(odds, means, strict=True)]
            return np.asarray(np.sum(parts, axis=0))
    raise TypeError(f"no distribution function for {type(shape).__name__}")


def service_fluid(
    networks: list[ClosedNetwork], starts: FloatArray, closure: Closure, steps: Steps
) -> FloatArray:
    """Return queue lengths at 0, dt, 2 dt, ... of several networks; shape (P, R, H, M).

    Args:
        networks: P of them, with the same stations and servers.
        starts: Clients at time 0, when all services begin; shape (R, M).
        closure: How busy servers are, of a network close to these.
        steps: Of time.
    """
    many, (traces, m) = len(networks), starts.shape
    routes = np.array([_moves(network) for network in networks])
    n = (steps.samples - 1) * steps.each
    first, later = _kernels(networks, n, steps.dt / steps.each)
    x = np.broadcast_to(starts, (many, traces, m)).copy()
    found = np.empty((many, traces, steps.samples, m))
    found[:, :, 0] = x
    begun = np.minimum(x, closure.slope[:, 0] * x + closure.offset[:, 0]).transpose(0, 2, 1)
    busy = begun
    history = np.zeros((many, m, traces, n))
    for k in range(n):
        left = begun * first[:, :, None, k]
        if k:
            left = left + (history[..., :k] @ later[:, :, n - k :, None])[..., 0]
        moved = left.transpose(0, 2, 1)
        x = x + moved @ routes
        sample = k // steps.each
        level = (closure.slope[:, sample] * x + closure.offset[:, sample]).transpose(0, 2, 1)
        history[..., k] = level - (busy - left)
        busy = level
        if (k + 1) % steps.each == 0:
            found[:, :, sample + 1] = x
    return found


def _moves(network: ClosedNetwork) -> FloatArray:
    moves: FloatArray = network.routing - np.eye(len(network.names))
    return moves


def _kernels(networks: list[ClosedNetwork], n: int, step: float) -> tuple[FloatArray, FloatArray]:
    """Return which part ends in each step after the beginning; shapes (P, M, n).

    The second, last step first, is of services that begin on average in the middle of a step.
    """
    m = len(networks[0].names)
    first, later = np.zeros((2, len(networks), m, n))
    known: dict[tuple[float, Distribution], tuple[FloatArray, FloatArray]] = {}
    grid = np.arange(n + 1) * step
    for p, network in enumerate(networks):
        for i, key in enumerate(zip(network.rates.tolist(), network.shapes, strict=True)):
            if key not in known:
                rate, shape = key
                middle = ended(shape, (grid + step / 2) * rate)
                at_once = np.diff(middle, prepend=0.0)[1:]
                at_once[0] += middle[0]
                known[key] = np.diff(ended(shape, grid * rate)), at_once[::-1]
            first[p, i], later[p, i] = known[key]
    return first, later
