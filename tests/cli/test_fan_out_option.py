"""``mup whatif --fan-out``: another width of a fan-out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from command_line import run

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Geometric,
    Model,
    Precedence,
    Task,
    save_model,
)

NOTHING = Constant(0.0)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A client that waits for copies of a call of a second each, on average."""
    fan = Precedence(pre=("s",), post=("x", "e"), fork="fan-out", counts=(Geometric(3.0),))
    asks, work = (Call(task="A", entry="/a/"),), (Call(task="B", entry="b"),)
    body = Entry(
        name="/a/",
        start="s",
        activities=(
            Activity(name="s", demand=NOTHING, delay=NOTHING),
            Activity(name="x", demand=NOTHING, delay=NOTHING, calls=work),
            Activity(name="e", demand=NOTHING, delay=NOTHING),
        ),
        precedences=(fan,),
    )
    go = Activity(name="go", demand=NOTHING, delay=NOTHING, calls=asks)
    user = Entry(name="cycle", start="go", activities=(go,))
    served = Activity(name="w", demand=NOTHING, delay=Exponential(1.0))
    model = Model(
        name="m",
        tasks=(
            Task(name="U", role="reference", threads=1, think=Exponential(1.0), entries=(user,)),
            Task(name="A", threads=math.inf, entries=(body,)),
            Task(name="B", threads=math.inf, entries=(Entry(name="b", start="w", activities=(served,)),)),
        ),
    )
    path = tmp_path / "m.json"
    save_model(model, path)
    return str(path)


def test_widths_are_an_axis(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers keep the family, and commas within brackets do not separate values."""
    asked = "A/a/:x=0,1,constant(2),empirical(0,1)"
    code, out, _ = run(capsys, "whatif", file, "--fan-out", asked, "--engine", "analytic", "--json")
    assert code == 0
    scenarios = json.loads(out)["scenarios"]
    changes = [one["change"]["fan-out"]["A/a/:x"] for one in scenarios]
    assert changes == [0, 1, "constant(2)", "empirical(0,1)"]
    means = [one["result"]["cycle"]["response_time"]["mean"] for one in scenarios]
    # Of a geometric number of mean 1 the last of exponential times comes at a mean of log 2.
    assert means == pytest.approx([0.0, math.log(2), 1.5, 0.5], rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("A/a/:x=wide", "--fan-out: must be numbers separated by commas, got 'wide'"),
        ("geometric(3)", "must be NAME=NUMBER"),
        ("A/a/:x=poisson(3)", "got 'poisson(3)'"),
        ("A/a/:w=3", "has no activity 'w'"),
        ("A/a/:e=3", "no fan-out at 'e'"),
        ("A/a/:x=empirical(0,1.5)", "a count is a whole number"),
    ],
)
def test_what_is_no_width_is_refused(
    file: str, capsys: pytest.CaptureFixture[str], asked: str, said: str
) -> None:
    code, _, err = run(capsys, "whatif", file, "--fan-out", asked, "--engine", "analytic")
    assert code == 2
    assert said in err


def test_a_fluid_estimate_is_refused_by_name(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "whatif", file, "--clients", "2", "--engine", "fluid")
    assert code == 2
    assert "no meaning for a fan-out of random width" in err


def test_simulations_take_the_new_width(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--fan-out", "A/a/:x=constant(2)", "--precision", "0.05", "--no-difference", "--no-saturation"]
    code, out, _ = run(capsys, "whatif", file, *asked, "--no-interval", "--json")
    assert code == 0
    (one,) = json.loads(out)["scenarios"]
    assert one["result"]["cycle"]["response_time"]["mean"] == pytest.approx(1.5, rel=0.05)
