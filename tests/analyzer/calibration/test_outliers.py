"""Only stalls of the machine and the beginning of a run are ever left out, and that is said."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.calibration.outliers import MAX_SHARE, MIN_SEQUENCE, screen, warmup_length
from mup.errors import ModelError


def _times(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(30, 1e-3 / 30, size)


def test_stalls_are_named_with_their_share_and_window() -> None:
    """Two stalls of 50 ms among 4000 times of 1 ms go, and the report says how much of the mean they were."""
    times, windows = _times(4000), np.repeat([1, 2, 3, 4], 1000)
    times[[1500, 3999]] = 0.05
    found = screen(times, windows)
    assert found.count == 2
    assert list(np.flatnonzero(~found.keep)) == [1500, 3999]
    assert found.share == pytest.approx(0.1 / times.sum())
    assert found.windows == (2, 4)
    assert times[found.keep].mean() == pytest.approx(times.mean() * (1 - found.share) * 4000 / 3998)
    assert "2 of 4000" in found.reason
    assert "window 2, 4" in found.reason


def test_more_than_one_in_a_thousand_is_behaviour() -> None:
    """What happens every few hundred executions belongs to the service, however long it takes."""
    times = _times(4000)
    times[:: int(0.9 / MAX_SHARE)] = 0.05
    found = screen(times)
    assert found.keep.all()
    assert found.count == 0
    assert "kept" in found.reason


def test_small_samples_have_no_outliers() -> None:
    """One long time among a few hundred may be the service's own."""
    times = _times(999)
    times[5] = 3.0
    assert screen(times).keep.all()
    assert not screen(np.append(times, 1e-3)).keep.all()


@pytest.mark.parametrize("draw", ["lognormal", "weibull", "exponential"])
def test_the_tail_of_a_service_stays(draw: str) -> None:
    """Long tails that services really have are within the limit."""
    rng = np.random.default_rng(1)
    times = {
        "lognormal": rng.lognormal(-4, 1.0, 20_000),
        "weibull": 0.01 * rng.weibull(0.5, 20_000),
        "exponential": rng.exponential(0.05, 20_000),
    }[draw]
    assert screen(times).keep.all()


def test_nothing_within_ten_milliseconds_of_the_median_goes() -> None:
    """Microsecond segments have spreads of nothing; a millisecond more is no stall yet."""
    times = np.full(10_000, 2e-6)
    times[3] = 9e-3
    assert screen(times).keep.all()
    times[3] = 11e-3
    assert screen(times).count == 1


def test_no_values_and_shapes_that_differ() -> None:
    """An empty sample has nothing to screen; windows must belong to values."""
    assert screen([]).keep.shape == (0,)
    with pytest.raises(ModelError, match="one window per value"):
        screen([1.0, 2.0], [1])


@pytest.mark.parametrize("slow", [40, 100])
def test_a_transient_is_cut_where_it_ends(slow: int) -> None:
    """Times that start twice as long and decline are cut when they have."""
    times = _times(2000) * (1 + np.exp(-np.arange(2000) / (slow / 3)))
    assert slow / 2 <= warmup_length(times) <= 2 * slow


def test_a_slow_first_execution_is_cut_alone() -> None:
    """What only the first execution pays costs its group of five, not more."""
    times = _times(200)
    times[0] = 0.05
    assert warmup_length(times) == 5


def test_chance_is_no_warm_up() -> None:
    """Of forty steady sequences, stalls included, hardly any loses its beginning."""
    cut = []
    for seed in range(40):
        times = _times(1000, seed)
        times[np.random.default_rng(seed).integers(50, 1000, 2)] = 0.02
        cut.append(warmup_length(times))
    assert sum(c > 0 for c in cut) <= 2


def test_correlated_noise_is_no_warm_up() -> None:
    """A slow drift up and down is not taken for a beginning."""
    rng = np.random.default_rng(2)
    cut = [
        warmup_length(1e-3 + np.convolve(rng.normal(0, 1e-4, 1019), np.ones(20) / 20, "valid"))
        for _ in range(20)
    ]
    assert sum(c > 0 for c in cut) <= 2


@pytest.mark.parametrize("size", [0, 1, 5, MIN_SEQUENCE - 1])
def test_short_sequences_have_no_warm_up(size: int) -> None:
    """Where nothing can be told, nothing is cut."""
    assert warmup_length(np.linspace(2e-3, 1e-3, size)) == 0


def test_equal_times_have_no_warm_up() -> None:
    """Rounding is no trend."""
    assert warmup_length(np.full(1000, 0.1)) == 0
