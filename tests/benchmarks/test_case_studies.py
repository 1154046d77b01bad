"""The case studies' evaluation: its rules on made-up runs, and a short form of it on real services."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from case_studies.command import main
from case_studies.correction import corrected_step
from case_studies.judge import Judged, judge
from case_studies.store import StudyFolder, write_json
from case_studies.windows import LONGEST_WINDOW, chance, fitting_window, longer_window, shortest_window
from disturbance import Watch

from analyzer.calibration.rundir import load_run
from mup.lqn import Activity, Call, Constant, Entry, Model, Precedence, Processor, Task
from mup.lqn.edits import with_clients
from mup.lqn.files import read_model
from mup.lqn.statistics import Size, statistics
from simulator.figures.result import Figure, ResponseTime
from simulator.studies.rehearsal import Rehearsal, cycle_seconds, rehearse, transient_seconds

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
THINK = 7.0


def task(name: str, *activities: Activity, **more: Any) -> Task:
    """A task of one entry."""
    arcs = tuple(Precedence(pre=(a.name,), post=(b.name,)) for a, b in pairwise(activities))
    entry = Entry(name=name, start=activities[0].name, activities=activities, precedences=arcs)
    return Task(name=name, entries=(entry,), **more)


WORK = Activity(name="work", demand=Constant(0.4), delay=Constant(0.0))
CALIBRATED = Model(
    name="calibrated",
    processors=(Processor(name="host", cores=2),),
    tasks=(
        task(
            "users",
            Activity(name="think", demand=Constant(0.0), delay=Constant(THINK), kind="think"),
            Activity(
                name="ask",
                demand=Constant(0.0),
                delay=Constant(0.0),
                calls=tuple(Call(task=n, entry=n) for n in ("front", "back")),
            ),
            role="reference",
        ),
        task("front", WORK, processor="host"),
        task("back", WORK, processor="host"),
    ),
    provenance={"monitored_speed": 2000.0},
)
"""A user who thinks for 7 s, and then needs twice 0.4 s of a machine."""


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
        "seconds": 60.0,
        "repeats": 8,
        "response_time": {"mean": response, "ci95": 0.001},
        "cycle_time": {"mean": response + THINK, "ci95": 0.001},
        "throughput": {"mean": 0.5, "ci95": 0.001},
        "utilization": {name: {"mean": share, "ci95": 0.01} for name, share in busy.items()},
    }


def record(
    response: float,
    *,
    front: float = 0.4,
    back: float = 0.2,
    cycles: int = 9,
    void: str | None = None,
    runs: int = 1,
) -> dict[str, Any]:
    """What a real run showed."""
    return {
        "created": "2026-01-02T03:04:05+0000",
        "circumstances": {"revision": "abc", "cores": 2},
        "runs": runs,
        "cycles": cycles,
        "failed": 0,
        "response_time": {"mean": response, "ci95": 0.01},
        "throughput": {"mean": 0.4, "ci95": 0.01},
        "think": THINK,
        "utilization": {"front": front, "back": back},
        "host": 0.5,
        "disturbance": {"void": void, "stolen": 0.01, "foreign": 0.02, "speed": 600.0, "monitored": 2400.0},
    }


def judged(expected: dict[str, Any], seen: dict[str, Any]) -> Judged:
    (found,) = judge([expected], {1: seen})
    return found


def test_errors_with_and_without_think_time() -> None:
    """0.1 s of 1 s is 10 %, and 1.25 % of a cycle with 7 s of think time."""
    found = judged(step(1.1), record(1.0))
    assert found.response == pytest.approx(0.1)
    assert found.cycle == pytest.approx(0.1 / 8)
    assert found.throughput == pytest.approx(0.25)
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


@pytest.mark.parametrize(
    ("half_width", "busy", "bottleneck", "missed"),
    [
        (0.05, 0.01, 0.2, ["response"]),
        # Three times as much for one run of eight.
        (0.1, 0.01, 0.2, []),
        (0.1, 0.01, 0.4, ["utilization"]),
        (0.1, 0.07, 0.4, []),
        (0.1, 0.07, 0.9, ["utilization", "bottleneck"]),
    ],
    ids=["response", "chance", "utilization", "its chance", "bottleneck"],
)
def test_chance_excuses_what_it_does_to_a_single_run(
    half_width: float, busy: float, bottleneck: float, missed: list[str]
) -> None:
    """0.25 s too much of 1.2, and a utilization of 0.4 for 0.2; but a wrong bottleneck is none of chance."""
    expected = step(1.45, front=0.6)
    expected["response_time"]["ci95"] = half_width
    expected["utilization"]["back"]["ci95"] = busy
    found = judged(expected, record(1.2, front=0.6, back=bottleneck))
    assert "response" in found.missed
    assert found.missed_beyond_chance == missed


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
        # What families have in common is run once; these have nothing in common.
        steps = [{**step(1.0, number), "warmup": 7.5 if family == "W1" else 8.0} for number in (1, 2)]
        settings = {"seconds": 60.0, "think_scale": 1.0, "max_clients": 512, "precision": 0.01}
        write_json(folder.steps, {"settings": settings, "steps": steps})
        for number in ran:
            write_json(folder.measured(number), record(1.0 + 0.1 * number))
    return tmp_path


def test_the_report_has_tables_and_pictures(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One row per step, one per family of errors and of goals, pictures like Figs. 26 and 27."""
    out = tmp_path / "out"
    assert main(["report", "--results", str(finished), "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "| tms W1, `wait` | 2.4% | 8.1% | 16.7% | 25.0% | 0.000 | - |" in text
    # Run; cycle, of these light, response, utilization, bottleneck; all, without void ones, but for chance;
    # void; failed.
    goals = "| 2 of 2 | 0 of 2 | 0 of 2 | 1 of 2 | 2 of 2 | 2 of 2 | 0 of 2 | 0 of 2 | 0 of 2 | 0 | 0 of 18 |"
    assert f"| tms W1, `wait` {goals}" in text
    assert "| tms W2, `wait` | 1 of 2 |" in text
    assert "## tms, W2 (vertical scaling), mode `wait`" in text
    assert text.count("2 1x3") == 3
    assert text.count("| **front** (new) |") == 1
    assert (out / "results.md").read_text() == f"# The case studies: what was measured\n\n{text}"
    pictures = sorted(out.glob("*.svg"))
    assert [p.name for p in pictures] == ["tms-wait-W1.svg", "tms-wait-W2.svg"]
    assert all(ET.fromstring(p.read_text()).tag.endswith("svg") for p in pictures)
    drawn = pictures[1].read_text()
    assert "tms, mode wait: vertical scaling (W2)" in drawn
    # Lines at 85 % of utilization, and at errors of 5 % either way.
    assert drawn.count("stroke-dasharray") == 3


def test_a_report_can_be_made_of_what_one_published(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figures behind a report are beside it, without those of an earlier calibration."""
    out = tmp_path / "out"
    published = StudyFolder(out / "measured" / "tms-wait")
    write_json(published.family("W3").steps, {"settings": {}, "steps": [step(1.0, 1)]})
    for results in (finished, out / "measured"):
        assert main(["report", "--results", str(results), "-o", str(out)]) == 0
    first, again = capsys.readouterr().out.split("| largest errors")[1:]
    assert first == again
    names = {str(path.relative_to(published.path)) for path in published.path.rglob("*.json")}
    assert names == {
        "study.json",
        *(f"{family}/steps.json" for family in ("W1", "W2")),
        *(f"{run}.json" for run in ("W1/measured/01", "W1/measured/02", "W2/measured/01")),
    }


def test_what_went_wrong_is_in_the_table(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Void runs, cycles that failed, and another bottleneck than the predicted one."""
    folder = StudyFolder(finished / "tms-wait").family("W1")
    write_json(folder.measured(1), record(1.0))
    disturbed = record(1.0, front=0.2, back=0.4, void="stolen", runs=6)
    write_json(folder.measured(2), {**disturbed, "failed": 3})
    assert main(["report", "--results", str(finished)]) == 0
    text = capsys.readouterr().out
    assert "| **front** (new), measured back |" in text
    assert "| 6, void, 3 cycles failed |" in text
    assert "| 1 of 2 | 1 of 1 | 1 of 2 | 1 | 3 of 21 |\n" in text


class FakeRuns:
    """Stands for real runs: each returns the next of some records, and notes which step it was of."""

    def __init__(self, *records: dict[str, Any]) -> None:
        self.records = list(records)
        self.done: list[tuple[int, int]] = []

    def __call__(self, _: Any, step: dict[str, Any], *, think_scale: float, retries: int) -> dict[str, Any]:
        assert think_scale == 1.0
        self.done.append((step["step"], retries))
        return self.records.pop(0)


@pytest.fixture
def start(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeRuns]:
    """Start the command on the finished study; real runs are the records given."""

    def run(family: str, *records: dict[str, Any], options: Sequence[str] = ()) -> FakeRuns:
        runs = FakeRuns(*records)
        monkeypatch.setattr("case_studies.study.measure_step", runs)
        monkeypatch.setattr("case_studies.study.started", lambda *_: nullcontext())
        monkeypatch.setattr("case_studies.study.Study._model", lambda _: CALIBRATED)
        command = ["run", "tms", family, "--explore-seconds", "60", "--results", str(finished), *options]
        assert main(command) == 0
        assert not runs.records
        return runs

    return run


@pytest.mark.parametrize(
    ("monitored", "clients", "pool", "response"),
    [(2000.0, 1, 1, 1.0), (4000.0, 1, 1, 0.4), (1000.0, 1, 1, 1.6), (4000.0, 64, 2, 64 * 0.4 / 2 - THINK)],
    ids=["same speed", "faster", "slower", "full"],
)
def test_what_is_predicted_for_the_speed_in_a_run(
    monitored: float, clients: int, pool: int, response: float
) -> None:
    """Work takes as much less as the machine was faster, with the clients and pools of the step.

    At the same speed it is what was predicted, whatever that was. 64 clients keep both cores busy: two do it.
    """
    seen = record(1.0)
    seen["disturbance"]["monitored"] = monitored
    expected = {**step(1.0), "clients": clients, "pools": {"front": pool, "back": pool}, "seconds": 300.0}
    expected["replicas"] = {"front": 1, "back": 1}
    found = corrected_step(CALIBRATED, {"think_scale": 1.0, "precision": 0.01}, expected, seen)
    assert found is not None
    assert found["speed"] == monitored / 2000
    # A monitor takes 2.5 % of a core.
    assert found["step"]["response_time"]["mean"] == pytest.approx(response, rel=0.05)
    assert found["step"]["clients"] == clients


def test_an_unknown_speed_corrects_nothing() -> None:
    """Of the calibration here."""
    unmeasured = replace(CALIBRATED, provenance={})
    assert corrected_step(unmeasured, {"think_scale": 1.0, "precision": 0.01}, step(1.0), record(1.0)) is None


def test_errors_are_reported_as_predicted_and_as_corrected(
    finished: Path, start: Callable[..., FakeRuns], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A machine that was twice as fast is predicted again, once per run."""
    folder = StudyFolder(finished / "tms-wait").family("W1")
    stored = json.loads(folder.steps.read_text())
    for expected in stored["steps"]:
        expected["replicas"] = {"front": 1, "back": 1}
    write_json(folder.steps, stored)
    for number in (1, 2):
        seen = record(0.45)
        seen["disturbance"]["monitored"] = 4000.0
        write_json(folder.measured(number), seen)
    assert start("W1").done == []
    text = capsys.readouterr().out
    assert "| tms W1, `wait` | 7.4% |" in text
    assert text.count("| 2.00 | -0.") == 2
    goals = next(
        line for line in text.splitlines() if line.startswith("| tms W1, `wait`, corrected | 2 of 2")
    )
    assert "| 2 of 2 | 2 of 2 | 2 of 2 |" in goals
    before = folder.corrected(1).read_text()
    write_json(folder.corrected(1), {**json.loads(before), "speed": 3.0})
    write_json(folder.measured(2), {**seen, "created": "2026-01-02T04:04:05+0000"})
    start("W1")
    assert [json.loads(folder.corrected(n).read_text())["speed"] for n in (1, 2)] == [3.0, 2.0]
    assert main(["report", "--results", str(finished), "-o", str(tmp_path / "out")]) == 0
    drawn = (tmp_path / "out" / "tms-wait-W1.svg").read_text()
    assert "corrected</text>" in drawn
    assert (tmp_path / "out/measured/tms-wait/W1/corrected/02.json").exists()
    # A step of another family that is the same is not predicted once more.
    write_json(
        StudyFolder(finished / "tms-wait").family("W3").steps,
        {**stored, "steps": stored["steps"][:1], "circumstances": {}},
    )
    start("W3")
    third = StudyFolder(finished / "tms-wait").family("W3").corrected(1)
    assert json.loads(third.read_text())["speed"] == 3.0
    # Of W2 no speed is known.
    assert "corrected</text>" not in (tmp_path / "out" / "tms-wait-W2.svg").read_text()


def test_void_steps_are_run_again_by_the_same_command(
    finished: Path, start: Callable[..., FakeRuns], capsys: pytest.CaptureFixture[str]
) -> None:
    """The first void figures stay until a valid run replaces them; what is valid is never run again."""
    file = StudyFolder(finished / "tms-wait").family("W1").measured(2)
    write_json(file, record(3.0, void="foreign", runs=2))
    assert start("W1", record(2.0, void="stolen", runs=2)).done == [(2, 1)]
    assert "1 of 2 steps are void; the same command runs them again" in capsys.readouterr().out
    kept = json.loads(file.read_text())
    assert (kept["response_time"]["mean"], kept["disturbance"]["void"], kept["runs"]) == (3.0, "foreign", 4)
    assert start("W1", record(1.0)).done == [(2, 1)]
    kept = json.loads(file.read_text())
    assert (kept["response_time"]["mean"], kept["disturbance"]["void"], kept["runs"]) == (1.0, None, 5)
    assert start("W1").done == []


def test_void_steps_are_given_up(finished: Path, start: Callable[..., FakeRuns]) -> None:
    """After so many runs their figures stay; there is no run more than that."""
    file = StudyFolder(finished / "tms-wait").family("W1").measured(1)
    write_json(file, record(3.0, void="foreign", runs=3))
    four = ("--void", "4", "--retries", "2")
    assert start("W1", record(2.0, void="foreign"), options=four).done == [(1, 0)]
    assert json.loads(file.read_text())["runs"] == 4
    assert start("W1", options=four).done == []


def test_void_figures_without_cycles_give_way(finished: Path, start: Callable[..., FakeRuns]) -> None:
    """Some figures are better than none."""
    file = StudyFolder(finished / "tms-wait").family("W1").measured(1)
    write_json(file, record(0.0, cycles=0, void="foreign"))
    start("W1", record(2.0, void="stolen"))
    assert json.loads(file.read_text())["response_time"]["mean"] == 2.0


def test_new_steps_go_before_void_ones(finished: Path, start: Callable[..., FakeRuns]) -> None:
    """The second step of W2 was never run."""
    file = StudyFolder(finished / "tms-wait").family("W2").measured(1)
    write_json(file, record(3.0, void="foreign"))
    assert [number for number, _ in start("W2", record(1.0), record(1.0)).done] == [2, 1]


def test_time_decides_about_steps_and_their_repetition(
    finished: Path, start: Callable[..., FakeRuns], capsys: pytest.CaptureFixture[str]
) -> None:
    """A step takes 86.5 s: in 2 min it is run and not repeated; in 1 min it is left to the next start."""
    file = StudyFolder(finished / "tms-wait").family("W1").measured(1)
    write_json(file, record(3.0, void="foreign"))
    assert start("W1", options=("--max-minutes", "1")).done == []
    assert "time is up" in capsys.readouterr().out
    found = start("W1", record(3.0, void="foreign"), options=("--max-minutes", "2", "--retries", "3"))
    assert found.done == [(1, 0)]
    assert start("W1", record(1.0), options=("--max-minutes", "4", "--retries", "3")).done == [(1, 1)]


def test_what_families_have_in_common_is_run_once(
    finished: Path, start: Callable[..., FakeRuns], capsys: pytest.CaptureFixture[str]
) -> None:
    """The first step of W3 is that of W1, the second is predicted otherwise; the table says which is which."""
    study = StudyFolder(finished / "tms-wait")
    folder = study.family("W3")
    stored = json.loads(study.family("W1").steps.read_text())
    write_json(folder.steps, {**stored, "steps": [stored["steps"][0], {**step(1.5, 2), "clients": 4}]})
    assert start("W3", record(1.6)).done == [(2, 1)]
    assert json.loads(folder.measured(1).read_text())["of"] == "W1"
    assert "| 1 for W1 |" in capsys.readouterr().out


def test_void_steps_get_the_valid_run_of_another_family(
    finished: Path, start: Callable[..., FakeRuns]
) -> None:
    """But a void run never replaces another one."""
    study = StudyFolder(finished / "tms-wait")
    stored = json.loads(study.family("W1").steps.read_text())
    folder = study.family("W3")
    write_json(folder.steps, stored)
    write_json(folder.measured(1), record(3.0, void="stolen"))
    write_json(folder.measured(2), record(3.0, void="stolen"))
    write_json(study.family("W1").measured(2), record(4.0, void="foreign"))
    assert start("W3", record(1.2)).done == [(2, 1)]
    seen = [json.loads(folder.measured(n).read_text()) for n in (1, 2)]
    assert [(r["response_time"]["mean"], r.get("of")) for r in seen] == [(1.1, "W1"), (1.2, None)]


def rehearsed(*, response: float, half_width: float, busy: float = 0.7, seconds: float = 10.0) -> Rehearsal:
    """Three repeats of a run with 9 s of think time: a single one is known half as well as their mean."""
    figure = Figure(response, half_width)
    response_time = ResponseTime(response, half_width, figure, figure, figure, figure, sd=0.0)
    return Rehearsal(
        repeats=3,
        warmup=2.0,
        seconds=seconds,
        throughput=Figure(1.0, 0.01),
        response_time=response_time,
        cycle_time=Figure(response + 9.0, half_width),
        utilization={"front": Figure(busy, 0.001)},
        processors={},
        precision=0.01,
        reached=0.01,
    )


@pytest.mark.parametrize(
    ("seen", "share"),
    [
        # Two half-widths, as a part of: 10 % of the response; 1 % of the cycle; 2 % of the cycle.
        (rehearsed(response=9.0, half_width=0.09), 0.18 / 0.9),
        (rehearsed(response=1.0, half_width=0.02, busy=0.3), 0.04 / 0.1),
        (rehearsed(response=1.0, half_width=0.02), 0.04 / 0.2),
        # And of 0.05 of utilization.
        (rehearsed(response=1.0, half_width=0.0001), 0.002 / 0.05),
    ],
    ids=["response", "light cycle", "cycle", "utilization"],
)
def test_what_chance_does_to_one_run(seen: Rehearsal, share: float) -> None:
    """As a part of the errors that are asked for."""
    assert chance(seen) == pytest.approx(share)


def test_windows_are_as_long_as_chance_needs() -> None:
    """A quarter of what is asked for is good enough; half of it needs four times the time, up to a minute."""
    assert longer_window(rehearsed(response=9.0, half_width=0.09)) == 10.0
    assert longer_window(rehearsed(response=9.0, half_width=0.5 * 0.9 / 2)) == 40.0
    assert longer_window(rehearsed(response=9.0, half_width=0.9)) == LONGEST_WINDOW
    assert longer_window(rehearsed(response=9.0, half_width=0.9, seconds=90.0)) == 90.0
    assert longer_window(rehearsed(response=9.0, half_width=0.9), 30.0) == 30.0


@pytest.mark.parametrize(
    ("windows", "longest"),
    [([60.0] * 10, 60.0), ([60.0] * 20, 55.0), ([20.0] * 10 + [60.0] * 15, 50.0), ([60.0] * 90, 10.0)],
    ids=["few", "many", "some long ones", "too many"],
)
def test_a_family_takes_half_an_hour(windows: list[float], longest: float) -> None:
    """27 min of runs, each of 26 s and its window: only the longest windows are cut."""
    steps = [{"warmup": 8.0, "seconds": window, "cycle_time": {"mean": 8.0}} for window in windows]
    assert fitting_window(steps) == longest


@pytest.mark.parametrize(("think", "window"), [(1.0, 10.0), (25.0, 30.0)], ids=["quick", "slow"])
def test_every_user_begins_a_cycle_in_a_window(think: float, window: float) -> None:
    """A fifth longer than a cycle, in whole fives."""
    pause = Activity(name="think", demand=Constant(0.0), delay=Constant(think), kind="think")
    users = Task(
        name="users", role="reference", entries=(Entry(name="cycle", start="think", activities=(pause,)),)
    )
    assert shortest_window(Model(name="pause", tasks=(users,))) == window


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
    *("run", "acmeair", "W1", "--database", "embedded", "--no-host", "--retries", "0", "--void", "1"),
    *("--think-scale", "0.02", "--max-clients", "4", "--explore-seconds", "4"),
    *("--seconds", "2", "--precision", "0.1"),
)


@pytest.mark.slow
@pytest.mark.repeats
@pytest.mark.services
@pytest.mark.usefixtures("short_probes")
def test_the_short_form_on_real_services(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One user calibrates a model of the right size; it predicts three loads, the last beyond saturation.

    The same command again does nothing.
    """
    with Watch() as watch:
        assert main([*SHORT, "--results", str(tmp_path)]) == 0
    # Of the exploration, or of a run, which is void.
    others = "other programs used" in capsys.readouterr().out
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
    if not watch.said and not others:  # with other tests beside it, times of few rounds say little
        assert [j.bottleneck for j in found] == [True, True, True]
        assert max(abs(j.cycle) for j in found) < 0.35
        assert found[2].measured["response_time"]["mean"] > 1.5 * found[0].measured["response_time"]["mean"]
    assert main([*SHORT, "--results", str(tmp_path)]) == 0
    assert "measured" not in capsys.readouterr().out.partition("| largest errors")[0]


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.repeats
def test_an_interrupted_exploration_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    """Ctrl-C ends the study, not only the exploration: the same command begins that anew."""
    command = [sys.executable, "benchmarks/case_studies", *SHORT, "--results", str(tmp_path)]
    command[command.index("--explore-seconds") + 1] = "60"
    study = tmp_path / "acmeair-wait"
    with subprocess.Popen(
        command, cwd=EXAMPLES.parent, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        try:
            until = time.monotonic() + 60
            while not any(study.glob("run.partial/**/*.client.mlog")):
                assert run.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
            time.sleep(10)  # rounds last 3 s; one that was interrupted first would be lost
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130
    assert b"the same command continues" in said
    assert sorted(p.name for p in study.iterdir()) == ["run.partial", "study.json"]
    left = load_run(study / "run.partial").info
    assert left.windows
    assert not left.complete


@pytest.mark.slow
def test_cycles_take_as_long_after_half_of_the_warm_up() -> None:
    """512 travellers at a service that is full: cycles begun when all are there take as long as later ones."""
    model = with_clients(read_model(str(EXAMPLES / "acmeair" / "model.json")), 512)
    settled = transient_seconds(model)
    assert settled > 3 * cycle_seconds(model)
    half, whole = (
        rehearse(model, seconds=20.0, warmup=share * settled, precision=0.02).cycle_time.mean
        for share in (0.5, 1.0)
    )
    assert half == pytest.approx(whole, rel=0.03)
