"""``mup whatif`` predicts for the requested machine speed, and says what it allows for."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import run, saved, shop

from mup.lqn import Model
from mup.workload.machine import this_machine
from mup.workload.speed_history import read_history

FAST = ("--precision", "0.1", "--no-difference", "--no-saturation")


@pytest.fixture(autouse=True)
def own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def calibrated() -> Model:
    """The shop, calibrated on this machine."""
    here = this_machine()
    provenance = {"hostname": here.hostname, "cores": here.cores, "monitored_speed": 2000.0, "speed": 1000.0}
    return replace(shop(), provenance=provenance)


def document(capsys: pytest.CaptureFixture[str], file: str, *arguments: str) -> dict[str, Any]:
    """Run a what-if; return its document."""
    code, out, err = run(
        capsys, "whatif", file, "--clients", "8", *FAST, "--duration", "6000", *arguments, "--json"
    )
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def width(data: dict[str, Any]) -> float:
    """Length of the interval of the throughput, of its logarithm."""
    interval = data["scenarios"][0]["prediction"]["throughput"]
    return math.log(interval["high"] / interval["low"])


def test_without_a_history_the_machine_is_most_of_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A table says from where the speed's spread was taken; JSON has the speeds and where they come from."""
    file = saved(tmp_path, calibrated())
    code, out, _ = run(capsys, "whatif", file, "--clients", "8", *FAST, "--duration", "6000")
    assert code == 0
    assert "machine speed" in out
    text = " ".join(out.split())
    assert (
        "Most of the uncertainty is the machine: it has no history of its own, so its spread is taken from runs"
        in text
    )
    assert "'mup whatif --machine-speed now' predicts for the machine as it is" in text
    data = document(capsys, file)
    speed = data["scenarios"][0]["prediction"]["machine_speed"]
    assert speed["low"] == pytest.approx(1 / speed["high"])
    assert speed["freedom"] == 4
    assert data["scenarios"][0]["prediction"]["response_time"]["parts"]["machine_speed"] > 0.5
    assert "machine_speed" not in data


def test_a_factor_moves_the_prediction_and_narrows_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A slower machine: A takes longer, B on another processor does not; nothing is uncertain about it."""
    file = saved(tmp_path, calibrated())
    plain, slow = document(capsys, file), document(capsys, file, "--machine-speed", "0.5")
    busy = [
        {name: p["utilization"]["mean"] for name, p in data["baseline"]["processors"].items()}
        for data in (plain, slow)
    ]
    assert busy[1]["host"] > 1.6 * busy[0]["host"]
    assert busy[1]["other"] == pytest.approx(busy[0]["other"], rel=0.2)
    assert slow["machine_speed"]["factor"] == 0.5
    assert width(slow) < 0.7 * width(plain)


def test_a_range_is_covered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The interval holds what is predicted for either end; the prediction is for the middle."""
    file = saved(tmp_path, calibrated())
    ends = [document(capsys, file, "--machine-speed", end) for end in ("0.6", "1.2")]
    data = document(capsys, file, "--machine-speed", "0.6..1.2")
    assert data["machine_speed"]["factor"] == pytest.approx(math.sqrt(0.6 * 1.2))
    assert data["machine_speed"]["allowed_for"]["source"] == "asked for 0.6 to 1.2"
    interval = data["scenarios"][0]["prediction"]["throughput"]
    means = [end["scenarios"][0]["prediction"]["throughput"]["mean"] for end in ends]
    assert interval["low"] < means[0] < means[1] < interval["high"]


@pytest.mark.slow
def test_now_probes_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Either predictions are for its speed, or what else runs is named; the probe is in the history."""
    file = saved(tmp_path, calibrated())
    code, out, err = run(capsys, "whatif", file, "--clients", "8", *FAST, "--machine-speed", "now")
    if code == 0:
        assert "times as fast as during the exploration (probed for 3 s)" in " ".join(err.split())
    else:
        assert (code, out) == (2, "")
        assert "a probe says nothing about the machine while" in " ".join(err.split())
    assert [r.kind for r in read_history().records] == ["probe"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--machine-speed", "fast"), "must be 'now', a factor, or a range LOW..HIGH, got 'fast'"),
        (("--machine-speed", "1.1..0.9"), "must be a factor or a range such as 0.9..1.1"),
        (("--machine-speed", "0"), "must be a factor or a range"),
        (("--machine-speed", "0.9", "--speed", "host=2"), "both say how fast 'host' is"),
    ],
)
def test_what_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    """One message with the option; nothing is simulated."""
    code, out, err = run(capsys, "whatif", saved(tmp_path, calibrated()), "--clients", "8", *FAST, *arguments)
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())


def test_a_hand_written_model_has_no_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """There is nothing to be probed, and its part is not covered."""
    file = saved(tmp_path, shop())
    code, _, err = run(capsys, "whatif", file, "--clients", "8", *FAST, "--machine-speed", "now")
    assert code == 2
    assert "this is not the machine the model predicts for" in " ".join(err.split())
    _, out, _ = run(capsys, "whatif", file, "--clients", "8", *FAST)
    assert "machine speed (a model of 'mup model' knows its machine and how fast that was)" in " ".join(
        out.split()
    )


def test_other_hardware_stays_another_option(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--speed of a processor is a scenario, and goes with a machine speed of its own."""
    data = document(capsys, saved(tmp_path, calibrated()), "--speed", "host=2")
    assert data["scenarios"][0]["change"]["speed"] == {"host": 2}
    assert data["scenarios"][0]["prediction"]["response_time"]["parts"]["machine_speed"] > 0
