"""How often do 95 % intervals contain the exact mean? Systems with known answers, many seeds each.

Every system is simulated once per seed, ended by the precision reached and, again, after a fixed time. A
coverage estimated from n runs has itself a standard error of about sqrt(0.05 x 0.95 / n): 1.1 % for 400.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from machine import describe

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task
from simulator import Result, simulate

SERVICE = 0.1
LOADS = (0.5, 0.9)
NAMES = ("throughput", "response time", "utilization", "queue")


@dataclass(frozen=True)
class System:
    """A model whose means are known.

    Attributes:
        name: For the table.
        model: What to simulate.
        exact: Throughput (1/s), response time (s), utilization, mean queue; None = not to be compared.
        horizon: Simulated seconds of the runs of fixed length.
    """

    name: str
    model: Model
    exact: tuple[float | None, ...]
    horizon: float


def queue_model(load: Task, servers: int, discipline: str) -> Model:
    """Return one queue: of threads, or of a processor of some discipline."""
    threaded = discipline == "threads"
    work = Activity(name="work", demand=Exponential(SERVICE), delay=Constant(0.0))
    server = Task(
        name="A",
        threads=servers if threaded else math.inf,
        processor=None if threaded else "cpu",
        entries=(Entry(name="a", start="work", activities=(work,)),),
    )
    cpu = Processor(name="cpu", cores=servers, discipline="ps" if threaded else discipline)  # type: ignore[arg-type]
    return Model(name="queue", processors=() if threaded else (cpu,), tasks=(load, server))


def scenario() -> Entry:
    """Return the scenario of all load: one request."""
    ask = Activity(name="ask", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="A", entry="a"),))
    return Entry(name="cycle", start="ask", activities=(ask,))


def closed(clients: int, servers: int, load: float, discipline: str) -> System:
    """Return M/M/c//N with the think time that brings the servers to this load."""
    low, high = 0.0, 1e4
    for _ in range(100):
        think = (low + high) / 2
        low, high = (think, high) if machine_repair(clients, servers, think)[0] > load else (low, think)
    utilization, queue = machine_repair(clients, servers, think)
    throughput = utilization * servers / SERVICE
    response = queue / throughput + SERVICE
    users = Task(name="U", role="reference", threads=clients, think=Exponential(think), entries=(scenario(),))
    threaded = discipline == "threads"
    return System(
        f"M/M/{servers}//{clients} {discipline}, {load:g}",
        queue_model(users, servers, discipline),
        (throughput, response, utilization, queue if threaded else None),
        20_000 / throughput,
    )


def machine_repair(clients: int, servers: int, think: float) -> tuple[float, float]:
    """Return the utilization and mean queue of M/M/c//N, from its birth-death chain."""
    weights = [1.0]
    for n in range(1, clients + 1):
        weights.append(weights[-1] * (clients - n + 1) / think * SERVICE / min(n, servers))
    total = sum(weights)
    busy = sum(w * min(n, servers) for n, w in enumerate(weights)) / total
    return busy / servers, sum(w * max(0, n - servers) for n, w in enumerate(weights)) / total


def opened(load: float, discipline: str) -> System:
    """Return M/M/1."""
    entry = Entry(
        name="cycle", start="ask", activities=scenario().activities, arrivals=Exponential(SERVICE / load)
    )
    users = Task(name="U", role="reference", threads=math.inf, entries=(entry,))
    threaded = discipline == "threads"
    return System(
        f"M/M/1 {discipline}, {load:g}",
        queue_model(users, 1, discipline),
        (load / SERVICE, SERVICE / (1 - load), load, load**2 / (1 - load) if threaded else None),
        4_000 / (1 - load) ** 2 * SERVICE / load,  # some hundreds of relaxation times
    )


SYSTEMS = [
    *(closed(10, 1, load, "threads") for load in LOADS),
    *(closed(40, 4, load, "ps") for load in LOADS),
    *(opened(load, kind) for kind in ("threads", "ps") for load in LOADS),
]


def hits(system: System, precision: float | None, seed: int) -> tuple[tuple[bool | None, ...], int]:
    """Simulate once; return which intervals contain the truth, and the timed steps it took."""
    horizon = system.horizon if precision is None else None
    result = simulate(system.model, precision=precision, horizon=horizon, seed=seed)
    return contained(system, result), result.events


def contained(system: System, result: Result) -> tuple[bool | None, ...]:
    """Tell for every figure of a system whether its interval contains the truth."""
    served, cpu = result.tasks["A"], result.processors.get("cpu")
    utilization = served.utilization if cpu is None else cpu.utilization
    figures = (result.cycle.throughput, result.cycle.response_time, utilization, served.queue)
    return tuple(
        None if truth is None or figure is None else abs(figure.mean - truth) <= figure.ci95
        for truth, figure in zip(system.exact, figures, strict=True)
    )


def share(found: Sequence[tuple[bool | None, ...]], index: int) -> str:
    """Return the coverage of one figure as a percentage."""
    inside = [hit[index] for hit in found]
    return "-" if None in inside else f"{100 * sum(map(bool, inside)) / len(inside):.1f} %"


def main() -> None:
    """Print the table of coverages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="seeds per system")
    parser.add_argument("--precision", type=float, default=0.05, help="of the runs ended by precision")
    options = parser.parse_args()
    print(describe("mup-framework", "numpy"))
    print(f"{options.runs} runs of each, seeds 0 to {options.runs - 1}")
    print(f"{'system, utilization':24} {'ends at':>10} {'steps':>9} " + " ".join(f"{n:>13}" for n in NAMES))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for system in SYSTEMS:
            for precision in (options.precision, None):
                runs = list(pool.map(partial(hits, system, precision), range(options.runs), chunksize=8))
                end = f"{system.horizon:.4g} s" if precision is None else f"+-{100 * precision:g} %"
                steps = sum(events for _, events in runs) / len(runs)
                found = [hit for hit, _ in runs]
                shares = " ".join(f"{share(found, i):>13}" for i in range(len(NAMES)))
                print(f"{system.name:24} {end:>10} {steps:9.0f} {shares}", flush=True)


if __name__ == "__main__":
    main()
