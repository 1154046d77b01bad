"""Likelihoods of MLPS and FMLPS are those of their models, and lead to the demands."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from observations import observed, samples
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from analyzer.estimation import markov
from analyzer.estimation.fit import Fit
from analyzer.estimation.fluid import Phases, fluid_densities, fmlps, fmlps_hyperexponential
from analyzer.estimation.likelihood import Groups, climbed, think_rates
from analyzer.estimation.markov import Chains, minps, mlps
from analyzer.estimation.methods import estimate
from analyzer.estimation.regression import rps
from analyzer.estimation.samples import ArrivalSamples, FloatArray

RATES = np.array([3.0, 1.0])
THINK = np.array([0.5, 2.0])
TIMES = (0.01, 0.4, 2.5)


def _chain(
    kind: int,
    seen: tuple[int, ...],
    cores: float,
    time: float,
    rates: FloatArray = RATES,
    think: FloatArray = THINK,
) -> float:
    """The density of section 6.3 by a matrix exponential of the whole generator."""
    other = [seen[r] - (r == kind) for r in (0, 1)]
    states: list[tuple[int, ...]] = [(a, b) for a in range(other[0] + 1) for b in range(other[1] + 1)]
    number = {state: i for i, state in enumerate(states)}
    generator = np.zeros((len(states), len(states)))
    end = np.zeros(len(states))
    for state, i in number.items():
        share = min(1.0, cores / (sum(state) + 1))
        end[i] = rates[kind] * share
        for r in (0, 1):
            for step, rate in (
                (-1, rates[r] * state[r] * share),
                (1, think[r] * (other[r] - state[r])),
            ):
                to = tuple(s + step * (q == r) for q, s in enumerate(state))
                if rate > 0:
                    generator[i, number[to]] += rate
    generator -= np.diag(generator.sum(axis=1) + end)
    # Of a matrix without negative numbers, the exponential has all its digits, however small the density.
    fastest = -generator.diagonal().min()
    positive = expm((generator + fastest * np.eye(len(states))) * time)
    return float((positive @ end)[number[tuple(other)]] * math.exp(-fastest * time))


@pytest.mark.parametrize(
    ("cheap", "error"),
    [pytest.param(math.inf, 1e-9, id="uniformised"), pytest.param(0.0, 1e-7, id="projected")],
)
@pytest.mark.parametrize("cores", [1, 2, 8])
def test_density_of_the_chain(cores: float, cheap: float, error: float) -> None:
    """Both ways give what the matrix exponential gives, for all samples of all groups at once."""
    rows = [(k, t, s) for k in (0, 1) for s in ((1, 1), (3, 2), (2, 5)) for t in TIMES]
    found = Chains(Groups(samples(*rows)), THINK, cores, cheap).densities(RATES)
    assert found == pytest.approx([_chain(k, s, cores, t) for k, t, s in rows], rel=error)


@pytest.mark.parametrize(
    ("cheap", "error"),
    [pytest.param(math.inf, 1e-9, id="uniformised"), pytest.param(0.0, 1e-6, id="projected")],
)
def test_density_in_the_far_tail(cheap: float, error: float) -> None:
    """A search starts where rates may be far too high for some times: rounding must not lead it from there.

    Nor must a time be taken for impossible that is only very unlikely.
    """
    rates, think = np.array([10.0, 20.0]), np.array([0.7, 0.7])
    rows = [(1, t, s) for s in ((0, 1), (2, 3), (6, 7), (11, 6)) for t in (1.0, 2.0, 4.0, 8.0)]
    exact = [_chain(k, s, 2, t, rates, think) for k, t, s in rows]
    assert 0 < min(exact) < 1e-60
    assert Chains(Groups(samples(*rows)), think, 2, cheap).densities(rates) == pytest.approx(
        exact, rel=error, abs=0
    )


def _busy_pool(cores: int, threads: int, users: int, seed: int = 2) -> ArrivalSamples:
    """A pool that is full on every admission, or nearly: as many users as keep it busy, or more."""
    return observed(cores, threads, users, samples=60, seed=seed).samples


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cores", "threads", "users", "seed"),
    [
        pytest.param(4, 12, 240, 2, id="full"),
        pytest.param(4, 24, 185, 2, id="nearly full"),
        pytest.param(4, 24, 140, 2, id="half full"),
        pytest.param(2, 64, 200, 3, id="times far too long for the start"),
    ],
)
def test_a_busy_pool_is_estimated_as_by_uniformisation(
    cores: int, threads: int, users: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who leaves is replaced soon: the chain is stiff, and its projection leads to the same demands."""
    data = _busy_pool(cores, threads, users, seed)
    quick = mlps(data, cores, threads)
    monkeypatch.setattr(markov, "CHEAP", math.inf)
    exact = mlps(data, cores, threads)
    assert quick.demand == pytest.approx(exact.demand, rel=1e-4)
    counts = np.random.default_rng(0).multinomial(len(data.kind), np.ones(len(data.kind)) / len(data.kind))
    resampled = [fit.resampled(counts[None, :].astype(float))[0] for fit in (quick, exact)]
    assert resampled[0] == pytest.approx(resampled[1], rel=1e-3)


