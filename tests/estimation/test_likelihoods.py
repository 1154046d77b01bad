"""Are the likelihoods of MLPS and FMLPS those of their models, and do they lead to the demands?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from observations import observed, samples
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from analyzer.estimation import markov
from analyzer.estimation.fit import Fit
from analyzer.estimation.fluid import Phases, fluid_densities, fmlps, fmlps_hyperexponential
from analyzer.estimation.likelihood import Groups, think_rates
from analyzer.estimation.markov import chain_densities, minps, mlps
from analyzer.estimation.regression import rps
from analyzer.estimation.samples import ArrivalSamples

RATES = np.array([3.0, 1.0])
THINK = np.array([0.5, 2.0])
TIMES = (0.01, 0.4, 2.5)


def _chain(kind: int, seen: tuple[int, int], cores: float, time: float) -> float:
    """The density of section 6.3 by a matrix exponential of the whole generator."""
    other = [seen[r] - (r == kind) for r in (0, 1)]
    states = [(a, b) for a in range(other[0] + 1) for b in range(other[1] + 1)]
    number = {state: i for i, state in enumerate(states)}
    generator = np.zeros((len(states), len(states)))
    end = np.zeros(len(states))
    for state, i in number.items():
        share = min(1.0, cores / (sum(state) + 1))
        end[i] = RATES[kind] * share
        for r in (0, 1):
            for step, rate in (
                (-1, RATES[r] * state[r] * share),
                (1, THINK[r] * (other[r] - state[r])),
            ):
                to = tuple(s + step * (q == r) for q, s in enumerate(state))
                if rate > 0:
                    generator[i, number[to]] += rate
    generator -= np.diag(generator.sum(axis=1) + end)
    return float((expm(generator * time) @ end)[number[tuple(other)]])


@pytest.mark.parametrize(
    ("cheap", "error"),
    [pytest.param(math.inf, 1e-9, id="uniformised"), pytest.param(0.0, 1e-7, id="projected")],
)
@pytest.mark.parametrize("cores", [1, 2, 8])
def test_density_of_the_chain(cores: float, cheap: float, error: float) -> None:
    """Both ways give what the matrix exponential gives, for all samples of all groups at once."""
    rows = [(k, t, s) for k in (0, 1) for s in ((1, 1), (3, 2), (2, 5)) for t in TIMES]
    found = chain_densities(Groups(samples(*rows)), RATES, THINK, cores, cheap=cheap)
    assert found == pytest.approx([_chain(k, s, cores, t) for k, t, s in rows], rel=error)


def _full_pool(cores: int, threads: int) -> ArrivalSamples:
    """A pool that is full on every admission: far more users than it takes to keep it busy."""
    return observed(cores, threads, 60 * cores, samples=60, seed=2).samples


def test_a_full_pool_is_estimated_as_by_uniformisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who leaves is replaced at once: the chain is stiff, and its projection leads to the same demands."""
    data = _full_pool(4, 12)
    assert data.total.min() == 12
    quick = mlps(data, 4, 12).demand
    monkeypatch.setattr(markov, "chain_densities", partial(chain_densities, cheap=math.inf))
    assert quick == pytest.approx(mlps(data, 4, 12).demand, rel=1e-4)


def test_densities_of_a_full_pool_are_those_of_uniformisation() -> None:
    """Also where rates are far from those that explain the samples, as a search tries them."""
    data = _full_pool(2, 8)
    found, think = Groups(data), think_rates(data, 8)
    for rates in (np.array([10.0, 20.0]), np.array([3.0, 60.0]), np.array([40.0, 5.0])):
        exact = chain_densities(found, rates, think, 2, cheap=math.inf)
        assert chain_densities(found, rates, think, 2, cheap=0.0) == pytest.approx(exact, rel=1e-6)


def test_a_full_pool_of_64_threads_takes_a_moment() -> None:
    """Uniformisation would need a billion steps per evaluation; all of them together stay below 0.1 s."""
    data = _full_pool(8, 64)
    assert data.total.mean() > 63
    mlps(data, 8, 64)
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        found = mlps(data, 8, 64).demand
        seconds.append(time.process_time() - begin)
    assert found == pytest.approx([0.1, 0.05], rel=0.25)
    assert sorted(seconds)[1] < 0.1


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
