"""Predictions of a stored exploratory run's model for the points of its system.

Needs no measurement: whatever changes in calibration or simulation, ``predict`` says within minutes what
it would have predicted. Figures are also given *corrected*: simulated on a host as fast as the probes found
it during the measurement, relative to the calibration, and with the mean think time that users realised (the
mean of a few hundred drawn think times is off by some percent, and timers are late).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from accuracy.deploy import TRANSLATOR, circumstances
from accuracy.judge import Measured, measured
from accuracy.measured import WindowLength
from accuracy.points import Point
from accuracy.store import Results, SystemFolder, read_json, write_json
from analyzer.calibration.bootstrap import REPLICATES
from analyzer.calibration.calibrate import calibrate
from analyzer.calibration.components import Components
from analyzer.calibration.of_project import known_discrepancy
from analyzer.calibration.rundir import load_run
from analyzer.host.machine_speed import age, machine_speed
from analyzer.host.profile import HostProfile, load_profile
from analyzer.static import analyse_project
from analyzer.validation import host_slowness, watched
from mup.errors import UsageError, did_you_mean
from mup.lqn import Model, load_model, save_model
from mup.lqn.edits import with_faster_machines, with_think
from mup.lqn.machine_speed import MachineSpeed
from mup.project import load_project
from simulator import Result, simulate, simulate_many
from simulator.studies.grids import run_scenarios
from simulator.studies.prediction import RealRun

__all__ = ["Recipe", "component_names", "correct", "known_host", "ladder", "points_of", "predict_system"]

SAME = 1e-5
"""Speed ratios, and think times in seconds, that differ by less give the same corrected figures."""
ROUGHLY = 0.05
"""Precision of a simulation that only has to say how long a window will be."""
FEWEST_REPEATS = 3


def component_names() -> list[str]:
    """Return the components of calibration that can be switched off, in the order they are added."""
    return [f.name for f in fields(Components)]


def ladder() -> dict[str, dict[str, bool]]:
    """Return sets of switches: all off, then one more on each time, then all but one on."""
    names = component_names()
    steps: dict[str, dict[str, bool]] = {"0-none": dict.fromkeys(names, False)}
    for count, name in enumerate(names, start=1):
        steps[f"{count}-{name}"] = {n: names.index(n) < count for n in names}
    return steps | {f"without-{name}": {name: False} for name in names}


def points_of(folder: SystemFolder) -> list[Point]:
    """Return the points of a system."""
    return [Point.from_json(p) for p in read_json(folder.points)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How predictions are made.

    Attributes:
        host: Profile of the machine; None = cores that are shared ideally.
        switches: Components to leave out.
        precision: Of the simulations.
        window: Of repeats still to be measured, for the intervals; None = no intervals, which is faster.
        repeats: How many of them there will be.
    """

    host: HostProfile | None = None
    switches: Mapping[str, bool] = field(default_factory=dict)
    precision: float = 0.01
    window: WindowLength | None = None
    repeats: int = FEWEST_REPEATS

    def calibrated(self, folder: SystemFolder) -> tuple[Model, list[str]]:
        """Return the model of the stored run, and what calibration warns of.

        Raises:
            UsageError: There is no such component.
        """
        known = component_names()
        for name in self.switches:
            if name not in known:
                raise UsageError(f"no component {name!r}; {did_you_mean(name, known)}")
        found = calibrate(
            load_run(folder.run),
            analyse_project(load_project(folder.project)),
            name=folder.name,
            host=self.host,
            components=Components(**self.switches),
            bootstrap=0 if self.window is None else REPLICATES,
        )
        model = found.model
        discrepancy = known_discrepancy()
        if model.uncertainty is not None and discrepancy is not None:
            model = replace(model, uncertainty=replace(model.uncertainty, discrepancy=discrepancy))
        if self.switches.get("background", True):
            model = watched(model)
        return model, list(found.warnings)


def known_host(results: Results, path: Path | None = None) -> HostProfile | None:
    """Return the profile of a file, else that of the campaign if there is one."""
    if path is None and not results.host.exists():
        return None
    return load_profile(path or results.host)


