"""``mup fit --track``: from a stream of measurements to a model that is up to date, or an alarm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from drifts import drifting, series, walk
from fitted_models import PATHS, three_queues

from analyzer.fitting.data import Series, read_series
from mup.cli.main import main
from mup.errors import UsageError
from mup.lqn.files import read_model, write_model

ESTIMATE = ("--estimate", ",".join(PATHS))
DEMANDS = walk(30, 0.01, np.random.default_rng(1))
JUMP = DEMANDS * np.where(np.arange(30) < 25, 1.0, 1.8)[:, None]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run ``mup fit``; return its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as caught:
        main(["fit", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


def write(folder: Path, data: Series, batches: int = 0) -> tuple[str, str]:
    """Write a model with wrong demands, and measurements; return their paths."""
    write_model(three_queues((1.5, 3.5, 3.0)), folder / "model.json")
    random = np.random.default_rng(2)
    lines = [",".join(["period", "clients", *data.data.measures])]
    for name, trial in zip(data.names, data.data.trials, strict=True):
        for _ in range(max(batches, 1)):
            row = trial.rows[0] * (1 + 0.03 * random.standard_normal(trial.rows.shape[1]) * (batches > 0))
            lines.append(",".join([f"t{name}", *map(repr, [trial.settings[0][1], *row.tolist()])]))
    (folder / "data.csv").write_text("\n".join(lines), encoding="utf-8")
    return str(folder / "model.json"), str(folder / "data.csv")


def test_a_model_is_kept_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No alarm: exit code 0, estimates per period, a picture, and the model of the last period."""
    files = write(tmp_path, series(drifting(DEMANDS), np.random.default_rng(3)))
    model, plot = tmp_path / "now.json", tmp_path / "track.svg"
    code, out, _ = run(capsys, *files, *ESTIMATE, "--track", "-o", str(model), "--plot", str(plot), "--json")
    content = json.loads(out)
    assert (code, content["alarms"]) == (0, [])
    assert [p["period"] for p in content["periods"]] == [f"t{n}" for n in range(1, 31)]
    assert content["parameters"] == content["periods"][-1]["parameters"]
    for path, truth in zip(PATHS, DEMANDS[-1], strict=True):
        last = content["parameters"][path]
        assert last["low"] < last["value"] < last["high"]
        assert last["value"] == pytest.approx(truth, rel=0.08)
    written = read_model(model)
    assert written.provenance["track"]["period"] == "t30"
    demand = written.task("app").entries[0].activities[0].demand
    assert demand is not None
    assert demand.mean == pytest.approx(content["parameters"][PATHS[2]]["value"])
    assert written.uncertainty is not None
    factors = [r.demands["app.serve:work"] for r in written.uncertainty.replicates]
    relative = content["parameters"][PATHS[2]]["deviation"] / content["parameters"][PATHS[2]]["value"]
    assert np.std(factors) == pytest.approx(relative, rel=0.6)
    assert plot.read_text(encoding="utf-8").startswith("<svg")


def test_an_alarm_is_an_exit_code_and_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The period, the figure that is off, and what may be done; the errors come from the batches of a period."""
    files = write(tmp_path, series(drifting(JUMP), np.random.default_rng(4), error=0.0), batches=5)
    code, out, _ = run(capsys, *files, *ESTIMATE, "--track", "--drift", "0.02")
    assert code == 1
    assert "alarm in period t26: " in out
    assert "other values of the parameters explain it" in out
    assert "from the scatter of the rows of a period" in out
    assert "drift 0.02 per period" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--track", "--drift", "2"), "--drift: must be"),
        (("--track", "--drift", "some"), "--drift: must be"),
        (("--drift", "0.1"), "say --track"),
        (("--plot", "p.svg"), "say --track"),
        (("--track", "--predict", "clients=3"), "--track takes no --predict"),
        (("--track", "--interval-method", "profile"), "--track takes no --interval-method"),
        (("--track", "--learning-periods", "30"), "30 periods are too few"),
        (("--track", "--learning-periods", "2"), "at least 5"),
    ],
    ids=["drift", "word", "drift alone", "plot alone", "predict", "intervals", "few", "learn"],
)
def test_bad_options(
    options: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message and exit code 2."""
    files = write(tmp_path, series(drifting(DEMANDS), np.random.default_rng(3)))
    code, out, err = run(capsys, *files, *ESTIMATE, *options)
    assert (code, out) == (2, "")
    assert message in err


def test_rows_are_periods_in_the_order_of_time(tmp_path: Path) -> None:
    """Without names, every row is a period; with names, those that are together; their order is checked."""
    path = tmp_path / "data.csv"
    path.write_text("clients,throughput\n1,0.5\n2,0.9\n1,0.6\n", encoding="utf-8")
    plain = read_series(path)
    assert plain.names == ("1", "2", "3")
    assert [t.means.tolist() for t in plain.data.trials] == [[0.5], [0.9], [0.6]]
    path.write_text("period,clients,throughput,seconds\na,1,0.5,1\na,1,0.7,3\nb,1,0.9,1\n", encoding="utf-8")
    named = read_series(path)
    assert named.names == ("a", "b")
    assert named.data.trials[0].means.tolist() == pytest.approx([0.65])
    path.write_text("period,clients,throughput\na,1,0.5\nb,1,0.7\na,1,0.9\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 4: period 'a' was there before"):
        read_series(path)
    path.write_text("period,clients,throughput\na,1,0.5\na,2,0.7\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 3: the configuration changes within period 'a'"):
        read_series(path)
