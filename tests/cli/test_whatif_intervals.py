"""Prediction intervals of ``mup whatif``: their parts, and what they do not cover."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import activity, entry, model, run, saved, shop, users

from mup.lqn import Call, Discrepancy, Model, Processor, Replicate, Task, Uncertainty

FAST = ("--precision", "0.1", "--no-difference", "--no-saturation")
PARTS = {"calibration", "simulation", "measurement", "discrepancy", "machine_speed"}


def known() -> Model:
    """The shop, with replicates and a discrepancy of every figure."""
    replicates = tuple(
        Replicate(demands={"A/a/:in": 1 + 0.05 * math.sin(i), "B/b/:w": 1 + 0.01 * math.cos(3 * i)})
        for i in range(8)
    )
    points = dict.fromkeys(("response_time", "p95", "throughput"), ((0.0, 0.03, 0.0), (1.0, 0.06, 0.0)))
    discrepancy = Discrepancy(
        points={**points, "utilization": ((0.0, 0.01, 0.0),)}, source="test", systems=12, points_used=70
    )
    uncertainty = Uncertainty(replicates=replicates, discrepancy=discrepancy)
    calibrated = {"hostname": "elsewhere", "cores": 2, "monitored_speed": 2000.0}
    return replace(shop(), uncertainty=uncertainty, provenance=calibrated)


def document(capsys: pytest.CaptureFixture[str], file: str, *arguments: str) -> dict[str, Any]:
    """Run a what-if of two loads; return its document."""
    code, out, err = run(capsys, "whatif", file, "--clients", "1,8", *FAST, *arguments, "--json")
    assert code == 0, err
    result: dict[str, Any] = json.loads(out)
    return result


def test_every_figure_has_an_interval_and_its_parts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """JSON: mean, bounds and shares of response time, p95, throughput and every utilization; and advice."""
    data = document(capsys, saved(tmp_path, known()))
    for prediction in (data["baseline"]["prediction"], *(s["prediction"] for s in data["scenarios"])):
        assert (prediction["run_seconds"], prediction["run_repeats"]) == (60, 1)
        figures = [prediction[name] for name in ("response_time", "p95", "throughput")]
        figures += prediction["utilization"].values()
        assert set(prediction["utilization"]) == {"A", "B"}
        for figure in figures:
            assert figure["low"] <= figure["mean"] <= figure["high"]
            assert set(figure["parts"]) == PARTS
            assert sum(figure["parts"].values()) == pytest.approx(1)
        assert prediction["missing"] == []
        assert prediction["advice"]
    result = data["scenarios"][1]["result"]["cycle"]["response_time"]
    assert data["scenarios"][1]["prediction"]["response_time"]["mean"] == result["mean"]


@pytest.mark.slow
def test_the_stated_length_of_the_run_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run of 2 s is much less certain than three of 600 s, on a machine that is always as fast."""
    file = saved(tmp_path, replace(known(), provenance={}))
    widths = []
    for options in (("--duration", "2"), ("--duration", "600", "--repeats", "3")):
        time = document(capsys, file, *options)["scenarios"][1]["prediction"]["response_time"]
        widths.append(time["high"] / time["low"])
    assert math.log(widths[0]) > 1.5 * math.log(widths[1])


