"""Arrivals inside a composed system are described correctly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from stations import TIMES, simulated

from analyzer.blackbox.arrivals import identify_arrivals
from mup.cli.main import main
from mup.errors import UsageError


def test_poisson_arrivals_are_recognised() -> None:
    """Rate and squared cv are right, and nothing speaks against exponential times."""
    found = identify_arrivals(np.cumsum(np.random.default_rng(31).exponential(0.04, 800)))
    assert found.rate == pytest.approx(25, rel=0.1)
    assert found.scv_interval[0] < 1 < found.scv_interval[1]
    assert found.poisson


def test_what_a_full_station_lets_through_is_not_poisson() -> None:
    """Behind one server with constant times that is hardly ever idle, arrivals are nearly regular."""
    trace, _ = simulated(np.random.default_rng(32), 48.0, 800, 1, TIMES["constant"])
    found = identify_arrivals(trace.departures)
    assert found.scv_interval[1] < 0.5
    assert not found.poisson


def test_bursts_are_correlated() -> None:
    """Short times that follow short ones are no renewal process."""
    rng = np.random.default_rng(33)
    means = np.repeat(np.where(rng.random(80) < 0.5, 0.01, 0.1), 10)
    found = identify_arrivals(np.cumsum(rng.exponential(means)))
    assert found.correlated
    assert not found.poisson


@pytest.mark.parametrize("times", [[0.0, 1.0], [1.0] * 50], ids=["few", "all-at-once"])
def test_too_little_is_refused(times: list[float]) -> None:
    """Nothing is said about nothing."""
    with pytest.raises(UsageError):
        identify_arrivals(times)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["identify", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().out


def test_a_file_of_times_is_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One time per line is enough."""
    times = tmp_path / "times.csv"
    at = np.cumsum(np.random.default_rng(34).exponential(0.1, 300))
    times.write_text("\n".join(map(str, at.tolist())), encoding="utf-8")
    code, out = run(capsys, "--arrival-times", str(times), "--json")
    assert code == 0
    assert json.loads(out)["count"] == 299
    code, out = run(capsys, "--arrival-times", str(times))
    assert "arrivals/s" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "URL", id="nothing"),
        pytest.param(["http://127.0.0.1:1/", "--arrival-times", "x.csv"], "leave out", id="both"),
        pytest.param(["--arrival-times", "FOLDER"], "which service", id="no-service"),
        pytest.param(["--arrival-times", "FOLDER", "--service", "A"], "no log", id="no-log"),
        pytest.param(["--arrival-times", "/no/such.csv"], "cannot read", id="no-file"),
    ],
)
def test_bad_arrivals_are_one_message(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2."""
    code, out = run(capsys, *(a.replace("FOLDER", str(tmp_path)) for a in arguments), "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert message in f"{error['message']} {error.get('hint', '')}"
