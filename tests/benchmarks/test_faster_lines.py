"""Lines that are made faster in models and in sources, and how the two are compared."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import faster_lines
import pytest
from case_studies.applications import ROOT
from faster_lines import AS_IS, FASTER, LINES, Line, predicted, report, verdict
from stored import Store

from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Processor, Task
from mup.lqn.files import read_model

NOTHING = Constant(0.0)
EACH = [pytest.param(name, line, id=line.function) for name, lines in LINES.items() for line in lines]
WAIT = Line("services.py", "wait", "", "", "A /a/*")


def waiting() -> Model:
    """Users think for a second and ask A, which waits for 50 ms."""
    ask = Activity(name="ask", demand=NOTHING, delay=NOTHING, calls=(Call(task="A", entry="/a/"),))
    work = Activity(name="work", demand=NOTHING, delay=Exponential(0.05))
    after = Activity(name="after", demand=NOTHING, delay=Constant(0.001))
    arc = Precedence(pre=("work",), post=("after",))
    return Model(
        name="waiting",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            Task(
                name="User",
                role="reference",
                threads=12,
                think=Exponential(1.0),
                entries=(Entry(name="cycle", start="ask", activities=(ask,)),),
            ),
            Task(
                name="A",
                threads=1,
                processor="host",
                entries=(Entry(name="/a/", start="work", activities=(work, after), precedences=(arc,)),),
            ),
        ),
    )


@pytest.mark.parametrize(("application", "line"), EACH)
def test_one_line_of_the_source_is_edited(tmp_path: Path, application: str, line: Line) -> None:
    shutil.copytree(ROOT / "examples" / application, tmp_path / application)
    before = (tmp_path / application / line.file).read_text(encoding="utf-8")
    line.make_faster(tmp_path / application)
    after = (tmp_path / application / line.file).read_text(encoding="utf-8")
    changed = [
        (number, new)
        for number, (old, new) in enumerate(zip(before.splitlines(), after.splitlines(), strict=True), 1)
        if old != new
    ]
    ((number, text),) = changed
    assert f"({1 - FASTER} * self." in text
    functions = [node for node in ast.walk(ast.parse(after)) if isinstance(node, ast.FunctionDef)]
    (function,) = (node for node in functions if node.name == line.function)
    assert function.end_lineno is not None
    assert function.lineno < number <= function.end_lineno


@pytest.mark.parametrize(("application", "line"), EACH)
def test_a_line_is_found_in_the_model_of_its_example(application: str, line: Line) -> None:
    """What waits there waits milliseconds."""
    model = read_model(str(ROOT / "examples" / application / "model.json"))
    assert line.activities(model)


def test_a_faster_line_moves_the_figure_and_chance_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faster_lines, "SIMULATED", 6)
    found = predicted(waiting(), [WAIT])
    assert found["wait"]["activities"] == ["A/a/:work"]
    assert found["wait"]["effect"] + found["wait"]["ci95"] < -0.2 * 0.05
    assert 0 < found["wait"]["chance"] < found[AS_IS]["p95"]
    assert 0 < found[AS_IS]["chance"] < found[AS_IS]["p95"]
    assert found[AS_IS]["window"] == pytest.approx(found[AS_IS]["p95"], rel=0.3)
    assert found["wait"]["window"] < found[AS_IS]["window"]


PREDICTION: dict[str, Any] = {
    AS_IS: {"p95": 0.2, "window": 0.19, "chance": 0.003},
    "wait": {"effect": -0.05, "ci95": 0.003, "window": 0.15, "chance": 0.004},
}


def _measured(path: Path, before: list[float], after: list[float], void: int = -1) -> Store:
    store = Store(path)
    for which, figures in ((AS_IS, before), ("wait", after)):
        for number, p95 in enumerate(figures):
            store.put(
                f"tms, 8, {which}, {number}", {"p95": p95, "void": "stolen" if number == void else None}
            )
    return store


def test_the_interval_is_of_calibration_and_of_so_many_windows(tmp_path: Path) -> None:
    store = _measured(tmp_path / "r.jsonl", [0.2, 0.21, 0.2], [0.16, 0.17, 0.16])
    found = verdict(store, "tms, 8", PREDICTION, "wait")
    assert found is not None
    assert found.effect == pytest.approx(-0.04)
    assert found.windows == 3
    # t of 23 degrees of freedom: 2.07; chance of a pair 5 ms, of three 2.9
    assert found.half_width == pytest.approx((0.003**2 + (2.0687 * 0.005) ** 2 / 3) ** 0.5, rel=1e-3)
    assert found.holds
    assert found.told_apart


def test_a_refuted_prediction_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = _measured(tmp_path / "r.jsonl", [0.2, 0.21, 0.2], [0.2, 0.21, 0.2])
    store.put("tms", {"8": PREDICTION})
    lines = (Line("services.py", "wait", "", "", ""),)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(LINES, "tms", lines)
        report(store, ["tms", "acmeair"])
    told = capsys.readouterr().out
    assert "| tms | 8 | `wait` | 200 | -50 ± 3 | -40 ± 6.7 | 0 | no |" in told.splitlines()
    assert "0 of 1 predictions hold" in told


def test_void_windows_and_single_pairs_say_nothing(tmp_path: Path) -> None:
    store = _measured(tmp_path / "r.jsonl", [0.2, 0.21], [0.17, 0.16], void=1)
    assert verdict(store, "tms, 8", PREDICTION, "wait") is None
