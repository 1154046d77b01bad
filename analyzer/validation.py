"""Validate a model: predict, record the prediction, measure, then compare.

Errors are signed fractions, (predicted - measured) / measured; of utilizations predicted - measured.
Predictions are all made, and written to a file, before the first measurement starts. Response times exclude
think time on both sides.

The machine's speed during a measurement is known from its monitor (or the probes before and after it), that
of the calibration from the model. *Corrected* figures are predicted again for cores of the measured speed:
what remains is the error of the model, not of the machine.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from analyzer.host.machine_speed import (
    Known,
    age,
    host_slowness,
    left_uncertain,
    machine_speed,
    relative_speed,
)
from analyzer.host.names import HOST
from mup.errors import UsageError
from mup.lqn.edits import with_faster_machines
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.model import Model, Processor
from mup.project import Project
from mup.whole_file import write_whole
from mup.workload.measure import measure_load
from mup.workload.measurement import Measurement
from mup.workload.speed_monitor import monitor_load
from simulator.studies.grids import Outcome, run_scenarios
from simulator.studies.prediction import Missing, Prediction, RealRun
from simulator.studies.whatif import Scenario

__all__ = [
    "Comparison",
    "Figure",
    "Figures",
    "MeasureSettings",
    "compare",
    "correct",
    "default_prediction_file",
    "host_slowness",
    "judged_error",
    "max_abs_error",
    "measure",
    "predict",
    "relative_speed",
    "save_predictions",
    "speed_ratio",
    "speed_until",
    "watched",
]

FORMAT: Final = "mup-prediction/1"
FIGURES: Final = ("response_time", "p95", "throughput")
MEDIAN_FROM: Final = 3
"""Runs from which on the measured figure is their median: one disturbed run does not move it."""
SAME_SPEED: Final = 1e-3
"""A machine whose speed differs by less is the same: nothing needs to be predicted again."""


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
    p95: Figure
    throughput: Figure
    utilization: Mapping[str, Figure | None]

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``validate --json``."""
        return {
            "response_time": self.response_time.to_json(),
            "p95": self.p95.to_json(),
            "throughput": self.throughput.to_json(),
            "utilization": {
                task: None if figure is None else figure.to_json()
                for task, figure in self.utilization.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """One prediction beside the measurement.

    Attributes:
        predicted: The simulated figures.
        prediction: Where the real run was expected.
        measured: What it showed.
    """

    predicted: Figures
    prediction: Prediction | None
    measured: Figures

    def error(self, name: str) -> float:
        """Return the signed relative error of ``response_time``, ``p95`` or ``throughput``."""
        predicted: float = getattr(self.predicted, name).mean
        measured: float = getattr(self.measured, name).mean
        return (predicted - measured) / measured

    @property
    def utilization_errors(self) -> dict[str, float]:
        """Predicted minus measured utilization of the services where both are known."""
        pairs = {
            t: (figure, self.measured.utilization.get(t)) for t, figure in self.predicted.utilization.items()
        }
        return {t: p.mean - m.mean for t, (p, m) in pairs.items() if p is not None and m is not None}

    @property
    def errors(self) -> dict[str, Any]:
        """All errors, as JSON."""
        return {
            **{name: self.error(name) for name in FIGURES},
            "utilization": self.utilization_errors,
        }

    @property
    def inside(self) -> dict[str, Any]:
        """Per figure, whether the measured one is in its prediction interval.

        None where there is no such interval: one that does not know the error of the calibration is none.
        """
        found = self.prediction
        if found is None or Missing("calibration") in found.missing:
            return {"response_time": None, "p95": None, "throughput": None, "utilization": {}}
        measured = self.measured
        return {
            "response_time": found.response_time.contains(measured.response_time.mean),
            "p95": found.p95.contains(measured.p95.mean),
            "throughput": found.throughput.contains(measured.throughput.mean),
            "utilization": {
                task: interval.contains(figure.mean)
                for task, interval in found.utilization.items()
                if (figure := measured.utilization.get(task)) is not None
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One scenario, predicted and measured.

    Attributes:
        scenario: What was changed.
        raw: The prediction as it was written down.
        corrected: The prediction for a machine of the measured speed; None if a speed is not known. Its
            interval has what is uncertain about that speed, where the raw one has all that the machine's
            speed may be.
        speed: Of the machine while it was measured, relative to the calibration; None if not known.
        monitored: Whether ``speed`` is by monitors, not by probes before and after.
        failed_cycles: Of the clients; in no figure.
        foreign_cpu: Share of the machine used by other programs.
        runs: Valid runs in the measured figures.
        void: Why none of them is valid, or "".
        warnings: What else a reader must know about the measurement.
    """

    scenario: Scenario
    raw: Judgement
    corrected: Judgement | None = None
    speed: float | None = None
    monitored: bool = False
    failed_cycles: int = 0
    foreign_cpu: float = 0.0
    runs: int = 1
    void: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def best(self) -> Judgement:
        """The corrected judgement if there is one."""
        return self.corrected or self.raw

    def to_json(self) -> dict[str, Any]:
        """Return one scenario of ``validate --json``."""
        raw, corrected = self.raw, self.corrected
        return {
            "change": self.scenario.to_json(),
            "predicted": raw.predicted.to_json(),
            "measured": raw.measured.to_json(),
            "error": raw.errors,
            "prediction": None if raw.prediction is None else raw.prediction.to_json(),
            "inside_interval": raw.inside["response_time"],
            "inside": raw.inside,
            "speed": self.speed,
            "corrected": None
            if corrected is None
            else {
                "predicted": corrected.predicted.to_json(),
                "error": corrected.errors,
                "prediction": None if corrected.prediction is None else corrected.prediction.to_json(),
                "inside_interval": corrected.inside["response_time"],
                "inside": corrected.inside,
            },
            "runs": self.runs,
            "void": self.void or None,
            "failed_cycles": self.failed_cycles,
            "foreign_cpu": self.foreign_cpu,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSettings:
    """How each scenario is measured.

    Attributes:
        duration: Seconds of one window.
        warmup: Seconds of load before it.
        repeats: Runs, each with fresh services.
        retries: How often a void run is done again.
        until_width: Go on until the half-width of the mean response time is this share of it; None = no.
        max_seconds: With ``until_width``: of all windows together.
        seed: Of the clients.
    """

    duration: float = 12.0
    warmup: float = 3.0
    repeats: int = 1
    retries: int = 1
    until_width: float | None = None
    max_seconds: float = 60.0
    seed: int = 0

    @property
    def real_run(self) -> RealRun:
        """The run that is predicted: at least so much is measured."""
        return RealRun(self.duration, self.repeats)


def watched(model: Model) -> Model:
    """Return the model of a machine on which a monitor of its speed runs, as in every measured load.

    A model that does not know the monitored speed of its machine stays as it is.
    """
    speed = model.provenance.get("monitored_speed")
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not speed > 0:
        return model

    def beside(machine: Processor) -> Processor:
        if machine.name != HOST or machine.cores == math.inf:
            return machine
        more = monitor_load(speed, int(machine.cores))
        return replace(machine, background=machine.background + more)

    return replace(model, processors=tuple(map(beside, model.processors)))


def predict(
    scenarios: Sequence[Scenario],
    run: RealRun,
    *,
    precision: float,
    seed: int,
    machine: MachineSpeed | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Simulate every scenario, with the intervals in which a real run is expected.

    Args:
        scenarios: What to predict.
        run: The real run.
        precision: Of the simulation.
        seed: Of the simulation.
        machine: How fast its machine may be; None if nothing is known about that.
        progress: Called with (finished, all so far) simulations.
    """
    return run_scenarios(
        scenarios,
        precision=precision,
        seed=seed,
        differences=False,
        limits=False,
        run=run,
        machine=machine,
        progress=progress,
    )


def speed_until(model: Model, settings: MeasureSettings, scenarios: int) -> Known:
    """Return how fast the machine may be until so many scenarios have been measured, from now on."""
    passed = age(model)
    seconds = scenarios * settings.repeats * (settings.warmup + settings.duration)
    return machine_speed(
        model,
        seconds=settings.repeats * settings.duration,
        lag=None if passed is None else passed + seconds,
    )


def default_prediction_file(project: Project) -> Path:
    """Return where predictions made now are written: ``.mup/predictions/DATE.json`` of the project.

    Raises:
        UsageError: The folder cannot be created.
    """
    folder = project.state / "predictions"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write predictions: {error.strerror}", where=str(folder)) from error
    return folder / time.strftime("%Y%m%d-%H%M%S.json")


def save_predictions(path: Path, project: Project, model: Model, outcomes: Sequence[Outcome]) -> None:
    """Write down what was predicted, before anything is measured.

    Raises:
        UsageError: The file cannot be written.
    """
    document = {
        "format": FORMAT,
        "project": project.name,
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "model": {key: model.provenance.get(key) for key in ("run", "created", "mup", "fingerprints")},
        "scenarios": [
            {
                "change": o.scenario.to_json(),
                "predicted": _predicted(o).to_json(),
                "prediction": None if o.prediction is None else o.prediction.to_json(),
            }
            for o in outcomes
        ],
    }
    write_whole(path, json.dumps(document, indent=1) + "\n", what="the prediction")


def measure(
    project: Project,
    scenario: Scenario,
    settings: MeasureSettings,
    progress: Callable[[str], None] | None = None,
) -> Measurement:
    """Run one scenario for real, with fresh services.

    Raises:
        UsageError: It changes something a real run cannot (cores, speed, think times).
    """
    values = scenario.to_json()
    beyond = set(values) - {"clients", "pool", "replicas"}
    if beyond:
        raise UsageError(f"{scenario}: a real run cannot change {', '.join(sorted(beyond))}")
    kept = sorted(name for name in values.get("pool", {}) if scenario.model.task(name).is_semaphore)
    if kept:
        raise UsageError(
            f"{scenario}: a real run cannot change the pool of {kept[0]!r}",
            hint="the source says how many may hold a semaphore or lock",
        )
    return measure_load(
        project.with_any_ports(),
        clients=values.get("clients", 1),
        duration=settings.duration,
        warmup=settings.warmup,
        pools=values.get("pool", {}),
        replicas=values.get("replicas", {}),
        seed=settings.seed,
        repeats=settings.repeats,
        retries=settings.retries,
        until_width=settings.until_width,
        max_seconds=settings.max_seconds,
        progress=progress,
        kind="validate",
    )


def speed_ratio(model: Model, measurement: Measurement) -> float | None:
    """Return the machine's speed in a measurement relative to that of the calibration; None if not known."""
    return relative_speed(
        model, measurement.monitored_speed, measurement.speed.speed, measurement.cpu.host_utilization
    )


def compare(outcome: Outcome, measurement: Measurement) -> Comparison:
    """Put one prediction and its measurement side by side.

    Raises:
        UsageError: No cycle of the measured run succeeded, or none ended in its window.
    """
    if not (measurement.response_time.mean > 0 and measurement.throughput.mean > 0):
        raise UsageError(f"nothing to compare with: no cycle was completed ({measurement.first_error})")
    return Comparison(
        scenario=outcome.scenario,
        raw=Judgement(_predicted(outcome), outcome.prediction, _measured(measurement)),
        speed=speed_ratio(outcome.scenario.model, measurement),
        monitored=measurement.monitored_speed is not None
        and outcome.scenario.model.provenance.get("monitored_speed") is not None,
        failed_cycles=measurement.errors,
        foreign_cpu=measurement.cpu.foreign,
        runs=len(measurement.valid_runs),
        void=measurement.void,
        warnings=measurement.warnings,
    )


def correct(
    comparisons: Sequence[Comparison],
    run: RealRun,
    *,
    precision: float,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Comparison]:
    """Predict again, for the speed the machine had when each scenario was measured.

    Where that is not known the comparison stays as it is. What the raw prediction allows for because the
    speed was not known, the corrected one does not; it allows for how well it was measured.
    """
    result = list(comparisons)
    known = [(index, c, c.speed) for index, c in enumerate(comparisons) if c.speed is not None]
    different = [
        item
        for item in known
        if abs(item[2] - 1) > SAME_SPEED or ((p := item[1].raw.prediction) and p.machine)
    ]
    scenarios = [Scenario((), with_faster_machines(c.scenario.model, speed)) for _, c, speed in different]
    monitored = all(c.monitored for _, c, _ in different)
    outcomes = (
        predict(
            scenarios,
            run,
            precision=precision,
            seed=seed,
            machine=left_uncertain(scenarios[0].model, monitored=monitored),
            progress=progress,
        )
        if scenarios
        else []
    )
    for index, c, _ in known:
        result[index] = replace(c, corrected=c.raw)
    for (index, c, _), outcome in zip(different, outcomes, strict=True):
        again = Judgement(_predicted(outcome), outcome.prediction, c.raw.measured)
        result[index] = replace(c, corrected=again)
    return result


def max_abs_error(comparisons: Sequence[Comparison], *, corrected: bool = False) -> dict[str, float]:
    """Return the largest absolute errors over all scenarios.

    Args:
        comparisons: At least one.
        corrected: Of the corrected predictions, where there are any.
    """
    sides = [c.best if corrected else c.raw for c in comparisons]
    worst = {name: max(abs(side.error(name)) for side in sides) for name in FIGURES}
    busy = [abs(error) for side in sides for error in side.utilization_errors.values()]
    return worst | {"utilization": max(busy, default=0.0)}


def judged_error(comparisons: Sequence[Comparison]) -> float:
    """Return the largest error of a mean response time: corrected where possible, void measurements left out.

    If all are void, all of them count.
    """
    valid = [c for c in comparisons if not c.void] or comparisons
    return max_abs_error(valid, corrected=True)["response_time"]


def _services(model: Model) -> list[str]:
    return [t.name for t in model.tasks if t.role == "service"]


def _predicted(outcome: Outcome) -> Figures:
    cycle = outcome.result.cycle
    utilization: dict[str, Figure | None] = {}
    for name in _services(outcome.scenario.model):
        figure = outcome.result.tasks[name].utilization
        utilization[name] = None if figure is None else Figure(figure.mean, figure.ci95)
    p95 = cycle.response_time.p95
    return Figures(
        Figure(cycle.response_time.mean, cycle.response_time.ci95),
        Figure(p95.mean, p95.ci95),
        Figure(cycle.throughput.mean, cycle.throughput.ci95),
        utilization,
    )


def _measured(measurement: Measurement) -> Figures:
    """Return the measured figures: of several runs the median, with the half-width of all together."""
    times, rate = measurement.response_time, measurement.throughput
    values = (times.mean, times.p95, rate.mean)
    busy: Mapping[str, float | None] = measurement.utilization
    if len(measurement.valid_runs) >= MEDIAN_FROM:
        values = (measurement.median_response_time, measurement.median_p95, measurement.median_throughput)
        busy = {**busy, **measurement.median_utilization}
    return Figures(
        Figure(values[0], times.ci95),
        Figure(values[1], times.p95_ci95),
        Figure(values[2], rate.ci95),
        {
            name: None if share is None else Figure(share, measurement.utilization_ci95.get(name))
            for name, share in busy.items()
        },
    )
