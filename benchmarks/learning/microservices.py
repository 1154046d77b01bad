"""Real microservices whose times are learned from their queues: the thesis, section 4.3.2.

    python benchmarks/learning/microservices.py              # about 45 minutes; can be stopped, goes on
    python benchmarks/learning/microservices.py --minutes 10 # stops after so many; goes on with the next call
    python benchmarks/learning/microservices.py --report     # what there is, without measuring
    python benchmarks/learning/microservices.py --quick      # shows that it works: 4 minutes, nothing is kept

Six services of mup (``microservices/services.py``), in four layers, whose threads take waiting requests
in random order. 60 clients begin every run in another state: some ask at once, the others think. From the
services' event logs it is known how many requests are at each endpoint over time. The structure with its
pools and probabilities is known, all 13 times are unknown: ``mup learn lqn`` learns them. What would 50 to
200 clients see? Predicted by the simulator, then run.

Two such systems take turns: while clients of one go home, a run on the other begins. Predictions are written
to the folder of results before any other number of clients is run. The tables go to ``report.md`` there, the
picture into the docs.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import random
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from real_runs import (
    Arrays,
    Driver,
    Request,
    Round,
    Run,
    Series,
    add_options,
    mean_traces,
    measured,
    missing,
    order_of,
    predicted_before,
    prepared,
    round_of,
    started,
    valid,
)

from analyzer.learning.lqn import LearnedLqn, learn_lqn
from analyzer.learning.traces import Traces
from analyzer.learning.visits import read_runs, traces_of_runs
from mup.cli.output.chart import Curve, draw_chart
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Task
from mup.lqn.edits import with_clients
from mup.lqn.json_io import model_to_json
from mup.statistics.groups import half_width_of_batches
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
BURST = 0.2
"""Seconds that are not learned from. What up to 60 clients ask for at once, some 5 ms of processor time each
with all it calls, competes for two cores that long; the model has services on machines of their own."""
SYSTEMS = 2
"""Take turns when learned from, so that none waits until clients of the last run are at home."""
WHAT_IFS = (50, 100, 150, 200)
WARM_UP = 10.0
BATCHES = 20
"""Of response times, for their interval."""
LIMIT = 6.0
"""Percent; what is wanted of every response time."""
MEANS = {
    "Router/home/": 0.010, "Router/catalogue/": 0.012, "Router/cart/": 0.015,
    "Front/home/": 0.040, "Front/catalogue/": 0.030, "Front/cart/": 0.030,
    "Catalogue/list/": 0.050, "Catalogue/item/": 0.040, "Carts/get/": 0.030, "Carts/add/": 0.050,
    "CatalogueDb/query/": 0.040, "CartsDb/find/": 0.030, "CartsDb/write/": 0.060,
}  # fmt: skip
"""Seconds of work in ``microservices/services.py``: what is learned is compared with them, nothing else."""


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
    plans: Sequence[Sequence[Request | None]],
    seconds: float,
    seed: int,
    logs: Sequence[Path | None],
    options: argparse.Namespace,
) -> list[Run]:
    """Run the services under loads, one after another; once per folder of logs, in turns."""
    with started(FOLDER / "microservices", "Router", logs, options) as systems:
        driver = Driver(
            systems.urls,
            THINK,
            lambda draw: Request(draw.choice(PAGES), {}),
            random.Random(seed),
            systems.pids,
        )
        connect = [Request(page, {}) for page in PAGES] * (CLIENTS // len(PAGES))
        return driver.runs(plans, seconds, retries=options.retries, connect=connect)


def beginnings(states: int) -> list[list[Request | None]]:
    """Draw states: what each client does first."""
    draw = random.Random(1)
    wishes = [None, *(Request(page, {}) for page in PAGES)]
    return [draw.choices(wishes, [draw.random() for _ in wishes], k=CLIENTS) for _ in range(states)]


def observe(states: int, seed: int, options: argparse.Namespace) -> Round:
    """Run the services once from each of so many states; return the queue lengths of each endpoint."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        logs = [folder / f"log{number}" for number in range(SYSTEMS)]
        runs = execute(beginnings(states), SECONDS, seed, logs, options)

        def traces(valid: Sequence[Run]) -> Traces:
            with (folder / "runs.csv").open("w", newline="") as file:
                table = csv.writer(file)
                table.writerow(("trace", "folder", "begin", "clients"))
                for number, run in enumerate(valid):
                    begin = f"{run.began * 1e-9 + SETTLED:.6f}"
                    table.writerow((number, logs[run.system].name, begin, CLIENTS))
            read = read_runs(folder / "runs.csv", by_entry=True)
            return _with_all(traces_of_runs(read, dt=DT, seconds=SECONDS - SETTLED - DT, servers=None))

        return round_of(runs, traces, range(states))


