"""Events per CPU second and memory of the simulator, beside others.

    python benchmarks/simulator_speed.py [--repeats N] [--seed N] [--quick]

An event is one timed step: a think time, a delay, one use of a processor. CPU seconds are those of this
process while it simulates, the recording of all figures and their evaluation included, compilation left out.
Simulators take turns, so that a machine that is slow for a while is slow for both. Memory is the peak of a
fresh process.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import itertools
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from machine import describe
from neutral_models import load_reference_model

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Processor, Task
from simulator import simulate

TEASTORE = Path(__file__).parent / "teastore-size.json"
CORES = 6
NOTHING = Constant(0.0)

STATIONS, SERVERS, SERVICE, RATE = 2, 4, 0.01, 320.0
"""An open row of stations that another simulator can do, too: seconds, customers per second."""

CUSTOMERS = 100_000

MILLION = 1_000_000


def step(name: str, demand: float = 0.0, *, delay: float = 0.0, call: str = "") -> Activity:
    """Return an activity with exponential times (none if 0) that calls the entry ``e`` of a task, or none."""
    return Activity(
        name=name,
        demand=Exponential(demand) if demand else NOTHING,
        delay=Exponential(delay) if delay else NOTHING,
        calls=(Call(task=call, entry="e"),) if call else (),
    )


def users(count: int, think: float) -> Task:
    """Return clients that think and then call the task ``A``."""
    cycle = Entry(name="cycle", start="ask", activities=(step("ask", call="A"),))
    return Task(name="Users", role="reference", threads=count, think=Exponential(think), entries=(cycle,))


def teastore(clients: int) -> Model:
    """Return the model of the size of TeaStore."""
    return load_reference_model(TEASTORE).with_clients(clients)


def teastore_shared(clients: int) -> Model:
    """Return the same with processor sharing on six cores instead of a core for every thread."""
    model = teastore(clients)
    shared = tuple(
        p if p.name in {"cpu-Net", "cpu-Clients"} else replace(p, discipline="ps", cores=CORES)
        for p in model.processors
    )
    return replace(model, processors=shared)


def queue(clients: int = 40, servers: int = 4, think: float = 1.0, service: float = 0.1) -> Model:
    """Return M/M/c with a finite number of customers: one task of ``servers`` threads."""
    served = Task(
        name="A", threads=servers, entries=(Entry(name="e", start="w", activities=(step("w", service),)),)
    )
    return Model(name="M/M/c", tasks=(users(clients, think), served))


def fork_join() -> Model:
    """Return clients whose requests fork into three branches on a two-core host and join again."""
    names = ("x", "y", "z")
    body = Entry(
        name="e",
        start="s",
        activities=(step("s", 0.01), *(step(n, 0.02, delay=0.05) for n in names), step("end", 0.01)),
        precedences=(
            Precedence(pre=("s",), post=names, fork="and"),
            Precedence(pre=names, post=("end",), join="and"),
        ),
    )
    served = Task(name="A", threads=8, processor="host", entries=(body,))
    return Model(
        name="fork-join", processors=(Processor(name="host", cores=2),), tasks=(users(20, 1.0), served)
    )


def tandem() -> Model:
    """Return an open row of first-come first-served stations."""
    names = [f"s{i}" for i in range(STATIONS)]
    processors = tuple(Processor(name=n, cores=SERVERS, discipline="fcfs") for n in names)
    stations = tuple(
        Task(
            name=n,
            threads=math.inf,
            processor=n,
            entries=(Entry(name="e", start="w", activities=(step("w", SERVICE),)),),
        )
        for n in names
    )
    visits = tuple(Precedence(pre=(f"to {a}",), post=(f"to {b}",)) for a, b in itertools.pairwise(names))
    cycle = Entry(
        name="cycle",
        start=f"to {names[0]}",
        activities=tuple(step(f"to {n}", call=n) for n in names),
        precedences=visits,
        arrivals=Exponential(1 / RATE),
    )
    source = Task(name="Arrivals", role="reference", threads=math.inf, entries=(cycle,))
    return Model(name="tandem", processors=processors, tasks=(source, *stations))


@dataclass(frozen=True)
class Rate:
    """Events per CPU second of a run."""

    events: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Events per CPU second."""
        return self.events / self.seconds


