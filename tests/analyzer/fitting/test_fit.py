"""Parameters are recovered from measurements, and intervals contain them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fitted_models import MEASURES, NAMES, PATHS, TRUE, loads, measured, three_queues, true_means, two_layers

from analyzer.fitting import forward
from analyzer.fitting.correction import simulated_means
from analyzer.fitting.data import Data, Trial
from analyzer.fitting.fit import Options, Wanted, fit
from analyzer.fitting.forward import AnalyticForward
from analyzer.fitting.parameters import parameter
from analyzer.fitting.predictions import predict
from analyzer.fitting.regression import Expert
from mup.errors import MupError
from mup.lqn import Constant, Exponential
from simulator.analytic import estimate

WANTED = [Wanted(parameter(p)) for p in PATHS]
ELSEWHERE = three_queues((1.0, 5.0, 3.0))
"""Where searches start."""


def test_exact_measurements_give_exact_parameters() -> None:
    """Without errors, the truth is found from another start."""
    trials = loads(range(1, 11))
    means = true_means(three_queues(), trials, MEASURES)
    data = Data(
        MEASURES,
        tuple(
            Trial(t, row[None, :], 0.01 * row[None, :], np.ones((1, len(row))))
            for t, row in zip(trials, means, strict=True)
        ),
    )
    found = fit(ELSEWHERE, data, WANTED)
    assert found.exact
    np.testing.assert_allclose(found.values, TRUE, rtol=1e-4)
    assert [found.model.task(name).entries[0].activities[0].demand for name in NAMES] == [
        Exponential(v) for v in found.values
    ]


def test_intervals_contain_the_truth_as_often_as_they_say() -> None:
    """Of 20 fits with 95 % intervals of 3 parameters and a prediction, at most 12 of 100 miss."""
    random, inside, joint = np.random.default_rng(1), 0, 0
    true_response = true_means(three_queues(), loads([20]), ["response_time"])[0, 0]
    for _ in range(20):
        data = measured(three_queues(), loads(range(1, 9)), MEASURES, rows=8, error=0.05, random=random)
        found = fit(three_queues(), data, WANTED, Options(method="linear"))
        inside += sum(i.contains(v) for i, v in zip(found.intervals, TRUE, strict=True))
        joint += all(i.contains(v) for i, v in zip(found.joint, TRUE, strict=True))
        ((prediction,),) = predict(found, loads([20]), ["response_time"])
        inside += prediction.interval.contains(true_response)
    assert 0.88 <= inside / 80 <= 0.995
    assert joint >= 16


def test_errors_are_taken_from_residuals_where_nothing_else_is_known() -> None:
    """Single rows without half-widths: the spread of the errors is found, and intervals are of its size."""
    data = measured(
        three_queues(), loads(range(1, 13)), MEASURES, rows=1, error=0.03, random=np.random.default_rng(3)
    )
    found = fit(ELSEWHERE, data, WANTED)
    assert found.problem.errors.source == "residuals"
    assert found.p_value is None
    for interval, truth in zip(found.intervals, TRUE, strict=True):
        assert interval.contains(truth)
        assert 0.005 * truth < interval.half_width < 0.05 * truth


def test_a_demand_that_is_not_there_is_estimated_as_small_with_a_one_sided_interval() -> None:
    """A fourth queue without work: its interval begins at 0, by profile, and the others are still right."""
    data = measured(
        three_queues((2.0, 3.0, 0.0)), loads(range(1, 9)), MEASURES[:2] + MEASURES[3:], rows=8, error=0.02,
        random=np.random.default_rng(4),
    )  # fmt: skip
    found = fit(three_queues((1.0, 5.0, 0.5)), data, WANTED)
    ghost = found.intervals[2]
    assert (ghost.low, ghost.method) == (0.0, "profile")
    assert 0 < ghost.high < 0.2
    assert found.intervals[0].contains(2.0)
    assert found.intervals[1].contains(3.0)


def test_an_estimate_at_a_bound_of_the_search_is_said() -> None:
    """Bounds that exclude the truth, and the 0 that no demand is below; a truth inside of them is no warning."""
    data = measured(
        three_queues((2.0, 3.0, 0.0)), loads(range(1, 9)), MEASURES[:2], rows=8, error=0.001,
        random=np.random.default_rng(4),
    )  # fmt: skip
    below, free, none = (parameter(p) for p in PATHS)
    found = fit(ELSEWHERE, data, [Wanted(replace(below, high=1.5)), Wanted(free), Wanted(none)])
    said = {
        p.path: [w for w in found.warnings if w.startswith(f"{p.path} ended at")] for p in found.parameters
    }
    assert [w for w in said[below.path] if "ended at 1.5, a bound of the search" in w and "ask for more" in w]
    assert not said[free.path]
    inside = fit(ELSEWHERE, data, [Wanted(replace(below, low=1.0, high=3.0)), Wanted(free), Wanted(none)])
    assert not any("a bound of the search" in w for w in inside.warnings)
    fast = measured(
        three_queues((2.0, 3.0, 0.0)), loads(range(1, 9)), ["throughput"], rows=8, error=0.001,
        random=np.random.default_rng(4),
    )  # fmt: skip
    nothing = fit(three_queues((2.1, 3.1, 0.1)), fast, [Wanted(none)])
    assert [w for w in nothing.warnings if w.startswith(f"{none.path} ended at 0, the least it can be")]


def test_pools_are_found_among_whole_numbers() -> None:
    """The size of a pool and a demand are found together, although the search starts with another size."""
    figures = ("response_time", "throughput", "tasks.back.utilization")
    data = measured(
        two_layers(threads=2), loads([2, 9]), figures, rows=6, error=0.01, random=np.random.default_rng(0)
    )
    wanted = [Wanted(parameter("demand.back.serve"), start=0.04), Wanted(parameter("pool.front"))]
    found = fit(two_layers(threads=4), data, wanted, Options(correct=False))
    assert found.values[1] == 2
    assert found.intervals[1].low == found.intervals[1].high == 2
    assert found.intervals[0].contains(0.05)
    assert not found.exact


@pytest.mark.slow
def test_the_error_of_the_solver_is_removed_by_simulation() -> None:
    """What the layered estimate gets wrong ends up in the fit, but not after the correction."""
    figures = ("response_time", "throughput")
    model = two_layers(threads=2)
    from simulator import simulate

    trials = loads([8])
    rows = []
    for trial in trials:
        result = simulate(trial[0][0].apply(model, trial[0][1]), precision=0.03, seed=1)
        cycle = result.cycle
        rows.append(
            [
                [cycle.response_time.mean, cycle.throughput.mean],
                [cycle.response_time.ci95, cycle.throughput.ci95],
            ]
        )
    data = Data(
        figures,
        tuple(
            Trial(t, np.array(r[:1]), np.array(r[1:]), np.ones((1, 2)))
            for t, r in zip(trials, rows, strict=True)
        ),
    )
    wanted = [Wanted(parameter("demand.back.serve"))]
    found = fit(model, data, wanted)
    assert found.corrections >= 1
    assert found.values[0] == pytest.approx(0.05, rel=0.04)
    assert found.intervals[0].contains(0.05)


@pytest.mark.slow
def test_precise_measurements_are_corrected_until_estimates_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """One correction leaves some of the solver's error, which is said; further ones end by themselves."""
    from simulator import simulate

    figures = ("response_time", "throughput")
    ((setting, clients),) = loads([8])[0]
    cycle = simulate(setting.apply(two_layers(), clients), precision=0.005, seed=1).cycle
    means = np.array([[cycle.response_time.mean, cycle.throughput.mean]])
    data = Data(figures, (Trial(((setting, clients),), means, 0.01 * means, np.ones((1, 2))),))
    wanted = [Wanted(parameter("demand.back.serve"))]
    found = fit(two_layers(back=0.03), data, wanted)
    assert found.corrections > 1
    assert not any("converged" in warning for warning in found.warnings)
    assert found.values[0] == pytest.approx(0.05, rel=0.02)
    monkeypatch.setattr("analyzer.fitting.fit.CORRECTIONS", 1)
    cut = fit(two_layers(back=0.03), data, wanted)
    assert any("had not converged in 1 corrections" in warning for warning in cut.warnings)