def _with_all(traces: Traces) -> Traces:
    """Return the traces with a column for every endpoint, also if it had no visit in a whole round."""
    names = tuple(sorted(f"{t.name}{e.name}" for t in structure().tasks[1:] for e in t.entries))
    x = np.zeros((*traces.x.shape[:2], len(names)))
    for column, name in enumerate(traces.names):
        x[:, :, names.index(name)] = traces.x[:, :, column]
    return Traces(x=x, dt=traces.dt, names=names)


def asking(clients: int, seconds: float, options: argparse.Namespace) -> Series:
    """Return the response times so many clients see: when each answer came, and how long it took."""

    def measure(_number: int) -> Arrays:
        runs = execute([[None] * clients], WARM_UP + seconds, clients, [None], options)
        (run,) = valid(runs)
        return {"responses": np.array(run.responses), "void": np.array(len(runs) - 1)}

    return Series(f"clients-{clients}-{seconds:g}s", 1, measure)


def response_time(found: Arrays, seconds: float) -> tuple[float, float]:
    """Return the mean response time, seconds, and the half-width of its 95 % interval.

    Of the answers in the window after the warm-up; later ones came while clients went home.
    """
    moments, taken = found["responses"].T
    counted = taken[(moments > WARM_UP) & (moments <= WARM_UP + seconds)]
    return float(counted.mean()), half_width_of_batches(
        [batch.tolist() for batch in np.array_split(counted, BATCHES)]
    ) or math.inf


def study(states: int, rounds: int, seconds: float, options: argparse.Namespace) -> None:
    """Observe what is missing, learn, predict; print and write what was found."""
    learn = Series(f"learn-{states}", rounds, lambda number: observe(states, number, options).arrays())
    observed = measured([learn], options)
    rest = missing([learn], observed)
    if rest:
        sys.exit(f"nothing is predicted before all is observed; missing: {rest}. Call again, or ask for less")
    found = [Round.of_arrays(one) for one in observed[learn.name]]
    predicted = predicted_before(f"predicted-{states}x{rounds}", lambda: predictions(found), options)
    asked = {clients: asking(clients, seconds, options) for clients in WHAT_IFS}
    kept = measured(list(asked.values()), options)
    rest = missing(list(asked.values()), kept)
    seen = {
        clients: response_time(kept[one.name][0], seconds) for clients, one in asked.items() if kept[one.name]
    }
    lines = report(predicted, seen, options)
    lines += ["", order_of(predicted, itertools.chain.from_iterable(kept.values()))]
    if rest:
        lines += ["", f"Missing rounds: {rest}"]
    print("\n".join(lines), flush=True)
    if not options.quick:
        file = options.results / "report.md"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {file}")
    if rest and not options.report:
        sys.exit("stopped; the same command goes on from here")


