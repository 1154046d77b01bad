"""Does a line that is really made 20 % faster move the 95th percentile as ``mup plan --explain`` predicts?

    python benchmarks/faster_lines.py                      # about 75 min; can be stopped, goes on
    python benchmarks/faster_lines.py --application tms
    python benchmarks/faster_lines.py --report             # what there is, without measuring

The four case studies, whose work waits, with a quarter of their think times and one thread per service: one
user is explored for two minutes. Then two loads are chosen per application: those at which the fullest
service is nearest to 70 and to 90 %. At each, every line of `LINES` is made 20 % faster: in the model, in
pairs of runs as those of ``mup plan --explain``; and in a copy of the source, whose line is edited.

All predictions are stored before the first window is measured. Windows of the source as it is and of the
edited ones are measured in turn, in random order within each of `ROUNDS` rounds. A prediction *holds* if what
was measured, the mean difference of the 95th percentiles of cycles, lies within its interval: around the
effect in simulated windows of this length and warm-up (users bunch for minutes, which shows in no window of
this length), with the half-width of the effect (calibration and machine) and what chance does to so many
windows. The effect over a long time, which ``mup plan`` prints, is told beside it.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accuracy.quiet import Quiet
from case_studies.applications import APPLICATIONS, ROOT, started
from case_studies.scaling import scaled
from case_studies.store import read_json
from case_studies.study import Study
from machine import describe
from stored import FOLDER, Store, add_results, run_resumable

from analyzer.host.machine_speed import machine_speed
from analyzer.validation import watched
from mup.lqn import Model
from mup.lqn.edits import with_clients
from mup.lqn.refs import ActivityRef, Names
from mup.lqn.time_edits import with_scaled_time
from mup.statistics.student import t_quantile
from mup.workload.measure import measure_load
from simulator.api import compiled, simulate
from simulator.figures.runs.repeat import repeat_run
from simulator.machine.budget import Budget
from simulator.studies.planning.paired import PairedRuns
from simulator.studies.planning.slo import objective
from simulator.studies.rehearsal import cycle_seconds, transient_seconds

FASTER = 0.2
THINK = 0.25
"""Of the think times of the case studies."""
EXPLORED = 120.0
CLIENTS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
FULLEST = (0.7, 0.9)
"""Utilization of the fullest service at the two loads."""
ROUNDS = 3
SECONDS = 45.0
"""Of a window."""
LEAST_WAIT = 0.3e-3
"""Seconds that a line waits that is made faster; what is shorter is something else."""
LEAST_WARMUP = 2.0
ATTEMPTS = 3
STOLEN = 0.005
"""Part of the machine that the hypervisor may withhold: a quarter of what makes other windows void, for the
95th percentile of a service that is 90 % busy shows every pause."""
QUIET = Quiet(patience=60.0)
SIMULATED = 24
"""Windows that say what chance does to one."""
STUDIES = FOLDER / "faster_lines"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is made faster.

    Attributes:
        file: Of the example.
        function: That holds it.
        text: What it says; once in this function.
        faster: What it says then.
        entries: Service and path of the endpoints that execute it, as a pattern.
    """

    file: str
    function: str
    text: str
    faster: str
    entries: str

    def make_faster(self, folder: Path) -> None:
        """Edit the line in a copy of the example."""
        path = folder / self.file
        before, found, after = path.read_text(encoding="utf-8").partition(f"def {self.function}(")
        assert found  # noqa: S101 - the table below names a function of this example
        assert self.text in after  # noqa: S101
        path.write_text(before + found + after.replace(self.text, self.faster, 1), encoding="utf-8")

    def activities(self, model: Model) -> list[str]:
        """Return what the line is in a model: what waits longest in the entries that execute it."""
        names = Names(model.tasks)
        found = []
        for task in model.tasks:
            for entry in task.entries:
                if not fnmatch(f"{task.name} {entry.name.partition('@')[0]}", self.entries):
                    continue
                waits = {a.name: a.delay.mean for a in entry.activities if a.delay is not None}
                longest = max(waits.values(), default=0.0)
                found += [
                    names.activity(ActivityRef(task.name, entry.name, name))
                    for name, wait in waits.items()
                    if wait > max(longest / 2, LEAST_WAIT)
                ]
        return found


def _computing(file: str, function: str, entries: str) -> Line:
    return Line(file, function, "compute(self.work_ms)", f"compute({1 - FASTER} * self.work_ms)", entries)


