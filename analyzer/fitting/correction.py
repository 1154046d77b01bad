"""Correct an approximate solver at the fitted values by a simulation there, and fit again.

The layered estimate errs by a few percent, more near saturation, and a fit bends parameters to absorb that.
What it errs by changes little over the distance between two fits, so a simulation of every trial at the
fitted values gives a correction of the predictions, (simulated - estimated), with which the next fit is right
to second order. All rounds use the same random numbers, but every trial its own: simulations with equal seeds
share their luck, and errors that all trials share do not average out. Nor would errors that all measurements
of a system share: seeds depend on the measurements, so that of many fits intervals hold as often as they say.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analyzer.fitting.data import Data
from analyzer.fitting.forward import Settings, with_settings
from analyzer.fitting.measures import long_name, value_of
from analyzer.fitting.parameters import Parameter
from mup.lqn.model import Model
from mup.lqn.refs import FigureRef
from simulator import simulate

__all__ = ["Simulated", "own_seed", "simulated_means"]

FloatArray = npt.NDArray[np.float64]

COARSEST, FINEST = 0.02, 0.002
SHARE: Final = 0.5
"""Half-width of a simulation relative to that of the measurement it is compared with."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulated figures of all trials.

    Attributes:
        means: Shape (trials, measures).
        variances: Of these means, same shape.
    """

    means: FloatArray
    variances: FloatArray


def own_seed(data: Data, seed: int) -> tuple[int, int]:
    """Return the seed of simulations for some measurements: the same for the same, another for others."""
    digest = 0
    for trial in data.trials:
        digest = zlib.crc32(np.ascontiguousarray(trial.rows).tobytes(), digest)
    return seed, digest


def simulated_means(
    model: Model,
    parameters: Sequence[Parameter],
    values: FloatArray,
    trials: Sequence[Settings],
    measures: Sequence[str],
    *,
    relative: float,
    seed: int | Sequence[int],
) -> Simulated:
    """Simulate every trial at some values of the parameters.

    Args:
        model: What the parameters belong to.
        parameters: What varies.
        values: Their values.
        trials: Configurations.
        measures: Names of the figures.
        relative: Typical relative 95 % half-width of a measurement.
        seed: Those of the trials are derived from it.

    Raises:
        SimulationError: A trial cannot be simulated, for instance because of a deadlock.
    """
    models = []
    for trial in trials:
        changed = with_settings(model, trial)
        for parameter, value in zip(parameters, values, strict=True):
            changed = parameter.apply(changed, float(value))
        models.append(changed)
    precision = min(max(SHARE * relative, FINEST), COARSEST)
    seeds = np.random.SeedSequence(seed).generate_state(len(models)).tolist()
    documents = [
        simulate(m, precision=precision, seed=own).to_json() for m, own in zip(models, seeds, strict=True)
    ]
    means = [[value_of(d, m) for m in measures] for d in documents]
    halves = [[_half_width(d, m) for m in measures] for d in documents]
    return Simulated(np.array(means), (np.array(halves) / 1.96) ** 2)


def _half_width(document: dict[str, Any], measure: str) -> float:
    ref = FigureRef.parse(long_name(measure))
    figures = document[ref.group]
    if ref.group != "cycle":
        figures = figures[ref.name]
    return float(figures[ref.figure]["ci95"] or 0.0)
