"""Events per second of the exact simulation that learning is judged and corrected by.

    python benchmarks/learning/exact_simulation.py      # half a minute, most of it the first time to compile

An event is the end of a service or stage, with everything that happens in the same moment. Closed networks:
the running example of the thesis and random ones of 5 and 10 stations. Inlined layered systems: an instance
of each of the three in ``topologies.py``, with the number of their states. Systems take turns, so that a
moment in which the machine is slower is not one's alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from queueing_networks import balancer, random_network, states
from topologies import TOPOLOGIES, instance

from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.inlined import inline
from simulator.networks.inlined_process import InlinedProcess
from simulator.networks.simulation import transient_means

TARGET = 5e6


def runs_of(simulate: Callable[[int], int], events: float) -> int:
    """Return how many runs have about so many events; compiles."""
    simulate(2)
    return max(20, round(events / (simulate(20) / 20)))


def speed(simulate: Callable[[int], int], runs: int) -> tuple[float, float]:
    """Return events per second of processor time, and of time."""
    began, clock = time.process_time(), time.perf_counter()
    events = simulate(runs)
    return events / (time.process_time() - began), events / (time.perf_counter() - clock)


def of_network(network: ClosedNetwork, most: int) -> Callable[[int], int]:
    """Return how to simulate a network; the events are counted."""
    starts = states(1, 4, len(network.names), most)
    return lambda runs: transient_means(network, starts, dt=0.01, samples=501, runs=runs, seed=1).events


def of_layers(name: str, seed: int) -> tuple[int, Callable[[int], int]]:
    """Return the number of states of an instance, and how to simulate it."""
    lqn = inline(instance(name, seed))
    process = InlinedProcess(lqn)
    starts = process.random_starts(4, seed=1)

    def simulate(runs: int) -> int:
        return process.simulate(lqn.means, starts, dt=0.2, samples=26, replications=runs, seed=1).events

    return int(lqn.system.size), simulate


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=float, default=2e6, help="of each system and round, about")
    parser.add_argument("--rounds", type=int, default=7, help="systems take turns")
    parser.add_argument("--seed", type=int, default=0, help="of the layered instances")
    options = parser.parse_args()
    print(describe("numpy"))
    print(f"target: {TARGET / 1e6:g} million events per second and core")
    networks = {"running example": balancer((1000, 30, 25))}
    networks |= {f"random network {seed}": random_network(size, seed) for size, seed in ((5, 1), (10, 6))}
    systems = {name: (len(network.names), of_network(network, 40)) for name, network in networks.items()}
    systems |= {f"{name} {options.seed}": of_layers(name, options.seed) for name in TOPOLOGIES}
    runs = {name: runs_of(simulate, options.events) for name, (_, simulate) in systems.items()}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for _ in range(options.rounds):
        for name, (_, simulate) in systems.items():
            found[name].append(speed(simulate, runs[name]))
    print("| system | stations or states | million events/s of processor time: median (range) | of time |")
    print("|---|---|---|---|")
    for name, (size, _) in systems.items():
        (middle, overall), (low, _), (high, _) = (
            np.array(f(found[name], axis=0)) / 1e6 for f in (np.median, np.min, np.max)
        )
        print(f"| {name} | {size} | {middle:.1f} ({low:.1f} to {high:.1f}) | {overall:.1f} |")


if __name__ == "__main__":
    main()
