"""The case studies' evaluation: its rules on made-up runs, and a short form of it on real services."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from case_studies.command import main
from case_studies.judge import Judged, judge
from case_studies.store import StudyFolder, write_json
from disturbance import Watch

from mup.lqn.files import read_model
from mup.lqn.statistics import Size, statistics

THINK = 7.0


def step(response: float, number: int = 1, *, front: float = 0.4, back: float = 0.2) -> dict[str, Any]:
    """A predicted step of two services."""
    busy = {"front": front, "back": back}
    return {
        "step": number,
        "clients": 2**number,
        "pools": {"front": 2, "back": 1},
        "replicas": {"front": 1, "back": 3},
        "bottleneck": max(busy, key=lambda name: busy[name]),
        "shifted": number > 1,
        "warmup": 7.5,
        "response_time": {"mean": response, "ci95": 0.001},
        "utilization": {name: {"mean": share, "ci95": 0.01} for name, share in busy.items()},
    }


def record(response: float, *, front: float = 0.4, back: float = 0.2, cycles: int = 9) -> dict[str, Any]:
    """What a real run showed."""
    return {
        "created": "2026-01-02T03:04:05+0000",
        "circumstances": {"revision": "abc", "cores": 2},
        "cycles": cycles,
        "response_time": {"mean": response, "ci95": 0.01},
        "think": THINK,
        "utilization": {"front": front, "back": back},
        "host": 0.5,
        "disturbance": {"void": None, "stolen": 0.01, "foreign": 0.02},
    }


def judged(expected: dict[str, Any], seen: dict[str, Any]) -> Judged:
    (found,) = judge([expected], {1: seen})
    return found


def test_errors_with_and_without_think_time() -> None:
    """0.1 s of 1 s is 10 %, and 1.25 % of a cycle with 7 s of think time."""
    found = judged(step(1.1), record(1.0))
    assert found.response == pytest.approx(0.1)
    assert found.cycle == pytest.approx(0.1 / 8)
    assert found.utilization == pytest.approx({"front": 0.0, "back": 0.0})


@pytest.mark.parametrize(
    ("expected", "seen", "missed"),
    [
        (step(0.50), record(0.53), []),
        (step(0.40), record(0.52), ["cycle"]),
        (step(0.40, front=0.9), record(0.52, front=0.9), []),
        (step(2.0, front=0.9), record(1.5, front=0.9), ["cycle", "response"]),
        (step(0.5, front=0.4), record(0.5, front=0.46), ["utilization"]),
        (step(0.5, front=0.50, back=0.45), record(0.5, front=0.46, back=0.49), []),
        (step(0.5, front=0.50, back=0.45), record(0.5, front=0.45, back=0.49), ["bottleneck"]),
    ],
    ids=["fine", "light", "not light", "heavy", "utilization", "tie", "bottleneck"],
)
def test_goals(expected: dict[str, Any], seen: dict[str, Any], missed: list[str]) -> None:
    """1 % of the cycle where nothing is contended, else 5 %; ties are no mistake."""
    assert judged(expected, seen).missed == missed


def test_steps_that_were_not_run_are_not_judged() -> None:
    """Nor are those in which no cycle succeeded."""
    steps = [step(1.0, number) for number in (1, 2, 3)]
    found = judge(steps, {1: record(1.0), 3: record(0.0, cycles=0)})
    assert [j.step["step"] for j in found] == [1]


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """A study of two families, W2 half run."""
    study = StudyFolder(tmp_path / "tms-wait")
    settings = {"explore_seconds": 60.0, "database": "mongod"}
    write_json(study.study, {"application": "tms", "mode": "wait", "settings": settings})
    for family, ran in (("W1", (1, 2)), ("W2", (1,))):
        folder = study.family(family)
        steps = [step(1.0, number) for number in (1, 2)]
        write_json(folder.steps, {"settings": {"seconds": 60.0, "think_scale": 1.0}, "steps": steps})
        for number in ran:
            write_json(folder.measured(number), record(1.0 + 0.1 * number))
    return tmp_path


def test_the_report_has_tables_and_pictures(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row per step, one of the summary per family, pictures like Figs. 26 and 27."""
    out = tmp_path / "out"
    assert main(["report", "--results", str(finished), "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "| tms-wait W1 | 2 of 2 | 2.4% | 8.1% | 16.7% |" in text
    assert "| tms-wait W2 | 1 of 2 |" in text
    assert text.count("2 1x3") == 3
    assert (out / "results.md").read_text() == text
    pictures = sorted(out.glob("*.svg"))
    assert [p.name for p in pictures] == ["tms-wait-W1.svg", "tms-wait-W2.svg"]
    assert all(ET.fromstring(p.read_text()).tag.endswith("svg") for p in pictures)


def test_nothing_measured_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do about it."""
    assert main(["report", "--results", str(tmp_path)]) == 2
    assert "'run' measures one family" in capsys.readouterr().err


def test_other_settings_need_another_folder(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps of different lengths in one table would compare nothing."""
    command = ["run", "tms", "W1", "--explore-seconds", "5", "--results", str(finished)]
    assert main(command) == 2
    assert "begun with explore_seconds 60.0, not 5.0" in capsys.readouterr().err


SHORT = (
    *("run", "acmeair", "W1", "--database", "embedded", "--no-host", "--retries", "0"),
    *("--think-scale", "0.02", "--max-clients", "4", "--explore-seconds", "4"),
    *("--seconds", "2", "--precision", "0.05"),
)


@pytest.mark.services
def test_the_short_form_on_real_services(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One user calibrates a model of the right size; it predicts three loads, the last beyond saturation.

    The same command again does nothing.
    """
    with Watch() as watch:
        assert main([*SHORT, "--results", str(tmp_path)]) == 0
    study = StudyFolder(tmp_path / "acmeair-wait")
    sizes = statistics(read_model(str(study.model)))
    assert sizes.table3 == Size(4, 17, 35, 23, 11, 64, 11)
    assert sizes.correct_arcs == 76
    steps = json.loads(study.family("W1").steps.read_text())["steps"]
    measured = {n: json.loads(study.family("W1").measured(n).read_text()) for n in (1, 2, 3)}
    assert [(s["clients"], s["bottleneck"]) for s in steps] == [(1, "main"), (2, "main"), (4, "main")]
    assert [m["failed"] for m in measured.values()] == [0, 0, 0]
    found = judge(steps, measured)
    assert found[2].bottleneck
    assert sorted(abs(j.cycle) for j in found)[1] < 0.6
    assert found[2].measured["response_time"]["mean"] > found[0].measured["response_time"]["mean"]
    if not watch.said:  # windows of 2 s may fall into a moment in which others had the machine
        assert [j.bottleneck for j in found] == [True, True, True]
        assert max(abs(j.cycle) for j in found) < 0.35
        assert found[2].measured["response_time"]["mean"] > 1.5 * found[0].measured["response_time"]["mean"]
    capsys.readouterr()
    assert main([*SHORT, "--results", str(tmp_path)]) == 0
    assert "measured" not in capsys.readouterr().out.partition("| study")[0]
