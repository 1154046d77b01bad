"""All parts agree on the requests of a cycle; the number is exact, whatever waits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

import pytest
from random_models import random_model
from requests_of_programs import requests_per_cycle

from mup.errors import ModelError, MupError, SimulationError
from mup.lqn import Model
from mup.lqn.model import entry_label
from mup.lqn.visits import entry_rates
from simulator import simulate
from simulator.analytic import estimate
from simulator.fluid import fluid
from simulator.program import compile_model

pytestmark = pytest.mark.slow

MODELS = int(os.environ.get("MUP_TEST_MODELS", "2000"))
CHUNKS = 8
SOLVED = 150
"""Models that are also estimated, where there is one source of load."""
FLUIDS = 32
"""Of these, solved as fluids; the next one has thousands of states."""


def counted(model: Model) -> dict[str, dict[str, float]]:
    """Return the requests per source and entry as the model counts them."""
    return {
        entry_label(*source): {entry_label(*entry): often for entry, often in rates.items() if often > 1e-12}
        for source, rates in entry_rates(model).items()
    }


@pytest.mark.parametrize(
    "chunk", [k if k < 2 else pytest.param(k, marks=pytest.mark.repeats) for k in range(CHUNKS)]
)
def test_programs_and_models_count_alike(chunk: int) -> None:
    """What engines execute causes as many requests as the model says, for every source of load."""
    sources = refused = 0
    for seed in range(chunk, MODELS, CHUNKS):
        try:
            tested = random_model(seed)
            program = compile_model(tested)
        except (ModelError, SimulationError):
            refused += 1  # it breaks a rule about branches in loops
            continue
        expected = counted(tested)
        for population in program.populations:
            source = program.entries[population.entry].label
            assert requests_per_cycle(program, population) == pytest.approx(expected[source], rel=1e-9), seed
            sources += 1
    assert sources > MODELS / CHUNKS
    assert refused < MODELS / CHUNKS / 20


def _agrees(found: Mapping[str, float | None], cycles: float | None, expected: Mapping[str, float]) -> bool:
    """Compare rates of entries, in requests/second, with requests per cycle."""
    assert cycles
    per_cycle = {name: rate / cycles for name, rate in found.items() if rate and rate > 1e-9 * cycles}
    cycle = next(iter(expected))  # some estimates leave the cycle itself out
    return {cycle: 1.0, **per_cycle} == pytest.approx(dict(expected), rel=1e-5)


def test_estimates_count_alike() -> None:
    """Rates of entries over rates of cycles, in the analytic estimate and in the fluid."""
    analytic = fluids = 0
    for seed in range(SOLVED):
        tested = random_model(seed)
        expected = counted(tested)
        if len(expected) != 1:
            continue
        (rates,) = expected.values()
        with suppress(MupError):  # it has no estimate
            found = estimate(tested)
            assert _agrees(
                {n: rate for n, (rate, _) in found.entries.items()}, found.cycle.throughput, rates
            ), seed
            analytic += 1
        if seed < FLUIDS:
            with suppress(MupError):
                solved = fluid(tested)
                entries = {n: figures["throughput"] for n, figures in solved.entries.items()}
                assert _agrees(entries, solved.cycle["throughput"], rates), seed
                fluids += 1
    assert (analytic > SOLVED // 4, fluids > FLUIDS // 4) == (True, True)


def test_a_simulation_counts_alike() -> None:
    """Within its intervals."""
    for seed in range(12):
        tested = random_model(seed)
        expected = counted(tested)
        if len(expected) == 1:
            (rates,) = expected.values()
            seen = simulate(tested, precision=0.05, seed=seed, max_events=60_000)
            cycles = seen.cycle.throughput
            for label, figures in seen.entries.items():
                rate = figures.throughput
                expected_rate = rates.get(label, 0.0) * cycles.mean
                assert abs(rate.mean - expected_rate) <= 2 * (
                    rate.ci95 + rates.get(label, 0.0) * cycles.ci95
                ), seed
