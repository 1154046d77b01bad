"""Uncertainty of a model survives its file, and a replicate changes what it names."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from mup.errors import ModelError
from mup.lqn import (
    Activity,
    Constant,
    Discrepancy,
    Distribution,
    Empirical,
    Entry,
    Erlang,
    Exponential,
    Front,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Model,
    Precedence,
    Processor,
    Replicate,
    Task,
    Uncertainty,
    Weibull,
    load_model,
    model_from_json,
    model_to_json,
    save_model,
)
from mup.lqn.edits import with_pool
from mup.lqn.uncertainty import OneUser, apply

REPLICATES = (
    Replicate(
        demands={"A/epA/:work": 1.1},
        delays={"A/epA/:work": 0.9},
        delay_spreads={"A/epA/:body": 1.2},
        fronts={"A": 1.05},
        probabilities={"A/epA/:work": (0.25, 0.75)},
        counts={"A/epA/:body": 1.3},
    ),
    Replicate(demands={"A/epA/:work": 1.23456789}),
)
DISCREPANCY = Discrepancy(
    points={"response_time": ((0.0, 0.02, 0.0), (0.8, 0.04, -0.02), (1.0, 0.08, 0.0))},
    source="test bed",
    systems=20,
    points_used=120,
)

ONE_USER = OneUser(response_time=0.03, p95=0.05, p95_shape=0.02, p95_seconds=0.011)


def model(count: Distribution | None = None) -> Model:
    """One service: work, then a choice of a plain end and a loop."""
    endpoint = Entry(
        name="/epA/",
        start="work",
        activities=(
            Activity(name="work", demand=Gamma(0.01, 0.5), delay=Exponential(0.02)),
            Activity(name="short", demand=Constant(0.001), delay=Constant(0)),
            Activity(name="before", demand=Constant(0.001), delay=Constant(0)),
            Activity(name="body", demand=Constant(0.002), delay=Constant(0)),
        ),
        precedences=(
            Precedence(pre=("work",), post=("short", "before"), fork="or", probabilities=(0.5, 0.5)),
            Precedence(pre=("before",), post=("body",), fork="loop", counts=(count or Geometric(2),)),
        ),
    )
    front = Front(request=Constant(0.0002), reply=Constant(0.0001))
    return Model(
        name="m",
        processors=(Processor(name="host"),),
        tasks=(
            Task(name="A", processor="host", entries=(endpoint,), front=front),
            Task(name="B", entries=(Entry(name="/x/", start="a", activities=(Activity(name="a"),)),)),
        ),
        uncertainty=Uncertainty(replicates=REPLICATES, discrepancy=DISCREPANCY, batches=6, one_user=ONE_USER),
    )


def test_uncertainty_survives_its_file(tmp_path: Path) -> None:
    """load(save(model)) gives the same replicates and discrepancy, rounded as they were kept."""
    path = tmp_path / "model.json"
    save_model(model(), path)
    assert load_model(path) == model()
    assert model_from_json(json.loads(json.dumps(model_to_json(model())))) == model()
    assert model().uncertainty.replicates[1].demands == {"A/epA/:work": 1.23457}  # type: ignore[union-attr]


def test_a_file_holds_one_line_per_number(tmp_path: Path) -> None:
    """Twenty replicates do not make twenty lines of each number."""
    path = tmp_path / "model.json"
    save_model(model(), path)
    lines = path.read_text().splitlines()
    assert '   "A/epA/:work": [1.1, 1.23457]' in lines
    assert '   "A/epA/:work": [[0.25, 0.75], null]' in lines


def test_a_replicate_changes_means_and_keeps_shapes() -> None:
    """Factors act on demand, delay, front, loop count and probabilities; what is not named is the same object."""
    before = model()
    after = apply(before, REPLICATES[0])
    old, new = before.task("A").entry("/epA/"), after.task("A").entry("/epA/")
    assert new.activity("work").demand == Gamma(0.01 * 1.1, 0.5)
    assert new.activity("work").delay == Exponential(0.02 * 0.9)
    assert after.task("A").front == Front(request=Constant(0.0002 * 1.05), reply=Constant(0.0001 * 1.05))
    assert new.precedences[0].probabilities == (0.25, 0.75)
    assert new.precedences[1].counts == (Geometric(2 * 1.3),)
    assert new.activity("short") is old.activity("short")
    assert after.task("B") is before.task("B")
    assert after.uncertainty is None


@pytest.mark.parametrize(
    "count", [Constant(3), Empirical((0, 1, 1, 4)), Empirical((2,)), Constant(0)], ids=repr
)
@pytest.mark.parametrize("factor", [0.0, 0.83, 1.017, 2.5])
def test_whole_numbers_of_repetitions_stay_whole(count: Distribution, factor: float) -> None:
    """The mean of an empirical count follows the factor although only whole numbers are possible."""
    changed = apply(model(count), Replicate(counts={"A/epA/:body": factor}))
    found = changed.task("A").entry("/epA/").precedences[1].counts[0]
    assert isinstance(found, Empirical)
    assert all(value == int(value) for value in found.values)
    assert found.mean == pytest.approx(count.mean * factor, abs=0.03)


def test_rounded_probabilities_still_sum_to_one() -> None:
    """Six digits of three thirds sum to 0.999999; the changed model has exact ones."""
    third = Replicate(probabilities={"A/epA/:work": (1 / 3, 2 / 3)})
    odds = apply(model(), third).task("A").entry("/epA/").precedences[0].probabilities
    assert odds is not None
    assert math.fsum(odds) == pytest.approx(1, abs=1e-12)


def test_a_replicate_applies_to_an_edited_model() -> None:
    """A what-if keeps the uncertainty, and its replicates change the edited model."""
    edited = with_pool(model(), "A", 4)
    assert edited.uncertainty == model().uncertainty
    assert apply(edited, REPLICATES[0]).task("A").threads == 4


def test_a_replicate_applies_where_names_have_colons() -> None:
    """Exchanges and queries are called after endpoints and queries, which may have colons in their names."""
    activities = {"Net": "exchange_7@A/items:get/", "db": "find:all"}
    before = Model(
        name="m",
        tasks=tuple(
            Task(
                name=task,
                entries=(
                    Entry(
                        name=name,
                        start=name,
                        activities=(Activity(name=name, demand=Exponential(1.0), delay=Constant(2.0)),),
                    ),
                ),
            )
            for task, name in activities.items()
        ),
    )
    keys = [f"{task}.{name}:{name}" for task, name in activities.items()]
    replicate = Replicate(demands=dict.fromkeys(keys, 3.0), delays=dict.fromkeys(keys, 0.5))
    for _, _, activity in apply(before, replicate).walk():
        assert activity.demand == Exponential(3.0)
        assert activity.delay == Constant(1.0)


def test_discrepancy_is_linear_between_its_points_and_constant_outside() -> None:
    """Standard deviation and bias follow the load piece by piece."""
    assert DISCREPANCY.at("response_time", 0.4) == pytest.approx((0.03, -0.01))
    assert DISCREPANCY.at("response_time", 0.8) == (0.04, -0.02)
    assert DISCREPANCY.at("response_time", 1.3) == (0.08, 0.0)
    later = Discrepancy(points={"p95": ((0.5, 0.1, 0.05),)}, systems=2, points_used=3)
    assert later.at("p95", 0.0) == later.at("p95", 0.9) == (0.1, 0.05)
    assert later.at("throughput", 0.5) is None


BAD = [
    pytest.param({}, "uncertainty", "'replicates' is missing", id="empty"),
    pytest.param({"replicates": 1, "x": 1}, "uncertainty", "unknown field 'x'", id="unknown"),
    pytest.param({"replicates": -1}, "uncertainty.replicates", "whole number", id="count"),
    pytest.param({"replicates": 0, "batches": 1}, "uncertainty.batches", "whole number >= 2", id="batches"),
    pytest.param(
        {"replicates": 2, "demands": {"A/epA/:work": [1]}},
        "uncertainty.demands['A/epA/:work']",
        "one per replicate",
        id="length",
    ),
    pytest.param(
        {"replicates": 1, "demands": {"A/epA/:work": [-1]}},
        "uncertainty.demands['A/epA/:work']",
        "factor >= 0",
        id="negative",
    ),
    pytest.param(
        {"replicates": 1, "probabilities": {"A/epA/:work": [[0.3, 0.3]]}},
        "uncertainty.probabilities['A/epA/:work']",
        "sum to 1",
        id="odds",
    ),
    pytest.param(
        {"replicates": 1, "probabilities": {"A/epA/:work": [[0.3, 0.3, 0.4]]}},
        "uncertainty.probabilities['A/epA/:work']",
        "number of branches",
        id="branches",
    ),
    pytest.param(
        {"replicates": 1, "delays": {"A/epA/:gone": [1]}},
        "uncertainty.delays['A/epA/:gone']",
        "nothing of this name",
        id="unknown-activity",
    ),
    pytest.param(
        {"replicates": 0, "discrepancy": {"systems": 1, "points_used": 1, "p95": [[0.5, -1, 0]]}},
        "uncertainty.discrepancy['p95']",
        "sd >= 0",
        id="discrepancy",
    ),
    pytest.param(
        {"replicates": 0, "discrepancy": {"systems": 1, "points_used": 1, "p95": [[0.5, 0, 0], [0.5, 0, 0]]}},
        "uncertainty.discrepancy['p95']",
        "ascend",
        id="loads",
    ),
    pytest.param(
        {"replicates": 0, "one_user": {"p95": -0.1}},
        "uncertainty.one_user.p95",
        "number >= 0",
        id="one-user",
    ),
    pytest.param(
        {"replicates": 0, "one_user": {"p90": 0.1}},
        "uncertainty.one_user",
        "unknown field",
        id="one-user-field",
    ),
    pytest.param([], "uncertainty", "must be an object", id="type"),
]


@pytest.mark.parametrize("factor", [0.8, 1.3])
@pytest.mark.parametrize(
    "time",
    [
        Exponential(0.02),
        Erlang(0.02, 4),
        Gamma(0.02, 0.5),
        Lognormal(0.02, 3.0),
        Hyperexponential((0.1, 0.9), (0.1, 0.1 / 9)),
        Empirical((0.01, 0.02, 0.02, 0.03, 0.05)),
        Weibull(0.02, 1.5),
    ],
    ids=lambda time: time.family,
)
def test_a_replicate_changes_how_much_a_time_varies(time: Distribution, factor: float) -> None:
    """The mean stays, the coefficient of variation is another one; a Weibull time keeps both."""
    changed = apply(
        model().with_task(
            Task(
                name="B",
                entries=(
                    Entry(
                        name="/x/",
                        start="a",
                        activities=(Activity(name="a", demand=time, delay=Constant(0)),),
                    ),
                ),
            )
        ),
        Replicate(demand_spreads={"B/x/:a": factor}),
    )
    demand = changed.task("B").entry("/x/").activity("a").demand
    assert demand is not None
    assert demand.mean == pytest.approx(0.02 if not isinstance(time, Empirical) else 0.026)
    kept = 1.0 if isinstance(time, Weibull) else factor
    assert math.sqrt(demand.scv) == pytest.approx(kept * math.sqrt(time.scv), rel=1e-6)


@pytest.mark.parametrize(("data", "where", "message"), BAD)
def test_what_is_wrong_is_named(data: Any, where: str, message: str) -> None:
    """A broken field is refused with its path, as everywhere in a model file."""
    document = model_to_json(model()) | {"uncertainty": data}
    with pytest.raises(ModelError, match=message) as caught:
        model_from_json(document)
    assert caught.value.where == where
