"""Fitted distributions have the sample's mean and cv, and the family the sample was drawn from."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.calibration.fitting import CANDIDATES, KS_LIMIT, NOISE_CV, fit
from mup.errors import ModelError, UncalibratedError, UsageError
from mup.lqn import Constant, Distribution, Empirical, Erlang, Exponential, Uniform
from mup.lqn.distributions import Gamma, Hyperexponential, Lognormal, TruncatedNormal, Weibull

FloatArray = npt.NDArray[np.float64]
N = 2000


def _cv(sample: FloatArray) -> float:
    return float(sample.std() / sample.mean())


def _draw(distribution: Distribution, size: int, seed: int) -> FloatArray:
    """Draw with numpy, independently of the simulator's and of the fit's formulas."""
    rng = np.random.default_rng(seed)
    match distribution:
        case Exponential(mean):
            return rng.exponential(mean, size)
        case Erlang(mean, stages):
            total: FloatArray = rng.exponential(mean / stages, (size, stages)).sum(axis=1)
            return total
        case Gamma(mean, scv):
            return rng.gamma(1 / scv, mean * scv, size)
        case Lognormal(mean, scv):
            spread = math.log1p(scv)
            return rng.lognormal(math.log(mean) - spread / 2, math.sqrt(spread), size)
        case Weibull(mean, shape):
            return rng.weibull(shape, size) * (mean / math.gamma(1 + 1 / shape))
        case TruncatedNormal(location, scale):
            drawn = rng.normal(location, scale, 20 * size)
            return drawn[drawn >= 0][:size]
        case Uniform(low, high):
            return rng.uniform(low, high, size)
        case Hyperexponential(probabilities, means):
            return rng.exponential(rng.choice(means, size, p=probabilities))
    raise AssertionError(distribution)


TRUTHS = [
    Exponential(2e-3),
    Erlang(5e-3, 3),
    Gamma(1e-3, 0.4),
    Gamma(1e-3, 2.0),
    Lognormal(3e-3, 0.25),
    Lognormal(3e-3, 1.2),
    Weibull(1e-2, 2.5),
    Weibull(1e-2, 0.7),
    TruncatedNormal(4e-6, 5e-7),
    TruncatedNormal(0.5e-3, 1e-3),
    Uniform(1e-3, 3e-3),
    Uniform(0.0, 0.2),
    Hyperexponential((0.1, 0.9), (1e-2, 1e-3)),
]


@pytest.mark.parametrize("truth", TRUTHS, ids=repr)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_family_is_recovered_from_two_thousand_values(truth: Distribution, seed: int) -> None:
    """A sample drawn from a family is given back that family, close to the parameters it was drawn with."""
    found = fit(_draw(truth, N, seed))
    assert found.family == truth.family, found.reason
    assert found.distribution.mean == pytest.approx(truth.mean, rel=0.12)
    assert math.sqrt(found.distribution.scv) == pytest.approx(math.sqrt(truth.scv), rel=0.12)
    assert found.ks < KS_LIMIT
    assert found.log_likelihood[truth.family] >= max(found.log_likelihood.values()) - 4


samples = st.builds(
    lambda truth, size, seed, factor: factor * _draw(truth, size, seed),
    st.sampled_from(TRUTHS),
    st.integers(1, 600),
    st.integers(0, 10_000),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
oddities = st.lists(
    st.one_of(st.just(0.0), st.sampled_from([1e-6, 2e-6, 5e-3]), st.floats(1e-9, 10.0)),
    min_size=1,
    max_size=300,
).map(np.array)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.one_of(samples, oddities))
def test_mean_and_cv_are_the_samples(sample: FloatArray) -> None:
    """Whatever is chosen has the sample's mean and cv; a family without free shape its cv but for noise."""
    found = fit(sample)
    assert found.size == sample.size
    assert found.distribution.mean == pytest.approx(sample.mean(), rel=1e-9, abs=1e-15)
    if sample.mean() == 0:
        return
    cv = math.sqrt(max(found.distribution.scv, 0.0))
    assert found.cv == pytest.approx(_cv(sample), rel=1e-9, abs=1e-12)
    shapeless = isinstance(found.distribution, Exponential | Erlang) or (
        isinstance(found.distribution, Uniform) and found.distribution.low == 0
    )
    if shapeless:
        assert abs(found.cv / cv - 1) <= NOISE_CV
    elif "instead of" not in found.reason:
        exact = 1e-7 if found.family == "empirical" else 1.001e-9
        assert cv == pytest.approx(_cv(sample), rel=exact, abs=1e-7)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(samples, st.sampled_from([1e-6, 1e-3, 60.0]))
