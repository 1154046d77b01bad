"""Exponential stages keep the mean and the variation of a time, and where there are enough its shape."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, lognorm

from mup.lqn.distributions import (
    Constant,
    Distribution,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
)
from simulator.fluid.phases import Phases, phases


def moments(found: Phases) -> tuple[float, float]:
    """Mean and squared coefficient of variation of alternatives of stages."""
    mean = sum(p * sum(1 / r for r in rates) for p, rates in found)
    square = sum(p * (sum(r**-2 for r in rates) + sum(1 / r for r in rates) ** 2) for p, rates in found)
    return mean, square / mean**2 - 1


@pytest.mark.parametrize(
    ("time", "stages", "scv"),
    [
        pytest.param(Exponential(2.0), 4, 1.0, id="exponential"),
        pytest.param(Erlang(2.0, 3), 4, 1 / 3, id="erlang"),
        pytest.param(Erlang(2.0, 9), 4, 1 / 4, id="erlang of more stages"),
        pytest.param(Constant(2.0), 4, 1 / 4, id="constant"),
        pytest.param(Gamma(2.0, 0.4), 4, 0.4, id="two erlangs"),
        pytest.param(Gamma(2.0, 5.0), 4, 5.0, id="gamma"),
        pytest.param(Hyperexponential((0.9, 0.1), (1.0, 11.0)), 4, 5.5, id="hyperexponential"),
        pytest.param(Lognormal(2.0, 4.0), 4, 4.0, id="lognormal of few stages"),
        pytest.param(Lognormal(2.0, 4.0), 20, 4.0, id="lognormal"),
        pytest.param(Lognormal(2.0, 1.0), 20, 1.0, id="lognormal that varies like an exponential"),
        pytest.param(Lognormal(2.0, 0.02), 20, 0.05, id="lognormal that hardly varies"),
    ],
)
def test_mean_and_variation(time: Distribution, stages: int, scv: float) -> None:
    found = phases(time, stages)
    assert sum(p for p, _ in found) == pytest.approx(1)
    assert moments(found) == pytest.approx((2.0, scv))
    assert sum(len(rates) for _, rates in found) <= stages + (stages if len(found) == 2 else 0)


def test_no_time_has_no_stages() -> None:
    assert phases(Constant(0.0), 4) == [(1.0, [])]


@pytest.mark.parametrize("scv", [0.5, 1.0, 2.0, 4.0, 10.0, 20.0])
def test_lognormal_times_have_their_distribution(scv: float) -> None:
    """Within 2.5 %, and so the work that ends soon; a hyperexponential is up to 20 % away."""
    width = np.sqrt(np.log1p(scv))
    at = np.geomspace(1e-2, 30, 400)
    wanted = lognorm.cdf(at, width, scale=2.0 * np.exp(-(width**2) / 2))
    reached = sum(
        p * gamma.cdf(at, len(rates), scale=1 / rates[0]) for p, rates in phases(Lognormal(2.0, scv), 20)
    )
    assert np.abs(reached - wanted).max() < 0.025
