"""Speed of a model's machine, from its own history or from none, and its current speed."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from analyzer.host.machine_speed import (
    Now,
    age,
    left_uncertain,
    machine_now,
    machine_speed,
    speed_now,
    speed_range,
)
from analyzer.host.measured_machine import measured_processors
from analyzer.host.profile import default_profile
from analyzer.host.speed_variation import PRIOR
from mup.errors import UsageError
from mup.lqn import Activity, Constant, Entry, Model, Processor, Task
from mup.workload.machine import this_machine
from mup.workload.speed_history import append, read_history, record

WORK = Activity(name="w", demand=Constant(0.01), delay=Constant(0.0))


@pytest.fixture(autouse=True)
def own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mup" / "speed-history.jsonl"


def calibrated(**changes: Any) -> Model:
    """A model that was calibrated on this machine."""
    here = this_machine()
    provenance = {"hostname": here.hostname, "cores": here.cores, "monitored_speed": 2000.0, "speed": 1000.0}
    return Model(
        name="m",
        processors=(Processor(name="host", cores=here.cores), Processor(name="A.cpus"), Processor(name="db")),
        tasks=(
            Task(name="A", processor="A.cpus", entries=(Entry(name="/a/", start="w", activities=(WORK,)),)),
        ),
        provenance={**provenance, **changes},
    )


def remember(*speeds: float, hours: float = 1.0) -> None:
    """Put runs into the history, so many hours apart, the last one just now."""
    for number, speed in enumerate(speeds):
        back = 3600 * hours * (len(speeds) - 1 - number)
        now = record("load", str(number), 20.0, monitored=speed)
        # An earlier start of this machine: who knows how long it has been running.
        append(
            msgspec.structs.replace(
                now, time=datetime.fromtimestamp(time.time() - back - 1e7, UTC), boot="", since_boot=0.0
            )
        )


def test_its_own_history_counts() -> None:
    """Runs of this machine narrow what the prior says, and the source says how many."""
    assert machine_speed(calibrated(), seconds=60.0).machine is not None
    remember(*[2000.0 + k % 2 for k in range(20)])
    machine = machine_speed(calibrated(), seconds=60.0).machine
    assert machine is not None
    assert machine.freedom == PRIOR.freedom + 19
    assert machine.sd < 0.07
    assert "varied by 0 % since" in machine.source
    assert machine.processors == ("host", "A.cpus")


def test_another_machines_model_has_the_prior() -> None:
    """What this machine does says nothing about one of another name, or with another profile."""
    remember(*[2000.0] * 20)
    elsewhere = calibrated(hostname="elsewhere")
    moved = calibrated(host=replace(default_profile(3)).to_json())
    for model in (elsewhere, moved):
        machine = machine_speed(model, seconds=60.0).machine
        assert machine is not None
        assert (machine.sd, machine.freedom) == (PRIOR.sd, PRIOR.freedom)
        assert (
            "is not this one, so its history is not here; its spread is taken from runs on a shared virtual"
            in machine.source
        )


@pytest.mark.parametrize(
    "model",
    [
        calibrated(hostname=None),
        calibrated(monitored_speed=None, speed=None),
        replace(calibrated(), processors=(Processor(name="A.cpus"),)),
        replace(calibrated(), provenance={}),
    ],
    ids=["no-name", "no-speed", "no-host", "hand-written"],
)
def test_a_model_of_no_known_machine_has_none(model: Model) -> None:
    """Not covered is an answer."""
    assert machine_speed(model, seconds=60.0).machine is None


def test_a_broken_history_is_said(own_history: Path) -> None:
    """The note has file and line; what is left counts."""
    remember(2000.0, 2100.0)
    with own_history.open("a") as text:
        text.write("oops\n")
    known = machine_speed(calibrated(), seconds=60.0)
    assert known.machine is not None
    assert f"{own_history}, line 3: not a record of the machine's speed" in known.notes[0]


def test_a_run_at_once_is_another_lag() -> None:
    """Minutes after the exploration the speed is nearer to it than any day later, where a history says so."""
    remember(*[2000.0] * 6, hours=0.05)
    model = calibrated()
    soon, later = (
        machine_speed(model, seconds=60.0, lag=300).machine,
        machine_speed(model, seconds=60.0).machine,
    )
    assert soon is not None
    assert later is not None
    assert soon.sd < later.sd


def test_an_exploration_has_an_age() -> None:
    """By the date it was begun; a date to come, or none, is no age."""
    then = datetime.fromtimestamp(time.time() - 500, UTC).strftime("%Y-%m-%dT%H:%M:%S%z")
    assert age(calibrated(created=then)) == pytest.approx(500, abs=30)
    assert age(calibrated(created="2999-01-01T00:00:00+0000")) is None
    assert age(calibrated()) is None


def test_a_measured_speed_is_not_known_exactly() -> None:
    """What a corrected prediction allows for is less than what the raw one does."""
    model = calibrated()
    monitored, probed = (left_uncertain(model, monitored=m) for m in (True, False))
    raw = machine_speed(model, seconds=60.0).machine
    assert monitored is not None
    assert probed is not None
    assert raw is not None
    assert 0 < monitored.sd < probed.sd < raw.sd
    assert left_uncertain(replace(model, provenance={}), monitored=True) is None


def test_a_range_has_its_middle() -> None:
    """Half of the range lies on either side, as factors; a single factor has no range."""
    middle, machine = speed_range(calibrated(), 0.5, 2.0)
    assert middle == pytest.approx(1.0)
    assert machine.factor == pytest.approx(2.0)
    middle, machine = speed_range(calibrated(), 0.8, 0.8)
    assert (middle, machine.factor) == (pytest.approx(0.8), 1.0)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.1, 0.9), (math.nan, 1.0), (0.5, math.inf), (-1, 1)])
def test_what_is_no_range_is_refused(low: float, high: float) -> None:
    """One message with the option and what was given."""
    with pytest.raises(UsageError, match="--machine-speed: must be a factor or a range"):
        speed_range(calibrated(), low, high)


def test_now_is_what_a_probe_finds() -> None:
    """The machine is probed for real; if others use it, that is said and the record does not count."""
    refused = ""
    now = None
    try:
        now = speed_now(calibrated(), seconds=1.0)
    except UsageError as error:
        refused = error.message
    if now is None:
        assert "a probe says nothing about the machine while" in refused
        assert read_history().records[-1].disturbed
    else:
        assert 0.05 < now.factor < 20
        assert not read_history().records[-1].disturbed
    assert read_history().records[-1].kind == "probe"
    assert (read_history().records[-1].monitored or 0) > 0


def test_now_has_the_uncertainty_of_a_short_lag() -> None:
    """And the error of the probe on top."""
    exact, rough = (
        machine_now(calibrated(), Now(1.1, error, 3.0), seconds=60.0).machine for error in (0.0, 0.2)
    )
    assert exact is not None
    assert rough is not None
    assert exact.sd == pytest.approx(PRIOR.sd)
    assert rough.sd == pytest.approx(math.hypot(PRIOR.sd, 0.2))


def test_now_needs_the_models_machine() -> None:
    """Another machine, or none, cannot be probed from here."""
    with pytest.raises(UsageError, match="not the machine the model predicts for"):
        speed_now(calibrated(hostname="elsewhere"))
    with pytest.raises(UsageError, match="no processor 'host'"):
        speed_now(replace(calibrated(), processors=(Processor(name="A.cpus"),)))
    assert measured_processors(replace(calibrated(), processors=(Processor(name="A.cpus"),))) == ()


def test_a_model_without_a_machine_imports_nothing_that_reads_its_history() -> None:
    """A what-if of a model written by hand begins without it."""
    code = (
        "import sys; from mup.cli.predictions.machine_speeds import assumed_speed; from mup.lqn import Model;"
        "assumed = assumed_speed(Model(name='m'), None, seconds=60);"
        "print(assumed.machine, [m for m in ('msgspec', 'analyzer.host.machine_speed') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "None []\n"
