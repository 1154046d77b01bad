"""The filter follows demands that change, and says when they no longer explain the data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from analyzer.estimation.methods import Observations
from analyzer.estimation.periods import measurements
from analyzer.estimation.samples import ArrivalSamples, Trace, Windows
from analyzer.estimation.tracking import track
from mup.cli.main import main
from mup.errors import UsageError

PERIODS = 60
PER_PERIOD = 40
LENGTH = 10.0


def requests(demand: np.ndarray, seed: int = 1) -> Trace:
    """Return requests of two classes that never overlap, with exponential work of a mean per period (s)."""
    rng = np.random.default_rng(seed)
    count = len(demand) * PER_PERIOD
    kind = np.arange(count) % 2
    mean = np.repeat(demand, PER_PERIOD) * np.where(kind == 0, 1.0, 0.5)
    start = (np.arange(count) + 0.01) * LENGTH / PER_PERIOD
    return Trace(("a", "b"), kind, np.arange(count), start, start + rng.exponential(mean))


def as_samples(data: Trace) -> ArrivalSamples:
    """Return the same requests as samples that see only themselves."""
    seen = np.eye(2, dtype=np.int64)[data.kind]
    return ArrivalSamples(data.classes, data.kind, data.response_time, seen, None, data.start)


STEADY = np.full(PERIODS, 0.01)
JUMP = np.where(np.arange(PERIODS) < 30, 0.01, 0.02)
DRIFT = 0.01 * np.exp(np.cumsum(np.random.default_rng(5).normal(0, 0.03, PERIODS)))


@pytest.mark.parametrize("form", [lambda d: d, as_samples], ids=["requests", "samples"])
@pytest.mark.parametrize("course", [STEADY, DRIFT], ids=["steady", "drift"])
def test_slow_changes_are_followed(form: Callable[[Trace], Observations], course: np.ndarray) -> None:
    """No alarm, and the truth is near, and within the interval most of the time."""
    found = track(form(requests(course)), cores=4, period=LENGTH, drift=0.03)
    truth = np.column_stack([course, course / 2])
    assert found.alarms == ()
    assert np.all(np.abs(found.demand[20:] / truth[20:] - 1) < 0.25)
    inside = (found.low <= truth) & (truth <= found.high)
    assert inside[20:].mean() > 0.85


def test_a_jump_raises_an_alarm_and_is_followed() -> None:
    """Demands double: an alarm within three periods, none before it, and the new demands after it."""
    found = track(requests(JUMP), cores=4, period=LENGTH)
    assert [alarm.test for alarm in found.alarms] == ["step"]
    assert 30 <= found.alarms[0].period <= 33
    assert found.demand[-1] == pytest.approx([0.02, 0.01], rel=0.25)


def test_windows_are_tracked_by_the_utilization_law() -> None:
    """Mixes that differ tell the classes apart; work the throughputs do not show raises an alarm."""
    rng = np.random.default_rng(3)
    throughput = rng.uniform(5, 20, size=(PERIODS, 2))
    busy = throughput @ [0.04, 0.02] * rng.normal(1, 0.05, PERIODS)
    nothing = np.full((PERIODS, 2), np.nan)
    steady = track(Windows(("a", "b"), busy / 4, throughput, nothing), cores=4, period=5)
    assert steady.alarms == ()
    assert steady.demand[-1] == pytest.approx([0.04, 0.02], rel=0.15)
    foreign = busy + np.where(np.arange(PERIODS) < 40, 0, 1.0)
    disturbed = track(Windows(("a", "b"), foreign / 4, throughput, nothing), cores=4, period=5)
    assert disturbed.alarms
    assert disturbed.alarms[0].period >= 40


def test_shared_cores_are_accounted_for() -> None:
    """A sample's response time is measured against its stretch, max(1, seen / cores)."""
    seen = np.tile([[4, 4]], (24, 1))
    data = ArrivalSamples(
        ("a", "b"), np.arange(24) % 2, np.full(24, 0.4), seen, None, np.arange(24, dtype=float)
    )
    found = measurements(data, cores=2, period=2.0)
    assert found[0][0].weight.tolist() == [[4, 0], [0, 4]]
    assert found[0][0].value.tolist() == pytest.approx([0.4, 0.4])


def test_what_cannot_be_tracked() -> None:
    """Samples without moments, and too few periods, are one message."""
    data = as_samples(requests(STEADY))
    timeless = ArrivalSamples(data.classes, data.kind, data.response_time, data.seen)
    with pytest.raises(UsageError, match="no moments"):
        track(timeless, cores=4, period=1.0)
    with pytest.raises(UsageError, match="too few"):
        track(data, cores=4, period=300.0)


@pytest.mark.parametrize(("course", "status"), [(STEADY, 0), (JUMP, 1)], ids=["explained", "alarm"])
def test_the_command_exits_with_the_answer(
    course: np.ndarray, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 and the moment of the alarm if the demands stopped explaining the data; a plot if asked."""
    data, plot = requests(course), tmp_path / "track.svg"
    path = tmp_path / "requests.csv"
    rows = [
        f"{a!r},{b!r},{'ab'[k]}"
        for a, b, k in zip(data.start.tolist(), data.end.tolist(), data.kind, strict=True)
    ]
    path.write_text("\n".join(["arrival,departure,class", *rows]), encoding="utf-8")
    arguments = ["estimate", str(path), "--cores", "4", "--period", str(LENGTH), "--plot", str(plot)]
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert caught.value.code == status
    assert len(document["periods"]) == PERIODS
    assert len(document["alarms"]) == status
    assert plot.read_text(encoding="utf-8").startswith("<svg")
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == status
    assert ("alarm at" in capsys.readouterr().out) == bool(status)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--period", "0"), "--period: must be"),
        (("--period", "1", "--drift", "2"), "--drift: must be"),
        (("--period", "1", "-o", "m.json"), "takes neither"),
        (("--period", "1", "--learning-periods", "2"), "--learning-periods: must be"),
        (("--plot", "p.svg"), "say --period"),
        (("--drift", "0.1"), "say --period"),
    ],
    ids=["period", "drift", "model", "learning", "plot", "drift-alone"],
)
def test_options_that_do_not_go_together(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message, exit code 2, before anything is read."""
    with pytest.raises(SystemExit) as caught:
        main(["estimate", "missing.csv", "--cores", "2", *options])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
