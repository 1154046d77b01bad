"""Families of distributions are told apart, with correct p-values."""

from __future__ import annotations

import numpy as np
import pytest
from stations import TIMES

from analyzer.blackbox.draws import draws
from analyzer.blackbox.families import choose_family, p_value
from mup.lqn.distributions import (
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    TruncatedNormal,
    Uniform,
    Weibull,
)


@pytest.mark.parametrize("family", ["uniform", "erlang", "hyperexponential", "constant"])
def test_the_family_of_a_large_sample_is_found(family: str) -> None:
    """Of 2000 times the family they were drawn from is chosen, with their mean."""
    times = TIMES[family](np.random.default_rng(21), 2000)
    found = choose_family(times)
    assert found.distribution.family == family
    assert found.distribution.mean == pytest.approx(times.mean())
    assert family in found.accepted


def test_two_modes_are_no_family() -> None:
    """What no family resembles is kept as it is."""
    rng = np.random.default_rng(22)
    times = np.where(rng.random(1000) < 0.5, rng.uniform(0.01, 0.011, 1000), rng.uniform(0.05, 0.051, 1000))
    found = choose_family(times)
    assert found.accepted == ()
    assert found.distribution.family == "empirical"


def test_p_values_account_for_fitted_parameters() -> None:
    """Of samples of the family itself a tenth has a p-value of at most a tenth; usual tables would say hardly any."""
    rng = np.random.default_rng(23)
    values = [p_value(rng.lognormal(0, 0.8, 60), "lognormal", rng, resamples=39) for _ in range(60)]
    rejected = sum(p <= 0.1 for p in values)
    assert 1 <= rejected <= 14  # 6 expected, 99.8 % of binomial draws
    assert 0.38 < np.mean(values) < 0.62


@pytest.mark.slow
@pytest.mark.parametrize(("family", "shape"), [("exponential", 1), ("erlang", 4)])
def test_a_family_without_free_shape_is_rejected_as_seldom_as_others(family: str, shape: int) -> None:
    """True samples whose cv is off by chance keep p > 0.1 nine times in ten; 15 of 60 happen once in 2000."""
    rng = np.random.default_rng(5)
    rejected = sum(
        p_value(rng.gamma(shape, 1 / shape, 300), family, rng, resamples=39) <= 0.1 for _ in range(60)
    )
    assert rejected < 15


@pytest.mark.parametrize(
    "distribution",
    [
        Constant(2.0),
        Exponential(2.0),
        Erlang(2.0, 3),
        Gamma(2.0, 0.4),
        Lognormal(2.0, 0.7),
        Weibull(2.0, 1.5),
        Uniform(1.0, 3.0),
        Hyperexponential((0.3, 0.7), (4.0, 1.0)),
        TruncatedNormal(0.5, 1.5),
        Empirical((1.0, 2.0, 4.0)),
    ],
    ids=lambda d: d.family,
)
def test_draws_have_the_moments_of_their_distribution(distribution: Distribution) -> None:
    """Mean and variance of 40 000 draws are the exact ones within five standard errors."""
    times = draws(distribution, 40_000, np.random.default_rng(24))
    assert (times >= 0).all()
    assert times.mean() == pytest.approx(distribution.mean, abs=5 * times.std() / 200 + 1e-12)
    spread = np.abs(times - times.mean()) ** 2
    assert times.var() == pytest.approx(distribution.variance, abs=5 * spread.std() / 200 + 1e-12)
