"""Measurements that break a law are refused before anything is fitted to them, or a warning says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fitted_models import PATHS, loads, three_queues, true_means
from test_fit_command import run

from mup.lqn import Exponential, Model
from mup.lqn.files import write_model

MEASURED = ("response_time", "throughput")


def thinking(seconds: float | None = 5.0) -> Model:
    """Return three queues whose clients think."""
    return three_queues(think=seconds or 0.0)


def table(path: Path, *, scale: float = 1.0, tenfold: int | None = None, swapped: bool = False) -> Path:
    """Write exact means of two loads, two rows each, with what is wrong in them."""
    lines = ["clients,response_time,throughput"]
    for index, (clients, row) in enumerate(
        zip((2, 6), true_means(thinking(), loads([2, 6]), MEASURED), strict=True)
    ):
        time, rate = row * (scale, 10.0 if index == tenfold else 1.0)
        cells = (rate, time) if swapped else (time, rate)
        lines += [",".join(map(repr, (clients, *map(float, np.array(cells) * e)))) for e in (0.98, 1.02)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A file of three queues, with think time."""
    write_model(thinking(), tmp_path / "model.json")
    return str(tmp_path / "model.json")


def test_right_measurements_raise_no_doubt(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control of all others here."""
    code, out, _ = run(capsys, model, str(table(tmp_path / "d.csv")), "--estimate", PATHS[0], "--json")
    assert (code, json.loads(out)["warnings"]) == (0, [])
    assert max(json.loads(out)["learned_errors"].values()) < 0.05


@pytest.mark.parametrize(
    ("wrong", "line", "remedy"),
    [
        pytest.param({"scale": 1000.0}, "lines 2-3", "divide milliseconds by 1000", id="milliseconds"),
        pytest.param({"tenfold": 1}, "lines 4-5", "check units", id="tenfold-throughput"),
        pytest.param({"swapped": True}, "lines 2-3", "exchanged", id="exchanged"),
    ],
)
@pytest.mark.parametrize("estimate", [PATHS[0], ",".join(PATHS)])
def test_little_s_law_refuses(
    wrong: dict[str, float],
    line: str,
    remedy: str,
    estimate: str,
    model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One message with file, line, columns and what to do; nothing is fitted."""
    data = table(tmp_path / "d.csv", **wrong)  # type: ignore[arg-type]
    code, out, err = run(capsys, model, str(data), "--estimate", estimate)
    assert (code, out) == (2, "")
    assert f"d.csv: {line}, columns 'throughput' and 'response_time'" in err
    assert "Little's law" in err
    assert remedy in err


def test_think_time_that_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model without thinking, measurements with 5 s of it: its length is in the message; fitting it works."""
    write_model(thinking(None), tmp_path / "model.json")
    model = replace(thinking(), name="right")
    rows = true_means(model, loads([1, 2]), MEASURED)
    lines = [f"{n},{t!r},{x!r}" for n, (t, x) in zip((1, 2), rows.tolist(), strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["clients,response_time,throughput", *lines]), encoding="utf-8")
    arguments = [str(tmp_path / "model.json"), str(tmp_path / "d.csv"), "--estimate"]
    code, out, err = run(capsys, *arguments, PATHS[0], "--json")
    assert code == 0  # off by less than a factor of two at one and two clients
    assert any("a think time of 5 s would explain it" in w for w in json.loads(out)["warnings"]), err
    code, out, _ = run(capsys, *arguments, f"{PATHS[0]},think=1", "--json")
    assert (code, json.loads(out)["warnings"]) == (0, [])
    assert json.loads(out)["parameters"]["think"]["value"] == pytest.approx(5.0, rel=1e-3)


@pytest.mark.parametrize(
    ("columns", "cells", "message"),
    [
        pytest.param(
            "tasks.web.utilization", "35", "'tasks.web.utilization': must be a share of 0 to 1", id="percent"
        ),
        pytest.param("throughput", "3", "3 servers", id="more-than-known-work-allows"),
        pytest.param(
            "throughput,entries.web.serve.response_time",
            "0.1,2500",
            "250 requests would be in web.serve at once",
            id="milliseconds-of-an-entry",
        ),
    ],
)
def test_other_laws_refuse(
    columns: str, cells: str, message: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Utilizations are shares; what is not fitted bounds throughput; entries hold no more than the clients."""
    write_model(three_queues((2.0, 1.0, 0.5)), model)
    data = tmp_path / "d.csv"
    data.write_text(f"clients,{columns}\n4,{cells}\n5,{cells}\n", encoding="utf-8")
    code, _, err = run(capsys, model, str(data), "--estimate", PATHS[0])
    assert code == 2
    assert "d.csv: line 2, column" in err
    assert message in err


def test_a_large_learned_error_is_a_warning(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Response times alone break no law; that nothing explains them shows in the size of the residuals."""
    data = tmp_path / "d.csv"
    data.write_text("clients,response_time\n2,9000\n6,14000\n9,12000\n12,13000\n", encoding="utf-8")
    code, out, _ = run(capsys, model, str(data), "--estimate", PATHS[0], "--json")
    content = json.loads(out)
    assert code == 0
    assert content["learned_errors"]["response_time"] > 0.3
    assert any("'response_time' is off by" in w for w in content["warnings"])


def test_arrivals_balance_throughput(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An open system that is said to serve a multiple of what arrives."""
    model = three_queues((0.1, 0.1, 0.1))
    source = model.tasks[0]
    entry = replace(source.entries[0], arrivals=Exponential(1.0))
    arriving = replace(source, threads=float("inf"), entries=(entry,))
    write_model(replace(model, tasks=(arriving, *model.tasks[1:])), tmp_path / "m.json")
    (tmp_path / "d.csv").write_text("arrivals,throughput\n1,60\n2,120\n", encoding="utf-8")
    code, _, err = run(capsys, str(tmp_path / "m.json"), str(tmp_path / "d.csv"), "--estimate", PATHS[0])
    assert code == 2
    assert "line 2, column 'throughput': 60 requests/s leave, but 1 arrive" in err
