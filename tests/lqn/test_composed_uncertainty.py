"""Uncertainty of a composed model is that of its parts together."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mup.cli.main import main
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Front,
    Model,
    Processor,
    Replicate,
    Task,
    Uncertainty,
    load_model,
    save_model,
)
from mup.lqn.composition import certain_tasks, compose
from mup.lqn.uncertainty import apply
from simulator.studies.grids import run_scenarios
from simulator.studies.prediction import Prediction, RealRun
from simulator.studies.whatif import Scenario

ZERO = Constant(0.0)
APP = tuple(1 + 0.01 * float(z) for z in np.random.default_rng(1).normal(size=12))
STATION = tuple(1 + 0.2 * float(z) for z in np.random.default_rng(2).normal(size=20))


def entry(name: str, demand: float, delay: float = 0.0, *calls: Call) -> Entry:
    work = Activity(name="work", demand=Exponential(demand), delay=Constant(delay), calls=calls)
    return Entry(name=name, start="work", activities=(work,))


def shop(*factors: float) -> Model:
    """Clients call A, A calls B twice; both demands are known as well as the factors say."""
    go = Activity(name="go", demand=ZERO, delay=ZERO, calls=(Call(task="A", entry="/a/"),))
    calls = (Call(task="B", entry="/b/"), Call(task="B", entry="/c/"))
    replicates = tuple(
        Replicate(demands={"A/a/:work": f, "B/b/:work": 2 * f}, delays={"A/a/:work": f}, fronts={"B": 3 * f})
        for f in factors
    )
    return Model(
        name="shop",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(
                name="users",
                role="reference",
                threads=4,
                think=Exponential(0.1),
                entries=(Entry(name="scenario", start="go", activities=(go,)),),
            ),
            Task(name="A", threads=20, processor="host", entries=(entry("/a/", 0.01, 0.05, *calls),)),
            Task(
                name="B",
                threads=4,
                processor="host",
                front=Front(request=Constant(0.001), reply=ZERO),
                entries=(entry("/b/", 0.005), entry("/c/", 0.001)),
            ),
        ),
        uncertainty=Uncertainty(replicates=replicates) if replicates else None,
    )


def station(*factors: float, name: str = "legacy") -> Model:
    """One server of 20 ms, known as well as the factors say, and the clients it was measured with."""
    send = Activity(
        name="send", demand=ZERO, delay=Constant(0.001), calls=(Call(task=name, entry="request"),)
    )
    arrive = Entry(name="arrive", start="send", activities=(send,), arrivals=Exponential(0.1))
    replicates = tuple(
        Replicate(
            demands={f"{name}.request:work": f}, delays={"clients.arrive:send": 9.0}, fronts={name: f / 2}
        )
        for f in factors
    )
    front = Front(request=Constant(0.001), reply=ZERO)
    return Model(
        name=name,
        tasks=(
            Task(name="clients", role="reference", threads=float("inf"), entries=(arrive,)),
            Task(name=name, threads=1, front=front, entries=(entry("request", 0.02),)),
        ),
        uncertainty=Uncertainty(replicates=replicates) if replicates else None,
    )


def replicates(model: Model) -> tuple[Replicate, ...]:
    assert model.uncertainty is not None
    return model.uncertainty.replicates


def test_replicates_of_both_parts_meet_under_their_new_names() -> None:
    """Each joint replicate has one of the application and one of the station; replaced numbers are gone."""
    joint = replicates(compose(shop(1.1, 0.9), "B", station(1.2, 0.8, 1.3, 0.7), "b.json").model)
    assert [r.demands["A/a/:work"] for r in joint] == [1.1, 0.9, 1.1, 0.9]
    for r in joint:
        assert set(r.demands) == {"A/a/:work", "B/b/:work", "B/c/:work"}
        assert r.demands["B/b/:work"] == r.demands["B/c/:work"]
        assert r.delays == {"A/a/:work": r.demands["A/a/:work"]}
        assert r.fronts == {"B": pytest.approx(r.demands["B/b/:work"] / 2)}
    assert sorted(r.demands["B/b/:work"] for r in joint) == [0.7, 0.8, 1.2, 1.3]


def test_equal_draws_do_not_make_parts_err_together() -> None:
    """Two parts resampled with the same seed are paired by chance; one station in two places errs in both alike."""
    same = tuple(1 + 0.1 * float(z) for z in np.random.default_rng(0).normal(size=40))
    once = compose(shop(*same), "B", station(*same), "b.json").model
    both = replicates(compose(once, "A/a/:work", station(*same), "b.json").model)
    app, replaced, entered = (
        [r.demands[key] for r in both] for key in ("A/a/:work", "B/b/:work", "legacy.request:work")
    )
    assert replaced == entered
    # Of 40 independent pairs, 0.4 is exceeded once in a hundred times.
    assert abs(float(np.corrcoef(app, replaced)[0, 1])) < 0.4


def test_the_rest_of_a_delay_shrinks_where_the_station_works_longer() -> None:
    """The whole delay was measured: in every replicate, the station's work and what remains add up to it."""
    model = compose(shop(1.1, 0.9), "A/a/:work", station(1.2, 0.8), "bank.json").model
    found = []
    for replicate in replicates(model):
        changed = apply(model, replicate)
        rest = changed.task("A").entry("/a/").activity("work").delay
        work = changed.task("legacy").entry("request").activity("work").demand
        assert rest is not None
        assert work is not None
        found.append(rest.mean + work.mean)
    assert found == pytest.approx([0.055, 0.045], rel=1e-5)