def predict_system(results: Results, name: str, kind: str, recipe: Recipe) -> dict[str, Any]:
    """Calibrate and predict one system, and store both in a set, corrected for what was measured so far."""
    folder = results.system(name)
    began = time.perf_counter()
    model, warnings = recipe.calibrated(folder)
    calibrate_seconds = time.perf_counter() - began
    results.model(kind, name).parent.mkdir(parents=True, exist_ok=True)
    save_model(model, results.model(kind, name))
    points = points_of(folder)
    runs = {} if recipe.window is None else real_runs(folder, model, points, recipe.window, recipe.repeats)
    lag = _until_measured(model, runs.values())
    record = {
        "system": name,
        "set": kind,
        "switches": dict(recipe.switches),
        "host": None if recipe.host is None else _host_json(recipe.host),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "circumstances": circumstances(),
        "precision": recipe.precision,
        "speed": calibration_speed(folder, model),
        "monitored": model.provenance.get("monitored_speed"),
        "warnings": warnings,
        "points": predict_points(
            model,
            points,
            runs,
            precision=recipe.precision,
            machine=lambda run: machine_speed(model, seconds=run.total, lag=lag).machine,
        ),
        "corrected": {},
    }
    record["seconds"] = {"calibrate": calibrate_seconds, "all": time.perf_counter() - began}
    write_json(results.prediction(kind, name), record)
    return correct(results, name, kind)


def _until_measured(model: Model, runs: Iterable[RealRun]) -> float | None:
    """Return the seconds from the exploration until all points are measured, if that begins now.

    So ``mup validate`` has it. Predictions of stored runs, made later, are for a machine at any time.
    """
    passed = age(model)
    return None if passed is None else passed + math.fsum(run.total for run in runs)


def _host_json(host: HostProfile) -> dict[str, Any]:
    """Return how the machine schedules, and when that was measured."""
    scheduler = host.scheduler
    migration = None if scheduler.migration is None else asdict(scheduler.migration)
    return {
        "date": host.date,
        "source": scheduler.source,
        "discipline": scheduler.discipline,
        "migration": migration,
    }


def predict_points(
    model: Model,
    points: Sequence[Point],
    runs: Mapping[str, RealRun],
    *,
    precision: float,
    machine: Callable[[RealRun], MachineSpeed | None] = lambda _: None,
) -> dict[str, Any]:
    """Return the figures of every point by its name; of those with a run, also where it should land.

    Args:
        model: Calibrated.
        points: What to predict.
        runs: How long each point is measured, by name.
        precision: Of the simulations.
        machine: How fast the machine may be during a run.
    """
    found = {}
    for point in points:
        run = runs.get(point.name)
        (outcome,) = run_scenarios(
            [point.scenario(model)],
            precision=precision,
            differences=False,
            limits=False,
            run=run,
            machine=None if run is None else machine(run),
        )
        prediction = None if outcome.prediction is None else outcome.prediction.to_json()
        found[point.name] = {
            "point": point.to_json(),
            **figures(outcome.result),
            "prediction": prediction,
        }
    return found


def real_runs(
    folder: SystemFolder,
    model: Model,
    points: Sequence[Point],
    window: WindowLength,
    repeats: int = FEWEST_REPEATS,
) -> dict[str, RealRun]:
    """Return how long each point was measured; or will be at least, where it was not yet."""
    runs = {}
    for point in points:
        found = measured(folder.repeats(point.name))
        if found is not None:
            runs[point.name] = RealRun(found.seconds / found.repeats, found.repeats)
            continue
        rough = simulate(point.scenario(model).model, precision=ROUGHLY)
        runs[point.name] = RealRun(window.seconds(rough.cycle.throughput.mean), repeats)
    return runs


