"""``think: null`` of clients means that it was never measured, for every command that reads the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run

from mup.errors import UncalibratedError
from mup.lqn import Exponential, load_model
from mup.lqn.edits import with_think
from mup.lqn.json_io import model_from_json
from simulator.analytic import estimate

ZERO = {"family": "constant", "mean": 0}


def document(think: object) -> dict[str, object]:
    """Ten clients of a station with four threads that takes 50 ms."""
    ask = {
        "name": "ask",
        "demand": ZERO,
        "delay": ZERO,
        "calls": [{"task": "A", "entry": "serve", "count": 1}],
    }
    work = {"name": "work", "demand": {"family": "exponential", "mean": 0.05}, "delay": ZERO}
    clients = {
        "name": "C",
        "role": "reference",
        "threads": 10,
        "think": think,
        "entries": [{"name": "cycle", "start": "ask", "activities": [ask]}],
    }
    station = {
        "name": "A",
        "threads": 4,
        "processor": "P",
        "entries": [{"name": "serve", "start": "work", "activities": [work]}],
    }
    return {
        "schema": "mup-lqn/1",
        "name": "m",
        "processors": [{"name": "P", "cores": 1}],
        "tasks": [clients, station],
    }


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document(None)))
    # Of one client: throughput 1 / (think + 0.05 s), with a think time of 0.2 s.
    (tmp_path / "data.csv").write_text("clients,response_time,throughput\n1,0.05,4\n1,0.0501,4.01\n")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("simulate",),
        ("simulate", "--engine", "analytic"),
        ("simulate", "--engine", "fluid"),
        ("whatif", "--clients", "20"),
        ("autoscale",),
    ],
    ids=" ".join,
)
def test_predictions_refuse_it(
    words: tuple[str, ...], model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not 0: nothing is predicted without it, and the message names the place."""
    code, _, err = run(capsys, words[0], str(model), *words[1:])
    assert code == 2
    assert "tasks['C'].entries['cycle'].activities['think'].delay" in err


def test_a_fit_finds_it(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Starting from a value that is given, for the model has none; a fit of something else refuses it."""
    data = str(model.with_name("data.csv"))
    code, _, err = run(capsys, "fit", str(model), data, "--estimate", "think")
    assert code == 2
    assert "think was never measured" in err
    assert "think=0.01" in err
    code, _, err = run(capsys, "fit", str(model), data, "--estimate", "demand.A.serve")
    assert code == 2
    assert "activities['think'].delay" in err
    output = str(model.with_name("fitted.json"))
    code, out, _ = run(
        capsys, "fit", str(model), data, "--estimate", "think=0.5", "--no-correction", "-o", output, "--json"
    )
    assert code == 0
    assert json.loads(out)["parameters"]["think"]["value"] == pytest.approx(0.2, rel=0.01)
    assert estimate(load_model(output)).cycle.throughput == pytest.approx(
        estimate(model_from_json(document({"family": "exponential", "mean": 0.2}))).cycle.throughput, rel=0.01
    )


def test_it_can_be_learned(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Queue lengths have a column of the clients that think, which is among the names to be used."""
    code, out, _ = run(capsys, "learn", "lqn", str(model), "--columns")
    assert code == 0
    assert "C.cycle:think" in out.split()


def test_a_what_if_sets_it() -> None:
    """Of several unknown think steps no total tells the parts; a total of nothing does."""
    unknown = model_from_json(document(None))
    known = model_from_json(document({"family": "exponential", "mean": 0.2}))
    assert estimate(with_think(unknown, 0.2)).cycle == estimate(with_think(known, 0.2)).cycle
    twice = document(None)
    entry = twice["tasks"][0]["entries"][0]  # type: ignore[index]
    entry["activities"].append({"name": "pause", "kind": "think", "demand": ZERO, "delay": None})
    entry["precedences"] = [{"pre": ["ask"], "post": ["pause"]}]
    with pytest.raises(UncalibratedError, match=r"one of 2 think steps"):
        with_think(model_from_json(twice), 0.2)
    steps = with_think(model_from_json(twice), 0).task("C").entries[0].activities
    assert [s.delay.mean for s in steps if s.kind == "think" and s.delay is not None] == [0.0, 0.0]
    assert with_think(unknown, 0.3).task("C").entries[0].activity("think").delay == Exponential(0.3)