def test_units_do_not_matter(sample: FloatArray, unit: float) -> None:
    """The same sample in other units gets the same family, scaled, and the same distance."""
    one, other = fit(sample), fit(sample * unit)
    assert other.family == one.family
    assert other.ks == pytest.approx(one.ks, abs=1e-6)
    assert other.distribution.mean == pytest.approx(one.distribution.mean * unit, rel=1e-9)
    assert other.distribution.scv == pytest.approx(one.distribution.scv, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_exponential_times_do_not_become_hyperexponential(seed: int) -> None:
    """A second phase has to earn its two parameters."""
    found = fit(_draw(Exponential(1e-3), N, seed))
    assert found.family != "hyperexponential"
    gain = found.log_likelihood.get("hyperexponential", -math.inf) - found.log_likelihood["exponential"]
    assert gain < math.log(N), "the second phase of exponential times is worth less than its price"


def _bimodal(second: float, share: float, spread: float, size: int) -> FloatArray:
    rng = np.random.default_rng(5)
    return np.where(rng.random(size) < share, second, 1e-3) * rng.normal(1, spread, size)


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(_bimodal(2e-3, 0.5, 0.05, N), id="two-equal-modes"),
        pytest.param(_bimodal(1.5e-3, 0.5, 0.08, N), id="two-close-modes"),
        pytest.param(_bimodal(5e-3, 0.1, 0.1, N), id="a-rare-mode"),
        pytest.param(_bimodal(2e-3, 0.5, 0.05, 60), id="two-modes-of-a-small-sample"),
        pytest.param(np.tile([1e-3, 2e-3], 500), id="two-values"),
        pytest.param(
            np.repeat([1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3, 128e-3], 100), id="eight-values"
        ),
    ],
)
def test_several_modes_are_kept_as_they_are(sample: FloatArray) -> None:
    """No single family has two modes, so the sample itself is kept, in few values."""
    found = fit(sample)
    assert isinstance(found.distribution, Empirical)
    assert len(found.distribution.values) <= 100
    # A split into a hundred equally likely values may blur one value at each border.
    assert found.ks <= 0.02
    assert found.reason.startswith("empirical")


@pytest.mark.parametrize("share", [0.2, 0.6, 0.95])
def test_exact_zeros_stay_zeros(share: float) -> None:
    """Delays that are mostly exactly zero keep their zeros, their mean and their cv."""
    rng = np.random.default_rng(3)
    sample = np.where(rng.random(N) < share, 0.0, rng.exponential(1e-3, N))
    found = fit(sample)
    assert isinstance(found.distribution, Empirical)
    zeros = sum(v == 0 for v in found.distribution.values) / len(found.distribution.values)
    assert zeros == pytest.approx(share, abs=0.03)
    assert math.sqrt(found.distribution.scv) == pytest.approx(_cv(sample), rel=1e-7)


def test_a_few_zeros_of_a_coarse_clock_do_not_hide_the_family() -> None:
    """Microsecond times read with a microsecond clock are still what they were."""
    times = np.round(_draw(Gamma(4e-6, 0.3), N, 1), 6)
    assert np.unique(times).size < 30
    assert (times == 0).any()
    found = fit(times)
    assert found.family in ("gamma", "erlang", "weibull"), found.reason
    assert found.distribution.mean == pytest.approx(times.mean(), rel=1e-9)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ([0.25], Constant(0.25)),
        ([0.25, 0.25, 0.25], Constant(0.25)),
        ([0.0, 0.0], Constant(0.0)),
        ([0.001, 0.003], Empirical((0.001, 0.003))),
        ([3e-6, 1e-6, 2e-6], Empirical((1e-6, 2e-6, 3e-6))),
    ],
)
def test_tiny_samples_say_only_what_they_know(sample: list[float], expected: Distribution) -> None:
    """One value or equal values are a constant; a handful is kept as it is."""
    found = fit(sample)
    assert found.distribution == expected
    assert found.log_likelihood == {}


def test_one_value_is_a_constant_with_a_note() -> None:
    """Nothing is known about the spread of a time seen once, and the reason says so."""
    assert "single value" in fit([0.1]).reason