def test_the_layered_estimate_is_asked_once_for_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that starts where the one before it ended, but for rounding, does not take derivatives again."""
    asked = []
    monkeypatch.setattr(forward, "estimate", lambda model: asked.append(model) or estimate(model))
    paths, scales = [parameter("demand.front.serve"), parameter("demand.back.serve")], np.array([0.03, 0.04])
    solver = AnalyticForward(two_layers(), paths, scales, loads([2, 8]), ("response_time",))
    here = np.array([0.02, 0.05])
    means, slopes = solver.sensitivities(here)
    assert len(asked) == 2 * (1 + len(paths))
    again = solver.sensitivities(here / scales * scales * (1 + 1e-15))
    assert len(asked) == 2 * (1 + len(paths))
    np.testing.assert_array_equal(again[0], means)
    np.testing.assert_array_equal(again[1], slopes)
    assert np.all(solver.means(here * 1.001) > means)


@pytest.mark.slow
def test_trials_are_simulated_with_luck_of_their_own() -> None:
    """Equal configurations differ by chance, or errors of the correction would not average out; seeds repeat."""
    figures = ("response_time", "throughput")
    first, second = (
        simulated_means(two_layers(), [], np.zeros(0), loads([4, 4]), figures, relative=0.1, seed=3).means
        for _ in range(2)
    )
    assert np.all(first[0] != first[1])
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first[0], first[1], rtol=0.1)


def test_an_expert_decides_what_the_data_leave_open() -> None:
    """Of two demands only the sum is visible; an expert's interval of one determines both."""
    data = measured(
        three_queues(), loads([1]), ("response_time", "entries.app.serve.response_time"), rows=20, error=0.01,
        random=np.random.default_rng(6),
    )  # fmt: skip
    known = Wanted(parameter(PATHS[0]), expert=Expert(1.8, 2.0, 2.2))
    found = fit(ELSEWHERE, data, [known, Wanted(parameter(PATHS[1])), Wanted(parameter(PATHS[2]))])
    assert found.intervals[0].half_width == pytest.approx(0.2, rel=0.2)
    assert found.intervals[1].contains(3.0)
    assert found.intervals[1].half_width == pytest.approx(0.2, rel=0.25)
    assert found.intervals[2].half_width < 0.03


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param([*WANTED, WANTED[0]], "estimated twice", id="twice"),
        pytest.param(
            [Wanted(parameter("clients"))], "a column of the measurements sets it", id="set-by-data"
        ),
        pytest.param([Wanted(parameter("demand.web.nothing"))], "no entry 'web.nothing'", id="unknown"),
        pytest.param(
            [Wanted(parameter("pool.web"), expert=Expert(1, 2, 3))], "give it bounds", id="expert-of-a-pool"
        ),
        pytest.param([Wanted(parameter("pool.disc"))], "no task 'disc'", id="unknown-pool"),
    ],
)
def test_what_cannot_be_fitted_is_refused(wanted: list[Wanted], message: str) -> None:
    """One message says what is wrong."""
    data = measured(
        three_queues(), loads([1, 2]), MEASURES, rows=3, error=0.1, random=np.random.default_rng(0)
    )
    with pytest.raises(MupError, match=message):
        fit(three_queues(), data, wanted)


