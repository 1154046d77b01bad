"""Warm-up, batches and intervals are computed correctly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sim_models import act, clients, entry, exp, machine_repair, model, service

from mup.statistics.batches import batch_half_width as half_width
from mup.statistics.series import lag1, mser5
from simulator import simulate
from simulator.figures.output import ratio
from simulator.machine.recording import MAX_BINS, Bins, Level, Samples


def test_mser5_cuts_a_transient() -> None:
    """A decaying start is cut off, about where it disappears in the noise."""
    noise = np.random.default_rng(1).normal(0, 0.1, 1000)
    series = 1 + 5 * np.exp(-np.arange(1000) / 20) + noise
    assert 60 <= mser5(series) <= 160


def test_mser5_keeps_a_stationary_or_constant_series() -> None:
    """Without a transient next to nothing is cut, and nothing at all of a constant series."""
    assert mser5(np.random.default_rng(2).normal(3, 1, 2000)) <= 400
    assert mser5(np.full(500, 0.1)) == 0
    assert mser5(np.full(500, math.nan)) == 0


def test_mser5_cuts_at_most_half() -> None:
    """A series that never settles is cut in the middle, not at its end."""
    assert mser5(np.arange(1000.0)) == 500
    assert mser5(np.concatenate([np.full(800, math.nan), np.ones(200)])) == 500


def test_ratio_of_independent_batches() -> None:
    """The interval of a ratio is Student's t on the residuals (checked by hand)."""
    figure = ratio(np.array([2.0, 4.0, 2.0, 4.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    assert figure.mean == 3.0
    # residuals -1, 1, -1, 1: variance 4/3, t(3) = 3.1824, negative correlation does not narrow it
    assert figure.ci95 == pytest.approx(3.18245 * math.sqrt(4 / 3 / 4), rel=1e-4)


def test_correlated_batches_widen_the_interval() -> None:
    """Positive correlation between neighbours means less information than batches."""
    blocks = np.repeat([1.0, -1.0], 10)
    mixed = np.tile([1.0, -1.0], 10)
    assert lag1(blocks) > 0.8
    assert half_width(blocks) > 2 * half_width(mixed)


def test_bins_merge_without_losing_anything() -> None:
    """Merged bins are twice as wide and still sum to the last snapshot."""
    bins = Bins(1, 0.5)
    for step in range(1, 3 * MAX_BINS):
        at = bins.next_time
        bins.add([at**2])
        assert bins.end == at
        assert bins.count < MAX_BINS
        if step > 2 * MAX_BINS:
            break
    assert bins.rows.sum() == pytest.approx(bins.end**2, rel=1e-12)
    assert bins.width > 0.5


def test_samples_thin_out_alike_in_any_order() -> None:
    """Beyond its capacity a sample keeps a part that depends on the moments, not on their order."""
    forwards, backwards = Samples(256), Samples(256)
    for index in range(4000):
        forwards.add(index * 0.37, index * 2.0)
        backwards.add((3999 - index) * 0.37, (3999 - index) * 2.0)
    ends, values = forwards.arrays()
    assert 64 <= len(ends) < 256
    assert (np.diff(ends) > 0).all()
    assert (values == np.round(ends / 0.37) * 2).all()
    assert np.array_equal(backwards.arrays(forwards.mask)[0], forwards.arrays(backwards.mask)[0])


def test_level_notices_a_lost_departure() -> None:
    """Integral and residence times agree, and stop agreeing after a departure with a wrong time."""
    level = Level()
    level.enter(1.0)
    level.enter(2.0)
    level.leave(4.0, 1.0)
    entered, left, content, area, residence, completed = level.snapshot(5.0)
    assert (entered, left, content) == (2, 1, 1)
    assert area == residence == 6.0
    assert completed == 3.0
    level.leave(6.0, 1.5)  # it came in at 2.0
    _, _, _, area, residence, _ = level.snapshot(6.0)
    assert (area, residence) == (7.0, 7.5)


@pytest.mark.slow
def test_intervals_cover_the_truth() -> None:
    """95 % intervals of a sequentially stopped run contain the exact value in about 95 % of 60 runs.

    ``benchmarks/interval_coverage.py`` is the long form.
    """
    throughput, response = machine_repair(10, 2, 0.5, 0.1)
    tested = model(clients(10, exp(0.5), "A.a"), service("A", entry("a", act("w", exp(0.1))), threads=2))
    inside = np.zeros(3)
    for seed in range(60):
        result = simulate(tested, seed=seed, precision=0.05)
        utilization = result.tasks["A"].utilization
        assert utilization is not None
        pairs = ((result.cycle.throughput, throughput), (result.cycle.response_time, response),
                 (utilization, throughput * 0.05))  # fmt: skip
        inside += [abs(figure.mean - exact) <= figure.ci95 for figure, exact in pairs]
    # A binomial of 60 runs at 95 % is below 52 once in a thousand times.
    assert (inside >= 52).all()
    assert (inside < 60).all()
