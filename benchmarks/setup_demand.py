"""Processor time of work by the sleep of its worker, and what a model makes of it.

    mup explore -C PROJECT -o explored                      # one user, with --burst 8 if you like
    mup load -C PROJECT --clients 20 --log load-20 --json > load-20.json
    python benchmarks/setup_demand.py PROJECT explored load-2 load-20

Prints, for each endpoint, the processor time per request by the sleep before it: of hot and cold rounds and
bursts of the exploration, and of each load, at the speed of the exploration. If sleep is the cause, all
columns of a row agree. Then the processor time per cycle of every kind of process under each load: measured
(what ``load-20.json`` beside the log says), and predicted from the exploration by the sleeps of that load
(*set-up*) and by its rates of requests (*load dependence*), both for the machine's speed during the load.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.calibration.components import Components
from analyzer.calibration.executions import Execution, collect
from analyzer.calibration.framework import logged_cpu
from analyzer.calibration.observed import Observed, observe
from analyzer.calibration.of_project import calibrate_project
from analyzer.calibration.overlapping import give_own_clocks
from analyzer.calibration.rundir import Run, load_run
from analyzer.calibration.sleeping import Sleeps, sleeps
from analyzer.static import Application, analyse
from analyzer.validation import relative_speed
from mup.events.reader import log_files, read_log
from mup.lqn import Front, Model, Setup, Task, entry_label
from mup.lqn.refs import QueryRef, WorkNames
from mup.lqn.visits import activity_visits
from mup.project import Project, load_project
from simulator.preparing import at_rates

EDGES = (0.0, 1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25e-3, 50e-3, 100e-3, 1e9)
"""Seconds of sleep between the rows."""
FEWEST = 5
"""Requests that a mean needs to be printed."""


@dataclass(frozen=True)
class Load:
    """What a load logged and printed.

    Attributes:
        name: Of its log folder.
        executions: Inside its window.
        before: How long each sleep was.
        printed: By ``mup load --json``.
    """

    name: str
    executions: Sequence[Execution]
    before: Sleeps
    printed: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return float(self.printed["window_seconds"])

    def speed(self, model: Model) -> float:
        """Return the machine's speed relative to that of the exploration."""
        probed, used = self.printed["speed"]["mean"], self.printed["cpu"]["host_utilization"]
        return relative_speed(model, self.printed["monitored_speed"], probed, used) or 1.0


