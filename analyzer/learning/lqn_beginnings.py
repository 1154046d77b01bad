"""Beginnings of traces that the columns do not tell: part of what is fitted, and of what is uncertain.

The states that look like the beginning of a trace are a polytope. It is represented by some of its corners,
those with the most requests in each state that is not determined; a beginning is a weighted mean of them. The
fluid is nearly linear in where it begins, so the weights of a trace follow from what the fluid says of its
corners: nonnegative least squares, with a prior around weights that suit all traces best. Times and weights
take turns.

What the weights can explain no longer speaks for the times: residuals and derivatives are whitened by the
covariance that uncertain weights add (a random effect per trace). What all traces have in common is one more
unknown of the fit, and intervals are as much wider as that makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog, nnls

from analyzer.learning.lqn_fit import Fit, FluidFit, residual_scale

__all__ = ["StartUncertainty", "corners", "fit_beginnings", "start_uncertainty"]

FloatArray = npt.NDArray[np.float64]

MOST_CORNERS: Final = 12
PRIOR: Final = 0.3
"""Standard deviation of the weight of a corner."""
ROUNDS: Final = 3
SUM: Final = 1e3
"""How much more than a residual it counts that weights add up to 1."""
OPEN: Final = 1e-9
"""Rounding of an orthogonal basis."""


@dataclass(frozen=True, slots=True)
class StartUncertainty:
    """What uncertain beginnings leave of a fit.

    Attributes:
        residuals, slopes: Whitened; shapes (R, H M) and (R, H M, P).
        wider: How much wider intervals are if the weights have an error in common; shape (P,).
        change: By how much the logarithms change if all traces begin nearer to the same corner, by the
            standard deviation of its weight, and nothing but the times makes up for it; shape (P,).
    """

    residuals: FloatArray
    slopes: FloatArray
    wider: FloatArray
    change: FloatArray


def corners(equations: FloatArray, found: FloatArray, size: int) -> FloatArray:
    """Return beginnings with as many requests as possible in one state each.

    Args:
        equations: What a beginning fulfils, of n states and S numbers of free threads; shape (E, n + S).
        found: A solution for each trace; shape (R, n + S).
        size: n.

    Returns:
        Shape (R, K, n).
    """
    left = np.linalg.svd(equations)[2][np.linalg.matrix_rank(equations) :]
    loose = np.flatnonzero(np.abs(left[:, :size]).max(axis=0, initial=0.0) > OPEN)
    loose = loose[np.unique(np.linspace(0, len(loose) - 1, min(len(loose), MOST_CORNERS)).astype(np.int64))]
    result = np.empty((len(found), len(loose), size))
    for r, one in enumerate(found):
        for k, state in enumerate(loose):
            most = np.zeros(equations.shape[1])
            most[state] = -1.0
            solved = linprog(most, A_eq=equations, b_eq=equations @ one, bounds=(0, None))
            result[r, k] = (solved.x if solved.status == 0 else one)[:size]
    return np.maximum(result, 0.0)


def fit_beginnings(
    everything: FluidFit, training: npt.NDArray[np.int64], possible: FloatArray, fit: Fit
) -> tuple[FluidFit, Fit]:
    """Fit beginnings and times in turns.

    Args:
        everything: All traces; beginnings of those held back are fitted to them, too.
        training: Rows of the traces that times are learned from.
        possible: Corners of the beginnings; shape (R, K, n).
        fit: Of the times, from the beginnings as they are.

    Returns:
        The traces with fitted beginnings, and the times.
    """
    for _ in range(ROUNDS):
        at = _columns(everything, fit.logs, possible)
        off, slopes = everything.select(training).linearised(fit.logs)
        scale = residual_scale(off, slopes)
        many = possible.shape[1]
        data = (everything.data * everything.weights).reshape(len(possible), -1)
        shared = _shared(at, data, scale)
        weights = np.empty(possible.shape[:2])
        for r, columns in enumerate(at):
            ridge = scale / PRIOR
            matrix = np.vstack((columns.T, ridge * np.eye(many), np.full(many, SUM)))
            target = np.concatenate((data[r], ridge * shared, [SUM]))
            weights[r] = nnls(matrix, target)[0]
        weights /= weights.sum(axis=1, keepdims=True)
        everything = replace(everything, starts=np.einsum("rk,rkn->rn", weights, possible))
        fit = replace(everything.select(training).run(fit.logs), agreeing=fit.agreeing)
    return everything, fit


def _shared(at: FloatArray, data: FloatArray, scale: float) -> FloatArray:
    """Return the weights of corners that suit all traces best, equal ones if nothing tells; shape (K,)."""
    many = at.shape[1]
    prior = (scale / PRIOR) ** 2
    squares = np.einsum("rkh,rlh->kl", at, at) + prior * np.eye(many) + SUM**2
    target = np.einsum("rkh,rh->k", at, data) + prior / many + SUM**2
    half = np.linalg.cholesky(squares)
    found = nnls(half.T, np.linalg.solve(half, target))[0]
    return np.asarray(found / found.sum())


def start_uncertainty(
    train: FluidFit, logs: FloatArray, possible: FloatArray, residuals: FloatArray, slopes: FloatArray
) -> StartUncertainty:
    """Return what is left of a fit when beginnings are uncertain.

    Args:
        train: The traces learned from.
        logs: Logarithms of the learned times; shape (P,).
        possible: Corners of their beginnings; shape (R, K, n).
        residuals: Of the fit, weighted; shape (R, H M).
        slopes: Their derivatives; shape (R, H M, P).
    """
    scale = residual_scale(residuals, slopes)
    here = (train.predict(logs)[0] * train.weights).reshape(len(possible), 1, -1)
    directions = PRIOR * (_columns(train, logs, possible) - here)
    white, turned, common = residuals.copy(), slopes.copy(), directions.copy()
    for r, direction in enumerate(directions):
        u, s, _ = np.linalg.svd(direction.T, full_matrices=False)
        less = 1.0 - 1.0 / np.sqrt(1.0 + (s / scale) ** 2)

        def whiten(values: FloatArray, u: FloatArray = u, less: FloatArray = less) -> FloatArray:
            return np.asarray(values - (u * less) @ (u.T @ values))

        white[r], turned[r], common[r] = whiten(residuals[r]), whiten(slopes[r]), whiten(direction.T).T
    jacobian = turned.reshape(-1, turned.shape[2])
    shared = common.transpose(0, 2, 1).reshape(len(jacobian), -1)
    alone = np.diag(np.linalg.pinv(jacobian.T @ jacobian, hermitian=True))
    both = np.concatenate((jacobian, shared), axis=1)
    prior = np.diag([0.0] * jacobian.shape[1] + [scale**2] * shared.shape[1])
    together = np.diag(np.linalg.pinv(both.T @ both + prior, hermitian=True))[: jacobian.shape[1]]
    wider = np.sqrt(np.maximum(together / np.maximum(alone, 1e-300), 1.0))
    raw = slopes.reshape(-1, slopes.shape[2])
    changes = np.linalg.lstsq(raw, directions.transpose(0, 2, 1).reshape(len(raw), -1), rcond=1e-12)[0]
    return StartUncertainty(white, turned, wider, np.abs(changes).max(axis=1))


def _columns(fit: FluidFit, logs: FloatArray, possible: FloatArray) -> FloatArray:
    """Return the weighted columns of every corner; shape (R, K, H M)."""
    found = [
        (replace(fit, starts=possible[:, k]).predict(logs)[0] * fit.weights).reshape(len(possible), -1)
        for k in range(possible.shape[1])
    ]
    return np.stack(found, axis=1)
