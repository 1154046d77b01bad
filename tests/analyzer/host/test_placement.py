"""A calibrated model on another machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from host_profiles import STICKY, profile

from analyzer.host.placement import on_host
from analyzer.host.profile import default_profile
from mup.errors import ModelError, UsageError
from mup.lqn import Activity, Constant, Entry, Exponential, Model, Processor, Task
from mup.lqn.json_io import model_from_json, model_to_json
from simulator import simulate


def model(speed: object = 800.0) -> Model:
    """Return one service and its clients on a machine with two cores."""
    work = Activity(name="work", demand=Constant(0.01), delay=Constant(0))
    client = Task(
        name="client",
        role="reference",
        threads=1,
        processor="host",
        think=Exponential(0.1),
        entries=(Entry(name="cycle", start="work", activities=(work,)),),
    )
    provenance = {} if speed is None else {"speed": speed}
    return Model(
        name="m", processors=(Processor(name="host", cores=2),), tasks=(client,), provenance=provenance
    )


def test_cores_scheduler_and_speed_are_those_of_the_machine() -> None:
    """The processor gets the machine's cores and migration, and the ratio of the speeds."""
    moved = on_host(model(), profile(cores=4, speed=1000.0))
    host = moved.processor("host")
    assert (host.cores, host.discipline, host.migration) == (4, "cores", STICKY)
    assert host.speed == pytest.approx(1.25)
    assert moved.provenance["host"]["identity"]["hostname"] == "elsewhere"
    assert model_from_json(model_to_json(moved)) == moved


def test_a_faster_machine_is_faster() -> None:
    """On a machine 1.25 times as fast, 10 ms take 8 ms."""
    moved = on_host(model(), profile(speed=1000.0))
    assert simulate(moved, horizon=20.0).cycle.response_time.mean == pytest.approx(0.008)


def test_moving_twice_is_moving_once() -> None:
    """Speeds are relative to calibration, not to the machine before."""
    once = on_host(model(), profile(speed=1000.0))
    twice = on_host(on_host(model(), profile(speed=500.0)), profile(speed=1000.0))
    assert once.processor("host") == twice.processor("host")


@pytest.mark.parametrize("unknown", ["of the model", "of the machine"])
def test_unknown_speed_changes_nothing(unknown: str) -> None:
    """Without one of the speeds the machine is as fast as the processor it replaces."""
    before = model(None if unknown == "of the model" else 800.0)
    before = before.with_processor(replace(before.processor("host"), speed=1.5))
    there = profile() if unknown == "of the model" else default_profile(2)
    assert on_host(before, there).processor("host").speed == 1.5


def test_speed_by_core_is_understood() -> None:
    """A calibrated speed may be given as an object with its mean."""
    assert on_host(model({"mean": 500.0}), profile(speed=1000.0)).processor("host").speed == 2.0


def test_wrong_names_and_values_are_refused() -> None:
    """An unknown processor, a part of one, and a speed that is none are named."""
    with pytest.raises(ModelError, match="no processor 'hots'; did you mean 'host'"):
        on_host(model(), profile(), "hots")
    with pytest.raises(UsageError, match=r"provenance\.speed: must be units per second, got 'fast'"):
        on_host(model("fast"), profile())
    lock = Processor(name="lock", parent="host")
    nested = replace(model(), processors=(*model().processors, lock))
    with pytest.raises(UsageError, match="'lock' is a part of 'host'"):
        on_host(nested, profile(), "lock")
