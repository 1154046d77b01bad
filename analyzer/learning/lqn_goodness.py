"""Whether a learned layered model explains traces; the test itself is ``goodness``.

Times are uncertain because the traces they were learned from scatter: simulated scatter of these traces is
followed through the last step of the fit, and with the fluid's derivatives to the traces held back.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.learning.goodness import GoodnessOfFit, NoiseOfRuns, fluctuations, goodness_of_fit, runs_of
from analyzer.learning.lqn_fit import FluidFit
from simulator.networks.inlined_process import InlinedProcess

__all__ = ["lqn_goodness"]

FloatArray = npt.NDArray[np.float64]

REPLICAS: Final = 20
EVENTS: Final = 8_000_000
"""Of all simulations of the traces held back; as many again of those to learn from."""
MOST_RUNS: Final = 50
COMPARED: Final = 20
"""Traces at most."""
SAME: Final = 0.05
"""Requests a beginning may be off whole numbers; beyond it, runs of a trace began in different states."""


def lqn_goodness(
    train: FluidFit, held: FluidFit, logs: FloatArray, *, runs: FloatArray | None, seed: int
) -> GoodnessOfFit | None:
    """Test learned times on traces they were not learned from.

    Args:
        train: The traces to learn from.
        held: Those held back.
        logs: Logarithms of the learned times, corrected; shape (P,).
        runs: Averaged in each trace held back; None if that is not known.
        seed: Same seed, same result.

    Returns:
        None if no trace begins in whole numbers of requests.
    """
    process = held.process()
    # Those of stages are drawn from whole numbers.
    begun = held.starts if held.simulated is not None else held.whole_starts(process, 1, 0)[0]
    same = np.flatnonzero((np.abs(held.starts - begun) <= SAME).all(axis=1))[:COMPARED]
    if not len(same):
        return None
    held = held.select(same)
    means, noise = _scatter(process, held, logs, seed=2 * seed)
    off = held.data - means
    runs_held = np.full(len(same), runs_of(held.data, off, noise)) if runs is None else runs[same]
    _, before = _scatter(process, train, logs, seed=2 * seed + 1)
    residuals = (before.around * math.sqrt(before.runs / runs_held.mean()) * train.weights).reshape(
        REPLICAS, -1
    )
    steps = np.linalg.lstsq(
        train.linearised(logs)[1].reshape(residuals.shape[1], -1), residuals.T, rcond=None
    )[0]
    moved = np.einsum("rhmp,pb->brhm", held.predict(logs, tangents=True)[1], steps)
    uncertain = np.concatenate((noise.around * math.sqrt(1 / REPLICAS**2), moved * math.sqrt(1 / REPLICAS)))
    clients = held.lqn.clients
    return goodness_of_fit(
        off,
        noise,
        runs=runs_held,
        runs_known=runs is not None,
        uncertain=uncertain,
        error=lambda d: np.asarray(100 * np.abs(d).sum(axis=2).mean(axis=1) / clients),
        seed=seed,
    )


def _scatter(
    process: InlinedProcess, fit: FluidFit, logs: FloatArray, *, seed: int
) -> tuple[FloatArray, NoiseOfRuns]:
    """Return the means of the columns, shape (R, H, M), and how those of a few runs scatter."""
    means, samples = fit.simulated_means(logs), fit.data.shape[1]
    base = seed * (REPLICAS + 1)
    starts = fit.whole_starts(process, REPLICAS, base)
    pilot = process.simulate(means, starts[0], dt=fit.dt, samples=samples, replications=1, seed=base)
    each = int(np.clip(EVENTS // REPLICAS // max(1, pilot.events), 1, MOST_RUNS))
    x = np.array(
        [
            fit.columns_of(
                process.simulate(
                    means,
                    starts[k % len(starts)],
                    dt=fit.dt,
                    samples=samples,
                    replications=each,
                    seed=base + 1 + k,
                ).x
            )
            for k in range(REPLICAS)
        ]
    )
    return x.mean(axis=0), fluctuations(x, each)
