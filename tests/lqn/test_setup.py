"""Set-ups after sleep: their values, and how they survive files, differences and replicates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from mup.errors import ModelError
from mup.lqn import (
    Activity,
    Constant,
    Entry,
    Exponential,
    Front,
    LoadDependence,
    Model,
    Processor,
    Replicate,
    Setup,
    Task,
    Uncertainty,
    model_from_json,
    model_to_json,
)
from mup.lqn.comparison import compare
from mup.lqn.lqnx import model_to_lqnx
from mup.lqn.uncertainty import apply

SETUP = Setup(
    gaps=(0.0002, 0.002, 0.02),
    worker=(0.0, 0.4, 1.0),
    core=(0.1, 0.1, 0.9),
    by_thread=True,
    demands={"/e/:work": (3e-5, 1e-5), "front": (2e-4, 5e-5)},
    delays={"/e/:work": (0.0, 1e-3)},
)


def service(setup: Setup | None = SETUP, **fields: Any) -> Task:
    work = Activity(name="work", demand=Exponential(0.002), delay=Constant(0.0))
    front = Front(request=Constant(1e-4), reply=Constant(1e-4))
    entry = Entry(name="/e/", start="work", activities=(work,), arrivals=Exponential(0.1))
    plain = Task(name="S", threads=4, processor="host", front=front, setup=setup, entries=(entry,))
    return replace(plain, **fields)


def model(task: Task | None = None, **fields: Any) -> Model:
    host = Processor(name="host", cores=2)
    return Model(name="m", processors=(host,), tasks=(service() if task is None else task,), **fields)


@pytest.mark.parametrize(
    ("gap", "worker", "core"),
    [
        (0.0, 0.0, 0.0),
        (1e-6, 0.0, 0.1),
        (0.0002, 0.0, 0.1),
        (math.sqrt(0.0002 * 0.002), 0.2, 0.1),
        (0.002, 0.4, 0.1),
        (math.sqrt(0.002 * 0.02), 0.7, 0.5),
        (0.02, 1.0, 0.9),
        (math.inf, 1.0, 0.9),
    ],
)
def test_shares_between_the_knots(gap: float, worker: float, core: float) -> None:
    """Nothing where work was waiting; linear in the logarithm of the gap; flat outside."""
    assert SETUP.share(SETUP.worker, gap) == pytest.approx(worker)
    assert SETUP.share(SETUP.core, gap) == pytest.approx(core)


def test_it_survives_a_file() -> None:
    changed = Uncertainty(replicates=(Replicate(setups={"S": (1.25, 0.5)}), Replicate()))
    full = model(uncertainty=changed)
    data = model_to_json(full)
    assert data["tasks"][0]["setup"]["demands"]["front"] == [2e-4, 5e-5]
    assert data["uncertainty"]["setups"] == {"S": [[1.25, 0.5], None]}
    assert model_from_json(data) == full
    plain = model(service(None))
    assert "setup" not in model_to_json(plain)["tasks"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gaps": ()}, "at least one number of seconds > 0"),
        ({"gaps": (0.0, 0.1, 0.2)}, "at least one number of seconds > 0"),
        ({"gaps": (0.1, 0.1, 0.2)}, "ascending"),
        ({"gaps": (0.1, 0.2, math.inf)}, "ascending"),
        ({"worker": (0.0, 0.5)}, "3 shares from 0 to 1"),
        ({"worker": (0.0, 0.5, 0.4)}, "never falling"),
        ({"core": (0.0, 0.5, 1.1)}, "3 shares from 0 to 1"),
        ({"demands": {"/e/:work": (1e-5,)}}, "two numbers of seconds >= 0"),
        ({"demands": {"/e/:work": (-1e-5, 0.0)}}, "two numbers of seconds >= 0"),
        ({"delays": {"/e/:work": (math.inf, 0.0)}}, "two numbers of seconds >= 0"),
    ],
)
def test_what_it_cannot_say(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        replace(SETUP, **change)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (
            service(replace(SETUP, demands={"/e/:wrok": (0.0, 0.0)})),
            r"demands\['/e/:wrok'\]: the task has no",
        ),
        (service(replace(SETUP, delays={"front": (0.0, 0.0)})), r"delays\['front'\]: the task has no"),
        (service(front=None), r"demands\['front'\]: the task has no"),
        (
            service(load_dependence=LoadDependence(rates=(1.0, 2.0), demands={"front": (1e-4, 0.0)})),
            r"demands\['front'\]: a time has either a set-up or load dependence",
        ),
        (
            service(entries=tuple(replace(e, token="acquire") for e in service().entries)),
            "no workers that could sleep",
        ),
    ],
)
def test_what_does_not_fit_its_task(task: Task, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        model(task)


def test_what_does_not_depend_on_sleep_may_depend_on_the_rate() -> None:
    """Each time has one of both, or none."""
    setup = replace(SETUP, demands={"front": (1e-4, 0.0)}, delays={})
    by_rate = LoadDependence(rates=(1.0, 2.0), demands={"/e/:work": (1e-4, 0.0)})
    found = model(service(setup, load_dependence=by_rate))
    assert model_from_json(model_to_json(found)) == found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gaps": 0.1}, r"tasks\['S'\]\.setup\.gaps: must be a list"),
        ({"by_thread": "no"}, r"tasks\['S'\]\.setup\.by_thread: must be true or false"),
        ({"demands": {"/e/:work": 1e-5}}, r"tasks\['S'\]\.setup\.demands: must be an object of pairs"),
        ({"knots": []}, r"tasks\['S'\]\.setup: unknown field 'knots'"),
        ({"worker": [0, "x", 1]}, r"tasks\['S'\]\.setup\.worker: must be 3 shares"),
    ],
)
def test_files_name_what_is_wrong(change: dict[str, Any], words: str) -> None:
    data = model_to_json(model())
    data["tasks"][0]["setup"] |= change
    with pytest.raises(ModelError, match=words):
        model_from_json(data)


def test_differences_name_every_number() -> None:
    other = replace(SETUP, worker=(0.0, 0.5, 1.0), demands={"/e/:work": (3e-5, 2e-5), "front": (2e-4, 5e-5)})
    found = {change.field: change.texts() for change in compare(model(), model(service(other)))}
    assert found == {
        "setup.worker": ("0, 0.4, 1", "0, 0.5, 1"),
        "setup.demands of '/e/:work' (core)": ("1e-05", "2e-05"),
    }
    assert ("setup", ("yes", "no")) in {(c.field, c.texts()) for c in compare(model(), model(service(None)))}


def test_replicates_scale_both_parts_apart() -> None:
    changed = apply(model(), Replicate(setups={"S": (2.0, 0.0)})).task("S").setup
    assert changed is not None
    assert changed.demands == {"/e/:work": (6e-5, 0.0), "front": (4e-4, 0.0)}
    assert changed.delays == {"/e/:work": (0.0, 0.0)}
    assert changed.worker == SETUP.worker


@pytest.mark.parametrize("factors", [(1.0,), (1.0, -1.0), (1.0, math.inf)])
def test_replicates_have_two_factors(factors: tuple[float, ...]) -> None:
    with pytest.raises(ModelError, match="two factors >= 0"):
        Replicate(setups={"S": factors})  # type: ignore[dict-item]


def test_replicates_name_tasks_that_have_a_setup() -> None:
    with pytest.raises(ModelError, match=r"uncertainty\.setups\['S'\]"):
        model(service(None), uncertainty=Uncertainty(replicates=(Replicate(setups={"S": (1.0, 1.0)}),)))


def test_lqnx_says_that_it_is_left_out() -> None:
    plain = service(front=None, setup=replace(SETUP, demands={"/e/:work": (3e-5, 1e-5)}))
    assert any("after sleep" in text for text in model_to_lqnx(model(plain), approximate=True).approximated)
