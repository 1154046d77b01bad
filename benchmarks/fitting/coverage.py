"""Coverage of 95 % intervals: many repetitions of one experiment of Table 1.

Each repetition is an independent simulation. A coverage estimated from n of them has a standard error of
sqrt(0.05 x 0.95 / n): 1.5 % for 200. Beside ours: the paper's way with R = I, taking all measures for
independent and equally sure.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares
from scipy.special import fdtri, stdtrit

from analyzer.fitting.data import Data
from analyzer.fitting.fit import Options, Wanted, fit
from analyzer.fitting.forward import forward_of
from analyzer.fitting.parameters import parameter
from analyzer.fitting.predictions import predict
from mup.lqn import Model

from .measurements import measure
from .systems import NODES, TRUE_DEMANDS, queueing
from .tables import MEASURES, clients

PREDICTED = 15
"""Clients of the configuration that is predicted; 1 to 10 are measured."""


def coverage(repetitions: int, seed: int) -> None:
    """Print the coverage of parameters and predictions, from batches and from single rows."""
    names = [*NODES, "all three (box)", "all three (ellipsoid)", *(f"predicted {m}" for m in MEASURES)]
    figures = [*MEASURES]
    for think in (0.0, 10.0):
        model = queueing(think=think)
        truth = forward_of(model, [], np.zeros(0), clients([PREDICTED]), figures).means(np.zeros(0))[0]
        hits: dict[str, list[list[bool]]] = {"batches": [], "single rows": [], "R = I": []}
        for repetition in range(repetitions):
            data = measure(
                model, clients(range(1, 11)), MEASURES, seconds=10_000, batches=20, warmup=200.0,
                seed=seed + repetition,
            )  # fmt: skip
            single = _averaged(data)
            for kind, rows in (("batches", data), ("single rows", single)):
                hits[kind].append(_fitted(model, rows, truth, figures))
            hits["R = I"].append(_naive(model, single, truth))
        print(
            f"coverage of 95 % intervals, {repetitions} repetitions of 10 trials of 10000 s, Z = {think:g}:"
        )
        print(f"  {'':36s}" + "".join(f"{kind:>14s}" for kind in hits))
        shares = {kind: np.mean(np.array(found, dtype=float), axis=0) for kind, found in hits.items()}
        for index, name in enumerate(names):
            print(f"  {name:36s}" + "".join(f"{share[index]:14.3f}" for share in shares.values()))


def _averaged(data: Data) -> Data:
    """Return the same measurements without batches: one row per trial."""
    trials = tuple(
        type(t)(t.settings, t.means[None, :], np.full((1, len(data.measures)), np.nan), t.weights[:1])
        for t in data.trials
    )
    return Data(data.measures, trials)


def _fitted(model: Model, data: Data, truth: np.ndarray, figures: list[str]) -> list[bool]:
    wanted = [Wanted(parameter(f"demand.{n}.serve")) for n in NODES]
    found = fit(model, data, wanted, Options())
    sure = found.confidence
    if sure is None:
        raise ValueError(data)
    ((*predictions,),) = predict(found, clients([PREDICTED]), figures)
    return [
        *(i.contains(t) for i, t in zip(found.intervals, TRUE_DEMANDS, strict=True)),
        all(i.contains(t) for i, t in zip(found.joint, TRUE_DEMANDS, strict=True)),
        sure.ellipsoid.contains(np.array(TRUE_DEMANDS)),
        *(p.interval.contains(t) for p, t in zip(predictions, truth, strict=True)),
    ]


def _naive(model: Model, data: Data, truth: np.ndarray) -> list[bool]:
    """Plain least squares, intervals from the mean squared residual: R = I."""
    parameters, scales = [parameter(f"demand.{n}.serve") for n in NODES], np.array(TRUE_DEMANDS)
    trials = [t.settings for t in data.trials]
    forward = forward_of(model, parameters, scales, trials, MEASURES)
    measured = np.array([t.means for t in data.trials])
    found = least_squares(
        lambda x: (forward.means(x) - measured).ravel(),
        scales,
        jac=lambda x: forward.sensitivities(x)[1].reshape(-1, 3),
    )
    left = measured.size - 3
    covariance = 2 * found.cost / left * np.linalg.inv(found.jac.T @ found.jac)
    t = stdtrit(left, 0.975)
    halves = t * np.sqrt(np.diag(covariance))
    bonferroni = stdtrit(left, 1 - 0.025 / 3) * np.sqrt(np.diag(covariance))
    away = found.x - np.array(TRUE_DEMANDS)
    ellipsoid = float(away @ np.linalg.solve(covariance, away)) <= 3 * fdtri(3, left, 0.95)
    there = forward_of(model, parameters, scales, clients([PREDICTED]), MEASURES)
    means, slopes = there.sensitivities(found.x)
    spread = t * np.sqrt(np.einsum("mk,kl,ml->m", slopes[0], covariance, slopes[0]))
    return [
        *(np.abs(away) <= halves).tolist(),
        bool(np.all(np.abs(away) <= bonferroni)),
        bool(ellipsoid),
        *(np.abs(means[0] - truth) <= spread).tolist(),
    ]
