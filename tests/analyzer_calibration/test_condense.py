"""Empirical distributions keep what the log measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.calibration.condense import SIZE, condense
from mup.lqn import Constant, Empirical

times = st.lists(st.floats(min_value=0, max_value=10, allow_nan=False), min_size=1, max_size=400)


@given(times)
def test_the_mean_survives(sample: list[float]) -> None:
    """However long the sample, the condensed mean is the sample's."""
    result = condense(sample)
    assert result is not None
    assert result.mean == pytest.approx(np.mean(sample), rel=1e-4, abs=1e-12)


@given(times, st.floats(min_value=0, max_value=5))
def test_a_shift_lowers_the_mean_and_never_below_zero(sample: list[float], shift: float) -> None:
    """What something else accounts for comes off the mean; no value becomes negative."""
    result = condense(sample, shift=shift)
    assert result is not None
    expected = max(0.0, float(np.mean(sample)) - shift)
    assert result.mean == pytest.approx(expected, rel=1e-4, abs=1e-9)
    assert not isinstance(result, Empirical) or result.values[0] >= 0


def test_spread_and_size_are_kept() -> None:
    """A large exponential sample keeps its coefficient of variation within 5 % in at most SIZE values."""
    sample = np.random.default_rng(1).exponential(0.01, 20_000)
    result = condense(sample)
    assert isinstance(result, Empirical)
    assert len(result.values) == SIZE
    assert result.scv == pytest.approx(sample.var() / sample.mean() ** 2, rel=0.1)


def test_equal_values_are_a_constant_and_nothing_is_unknown() -> None:
    """A deterministic time needs one number; an empty sample stays unknown."""
    assert condense([0.25, 0.25]) == Constant(0.25)
    assert condense([]) is None