LINES = {
    "acmeair": (
        _computing("acmeair/auth.py", "create_session", "auth */byuserid/"),
        _computing("acmeair/auth.py", "delete_session", "auth */delete"),
    ),
    "jpetstore": (Line("pages.py", "template", "work(self._", f"work({1 - FASTER} * self._", "frontend *"),),
    "teastore": (Line("image.py", "scale", "work(self.", f"work({1 - FASTER} * self.", "image *"),),
    "tms": (
        _computing("tms/qms.py", "find_all_configurations", "qms /findAllConfigurations"),
        _computing("tms/qms.py", "create_test", "qms /createTest"),
    ),
}
AS_IS = "as it is"


def loads(model: Model) -> list[int]:
    """Return the numbers of clients at which the fullest service is nearest to `FULLEST`."""
    fullest = {}
    for clients in CLIENTS:
        seen = simulate(with_clients(model, clients), precision=0.02, seed=1)
        fullest[clients] = max(task.utilization.mean for task in seen.tasks.values() if task.utilization)
    return sorted({min(CLIENTS, key=lambda n: abs(fullest[n] - wanted)) for wanted in FULLEST})


def predicted(model: Model, lines: Sequence[Line]) -> dict[str, Any]:
    """Return by how much the 95th percentile of cycles moves, by line, and what chance does to a window.

    Args:
        model: Calibrated, with its load.
        lines: What is made faster.
    """
    slo = objective(model, "p95", "", 1.0)
    machine = machine_speed(model, seconds=ROUNDS * SECONDS).machine
    budget = Budget("faster lines", seconds=900.0)
    runs = PairedRuns(model, [slo], machine=machine, seed=1, budget=budget)
    before = runs.figures([None])[0]
    warmup = max(LEAST_WARMUP, cycle_seconds(model), transient_seconds(model) / 2)
    found: dict[str, Any] = {
        "warmup": warmup,
        AS_IS: {"p95": runs.figure(before[0]).mean, **_windows(model, warmup)},
    }
    for line in lines:
        names = line.activities(model)
        after = runs.figures([partial(_scaled, activities=names)])[0]
        effect = runs.difference(before[0], after[0])
        found[line.function] = {
            "activities": names,
            "effect": effect.mean,
            "ci95": effect.ci95,
            **_windows(_scaled(model, names), warmup),
        }
    return found


def _scaled(model: Model, activities: Sequence[str]) -> Model:
    for name in activities:
        model = with_scaled_time(model, ["delay"], name, 1 - FASTER)
    return model


def _windows(model: Model, warmup: float) -> dict[str, float]:
    """Return mean and standard deviation of the 95th percentiles of simulated windows, in seconds."""
    program = compiled(model, arrive_within=warmup)
    windows = [repeat_run(program, 1000 + k, warmup, SECONDS).seconds[0] for k in range(SIMULATED)]
    found = [float(np.quantile(window, 0.95)) for window in windows]
    return {"window": statistics.mean(found), "chance": statistics.stdev(found)}


def measured(
    application: str, database: Any, line: Line | None, *, clients: int, warmup: float, seed: int
) -> dict[str, Any]:
    """Measure one window of the source as it is, or with a faster line; if it was disturbed, another one."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / application
        shutil.copytree(ROOT / "examples" / application, folder)
        if line is not None:
            line.make_faster(folder)
        for _ in range(ATTEMPTS):
            with QUIET.alone(), started(application, "wait", database, folder=folder) as project:
                found = measure_load(
                    project,
                    clients=clients,
                    duration=SECONDS,
                    warmup=warmup,
                    seed=seed,
                    think_scale=THINK,
                )
            (run,) = found.runs
            too_much = f"the hypervisor withheld {run.stolen:.1%}" if run.stolen > STOLEN else None
            void = found.void or too_much
            if void is None:
                break
    response = found.response_time
    return {"p95": response.p95, "stolen": run.stolen, "failed": found.errors, "void": void}


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a prediction compares with what was measured.

    Attributes:
        predicted: In windows such as these, seconds.
        effect: Measured, seconds.
        half_width: Of the prediction, with what chance does to so many windows; seconds.
        windows: Pairs of windows that say something.
        holds: Whether what was measured is in the interval.
        told_apart: Whether no effect at all would be outside of the interval.
    """

    predicted: float
    effect: float
    half_width: float
    windows: int
    holds: bool
    told_apart: bool


