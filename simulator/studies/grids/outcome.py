"""Outcome of one scenario of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulator.figures.result import Result
from simulator.machine.budget import Reached
from simulator.studies.differences import Difference
from simulator.studies.prediction import Prediction
from simulator.studies.saturation import Saturation
from simulator.studies.whatif import Scenario

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known about one scenario.

    Attributes:
        scenario: The model and what was changed.
        result: Its figures.
        difference: To the baseline; None for the baseline, or if it was not asked for.
        saturation: What is full first if there is more load; None if it was not asked for, or if the model
            cannot run under more load.
        prediction: Where a real run would land; None if it was not asked for.
        limits: Those of events or wall time that left something out, or less certain. The first outcome has
            those of scenarios of which there is nothing at all.
    """

    scenario: Scenario
    result: Result
    difference: Difference | None = None
    saturation: Saturation | None = None
    prediction: Prediction | None = None
    limits: tuple[Reached, ...] = ()

    def result_json(self) -> dict[str, Any]:
        """Return the result as ``mup simulate --json`` prints it."""
        data = self.result.to_json()
        data["saturation"] = None if self.saturation is None else self.saturation.to_json()
        return data
