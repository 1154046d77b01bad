"""UR, PF and FCFS: the methods that the paper compares its own with.

Each is a non-negative least-squares problem, solved through its normal equations, so that a resample only
weighs the equations anew.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from analyzer.estimation.fit import Fit
from analyzer.estimation.samples import ArrivalSamples, FloatArray, IntArray, Windows

__all__ = ["fcfs", "open_product_form", "utilization_regression"]

SATURATED = 0.999
"""Windows of a higher utilization say nothing about an open queue."""
SAME = 1e-5
"""Relative difference of proportions that is no more than rounding."""


def _solved(rows: FloatArray, right: FloatArray, unit: IntArray, units: int) -> Fit:
    """Return the non-negative solution of least squares, and of resamples of its units.

    Args:
        rows: One per equation, shape (E, R).
        right: Right-hand sides, shape (E,).
        unit: The observation each equation belongs to: drawn together; shape (E,).
        units: Number of observations.
    """
    kinds = rows.shape[1]
    known = np.any(rows > 0, axis=0)

    def resampled(counts: FloatArray) -> FloatArray:
        weights = counts[:, unit]
        squares = np.einsum("be,er,es->brs", weights, rows, rows, optimize=True)
        products = weights @ (rows * right[:, None])
        result = np.full((len(counts), kinds), np.nan)
        for b in range(len(counts)):
            # Shifted a little, for a resample may lack what tells two classes apart.
            shift = 1e-12 * np.trace(squares[b]) * np.eye(kinds)
            factor = np.linalg.cholesky(squares[b] + shift)
            result[b] = nnls(factor.T, np.linalg.solve(factor, products[b]))[0]
        return np.where(known, result, np.nan)

    return Fit(resampled(np.ones((1, units)))[0], resampled)


def utilization_regression(windows: Windows, cores: float) -> Fit:
    """Estimate demands by regression of the busy cores on throughputs (method UR).

    Args:
        windows: K windows with utilization and throughputs.
        cores: The utilization is a share of.

    Raises:
        ValueError: There is no window in which anything was busy, or nothing tells some classes apart.

    Source: utilization law; Zhang, Cherkasova, Smirni (ICAC 2007), the NNLR of Perez et al., section 3.3.
    """
    right = windows.utilization * cores
    if not np.any(right > 0) or not np.any(windows.throughput > 0):
        raise ValueError("nothing was busy, or nothing was completed, in any window")
    if alike := _alike(windows):
        raise ValueError(
            f"{', '.join(alike)} come in the same proportion in all windows, so nothing tells their demands "
            "apart: take windows with other mixes as well, or add their throughputs up to one class"
        )
    return _solved(windows.throughput, right, np.arange(len(right)), len(right))


def _alike(windows: Windows) -> list[str]:
    """Return the classes whose throughputs, put together in some proportion, are nothing but each other."""
    there = np.flatnonzero(np.any(windows.throughput > 0, axis=0))
    columns = windows.throughput[:, there]
    _, sizes, directions = np.linalg.svd(columns / np.linalg.norm(columns, axis=0))
    free = directions[np.count_nonzero(sizes > SAME * sizes[0]) :]
    return [windows.classes[r] for r in there[np.any(np.abs(free) > SAME, axis=0)]]


def open_product_form(windows: Windows, cores: float) -> Fit:
    """Estimate demands from response times and utilization of an open product-form queue (method PF).

    A window gives one equation per class, response time = demand / (1 - utilization), and the utilization
    law. Equations are divided by the means of their right-hand sides, so that all of them count alike.

    Args:
        windows: K windows with utilization, throughputs and response times.
        cores: The utilization is a share of.

    Raises:
        ValueError: There is no window with a response time in which the station was not saturated.

    Source: Liu, Wynter, Xia, Zhang (Performance Evaluation 2006), the PF of Perez et al., section 3.3.
    """
    kinds = len(windows.classes)
    usable = windows.utilization < SATURATED
    timed = np.isfinite(windows.response_time) & usable[:, None]
    if not np.any(timed):
        raise ValueError("no window that was not saturated has a response time")
    window, kind = np.nonzero(timed)
    measured = windows.response_time[window, kind]
    rows = np.zeros((len(window), kinds))
    rows[np.arange(len(window)), kind] = 1 / (1 - windows.utilization[window])
    busy = windows.utilization[usable] * cores
    weight = 1 / max(float(busy.mean()), 1e-12)
    scale = 1 / measured.mean()
    return _solved(
        np.vstack([rows * scale, windows.throughput[usable] * weight]),
        np.concatenate([measured * scale, busy * weight]),
        np.concatenate([window, np.flatnonzero(usable)]),
        len(usable),
    )


def fcfs(samples: ArrivalSamples) -> Fit:
    """Estimate demands as if one server served all that was seen in order of arrival (method FCFS).

    The response time is then the sum of the demands of all that were seen, itself included; what remains of
    the one in service is a whole demand if demands are exponential. Its mean is fitted here; the source
    maximises a likelihood of the same sum.

    Args:
        samples: I samples of R classes.

    Source: Kraft, Pacheco-Sanchez, Casale, Dawson (VALUETOOLS 2009), the FCFS of Perez et al., section 3.3.
    """
    count = len(samples.kind)
    return _solved(samples.seen.astype(float), samples.response_time, np.arange(count), count)
