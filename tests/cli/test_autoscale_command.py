"""``mup autoscale``: its schedule as text, JSON and picture, and its refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command_line import activity, entry, model, run, saved, users

from mup.lqn import Call, Exponential, Model, Task


def shop() -> Model:
    """Users of one service that is half full with two of them."""
    return model(
        users(Call(task="A", entry="/a/"), clients=1, think=0.1),
        Task(name="A", threads=1, entries=(entry("/a/", activity("w", 0.05)),)),
    )


QUICK = ("--max-clients", "4", "--duration", "10", "--precision", "0.03")


def test_the_document_has_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Load, deployment, figures with intervals, and what is done next."""
    code, out, _ = run(capsys, "autoscale", saved(tmp_path, shop()), *QUICK, "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["model"], document["scaling"], document["threshold"]) == ("m", "vertical", 0.85)
    first, last = document["steps"][0], document["steps"][-1]
    assert (first["clients"], first["pools"], first["replicas"]) == (1, {"A": 1}, {"A": 1})
    assert first["action"] == "clients to 2"
    assert first["response_time"]["mean"] == pytest.approx(0.05, rel=0.1)
    assert first["cycle_time"]["mean"] == pytest.approx(0.15, rel=0.1)
    assert set(first["utilization"]["A"]) == {"mean", "ci95"}
    assert (last["action"], last["pools"]["A"] > 1) == ("stop: 4 clients", True)


def test_people_see_a_row_per_step_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --horizontal replicas grow; the picture has a circle per step and panel, and one in its legend."""
    picture = tmp_path / "steps.svg"
    code, out, _ = run(
        capsys, "autoscale", saved(tmp_path, shop()), *QUICK, "--horizontal", "--plot", str(picture)
    )
    assert code == 0
    assert "replicas of A to 2" in out
    assert "1x2" in out
    steps = sum("clients to" in line or "replicas of" in line or "stop:" in line for line in out.splitlines())
    drawn = picture.read_text()
    assert drawn.count("<circle") == 3 * steps + 1
    assert ET.fromstring(drawn).tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--threshold", "1.5"), "threshold must be between 0 and 1"),
        (("--clients", "9", "--max-clients", "8"), "begins with 1 to 8 clients"),
        (("--duration", "0"), "window must be"),
        (("--jobs", "0"), "--jobs"),
        (("--plot", "no/such/folder/x.svg"), "folder does not exist"),
    ],
    ids=["threshold", "clients", "window", "workers", "plot"],
)
def test_wrong_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """Exit 2 and one message."""
    code, out, err = run(capsys, "autoscale", saved(tmp_path, shop()), *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_arrivals_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There are no clients to double."""
    source = shop().task("U")
    cycle = replace(source.entries[0], arrivals=Exponential(1.0))
    changed = shop().with_task(replace(source, threads=float("inf"), think=None, entries=(cycle,)))
    code, out, _ = run(capsys, "autoscale", saved(tmp_path, changed), "--json")
    assert code == 2
    assert "has no clients" in json.loads(out)["error"]["message"]
