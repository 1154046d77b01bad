"""The filter follows numbers of a whole model, its intervals are correct, and so are its alarms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from drifts import FloatArray, drifting, series, walk
from fitted_models import (
    MEASURES,
    NAMES,
    PATHS,
    TRUE,
    clients,
    loads,
    server,
    three_queues,
    true_means,
    two_layers,
)

from analyzer.fitting.data import Data, Series, Trial
from analyzer.fitting.fit import Wanted
from analyzer.fitting.parameters import parameter
from analyzer.fitting.regression import Expert
from analyzer.fitting.states import States
from analyzer.fitting.tracking import Following, Tracked, track
from mup.errors import UsageError
from mup.lqn import Exponential, Model
from simulator import simulate

WANTED = [Wanted(parameter(p)) for p in PATHS]
ELSEWHERE = three_queues((1.5, 3.5, 3.0))
"""Where the first fit starts."""
PERIODS, CHANGE, LEARNED = 50, 30, 20


def followed(demands: FloatArray, seed: int, *, stated: bool = False, drift: float | None = None) -> Tracked:
    """Track measurements of the network with these demands."""
    data = series(drifting(demands), np.random.default_rng(seed), stated=stated)
    return track(ELSEWHERE, data, WANTED, Following(drift=drift))


@pytest.mark.slow
@pytest.mark.parametrize("stated", [False, True], ids=["errors learned", "errors stated"])
def test_drifting_demands_are_followed_and_intervals_hold(stated: bool) -> None:
    """Demands walk by 2 % per period: the drift is found, 95 % intervals hold about as often, no alarm."""
    inside, errors, drifts, sizes = [], [], [], []
    for seed in range(3):
        demands = walk(PERIODS, 0.02, np.random.default_rng(seed))
        found = followed(demands, seed, stated=stated)
        assert found.alarms == ()
        assert found.exact
        assert found.noise == ("stated" if stated else "learned")
        held = (found.low <= demands) & (demands <= found.high)
        inside.append(held[LEARNED:].mean())
        errors.append(np.log(found.values / demands)[LEARNED:])
        drifts.append(found.drift)
        sizes.append(found.size[LEARNED:].mean())
    assert 0.88 <= np.mean(inside) <= 0.995
    # One period alone tells a demand to 3 % and more.
    assert float(np.sqrt(np.mean(np.square(errors)))) < 0.022
    assert np.mean(drifts) == pytest.approx(0.02, abs=0.006)
    assert np.mean(sizes) == pytest.approx(1.0, abs=0.3)


def test_what_does_not_drift_is_found_ever_more_precisely() -> None:
    """Constant demands: the drift is found to be small, and the estimates use all periods."""
    found = followed(walk(PERIODS, 0.0, np.random.default_rng(1)), 1)
    assert found.drift < 0.004
    assert found.alarms == ()
    np.testing.assert_allclose(found.values[-1], TRUE, rtol=0.012)
    assert np.all(found.deviations[-1] < 0.7 * found.deviations[5])


def test_a_jump_is_an_alarm_that_other_values_explain() -> None:
    """One demand grows by half: an alarm at once that says so, and the new value from then on."""
    demands = walk(PERIODS, 0.01, np.random.default_rng(2))
    demands[CHANGE:, 2] *= 1.5
    found = followed(demands, 2)
    (alarm,) = found.alarms
    assert (alarm.period, alarm.test, alarm.verdict) == (CHANGE, "size", "jump")
    assert alarm.measure == "entries.app.serve.response_time"
    assert alarm.measured > 1.3 * alarm.expected
    assert alarm.deviation > 5
    np.testing.assert_allclose(found.values[-1], demands[-1], rtol=0.06)


def test_a_structure_that_changes_is_an_alarm_that_no_values_explain() -> None:
    """A fourth queue appears that the model lacks: clients are missing from all stations that are measured."""

    def with_ghost(row: list[float]) -> Model:
        model = three_queues(row)
        ghost = server("ghost", Exponential(2.5))
        return replace(model, tasks=(clients([*NAMES, "ghost"], 4), *model.tasks[1:], ghost))

    demands = walk(PERIODS, 0.01, np.random.default_rng(3))
    models = [*drifting(demands[:CHANGE]), *map(with_ghost, demands[CHANGE:].tolist())]
    found = track(ELSEWHERE, series(models, np.random.default_rng(3)), WANTED)
    assert found.alarms
    assert CHANGE <= found.alarms[0].period <= CHANGE + 5
    assert {a.verdict for a in found.alarms} == {"structure"}


def test_more_drift_than_allowed_is_noticed() -> None:
    """A drift that is given and too small: consecutive innovations are alike."""
    demands = np.array(TRUE) * np.exp(0.04 * np.maximum(np.arange(PERIODS) - LEARNED, 0))[:, None]
    found = followed(demands, 4, drift=0.004)
    assert found.alarms
    assert found.drift == 0.004
    assert {a.verdict for a in found.alarms} <= {"drift", "jump"}


def test_figures_may_be_missing() -> None:
    """A measure that is missing now and then, or alone for a while, still counts where it is."""
    demands = walk(PERIODS, 0.02, np.random.default_rng(5))
    data = series(drifting(demands), np.random.default_rng(5))
    trials = []
    for index, trial in enumerate(data.data.trials):
        rows = trial.rows.copy()
        rows[0, slice(1, None) if 30 <= index < 35 else index % len(MEASURES)] = math.nan
        trials.append(replace(trial, rows=rows))
    found = track(ELSEWHERE, Series(Data(MEASURES, tuple(trials)), data.names), WANTED)
    assert found.alarms == ()
    assert np.abs(np.log(found.values / demands))[LEARNED:].max() < 0.15
    # Nothing is measured of app then.
    assert found.deviations[34, 2] > 1.5 * found.deviations[29, 2]


@pytest.mark.slow
def test_a_layered_model_is_followed_with_corrections_of_its_solver() -> None:
    """Simulated measurements of two layers: corrected by simulation, the estimate is right."""
    truth = two_layers(0.02, 0.05)
    measures = ("response_time", "throughput")
    result = simulate(truth, precision=0.02, seed=7).to_json()["cycle"]
    means = np.array([[result[m]["mean"] for m in measures]])
    random = np.random.default_rng(6)
    trials = tuple(
        Trial(
            (),
            means * (1 + 0.05 * random.standard_normal((1, 2))),
            np.full((1, 2), math.nan),
            np.ones((1, 2)),
        )
        for _ in range(10)
    )
    data = Series(Data(measures, trials), tuple("abcdefghij"))
    wanted = [Wanted(parameter("demand.back.serve"))]
    found = track(two_layers(0.02, 0.04), data, wanted, Following(learning=7, drift=0.005))
    assert not found.exact
    assert found.values[-1, 0] == pytest.approx(0.05, rel=0.05)
    assert found.low[-1, 0] < found.values[-1, 0] < found.high[-1, 0]


def test_overload_that_was_not_there_is_an_alarm() -> None:
    """Arrivals beyond what the tracked demand allows: the model has no steady state, and the filter goes on."""
    model = two_layers()
    opened = replace(
        model,
        tasks=(
            *(
                replace(t, entries=(replace(t.entries[0], arrivals=Exponential(1.0)),))
                for t in model.tasks
                if t.name == "back"
            ),
        ),
    )
    measures = ("tasks.back.utilization",)
    random = np.random.default_rng(8)
    trials = []
    for index in range(12):
        rate = 25.0 if index == 9 else 8.0 + index % 2
        busy = min(0.05 * rate, 0.99) * (1 + 0.02 * random.standard_normal((1, 1)))
        setting = ((parameter("arrivals"), rate),)
        trials.append(Trial(setting, busy, np.full((1, 1), math.nan), np.ones((1, 1))))
    data = Series(Data(measures, tuple(trials)), tuple(map(str, range(12))))
    found = track(
        opened,
        data,
        [Wanted(parameter("demand.back.serve"))],
        Following(learning=8, drift=0.01, correct=False),
    )
    assert [(a.period, a.verdict) for a in found.alarms] == [(9, "overload")]
    assert math.isnan(found.size[9])
    assert found.values[-1, 0] == pytest.approx(0.05, rel=0.03)


def test_states_are_logarithms_and_odds() -> None:
    """There and back, derivatives as differences have them, and bounds that hold."""
    parameters = [parameter("demand.web.serve"), parameter("probability.web.serve:hit")]
    states = States([replace(parameters[0], high=0.5), parameters[1]])
    values = np.array([0.02, 0.9])
    state = states.of(values)
    np.testing.assert_allclose(state, [math.log(0.02), math.log(9)])
    np.testing.assert_allclose(states.values(state), values)
    step = 1e-6
    differences = (states.values(state + step) - states.values(state - step)) / (2 * step)
    np.testing.assert_allclose(states.slopes(state), differences, rtol=1e-6)
    np.testing.assert_allclose(states.values(states.clipped(state + 1000)), [0.5, 1.0])


STEADY = series(drifting(walk(24, 0.0, np.random.default_rng(9))), np.random.default_rng(9))


def cut(count: int) -> Series:
    """Return the first periods of a series."""
    return Series(Data(MEASURES, STEADY.data.trials[:count]), STEADY.names[:count])


@pytest.mark.parametrize(
    ("data", "wanted", "options", "message"),
    [
        pytest.param(STEADY, [Wanted(parameter("pool.web"))], {}, "'pool.web' is a whole number", id="whole"),
        pytest.param(
            STEADY,
            [Wanted(parameter(PATHS[0]), expert=Expert(1, 2, 3))],
            {},
            "an expert's interval",
            id="expert",
        ),
        pytest.param(cut(21), WANTED, {}, "21 periods are too few", id="few"),
        pytest.param(STEADY, WANTED, {"learning": 4}, "at least 5 periods", id="learn"),
        pytest.param(
            STEADY, [Wanted(parameter("demand.wob.serve"))], {}, "no entry 'wob.serve'", id="unknown"
        ),
        pytest.param(STEADY, [WANTED[0], WANTED[0]], {}, "is to be estimated twice", id="twice"),
    ],
)
def test_what_cannot_be_tracked(
    data: Series, wanted: list[Wanted], options: dict[str, int], message: str
) -> None:
    """One message each."""
    with pytest.raises(UsageError, match=message):
        track(ELSEWHERE, data, wanted, Following(**options))  # type: ignore[arg-type]


def test_what_is_not_there_cannot_be_followed() -> None:
    """A demand of 0 in the periods that are learned from; a figure that is empty in them; an empty period."""
    (settings,) = loads([4])
    means = true_means(three_queues((2.0, 3.0, 1e-9)), [settings], MEASURES[:2] + MEASURES[3:])
    random = np.random.default_rng(1)
    # With a little more throughput than even a demand of 0 allows.
    means[:, -1] *= 1.01
    rows = [means * (1 + 1e-3 * random.standard_normal(means.shape)) for _ in range(24)]
    nothing, ones = np.full_like(means, math.nan), np.ones_like(means)
    measures = MEASURES[:2] + MEASURES[3:]
    names = tuple(map(str, range(24)))
    without = Series(Data(measures, tuple(Trial(settings, r, nothing, ones) for r in rows)), names)
    bounded = [replace(w, start=0.01 if "app" in w.parameter.path else None) for w in WANTED]
    with pytest.raises(UsageError, match=r"demand.app.serve is .* nothing to follow"):
        track(three_queues((2.0, 3.0, 0.01)), without, bounded)
    empty = [replace(t, rows=t.rows.copy()) for t in STEADY.data.trials]
    for trial in empty[:20]:
        trial.rows[:, 0] = math.nan
    late = Series(Data(MEASURES, tuple(replace(t) for t in empty)), STEADY.names)
    with pytest.raises(UsageError, match="is 0 or empty in all periods that are learned from"):
        track(ELSEWHERE, late, WANTED)
    gone = replace(empty[5], rows=np.full_like(empty[5].rows, math.nan))
    with pytest.raises(UsageError, match="nothing was measured in period '6'"):
        track(ELSEWHERE, Series(Data(MEASURES, (*empty[:5], gone, *empty[6:])), STEADY.names), WANTED)