@pytest.mark.parametrize(
    ("threads", "users"), [pytest.param(8, 240, id="full"), pytest.param(16, 185, id="nearly full")]
)
def test_densities_of_a_busy_pool_are_those_of_uniformisation(threads: int, users: int) -> None:
    """Also where rates are far from those that explain the samples, as a search tries them."""
    data = _busy_pool(2, threads, users)
    found, think = Groups(data), think_rates(data, threads)
    for rates in (np.array([10.0, 20.0]), np.array([3.0, 60.0]), np.array([40.0, 5.0])):
        exact = Chains(found, think, 2, math.inf).densities(rates)
        assert Chains(found, think, 2, 0.0).densities(rates) == pytest.approx(exact, rel=1e-6)


def test_dimensions_are_kept_until_they_are_planned_again() -> None:
    """Densities are smooth in the rates meanwhile, and whether they are still right can be asked."""
    data = _busy_pool(4, 24, 185)
    chains = Chains(Groups(data), think_rates(data, 24), 4, 0.0)
    rates = np.array([10.0, 20.0])
    chains.plan(rates)
    assert chains.enough(rates)
    slopes = [
        (chains.log_densities(rates * math.exp(s)) - chains.log_densities(rates * math.exp(-s))) / (2 * s)
        for s in (1e-4, 1e-3)
    ]
    assert slopes[0] == pytest.approx(slopes[1], abs=1e-3)
    chains._dimensions = np.minimum(chains._dimensions, 3)
    assert not chains.enough(rates)
    chains.plan(rates)
    assert chains.enough(rates)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "limit", "error"),
    [pytest.param(480, 0.1, 0.25, id="full"), pytest.param(250, 0.25, 0.35, id="nearly full")],
)
def test_a_pool_of_64_threads_takes_a_moment(users: int, limit: float, error: float) -> None:
    """Uniformisation would need a billion steps per evaluation; all of them together take so many seconds."""
    data = _busy_pool(8, 64, users)
    assert users < 480 or data.total.mean() > 63
    mlps(data, 8, 64)
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        found = mlps(data, 8, 64).demand
        seconds.append(time.process_time() - begin)
    assert found == pytest.approx([0.1, 0.05], rel=error)
    assert sorted(seconds)[1] < limit


