"""Fit flows so that the fluid follows the observed queues most closely.

Least squares over whole trajectories, started by the regression on single steps, with exact derivatives and
flows kept >= 0. That is the same as positive rates and stochastic rows of the routing matrix, and it needs no
penalty: a network without self-loops is its flows (``ClosedNetwork.of_flows``).

Source: Garbi's thesis, section 3.1; there the same cell is trained by gradient descent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from analyzer.learning.network_regression import FASTEST, half_of
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.fluid import Pairs, fluid_sensitivities

__all__ = ["Fit", "fit_fluid"]

EARLY, EVEN = 40, 30
"""Moments of a trace that are compared: in geometric distances, for fast stations settle early, and in equal
ones. What lies between them says nothing new, for noise is correlated in time."""
CLOSE = 1e-4
"""Stop when the sum of squares falls by a smaller part."""
LONGEST = 1000
"""Evaluations times parameters; what comes after them is in the noise."""
SPREAD = 0.2
REACH = 0.3
"""Of a cell, in units of the fastest time constant: twice as much bends rates by two percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a fit found.

    Attributes:
        flows: Per second and busy server; shape (M, M).
        cost: Sum of squared misplaced clients, weighted; only comparable between fits of the same traces.
        information: Second derivatives of half the cost by the flows, in the order of the pairs;
            shape (P, P).
    """

    flows: FloatArray
    cost: float
    information: FloatArray


def fit_fluid(
    traces: Traces,
    servers: FloatArray,
    pairs: Pairs,
    start: FloatArray,
    *,
    pace: float,
) -> Fit:
    """Fit the flows of the fluid to traces.

    Args:
        traces: R of them, H samples, M stations.
        servers: Shape (M,).
        pairs: Between which stations clients may move; shape (P, 2).
        start: Flows to begin with; shape (M, M).
        pace: About the rate of the fastest station: how small the cells have to be. Fits are only comparable
            with the same one.
    """
    samples, m = traces.x.shape[1:]
    # One cell goes as far as the rates allow.
    stride = int(np.clip(REACH / max(1e-9, traces.dt * pace), 1, samples - 1))
    step = traces.dt * stride
    last = (samples - 1) // stride
    moments = np.unique(
        np.concatenate(([0], np.geomspace(1, last, EARLY), np.linspace(1, last, EVEN))).round().astype(int)
    )
    observed = traces.x[:, moments * stride]
    # The variance of a mean number of clients grows with their number.
    weights = 1 / np.sqrt(np.maximum(traces.populations, 1.0) * len(moments) * len(observed))
    cells = max(1, math.ceil(step * pace / REACH - 1e-9))
    known: dict[bytes, tuple[FloatArray, FloatArray]] = {}

    def at(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return residuals and their derivatives, in the fewest numbers that have the same squares."""
        key = values.tobytes()
        if key not in known:
            flows = np.zeros((m, m))
            flows[pairs[:, 0], pairs[:, 1]] = values
            x, s = fluid_sensitivities(
                flows,
                servers,
                traces.starts,
                pairs,
                dt=step,
                samples=last + 1,
                cells=cells,
                moments=moments,
            )
            error = ((x - observed) * weights[:, None, None]).reshape(-1)
            slopes = (s * weights[:, None, None, None]).reshape(len(error), -1)
            known.clear()
            known[key] = _compressed(error, slopes)
        return known[key]

    begin = np.maximum(start[pairs[:, 0], pairs[:, 1]], 0.0)
    # Away from the bounds, where steps are short: a part of every rate goes everywhere alike.
    begin = (1 - SPREAD) * begin + SPREAD * start.sum(axis=1)[pairs[:, 0]] / max(1, m - 1)
    floor = 1e-6 * float(begin.max())
    begin = np.minimum(begin, 0.99 * FASTEST / traces.dt)
    found = least_squares(
        lambda v: at(v)[0],
        np.maximum(begin, floor),
        jac=lambda v: at(v)[1],
        bounds=(0.0, FASTEST / traces.dt),
        x_scale=np.maximum(begin, 1e-2 * float(begin.max())),
        ftol=CLOSE,
        xtol=1e-6,
        gtol=1e-10,
        max_nfev=max(10, LONGEST // len(pairs)),
    )
    flows = np.zeros((m, m))
    flows[pairs[:, 0], pairs[:, 1]] = found.x
    slopes = at(found.x)[1]
    return Fit(flows=flows, cost=float(2 * found.cost), information=slopes.T @ slopes)


def _compressed(error: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P + 1 residuals with the cost, gradient and Gauss-Newton matrix of the many.

    The part of the error within the span of the derivatives becomes P numbers, the rest, which no small
    change can reduce, one number.
    """
    parameters = slopes.shape[1]
    half = half_of(slopes.T @ slopes)
    within = np.linalg.lstsq(half.T, slopes.T @ error, rcond=None)[0]
    rest = max(0.0, float(error @ error) - float(within @ within))
    few, derivatives = np.zeros(parameters + 1), np.zeros((parameters + 1, parameters))
    few[: len(within)], few[-1] = within, np.sqrt(rest)
    derivatives[: len(half)] = half
    return few, derivatives
