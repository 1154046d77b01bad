"""Coverage of 95 % intervals: systems with known answers, many seeds each.

Every system is simulated once per seed with control variates and once without, until a precision is reached
or for a fixed time: then what they gain is the ratio of the mean squared errors. A coverage estimated from n
runs has itself a standard error of about sqrt(0.05 x 0.95 / n): 1.1 % for 400.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from coverage_systems import NAMES, System, systems
from machine import describe

from simulator import Figure, Result, simulate


@dataclass(frozen=True)
class Run:
    """One run: which intervals contain the truth, relative errors, timed steps and processor seconds."""

    inside: tuple[bool | None, ...]
    errors: tuple[float | None, ...]
    events: int
    seconds: float


def run(system: System, precision: float | None, controlled: bool, seed: int) -> Run:
    """Simulate once, until a precision is reached or for the fixed time."""
    start = time.process_time()
    result = simulate(
        system.model,
        precision=precision,
        horizon=system.horizon if precision is None else None,
        seed=seed,
        control_variates=controlled,
    )
    seconds = time.process_time() - start
    found = [
        None if truth is None or figure is None else (figure.mean - truth, figure.ci95, truth)
        for truth, figure in zip(system.exact, _figures(result), strict=True)
    ]
    return Run(
        tuple(None if f is None else abs(f[0]) <= f[1] for f in found),
        tuple(None if f is None else f[0] / f[2] for f in found),
        result.events,
        seconds,
    )


def _figures(result: Result) -> tuple[Figure | None, ...]:
    served, cpu = result.tasks.get("A"), result.processors.get("cpu")
    utilization = cpu.utilization if cpu is not None else served.utilization if served is not None else None
    queue = None if served is None else served.queue
    cycle = result.cycle
    return cycle.throughput, cycle.response_time, utilization, queue, cycle.response_time.p95


def shares(runs: Sequence[Run]) -> str:
    """Return the coverage of every figure as a percentage."""
    cells = []
    for index in range(len(NAMES)):
        inside = [r.inside[index] for r in runs]
        cells.append("-" if None in inside else f"{100 * sum(map(bool, inside)) / len(inside):.1f} %")
    return " ".join(f"{cell:>13}" for cell in cells)


def gains(plain: Sequence[Run], sharp: Sequence[Run]) -> str:
    """Return the ratio of the mean squared errors of every figure."""
    cells = []
    for index in range(len(NAMES)):
        before, after = ([r.errors[index] for r in runs] for runs in (plain, sharp))
        squares = [sum(e * e for e in errors if e is not None) for errors in (before, after)]
        cells.append("-" if None in before or not squares[1] else f"{squares[0] / squares[1]:.1f} x")
    return " ".join(f"{cell:>13}" for cell in cells)


def main() -> None:
    """Print the table of coverages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="seeds per system")
    parser.add_argument("--precision", type=float, help="of the runs ended by precision; default: by system")
    parser.add_argument("--only", default="", help="systems whose names contain this")
    parser.add_argument(
        "--fixed", action="store_true", help="runs of fixed length, and what is gained in them"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at once")
    options = parser.parse_args()
    print(describe("mup-framework", "numpy"))
    print(f"{options.runs} runs of each, seeds 0 to {options.runs - 1}")
    head = f"{'system, utilization':24} {'ends at':>10} {'controls':>8} {'steps':>9} {'CPU ms':>8} "
    print(head + " ".join(f"{n:>13}" for n in NAMES))
    with ProcessPoolExecutor(options.workers) as pool:
        for system in systems():
            if options.only not in system.name:
                continue
            aim = options.precision or system.precision
            ended: dict[bool, list[Run]] = {}
            for controlled in (False, True):
                job = partial(run, system, None if options.fixed else aim, controlled)
                runs = ended[controlled] = list(pool.map(job, range(options.runs), chunksize=4))
                end = f"{system.horizon:.4g} s" if options.fixed else f"+-{100 * aim:g} %"
                steps = sum(r.events for r in runs) / len(runs)
                spent = 1e3 * sum(r.seconds for r in runs) / len(runs)
                kind = "yes" if controlled else "no"
                print(
                    f"{system.name:24} {end:>10} {kind:>8} {steps:9.0f} {spent:8.1f} {shares(runs)}",
                    flush=True,
                )
            if options.fixed:
                print(
                    f"{'':24} {'':>10} {'gain':>8} {'':9} {'':8} {gains(ended[False], ended[True])}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
