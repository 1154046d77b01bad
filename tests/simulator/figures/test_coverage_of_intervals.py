"""95 % intervals contain the truth about as often as they say, at low and high load.

A short, deterministic version of ``benchmarks/interval_coverage.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from sim_models import act, clients, entry, exp, machine_repair, model, service

from simulator import simulate

RUNS = 60


@pytest.mark.slow
@pytest.mark.parametrize("think", [1.83, 0.75], ids=["half", "nine-tenths"])
def test_intervals_cover_exact_means(think: float) -> None:
    """Of 60 intervals of 95 % at least 52 contain the exact mean, and they are no wider than need be."""
    throughput, response = machine_repair(10, 1, think, 0.1)
    tested = model(clients(10, exp(think), "A.a"), service("A", entry("a", act("w", exp(0.1))), threads=1))
    inside, relative = np.zeros(3), np.zeros(3)
    for seed in range(RUNS):
        result = simulate(tested, seed=seed, horizon=2000 / throughput)
        pairs = ((result.cycle.throughput, throughput), (result.cycle.response_time, response),
                 (result.tasks["A"].busy, throughput * 0.1))  # fmt: skip
        inside += [abs(figure.mean - exact) <= figure.ci95 for figure, exact in pairs]
        relative += [figure.ci95 / exact / RUNS for figure, exact in pairs]
    # A binomial of 60 runs at 95 % is below 52 once in a thousand times.
    assert (inside >= 52).all(), inside
    # Wide intervals would contain everything: 2000 cycles are good for a few percent.
    assert (relative < 0.15).all(), relative
