"""The report of goals and results, the halves apart, from stored predictions and repeats."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from accuracy.command import main
from accuracy.goals import GOALS, data_lines, feature_lines, goal_lines, kind_lines, open_questions
from accuracy.judge import Measured, Row, judge, measured
from accuracy.store import FIRST, Results, write_json
from measured_repeats import repeat

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Processor, Task, save_model

NAMES = [goal.text for goal in GOALS]


def row(error: float, system: str = "w301", half: str = "train", **what: Any) -> Row:
    """Return a point of 10 ms whose corrected error is given."""
    found = Measured(2, 0, 16.0, 0.010, 0.02, 0.020, 0.04, 50.0, 0.03, {}, 0.5, 1000.0, None, 0.1)
    settings: dict[str, Any] = {
        "system": system,
        "half": half,
        "point": "half",
        "change": "8 clients",
        "load": 0.5,
        "predicted": 0.010 * (1 + error),
        "measured": found,
        "raw": error,
        "corrected": error,
        "p95": error,
        "throughput": -error,
        "utilization": 0.01,
        "host": 0.0,
        "ratio": 0.9,
        "inside": abs(error) < 0.08,
        "width": 0.2,
        "width_without": 0.06,
        "inside_p95": True,
        "inside_throughput": True,
    }
    return Row(**{**settings, **what})


def lines(halves: dict[str, list[Row]]) -> dict[str, tuple[str, ...]]:
    """Return the lines of the promises by their text."""
    return {line[0]: line[1:] for line in goal_lines(halves)}


def test_the_halves_are_apart() -> None:
    """Each has its own column, and what is outside of the limits is bold."""
    good = [row(0.01 * (-1) ** k) for k in range(20)]
    good[0] = replace(good[0], inside=False)
    bad = [row(0.12, "w401", "test"), row(0.02, "w402", "test")]
    found = lines({"train": good, "test": bad})
    assert found["systems, points"] == ("", "1, 20", "2, 2")
    assert found["raw: mean inside the printed interval"] == ("90% to 98%", "95.0%", "**50.0%**")
    assert found["corrected: within 10 %"] == ("at least 94%", "100.0%", "**50.0%**")
    assert found["corrected: bias"] == ("within +-1.5%", "+0.0%", "**+7.0%**")
    assert found["corrected: largest"] == ("at most 25.0%", "1.0%", "12.0%")
    assert found["raw: half-width with it, median"] == ("at most 25.0%", "20.0%", "20.0%")


def test_a_p95_that_is_not_known_does_not_count() -> None:
    """Of two points, the one whose p95 was measured to 4 % is compared."""
    vague = replace(row(0.4), measured=replace(row(0.4).measured, p95_width=0.3))
    found = lines({"train": [row(0.01), vague]})
    assert found["p95 within 15 %, where known to 5 %"] == ("at least 90%", "100.0%")
    assert found["points whose p95 is known to 5 %"] == ("", "1")


def test_nothing_known_is_no_figure() -> None:
    """Without prediction intervals there is nothing to be inside of."""
    unknown = [replace(row(0.01), inside=None, width=None, width_without=None)]
    found = lines({"train": unknown})
    assert found["raw: mean inside the printed interval"][1] == "-"
    assert found["raw: half-width with it, largest"][1] == "-"


def test_errors_by_feature_and_by_point() -> None:
    """w301 has filled caches, w302 cold ones; each half has a line of its own."""
    halves = {"train": [row(0.02), row(0.2, "w302")], "test": [row(0.03, "w403", "test")]}
    features = {(line[0], line[1]): line[2:] for line in feature_lines(halves)}
    assert features["filled cache", "development"][:4] == ("1", "100%", "100%", "2.0%")
    assert features["cold cache", "development"][:4] == ("1", "0%", "0%", "20.0%")
    assert features["filled cache", "held out"][0] == "1"
    kinds = {(line[0], line[1]): line[2:] for line in kind_lines(halves)}
    assert kinds["half", "development"][:2] == ("2", "50%")


def test_more_data_is_compared_with_as_much_as_explored() -> None:
    """It is in no other table; its error is that of a model that knows nothing of it."""
    more = row(
        -0.4, point="data-2", change="8 clients, 2 times the data", covered=False,
        measured=replace(row(0).measured, response=0.015),
    )  # fmt: skip
    assert data_lines([row(0.01), more]) == [
        ("w301", "development", "8 clients, 2 times the data", "15.00", "+50.0%", "-40.0%")
    ]


def test_what_an_exact_model_would_reach() -> None:
    """Of errors with a standard deviation of 5 %, 95 % are below 10 %, 68 % below 5 %, half below 3.4 %."""
    rows = [row(0.05, noise=0.05), row(-0.10, noise=0.05), row(0.3)]
    found = lines({"train": rows, "test": [row(0.02)]})
    assert found["an exact model: within 10 %"] == ("", "95.4%", "-")
    assert found["an exact model: within 5 %"] == ("", "68.3%", "-")
    assert found["an exact model: median"] == ("", "3.4%", "-")
    sizes = found["errors in standard deviations of those of an exact model, root mean square"]
    assert sizes == ("", "1.58", "-")


def test_misses_are_listed() -> None:
    """A point outside of its interval, and one that is far off when corrected, want an explanation."""
    found = open_questions([row(0.01), row(0.09), row(-0.2, inside_p95=False)])
    assert found == [
        "- w301 half (8 clients): mean outside; machine at 0.90, load 0.50",
        "- w301 half (8 clients): mean outside, p95 outside, corrected -20.0%; machine at 0.90, load 0.50",
    ]


def interval(low: float, high: float, **parts: float) -> dict[str, Any]:
    """Return an interval as predictions store it."""
    return {"mean": (low + high) / 2, "low": low, "high": high, "parts": parts}


@pytest.mark.parametrize(("bias", "inside"), [(1.1, True), (1.13, True), (1.16, False)])
def test_what_the_machine_adds_can_be_taken_away(bias: float, inside: bool) -> None:
    """With three quarters of the variance the machine's, the rest alone has half the length, on a log scale."""
    speed = interval(
        0.100 / math.exp(0.2), 0.100 * math.exp(0.2), machine_speed=0.75, calibration=0.125, measurement=0.125
    )
    record: dict[str, Any] = {
        "points": {
            "one": {
                "point": {"name": "one", "clients": 1, "pools": {}, "replicas": {}},
                "response_time": {"mean": 0.1, "p95": 0.2},
                "throughput": {"mean": 5.0},
                "utilization": {"processor host": 0.5, "task A": 0.4},
                "load": 0.4,
                "prediction": {
                    "response_time": speed,
                    "p95": interval(0.05, 0.09),
                    "throughput": interval(4.0, 6.0),
                    "utilization": {},
                },
            }
        },
        "corrected": {},
    }
    found = measured([repeat("one", k, [0.1] * 50) for k in range(2)])
    assert found is not None
    seen = judge("w301", "train", "one", "1 client", record, found)
    assert seen.width == pytest.approx(math.sinh(0.2))
    assert seen.width_without == pytest.approx(math.sinh(0.1))
    assert seen.width_model == pytest.approx(math.sinh(0.1 / math.sqrt(2)))
    assert (seen.inside, seen.inside_p95, seen.inside_throughput) == (True, False, True)
    assert seen.covered
    # The speed was 30 % slower: known to 5 % (probes) of a spread of 10 %, a quarter of the machine's part stays.
    slow = measured([repeat("one", k, [0.13] * 50) for k in range(2)])
    assert slow is not None
    point = record["points"]["one"]
    point["prediction"]["machine_speed"] = {"sd": 0.1}
    record["corrected"] = {"one": {**point, "response_time": {"mean": 0.13 / bias, "p95": 0.2}}}
    seen = judge("w301", "train", "one", "1 client", record, slow)
    assert (seen.inside, seen.inside_corrected) == (False, inside)


