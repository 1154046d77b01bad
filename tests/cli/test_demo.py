"""The newcomer's journey, short: real services, real requests, a model, predictions, reality."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from commands import completed
from disturbance import Watch

from mup.lqn import load_model


def mup(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mup", *arguments],
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        env=env,
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, family: Any) -> tuple[Path, dict[str, object]]:
    """Run a short demo once; the tests look at what it left."""
    folder = tmp_path_factory.mktemp("demo")
    short = ("--clients", "1,6", "--duration", "2", "--max-seconds", "4", "--precision", "0.1")
    with Watch() as watch:
        finished = mup("demo", "--json", *short, cwd=folder, env=family.environment)
    assert finished.returncode == 0, finished.stderr
    assert not family.alive()
    return folder / "mup-demo", {**json.loads(finished.stdout), "disturbed": watch.said}


@pytest.mark.services
@pytest.mark.slow
def test_the_document_compares_every_load(demo: tuple[Path, dict[str, object]]) -> None:
    """One scenario per load, errors and intervals consistent with the figures."""
    scenarios = demo[1]["scenarios"]
    assert isinstance(scenarios, list)
    assert [s["change"]["clients"] for s in scenarios] == [1, 6]
    for s in scenarios:
        predicted, measured = (s[side]["response_time"]["mean"] for side in ("predicted", "measured"))
        assert s["error"]["response_time"] == pytest.approx((predicted - measured) / measured)
        between = s["prediction"]["response_time"]
        assert s["inside_interval"] == (between["low"] <= measured <= between["high"])
        assert set(between["parts"]) >= {"calibration", "simulation", "measurement"}
        assert s["corrected"] is None or s["corrected"]["error"].keys() == s["error"].keys()
        assert min(predicted, measured) > 0.01  # B alone waits longer
        # A bound for nonsense, not for accuracy: machines that run tests are busy with other things.
        assert demo[1]["disturbed"] or 0.3 < predicted / measured < 2
        assert set(s["measured"]["utilization"]) == {"A", "B"}


@pytest.mark.services
@pytest.mark.slow
def test_the_folder_holds_model_picture_and_report(demo: tuple[Path, dict[str, object]]) -> None:
    """The model is calibrated where the client went, the drawings are well-formed, the report shows both."""
    folder, _ = demo
    model = load_model(folder / "model.json")
    assert {t.name for t in model.tasks} == {"Reader", "A", "B", "Net", "db"}
    coverage = model.provenance["coverage"]
    assert 0 < sum(c["observed"] for c in coverage.values()) < sum(c["paths"] for c in coverage.values())
    ET.parse(folder / "model.svg")
    assert "prefers-color-scheme" in (folder / "predictions.svg").read_text()
    ET.parse(folder / "predictions.svg")
    report = (folder / "report.html").read_text()
    assert report.count("<svg") == 4
    assert "6 clients" in report


@pytest.mark.services
@pytest.mark.slow
def test_predictions_are_validated(demo: tuple[Path, dict[str, object]], family: Any) -> None:
    """`mup validate` predicts, writes that down, then measures, and exits 1 because nothing is exact."""
    folder, _ = demo
    options = ("--clients", "2", "--pool", "B=3", "--duration", "2", "--warmup", "1", "--repeats", "2")
    files = ("--prediction", "predicted.json", "--report", "validated.html")
    with Watch() as watch:
        finished = mup(
            "validate", *options, "--void-retries", "0", "--tolerance", "0", *files, "--json",
            cwd=folder, env=family.environment,
        )  # fmt: skip
    assert finished.returncode == 1, finished.stderr
    assert not family.alive()
    document = json.loads(finished.stdout)
    (scenario,) = document["scenarios"]
    assert scenario["change"] == {"clients": 2, "pool": {"B": 3}}
    assert scenario["prediction"]["run_seconds"] == 2
    assert scenario["prediction"]["run_repeats"] == 2
    assert scenario["corrected"]["error"].keys() == scenario["error"].keys()
    assert scenario["speed"] > 0
    assert watch.said or scenario["speed"] == pytest.approx(1, abs=0.5)
    assert document["judged_error"] == pytest.approx(abs(scenario["corrected"]["error"]["response_time"]))
    written = json.loads((folder / "predicted.json").read_text())
    assert written["scenarios"][0]["predicted"] == scenario["predicted"]
    assert written["scenarios"][0]["prediction"] == scenario["prediction"]
    # Warm-up and two windows lie between them.
    assert (folder / "validated.html").stat().st_mtime - (folder / "predicted.json").stat().st_mtime > 5


@pytest.mark.services
@pytest.mark.slow
def test_the_folder_is_a_project_to_go_on_with(demo: tuple[Path, dict[str, object]]) -> None:
    """`mup model` recalibrates it from its run; after a change of the code the old log is refused by name."""
    folder, _ = demo
    again = mup("model", str(folder), "-o", str(folder / "again.json"), cwd=folder)
    assert again.returncode == 0, again.stderr
    assert "covered 4 of 5 paths" in again.stdout
    assert re.search(
        r"one user, back to back: ms per cycle: [\d.]+ \+- [\d.]+ in the log, [\d.]+", again.stdout
    )
    services = folder / "services.py"
    original = services.read_text()
    services.write_text(original.replace("burn(self.cpu)", "burn(2 * self.cpu)"))
    stale = mup("model", str(folder), cwd=folder)
    services.write_text(original)
    assert stale.returncode == 2
    assert "changed since the log was written" in stale.stderr
    assert "Traceback" not in stale.stderr


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [("--clients", "0"), ("--clients", "a"), ("--duration", "0")])
def test_impossible_demos_are_refused_before_anything_starts(tmp_path: Path, wrong: tuple[str, str]) -> None:
    """One message, exit code 2, and no folder."""
    with chdir(tmp_path):
        finished = completed("demo", *wrong)
    assert finished.returncode == 2
    assert wrong[0] in finished.stderr
    assert not (tmp_path / "mup-demo").exists()


@pytest.mark.slow
def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    """The demo never writes into a folder it did not make."""
    precious = tmp_path / "mup-demo" / "thesis.txt"
    precious.parent.mkdir()
    precious.write_text("years of work")
    with chdir(tmp_path):
        finished = completed("demo")
    assert finished.returncode == 2
    assert "not made by 'mup demo'" in finished.stderr
    assert list(precious.parent.iterdir()) == [precious]