def figures(result: Result) -> dict[str, Any]:
    """Return what is kept of a simulation."""
    response = result.cycle.response_time
    utilization = {f"task {n}": t.utilization.mean for n, t in result.tasks.items() if t.utilization}
    utilization |= {f"processor {n}": p.utilization.mean for n, p in result.processors.items()}
    return {
        "response_time": {
            "mean": response.mean,
            "ci95": response.ci95,
            "p50": response.p50.mean,
            "p95": response.p95.mean,
            "p95_ci95": response.p95.ci95,
        },
        "throughput": {"mean": result.cycle.throughput.mean, "ci95": result.cycle.throughput.ci95},
        "utilization": utilization,
        "load": max(utilization.values(), default=0.0),
        "tasks": {
            name: {
                # Little's law: seconds a thread is held per request, and seconds a request waits for one.
                "held": t.busy.mean / t.throughput.mean,
                "queued": t.queue.mean / t.throughput.mean if t.queue else None,
            }
            for name, t in result.tasks.items()
            if t.throughput.mean > 0
        },
        "simulated_seconds": result.simulated_seconds,
        "wall_seconds": result.wall_seconds,
        "warnings": list(result.warnings),
    }


def calibration_speed(folder: SystemFolder, model: Model) -> float | None:
    """Return the probe units per second the numbers of a model belong to."""
    known = (model.provenance or {}).get("speed")
    if isinstance(known, int | float):
        return float(known)
    found: float | None = read_json(folder.explored).get("speed")
    return found


def correct(results: Results, name: str, kind: str) -> dict[str, Any]:
    """Bring the corrected figures of a stored prediction up to date with the measurements; return it."""
    file = results.prediction(kind, name)
    record: dict[str, Any] = read_json(file)
    folder = results.system(name)
    model = load_model(results.model(kind, name))
    wanted = {}
    for point in record["points"]:
        found = measured(folder.repeats(point))
        if found is not None:
            # In the recorded runs the example burned until a CPU clock had advanced, whatever the speed.
            ratio = 1.0 if name == TRANSLATOR else _ratio(model, record, found)
            # With arrivals at a rate no user thinks: a think time would delay them all alike.
            think = 0.0 if record["points"][point]["point"].get("arrivals") else found.think
            wanted[point] = {"ratio": ratio, "think": think}
    stale = [p for p, now in wanted.items() if not _same(record["corrected"].get(p), now)]
    if not stale:
        return record
    scenarios = [Point.from_json(record["points"][p]["point"]).scenario(model) for p in stale]
    models = [_as_it_was(scenario.model, wanted[p]) for scenario, p in zip(scenarios, stale, strict=True)]
    outcomes = simulate_many(models, precision=record["precision"])
    for point, outcome in zip(stale, outcomes, strict=True):
        record["corrected"][point] = {**wanted[point], **figures(outcome)}
    write_json(file, record)
    return record


def _ratio(model: Model, record: Mapping[str, Any], found: Measured) -> float:
    """Return the speed of a measurement relative to the calibration, from monitors where both have one."""
    if found.monitored is not None and record.get("monitored"):
        return float(found.monitored * host_slowness(model, found.host) / record["monitored"])
    return float(found.speed / record["speed"]) if record["speed"] else 1.0


def _same(known: Mapping[str, Any] | None, now: Mapping[str, float]) -> bool:
    return known is not None and all(abs(known[k] - value) <= SAME for k, value in now.items())


def _as_it_was(model: Model, now: Mapping[str, float]) -> Model:
    """Return the model with the speed and the think time of the measurement."""
    if now["think"] > 0:
        model = with_think(model, now["think"])
    return with_faster_machines(model, now["ratio"])


def describe(record: Mapping[str, Any]) -> str:
    """Return one line about a prediction."""
    seconds = record["seconds"]
    switched = [f"{n}={'on' if on else 'off'}" for n, on in record["switches"].items()]
    return (
        f"{record['system']}: {len(record['points'])} points in {seconds['all']:.1f} s"
        f" (calibration {seconds['calibrate']:.1f} s)" + (f" [{', '.join(switched)}]" if switched else "")
    )


def parse_switches(texts: Sequence[str]) -> dict[str, bool]:
    """Return switches from texts such as ``host=off``.

    Raises:
        UsageError: A text is no such thing.
    """
    switches = {}
    for text in texts:
        name, _, value = text.partition("=")
        if value not in ("on", "off"):
            raise UsageError(f"--component: must be NAME=on or NAME=off, got {text!r}")
        switches[name] = value == "on"
    return switches


def set_name(switches: Mapping[str, bool]) -> str:
    """Return the name of the set that belongs to some switches."""
    if not switches:
        return "all"
    return "_".join(f"{name}-{'on' if on else 'off'}" for name, on in switches.items())
