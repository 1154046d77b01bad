"""Real microservices whose times are learned from their queues: the thesis, section 4.3.2.

    python benchmarks/learning/microservices.py             # about 35 minutes; can be stopped, goes on
    python benchmarks/learning/microservices.py --quick     # shows that it works: 3 minutes, nothing is kept

Six services of mup (``microservices/services.py``), in four layers, whose threads take waiting requests
in random order. 60 clients begin every run in another state: some ask at once, the others think. From the
services' event logs it is known how many requests are at each endpoint over time. The structure with its
pools and probabilities is known, all 13 times are unknown: ``mup learn lqn`` learns them. What would 50 to
200 clients see? Predicted by the simulator, then run.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from real_runs import Driver, Request, Run, project_in, stored_traces

from analyzer.calibration.intervals import half_width_of_batches
from analyzer.learning.lqn import learn_lqn
from analyzer.learning.traces import Traces
from analyzer.learning.visits import read_runs, traces_of_runs
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Task
from mup.lqn.edits import with_clients
from mup.runtime.launcher import Deployment
from simulator import simulate

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER.parent / "results" / "microservices"
PAGES = ("/home/", "/catalogue/", "/cart/")
READ_SHARE = 0.6
THINK = 0.8  # s, mean
CLIENTS = 60
DT, SECONDS = 0.05, 4.0
SETTLED = 0.03
"""Seconds after which what was asked for at once has arrived; there the trace begins."""
WHAT_IFS = (50, 100, 150, 200)
WARM_UP = 6.0


def structure() -> Model:
    """Return the model without times: one activity per endpoint that waits, and one per call."""

    def leaf(path: str) -> Entry:
        return Entry(name=path, start="work", activities=(_work(),))

    def chain(path: str, *targets: str) -> Entry:
        calls = tuple(_calling(f"call{i}", t) for i, t in enumerate(targets, 1))
        names = ["work", *(c.name for c in calls)]
        arcs = tuple(Precedence(pre=(a,), post=(b,)) for a, b in itertools.pairwise(names))
        return Entry(name=path, start="work", activities=(_work(), *calls), precedences=arcs)

    def choice(path: str, first: Activity, odds: tuple[float, ...], *targets: str) -> Entry:
        calls = tuple(_calling(f"call{i}", t) for i, t in enumerate(targets, 1))
        arc = Precedence(pre=(first.name,), post=tuple(c.name for c in calls), fork="or", probabilities=odds)
        return Entry(name=path, start=first.name, activities=(first, *calls), precedences=(arc,))

    def task(name: str, threads: int, *entries: Entry) -> Task:
        return Task(name=name, threads=threads, entries=entries, admission="random")

    nothing = Activity(name="choose", demand=Constant(0.0), delay=Constant(0.0))
    third = (1 / 3, 1 / 3, 1 - 2 / 3)
    cycle = choice("cycle", nothing, third, *(f"Router{page}" for page in PAGES))
    clients = Task(
        name="Client", role="reference", threads=CLIENTS, think=Exponential(THINK), entries=(cycle,)
    )
    return Model(
        name="microservices",
        tasks=(
            clients,
            task("Router", 25, *(chain(page, f"Front{page}") for page in PAGES)),
            task(
                "Front",
                12,
                leaf("/home/"),
                chain("/catalogue/", "Catalogue/list/", "Catalogue/item/"),
                choice("/cart/", _work(), (READ_SHARE, 1 - READ_SHARE), "Carts/get/", "Carts/add/"),
            ),
            task(
                "Catalogue",
                6,
                chain("/list/", "CatalogueDb/query/"),
                chain("/item/", "CatalogueDb/query/"),
            ),
            task("Carts", 6, chain("/get/", "CartsDb/find/"), chain("/add/", "CartsDb/write/")),
            task("CatalogueDb", 5, leaf("/query/")),
            task("CartsDb", 4, leaf("/find/"), leaf("/write/")),
        ),
    )


def _work() -> Activity:
    return Activity(name="work", demand=Constant(0.0), delay=None)


def _calling(name: str, target: str) -> Activity:
    task, _, path = target.partition("/")
    call = Call(task=task, entry=f"/{path}")
    return Activity(name=name, demand=Constant(0.0), delay=Constant(0.0), calls=(call,))


# The real system.


def execute(
    plans: Sequence[Sequence[Request | None]], seconds: float, seed: int, log: Path | None
) -> list[Run]:
    """Run the services under loads, one after another."""
    with Deployment(project_in(FOLDER / "microservices", {}), log_dir=log) as deployment:
        url = next(r.url for r in deployment.replicas() if r.service == "Router")
        driver = Driver(url, THINK, lambda draw: Request(draw.choice(PAGES), {}), random.Random(seed))
        driver.runs([[Request(page, {}) for page in PAGES * 10]] * 2, 1.0)  # connections are made
        return driver.runs(plans, seconds)


def observe(states: int, runs: int) -> Traces:
    """Return mean queue lengths of each endpoint, from so many states."""
    draw = random.Random(1)
    wishes = [None, *(Request(page, {}) for page in PAGES)]
    many = []
    for _ in range(states):
        weights = [draw.random() for _ in wishes]
        many.append(draw.choices(wishes, weights, k=CLIENTS))
    order = [state for _ in range(runs) for state in range(states)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = execute([many[state] for state in order], SECONDS, 2, folder / "log")
        with (folder / "runs.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(("trace", "folder", "begin", "clients"))
            for state, run in zip(order, found, strict=True):
                table.writerow((state, "log", f"{run.began * 1e-9 + SETTLED:.6f}", CLIENTS))
        read = read_runs(folder / "runs.csv", by_entry=True)
    return traces_of_runs(read, dt=DT, seconds=SECONDS - SETTLED - DT, servers=None)


def measured(clients: int, seconds: float) -> tuple[float, float]:
    """Return the mean response time of so many clients, and the half-width of its 95 % interval."""
    (run,) = execute([[None] * clients], WARM_UP + seconds, clients, None)
    late = np.array([time for moment, time in run.responses if moment > WARM_UP])
    return float(late.mean()), half_width_of_batches(np.array_split(late, 20)) or math.inf


def study(states: int, runs: int, seconds: float, folder: Path | None) -> None:
    """Observe, learn, predict, measure; print a table."""
    file = folder / "traces.npz" if folder is not None else None
    traces = stored_traces(file, lambda: observe(states, runs))
    learned = learn_lqn(structure(), traces)
    cpu = f"{learned.seconds:.0f} s, corrected in {learned.correction_seconds:.0f} s"
    print(f"learned in {cpu} of processor time (thesis: 5 h)")
    print(f"error on traces held back: {learned.corrected_validation} (fluid: {learned.err_validation:.4f})")
    for warning in learned.warnings:
        print(f"warning: {warning}")
    for key, one in learned.times.items():
        print(f"  {key}: {1000 * one.mean:.1f} +- {1000 * (one.ci95 or 0):.1f} ms")
    print()
    print("| clients | predicted | seen | error |")
    print("|---|---|---|---|")
    stored: dict[str, Any] = {}
    results = folder / "measured.json" if folder is not None else None
    if results is not None and results.exists():
        stored = json.loads(results.read_text())
    for clients in WHAT_IFS:
        expected = simulate(with_clients(learned.model, clients), precision=0.005, seed=1).cycle.response_time
        if str(clients) not in stored:
            stored[str(clients)] = measured(clients, seconds)
            if results is not None:
                results.write_text(json.dumps(stored))
        seen, half = stored[str(clients)]
        print(
            f"| {clients} | {1000 * expected.mean:.1f} ms | {1000 * seen:.1f} +- {1000 * half:.1f} ms"
            f" | {expected.mean / seen - 1:+.1%} |",
            flush=True,
        )


def main() -> None:
    """Do what is missing, print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="10 states of 2 runs, 10 s per what-if")
    parser.add_argument("--states", type=int, default=40, help="to learn from (thesis: 100)")
    parser.add_argument("--runs", type=int, default=8, help="per state")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each what-if")
    options = parser.parse_args()
    print(describe("numpy", "aiohttp"))
    if options.quick:
        study(10, 2, 10.0, None)
    else:
        study(options.states, options.runs, options.seconds, RESULTS)


if __name__ == "__main__":
    main()
