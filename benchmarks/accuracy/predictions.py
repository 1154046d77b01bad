"""What does the model of a stored exploratory run predict for the points of its system?

Needs no measurement: whatever changes in calibration or simulation, ``predict`` says within minutes what
it would have predicted. Figures are also given *speed-corrected*: simulated on a host as fast as the probes
found it during the measurement, relative to the probes of the calibration.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from statistics import fmean
from typing import Any

from accuracy.deploy import TRANSLATOR, circumstances
from accuracy.points import Point
from accuracy.store import Results, SystemFolder, read_json, write_json
from analyzer.calibration import calibrate as calibration
from analyzer.calibration.rundir import load_run
from analyzer.static import analyse_project
from mup.errors import UsageError, did_you_mean
from mup.lqn import Model, load_model, save_model
from mup.lqn.edits import with_speed
from mup.project import load_project
from simulator import Result, simulate_many

__all__ = ["correct", "ingredient_names", "ladder", "points_of", "predict_points", "predict_system"]

MAX_EVENTS = 40_000_000
SAME = 1e-4
"""Speed ratios closer than this give the same corrected figures."""


def ingredient_names() -> list[str]:
    """Return the ingredients of calibration that can be switched off, in the order they are added."""
    kind = getattr(calibration, "Ingredients", None)
    return [] if kind is None else [f.name for f in fields(kind)]


def ladder() -> dict[str, dict[str, bool]]:
    """Return sets of switches: all off, then one more on each time, then all but one on."""
    names = ingredient_names()
    steps: dict[str, dict[str, bool]] = {"0-none": dict.fromkeys(names, False)}
    for count, name in enumerate(names, start=1):
        steps[f"{count}-{name}"] = {n: names.index(n) < count for n in names}
    return steps | {f"without-{name}": {name: False} for name in names}


def points_of(folder: SystemFolder) -> list[Point]:
    """Return the points of a system."""
    return [Point.from_json(p) for p in read_json(folder.points)]


def calibrated(folder: SystemFolder, switches: Mapping[str, bool]) -> tuple[Model, list[str]]:
    """Return the model of the stored run, and what calibration warns of."""
    run = load_run(folder.run)
    application = analyse_project(load_project(folder.project))
    extra: dict[str, Any] = {}
    if "ingredients" in inspect.signature(calibration.calibrate).parameters:
        known = ingredient_names()
        for name in switches:
            if name not in known:
                raise UsageError(f"no ingredient {name!r}; {did_you_mean(name, known)}")
        extra["ingredients"] = getattr(calibration, "Ingredients")(**switches)  # noqa: B009
    elif switches:
        raise UsageError("this version of the calibration has no ingredients to switch")
    found = calibration.calibrate(run, application, name=folder.name, **extra)
    return found.model, list(found.warnings)


def predict_system(
    results: Results, name: str, kind: str, switches: Mapping[str, bool], *, precision: float
) -> dict[str, Any]:
    """Calibrate and predict one system, and store both; corrected figures too where it was measured."""
    folder = results.system(name)
    began = time.perf_counter()
    model, warnings = calibrated(folder, switches)
    calibrate_seconds = time.perf_counter() - began
    results.model(kind, name).parent.mkdir(parents=True, exist_ok=True)
    save_model(model, results.model(kind, name))
    record = {
        "system": name,
        "set": kind,
        "switches": dict(switches),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "circumstances": circumstances(),
        "precision": precision,
        "speed": calibration_speed(folder, model),
        "warnings": warnings,
        "points": predict_points(model, points_of(folder), precision=precision),
        "corrected": {},
    }
    record["seconds"] = {"calibrate": calibrate_seconds, "all": time.perf_counter() - began}
    write_json(results.prediction(kind, name), record)
    return correct(results, name, kind)


def predict_points(model: Model, points: Sequence[Point], *, precision: float) -> dict[str, Any]:
    """Return the figures of every point by its name."""
    outcomes = simulate_many([p.apply(model) for p in points], precision=precision, max_events=MAX_EVENTS)
    return {p.name: {"point": p.to_json(), **figures(r)} for p, r in zip(points, outcomes, strict=True)}


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


def measured_speed(repeats: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the mean probe units per second of the valid repeats."""
    speeds = [r["speed"] for r in repeats if r["speed"] is not None and not r["void"]]
    return fmean(speeds) if speeds else None


def correct(results: Results, name: str, kind: str) -> dict[str, Any]:
    """Bring the corrected figures of a stored prediction up to date with the measurements; return it."""
    file = results.prediction(kind, name)
    record: dict[str, Any] = read_json(file)
    folder = results.system(name)
    ratios = {}
    for point in record["points"]:
        speed = measured_speed(folder.repeats(point))
        if speed is not None and record["speed"]:
            # The example burns until a CPU clock has advanced: its work does not depend on speed.
            ratios[point] = 1.0 if name == TRANSLATOR else speed / record["speed"]
    stale = [
        p
        for p, ratio in ratios.items()
        if abs(record["corrected"].get(p, {}).get("ratio", 0.0) - ratio) > SAME
    ]
    if not stale:
        return record
    model = load_model(results.model(kind, name))
    points = [Point.from_json(record["points"][p]["point"]) for p in stale]
    models = [faster(p.apply(model), ratios[p.name]) for p in points]
    outcomes = simulate_many(models, precision=record["precision"], max_events=MAX_EVENTS)
    for point, outcome in zip(stale, outcomes, strict=True):
        record["corrected"][point] = {"ratio": ratios[point], **figures(outcome)}
    write_json(file, record)
    return record


def faster(model: Model, ratio: float) -> Model:
    """Return the model on a host whose cores are faster by a factor; parts of a processor share its speed."""
    for processor in model.processors:
        if processor.parent is None:
            model = with_speed(model, processor.name, processor.speed * ratio)
    return model


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
            raise UsageError(f"--ingredient: must be NAME=on or NAME=off, got {text!r}")
        switches[name] = value == "on"
    return switches


def set_name(switches: Mapping[str, bool]) -> str:
    """Return the name of the set that belongs to some switches."""
    if not switches:
        return "all"
    return "_".join(f"{name}-{'on' if on else 'off'}" for name, on in switches.items())