def verdict(store: Store, key: str, prediction: dict[str, Any], function: str) -> Verdict | None:
    """Compare; None while fewer than two pairs of windows are there."""
    pairs = []
    for number in range(ROUNDS):
        seen = [store.get(f"{key}, {which}, {number}") for which in (AS_IS, function)]
        if all(window is not None and not window["void"] for window in seen):
            pairs.append(seen[1]["p95"] - seen[0]["p95"])
    if len(pairs) < 2:
        return None
    line = prediction[function]
    chance = t_quantile(SIMULATED - 1) * math.hypot(line["chance"], prediction[AS_IS]["chance"])
    half_width = math.hypot(line["ci95"], chance / math.sqrt(len(pairs)))
    effect = statistics.mean(pairs)
    expected = line["window"] - prediction[AS_IS]["window"]
    return Verdict(
        expected,
        effect,
        half_width,
        len(pairs),
        holds=abs(effect - expected) <= half_width,
        told_apart=abs(expected) > half_width,
    )


def report(store: Store, applications: Sequence[str]) -> None:
    """Print a row per line and load, and how many predictions hold."""
    print("| application | clients | faster line in | p95 | effect, long | in windows | measured | holds |")
    print("|---|---|---|---|---|---|---|---|")
    told = []
    for application in applications:
        for clients, prediction in (store.get(application) or {}).items():
            for line in LINES[application]:
                found = verdict(store, f"{application}, {clients}", prediction, line.function)
                if found is None:
                    continue
                told.append(found)
                said = prediction[line.function]
                print(
                    f"| {application} | {clients} | `{line.function}` |"
                    f" {1e3 * prediction[AS_IS]['p95']:.4g} |"
                    f" {1e3 * said['effect']:.3g} ± {1e3 * said['ci95']:.2g} |"
                    f" {1e3 * found.predicted:.3g} ± {1e3 * found.half_width:.2g} |"
                    f" {1e3 * found.effect:.3g} | {'yes' if found.holds else 'no'} |"
                )
    print("\n(milliseconds; the interval in windows holds that of the effect, and chance)")
    print(
        f"\n{sum(v.holds for v in told)} of {len(told)} predictions hold;"
        f" {sum(v.told_apart for v in told)} of them say that there is an effect"
    )


def main() -> int:
    """Predict, measure and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--application", choices=APPLICATIONS, action="append", help="only this; repeatable")
    parser.add_argument("--report", action="store_true", help="print what there is")
    parser.add_argument("--studies", type=Path, default=STUDIES, help="of one user [default: %(default)s]")
    add_results(parser, "faster_lines.jsonl")
    options = parser.parse_args()
    applications = options.application or list(APPLICATIONS)
    store = Store(options.results)
    if not options.report:
        _measure(store, applications, options.studies)
    print(describe("numpy", "scipy"))
    report(store, applications)
    return 0


def _measure(store: Store, applications: Sequence[str], folder: Path) -> None:
    """Predict everything, then measure the windows that are left."""
    databases = {}
    for name in applications:
        study = Study(results=folder, application=name, mode="wait", explore_seconds=EXPLORED, quiet=Quiet())
        model = scaled(watched(study.model()), THINK)
        databases[name] = read_json(study.folder.study)["settings"]["database"]
        if store.get(name) is None:
            store.put(name, {str(n): predicted(with_clients(model, n), LINES[name]) for n in loads(model)})
            print(f"{time.strftime('%H:%M:%S')} {name}: predicted", flush=True)
    for number in range(ROUNDS):
        due = [
            (name, clients, line)
            for name in applications
            for clients in store.get(name)
            for line in (None, *LINES[name])
        ]
        random.Random(number).shuffle(due)
        for name, clients, line in due:
            key = f"{name}, {clients}, {AS_IS if line is None else line.function}, {number}"
            if store.get(key) is not None:
                continue
            warmup = store.get(name)[clients]["warmup"]
            seen = measured(
                name, databases[name], line, clients=int(clients), warmup=warmup, seed=100 + number
            )
            store.put(key, seen)
            print(f"{time.strftime('%H:%M:%S')} {key}: p95 {1e3 * seen['p95']:.4g} ms", flush=True)


if __name__ == "__main__":
    run_resumable(main)