def test_nothing_is_left_of_a_delay_shorter_than_the_work() -> None:
    """The rest of a delay is not negative, in no replicate; one that is 0 has no factor."""
    slow = compose(shop(1.1), "A/a/:work", station(3.0), "bank.json").model
    assert [r.delays for r in replicates(slow)] == [{"A/a/:work": 0.0}]
    short = shop(1.1)
    a = short.task("A")
    short = short.with_task(replace(a, entries=(replace(entry("/a/", 0.01, 0.015), start="work"),)))
    assert [r.delays for r in replicates(compose(short, "A/a/:work", station(3.0), "bank.json").model)] == [
        {}
    ]


@pytest.mark.parametrize(
    ("place", "app", "part", "certain"),
    [
        pytest.param("B", (1.1,), (1.2,), (), id="both"),
        pytest.param("B", (1.1,), (), ("B",), id="application-only"),
        pytest.param("B", (), (1.2,), ("A",), id="station-only"),
        pytest.param("A/a/:work", (), (1.2,), ("A", "B"), id="entered"),
        pytest.param("B", (), (), (), id="nobody-knows"),
    ],
)
def test_what_is_taken_as_certain_is_known(
    place: str, app: tuple[float, ...], part: tuple[float, ...], certain: tuple[str, ...]
) -> None:
    """Tasks without replicates in a model that has some are named."""
    model = compose(shop(*app), place, station(*part), "b.json").model
    assert (model.uncertainty is None) == (not app and not part)
    assert certain_tasks(model) == certain


def composed(folder: Path, capsys: pytest.CaptureFixture[str], part: Model) -> tuple[Model, list[str]]:
    """Compose on the command line; return the model as it is read from its file, and the warnings."""
    files = [folder / f"{name}.json" for name in ("shop", "part", "out")]
    save_model(shop(*APP), files[0])
    save_model(part, files[1])
    with pytest.raises(SystemExit) as caught:
        main(["model", str(files[0]), "--with", f"B={files[1]}", "-o", str(files[2]), "--json"])
    assert caught.value.code == 0
    return load_model(files[2]), json.loads(capsys.readouterr().out).get("warnings", [])


def predicted(model: Model) -> Prediction:
    run = RealRun(1e4)
    (outcome,) = run_scenarios(
        [Scenario((), model)], precision=0.05, differences=False, limits=False, run=run
    )
    assert outcome.prediction is not None
    return outcome.prediction


def test_an_uncertain_station_makes_predictions_less_sure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bottleneck known to 20 % widens the interval by far; one of unknown width is said to be left out."""
    sure, warnings = composed(tmp_path, capsys, station())
    assert "the numbers of B" in warnings[0]
    narrow = predicted(sure)
    assert "calibration of B" in map(str, narrow.missing)
    unsure, warnings = composed(tmp_path, capsys, station(*STATION))
    assert warnings == []
    assert len(replicates(unsure)) == len(STATION)
    wide = predicted(unsure)
    assert not any(missing.part == "calibration" for missing in wide.missing)
    assert wide.response_time.mean == narrow.response_time.mean
    assert wide.response_time.half_width > 2 * narrow.response_time.half_width
    assert wide.response_time.parts["calibration"] > 0.8
