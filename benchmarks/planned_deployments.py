"""Does the deployment that ``mup plan`` names meet its objective in reality, and the next cheaper one not?

    python benchmarks/planned_deployments.py                 # about 40 min; can be stopped, goes on
    python benchmarks/planned_deployments.py --application tms --questions 1
    python benchmarks/planned_deployments.py --report        # what there is, without measuring

The four case studies, whose work waits, with a quarter of their think times: one user is explored for two
minutes. Then come questions: so many clients, and a limit of the mean or of the 95th percentile of response
times, drawn between what 8 threads of every service show and twice that. Pools of 1 to 8 threads vary, at the
prices of ``mup plan``. All plans are stored before the first deployment is run.

Then the recommended deployment and the next cheaper one that was looked at are run, in random order, with
windows as those of the case studies (``case_studies/windows.py``; at most 40 s). A verdict is right if the
figure is on the side of the limit on which the plan has it. *Undecided*: the interval of what was measured
holds the limit. Runs that the machine disturbed are void, and done once more.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuracy.quiet import Quiet
from case_studies.applications import APPLICATIONS, ROOT, started
from case_studies.scaling import scaled
from case_studies.store import read_json
from case_studies.study import Study
from case_studies.windows import longer_window, shortest_window
from machine import describe
from stored import FOLDER, Store, add_results, run_resumable

from analyzer.validation import watched
from mup.lqn import Model
from mup.lqn.edits import with_clients
from mup.project import load_project
from mup.workload.measure import measure_load
from simulator import simulate
from simulator.studies.planning.chance import outlook
from simulator.studies.planning.plan import Option, plan
from simulator.studies.planning.prices import DEFAULT
from simulator.studies.planning.slo import Slo, objective
from simulator.studies.planning.space import Space
from simulator.studies.prediction import RealRun
from simulator.studies.rehearsal import cycle_seconds, rehearse, transient_seconds
from simulator.studies.whatif import Change

QUESTIONS = 3
CLIENTS = (16, 32, 64)
MOST = 8
"""Threads of a service."""
THINK = 0.25
"""Of the think times of the case studies."""
LONGEST = 40.0
"""Seconds of a window."""
LEAST_WARMUP = 2.0
EXPLORED = 120.0
STUDIES = FOLDER / "planned_deployments"


def questions(application: str, services: Sequence[str], model: Model, many: int) -> list[dict[str, Any]]:
    """Return loads and objectives, and the deployments that are planned for them.

    Args:
        application: Of the case studies.
        services: Whose pools vary.
        model: Calibrated; think times as they are run.
        many: How many.
    """
    rng = random.Random(application)
    found = []
    for number in range(many):
        clients = CLIENTS[number % len(CLIENTS)]
        loaded = with_clients(model, clients)
        axes = tuple(tuple(Change("pool", name, n) for n in range(1, MOST + 1)) for name in services)
        space = Space(loaded, axes, DEFAULT)
        largest = simulate(space.scenario(space.largest).model, precision=0.01, seed=1)
        figure = ("mean", "p95")[number % 2]
        shown = objective(loaded, figure, "", 1.0).measured(largest)
        assert shown is not None  # noqa: S101 - cycles were simulated
        limit = float(f"{shown.mean * rng.uniform(1.05, 2.0):.2g}")
        slo = objective(loaded, figure, "", limit)
        chosen = plan(space, [slo], seed=number, front=False)
        options = {"recommended": chosen.best, "next cheaper": chosen.next_cheaper}
        found.append({
            "clients": clients,
            "figure": figure,
            "limit": limit,
            "proven": chosen.proven,
            "deployments": {
                name: _deployment(option, slo, space)
                for name, option in options.items()
                if option is not None
            },
        })  # fmt: skip
    return found


def _deployment(option: Option, slo: Slo, space: Space) -> dict[str, Any]:
    """Return what a run of a deployment needs, and what is predicted of it."""
    pools = {change.name: int(change.value) for change in option.changes}
    scenario = space.scenario(tuple(int(change.value) - 1 for change in option.changes))
    model = scenario.model
    warmup = max(LEAST_WARMUP, cycle_seconds(model), transient_seconds(model) / 2)
    shortest = shortest_window(model)
    seen = rehearse(model, seconds=shortest, warmup=warmup, precision=0.02)
    seconds = max(shortest, longer_window(seen, LONGEST))
    chance = outlook(scenario, [slo], RealRun(seconds, 1), max_seconds=120.0)
    figure = chance.figures[0]
    return {
        "pools": pools,
        "cost": option.cost,
        "warmup": warmup,
        "seconds": seconds,
        "predicted": None if figure is None else figure.mean,
        "probability": chance.probability,
    }


def measured(
    application: str, database: Any, question: dict[str, Any], deployment: dict[str, Any]
) -> dict[str, Any]:
    """Run a deployment; return its figure, the interval of it, and why the run says nothing, if so."""
    with started(application, "wait", database) as project:
        found = measure_load(
            project,
            clients=question["clients"],
            duration=deployment["seconds"],
            warmup=deployment["warmup"],
            pools=deployment["pools"],
            seed=7,
            think_scale=THINK,
            retries=1,
        )
    response = found.response_time
    mean = question["figure"] == "mean"
    return {
        "value": response.mean if mean else response.p95,
        "ci95": response.ci95 if mean else response.p95_ci95,
        "failed": found.errors,
        "void": found.void or None,
    }


def verdict(question: dict[str, Any], which: str, seen: dict[str, Any]) -> str:
    """Return ``right``, ``wrong``, ``undecided`` or ``void``."""
    if seen["void"]:
        return "void"
    if abs(seen["value"] - question["limit"]) <= (seen["ci95"] or 0.0):
        return "undecided"
    meets = seen["value"] <= question["limit"]
    return "right" if meets is (which == "recommended") else "wrong"


def report(store: Store, applications: list[str]) -> None:
    """Print one row per deployment that was run, and how many verdicts are right."""
    print("| application | clients | objective | deployment | pools | predicted | met | measured | verdict |")
    print("|---|---|---|---|---|---|---|---|---|")
    told = []
    for application in applications:
        for number, question in enumerate(store.get(application) or ()):
            objective_text = f"{question['figure']} <= {1e3 * question['limit']:.3g} ms"
            for which, deployment in question["deployments"].items():
                seen = store.get(f"{application}, {number}, {which}")
                if seen is None:
                    continue
                told.append(verdict(question, which, seen))
                pools = " ".join(f"{name}={n}" for name, n in deployment["pools"].items())
                wide = "" if seen["ci95"] is None else f" ± {1e3 * seen['ci95']:.3g}"
                predicted = "-" if deployment["predicted"] is None else f"{1e3 * deployment['predicted']:.4g}"
                print(
                    f"| {application} | {question['clients']} | {objective_text} | {which} | {pools} |"
                    f" {predicted} | {deployment['probability']:.0%} | {1e3 * seen['value']:.4g}{wide} |"
                    f" {told[-1]} |"
                )
    counts = ", ".join(f"{told.count(name)} {name}" for name in ("right", "undecided", "wrong", "void"))
    print(f"\n{len(told)} deployments: {counts}")


def main() -> int:
    """Plan, run and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--application", choices=APPLICATIONS, action="append", help="only this; repeatable")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of each [default: %(default)s]")
    parser.add_argument("--report", action="store_true", help="print what there is")
    parser.add_argument("--studies", type=Path, default=STUDIES, help="of one user [default: %(default)s]")
    add_results(parser, "planned_deployments.jsonl")
    options = parser.parse_args()
    applications = options.application or list(APPLICATIONS)
    store = Store(options.results)
    if not options.report:
        studies = {
            name: Study(
                results=options.studies,
                application=name,
                mode="wait",
                explore_seconds=EXPLORED,
                quiet=Quiet(),
            )
            for name in applications
        }
        for name, study in studies.items():
            if store.get(name) is None:
                model = scaled(watched(study.model()), THINK)
                services = [service.name for service in load_project(ROOT / "examples" / name).services]
                store.put(name, questions(name, services, model, options.questions))
                print(f"{time.strftime('%H:%M:%S')} {name}: planned", flush=True)
        due = [
            (name, number, which)
            for name in applications
            for number, question in enumerate(store.get(name))
            for which in question["deployments"]
            if store.get(f"{name}, {number}, {which}") is None
        ]
        random.Random(1).shuffle(due)
        for name, number, which in due:
            question = store.get(name)[number]
            database = read_json(studies[name].folder.study)["settings"]["database"]
            seen = measured(name, database, question, question["deployments"][which])
            store.put(f"{name}, {number}, {which}", seen)
            print(
                f"{time.strftime('%H:%M:%S')} {name} {number} {which}: {verdict(question, which, seen)}",
                flush=True,
            )
    print(describe("numpy", "scipy"))
    report(store, applications)
    return 0


if __name__ == "__main__":
    run_resumable(main)