def timed(model: Model, horizon: float, seed: int, engine: str) -> Rate:
    """Simulate once."""
    before = time.process_time()
    result = simulate(model, horizon=horizon, seed=seed, engine=engine)
    return Rate(result.events, time.process_time() - before)


def engines(quick: bool) -> Iterator[tuple[str, Model, float, float]]:
    """Yield name, model, and simulated seconds for the compiled and the SimPy engine."""
    share = 0.05 if quick else 1.0
    yield "TeaStore-sized, 512 clients", teastore(512), 2000 * share, 40 * share
    yield "the same, six-core PS", teastore_shared(512), 2000 * share, 40 * share
    yield "M/M/4, 40 clients", queue(), 100_000 * share, 2000 * share
    yield "fork-join, 20 clients", fork_join(), 20_000 * share, 400 * share


def compare_engines(repeats: int, seed: int, *, quick: bool) -> None:
    """Print events per CPU second of both engines, and their ratio."""
    print(f"\nEvents per CPU second, seed {seed}, medians of {repeats} runs that take turns")
    print(f"{'model':30s} {'compiled':>12s} {'SimPy':>12s} {'ratio':>8s} {'from - to':>15s}")
    for name, model, long, short in engines(quick):
        timed(model, short, seed, "compiled")  # compiles, or loads what is kept on disk
        pairs = [
            (
                timed(model, long, seed, "compiled").per_second,
                timed(model, short, seed, "reference").per_second,
            )
            for _ in range(repeats)
        ]
        ratios = sorted(a / b for a, b in pairs)
        fast, slow = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(
            f"{name:30s} {fast / 1e6:10.2f} M {slow / 1e6:10.3f} M {statistics.median(ratios):8.0f} "
            f"{ratios[0]:7.0f} -{ratios[-1]:6.0f}"
        )


def whole_run(repeats: int, seed: int, *, quick: bool) -> None:
    """Print the CPU seconds of a long run."""
    horizon = 300.0 if quick else 6000.0
    for name, model in (("first come first served", teastore(512)), ("six-core PS", teastore_shared(512))):
        timed(model, horizon / 100, seed, "compiled")
        runs = [timed(model, horizon, seed, "compiled") for _ in range(repeats)]
        seconds = [run.seconds for run in runs]
        print(
            f"TeaStore-sized ({name}), 512 clients, {horizon:g} simulated s, "
            f"{runs[0].events / 1e6:.1f} million events: {statistics.median(seconds):.2f} CPU s "
            f"(median of {repeats}, {min(seconds):.2f} - {max(seconds):.2f})"
        )


