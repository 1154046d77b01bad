"""A model that both formats can express survives the way to lqnx and back."""

from __future__ import annotations

import pytest
from expressible_models import ExpressibleModel
from hypothesis import given, settings
from hypothesis import strategies as st
from lqnx_samples import there_and_back

from mup.lqn import Constant, Exponential, Gamma, Hyperexponential, Pareto, with_scv
from mup.lqn.comparison import compare
from mup.lqn.lqnx.shapes import arrival_rate, burst_scv, ordinary_moments


def close(old: object, new: object) -> bool:
    """True for intervals between arrivals whose means differ in the last bit: only their rate is written."""
    return (
        isinstance(old, Exponential) and isinstance(new, Exponential) and old.mean == pytest.approx(new.mean)
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_random_models_come_back_unchanged(seed: int) -> None:
    """Every element lqnx knows is written and read back without a difference."""
    model = ExpressibleModel(seed).model()
    found = there_and_back(model)
    differences = [c for c in compare(model, found) if c.field != "arrivals" or not close(c.old, c.new)]
    assert differences == []
    if not compare(model, found):
        assert found == model


@given(st.floats(1e-9, 1e9), st.floats(1e-3, 1e3))
def test_every_demand_comes_back_to_the_last_bit(mean: float, scv: float) -> None:
    """What is written gives the very same distribution."""
    time = with_scv(mean, scv)
    found = ordinary_moments(time)
    assert found is not None
    assert with_scv(*found) == time


@given(st.floats(0.01, 100))
def test_every_bursty_demand_comes_back_to_the_last_bit(scv: float) -> None:
    """The same for the Pareto distributions of bursty tasks."""
    time = Pareto(1.0, (1 / scv + 1) ** 0.5 + 1)
    assert burst_scv(time) == pytest.approx(scv, rel=1e-9)


@given(st.floats(1e-6, 1e6))
def test_rates_of_arrivals_come_back(rate: float) -> None:
    """The rate that is written gives the mean it was computed from."""
    assert 1 / arrival_rate(Exponential(1 / rate)) == 1 / rate


def test_what_is_no_shape_of_lqnx() -> None:
    """Distributions with the same two moments and another shape are not taken for those of lqnx."""
    assert ordinary_moments(Gamma(1.0, 2.0)) is None
    assert ordinary_moments(Hyperexponential((0.5, 0.5), (1.0, 2.0))) is None
    assert ordinary_moments(Hyperexponential((0.2, 0.3, 0.5), (1.0, 2.0, 3.0))) is None
    assert ordinary_moments(Constant(2.0)) == (2.0, 0.0)
    assert burst_scv(Pareto(1.0, 1.5)) is None
