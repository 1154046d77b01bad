"""Half-widths of real runs: they cover as often as they say, for means, quantiles and few data."""

from __future__ import annotations

import numpy as np
import pytest

from mup.statistics.repeats import ratio_half_width
from mup.workload.figures import Busy, Sample, Window, busy_figure, lateness, spread

SECOND = 10**9


def _sample(rng: np.random.Generator, per_second: float, seconds: int) -> Sample:
    """Exponential times at Poisson moments: batches of unequal, random sizes."""
    count = int(rng.poisson(per_second * seconds))
    at = np.sort(rng.integers(0, seconds * SECOND, count))
    return Sample(Window(0, seconds * SECOND), at, rng.exponential(1.0, count))


@pytest.mark.parametrize(("per_second", "seconds"), [(3.0, 20), (100.0, 20), (50.0, 6)])
def test_intervals_of_mean_and_p95_cover(per_second: float, seconds: int) -> None:
    """Independent times: both intervals contain the truth in about 95 of 100 runs, batches of few included."""
    rng = np.random.default_rng(7)
    runs = 400
    mean = p95 = known = 0
    for _ in range(runs):
        figure = spread([_sample(rng, per_second, seconds)])
        assert figure.ci95 is not None
        mean += abs(figure.mean - 1.0) <= figure.ci95
        if figure.p95_ci95 is not None:
            known += 1
            p95 += abs(figure.p95 - np.log(20)) <= figure.p95_ci95
    assert 0.90 <= mean / runs <= 0.99
    if per_second * seconds >= 1000:
        assert known == runs
        assert 0.88 <= p95 / known <= 0.99


def test_repeats_that_are_alike_add_up() -> None:
    """Three equal runs narrow the interval by the root of three: the spread of three means alone is too coarse."""
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(50):
        samples = [_sample(rng, 100.0, 20) for _ in range(3)]
        one, three = spread(samples[:1]).ci95, spread(samples).ci95
        assert one is not None
        assert three is not None
        ratios.append(three / one)
    assert np.median(ratios) == pytest.approx(3**-0.5, rel=0.15)


def test_too_few_data_have_no_interval() -> None:
    """One batch tells nothing about its own error, and no p95 of a handful."""
    window = Window(0, SECOND + SECOND // 2)
    assert window.batches == 1
    times = np.array([0.1, 0.2, 0.3])
    assert spread([Sample(window, np.array([1, 2, 3]), times)]).ci95 is None
    few = spread([Sample(Window(0, 5 * SECOND), np.array([1, 2, 4]) * SECOND, times)])
    assert few.ci95 is not None
    assert few.p95_ci95 is None
    assert ratio_half_width([]) is None


def test_equal_batches_of_busy_time_have_no_spread() -> None:
    """A constant utilization is exact, and the mean is the share of all workers."""
    figure = busy_figure([Busy(Window(0, 4 * SECOND), np.full(4, 0.5), np.full(4, 2.0))])
    assert figure.mean == pytest.approx(0.25)
    assert figure.ci95 == pytest.approx(0.0, abs=1e-12)


def test_lateness_of_nothing_is_unknown() -> None:
    """No client that thought can have been late."""
    assert lateness([]) is None
    late = lateness([0.0, 0.001, 0.002])
    assert late is not None
    assert (late.mean, late.max) == pytest.approx((0.001, 0.002))