def model() -> Model:
    """Return clients that think 0.1 s and call A, 20 ms of a core."""

    def one(name: str, **what: Any) -> Entry:
        return Entry(name=name, start="a", activities=(Activity(name="a", **what),))

    users = one("User", demand=Constant(0.0), delay=Constant(0.0), calls=(Call(task="A", entry="/main/"),))
    work = one("/main/", demand=Exponential(0.02), delay=Constant(0.0), replies=True)
    return Model(
        name="m",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(name="User", role="reference", think=Exponential(0.1), entries=(users,)),
            Task(name="A", threads=2, processor="host", entries=(work,)),
        ),
    )


def store(results: Results, name: str, points: list[dict[str, Any]]) -> None:
    """Store a system whose every point was predicted as 0.1 s and measured as 0.1 s."""
    folder = results.system(name)
    write_json(folder.explored, {"seconds": 60.0, "speed": 1000.0})
    write_json(folder.points, points)
    results.model(FIRST, name).parent.mkdir(parents=True, exist_ok=True)
    save_model(model(), results.model(FIRST, name))
    predicted = {
        "response_time": {"mean": 0.1, "p95": 0.1},
        "throughput": {"mean": 5.0},
        "utilization": {"processor host": 0.5, "task A": 0.4},
        "load": 0.4,
        "tasks": {},
        "prediction": {
            "response_time": interval(0.09, 0.11, machine_speed=0.5),
            "p95": interval(0.08, 0.12),
            "throughput": interval(4.5, 5.5),
            "utilization": {"A": interval(0.3, 0.5)},
        },
    }
    now = {"ratio": 1.0, "think": 0.1}
    record = {
        "system": name,
        "speed": 1000.0,
        "precision": 0.05,
        "points": {p["name"]: {"point": p, **predicted} for p in points},
        "corrected": {p["name"]: {**predicted, **now} for p in points},
        "seconds": {"all": 1.0},
    }
    write_json(results.prediction(FIRST, name), record)
    for point in points:
        for number in range(2):
            write_json(folder.repeat(point["name"], number), repeat(point["name"], number, [0.1] * 50))


def test_a_report_of_stored_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It begins with what was promised; of one half alone nothing of the other is shown."""
    results = Results(tmp_path)
    half: dict[str, Any] = {"name": "half", "clients": 8, "pools": {}, "replicas": {}}
    more = {**half, "name": "data-2", "data": 2.0}
    store(results, "w301", [half, more])
    store(results, "w406", [half])
    command = ["report", "--bed", "wide", "--results", str(tmp_path)]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0] == "| figure | promised | development | held out |"
    assert "| systems, points |  | 1, 1 | 1, 1 |" in text
    assert "| raw: mean inside the printed interval | 90% to 98% | **100.0%** | **100.0%** |" in text
    assert "| w301 | development | 8 clients, 2 times the data | 100.00 | +0.0% | +0.0% |" in text
    assert "| two kinds of users | held out | 1 | 100% |" in text
    assert main([*command, "--half", "development"]) == 0
    alone = capsys.readouterr().out
    assert "w406" not in alone
    assert "held out" not in alone
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)[FIRST]
    assert [(p["system"], p["covered"]) for p in document["points"]] == [("w301", True), ("w406", True)]
