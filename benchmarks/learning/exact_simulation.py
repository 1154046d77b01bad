"""How many events per second does the exact simulation do that learning is judged and corrected by?

    python benchmarks/learning/exact_simulation.py      # half a minute

An event is the end of a service or stage, with everything that happens in the same moment. Closed networks:
the running example of the thesis and random ones of 5 and 10 stations. Inlined layered systems: an instance
of each of the three in ``topologies.py``, with the number of their states.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from machine import describe
from queueing_networks import balancer, random_network, states
from topologies import TOPOLOGIES, instance

from simulator.closed_network import ClosedNetwork
from simulator.inlined import inline
from simulator.inlined_process import InlinedProcess
from simulator.network_simulation import transient_means

TARGET = 5e6


def speed(simulate: Callable[[int], int], events: float) -> float:
    """Return events per second of processor time, of about so many events; the argument is the runs."""
    simulate(2)  # compiles
    each = simulate(20) / 20
    runs = max(20, round(events / each))
    began = time.process_time()
    return simulate(runs) / (time.process_time() - began)


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
    parser.add_argument("--events", type=float, default=1e7, help="of each system, about")
    parser.add_argument("--seed", type=int, default=0, help="of the layered instances")
    options = parser.parse_args()
    print(describe("numpy", "numba"))
    print(f"target: {TARGET / 1e6:g} million events per second and core")
    print("| system | stations or states | million events/s |")
    print("|---|---|---|")
    networks = {"running example": balancer((1000, 30, 25))}
    networks |= {f"random network {seed}": random_network(size, seed) for size, seed in ((5, 1), (10, 6))}
    for name, network in networks.items():
        found = speed(of_network(network, 40), options.events)
        print(f"| {name} | {len(network.names)} | {found / 1e6:.1f} |", flush=True)
    for name in TOPOLOGIES:
        size, simulate = of_layers(name, options.seed)
        print(f"| {name} {options.seed} | {size} | {speed(simulate, options.events) / 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    main()
