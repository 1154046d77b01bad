"""Maximum likelihood of the observed response times: the search, and its intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from analyzer.estimation.fit import Fit
from analyzer.estimation.regression import ldps
from analyzer.estimation.samples import ArrivalSamples, FloatArray, IntArray

__all__ = ["Groups", "climbed", "fitted", "maximum", "start_of", "think_rates"]

LogDensity = Callable[[FloatArray], FloatArray]
"""Parameters (P,) -> logarithm of the density of each response time (I,)."""

LEAST_IDLE = 0.1
"""Idle threads per class assumed at least: a pool that was never seen idle would have them return at once."""

STEP = 1e-4
"""Of difference quotients, in logarithms of rates."""

LEAST_DENSITY = 1e-300
"""Stands for densities that are 0 in floating point: one impossible sample must not hide the others."""

MOST_CLIMBS = 40
"""Steps of a search at most."""

CONVERGED = 2.5e-5
"""A step ends a search if along it the likelihood rises at this rate, about the square of its length in
standard deviations of the parameters: 0.005 of them."""

DOUBTFUL = 1e-2
"""The same by the scores of the samples alone: should a search that seems to have ended still rise like
this, it has a wrong idea of the curvature."""

LONGEST = 1.0
"""Change of a parameter (of the logarithm of a rate) in one step at most."""

HALVINGS = 20
"""So often a step is halved that leads down."""

DAMPED = 0.2
"""Share of the curvature expected that a step has to show."""


def think_rates(samples: ArrivalSamples, threads: float) -> FloatArray:
    """Return the rate at which idle threads of each class come back, 1/s; shape (R,).

    Idle threads are shared evenly between the classes. Where admission rates were not measured, they follow
    from Little's law: requests of a class seen by others, over their mean response time.

    Source: Perez, Casale, Pacheco-Sanchez, equation 6.
    """
    kinds = len(samples.classes)
    idle = max((threads - float(samples.total.mean())) / kinds, LEAST_IDLE)
    return admission_rates(samples) / idle


def admission_rates(samples: ArrivalSamples) -> FloatArray:
    """Return admissions per second of each class, as measured or by Little's law; shape (R,)."""
    if samples.rates is not None:
        return samples.rates
    others = samples.seen.astype(float)
    others[np.arange(len(others)), samples.kind] -= 1
    times = samples.mean_per_class(samples.response_time)
    return np.where(times > 0, others.mean(axis=0) / np.where(times > 0, times, 1.0), 0.0)


class Groups:
    """Samples of one class that saw the same: they share all of the computation but the last step.

    Attributes:
        kind: Class of each group; shape (G,).
        seen: What its requests saw; shape (G, R).
        first: First sample of each group in ``order``, and the end; shape (G + 1,).
        order: Samples by group, within a group by ascending response time; shape (I,).
        times: Their response times, in that order; shape (I,).
    """

    def __init__(self, samples: ArrivalSamples) -> None:
        keys = np.column_stack([samples.kind, samples.seen])
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        inverse = inverse.reshape(-1)
        self.kind: IntArray = unique[:, 0].copy()
        self.seen: IntArray = unique[:, 1:].copy()
        self.order: IntArray = np.lexsort((samples.response_time, inverse)).astype(np.int64)
        self.first: IntArray = np.searchsorted(inverse[self.order], np.arange(len(unique) + 1)).astype(
            np.int64
        )
        self.times: FloatArray = samples.response_time[self.order]


