"""Error of the fluid at the learned times, and the times that remain without it.

A fluid is too optimistic near saturation (``docs/explanation/fluid.md``); a fit makes up for that by bending
the times. Here the model with the learned times is simulated from the same beginnings as the data. What is
left of the data is explained by a change of the times, one step of Gauss and Newton with the fluid's
derivatives, and the changed model simulated again. In the fixed point the *simulated* model fits the data,
whatever the fluid believes: its derivatives only say which way to go. This is indirect inference (Gourieroux,
Monfort, Renault, "Indirect inference", 1993) with the fluid as the auxiliary model.

Near saturation the fluid may react twice as much as the model does, and steps would be half as long as they
should be. So what is left of a step when it has been made tells how long the next ones have to be (Broyden,
"A class of methods for solving nonlinear simultaneous equations", 1965).

A simulation is of few runs, so times scatter from round to round. Every round has random numbers of its own,
and the mean of the last ones is the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analyzer.learning.lqn_fit import VAGUE, FluidFit, jackknife_spread, residual_scale
from simulator.networks.inlined_process import InlinedProcess

__all__ = ["Correction", "correct", "misplaced", "simulated", "simulated_states"]

FloatArray = npt.NDArray[np.float64]

ROUNDS: Final = 6
AVERAGED: Final = 3
"""Of the rounds, the last ones; the first ones go the way."""
FAR: Final = 5.0
"""Standard errors; what is left after a shorter step is mostly noise."""
FARTHEST: Final = 0.7
"""A logarithm changes by no more in a round: derivatives say nothing about what is twice as long."""
REPLICATIONS: Final = 100
EVENTS: Final = 15_000_000
"""Of one simulation of all traces, about: fewer replications if there would be more."""
DRAWS: Final = 5
"""Simulations that begin in other stages each, where times have stages."""
FEWEST: Final = 5
"""Replications; fewer tell nothing of their own scatter."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Where the corrections ended.

    Attributes:
        logs: Logarithms of the learned means; shape (P,). Those of the fluid alone, if the model simulated
            with them has a smaller error on the training traces.
        before, after: Error of the simulated model on the training traces, without and with correction.
        simulated: Columns of the simulated model at the end, of all traces; shape (R, H, M).
        simulated_before: The same without correction.
        residuals: What the last rounds had left of the training traces, weighted; shape (training, H M).
        slopes: Derivatives of the residuals as the fluid has them; shape (training, H M, P).
        response: What becomes of a step with these derivatives in the end; shape (P, P).
    """

    logs: FloatArray
    before: float
    after: float
    simulated: FloatArray
    simulated_before: FloatArray
    residuals: FloatArray
    slopes: FloatArray
    response: FloatArray


def misplaced(predicted: FloatArray, observed: FloatArray, clients: float) -> float:
    """Return the mean absolute error, summed over the columns and divided by the clients (section 4.2.2)."""
    return float(np.abs(predicted - observed).sum(axis=2).mean() / clients)


def simulated(
    fit: FluidFit,
    logs: FloatArray,
    seed: int,
    *,
    events: int = EVENTS,
    replications: int = REPLICATIONS,
) -> FloatArray:
    """Return what the columns are in the simulated model, averaged; shape (R, H, M).

    Args:
        fit: The model and the traces.
        logs: Logarithms of the learned times; shape (P,).
        seed: Same seed, same result.
        events: To simulate, about.
        replications: At most, of each trace.
    """
    process = fit.process()
    starts = fit.whole_starts(process, DRAWS, seed)
    found = [
        simulated_states(
            process,
            fit.simulated_means(logs),
            start,
            dt=fit.dt,
            samples=fit.data.shape[1],
            seed=seed * len(starts) + draw,
            events=events / len(starts),
            replications=replications / len(starts),
        )
        for draw, start in enumerate(starts)
    ]
    return fit.columns_of(np.mean(found, axis=0))


def simulated_states(
    process: InlinedProcess,
    means: FloatArray,
    starts: FloatArray,
    *,
    dt: float,
    samples: int,
    seed: int,
    events: float = EVENTS,
    replications: float = REPLICATIONS,
) -> FloatArray:
    """Return mean requests per state, of as many replications as can be afforded; shape (R, H, n).

    Args:
        process: Of the inlined model; n states.
        means: Of all its times, seconds.
        starts: Whole requests per state at time 0; shape (R, n).
        dt: Seconds between samples.
        samples: H.
        seed: Of the simulation.
        events: To simulate, about.
        replications: At most.
    """
    pilot = process.simulate(means, starts, dt=dt, samples=samples, replications=1, seed=seed)
    count = int(max(min(events / max(1, pilot.events), replications), FEWEST))
    return process.simulate(means, starts, dt=dt, samples=samples, replications=count, seed=seed).x


def correct(
    everything: FluidFit, training: npt.NDArray[np.int64], logs: FloatArray, *, seed: int
) -> Correction:
    """Take the bias of the fluid off the learned times.

    Args:
        everything: All traces, those held back included: they are simulated, but not fitted.
        training: Rows of the traces to fit.
        logs: Logarithms of the times learned with the fluid alone; shape (P,).
        seed: Same seed, same result.
    """
    train = everything.select(training)
    low, high = train.bounds
    clients = everything.lqn.clients

    def left(columns: FloatArray) -> FloatArray:
        off = (columns[training] - train.data) * train.weights
        return np.asarray(off.reshape(len(training), -1))

    at = before = logs
    slopes = train.linearised(logs)[1]
    last_step = np.zeros(len(logs))
    # Derivatives of a step by where it begins; if those of the fluid were right, every step went all the way.
    reaction = -np.eye(len(logs))
    places: list[FloatArray] = []
    remains: list[FloatArray] = []
    first = columns = simulated(everything, logs, seed * (ROUNDS + 1))
    for number in range(ROUNDS):
        if number > 0:
            columns = simulated(everything, at, seed * (ROUNDS + 1) + number)
        remains.append(left(columns))
        step = _step(remains[-1], slopes)
        move = at - before
        if move @ move > FAR**2 * (jackknife_spread(remains[-1], slopes) ** 2).sum():
            reaction += np.outer(step - last_step - reaction @ move, move) / (move @ move)
        before, last_step = at, step
        longer = np.linalg.solve(reaction, -step)
        at = np.clip(at + np.clip(longer, -FARTHEST, FARTHEST), low, high)
        places.append(at)
    averaged = np.mean(places[-AVERAGED:], axis=0)
    last = simulated(everything, averaged, seed * (ROUNDS + 1) + ROUNDS)
    if (left(last) ** 2).sum() > (left(first) ** 2).sum():
        averaged, last = logs, first
    return Correction(
        logs=averaged,
        before=misplaced(first[training], train.data, clients),
        after=misplaced(last[training], train.data, clients),
        simulated=last,
        simulated_before=first,
        residuals=np.mean(remains[-AVERAGED:], axis=0),
        slopes=slopes,
        response=np.asarray(-np.linalg.inv(reaction), dtype=np.float64),
    )


def _step(residuals: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the change of the logarithms that leaves least of the residuals.

    A direction the traces do not tell stays where it is: what changes a logarithm by ``VAGUE`` counts as much
    as the scatter of the residuals.
    """
    jacobian = slopes.reshape(-1, slopes.shape[2])
    ridge = (residual_scale(residuals, slopes) / VAGUE) ** 2
    squares = jacobian.T @ jacobian + ridge * np.eye(jacobian.shape[1])
    step = np.linalg.solve(squares, -jacobian.T @ residuals.ravel())
    return np.asarray(step)