def in_fresh_process(what: str, *arguments: str) -> dict[str, float]:
    """Run a part of this file in a process of its own; return what it prints."""
    command = [sys.executable, __file__, "--part", what, *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def part(what: str, horizon: float, seed: int) -> dict[str, float]:
    """Simulate one model; return seconds, events and the peak of this process's memory in MB."""
    model = teastore(512) if what == "teastore" else queue(MILLION, MILLION // 5, think=10.0, service=1.0)
    simulate(queue(), horizon=100.0, seed=seed)
    run = timed(model, horizon, seed, "compiled")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": run.seconds, "events": run.events, "megabytes": peak}


def memory(seed: int, *, quick: bool) -> None:
    """Print the peak memory of fresh processes: a short run, a long one, and a million clients."""
    in_fresh_process("teastore", "--horizon", "10")  # a process that compiles takes more
    for horizon in (60, 300) if quick else (600, 6000):
        one = in_fresh_process("teastore", "--horizon", str(horizon), "--seed", str(seed))
        print(f"TeaStore-sized, 512 clients, {horizon} simulated s: {one['megabytes']:.0f} MB at most")
    horizon = 2 if quick else 60
    one = in_fresh_process("million", "--horizon", str(horizon), "--seed", str(seed))
    print(
        f"{MILLION} clients, {horizon} simulated s, {one['events'] / 1e6:.1f} million events: "
        f"{one['seconds']:.1f} CPU s, {one['megabytes']:.0f} MB at most"
    )


def ciw_customers(horizon: float, seed: int) -> int:
    """Simulate the tandem with ciw; return how many customers left it."""
    import ciw  # noqa: PLC0415 - only this comparison needs it

    following = [[float(j == i + 1) for j in range(STATIONS)] for i in range(STATIONS)]
    arrivals = [ciw.dists.Exponential(rate=RATE)] + [None] * (STATIONS - 1)
    network = ciw.create_network(
        arrival_distributions=arrivals,
        service_distributions=[ciw.dists.Exponential(rate=1 / SERVICE)] * STATIONS,
        number_of_servers=[SERVERS] * STATIONS,
        routing=following,
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(horizon)
    return len({record.id_number for record in simulation.get_all_records() if record.node == STATIONS})


def compare_ciw(repeats: int, seed: int, *, quick: bool) -> None:
    """Print CPU seconds for the same row of stations and the same number of customers."""
    if importlib.util.find_spec("ciw") is None:
        print("ciw: not installed")
        return
    horizon = (CUSTOMERS / 100 if quick else CUSTOMERS) / RATE
    timed(tandem(), horizon / 10, seed, "compiled")
    ratios, ours, theirs, served = [], [], [], 0
    for _ in range(repeats):
        ours.append(timed(tandem(), horizon, seed, "compiled").seconds)
        before = time.process_time()
        served = ciw_customers(horizon, seed)
        theirs.append(time.process_time() - before)
        ratios.append(theirs[-1] / ours[-1])
    print(
        f"{STATIONS} stations of {SERVERS} servers in a row, load {RATE * SERVICE / SERVERS:g}, "
        f"{horizon:g} simulated s, about {served} customers: "
        f"{statistics.median(ours):.3f} CPU s, ciw {importlib.metadata.version('ciw')} "
        f"{statistics.median(theirs):.2f} CPU s, ratio {statistics.median(ratios):.0f} "
        f"({min(ratios):.0f} - {max(ratios):.0f}, {repeats} runs)"
    )


def compare_line(seed: int, *, quick: bool) -> None:
    """Print CPU seconds of LINE's simulator for the closed queue, if LINE is there."""
    if importlib.util.find_spec("line_solver") is None:
        print("LINE: not installed")
        return
    import line_solver as line  # noqa: PLC0415

    network = line.Network("queue")
    delay, station = line.Delay(network, "think"), line.Queue(network, "A", line.SchedStrategy.FCFS)
    station.setNumberOfServers(SERVERS)
    jobs = line.ClosedClass(network, "clients", 40, delay)
    delay.setService(jobs, line.Exp(1.0))
    station.setService(jobs, line.Exp(10.0))
    network.link(line.Network.serialRouting(delay, station))
    samples = 10_000 if quick else 1_000_000
    before = time.process_time()
    with redirect_stdout(StringIO()):
        line.SolverJMT(network, seed=seed + 1, samples=samples).getAvgTable()
    theirs = time.process_time() - before
    ours = timed(queue(), samples / 70, seed, "compiled")
    print(f"M/M/4, {samples} samples: {ours.seconds:.2f} CPU s, LINE {theirs:.2f} CPU s")


def main() -> None:
    """Print all comparisons."""
    parser = argparse.ArgumentParser(description="How fast is the simulator?")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="see that it works; the figures mean little")
    parser.add_argument("--part", choices=("teastore", "million"), help=argparse.SUPPRESS)
    parser.add_argument("--horizon", type=float, default=600.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(part(options.part, options.horizon, options.seed)))
        return
    quick, seed = options.quick, options.seed
    repeats = 1 if quick else options.repeats
    print(describe("mup-framework", "numpy", "simpy"))
    compare_engines(repeats, seed, quick=quick)
    sections: tuple[tuple[str, Callable[[], None]], ...] = (
        ("A whole run (target: 2.0 CPU s, reach 1.0)", lambda: whole_run(repeats, seed, quick=quick)),
        ("Memory of fresh processes (target: 300 MB)", lambda: memory(seed, quick=quick)),
        ("Other simulators", lambda: compare_ciw(repeats, seed, quick=quick)),
    )
    for title, section in sections:
        print(f"\n{title}; seed {seed}")
        section()
    compare_line(seed, quick=quick)


if __name__ == "__main__":
    main()
