"""``mup estimate``: demands of a file, with intervals, and a model to be used elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from observations import observed, samples

from analyzer.estimation.methods import METHODS, estimate
from analyzer.estimation.samples import Trace
from mup.cli.main import main
from mup.errors import UsageError
from mup.lqn import load_model
from simulator.analytic import estimate as analytic_estimate

TRUTH = {"c1": 0.1, "c2": 0.05}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run (V = 2, W = 8, about half loaded) in all three forms of CSV."""
    folder = tmp_path_factory.mktemp("data")
    run = observed(2, 8, 100, samples=400, windows=60)
    seen, trace, windows = run.samples, run.trace, run.windows
    lines = {
        "samples": ["class,response_time,n_c1,n_c2"]
        + [
            f"c{k + 1},{t!r},{n[0]},{n[1]}"
            for k, t, n in zip(seen.kind, seen.response_time.tolist(), seen.seen, strict=True)
        ],
        "requests": ["arrival,departure,class"]
        + [
            f"{a!r},{b!r},c{k + 1}"
            for k, a, b in zip(trace.kind, trace.start.tolist(), trace.end.tolist(), strict=True)
        ],
        "windows": ["utilization,throughput_c1,throughput_c2"]
        + [
            f"{u!r},{x[0]},{x[1]}"
            for u, x in zip(windows.utilization.tolist(), windows.throughput, strict=True)
        ],
    }
    paths = {name: folder / f"{name}.csv" for name in lines}
    for name, path in paths.items():
        path.write_text("\n".join(lines[name]), encoding="utf-8")
    return paths


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command; return its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as caught:
        main(["estimate", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


@pytest.mark.parametrize(("form", "method"), [("samples", "ldps"), ("requests", "bl"), ("windows", "ur")])
def test_auto_takes_what_fits_and_says_why(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], form: str, method: str
) -> None:
    """Demands are right to 20 %, inside the interval, and the choice is explained."""
    code, out, _ = run(capsys, str(files[form]), "--cores", "2", "--pool", "8", "--json")
    found: dict[str, Any] = json.loads(out)
    assert code == 0
    assert found["method"] == method
    assert "known" in found["reason"]
    for name, truth in TRUTH.items():
        demand = found["classes"][name]["demand"]
        assert demand["mean"] == pytest.approx(truth, rel=0.2)
        assert demand["low"] < demand["mean"] < demand["high"]
        assert demand["low"] < truth < demand["high"]


def test_the_same_seed_gives_the_same_interval(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Bootstrap intervals are reproducible, and another seed gives others."""
    arguments = (str(files["samples"]), "--cores", "2", "--json")
    first, again, other = (run(capsys, *arguments, "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert first == again
    assert first != other


@pytest.mark.slow
def test_the_result_is_a_model(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``-o`` writes a task with the measured rates as arrivals: solving it gives back what was observed."""
    model = tmp_path / "station.json"
    code, out, _ = run(
        capsys, str(files["requests"]), "--cores", "2", "--pool", "8", "-o", str(model), "--name", "legacy"
    )
    assert code == 0
    assert "c1" in out
    assert str(model) in out.replace("\n", "")
    loaded = load_model(model)
    assert [task.name for task in loaded.tasks] == ["legacy"]
    assert loaded.task("legacy").threads == 8
    assert loaded.uncertainty is not None
    assert loaded.provenance["estimation"]["method"] == "bl"
    result = analytic_estimate(loaded).to_json()
    observed_rate = json.loads(run(capsys, str(files["requests"]), "--cores", "2", "--json")[1])["classes"][
        "c1"
    ]["rate"]
    assert result["entries"]["legacy.c1"]["throughput"]["mean"] == pytest.approx(observed_rate, rel=1e-6)
    assert 0.3 < result["processors"]["legacy-cores"]["utilization"]["mean"] < 0.7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("samples", "--cores", "0"), "--cores: must be a whole number >= 1", id="no cores"),
        pytest.param(
            ("samples", "--cores", "2", "--pool", "2"), "in process, itself included, with 2", id="pool"
        ),
        pytest.param(
            ("samples", "--cores", "2", "--method", "bl"), "method bl needs arrival and dep", id="method"
        ),
        pytest.param(
            ("samples", "--cores", "2", "--method", "magic"), "no method 'magic'", id="unknown method"
        ),
        pytest.param(("samples", "--cores", "2", "--method", "mlps"), "say --pool N", id="no pool"),
        pytest.param(("samples", "--cores", "2", "--service", "A"), "chooses from event logs", id="service"),
        pytest.param(("samples", "--cores", "2", "--group", "x"), "must be NAME=TEXT", id="group"),
        pytest.param(
            ("windows", "--cores", "2", "--group", "x=c"), "does not fit windows", id="group windows"
        ),
        pytest.param(
            ("requests", "--cores", "2", "--pool", "1"), "left before any of 1 threads", id="one thread"
        ),
        pytest.param(
            ("samples", "--cores", "2", "--resamples", "1"),
            "--resamples: must be a whole number >= 40",
            id="resamples",
        ),
        pytest.param(("missing", "--cores", "2"), "cannot read it: No such file", id="missing"),
        pytest.param(
            ("samples", "--cores", "2", "-o", "/nowhere/m.json"), "folder does not exist", id="output"
        ),
    ],
)
def test_bad_input_is_one_message(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    """What cannot be estimated exits with 2 and says why, as JSON if asked."""
    path = str(files.get(arguments[0], Path(arguments[0])))
    code, out, err = run(capsys, path, *arguments[1:])
    assert code == 2
    assert out == ""
    assert message in err
    code, out, _ = run(capsys, path, *arguments[1:], "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert message in error["message"] + error.get("hint", "")


def test_a_class_without_requests_has_no_demand() -> None:
    """Classes that were only seen are unknown, never 0; few samples are pointed out."""
    found = estimate(samples((0, 0.2, [1, 1]), (0, 0.1, [1, 0])), cores=1, threads=4)
    assert found.demand[0] > 0
    assert np.isnan(found.demand[1])
    assert found.to_json()["classes"]["b"]["demand"] == {"mean": None, "low": None, "high": None}
    assert any("b: 0 samples" in note for note in found.notes)


@pytest.mark.parametrize("method", [name for name, m in METHODS.items() if m.needs != "windows"])
def test_every_method_has_an_interval(method: str) -> None:
    """All methods answer the same call, with the truth in the right order of magnitude."""
    data = observed(1, 4, 20, samples=60)
    used: Any = data.trace if METHODS[method].needs == "trace" else data.samples
    assert isinstance(used, Trace) == (method == "bl")
    found = estimate(used, cores=1, threads=4, method=method, resamples=100)
    assert np.all(found.low <= found.high)
    assert found.demand == pytest.approx([0.1, 0.05], rel=0.4)


def test_nothing_to_fit_is_an_error() -> None:
    """Response times of zero have no likelihood."""
    with pytest.raises(UsageError, match="all response times are 0"):
        estimate(samples((0, 0.0, [1])), cores=1, threads=2, method="fmlps")