def maximum(log_density: LogDensity, start: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the parameters of the largest likelihood; shape (P,).

    Args:
        log_density: Of every sample.
        start: Parameters to start from; logarithms, so that one step fits all.
        low: Smallest parameters to try; shape (P,).
        high: Largest; shape (P,).
    """

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        here = -float(log_density(parameters).mean())
        slope = np.empty(len(parameters))
        for p in range(len(parameters)):
            moved = parameters.copy()
            moved[p] += STEP
            slope[p] = (-float(log_density(moved).mean()) - here) / STEP
        return here, slope

    bounds = list(zip(low.tolist(), high.tolist(), strict=True))
    options = {"ftol": 1e-7, "gtol": 1e-4, "maxiter": 60}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    result: FloatArray = found.x
    return result


def climbed(
    log_density: LogDensity,
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    curvature: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the parameters of the largest likelihood, and its curvature, where every evaluation counts.

    Quasi-Newton steps (BFGS) that begin with the outer product of the samples' scores for the Hessian, which
    it is on average where the model is right (Berndt, Hall, Hall, Hausman, "Estimation and inference in
    nonlinear structural models", Annals of Economic and Social Measurement 1974). It ends where the next step
    is small compared with how sure the parameters are; that step is taken on trust. Should the scores
    disagree there, it goes on with the curvature they show.

    Args:
        log_density: Of every sample; smooth, to differences over ``STEP``.
        start: Parameters to start from; logarithms, so that one step fits all.
        low: Smallest parameters to try; shape (P,).
        high: Largest; shape (P,).
        curvature: Minus the Hessian of the likelihood to begin with, if it is known; shape (P, P).

    Returns:
        Parameters, shape (P,), and minus the Hessian as far as the search has seen it, shape (P, P).
    """
    here, values = start, log_density(start)
    scores = _scores(log_density, here, values)
    hessian = _information(scores) if curvature is None else curvature.copy()
    first = curvature is None
    for _ in range(MOST_CLIMBS):
        slope = scores.sum(axis=0)
        step = _step(hessian, slope, here, low, high)
        if float(slope @ step) <= CONVERGED:
            again = _step(information := _information(scores), slope, here, low, high)
            if float(slope @ again) <= DOUBTFUL:
                return np.clip(here + step, low, high), hessian
            hessian, step, first = information, again, True
        for _ in range(HALVINGS):
            there = log_density(here + step)
            if there.sum() >= values.sum():
                break
            step /= 2
        else:
            break
        here, values = here + step, there
        scores = _scores(log_density, here, values)
        # Powell's damping keeps the matrix positive definite where the likelihood is not concave.
        change, along = slope - scores.sum(axis=0), hessian @ step
        whole = float(step @ along)
        part = float(step @ change)
        if first and 0 < part < whole:
            # Far from the maximum scores are large, whatever the curvature: the first step tells its size.
            hessian *= part / whole
            along, whole = along * (part / whole), part
        first = False
        if part < DAMPED * whole:
            share = (1 - DAMPED) * whole / (whole - part)
            change = share * change + (1 - share) * along
        hessian += np.outer(change, change) / float(step @ change) - np.outer(along, along) / whole
    return here, hessian


def _step(
    hessian: FloatArray, slope: FloatArray, here: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return Newton's step, no longer than ``LONGEST`` and within the bounds; shape (P,)."""
    free = ~(((here <= low) & (slope < 0)) | ((here >= high) & (slope > 0)))
    step = np.zeros_like(here)
    step[free] = np.linalg.solve(hessian[np.ix_(free, free)], slope[free])
    step *= LONGEST / max(LONGEST, float(np.abs(step).max()))
    within: FloatArray = np.clip(here + step, low, high) - here
    return within


def _information(scores: FloatArray) -> FloatArray:
    """Return the outer product of scores (I, P), which is minus the Hessian on average; shape (P, P).

    Parameters that hardly any sample depends on (the odds of two equal phases) stay about where they are, as
    if they were known beforehand with a standard deviation of 1.
    """
    product: FloatArray = scores.T @ scores + np.eye(scores.shape[1])
    return product


def _scores(log_density: LogDensity, here: FloatArray, values: FloatArray) -> FloatArray:
    """Return the derivatives of the logarithm of every sample's density, by differences; shape (I, P)."""
    return np.column_stack([(log_density(here + s) - values) / STEP for s in STEP * np.eye(len(here))])


def fitted(
    log_density: LogDensity, parameters: FloatArray, to_demand: Callable[[FloatArray], FloatArray]
) -> Fit:
    """Return the fit at the maximum of a likelihood.

    A resample is answered by one Newton step from the maximum, with the outer product of the samples' scores
    for the Hessian: (Davidson and MacKinnon, "Bootstrap testing in nonlinear models", International Economic
    Review 1999). Searching again for each of hundreds of resamples would find the same to first order.

    Args:
        log_density: Of every sample.
        parameters: Where it is largest; shape (P,).
        to_demand: Maps parameters (..., P) to demands (..., R).
    """

    def resampled(counts: FloatArray) -> FloatArray:
        steps = STEP * np.eye(len(parameters))
        scores = np.column_stack(
            [(log_density(parameters + s) - log_density(parameters - s)) / (2 * STEP) for s in steps]
        )
        moves = np.linalg.solve(_information(scores), (counts @ scores).T).T
        return to_demand(parameters + np.clip(moves, -3.0, 3.0))

    return Fit(to_demand(parameters), resampled)


def start_of(samples: ArrivalSamples, cores: float) -> FloatArray:
    """Return logarithms of rates to start from; shape (R,).

    A class without samples gets the mean of the others.

    Raises:
        ValueError: All response times are 0.
    """
    demand = ldps(samples, cores).demand
    known = demand[np.isfinite(demand) & (demand > 0)]
    if not len(known):
        raise ValueError("all response times are 0")
    return -np.log(np.where(np.isfinite(demand) & (demand > 0), demand, known.mean()))
