"""What is compiled once, and kept on disk, or several workers would compile it at the same time?

A program (tests/side_by_side.py starts it): first what all tests need, then, beside the first tests, what some need.
No test depends on it.
"""

from __future__ import annotations

import compileall
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]


def engine() -> None:
    """Compile modules, or each command under test would where Python is told to write no bytecode; and the engine."""
    for package in ("mup", "mup_registry", "analyzer", "simulator"):
        compileall.compile_dir(ROOT / package, quiet=2)
    from mup.lqn.files import read_model
    from simulator import simulate

    simulate(read_model(str(ROOT / "examples" / "tms" / "model.json")), horizon=60.0)


def estimators() -> None:
    """Compile the likelihoods of response times: ten seconds."""
    from analyzer.estimation.methods import estimate
    from analyzer.estimation.samples import ArrivalSamples

    seen = ArrivalSamples(
        ("a",), np.zeros(4, dtype=int), np.array([0.1, 0.2, 0.3, 0.4]), np.array([[1], [2], [1], [2]])
    )
    for method in ("mlps", "fmlps"):
        estimate(seen, cores=1, threads=4, method=method)


def networks() -> None:
    """Compile what learning simulates and differentiates: ten seconds."""
    sys.path.append(str(ROOT / "tests" / "learning"))
    from layered_systems import running_example
    from networks import loop

    from simulator.networks.fluid import fluid_sensitivities, misplaced_gradient
    from simulator.networks.inlined import inline
    from simulator.networks.inlined_fluid import FluidCell
    from simulator.networks.inlined_process import InlinedProcess
    from simulator.networks.simulation import transient_means

    lqn = inline(running_example())
    process = InlinedProcess(lqn)
    begin = process.random_starts(1)
    process.simulate(lqn.means, begin, dt=0.1, samples=2, replications=1)
    FluidCell(lqn).trajectory(lqn.means, begin[0], dt=0.1, samples=2)
    network, pairs = loop(), np.array([[0, 1]])
    means = transient_means(network, np.ones((1, 3), dtype=int), dt=0.1, samples=2, runs=2, seed=0)
    fluid_sensitivities(network.flows, network.servers, means.x[:, 0], pairs, dt=0.1, samples=2, cells=1)
    misplaced_gradient(network.flows, network.servers, means.x, dt=0.1)


if __name__ == "__main__":
    engine()
    os.close(int(sys.argv[1]))  # a lock, for which workers wait
    os.nice(19)
    estimators()
    networks()
