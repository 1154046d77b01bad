"""Regression of queue changes on busy servers, for the flows between stations.

The mean number of clients at station k changes by what arrives less what leaves,

    dx_k = sum_i flows[i, k] dB_i - sum_j flows[k, j] dB_k,

where dB_i is the integral of the mean number of busy servers. That is exact, and linear in the flows; what
remains is the noise of a finite number of executions, and it is known: per second it is the sum of
``flows[i, j] u_i (e_j - e_i)(e_j - e_i)'``, independent from step to step. So the flows are found by
generalized least squares, first with equal weights, then with the inverse of that covariance.

Noise that raises a queue raises its busy time too, so the two are correlated, and near the steady state,
where there is little else, plain least squares would find rates far too low. Hence *instruments*: busy times
as a model predicts them, which the noise of the data is not in. They need not be right, only similar.

Source: the identity is thesis, equation 2.2, before its approximation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from analyzer.learning.traces import FloatArray
from simulator.networks.fluid import Pairs

__all__ = ["fluid_busy", "half_of", "regress", "resolvable"]

WEIGHTINGS = 3
"""The first with equal weights; after two more the flows do not change any more."""
FASTEST = 5.0
"""Services within one step of time: beyond that a station is empty in nearly every sample."""
RIDGE = 1e-12
"""Directions with less than this part of the information are not determined and stay out."""


def fluid_busy(x: FloatArray, servers: FloatArray, dt: float) -> FloatArray:
    """Return what the fluid takes for the integral of busy servers: that of the minimum of the mean.

    Args:
        x: Mean queue lengths; shape (R, H, M).
        servers: Per station; shape (M,).
        dt: Seconds between samples.
    """
    level = np.minimum(x, servers)
    steps = (level[:, 1:] + level[:, :-1]) * (dt / 2)
    return np.concatenate((np.zeros_like(x[:, :1]), np.cumsum(steps, axis=1)), axis=1)


def regress(
    x: FloatArray, busy: FloatArray, pairs: Pairs, instruments: FloatArray | None = None
) -> FloatArray:
    """Return the flows that explain the changes of the queues best.

    Args:
        x: Mean queue lengths; shape (R, H, M).
        busy: Integrals of busy servers from time 0; same shape.
        pairs: Between which stations clients may move; shape (P, 2).
        instruments: Predicted integrals of busy servers, same shape as ``busy``; None = ``busy`` itself,
            which is good enough to start from.

    Returns:
        Flows per second and busy server, >= 0; shape (M, M), 0 where clients do not move.
    """
    m = x.shape[2]
    dx, db = np.diff(x, axis=1), np.diff(busy, axis=1)
    dz = db if instruments is None else np.diff(instruments, axis=1)
    turned = dz.transpose(0, 2, 1)
    squares, crossed, products = turned @ dz, turned @ db, turned @ dx
    jumps = _jumps(pairs, m)
    weights = np.broadcast_to(np.eye(m), (len(x), m, m))
    flows = np.zeros((m, m))
    source = pairs[:, 0]
    rows, columns = source[:, None], source[None, :]
    for _ in range(WEIGHTINGS):
        # Per trace and pair (i, j): what one unit of flow does, weighted.
        weighted = jumps @ weights
        among = weighted @ jumps.T
        moments = np.einsum("rpq,rpq->pq", among, crossed[:, rows, columns])
        noise = np.einsum("rpq,rpq->pq", among, squares[:, rows, columns])
        target = np.einsum("rpk,rpk->p", weighted, products[:, source])
        flows = np.zeros((m, m))
        flows[pairs[:, 0], pairs[:, 1]] = _solve(moments, target, noise)
        weights = _inverse_noise(flows, busy[:, -1], jumps, pairs)
    return flows


def resolvable(flows: FloatArray, dt: float) -> FloatArray:
    """Return the flows with every rate at most what samples every ``dt`` can show.

    Where traces say nearly nothing, regression finds any rate, and to follow a very fast station takes ages.
    """
    rates = flows.sum(axis=1, keepdims=True)
    slower: FloatArray = flows * np.minimum(1.0, FASTEST / dt / np.maximum(rates, 1e-300))
    return slower


def half_of(information: FloatArray) -> FloatArray:
    """Return A with ``A.T @ A == information``, without the directions nothing is known about."""
    values, vectors = np.linalg.eigh(information)
    known = values > RIDGE * values[-1]
    half: FloatArray = np.sqrt(values[known])[:, None] * vectors[:, known].T
    return half


def _solve(moments: FloatArray, target: FloatArray, noise: FloatArray) -> FloatArray:
    """Solve ``moments @ k = target`` for k >= 0 as well as the noise of the target allows."""
    half = half_of(noise)
    # half.T is a root of the covariance of the target: its inverse makes the noise white.
    white = np.linalg.lstsq(half.T, np.column_stack((moments, target)), rcond=None)[0]
    solution: FloatArray = nnls(white[:, :-1], white[:, -1])[0]
    return solution


def _jumps(pairs: Pairs, m: int) -> FloatArray:
    """Return the change of the queues when a client moves, per pair; shape (P, M)."""
    jumps = np.zeros((len(pairs), m))
    rows = np.arange(len(pairs))
    jumps[rows, pairs[:, 1]] += 1
    jumps[rows, pairs[:, 0]] -= 1
    return jumps


def _inverse_noise(
    flows: FloatArray, total: FloatArray, jumps: FloatArray, pairs: npt.NDArray[np.int64]
) -> FloatArray:
    """Return the inverse covariance of the noise of each trace, up to a common factor; shape (R, M, M)."""
    # Estimates of busy times may be below 0 where there are hardly any.
    moved = flows[pairs[:, 0], pairs[:, 1]] * np.maximum(total[:, pairs[:, 0]], 0.0)
    covariance = np.einsum("rp,pk,pl->rkl", moved, jumps, jumps)
    # Clients are conserved, so one direction has no noise; it has no signal either.
    scale = np.trace(covariance, axis1=1, axis2=2)[:, None, None]
    inverse: FloatArray = np.linalg.pinv(
        covariance / np.where(scale > 0, scale, 1), rcond=1e-6, hermitian=True
    )
    return inverse / np.where(scale > 0, scale, 1)
