"""Predict first, then measure for real, then compare: how far is the model off?

Errors are signed fractions, (predicted - measured) / measured. Predictions are all made before the
first measurement starts. Response times exclude think time on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mup.errors import UsageError
from mup.project import Project
from mup.workload.measure import Measurement, measure_load
from simulator.many import simulate_many
from simulator.result import Result
from simulator.whatif import Scenario

__all__ = [
    "Comparison",
    "Figure",
    "Figures",
    "MeasureSettings",
    "compare",
    "max_abs_error",
    "predict",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with its 95 % half-width (None if unknown)."""

    mean: float
    ci95: float | None = None

    def to_json(self) -> dict[str, float | None]:
        """Return ``{"mean", "ci95"}``."""
        return {"mean": self.mean, "ci95": self.ci95}


@dataclass(frozen=True, slots=True)
class Figures:
    """What prediction and measurement both say: seconds, cycles per second, busy share of the pool."""

    response_time: Figure
    throughput: Figure
    utilization: Mapping[str, Figure | None]

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``validate --json``."""
        return {
            "response_time": self.response_time.to_json(),
            "throughput": self.throughput.to_json(),
            "utilization": {
                task: None if figure is None else figure.to_json()
                for task, figure in self.utilization.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """One scenario, predicted and measured."""

    scenario: Scenario
    predicted: Figures
    measured: Figures
    failed_cycles: int
    foreign_cpu: float

    @property
    def response_time_error(self) -> float:
        """Signed relative error of the mean response time."""
        return relative_error(self.predicted.response_time.mean, self.measured.response_time.mean)

    @property
    def throughput_error(self) -> float:
        """Signed relative error of the throughput."""
        return relative_error(self.predicted.throughput.mean, self.measured.throughput.mean)

    def to_json(self) -> dict[str, Any]:
        """Return one scenario of ``validate --json``."""
        return {
            "change": self.scenario.to_json(),
            "predicted": self.predicted.to_json(),
            "measured": self.measured.to_json(),
            "error": {"response_time": self.response_time_error, "throughput": self.throughput_error},
            # The prediction's interval is the simulation's only: it says nothing about calibration and
            # model error, so it is not an interval that reality could be asked to fall into.
            "inside_interval": None,
            "failed_cycles": self.failed_cycles,
            "foreign_cpu": self.foreign_cpu,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSettings:
    """How each scenario is measured."""

    duration: float = 12.0
    warmup: float = 3.0
    repeats: int = 1
    seed: int = 0


def relative_error(predicted: float, measured: float) -> float:
    """Return (predicted - measured) / measured; NaN if nothing was measured."""
    return (predicted - measured) / measured if measured else math.nan


def predict(
    scenarios: Sequence[Scenario],
    *,
    precision: float,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Simulate every scenario."""
    return simulate_many([s.model for s in scenarios], precision=precision, seed=seed, progress=progress)


def measure(project: Project, scenario: Scenario, settings: MeasureSettings) -> Measurement:
    """Run one scenario for real, with fresh services.

    Raises:
        UsageError: It changes something a real run cannot (cores, speed, think times).
    """
    values = scenario.to_json()
    beyond = set(values) - {"clients", "pool", "replicas"}
    if beyond:
        raise UsageError(f"{scenario}: a real run cannot change {', '.join(sorted(beyond))}")
    return measure_load(
        project.with_any_ports(),
        clients=values.get("clients", 1),
        duration=settings.duration,
        warmup=settings.warmup,
        pools=values.get("pool", {}),
        replicas=values.get("replicas", {}),
        seed=settings.seed,
        repeats=settings.repeats,
    )


def compare(scenario: Scenario, result: Result, measurement: Measurement) -> Comparison:
    """Put one prediction and its measurement side by side.

    Raises:
        UsageError: No cycle of the measured run succeeded.
    """
    if not measurement.response_time.mean > 0:
        raise UsageError(f"nothing to compare with: no cycle succeeded ({measurement.first_error})")
    services = [t.name for t in scenario.model.tasks if t.role == "service"]
    return Comparison(
        scenario,
        _predicted(result, services),
        _measured(measurement, services),
        measurement.errors,
        measurement.cpu.foreign,
    )


def max_abs_error(comparisons: Sequence[Comparison]) -> dict[str, float]:
    """Return the largest absolute errors over all scenarios."""
    return {
        "response_time": max(abs(c.response_time_error) for c in comparisons),
        "throughput": max(abs(c.throughput_error) for c in comparisons),
    }


def _predicted(result: Result, services: Sequence[str]) -> Figures:
    cycle = result.cycle
    utilization: dict[str, Figure | None] = {}
    for name in services:
        figure = result.tasks[name].utilization
        utilization[name] = None if figure is None else Figure(figure.mean, figure.ci95)
    return Figures(
        Figure(cycle.response_time.mean, cycle.response_time.ci95),
        Figure(cycle.throughput.mean, cycle.throughput.ci95),
        utilization,
    )


def _measured(measurement: Measurement, services: Sequence[str]) -> Figures:
    utilization: dict[str, Figure | None] = {}
    for name in services:
        figure = measurement.utilization.get(name)
        utilization[name] = None if figure is None else Figure(figure)
    return Figures(
        Figure(measurement.response_time.mean, measurement.response_time.ci95),
        Figure(measurement.throughput.mean, measurement.throughput.ci95),
        utilization,
    )