def test_people_read_intervals_shares_and_advice(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The table has the stated run; below it is what narrows the interval."""
    code, out, _ = run(
        capsys, "whatif", saved(tmp_path, known()), "--clients", "8", *FAST, "--duration", "30"
    )
    assert code == 0
    assert "Where a real run of 30 s would land, 19 times of 20" in out
    assert "to narrow the response time" in out
    assert "not covered:" not in out


def test_a_hand_written_model_says_what_is_not_covered(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The calibration and the error of a hand-written model are unknown."""
    file = saved(tmp_path, shop())
    prediction = document(capsys, file)["scenarios"][0]["prediction"]
    assert prediction["missing"] == ["calibration", "discrepancy", "machine_speed"]
    assert prediction["machine_speed"] is None
    assert set(prediction["response_time"]["parts"]) == {"simulation", "measurement"}
    _, out, _ = run(capsys, "whatif", file, "--clients", "8", *FAST)
    assert "not covered: calibration ('mup model'" in out
    assert "model error ('mup validate'" in out


@pytest.mark.slow
def test_many_scenarios_are_printed_in_short(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A large grid prints one line per scenario, and says where the rest is."""
    _, out, _ = run(capsys, "whatif", saved(tmp_path, shop()), "--clients", "1,2,3,4,5,6,7,8,9", *FAST)
    assert out.count("response ms") == 1 + 10  # a heading, and a line for the baseline and each load
    assert "More figures are in --json and --csv." in out


def test_intervals_can_be_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without them neither the document nor the table mentions real runs."""
    file = saved(tmp_path, known())
    data = document(capsys, file, "--no-interval")
    assert "prediction" not in data["baseline"]
    assert set(data["scenarios"][0]) == {"change", "result"}
    _, out, _ = run(capsys, "whatif", file, "--clients", "8", *FAST, "--no-interval")
    assert "real run" not in out


def test_files_have_the_intervals(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """CSV has the bounds of every figure; the band of the chart is that of real runs."""
    table, picture = tmp_path / "grid.csv", tmp_path / "grid.svg"
    data = document(capsys, saved(tmp_path, known()), "--csv", str(table), "--plot", str(picture))
    with table.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == 3
    time = data["scenarios"][1]["prediction"]["response_time"]
    assert float(rows[2]["response_time_run_low"]) == time["low"]
    assert float(rows[2]["response_time_run_high"]) == time["high"]
    busy = data["scenarios"][1]["prediction"]["utilization"]["A"]
    assert float(rows[2]["utilization task A_run_high"]) == busy["high"]
    assert "bands: real runs of 60 s, 95 %" in picture.read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [(("--duration", "0"), "number of seconds > 0"), (("--repeats", "0"), "repeats")],
)
def test_runs_that_cannot_be_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    """The run to be predicted has a positive length and number."""
    code, out, err = run(capsys, "whatif", saved(tmp_path, shop()), "--clients", "2", *options)
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.slow
def test_another_machine_replaces_the_host(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--host-profile predicts on the cores of a profile; a file that is none is refused by name."""
    from analyzer.host.profile import default_profile, save_profile

    file = saved(tmp_path, known())
    profile = save_profile(default_profile(3), tmp_path / "host.json")
    here, there = document(capsys, file), document(capsys, file, "--host-profile", str(profile))
    cores = [data["baseline"]["processors"] for data in (here, there)]
    assert [found["host"]["cores"] for found in cores] == [1, 3]
    assert there["baseline"]["prediction"]["missing"] == []
    (tmp_path / "wrong.json").write_text("{}")
    code, out, err = run(
        capsys, "whatif", file, "--clients", "2", "--host-profile", str(tmp_path / "wrong.json"), *FAST
    )
    assert (code, out) == (2, "")
    assert "wrong.json" in err


def test_a_response_time_of_0_has_an_interval(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Clients who only send do not wait: there is nothing relative to an error of 0, in words and as data."""
    fire = Call(task="B", entry="/b/", kind="send")
    quiet = model(
        users(fire, clients=4, think=1.0),
        Task(name="B", threads=4, processor="host", entries=(entry("/b/", activity("w", 0.05)),)),
        processors=(Processor(name="host"),),
    )
    file = saved(tmp_path, quiet)
    code, out, err = run(capsys, "whatif", file, "--clients", "8", *FAST)
    assert code == 0, err
    assert "simulation of response_time, p95 (a figure of 0 has no relative error)" in out
    assert "model error ('mup validate' shows it for this system)" in out
    code, out, err = run(capsys, "whatif", file, "--clients", "8", *FAST, "--json")
    assert code == 0, err
    prediction = json.loads(out)["baseline"]["prediction"]
    assert prediction["response_time"] == {"mean": 0.0, "low": 0.0, "high": 0.0, "parts": {}}
    assert "simulation of response_time, p95" in prediction["missing"]
