"""How wrong is the fluid at the learned times, and which times are left when that is taken off?

A fluid is too optimistic near saturation (``docs/explanation/fluid.md``); a fit makes up for that by bending
the times. Here the model with the learned times is simulated from the same beginnings as the data. The
difference between simulation and fluid, the bias at these times, is taken off the data, and the fit repeated.
In the fixed point the *simulated* model fits the data. This is indirect inference (Gourieroux, Monfort,
Renault, "Indirect inference", 1993) with the fluid as the auxiliary model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.learning.lqn_fit import FluidFit
from simulator.inlined_process import InlinedProcess

__all__ = ["Correction", "correct", "misplaced", "simulated", "simulated_states"]

FloatArray = npt.NDArray[np.float64]

ROUNDS: Final = 3
EVALUATIONS: Final = 6
REPLICATIONS: Final = 100
EVENTS: Final = 20_000_000
"""Of one simulation of all traces, about: fewer replications if there would be more."""
FEWEST: Final = 5


@dataclass(frozen=True, slots=True)
class Correction:
    """Where the corrections ended.

    Attributes:
        logs: Logarithms of the learned means with the smallest simulated error on the training traces;
            shape (P,).
        before, after: Error of the simulated model on the training traces, without and with correction.
        rounds: Corrections that were computed.
        simulated: Columns of the simulated model at the end, of all traces; shape (R, H, M).
        simulated_before: The same without correction.
    """

    logs: FloatArray
    before: float
    after: float
    rounds: int
    simulated: FloatArray
    simulated_before: FloatArray


def misplaced(predicted: FloatArray, observed: FloatArray, clients: float) -> float:
    """Return the mean absolute error, summed over the columns and divided by the clients (section 4.2.2)."""
    return float(np.abs(predicted - observed).sum(axis=2).mean() / clients)


def simulated(fit: FluidFit, logs: FloatArray, seed: int) -> FloatArray:
    """Return what the columns are in the simulated model, averaged; shape (R, H, M)."""
    process = InlinedProcess(fit.lqn)
    starts = np.array([process.whole(row) for row in fit.starts])
    samples = fit.data.shape[1]
    found = simulated_states(process, fit.means(logs), starts, dt=fit.dt, samples=samples, seed=seed)
    return np.asarray(found @ fit.columns.counts.T)


def simulated_states(
    process: InlinedProcess, means: FloatArray, starts: FloatArray, *, dt: float, samples: int, seed: int
) -> FloatArray:
    """Return mean requests per state, of as many replications as a correction affords; shape (R, H, n).

    Args:
        process: Of the inlined model; n states.
        means: Of all its times, seconds.
        starts: Whole requests per state at time 0; shape (R, n).
        dt: Seconds between samples.
        samples: H.
        seed: Of the simulation.
    """
    pilot = process.simulate(means, starts, dt=dt, samples=samples, replications=1, seed=seed)
    count = int(np.clip(EVENTS // max(1, pilot.events), FEWEST, REPLICATIONS))
    return process.simulate(means, starts, dt=dt, samples=samples, replications=count, seed=seed).x


def correct(
    everything: FluidFit,
    training: npt.NDArray[np.int64],
    logs: FloatArray,
    *,
    seed: int,
    rounds: int = ROUNDS,
) -> Correction:
    """Take the bias of the fluid off the learned times.

    Args:
        everything: All traces, those held back included: they are simulated, but not fitted.
        training: Rows of the traces to fit.
        logs: Logarithms of the times learned with the fluid alone; shape (P,).
        seed: Every round simulates with the same seed, so that rounds differ by the times alone.
        rounds: How often.
    """
    train = everything.select(training)
    weights = train.weights

    def cost(columns: FloatArray) -> float:
        return float((((columns[training] - train.data) * weights) ** 2).sum())

    first = simulated(everything, logs, seed)
    best, best_columns = logs, first
    at, columns = logs, first
    done = 0
    clients = everything.lqn.clients
    for _ in range(rounds):
        bias = columns[training] - train.predict(at)[0]
        at = replace(train, data=train.data - bias).run(at, EVALUATIONS).logs
        columns = simulated(everything, at, seed)
        done += 1
        if cost(columns) >= cost(best_columns):
            break
        best, best_columns = at, columns
    return Correction(
        logs=best,
        before=misplaced(first[training], train.data, clients),
        after=misplaced(best_columns[training], train.data, clients),
        rounds=done,
        simulated=best_columns,
        simulated_before=first,
    )
