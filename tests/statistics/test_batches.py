"""Batch means: ratios of sums, correlation, independent values."""

from __future__ import annotations

import numpy as np
import pytest

from mup.statistics.batches import batch_half_width, independent_mean, ratio_of_sums, residuals
from mup.statistics.series import MAX_WIDENING_CORRELATION, widening


def test_ratio_covers_as_often_as_it_says() -> None:
    """Nineteen intervals of twenty contain the truth, batches of unequal sizes included."""
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(400):
        counts = generator.poisson(20, 25).astype(float)
        mean, half = ratio_of_sums(generator.gamma(counts, 0.3), counts)
        hits += abs(mean - 0.3) <= half
    assert 0.92 <= hits / 400 <= 0.98


def test_equal_batches_are_independent_values() -> None:
    """Where neighbours resemble each other less than chance, the ratio is the mean of the values."""
    values = np.array([1.0, 3.0, 2.0, 4.0, 1.5, 3.5])
    assert widening(residuals(values, np.ones(6))) == 1.0
    assert ratio_of_sums(values, np.ones(6)) == pytest.approx(independent_mean(values.tolist()), rel=1e-12)


def test_widening_is_bounded() -> None:
    """A trend widens an interval, by no more than a correlation that can be told from some dozens."""
    trend = np.arange(1000.0) - 499.5
    most = (1 + MAX_WIDENING_CORRELATION) / (1 - MAX_WIDENING_CORRELATION)
    assert widening(trend) == pytest.approx(most)
    mixed = np.random.default_rng(1).permutation(trend)
    assert batch_half_width(trend) == pytest.approx(most**0.5 * batch_half_width(mixed), rel=0.05)