def predictions(found: Sequence[Round]) -> Arrays:
    """Learn from runs; return the model and what it predicts, means with half-widths by number of clients."""
    traces = mean_traces(found)
    traces = replace(traces, x=traces.x[:, round(BURST / DT) :])
    learned = learn_lqn(structure(), traces)
    times = [
        simulate(with_clients(learned.model, clients), precision=0.005, seed=1).cycle.response_time
        for clients in WHAT_IFS
    ]
    return {
        "lines": np.array(show(learned, traces, found)),
        "model": np.array(json.dumps(model_to_json(learned.model))),
        "mean": np.array([time.mean for time in times]),
        "half": np.array([time.ci95 for time in times]),
    }


def report(
    predicted: Arrays, seen: Mapping[int, tuple[float, float]], options: argparse.Namespace
) -> list[str]:
    """Compare predictions with runs, draw both; return what is to be printed.

    Args:
        predicted: See ``predictions``.
        seen: Mean response time by clients, seconds, and the half-width of its interval.
        options: Of the command line.
    """
    lines = [*map(str, predicted["lines"]), "", "| clients | predicted | seen | error | wanted |"]
    lines.append("|---|---|---|---|---|")
    expected = dict(zip(WHAT_IFS, zip(predicted["mean"], predicted["half"], strict=True), strict=True))
    for clients, (mean, half) in seen.items():
        foretold = expected[clients][0]
        error = 100 * float(foretold / mean - 1)
        verdict = "met" if abs(error) <= LIMIT else "missed"
        lines.append(
            f"| {clients} | {1000 * foretold:.1f} ms | {1000 * mean:.1f} +- {1000 * half:.1f} ms |"
            f" {error:+.1f} % | {LIMIT:g} %: {verdict} |"
        )
    if seen and not options.quick:
        file = options.pictures / "learning-microservices.svg"
        file.parent.mkdir(parents=True, exist_ok=True)
        title = "Response time of real microservices, learned with 60 clients"
        both = _curve(list(seen), [expected[c] for c in seen]), _curve(list(seen), list(seen.values()))
        file.write_text(draw_chart(title, "clients", "ms", *both) + "\n", encoding="utf-8")
        print(f"wrote {file}")
    return lines


def _curve(x: Sequence[int], values: Sequence[tuple[float, float]]) -> Curve:
    """Return a curve in milliseconds, of means and half-widths in seconds."""
    mean, half = 1000 * np.array(values).T
    return Curve(list(x), mean.tolist(), (mean - half).tolist(), (mean + half).tolist())


def show(learned: LearnedLqn, traces: Traces, found: Sequence[Round]) -> list[str]:
    """Return what was learned beside what the source says."""
    runs = sum(len(one.states) for one in found)
    cpu = f"{learned.seconds:.0f} s, corrected in {learned.correction_seconds:.0f} s"
    simulated = learned.corrected_validation
    corrected = "-" if simulated is None else f"{simulated:.4f}"
    lines = [
        f"{runs} runs from {len(traces.x)} states, {sum(one.void for one in found)} more were void",
        f"learned in {cpu} of processor time (thesis: 5 h)",
        f"error on traces held back: {corrected} (fluid: {learned.err_validation:.4f})",
        *(f"warning: {warning}" for warning in learned.warnings),
        "",
        "| time | learned | in source |",
        "|---|---|---|",
    ]
    for key, one in learned.times.items():
        half = "-" if one.ci95 is None else f"{1000 * one.ci95:.1f}"
        source = MEANS[f"{key.task}{key.entry}"]
        lines.append(f"| {key} | {1000 * one.mean:.1f} +- {half} ms | {1000 * source:.0f} ms |")
    return [*lines, "", "What a call, a connection and a timer take comes on top of what the source says."]


def main() -> None:
    """Do what is missing, print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="10 states of 2 runs, 10 s per what-if")
    parser.add_argument("--states", type=int, default=25, help="to learn from (thesis: 100)")
    parser.add_argument("--runs", type=int, default=16, help="per state")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each what-if")
    add_options(parser, RESULTS)
    options = prepared(parser.parse_args())
    print(describe("numpy", "aiohttp"))
    if options.quick:
        study(10, 2, 10.0, options)
    else:
        study(options.states, options.runs, options.seconds, options)


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
