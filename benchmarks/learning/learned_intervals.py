"""Coverage of the 95 % intervals of learned rates, routing and times.

    python benchmarks/learning/learned_intervals.py            # 40 seeds per system
    python benchmarks/learning/learned_intervals.py --quick    # 12 seeds of the small systems: 1 min

Small systems with known parameters are observed anew for every seed and learned from: closed networks with
observed busy times, with simulated ones, and with simulations much shorter than usual, whose noise then
exceeds that of the data; and a layered system. Per system:

- *coverage*: of all parameters and seeds together. With right intervals it is 95 % with a standard error of
  sqrt(0.05 x 0.95 / parameters / seeds), somewhat more, since parameters of one seed are not independent.
- *bias*: root mean square, over the parameters, of the mean error over all seeds, in standard deviations of a
  single estimate. The seeds alone make it ``1 / sqrt(seeds)``; more is a systematic error.
- *width*: what the intervals take for the standard deviation, over what it is (median over the parameters).

Results are kept per system and seed in benchmarks/results; with ``--minutes`` it stops and goes on later
(``--minutes 0`` prints what there is). Systems take turns, so they have about as many seeds each.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from queueing_networks import balancer, random_network

from analyzer.learning.lqn import TRAINING, learn_lqn
from analyzer.learning.lqn_columns import column_names
from analyzer.learning.network_learning import GROUPS, learn_network
from analyzer.learning.traces import Traces
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Processor, Task
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.inlined import inline
from simulator.networks.inlined_process import InlinedProcess
from simulator.networks.simulation import transient_means

RESULTS = Path(__file__).resolve().parents[1] / "results" / "learning-coverage.jsonl"
FloatArray = npt.NDArray[np.float64]
NOTHING = Constant(0.0)
LAYERED = 50
"""Traces of the layered system."""


@dataclass(frozen=True, slots=True)
class Learned:
    """Errors of one seed's estimates, and the half-widths of their intervals; both of shape (parameters,)."""

    errors: FloatArray
    halves: FloatArray


@dataclass(frozen=True, slots=True)
class System:
    """Something to be learned.

    Attributes:
        name: For the table.
        learn: From a seed to what was learned.
        freedom: Degrees of freedom of the intervals.
    """

    name: str
    learn: Callable[[int], Learned]
    freedom: int


def of_network(
    truth: ClosedNetwork,
    *,
    clients: int,
    seconds: float,
    runs: int,
    traces: int,
    busy: bool = False,
    events: float = 4e6,
) -> Callable[[int], Learned]:
    """Return how to observe and learn a network.

    Args:
        truth: The network.
        clients: At most, at every station at the beginning.
        seconds: Length of a trace, 100 samples.
        runs: Averaged per trace.
        traces: Half of them are learned from.
        busy: Whether busy times are observed, too.
        events: Simulated for the correction.
    """
    names, routing = truth.names, truth.routing
    none = [(a, b) for i, a in enumerate(names) for j, b in enumerate(names) if i != j and not routing[i, j]]
    apart = (routing > 0) & (routing < 1)

    def learn(seed: int) -> Learned:
        starts = np.random.default_rng([seed, 1]).integers(0, clients + 1, (traces, len(names)))
        starts[starts.sum(axis=1) == 0, 0] = 1
        dt = seconds / 100
        means = transient_means(truth, starts, dt=dt, samples=101, runs=runs, seed=seed)
        seen = Traces(x=means.x, dt=dt, names=names, servers=truth.servers, busy=means.busy if busy else None)
        found = learn_network(seen, without=none, seed=seed, events=events)
        if found.rates_half is None or found.routing_half is None:
            raise RuntimeError("too few traces for intervals")
        errors = [found.network.rates - truth.rates, (found.network.routing - routing)[apart]]
        return Learned(np.concatenate(errors), np.concatenate([found.rates_half, found.routing_half[apart]]))

    return learn


def layered() -> Model:
    """Return a system of two layers with a fork, whose five times are to be learned."""

    def act(name: str, mean: float, *calls: Call) -> Activity:
        return Activity(name=name, demand=Exponential(mean), delay=NOTHING, calls=calls)

    cycle = Activity(name="ask", demand=NOTHING, delay=NOTHING, calls=(Call(task="A", entry="a"),))
    query = Call(task="B", entry="b")
    entry = Entry(
        name="a",
        start="open",
        activities=(act("open", 0.05), act("left", 0.1), act("right", 0.06, query), act("close", 0.04)),
        precedences=(
            Precedence(pre=("open",), post=("left", "right"), fork="and"),
            Precedence(pre=("left", "right"), post=("close",), join="and"),
        ),
    )
    users = Task(
        name="U", role="reference", threads=24, think=Exponential(0.5),
        entries=(Entry(name="cycle", start="ask", activities=(cycle,)),),
    )  # fmt: skip
    b = Entry(name="b", start="work", activities=(act("work", 0.08),))
    return Model(
        name="layered",
        processors=(Processor(name="cpu", cores=8),),
        tasks=(
            users,
            Task(name="A", threads=10, processor="cpu", admission="random", entries=(entry,)),
            Task(name="B", threads=4, admission="random", entries=(b,)),
        ),
    )


