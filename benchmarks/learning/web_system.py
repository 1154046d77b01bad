"""A real load-balanced system, learned from its logs alone: the case study of the thesis, section 3.2.2.

    python benchmarks/learning/web_system.py               # about 25 minutes; can be stopped, goes on
    python benchmarks/learning/web_system.py --minutes 10  # stops after so many; goes on with the next call
    python benchmarks/learning/web_system.py --report      # what there is, without measuring
    python benchmarks/learning/web_system.py --quick       # shows that it works: 4 minutes, nothing is kept

Services of mup (``web/services.py``): clients think, a balancer sends them to one of three servers of
different size and speed. Every run begins with a prescribed number of clients at each server; who was where
and when is read from the services' event logs. From half of the traces a closed queueing network is learned.
Two such systems take turns: while clients of one go home, a run on the other begins.

Then, as in the thesis: k = 2, .. 5 times as many clients, all from states never learned from; at k = 4, C2
gets 8 workers instead of 5, or the balancer other weights (0.35, 0.20, 0.45).

The error is the largest part of the clients that is misplaced at any moment (thesis, equation 3.2). The
*floor* is the error of the prediction against as many simulated runs of the learned network itself: what the
scatter of so few runs alone makes.

Runs to learn from are short: absolute rates show while the queues change, and that is over after a second.
That the servers make no calls is in the logs, too, so no client moves between them. Together that is as
precise as two thirds more time of observation.
Predictions are written to the folder of results before the first what-if is run. The table goes to
``report.md`` there, the pictures go into the docs.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from real_runs import (
    Arrays,
    Driver,
    Request,
    Round,
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
)
from real_runs import Run as RealRun

from analyzer.learning.misplaced import misplaced
from analyzer.learning.network_learning import LearnedNetwork, learn_network
from analyzer.learning.traces import Traces
from analyzer.learning.visits import Run, Visits, traces_of_runs, visits_of_logs
from mup.cli.output.chart import Curve, Panel, draw_panels
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.prediction import Prediction, predicted_means
from simulator.networks.simulation import transient_means

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER.parent / "results" / "web-system"
SERVERS = ("C1", "C2", "C3")
THINKING = "W"
THINK = 0.5  # s, mean
DT = 0.01
LEARN_SECONDS, SECONDS = 1.5, 2.5
MOST = 30  # clients per station when learning
UNIT = (8, 6, 6, 6)  # 26 clients, times k
POOL, WEIGHTS = 8, (0.35, 0.20, 0.45)
RUNS_PER_ROUND = 20
"""Of a what-if; of the states to learn from a round has one run each."""
SYSTEMS = 2
"""Take turns, so that none waits until clients of the last run are at home."""
FEWEST = 2
"""Runs of a what-if whose scatter is known."""
POINTS = 26
"""Moments drawn."""
POPULATION_LIMIT, STRATEGY_LIMIT = 10.0, 6.0
"""Percent; what is wanted for other populations, and for the two strategies."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A state to begin in, and what is changed.

    Attributes:
        name: For the table.
        file: For results and pictures.
        start: Clients who think, and at every server.
        pool: Workers of C2.
        weights: Of the balancer.
    """

    name: str
    file: str
    start: tuple[int, ...]
    pool: int | None = None
    weights: tuple[float, ...] | None = None

    @property
    def limit(self) -> float:
        """Percent of the clients that may be misplaced."""
        return POPULATION_LIMIT if self.pool is None and self.weights is None else STRATEGY_LIMIT

    def applied(self, network: ClosedNetwork) -> ClosedNetwork:
        """Return the network with the change."""
        if self.pool is not None:
            network = network.with_servers("C2", self.pool)
        if self.weights is not None:
            network = network.with_routing(THINKING, dict(zip(SERVERS, self.weights, strict=True)))
        return network


WHAT_IFS = (
    *(WhatIf(f"k = {k}", f"k{k}", tuple(k * n for n in UNIT)) for k in (2, 3, 4, 5)),
    WhatIf("k = 4, C2 has 8", "pool", tuple(4 * n for n in UNIT), pool=POOL),
    WhatIf("k = 4, weights", "weights", tuple(4 * n for n in UNIT), weights=WEIGHTS),
)


# The real system.


def first_requests(start: Sequence[int]) -> list[Request | None]:
    """Return what each client does first in a state: think, or have one of the servers work."""
    wishes: list[Request | None] = [None] * start[0]
    for name, many in zip(SERVERS, start[1:], strict=True):
        wishes += [Request("/ask/", {"to": name})] * many
    return wishes


def observe(
    starts: Sequence[Sequence[int]],
    order: Sequence[int],
    *,
    seconds: float,
    seed: int,
    options: argparse.Namespace,
    what_if: WhatIf | None = None,
) -> Round:
    """Run the system for real, from states in an order; return the queue lengths of each run."""
    pool = what_if.pool if what_if is not None else None
    weights = what_if.weights if what_if is not None else None
    env = {"MUP_WEIGHTS": ",".join(map(str, weights))} if weights else {}
    pools = {"C2": pool} if pool is not None else {}
    servers = {"W": math.inf, "C1": 9.0, "C2": float(pool or 5), "C3": 12.0}
    plans = [first_requests(starts[state]) for state in order]
    with tempfile.TemporaryDirectory() as scratch:
        logs = [Path(scratch) / str(number) for number in range(SYSTEMS)]
        with started(FOLDER / "web", "Balancer", logs, options, env=env, pools=pools) as systems:
            driver = Driver(
                systems.urls, THINK, lambda _: Request("/ask/", {}), random.Random(seed), systems.pids
            )
            most = math.ceil(max(map(len, plans)) / len(SERVERS))
            connect = [Request("/ask/", {"to": name}) for name in SERVERS] * most
            runs = driver.runs(plans, seconds, retries=options.retries, connect=connect)
        read = [visits_of_logs(folder) for folder in logs]
    began = [first for first, _ in read]
    ordered = [{name: np.array(sorted(visits[name])) for name in SERVERS} for _, visits in read]

    def traces(valid: Sequence[RealRun]) -> Traces:
        found = []
        for number, run in enumerate(valid):
            start, visits = starts[order[run.plan]], ordered[run.system]
            since = run.began * 1e-9 - began[run.system]
            there = zip(SERVERS, start[1:], strict=True)
            seen = {name: _of_run(visits[name], since, seconds, many) for name, many in there}
            found.append(Run(trace=str(number), clients=sum(start), visits=seen))
        return traces_of_runs(found, dt=DT, seconds=seconds, servers=servers, rest=THINKING)

    return round_of(runs, traces, order)


def _of_run(visits: FloatArray, began: float, seconds: float, first: int) -> Visits:
    """Return the visits of one run, from its beginning; those who begin at a server are there at once."""
    low, high = np.searchsorted(visits[:, 0], (began, began + seconds))
    times = visits[low:high] - began
    times[:first, 0] = 0.0
    return [(float(start), float(end)) for start, end in times]


# What is learned, and how right it is.


def predicted_queues(network: ClosedNetwork, start: Sequence[int]) -> Prediction:
    """Return the mean queue lengths the network predicts; shape (1, H, M)."""
    samples = round(SECONDS / DT) + 1
    return predicted_means(network, np.array([start]), dt=DT, samples=samples, runs=400, seed=1)


def floor(network: ClosedNetwork, start: Sequence[int], expected: FloatArray, runs: int) -> float:
    """Return the error of a prediction against so many simulated runs of what is predicted; median of ten."""
    samples = round(SECONDS / DT) + 1
    errors = [
        misplaced(
            transient_means(network, np.array([start]), dt=DT, samples=samples, runs=runs, seed=seed).x,
            expected,
        )[0]
        for seed in range(10)
    ]
    return float(np.median(errors))


def learning(states: int, rounds: int, options: argparse.Namespace) -> Series:
    """Return what is learned from: every round has a run from every state."""
    starts = np.random.default_rng(1).integers(0, MOST + 1, (states, 4)).tolist()
    every = list(range(states))
    return Series(
        f"learn-{states}",
        rounds,
        lambda number: observe(starts, every, seconds=LEARN_SECONDS, seed=number, options=options).arrays(),
    )


def asking(what_if: WhatIf, runs: int, options: argparse.Namespace) -> Series:
    """Return what really happens; half of the runs are enough for the wider limit of other populations."""
    many = runs if what_if.limit == STRATEGY_LIMIT else math.ceil(runs / 2)
    each = min(many, RUNS_PER_ROUND)
    return Series(
        f"{what_if.file}-by-{each}",
        math.ceil(many / each),
        lambda number: observe(
            [what_if.start],
            [0] * each,
            seconds=SECONDS,
            seed=1000 + number,
            options=options,
            what_if=what_if,
        ).arrays(),
    )


def study(states: int, learn_rounds: int, what_if_runs: int, options: argparse.Namespace) -> None:
    """Observe what is missing, learn, predict; print and write what was found."""
    learn = learning(states, learn_rounds, options)
    observed = measured([learn], options)
    rest = missing([learn], observed)
    if rest:
        sys.exit(f"nothing is predicted before all is observed; missing: {rest}. Call again, or ask for less")
    found = [Round.of_arrays(one) for one in observed[learn.name]]
    predicted = predicted_before(f"predicted-{states}x{learn_rounds}", lambda: predictions(found), options)
    asked = {what_if: asking(what_if, what_if_runs, options) for what_if in WHAT_IFS}
    kept = measured(list(asked.values()), options)
    rest = missing(list(asked.values()), kept)
    seen = {what_if: [Round.of_arrays(one) for one in kept[asked[what_if].name]] for what_if in asked}
    with options.quiet.shared():
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
    """Learn from runs and predict all others: the network, and mean queues with half-widths by what-if."""
    traces = mean_traces(found)
    without = list(itertools.permutations(SERVERS, 2))
    learn_network(traces.select(range(4)), without=without)  # everything is compiled before the clock runs
    clock = time.process_time()
    learned = learn_network(traces, without=without)
    lines = show(learned, time.process_time() - clock, traces, found)
    network = learned.network
    made = {"lines": np.array(lines), "rates": network.rates, "routing": network.routing}
    for what_if in WHAT_IFS:
        expected = predicted_queues(what_if.applied(network), what_if.start)
        made |= {what_if.file: expected.x[0], f"{what_if.file}-half": expected.half[0]}
    return made | {"servers": network.servers}


def report(
    predicted: Arrays, seen: Mapping[WhatIf, Sequence[Round]], options: argparse.Namespace
) -> list[str]:
    """Compare predictions with runs, write pictures; return what is to be printed."""
    learned = ClosedNetwork(
        names=(THINKING, *SERVERS),
        rates=predicted["rates"],
        routing=predicted["routing"],
        servers=predicted["servers"],
    )
    columns = ("what-if", "clients", "runs (void)", "busiest: predicted, seen", "at worst", "floor", "wanted")
    lines = [*map(str, predicted["lines"]), "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for what_if, rounds in seen.items():
        runs = np.concatenate([one.traces.x for one in rounds]) if rounds else np.zeros((0, 0, 0))
        many = f"| {what_if.name} | {sum(what_if.start)} | {len(runs)} ({sum(one.void for one in rounds)}) |"
        if len(runs) < FEWEST:
            lines.append(f"{many} not measured yet | - | - | - |")
            continue
        network = what_if.applied(learned)
        expected, half = predicted[what_if.file], predicted[f"{what_if.file}-half"]
        mean = runs.mean(axis=0)
        error = float(misplaced(mean[None], expected[None])[0])
        least = floor(network, what_if.start, expected[None], len(runs))
        busiest = ", ".join(fullest(x, network.servers) for x in (expected, mean))
        verdict = "met" if error <= what_if.limit else "missed"
        lines.append(f"{many} {busiest} | {error:.2f} % | {least:.2f} % | {what_if.limit:g} %: {verdict} |")
        if not options.quick:
            file = options.pictures / f"learning-web-{what_if.file}.svg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(picture(what_if, expected, half, runs, error) + "\n", encoding="utf-8")
            print(f"wrote {file}")
    return lines


def picture(what_if: WhatIf, expected: FloatArray, half: FloatArray, runs: FloatArray, error: float) -> str:
    """Return queue lengths over time, predicted and seen, with 95 % intervals; a panel per station."""
    moments = np.unique(np.linspace(0, runs.shape[1] - 1, POINTS).round().astype(int))
    mean = runs.mean(axis=0)
    spread = float(stdtrit(len(runs) - 1, 0.975)) * runs.std(axis=0, ddof=1) / math.sqrt(len(runs))
    panels = [
        Panel(
            f"clients at {name}",
            {
                "predicted": _curve(expected[moments, i], half[moments, i]),
                f"seen: mean of {len(runs)} runs": _curve(mean[moments, i], spread[moments, i]),
            },
        )
        for i, name in enumerate((THINKING, *SERVERS))
    ]
    times = [f"{m * DT:.1f}" if place % 5 == 0 else "" for place, m in enumerate(moments)]
    title = f"{what_if.name}, {sum(what_if.start)} clients: {error:.2f} % misplaced at worst"
    return draw_panels(title, "seconds", times, panels)


def _curve(mean: FloatArray, half: FloatArray) -> Curve:
    return Curve(list(range(len(mean))), mean.tolist(), (mean - half).tolist(), (mean + half).tolist())


def fullest(x: FloatArray, servers: FloatArray) -> str:
    """Return the station with most clients per server at the end, with its mean queue."""
    tail = x[-(len(x) // 4) :].mean(axis=0)
    station = int(np.argmax(tail / servers))
    return f"{(THINKING, *SERVERS)[station]} {tail[station]:.1f}"


def show(learned: LearnedNetwork, seconds: float, traces: Traces, found: Sequence[Round]) -> list[str]:
    """Return what was learned beside what the source says."""
    network = learned.network
    halves = np.full(4, math.nan) if learned.rates_half is None else learned.rates_half
    means = zip(network.names, 1 / network.rates, halves / network.rates**2, strict=True)
    runs = sum(len(one.states) for one in found)
    return [
        f"{runs} runs from {len(traces.x)} states, {sum(one.void for one in found)} more were void",
        f"learned in {seconds:.1f} s of processor time (thesis: 27 min)",
        "means, s:  " + ", ".join(f"{name} {mean:.4f} +- {half:.4f}" for name, mean, half in means),
        "in source: W 0.5, C1 0.12, C2 0.15, C3 0.2; calls, connections and timers come on top",
        "routing from W: " + ", ".join(f"{p:.3f}" for p in network.routing[0]),
        f"error on traces held back: {learned.err_validation.mean:.2f} % (thesis: 3.89 %)",
    ]


def main() -> None:
    """Do what is missing, print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="8 states of 3 runs, 5 runs per what-if")
    parser.add_argument("--states", type=int, default=40, help="to learn from (thesis: 50)")
    parser.add_argument("--runs", type=int, default=12, help="per state (thesis: 500)")
    parser.add_argument(
        "--what-if-runs", type=int, default=40, help="per strategy, half of it per population (thesis: 300)"
    )
    add_options(parser, RESULTS)
    options = prepared(parser.parse_args())
    print(describe("numpy", "aiohttp"))
    if options.quick:
        study(8, 3, 5, options)
    else:
        study(options.states, options.runs, options.what_if_runs, options)


if __name__ == "__main__":
    # Ended by SIGTERM like by Ctrl-C: services that were started end, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
