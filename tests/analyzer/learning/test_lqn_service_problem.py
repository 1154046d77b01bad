"""Traces, and a layered model with variation: how many stages, in which direction, and how far."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from layered_services import two_layers, two_layers_observed

from analyzer.learning import lqn_service_problem
from analyzer.learning.lqn_columns import beginnings, match_columns
from analyzer.learning.lqn_fit import FluidFit, column_weights
from analyzer.learning.lqn_service_problem import Point, Problem
from mup.errors import SimulationError
from simulator.networks.inlined import inline

TRUE = np.log([0.5, 0.05, 0.06, 0.1])


@pytest.fixture(scope="module")
def plain() -> FluidFit:
    """Six traces of two layers, of the model with exponential times."""
    traces = two_layers_observed(dict.fromkeys(("think", "pre", "q", "post"), "h2-2"), traces=6, runs=20)
    lqn = inline(two_layers())
    columns = match_columns(lqn, traces.names)
    starts = beginnings(lqn, columns, traces.x[:, 0], None).states
    learned = np.arange(len(lqn.times))
    return FluidFit(lqn, learned, columns, starts, traces.x, traces.dt, column_weights(traces.x))


def problem_of(plain: FluidFit) -> Problem:
    return Problem.of(two_layers(), plain, seed=1)


def test_the_simulation_has_more_stages_than_the_fluid(plain: FluidFit) -> None:
    problem = problem_of(plain)
    assert problem.tasks == ("C", "A", "B")
    assert problem.stages == (20, 5)
    fit = problem.staged(Point(TRUE, np.full(3, -math.log(20))))
    assert fit.simulated is not None
    # Four times in stages, and two states of waiting.
    assert fit.simulated.lqn.system.size == 4 * 20 + 2
    assert fit.lqn.system.size == 4 * 5 + 2
    assert fit.starts.sum(axis=1) == pytest.approx(plain.starts.sum(axis=1))


@pytest.mark.parametrize(
    ("most", "stages"), [pytest.param(60, 10, id="ten"), pytest.param(20, 3, id="three")]
)
def test_large_models_have_fewer_stages(
    plain: FluidFit, monkeypatch: pytest.MonkeyPatch, most: int, stages: int
) -> None:
    monkeypatch.setattr(lqn_service_problem, "MOST_STATES", most)
    problem = problem_of(plain)
    assert problem.stages[0] == stages
    assert problem.bounds[0] == pytest.approx(-math.log(stages))


def test_the_fluid_of_large_models_has_the_fewest_stages(
    plain: FluidFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lqn_service_problem, "FLUID_STATES", {5: 20, 3: 13, 2: 10})
    assert problem_of(plain).stages == (20, 2)
    monkeypatch.setattr(lqn_service_problem, "FLUID_STATES", {5: 20, 3: 13, 2: 9})
    with pytest.raises(SimulationError, match="the model has 10 states, more than 9"):
        problem_of(plain)


def test_models_with_too_many_states_are_refused(plain: FluidFit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lqn_service_problem, "MOST_STATES", 13)
    with pytest.raises(SimulationError, match="the model has 14 states, more than 13"):
        problem_of(plain)


@pytest.mark.parametrize(
    ("scv", "sides"),
    [
        pytest.param(2.5, (-0.35, 0.0), id="above 1"),
        pytest.param(1.1, (-0.35, 0.35), id="near 1"),
        pytest.param(0.4, (0.0, 0.35), id="below 1"),
    ],
)
def test_slopes_are_those_of_the_fluid(plain: FluidFit, scv: float, sides: tuple[float, float]) -> None:
    """Towards exponential times, which have the fewest states; near them, to both sides."""
    problem = problem_of(plain)
    point = Point(TRUE, np.full(3, math.log(scv)))
    slopes = problem.slopes(point)
    assert slopes.shape == (6, plain.data[0].size, 4 + 3)
    assert np.array_equal(problem.slopes(point, variation=False), slopes[:, :, :4])

    def predicted(logs: np.ndarray, scv: np.ndarray) -> np.ndarray:
        values = problem.staged(Point(logs, scv)).predict(logs)[0] * plain.weights
        return np.asarray(values.reshape(6, -1))

    for k, step in enumerate(1e-4 * np.eye(4)):
        change = predicted(TRUE + step, point.scv) - predicted(TRUE - step, point.scv)
        assert slopes[:, :, k] == pytest.approx(change / 2e-4, abs=2e-3)
    less, more = sides
    for g, unit in enumerate(np.eye(3)):
        change = predicted(TRUE, point.scv + more * unit) - predicted(TRUE, point.scv + less * unit)
        assert np.abs(change).max() > 0.01
        assert slopes[:, :, 4 + g] == pytest.approx(change / (more - less))


def test_what_varies_less_than_the_fluid_has_smaller_effects(plain: FluidFit) -> None:
    """An effect by the logarithm of a small variation is as small as that itself."""
    problem = problem_of(plain)
    at, below = (problem.slopes(Point(TRUE, np.full(3, math.log(scv)))) for scv in (1 / 5, 1 / 20))
    assert below[:, :, 4:] == pytest.approx(at[:, :, 4:] / 4)
    assert np.array_equal(below[:, :, :4], at[:, :, :4])


def test_steps_lead_to_where_nothing_is_missed(plain: FluidFit) -> None:
    """Where the fluid is right, and with the response, where a step goes half as far as it says."""
    problem = problem_of(plain)
    target = Point(TRUE, np.log([2.0, 1.5, 3.0]))
    begun = Point(TRUE + 0.1, np.log([2.5, 1.2, 2.5]))

    def missed(point: Point) -> np.ndarray:
        off = problem.staged(point).predict(point.logs)[0] - problem.staged(target).predict(target.logs)[0]
        return np.asarray((off * plain.weights).reshape(6, -1))

    point = begun
    for _ in range(12):
        point = problem.stepped(point, missed(point), problem.slopes(point))
    assert point.logs == pytest.approx(target.logs, abs=0.01)
    assert point.scv == pytest.approx(target.scv, abs=0.05)
    off, slopes = missed(begun), problem.slopes(begun)
    once, twice = (problem.stepped(begun, off, slopes, response) for response in (None, 1.5 * np.eye(7)))
    assert twice.logs - begun.logs == pytest.approx(1.5 * (once.logs - begun.logs))
    assert twice.scv - begun.scv == pytest.approx(1.5 * (once.scv - begun.scv))


def test_responses_are_neither_lost_nor_boundless(plain: FluidFit) -> None:
    """Six traces of few runs tell little: what is noise in a response must not throw a step far away."""
    problem = replace(problem_of(plain), events=20_000)
    point = Point(TRUE, np.log([2.0, 2.0, 2.0]))
    response = problem.response(point, problem.slopes(point), seed=4)
    values = np.linalg.svd(response)[1]
    assert response.shape == (7, 7)
    assert values.min() >= 0.4 - 1e-9
    assert values.max() <= 8 + 1e-9
    assert np.array_equal(response, problem.response(point, problem.slopes(point), seed=4))


def test_some_traces_are_evenly_spread(plain: FluidFit) -> None:
    problem = problem_of(plain)
    few = problem.few(3)
    assert np.array_equal(few.whole, problem.whole[[0, 2, 5]])
    assert np.array_equal(few.plain.data, plain.data[[0, 2, 5]])
    assert few.missed(Point(TRUE, np.zeros(3)), seed=3).shape == (3, plain.data[0].size)