def test_more_parameters_than_values_are_refused() -> None:
    """Three demands cannot be told from a throughput and a response time of one load."""
    data = measured(
        three_queues(),
        loads([2]),
        ("throughput", "response_time"),
        rows=5,
        error=0.1,
        random=np.random.default_rng(0),
    )
    with pytest.raises(MupError, match="3 parameters cannot be fitted to 2 values"):
        fit(three_queues(), data, WANTED)


def test_a_wrong_structure_is_noticed() -> None:
    """Measurements of three queues do not fit a model in which one of them never makes a client wait."""
    data = measured(
        three_queues(), loads(range(1, 9)), MEASURES, rows=8, error=0.01, random=np.random.default_rng(8)
    )
    model = three_queues()
    app = model.task("app")
    patient = model.with_task(type(app)(name="app", threads=math.inf, entries=app.entries))
    found = fit(patient, data, WANTED)
    assert found.p_value is not None
    assert found.p_value < 1e-6
    assert any("does not explain" in warning for warning in found.warnings)


@pytest.mark.parametrize("method", ["profile", "bootstrap"])
def test_other_intervals_agree_where_linearisation_is_right(method: str) -> None:
    """With small errors all kinds of intervals are the same."""
    data = measured(
        three_queues(), loads([2, 5]), MEASURES, rows=6, error=0.01, random=np.random.default_rng(9)
    )
    linear = fit(three_queues(), data, WANTED, Options(method="linear"))
    other = fit(three_queues(), data, WANTED, Options(method=method))  # type: ignore[arg-type]
    for one, two in zip(linear.intervals, other.intervals, strict=True):
        assert two.method == method
        assert two.half_width == pytest.approx(one.half_width, rel=0.2)


def test_constant_demands_have_no_product_form_but_can_be_fitted() -> None:
    """The path of a demand keeps its distribution's family."""
    fixed = parameter(PATHS[0]).apply(three_queues(), 2.5)
    assert fixed.task("web").entries[0].activities[0].demand == Exponential(2.5)
    app = fixed.task("app").entries[0].activities[0]
    assert app.delay == Constant(0.0)
