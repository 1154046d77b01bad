"""A real load-balanced system, learned from its logs alone: the case study of the thesis, section 3.2.2.

    python benchmarks/learning/web_system.py             # about 50 minutes; can be stopped, goes on
    python benchmarks/learning/web_system.py --quick     # shows that it works: 3 minutes, nothing is kept

Services of mup (``web/services.py``): clients think, a balancer sends them to one of three servers of
different size and speed. Every run begins with a prescribed number of clients at each server; who was where
and when is read from the services' event logs. From half of the traces a closed queueing network is learned.

Then, as in the thesis: k = 2, .. 5 times as many clients, all from states never learned from; at k = 4, C2
gets 8 workers instead of 5, or the balancer other weights (0.35, 0.20, 0.45).

The error is the largest part of the clients that is misplaced at any moment (thesis, equation 3.2). The
*floor* is the error of the prediction against as many simulated runs of the learned network itself: what the
scatter of so few runs alone makes.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from real_runs import Driver, Request, project_in, stored_traces

from analyzer.learning.misplaced import misplaced
from analyzer.learning.network_learning import LearnedNetwork, learn_network
from analyzer.learning.traces import Traces
from analyzer.learning.visits import Run, Visits, traces_of_runs, visits_of_logs
from mup.runtime.launcher import Deployment
from simulator.closed_network import ClosedNetwork
from simulator.network_prediction import predicted_means
from simulator.network_simulation import transient_means

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER.parent / "results" / "web-system"
SERVERS = ("C1", "C2", "C3")
THINKING = "W"
THINK = 0.5  # s, mean
DT, SECONDS = 0.01, 2.5
MOST = 30  # clients per station when learning
UNIT = (8, 6, 6, 6)  # 26 clients, times k
POOL, WEIGHTS = 8, (0.35, 0.20, 0.45)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A state to begin in, and what is changed."""

    name: str
    start: tuple[int, ...]
    pool: int | None = None
    weights: tuple[float, ...] | None = None

    def applied(self, network: ClosedNetwork) -> ClosedNetwork:
        """Return the network with the change."""
        if self.pool is not None:
            network = network.with_servers("C2", self.pool)
        if self.weights is not None:
            network = network.with_routing(THINKING, dict(zip(SERVERS, self.weights, strict=True)))
        return network


WHAT_IFS = (
    *(WhatIf(f"k = {k}", tuple(k * n for n in UNIT)) for k in (2, 3, 4, 5)),
    WhatIf("k = 4, C2 has 8", tuple(4 * n for n in UNIT), pool=POOL),
    WhatIf("k = 4, weights", tuple(4 * n for n in UNIT), weights=WEIGHTS),
)


# The real system.


def first_requests(start: Sequence[int]) -> list[Request | None]:
    """Return what each client does first in a state: think, or have one of the servers work."""
    wishes: list[Request | None] = [None] * start[0]
    for name, many in zip(SERVERS, start[1:], strict=True):
        wishes += [Request("/ask/", {"to": name})] * many
    return wishes


def observe(
    starts: Sequence[Sequence[int]], runs: int, seed: int, *, what_if: WhatIf | None = None
) -> Traces:
    """Run the system for real, from each state so many times; return the mean queue lengths of each state."""
    pool = what_if.pool if what_if is not None else None
    weights = what_if.weights if what_if is not None else None
    project = project_in(FOLDER / "web", {"MUP_WEIGHTS": ",".join(map(str, weights))} if weights else {})
    servers = {"W": math.inf, "C1": 9.0, "C2": float(pool or 5), "C3": 12.0}
    # All states once, then all states again: what drifts hits each of them alike.
    order = [list(start) for _ in range(runs) for start in starts]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with Deployment(
            project, log_dir=folder, pools={"C2": pool} if pool is not None else {}
        ) as deployment:
            url = next(r.url for r in deployment.replicas() if r.service == "Balancer")
            driver = Driver(url, THINK, lambda _: Request("/ask/", {}), random.Random(seed))
            driver.runs([first_requests((0, 20, 20, 20))] * 2, 1.0)  # connections are made
            began = [r.began for r in driver.runs([first_requests(start) for start in order], SECONDS)]
        first, visits = visits_of_logs(folder)
    ordered = {name: np.array(sorted(visits[name])) for name in SERVERS}
    found = []
    for number, begin in enumerate(began):
        _, *there = order[number]
        since = begin * 1e-9 - first
        seen = {name: _of_run(ordered[name], since, n) for name, n in zip(SERVERS, there, strict=True)}
        found.append(Run(trace=str(number % len(starts)), clients=sum(order[number]), visits=seen))
    return traces_of_runs(found, dt=DT, seconds=SECONDS, servers=servers, rest=THINKING)


