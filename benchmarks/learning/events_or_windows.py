"""Rates from visits against rates from queue lengths, on the same observations.

    python benchmarks/learning/events_or_windows.py            # 20 seeds per distribution of service: 1 min
    python benchmarks/learning/events_or_windows.py --quick    # 3 seeds

One stationary run of a closed network (two stations in order of arrival, one that shares its server, clients
that think) is recorded by a simulation that shares no code with the package. ``mup learn visits`` reads its
visits with their clients' ids; ``mup learn qn`` gets the queue lengths and busy times of the same visits, cut
into windows of five seconds. Errors are relative, of the three stations' rates; coverage is how often 95 %
intervals contain the true rate.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "analyzer" / "learning"))

from machine import describe
from visit_systems import (
    Sampler,
    Station,
    Visit,
    closed_visits,
    constant,
    erlang,
    exponential,
    hyperexponential,
    lognormal,
    write_visits,
)

from analyzer.access_logs.reading import Source
from analyzer.learning.network_learning import learn_network
from analyzer.learning.visit_learning import learn_visits
from analyzer.learning.visit_tables import read_visits
from analyzer.learning.visits import Run, traces_of_runs

CLIENTS = 12
SECONDS = 400.0
WINDOW = 5.0
MEANS = {"A": 0.05, "B": 0.16, "P": 0.08}
SERVERS = {"A": 1.0, "B": 2.0, "P": 1.0}


def law(name: str, mean: float) -> Sampler:
    """Return a distribution of service."""
    return {
        "constant": constant(mean),
        "Erlang-5": erlang(mean, 5),
        "exponential": exponential(mean),
        "lognormal, scv 4": lognormal(mean, 4.0),
        "H2, scv 2": hyperexponential(mean, 2.0),
        "H2, scv 10": hyperexponential(mean, 10.0),
    }[name]


LAWS = ("constant", "Erlang-5", "exponential", "lognormal, scv 4", "H2, scv 2", "H2, scv 10")


def observe(name: str, seed: int) -> list[Visit]:
    """Return the visits of one run."""
    stations = {"think": Station(exponential(1.0), float("inf"))}
    for station, mean in MEANS.items():
        stations[station] = Station(law(name, mean), SERVERS[station], sharing=station == "P")
    routing = {
        "think": {"A": 1.0},
        "A": {"B": 0.5, "P": 0.3, "think": 0.2},
        "B": {"A": 0.4, "think": 0.6},
        "P": {"think": 1.0},
    }
    return closed_visits(
        stations, routing, clients=CLIENTS, seconds=SECONDS, seed=seed, silent=("think",), warmup=20.0
    )


def from_windows(visits: list[Visit], seed: int) -> dict[str, float]:
    """Return the rates learned from queue lengths in windows of the same visits."""
    runs = []
    # The clients of the first seconds, before each has had a visit, are not known.
    for number in range(2, int(SECONDS / WINDOW)):
        low = number * WINDOW
        at: dict[str, list[tuple[float, float]]] = {station: [] for station in MEANS}
        for station, begin, duration, _ in visits:
            end = float("inf") if duration is None else begin + duration
            if begin < low + WINDOW and end > low:
                at[station].append((begin - low, end - low))
        runs.append(Run(trace=str(number), clients=CLIENTS, visits=at))
    servers = {"think": float("inf")} | SERVERS
    traces = traces_of_runs(runs, dt=0.05, seconds=WINDOW, servers=servers, rest="think")
    network = learn_network(traces, seed=seed).network
    return dict(zip(network.names, network.rates.tolist(), strict=True))


def main() -> None:
    """Print one line per distribution."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="3 seeds instead of 20")
    parser.add_argument("--windows", type=int, default=2, help="seeds that windows are learned from")
    arguments = parser.parse_args()
    seeds = 3 if arguments.quick else 20
    print(f"{describe()}\n{CLIENTS} clients, {SECONDS:g} s, about 8500 visits; {seeds} seeds")
    print("| service | visits: mean error | worst | coverage | CPU | windows: mean error | worst | CPU |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in LAWS:
            errors, inside, old = [], [], []
            spent = [0.0, 0.0]
            for seed in range(seeds):
                visits = observe(name, seed)
                path = write_visits(Path(folder) / "visits.csv", visits)
                before = time.process_time()
                learned = learn_visits(read_visits([path], Source()))
                spent[0] += time.process_time() - before
                for station in learned.stations:
                    if station.name not in MEANS:
                        continue
                    true = 1 / MEANS[station.name]
                    errors.append(abs(station.rate / true - 1))
                    inside.append(station.low * (1 - 1e-6) <= true <= station.high * (1 + 1e-6))
                if seed < arguments.windows:
                    before = time.process_time()
                    rates = from_windows(visits, seed)
                    spent[1] += time.process_time() - before
                    old += [abs(rates[station] * mean - 1) for station, mean in MEANS.items()]
            print(
                f"| {name} | {np.mean(errors):.1%} | {np.max(errors):.1%} | {np.mean(inside):.2f} "
                f"| {spent[0] / seeds:.1f} s | {np.mean(old):.1%} | {np.max(old):.1%} "
                f"| {spent[1] / max(1, min(seeds, arguments.windows)):.0f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
