"""``mup simulate`` and ``mup whatif`` print what they promise, and fail with one message."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sim_models import act, clients, entry, exp, machine_repair, model, ps, service

from mup.cli.main import main
from mup.lqn import save_model

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A small calibrated model on disk."""
    tested = model(
        clients(2, exp(0.5), "A./a/"),
        service("A", entry("/a/", act("w", exp(0.05), calls="B./b/")), threads=2, processor="host"),
        service("B", entry("/b/", act("w", delay=exp(0.05))), threads=1),
        processors=(ps("host", cores=2),),
    )
    path = tmp_path / "model.json"
    save_model(tested, path)
    return str(path)


@pytest.fixture
def mup(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        out, err = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, out, err

    return run


def test_simulate_json_has_the_promised_shape(mup: Run, file: str) -> None:
    """One JSON document on stdout with every figure as mean and half-width."""
    code, out, _ = mup("simulate", file, "--precision", "0.05", "--seed", "3", "--json")
    data: dict[str, Any] = json.loads(out)
    assert code == 0
    assert {"engine", "seed", "simulated_seconds", "events", "wall_seconds", "cycle", "tasks", "entries",
            "processors"} <= set(data)  # fmt: skip
    assert (data["engine"], data["seed"]) == ("compiled", 3)
    assert set(data["cycle"]["response_time"]) == {"mean", "ci95", "p50", "p90", "p95", "p99"}
    assert set(data["cycle"]["response_time"]["p99"]) == {"mean", "ci95"}
    assert data["saturation"]["resource"] == "task A"
    assert set(data["tasks"]["A"]) == {"throughput", "utilization", "busy", "queue"}
    assert data["tasks"]["U"]["utilization"] is None
    assert set(data["entries"]) == {"A/a/", "B/b/"}
    assert data["processors"]["host"]["utilization"]["ci95"] > 0
    response = data["cycle"]["response_time"]
    assert response["ci95"] <= 0.05 * response["mean"]


def test_simulate_prints_tables_with_units(mup: Run, file: str) -> None:
    """The human output has units and intervals, on stdout."""
    code, out, _ = mup("simulate", file, "--horizon", "200", "--details")
    assert code == 0
    for text in (
        "response time ms",
        "throughput 1/s",
        "utilization %",
        "+-",
        "95 %",
        "200 simulated s",
        "B/b/",
    ):
        assert text in out


def test_simulate_prints_what_matters_in_ten_lines(mup: Run, file: str) -> None:
    """Response time, p95, throughput, bottleneck and saturation with intervals and units; no solver internals."""
    code, out, _ = mup("simulate", file, "--horizon", "200")
    assert code == 0
    for text in ("response time", "ms per cycle", "95 % of cycles", "cycles/s", "+-", "bottleneck: task ",
                 "task A saturates first", "2 clients", "--details"):  # fmt: skip
        assert text in out
    assert len(out.splitlines()) <= 13
    for text in ("B/b/", "->", "waiting requests", "activity"):
        assert text not in out


def test_figures_without_interval_have_four_digits_and_no_exponent(mup: Run, file: str) -> None:
    """What an estimate's solver leaves over, such as 6.6e-63 waiting requests, is 0."""
    _, out, _ = mup("simulate", file, "--engine", "analytic", "--details")
    assert not re.search(r"\de[-+]?\d", out)
    assert not re.search(r"\d\.\d{4}", out.split("tasks")[0])


@pytest.mark.slow
def test_whatif_json_is_a_grid_with_its_baseline(mup: Run, file: str) -> None:
    """Scenarios are the cross product of all values, each with what it changes."""
    code, out, _ = mup(
        "whatif", file, "--clients", "1,4", "--pool", "B=1,2", "--think", "0.5", "--cores", "host=2",
        "--precision", "0.05", "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert code == 0
    assert set(data) == {"baseline", "limits", "scenarios"}
    assert [s["change"] for s in data["scenarios"]] == [
        {"clients": n, "think": 0.5, "pool": {"B": b}, "cores": {"host": 2}} for n in (1, 4) for b in (1, 2)
    ]
    four = data["scenarios"][3]["result"]["cycle"]["throughput"]["mean"]
    assert four > 3 * data["scenarios"][0]["result"]["cycle"]["throughput"]["mean"]


@pytest.mark.slow
def test_whatif_prints_the_bottleneck_and_writes_csv(mup: Run, file: str, tmp_path: Path) -> None:
    """One row per scenario with the change against the baseline; the same numbers as CSV."""
    target = tmp_path / "grid.csv"
    code, out, _ = mup("whatif", file, "--clients", "8", "--precision", "0.05", "--csv", str(target))
    assert code == 0
    assert "baseline" in out
    assert "8 clients" in out
    assert "task A saturates first" in out
    with target.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert [row["clients"] for row in rows] == ["", "8"]
    assert float(rows[1]["utilization task B"]) > float(rows[0]["utilization task B"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--clients", "0"], "clients must be a whole number >= 1, got 0"),
        (["--clients", "1,x"], "got 'x'"),
        (["--clients", "2", "--clients", "3"], "given twice"),
        (["--pool", "B=-1"], "pool of 'B' must be a whole number >= 1, got -1"),
        (["--pool", "B=1.5"], "got 1.5"),
        (["--pool", "Bb=2"], "did you mean 'B'?"),
        (["--pool", "U=2"], "stands for clients"),
        (["--pool", "2"], "NAME=NUMBER"),
        (["--replicas", "A=0"], "replicas of 'A'"),
        (["--cores", "hots=2"], "did you mean 'host'?"),
        (["--speed", "host=0"], "factor > 0"),
        (["--think", "-1"], "think time"),
        (["--clients", "2", "--precision", "0"], "precision"),
        ([], "nothing to change"),
    ],
)
def test_bad_whatif_values_end_in_one_message(
    mup: Run, file: str, arguments: list[str], message: str
) -> None:
    """A value that cannot be is named, with a remedy, and the exit code is 2."""
    code, out, err = mup("whatif", file, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_errors_are_json_under_json(mup: Run, file: str) -> None:
    """With --json a failure is a JSON document, too."""
    code, out, _ = mup("simulate", file, "--clients", "0", "--json")
    assert code == 2
    assert "got 0" in json.loads(out)["error"]["message"]
    code, out, _ = mup("simulate", file + ".nope", "--json")
    assert code == 2
    assert "cannot read" in json.loads(out)["error"]["message"]


def test_clients_option_changes_the_scenario(mup: Run, tmp_path: Path) -> None:
    """``simulate --clients`` agrees with the exact machine repair model."""
    path = tmp_path / "m.json"
    save_model(
        model(clients(1, exp(0.5), "A./a/"), service("A", entry("/a/", act("w", exp(0.1))), threads=1)), path
    )
    _, out, _ = mup("simulate", str(path), "--clients", "5", "--precision", "0.02", "--json")
    figure = json.loads(out)["cycle"]["throughput"]
    assert abs(figure["mean"] - machine_repair(5, 1, 0.5, 0.1)[0]) < 2 * figure["ci95"]
