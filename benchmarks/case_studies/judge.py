"""Errors of a step's predictions as the papers define them, and as users would."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "CYCLE_GOAL",
    "GOALS",
    "LIGHT",
    "LIGHT_CYCLE_GOAL",
    "RESPONSE_GOAL",
    "RESPONSE_GOAL_OF_CYCLE",
    "UTILIZATION_GOAL",
    "Judged",
    "judge",
    "one_run",
]

TIE = 0.03
"""Services whose utilizations differ by less are the bottleneck together."""
LIGHT = 0.5
"""Below this utilization nothing is contended."""
CYCLE_GOAL, LIGHT_CYCLE_GOAL = 0.05, 0.01
"""Relative error of the cycle time; the second one where every service is below `LIGHT`."""
RESPONSE_GOAL, RESPONSE_GOAL_OF_CYCLE = 0.10, 0.02
"""Relative error of the response time, or its error as a part of the cycle, whichever is larger."""
UTILIZATION_GOAL = 0.05
"""Error of the utilization of each service."""
GOALS = ("cycle", "response", "utilization", "bottleneck")
"""What is asked of a step."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One step, predicted and measured.

    Attributes:
        step: The prediction, as stored.
        measured: The real run.
        cycle: Relative error of the cycle time, think time included: the papers' response time. Both sides
            have the think times of the run, for users draw how often they think.
        response: Relative error of the response time without think time.
        throughput: Relative error of the cycles per second; None if none was completed in the window.
        utilization: Predicted minus measured, by service.
        most_utilized: The service that was utilized most.
        bottleneck: Whether the service predicted to be the most utilized was, or was within `TIE` of it.
        speed: Of the machine in the run, relative to the exploration; None if not known.
        corrected: The same run beside what is predicted for a machine of that speed.
    """

    step: Mapping[str, Any]
    measured: Mapping[str, Any]
    cycle: float
    response: float
    throughput: float | None
    utilization: Mapping[str, float]
    most_utilized: str
    bottleneck: bool
    speed: float | None = None
    corrected: Judged | None = None

    @property
    def void(self) -> str:
        """What disturbed all runs of the step, or ""."""
        return str(self.measured["disturbance"]["void"] or "")

    @property
    def light(self) -> bool:
        """Whether every service was predicted to be utilized by less than half."""
        return all(figure["mean"] < LIGHT for figure in self.step["utilization"].values())

    @property
    def missed(self) -> list[str]:
        """Which of the goals are missed: cycle, response, utilization, bottleneck."""
        seen = self.measured["response_time"]["mean"]
        difference = abs(self.response) * seen
        found = {
            "cycle": abs(self.cycle) > (LIGHT_CYCLE_GOAL if self.light else CYCLE_GOAL),
            "response": difference
            > max(RESPONSE_GOAL * seen, RESPONSE_GOAL_OF_CYCLE * (seen + self.measured["think"])),
            "utilization": max(map(abs, self.utilization.values()), default=0.0) > UTILIZATION_GOAL,
            "bottleneck": not self.bottleneck,
        }
        return [name for name in GOALS if found[name]]

    @property
    def missed_beyond_chance(self) -> list[str]:
        """Those of them whose error is larger than what chance does to one run, 19 times of 20."""
        seen = self.measured["response_time"]["mean"]
        time = abs(self.response) * seen <= _one_run(self.step, self.step["response_time"])
        busy = all(
            abs(error) <= max(UTILIZATION_GOAL, _one_run(self.step, self.step["utilization"][name]))
            for name, error in self.utilization.items()
        )
        likely = {"cycle": time, "response": time, "utilization": busy, "bottleneck": False}
        return [name for name in self.missed if not likely[name]]


def one_run(step: Mapping[str, Any], figure: str) -> float:
    """Return how far chance moves a single run of a step from its mean, 19 times of 20; relative.

    Args:
        step: As predicted.
        figure: ``cycle_time``, ``response_time`` or ``throughput``.
    """
    mean: float = step[figure]["mean"]
    return _one_run(step, step[figure]) / mean if mean else math.inf


def _one_run(step: Mapping[str, Any], figure: Mapping[str, float]) -> float:
    """Return the same in the unit of the figure."""
    # The mean of the repeats of a rehearsal is known that many times better than one of them.
    return figure["ci95"] * math.sqrt(step["repeats"] + 1)


def judge(
    steps: Sequence[Mapping[str, Any]],
    measured: Mapping[int, Mapping[str, Any]],
    corrected: Mapping[int, Mapping[str, Any]] | None = None,
) -> list[Judged]:
    """Compare steps with their real runs; those without a successful cycle are left out.

    Args:
        steps: The predictions.
        measured: Records of real runs by number of the step.
        corrected: What is predicted for the machine's speed in these runs; of other runs it does not count.
    """
    found = []
    for step in steps:
        record = measured.get(step["step"])
        if record is None or not record["cycles"]:
            continue
        judged = _judged(step, record)
        again = (corrected or {}).get(step["step"])
        if again is not None and again["run"] == record["created"]:
            judged = replace(judged, speed=again["speed"], corrected=_judged(again["step"], record))
        found.append(judged)
    return found


def _judged(step: Mapping[str, Any], record: Mapping[str, Any]) -> Judged:
    seen, expected = record["response_time"]["mean"], step["response_time"]["mean"]
    rate, expected_rate = record["throughput"]["mean"], step["throughput"]["mean"]
    busy = {name: share for name, share in record["utilization"].items() if share is not None}
    errors = {
        name: figure["mean"] - busy[name] for name, figure in step["utilization"].items() if name in busy
    }
    return Judged(
        step,
        record,
        (expected - seen) / (seen + record["think"]),
        (expected - seen) / seen,
        (expected_rate - rate) / rate if rate > 0 else None,
        errors,
        max(busy, key=lambda name: busy[name]),
        busy[step["bottleneck"]] >= max(busy.values()) - TIE,
    )
