"""A model with very many counts stays within memory, with figures as right as others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sim_models import act, agrees, clients, entry, exp, model, ps, service

from mup.lqn import Model
from simulator import Result, simulate
from simulator.api import compiled
from simulator.figures.output import open_window
from simulator.machine import recording
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.recording import MAX_BINS, MIN_MAX_BINS, Bins, Layout, most_bins, sample_capacities

GIGABYTE = 1 << 30


def station() -> Model:
    """M/M/1 with ten customers: a machine repair model."""
    served = service("A", entry("e", act("w", exp(0.1))), processor="cpu")
    return model(clients(10, exp(1.0), "A.e"), served, processors=(ps("cpu"),))


def repair_throughput() -> float:
    """Customers per second of that model."""
    weight, weights = 1.0, [1.0]
    for present in range(10):
        weight *= (10 - present) * 0.1
        weights.append(weight)
    return 10.0 * (1 - weights[0] / sum(weights))


@pytest.fixture
def few_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model counts too much for 2000 bins."""
    monkeypatch.setattr(recording, "BIN_CELLS", 0)


def test_memory_of_single_times_is_bounded() -> None:
    """With 10^5 entries every entry keeps a few of its times; together they take a tenth of a gigabyte."""
    program = compiled(station())
    many = replace(program, entries=program.entries[:1] * 100_000)
    assert sample_capacities(many).entry * 100_000 * 16 < 0.11 * GIGABYTE
    assert sample_capacities(program).entry == 1 << 15


def test_memory_of_bins_is_bounded() -> None:
    """Of a million columns, as 10^5 entries have, bins take less than a gigabyte; ordinary models have 2000."""
    assert most_bins(1000) == most_bins(30_000) == MAX_BINS
    for columns in (40_000, 200_000, 1_060_000):
        most = most_bins(columns)
        assert MIN_MAX_BINS <= most < MAX_BINS
        assert most % 2 == 0
        assert most * columns * 8 < 0.7 * GIGABYTE
    assert Bins(1_060_000, 1.0)._rows.nbytes < 0.7 * GIGABYTE


@pytest.mark.usefixtures("few_bins")
def test_few_bins_add_up() -> None:
    """However often bins are merged, they hold everything that was counted, in equal parts of the time."""
    bins = Bins(3, 0.5)
    rng = np.random.default_rng(1)
    counts = np.cumsum(rng.integers(0, 9, size=(1000, 3)), axis=0).astype(float)
    at = 0.0
    while at < 400:
        at = bins.next_time
        bins.add(counts[int(at / 0.5) - 1])
        assert bins.end == at
        assert bins.count < MIN_MAX_BINS
        assert bins.rows.sum(axis=0) == pytest.approx(counts[int(at / 0.5) - 1])
    edges = (np.arange(1, bins.count + 1) * bins.width / 0.5).astype(int) - 1
    assert np.diff(counts[edges], axis=0) == pytest.approx(bins.rows[1:])


@pytest.mark.usefixtures("few_bins")
def test_windows_of_few_bins_are_no_copies() -> None:
    """Where each batch is a bin, the window is the bins themselves."""
    program = compiled(station())
    layout, engine = Layout(program), CompiledEngine(program, 1)
    bins = Bins(layout.width, 50.0)
    for _ in range(50):
        engine.run_until(bins.next_time)
        bins.add(engine.snapshot())
    window = open_window(program, layout, bins)
    assert len(window.sums) in (40, 32)
    assert np.shares_memory(window.sums, bins.rows)


def test_few_bins_are_as_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with few bins have the same events and totals, their figures agree with theory, and they end in time."""

    def run(**options: float) -> Result:
        return simulate(station(), seed=3, **options)  # type: ignore[arg-type]

    many = run(horizon=5000.0)
    monkeypatch.setattr(recording, "BIN_CELLS", 0)
    few = run(horizon=5000.0)
    assert few.simulated_seconds == pytest.approx(5000.0, rel=1e-12)
    assert few.events == many.events
    for result in (many, few, run(precision=0.01)):
        assert agrees(result.cycle.throughput, repair_throughput())
        assert result.cycle.throughput.ci95 < 0.02 * repair_throughput()
