"""Batch-means intervals cover what they claim."""

import numpy as np

from mup.statistics.groups import half_width_of_batches


def test_coverage_is_nominal_for_independent_batches() -> None:
    """The 95 % interval of the mean contains the true mean in 92 to 98 % of 2000 experiments."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(2000):
        batches = [rng.exponential(1.0, rng.integers(20, 40)) for _ in range(10)]
        mean = float(np.concatenate(batches).mean())
        half = half_width_of_batches([b.tolist() for b in batches])
        assert half is not None
        hits += abs(mean - 1.0) <= half
    assert 0.92 <= hits / 2000 <= 0.98


def test_correlation_inside_batches_widens_the_interval() -> None:
    """A level that drifts from batch to batch shows, although thousands of values were seen."""
    rng = np.random.default_rng(3)
    steady = [rng.normal(1, 0.01, 500).tolist() for _ in range(8)]
    drifting = [(rng.normal(1, 0.01, 500) + rng.normal(0, 0.1)).tolist() for _ in range(8)]
    narrow, wide = half_width_of_batches(steady), half_width_of_batches(drifting)
    assert narrow is not None
    assert wide is not None
    assert wide > 10 * narrow


def test_two_batches_are_too_few() -> None:
    """No interval is better than a made-up one."""
    assert half_width_of_batches([[1.0, 2.0], [1.5]]) is None
