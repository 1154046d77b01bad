"""How probably does a real run meet the objectives? Calibration, chance and machine together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mup.lqn.machine_speed import MachineSpeed
from simulator.figures.result import Figure, Result
from simulator.studies.grids import run_scenarios
from simulator.studies.planning.slo import Slo
from simulator.studies.prediction import Prediction, RealRun, probability_within
from simulator.studies.whatif import Scenario

__all__ = ["Outlook", "outlook"]

PRECISION = 0.01
"""Relative; of the simulations that the probability of an objective rests on."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a real run of a deployment is expected to show.

    Attributes:
        result: Of its simulation.
        prediction: Where a real run would land.
        figures: Per objective; None where there was nothing to measure.
        probabilities: Per objective, that the run meets it.
    """

    result: Result
    prediction: Prediction
    figures: tuple[Figure | None, ...]
    probabilities: tuple[float, ...]

    @property
    def probability(self) -> float:
        """That the run meets all objectives, at least: however they depend on each other (Bonferroni)."""
        return max(0.0, 1 - math.fsum(1 - p for p in self.probabilities))

    def to_json(self, slos: Sequence[Slo]) -> dict[str, Any]:
        """Return the object under ``outlook``."""
        return {
            "probability": self.probability,
            "run_seconds": self.prediction.run.seconds,
            "run_repeats": self.prediction.run.repeats,
            "figures": [
                {
                    "slo": str(slo),
                    "figure": None if figure is None else figure.to_json(),
                    "probability": probability,
                }
                for slo, figure, probability in zip(slos, self.figures, self.probabilities, strict=True)
            ],
            "prediction": self.prediction.to_json(),
        }


def outlook(
    scenario: Scenario,
    slos: Sequence[Slo],
    run: RealRun,
    *,
    precision: float = PRECISION,
    machine: MachineSpeed | None = None,
    seed: int = 0,
    workers: int | None = None,
    max_seconds: float,
) -> Outlook:
    """Predict what a real run of a deployment shows.

    A figure without a prediction interval of its own (an endpoint's, a percentile other than the 95th) varies
    with calibration, machine and model error as the cycle's figure of its kind does; chance is its own.

    Args:
        scenario: The deployment with its load.
        slos: The objectives.
        run: The real run.
        precision: Of the simulation.
        machine: The speeds its machine may have; None if nothing is known.
        seed: Of the simulation.
        workers: Simulations at once.
        max_seconds: Wall time.

    Raises:
        LimitError: The time was too short for any result.
    """
    (found,) = run_scenarios(
        [scenario],
        precision=precision,
        seed=seed,
        workers=workers,
        differences=False,
        limits=False,
        run=run,
        machine=machine,
        max_seconds=max_seconds,
    )
    assert found.prediction is not None  # noqa: S101 - a run was asked about
    figures = tuple(slo.measured(found.result) for slo in slos)
    probabilities = tuple(
        probability_within(
            found.prediction, scenario, found.result, slo.key, figure, slo.limit, at_least=slo.at_least
        )
        if figure is not None
        else float(not slo.at_least)
        for slo, figure in zip(slos, figures, strict=True)
    )
    return Outlook(found.result, found.prediction, figures, probabilities)