def main() -> None:
    """Read an exploration and loads, and print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("project", type=Path)
    parser.add_argument("explored", type=Path)
    parser.add_argument("loads", type=Path, nargs="*")
    options = parser.parse_args()
    project, run = load_project(options.project / "mup.toml"), load_run(options.explored)
    application = analyse(options.project)
    sharing = {service.name for service in application.services if service.runtime != "process"}
    loops = {service.name for service in application.services if service.runtime == "async"}
    by_sleep = _model(project, run, application, Components(contention=False, setup=True))
    by_rate = _model(project, run, application, Components(contention=False))
    loads = [_load(path, sharing, loops) for path in options.loads]
    observed = observe(run, loops=loops)
    _print_by_sleep(observed, sleeps(observed.logged, sharing, loops), loads, by_sleep)
    for load in loads:
        _print_load(run, load, by_sleep, by_rate)


def _model(project: Project, run: Run, application: Application, components: Components) -> Model:
    model = calibrate_project(project, run, application, components=components).model
    return replace(model, uncertainty=None)


def _load(path: Path, sharing: set[str], loops: set[str]) -> Load:
    executions = collect(read_log(file) for file in log_files(path))
    give_own_clocks(executions, loops)
    printed = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    # The log begins with the warm-up and ends with the window.
    until = max(e.begin.time for e in executions)
    inside = [e for e in executions if e.begin.time > until - printed["window_seconds"] * 1e9]
    return Load(path.name, inside, sleeps([executions], sharing, loops), printed)


def _print_by_sleep(observed: Observed, before: Sleeps, loads: Sequence[Load], model: Model) -> None:
    columns: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    for execution in observed.executions:
        window = observed.window_of[execution.request]
        if execution.role == "worker" and execution.request in before.workers:
            seconds = logged_cpu(execution) / float(observed.slowness[window])
            column = columns[observed.windows[window].phase]
            column.append((execution.endpoint, before.workers[execution.request], seconds))
    for load in loads:
        speed = load.speed(model)
        columns[load.name] = [
            (e.endpoint, load.before.workers[e.request], logged_cpu(e) * speed)
            for e in load.executions
            if e.role == "worker" and e.request in load.before.workers
        ]
    for endpoint in sorted({endpoint for rows in columns.values() for endpoint, _, _ in rows}):
        print(f"\n{endpoint}: microseconds of processor time by milliseconds of sleep (requests)\n")
        print(f"| slept | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
        for low, high in zip((-1.0, *EDGES), EDGES, strict=False):
            cells = []
            for rows in columns.values():
                times = [s for e, gap, s in rows if e == endpoint and low < gap <= high]
                mean = f"{1e6 * float(np.mean(times)):.0f} ({len(times)})" if len(times) >= FEWEST else "-"
                cells.append(mean)
            name = "waited for" if high == 0 else f"> {1e3 * low:g}" if high >= 1 else f"to {1e3 * high:g}"
            print(f"| {name} | {' | '.join(cells)} |")


def _print_load(run: Run, load: Load, by_sleep: Model, by_rate: Model) -> None:
    cycles = sum(e.role == "client" for e in load.executions)
    idle: dict[str, float] = defaultdict(float)
    for process in run.parts[-1].processes:
        idle[f"{process.service}.{process.role}"] += process.idle_rate * load.seconds
    speed = load.speed(by_sleep)
    slept = _used(_set_up(by_sleep, load), load)
    rated = _used(at_rates(by_rate, _rates(by_rate, load)), load)
    print(f"\n{load.name}: {cycles / load.seconds:.0f} cycles/s, speed {speed:.2f}; microseconds per cycle\n")
    print("| processes | measured | set-up | | load dependence | |\n|---|---|---|---|---|---|")
    total = np.zeros(3)
    for role, seconds in sorted(load.printed["cpu"]["seconds"].items()):
        kind = "client" if role == "client" else role
        if kind not in slept:
            continue
        own = idle["client" if role == "client" else role]
        row = np.array([seconds - own, slept[kind] / speed, rated[kind] / speed])
        total += row
        _print_row(role, row / cycles)
    _print_row("all", total / cycles)


def _print_row(name: str, row: Any) -> None:
    measured, slept, rated = (1e6 * float(value) for value in row)
    errors = [f"{predicted:.0f} | {predicted / measured - 1:+.1%}" for predicted in (slept, rated)]
    print(f"| {name} | {measured:.0f} | {' | '.join(errors)} |")


def _used(model: Model, load: Load) -> dict[str, float]:
    """Return the processor seconds per kind of process in the window of a load, by a model without set-up."""
    requests = Counter(e.endpoint for e in load.executions)
    asked = Counter(
        operation.to
        for e in load.executions
        for operation in e.operations.values()
        if isinstance(operation.to, QueryRef)
    )
    found: dict[str, float] = defaultdict(float)
    for task in model.tasks:
        for entry in task.entries:
            number = asked[QueryRef(task.name, entry.name)] or requests[entry_label(task.name, entry.name)]
            if not number:
                continue
            visits = activity_visits(entry)
            each = sum(visits[a.name] * a.demand.mean for a in entry.activities if a.demand is not None)
            role = {"reference": "client", "database": f"{task.name}.database"}.get(
                task.role, f"{task.name}.worker"
            )
            found[role] += number * each
            if task.front is not None:
                both = (task.front.request, task.front.reply)
                found[f"{task.name}.front"] += number * sum(half.mean for half in both if half is not None)
    return found


def _set_up(model: Model, load: Load) -> Model:
    """Return the model with the mean set-up of a load on top of its times, and without set-up."""
    return replace(model, tasks=tuple(_task_set_up(task, load) for task in model.tasks))


def _task_set_up(task: Task, load: Load) -> Task:
    setup = task.setup
    if setup is None:
        return task
    keys = WorkNames(task.entries).texts

    def more(time: Any, key: str, share: float) -> Any:
        extra = setup.demands.get(key, (0.0, 0.0))[0] * share
        return time if time is None or not time.mean or not extra else time.scaled(1 + extra / time.mean)

    entries = []
    for entry in task.entries:
        if task.role == "database":
            gaps: Iterable[float] = (gap for _, gap in load.before.databases.get(task.name, ()))
        else:
            label = entry_label(task.name, entry.name)
            known = load.before.workers
            gaps = (known[e.request] for e in load.executions if e.endpoint == label and e.request in known)
        share = _mean_share(setup, gaps)
        activities = tuple(
            replace(a, demand=more(a.demand, keys[entry.name, a.name], share)) for a in entry.activities
        )
        entries.append(replace(entry, activities=activities))
    front = task.front
    if front is not None:
        halves = load.before.fronts
        mine = [halves[e.request] for e in load.executions if e.service == task.name and e.request in halves]
        share = _mean_share(setup, (gap for both in mine for gap in both)) / 2
        front = Front(request=more(front.request, "front", share), reply=more(front.reply, "front", share))
    return replace(task, entries=tuple(entries), front=front, setup=None)


def _mean_share(setup: Setup, gaps: Iterable[float]) -> float:
    shares = [setup.share(setup.worker, gap) for gap in gaps]
    return float(np.mean(shares)) if shares else 0.0


def _rates(model: Model, load: Load) -> dict[str, float]:
    """Return the rate that counts for each task: of a replica, or of the worker of an average request."""
    found = {}
    for task in model.tasks:
        mine = [e for e in load.executions if e.service == task.name]
        if task.role == "network":
            number = float(sum(e.role != "client" for e in load.executions))
        elif task.role == "database":
            number = float(
                sum(
                    isinstance(operation.to, QueryRef) and operation.to.database == task.name
                    for e in load.executions
                    for operation in e.operations.values()
                )
            )
        elif task.load_dependence is not None and task.load_dependence.by_thread:
            each = Counter((e.replica, e.worker) for e in mine)
            number = sum(n**2 for n in each.values()) / max(1, sum(each.values()))
        else:
            number = len(mine) / task.replicas
        found[task.name] = number / load.seconds
    return found


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
