"""Precision of a prediction over CPU seconds.

    python benchmarks/precision_over_time.py [--repeats N] [--seed N] [--budgets SECONDS ...] [--quick]

The figure is the larger of the relative 95 % half-widths of cycle response time and throughput, as ``mup
simulate`` shows it. The same number of seconds is simulated in one run and in independent replications on all
cores, each of which deletes its own warm-up. CPU seconds are those of all cores together.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import describe
from neutral_models import load_reference_model

from mup.errors import SimulationError
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Task
from simulator import Result, simulate
from simulator.studies.parallel.many import replicate

TEASTORE = Path(__file__).parent / "teastore-size.json"
CLIENTS = (150, 224, 300)
BUDGETS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""CPU seconds per run."""

LONG_ENOUGH = 0.3
"""CPU seconds of the run that tells how fast a model is simulated."""

REPLICATIONS = 10


@dataclass(frozen=True)
class Reached:
    """What a run (or several) has achieved.

    Attributes:
        cpu: Seconds of all threads of this process.
        wall: Seconds.
        precision: Relative half-width.
    """

    cpu: float
    wall: float
    precision: float


def median(runs: Sequence[Reached]) -> Reached:
    """Return the median of each."""
    columns = zip(*((run.cpu, run.wall, run.precision) for run in runs), strict=True)
    return Reached(*(statistics.median(column) for column in columns))


def single_queue() -> Model:
    """Return M/M/1 at a load of 0.9, from an open source."""
    nothing = Constant(0.0)
    ask = Activity(name="ask", demand=nothing, delay=nothing, calls=(Call(task="A", entry="a"),))
    work = Activity(name="work", demand=Exponential(0.9), delay=nothing)
    source = Task(
        name="Arrivals",
        role="reference",
        threads=math.inf,
        entries=(Entry(name="cycle", start="ask", activities=(ask,), arrivals=Exponential(1.0)),),
    )
    served = Task(name="A", threads=1, entries=(Entry(name="a", start="work", activities=(work,)),))
    return Model(name="M/M/1", tasks=(source, served))


def models() -> Iterator[tuple[str, Model]]:
    """Yield what is simulated, with its name."""
    reference = load_reference_model(TEASTORE)
    for clients in CLIENTS:
        yield f"TeaStore-sized, {clients} clients", reference.with_clients(clients)
    yield "M/M/1, load 0.9", single_queue()


def timed(simulation: Callable[[], Result]) -> Reached:
    """Run a simulation and look at the clocks."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = simulation()
    return Reached(time.process_time() - cpu, time.perf_counter() - wall, result.precision.reached)


def alone(model: Model, horizon: float, seed: int) -> Reached:
    """Simulate once."""
    return timed(lambda: simulate(model, horizon=horizon, seed=seed))


def replicated(model: Model, horizon: float, seed: int) -> Reached:
    """Simulate as many seconds in replications on all cores."""
    return timed(lambda: replicate(model, REPLICATIONS, horizon=horizon / REPLICATIONS, seed=seed))


def pace(model: Model, seed: int) -> float:
    """Return how many seconds are simulated per CPU second, from a run long enough to tell."""
    horizon = 50.0
    alone(model, horizon, seed)  # compiles, or loads what is kept on disk
    while (run := alone(model, horizon, seed)).cpu < LONG_ENOUGH:
        horizon *= 2
    return horizon / run.cpu


def main() -> None:
    """Print the half-width reached for every model and budget."""
    parser = argparse.ArgumentParser(description="How precise is a prediction after how many CPU seconds?")
    parser.add_argument("--repeats", type=int, default=5, help="seeds per cell")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--budgets", type=float, nargs="+", default=list(BUDGETS), help="CPU seconds per run")
    parser.add_argument("--quick", action="store_true", help="see that it works")
    options = parser.parse_args()
    repeats, budgets = (1, [0.05]) if options.quick else (options.repeats, options.budgets)
    print(describe("mup-framework", "numpy"))
    print(
        f"seeds from {options.seed} on, medians of {repeats} runs; relative half-width in %, {REPLICATIONS} "
        f"replications on {os.cpu_count()} cores"
    )
    print(f"\n{'':28s} {'one run':^18s}   {'replications':^28s}")
    print(f"{'model':28s} {'CPU s':>8s} {'+/- %':>9s}   {'CPU s':>8s} {'wall s':>8s} {'+/- %':>9s}")
    for name, model in models():
        speed = pace(model, options.seed)
        for budget in budgets:
            horizon = budget * speed
            # Far apart: replication k of a seed uses seed + k.
            seeds = [options.seed + 1000 * number for number in range(repeats)]
            single = median([alone(model, horizon, seed) for seed in seeds])
            line = f"{name:28s} {single.cpu:8.2f} {100 * single.precision:9.3f}"
            try:
                many = median([replicated(model, horizon, seed) for seed in seeds])
            except SimulationError:
                print(f"{line}   {'too short':>28s}")  # for one cycle per replication
            else:
                print(f"{line}   {many.cpu:8.2f} {many.wall:8.2f} {100 * many.precision:9.3f}")


if __name__ == "__main__":
    main()