def of_layers(*, runs: int, traces: int) -> Callable[[int], Learned]:
    """Return how to observe and learn the layered system."""
    truth = layered()
    lqn = inline(truth)
    process = InlinedProcess(lqn)
    true = dict(zip(map(str, lqn.times), lqn.means.tolist(), strict=True))

    def learn(seed: int) -> Learned:
        starts = process.random_starts(traces, seed=seed)
        seen = process.simulate(lqn.means, starts, dt=0.1, samples=31, replications=runs, seed=seed)
        found = learn_lqn(
            _forgotten(truth), Traces(x=seen.x @ lqn.counts.T, dt=0.1, names=column_names(lqn)), seed=seed
        )
        names = sorted(str(k) for k in found.times)
        learned = {str(k): t for k, t in found.times.items()}
        return Learned(
            np.array([learned[n].mean - true[n] for n in names]),
            np.array([learned[n].ci95 for n in names], dtype=float),
        )

    return learn


def _forgotten(model: Model) -> Model:
    """Return the model without the demands of its servers."""
    for task in model.tasks[1:]:
        entries = tuple(
            replace(e, activities=tuple(replace(a, demand=None) for a in e.activities)) for e in task.entries
        )
        model = model.with_task(replace(task, entries=entries))
    return model


def systems(*, quick: bool) -> list[System]:
    """Return what is learned."""
    small = ClosedNetwork(
        names=("W", "C1", "C2"),
        rates=np.array([1.0, 9.0, 7.0]),
        routing=balancer((1, 1, 1)).routing,
        servers=np.array([math.inf, 3, 4]),
    )
    chosen: dict[str, Any] = {"clients": 20, "seconds": 3.0, "runs": 100, "traces": 40}
    five: dict[str, Any] = {"clients": 40, "seconds": 2.0, "runs": 100, "traces": 40}
    found = [
        System("3 stations, busy times observed", of_network(small, **chosen, busy=True), GROUPS - 1),
        System("3 stations, simulated", of_network(small, **chosen), GROUPS - 1),
        System("3 stations, simulated little", of_network(small, **chosen, events=1e5), GROUPS - 1),
        System("two layers", of_layers(runs=30, traces=LAYERED), round(TRAINING * LAYERED) - 1),
    ]
    if not quick:
        network = random_network(5, 4)
        found += [
            System("5 stations, simulated", of_network(network, **five), GROUPS - 1),
            System("5 stations, simulated little", of_network(network, **five, events=1.6e6), GROUPS - 1),
        ]
    return found


def line(name: str, freedom: int, rows: Sequence[dict[str, Any]], seconds: float) -> str:
    """Return what the seeds of one system say."""
    errors, halves = (np.array([row[key] for row in rows]) for key in ("errors", "halves"))
    seeds, parameters = errors.shape
    scatter = errors.std(axis=0, ddof=1)
    bias = math.sqrt(float(np.mean((errors.mean(axis=0) / scatter) ** 2)))
    implied = np.sqrt((halves**2).mean(axis=0)) / float(stdtrit(freedom, 0.975))
    inside = np.abs(errors) <= halves
    return (
        f"| {name} | {seeds} | {parameters} | {100 * inside.mean():.1f} % |"
        f" {100 * inside.mean(axis=0).min():.0f} % | {bias:.2f} ({1 / math.sqrt(seeds):.2f}) |"
        f" {float(np.median(implied / scatter)):.2f} | {seconds:.1f} |"
    )


def main() -> None:
    """Learn what is missing, print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=40, help="per system")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no seed after so many")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="12 seeds of the small systems; nothing is kept")
    options = parser.parse_args()
    last = time.monotonic() + 60 * options.minutes
    print(describe("numpy"))
    rows: list[dict[str, Any]] = []
    if options.quick:
        options.seeds = 12
    elif options.results.exists():
        rows = [json.loads(text) for text in options.results.read_text().splitlines()]
    wanted = systems(quick=options.quick)
    known = {(row["system"], row["seed"]) for row in rows}
    for seed in range(options.seeds):
        for system in wanted:
            if (system.name, seed) in known or time.monotonic() > last:
                continue
            rows.append(learned_once(system, seed))
            if not options.quick:
                options.results.parent.mkdir(parents=True, exist_ok=True)
                with options.results.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    print(
        "| system | seeds | parameters | coverage | worst parameter | bias (of the seeds alone) | width"
        " | s each |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for system in wanted:
        mine = [row for row in rows if row["system"] == system.name and row["seed"] < options.seeds]
        if len(mine) > 1:
            # The first one compiles.
            seconds = float(np.median([row["seconds"] for row in mine]))
            print(line(system.name, system.freedom, mine, seconds), flush=True)


def learned_once(system: System, seed: int) -> dict[str, Any]:
    """Return what is kept of one seed."""
    began = time.process_time()
    learned = system.learn(seed)
    return {
        "system": system.name,
        "seed": seed,
        "errors": learned.errors.tolist(),
        "halves": learned.halves.tolist(),
        "seconds": time.process_time() - began,
    }


if __name__ == "__main__":
    main()
