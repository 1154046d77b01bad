"""By how much do figures of a model move if it is changed? Equally long runs with and without the change.

They are made in pairs, with common random numbers, and the k-th pair has the k-th replicate of the
calibration, and one of the speeds the machine may have: how much pairs differ is chance, calibration error
and machine together.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from mup.lqn.machine_speed import MachineSpeed, on_machine_of_speed
from mup.lqn.model import Model
from mup.lqn.uncertainty import apply
from mup.statistics.student import t_quantile
from simulator.api import Progress, simulate
from simulator.figures.result import Figure
from simulator.machine.budget import Budget
from simulator.preparing import Load, at_load
from simulator.studies.calibration_spread import load_of
from simulator.studies.differences import replication_seeds
from simulator.studies.parallel import run_jobs
from simulator.studies.planning.slo import Slo

__all__ = ["Edit", "PairedRuns", "Values"]

PAIRS: Final = 10
PILOT: Final = 0.03
"""Relative half-width of the run that says how long pairs are."""

Edit = Callable[[Model], Model]
Values = tuple[tuple[float, ...], ...]
"""Per objective, its figure in every run."""


class PairedRuns:
    """Equally long runs of changed models, the k-th of each with the k-th seed and calibration.

    Args:
        model: Calibrated, with its load and deployment; it is simulated once, to say how long pairs are.
        slos: Whose figures are meant.
        machine: The speeds its machine may have; None: the one it has in the model.
        seed: Of all simulations.
        workers: Simulations at once; None = one per core.
        budget: Of all simulations.

    Raises:
        UncalibratedError: The model lacks numbers.
        LimitError: The budget is used up.
        SimulationError: The model cannot run under its load.
    """

    def __init__(
        self,
        model: Model,
        slos: Sequence[Slo],
        *,
        machine: MachineSpeed | None = None,
        seed: int = 0,
        workers: int | None = None,
        budget: Budget,
    ) -> None:
        pilot = simulate(model, precision=PILOT, seed=seed, budget=budget)
        self._slos, self._workers, self._budget = tuple(slos), workers, budget
        self._seeds = replication_seeds(seed, PAIRS)
        self._horizon = pilot.simulated_seconds
        known = model.uncertainty.replicates if model.uncertainty is not None else ()
        self._calibrated = len(known) >= PAIRS
        self._models = [apply(model, known[k]) if self._calibrated else model for k in range(PAIRS)]
        self._varies = self._calibrated
        if machine is not None:
            self._varies = True
            speeds = _speeds(machine, seed)
            self._models = [
                on_machine_of_speed(one, machine.processors, speed)
                for one, speed in zip(self._models, speeds, strict=True)
            ]
        # Processor times are those of one load: a change moves that little.
        self._load: Load = load_of(model, pilot)

    def figures(self, edits: Sequence[Edit | None]) -> list[Values]:
        """Return the figures of changed models.

        Raises:
            LimitError: The budget is used up.
            SimulationError: One of them cannot run.
        """
        jobs = [partial(self._run, edit, k) for edit in edits for k in range(PAIRS)]
        found = run_jobs(jobs, workers=self._workers)
        each = [found[i * PAIRS : (i + 1) * PAIRS] for i in range(len(edits))]
        return [tuple(zip(*runs, strict=True)) for runs in each]

    def _run(self, edit: Edit | None, number: int, progress: Callable[[Progress], None]) -> tuple[float, ...]:
        model = self._models[number] if edit is None else edit(self._models[number])
        result = simulate(
            at_load(model, self._load),
            horizon=self._horizon,
            many_beginnings=True,
            seed=self._seeds[number],
            budget=self._budget,
            progress=progress,
        )
        figures = (slo.measured(result) for slo in self._slos)
        return tuple(0.0 if figure is None else figure.mean for figure in figures)

    def figure(self, values: Sequence[float]) -> Figure:
        """Return the mean of runs, with the interval of that."""
        mean, variance = _moments(values)
        return Figure(mean, t_quantile(PAIRS - 1) * math.sqrt(variance / PAIRS))

    def difference(self, before: Sequence[float], after: Sequence[float]) -> Figure:
        """Return the mean difference of pairs, with where the difference of the real system is expected."""
        mean, variance = _moments([b - a for a, b in zip(before, after, strict=True)])
        # The real system is one more draw of calibration and machine, not the mean of many.
        draws = 1 + 1 / PAIRS if self._varies else 1 / PAIRS
        return Figure(mean, t_quantile(PAIRS - 1) * math.sqrt(variance * draws))


def _moments(values: Sequence[float]) -> tuple[float, float]:
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)


def _speeds(machine: MachineSpeed, seed: int) -> list[float]:
    """Return a speed for every pair, equally likely ones, in random order."""
    places = [2 * (k + 0.5) / PAIRS - 1 for k in range(PAIRS)]  # of a distribution around 0, from -1 to 1
    logarithms = [
        machine.reach * place
        if machine.reach
        else machine.sd * math.copysign(t_quantile(machine.freedom, abs(place)), place)
        for place in places
    ]
    random.Random(seed).shuffle(logarithms)
    return [math.exp(one) for one in logarithms]