def _of_run(visits: npt.NDArray[np.float64], began: float, first: int) -> Visits:
    """Return the visits of one run, from its beginning; those who begin at a server are there at once."""
    low, high = np.searchsorted(visits[:, 0], (began, began + SECONDS))
    seconds = visits[low:high] - began
    seconds[:first, 0] = 0.0
    return [(float(start), float(end)) for start, end in seconds]


# What is learned, and how right it is.


def predicted(network: ClosedNetwork, start: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return the mean queue lengths the network predicts; shape (1, H, M)."""
    samples = round(SECONDS / DT) + 1
    return predicted_means(network, np.array([start]), dt=DT, samples=samples, runs=400, seed=1).x


def floor(network: ClosedNetwork, start: Sequence[int], expected: Any, runs: int) -> float:
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


def study(states: int, runs: int, what_if_runs: int, folder: Path | None) -> None:
    """Observe, learn, predict, observe; print a table."""
    draw = np.random.default_rng(1)
    starts = draw.integers(0, MOST + 1, (states, 4)).tolist()

    def file(name: str) -> Path | None:
        return None if folder is None else folder / f"{name}.npz"

    traces = stored_traces(file("learned-from"), lambda: observe(starts, runs, seed=1))
    learn_network(traces.select(range(4)))  # everything is compiled before the clock runs
    clock = time.process_time()
    learned = learn_network(traces)
    seconds = time.process_time() - clock
    show(learned, seconds)
    print()
    print("| what-if | clients | busiest: predicted, seen | misplaced at worst | floor |")
    print("|---|---|---|---|---|")
    for number, what_if in enumerate(WHAT_IFS):
        network = what_if.applied(learned.network)
        expected = predicted(network, what_if.start)
        name = f"what-if-{number}"
        seen = stored_traces(
            file(name),
            lambda w=what_if, n=number: observe([w.start], what_if_runs, seed=10 + n, what_if=w),  # type: ignore[misc]
        )
        error = misplaced(seen.x, expected)[0]
        least = floor(network, what_if.start, expected, what_if_runs)
        busiest = ", ".join(fullest(x, network.servers) for x in (expected[0], seen.x[0]))
        print(
            f"| {what_if.name} | {sum(what_if.start)} | {busiest} | {error:.2f} % | {least:.2f} % |",
            flush=True,
        )
        if folder is not None:
            outcome = {
                "what_if": what_if.name,
                "error": error,
                "floor": least,
                "expected": expected[0].tolist(),
            }
            (folder / f"{name}.json").write_text(json.dumps(outcome))


def fullest(x: npt.NDArray[np.float64], servers: npt.NDArray[np.float64]) -> str:
    """Return the station with most clients per server at the end, with its mean queue."""
    tail = x[-len(x) // 4 :].mean(axis=0)
    station = int(np.argmax(tail / servers))
    return f"{(THINKING, *SERVERS)[station]} {tail[station]:.1f}"


def show(learned: LearnedNetwork, seconds: float) -> None:
    """Print what was learned beside what the source says."""
    network = learned.network
    means = 1 / network.rates
    print(f"learned in {seconds:.1f} s of processor time (thesis: 27 min)")
    print("means, s:  " + ", ".join(f"{n} {m:.4f}" for n, m in zip(network.names, means, strict=True)))
    print("in source: W 0.5, C1 0.12, C2 0.15, C3 0.2; calls, connections and timers come on top")
    print("routing from W: " + ", ".join(f"{p:.3f}" for p in network.routing[0]))
    print(f"error on traces held back: {learned.err_validation.mean:.2f} % (thesis: 3.89 %)")


def main() -> None:
    """Do what is missing, print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="8 states of 3 runs, 5 runs per what-if")
    parser.add_argument("--states", type=int, default=40, help="to learn from (thesis: 50)")
    parser.add_argument("--runs", type=int, default=15, help="per state (thesis: 500)")
    parser.add_argument("--what-if-runs", type=int, default=60, help="per what-if (thesis: 300)")
    options = parser.parse_args()
    print(describe("numpy", "aiohttp"))
    if options.quick:
        study(8, 3, 5, None)
    else:
        study(options.states, options.runs, options.what_if_runs, RESULTS)


if __name__ == "__main__":
    main()