def test_rare_long_times_keep_their_cv() -> None:
    """Where a few times in a thousand carry the variance, more values are kept rather than the cv lost."""
    rng = np.random.default_rng(4)
    sample = np.where(rng.random(20_000) < 0.002, 0.1, 1e-3) * rng.uniform(0.9, 1.1, 20_000)
    found = fit(sample)
    assert isinstance(found.distribution, Empirical)
    assert 100 < len(found.distribution.values) <= 500
    assert math.sqrt(found.distribution.scv) == pytest.approx(_cv(sample), rel=1e-7)
    median = found.distribution.values[len(found.distribution.values) // 2]
    assert median == pytest.approx(np.median(sample), rel=0.1)


def test_one_value_that_is_the_whole_cv_does_not_spoil_the_others() -> None:
    """A cv made up by one of a hundred thousand values is given up, and the reason says so."""
    sample = np.full(100_000, 1e-3) * np.random.default_rng(0).uniform(0.9, 1.1, 100_000)
    sample[7] = 100.0
    found = fit(sample)
    assert "instead of" in found.reason
    assert found.distribution.mean == pytest.approx(sample.mean(), rel=1e-9)
    assert isinstance(found.distribution, Empirical)
    assert found.distribution.values[50] == pytest.approx(1e-3, rel=0.11)


def test_a_million_values_are_condensed_by_all_of_them() -> None:
    """Mean and cv of a large sample are those of the whole, not of the part that was ranked."""
    sample = _draw(Lognormal(1e-3, 0.5), 1_000_000, 9)
    found = fit(sample)
    assert found.family == "lognormal"
    assert found.distribution.mean == pytest.approx(sample.mean(), rel=1e-12)
    assert math.sqrt(found.distribution.scv) == pytest.approx(_cv(sample), rel=1e-9)


def test_order_does_not_matter_and_the_sample_is_not_changed() -> None:
    """A shuffled sample gives the same fit; the caller's array stays as it was."""
    sample = _draw(Weibull(1e-3, 1.5), 500, 2)
    before = sample.copy()
    assert fit(sample).distribution == fit(np.sort(sample)[::-1]).distribution
    assert np.array_equal(sample, before)


def test_only_the_families_asked_for_are_tried() -> None:
    """A caller may restrict the families; what is left of them is still compared with the sample."""
    sample = _draw(Lognormal(1e-3, 1.0), N, 1)
    restricted = fit(sample, families=["gamma", "exponential"])
    assert set(restricted.log_likelihood) == {"gamma", "exponential"}
    assert restricted.family == "empirical"
    assert fit(sample, families=[]).family == "empirical"


@pytest.mark.parametrize("family", CANDIDATES)
def test_likelihood_is_the_largest_of_the_family(family: str) -> None:
    """No distribution near the truth is likelier than what is reported as the family's best."""
    truth = next(t for t in TRUTHS if t.family == family)
    sample = _draw(truth, 1000, 3)
    reported = fit(sample).log_likelihood[family]
    assert reported >= _log_likelihood(truth, sample) - 1e-6
    assert reported <= _log_likelihood(truth, sample) + 12


def _log_likelihood(truth: Distribution, x: FloatArray) -> float:
    """Score a sample with the density functions of scipy."""
    from scipy import stats

    match truth:
        case Exponential(mean):
            density = stats.expon(scale=mean)
        case Erlang(mean, stages):
            density = stats.gamma(stages, scale=mean / stages)
        case Gamma(mean, scv):
            density = stats.gamma(1 / scv, scale=mean * scv)
        case Lognormal(mean, scv):
            spread = math.log1p(scv)
            density = stats.lognorm(math.sqrt(spread), scale=mean * math.exp(-spread / 2))
        case Weibull(mean, shape):
            density = stats.weibull_min(shape, scale=mean / math.gamma(1 + 1 / shape))
        case TruncatedNormal(location, scale):
            density = stats.truncnorm(-location / scale, math.inf, location, scale)
        case Uniform(low, high):
            density = stats.uniform(low, high - low)
        case Hyperexponential(probabilities, means):
            parts = [p * stats.expon(scale=m).pdf(x) for p, m in zip(probabilities, means, strict=True)]
            return float(np.log(sum(parts)).sum())
        case _:
            raise AssertionError(truth)
    return float(density.logpdf(x).sum())


def test_a_sample_that_cannot_be_times_is_refused() -> None:
    """No values, negative or infinite ones, unknown families: one sentence that names the culprit."""
    with pytest.raises(UncalibratedError, match="no measured time"):
        fit([])
    with pytest.raises(ModelError, match=r"sample\[1\].*-0.5"):
        fit([1.0, -0.5])
    with pytest.raises(ModelError, match="nan"):
        fit([math.nan])
    with pytest.raises(UsageError, match="did you mean 'gamma'"):
        fit([1.0], families=["gama"])
    with pytest.raises(UsageError, match="max_points"):
        fit([1.0], max_points=0)