@pytest.mark.parametrize(
    ("start", "low"),
    [
        pytest.param(0.0, -9.0, id="near"),
        pytest.param(3.0, -9.0, id="far"),
        pytest.param(3.0, 0.0, id="one at a bound"),
        pytest.param(3.0, 2.0, id="both at a bound"),
    ],
)
def test_a_search_finds_the_largest_likelihood_with_few_evaluations(start: float, low: float) -> None:
    """Rates of exponential times are the reciprocals of their means; a bound is not crossed."""
    times = np.random.default_rng(3).exponential(1.0, (200, 2)) / [0.2, 3.0]
    asked = 0

    def log_density(parameters: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += 1
        return np.asarray((parameters - np.exp(parameters) * times).sum(axis=1))

    found, _ = climbed(log_density, np.full(2, start), np.full(2, low), np.full(2, 9.0))
    assert found == pytest.approx(np.maximum(-np.log(times.mean(axis=0)), low), abs=5e-4)
    assert asked < 100


def test_one_time_far_too_long_changes_only_its_class() -> None:
    """A pool that is always full is one of a constant speed: a demand is a mean, of 30 times as much as well."""
    data = observed(2, 12, 240, samples=60, seed=2).samples
    assert data.total.min() == 12
    times = data.response_time.copy()
    mine = np.flatnonzero(data.kind == 0)
    times[mine[9]] = 30 * times[mine].mean()
    means = np.array([times[data.kind == r].mean() for r in (0, 1)])
    assert mlps(replace(data, response_time=times), 2, 12).demand == pytest.approx(means / 6, rel=0.02)


def test_a_search_with_a_wrong_curvature_goes_on() -> None:
    """Curvature from elsewhere that makes every step tiny does not end a search far from the maximum."""
    times = np.random.default_rng(4).exponential(1.0, 200)

    def log_density(parameters: np.ndarray) -> np.ndarray:
        return np.asarray(parameters[0] - np.exp(parameters[0]) * times)

    found, _ = climbed(log_density, np.ones(1), np.full(1, -9.0), np.full(1, 9.0), np.full((1, 1), 1e12))
    assert found == pytest.approx([-math.log(times.mean())], abs=1e-3)


def _drawn_from_the_chain(
    data: ArrivalSamples, threads: float, cores: float, demand: FloatArray
) -> FloatArray:
    """Response times as the chain of every sample has them: none comes but those that were seen and have left."""
    rng = np.random.default_rng(5)
    think = think_rates(data, threads)
    result = np.zeros(len(data.kind))
    for i, (kind, seen) in enumerate(zip(data.kind, data.seen, strict=True)):
        others = seen - np.eye(len(demand), dtype=np.int64)[kind]
        here = others.copy()
        while True:
            share = min(1.0, cores / (1 + here.sum()))
            rates = np.concatenate([here / demand * share, (others - here) * think, [share / demand[kind]]])
            result[i] += rng.exponential(1 / rates.sum())
            event = int(rng.choice(len(rates), p=rates / rates.sum()))
            if event == len(rates) - 1:
                break
            here[event % len(demand)] += 1 if event >= len(demand) else -1
    return result


@pytest.mark.slow
def test_mlps_errs_where_others_come_and_auto_does_not_take_it() -> None:
    """Times of its own chain give the demands back, half full or not; those of the pool give far more.

    ``auto`` takes another method, which is right there, and asked for nevertheless it says so.
    """
    demand = np.array([0.1, 0.05])
    data = observed(2, 64, 215, samples=300).samples
    assert 15 < data.total.mean() < 45
    own = replace(data, response_time=_drawn_from_the_chain(data, 64, 2, demand))
    assert mlps(own, 2, 64).demand == pytest.approx(demand, rel=0.17)
    asked = estimate(data, cores=2, threads=64, method="mlps")
    assert np.all(asked.low > 1.2 * demand)
    assert sum("ldps finds" in note for note in asked.notes) == 2
    chosen = estimate(data, cores=2, threads=64)
    assert chosen.method == "ldps"
    assert "needs neither think times nor the thread pool" in chosen.reason
    assert chosen.demand == pytest.approx(demand, rel=0.17)
    assert not any("ldps finds" in note for note in chosen.notes)


def _fluid(kind: int, seen: tuple[int, int], time: float, *, threads: float, cores: float) -> float:
    """The density of section 7.1 by a general solver of the equations as printed."""
    idle = (threads - sum(seen)) * np.array([0.5, 0.5])
    start = [seen[r] - (r == kind) for r in (0, 1)] + [1.0, *idle]

    def share(x: np.ndarray) -> float:
        return min(1.0, cores / (x[0] + x[1] + x[2]))

    def drift(_: float, x: np.ndarray) -> list[float]:
        done = [RATES[0] * share(x) * x[0], RATES[1] * share(x) * x[1], RATES[kind] * share(x) * x[2]]
        come = [THINK[r] * x[3 + r] for r in (0, 1)]
        back = [done[r] + (done[2] if r == kind else 0.0) for r in (0, 1)]
        return [come[0] - done[0], come[1] - done[1], -done[2], back[0] - come[0], back[1] - come[1]]

    x = solve_ivp(drift, (0, time), start, rtol=1e-9, atol=1e-12).y[:, -1]
    return float(RATES[kind] * share(x) * x[2])


@pytest.mark.parametrize("cores", [2, 8])
def test_density_of_the_fluid(cores: float) -> None:
    """Steps of frozen share come close to the exact solution of the differential equations."""
    rows = [(k, t, s) for k in (0, 1) for s in ((1, 1), (3, 2), (2, 5)) for t in TIMES]
    phases = Phases(np.arange(2), RATES, np.ones(2))
    found = fluid_densities(Groups(samples(*rows)), phases, THINK, np.array([0.5, 0.5]), 20, cores)
    assert found == pytest.approx([_fluid(k, s, t, threads=20, cores=cores) for k, t, s in rows], rel=5e-3)


def test_without_contention_response_times_are_hyperexponential() -> None:
    """As many cores as threads: the density is that of the demand, whatever was seen."""
    times = (0.1, 1.0, 3.0)
    phases = Phases(np.array([0, 0]), np.array([5.0, 0.5]), np.array([0.7, 0.3]))
    found = fluid_densities(
        Groups(samples(*[(0, t, (3,)) for t in times])), phases, THINK[:1], np.ones(1), 8, 8
    )
    exact = [0.7 * 5 * math.exp(-5 * t) + 0.3 * 0.5 * math.exp(-0.5 * t) for t in times]
    assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "cores", "threads", "users"),
    [
        pytest.param(mlps, 4, 16, 60, id="mlps"),
        pytest.param(minps, 4, 16, 140, id="minps"),
        pytest.param(fmlps, 4, 32, 60, id="fmlps"),
        pytest.param(fmlps_hyperexponential, 4, 32, 60, id="fmlps-he"),
    ],
)
def test_demands_are_found(
    method: Callable[[ArrivalSamples, float, float], Fit], cores: int, threads: int, users: int
) -> None:
    """300 samples per class: within three standard errors (17 %) where the method works."""
    data = observed(cores, threads, users, samples=300).samples
    fit = method(data, cores, threads)
    assert fit.demand == pytest.approx([0.1, 0.05], rel=0.17)
    unchanged = np.ones((1, len(data.kind)))
    # The scores sum to zero at the maximum, up to where the search stops.
    assert fit.resampled(unchanged)[0] == pytest.approx(fit.demand, rel=0.01)


def test_minps_takes_the_smaller() -> None:
    """Under heavy load MLPS is too high, and MINPS is RPS."""
    data = observed(2, 8, 180).samples
    found = minps(data, 2, 8).demand
    assert np.all(found <= rps(data, 2).demand)
    assert np.all(found <= mlps(data, 2, 8).demand)


def test_too_large_chains_are_refused() -> None:
    """Work that would take minutes is an error, not a wait."""
    with pytest.raises(ValueError, match="too many requests were seen"):
        mlps(samples((0, 1.0, [400, 400]), (1, 0.001, [400, 400])), 8, 1000)


def test_think_rates_follow_from_the_samples() -> None:
    """Equation 6; without measured rates, Little's law on what others see."""
    data = samples((0, 2.0, [3]), (0, 2.0, [1]))
    assert think_rates(data, 10) == pytest.approx([(1 / 2.0) / (10 - 2)])
