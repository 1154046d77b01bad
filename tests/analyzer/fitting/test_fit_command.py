"""``mup fit``: from files to files, and what it says about wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fitted_models import MEASURES, PATHS, TRUE, loads, measured, three_queues

from analyzer.fitting.data import Data, read_data
from mup.cli.main import main
from mup.errors import UsageError
from mup.lqn.files import read_model, write_model

ESTIMATE = ",".join(PATHS)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run ``mup fit``; return its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as caught:
        main(["fit", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


def write_data(path: Path, data: Data) -> Path:
    """Write measurements as a CSV file."""
    lines = [",".join(["clients", *data.measures])]
    for trial in data.trials:
        lines += [",".join(map(repr, [trial.settings[0][1], *row.tolist()])) for row in trial.rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A model with wrong demands, and measurements with right ones."""
    write_model(three_queues((1.0, 5.0, 3.0)), tmp_path / "model.json")
    data = measured(
        three_queues(), loads(range(1, 7)), MEASURES, rows=5, error=0.02, random=np.random.default_rng(3)
    )
    return str(tmp_path / "model.json"), str(write_data(tmp_path / "data.csv", data))


def test_json_output_and_model(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parameters and predictions have intervals; the written model has the fitted values and their spread."""
    model, data = files
    target = tmp_path / "fitted.json"
    code, out, _ = run(
        capsys, model, data, "--estimate", ESTIMATE, "--predict", "clients=20", "-o", str(target), "--json"
    )
    content = json.loads(out)
    assert code == 0
    for path, truth in zip(PATHS, TRUE, strict=True):
        found = content["parameters"][path]
        assert found["joint"][0] < truth < found["joint"][1]
        assert found["joint"][0] < found["low"] < found["value"] < found["high"] < found["joint"][1]
    figures = content["predictions"][0]["figures"]
    assert figures["throughput"]["low"] < 0.2494 < figures["throughput"]["high"]
    written = read_model(target)
    assert written.task("app").entries[0].activities[0].demand is not None
    assert written.provenance["fit"]["freedom"] == 6 * 4 - 3
    assert written.uncertainty is not None
    factors = [r.demands["app.serve:work"] for r in written.uncertainty.replicates]
    assert 0.001 < np.std(factors) < 0.02


def test_tables(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """People get tables, and where the errors came from."""
    code, out, _ = run(capsys, *files, "--estimate", ESTIMATE, "--predict", "clients=20")
    assert code == 0
    assert "demand.app.serve" in out
    assert "Predicted with clients=20" in out
    assert "from the scatter of rows of equal configuration" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "nothing to fit", id="nothing"),
        pytest.param(["--estimate", "demnd.web.serve"], "no parameter 'demnd.web.serve'", id="kind"),
        pytest.param(["--estimate", "demand.web.srve"], "did you mean 'web.serve'", id="entry"),
        pytest.param(["--estimate", "demand.web.serve=x"], "is no number", id="start"),
        pytest.param(["--estimate", "clients"], "a column of the measurements sets it", id="set"),
        pytest.param(
            ["--estimate", ESTIMATE, "--bounds", "think=1..2"], "'think' is not fitted", id="bounds"
        ),
        pytest.param(
            ["--estimate", ESTIMATE, "--expert", f"{PATHS[0]}=3..2..1"], "three ascending", id="expert"
        ),
        pytest.param(["--estimate", ESTIMATE, "--predict", "clients"], "PATH=VALUE", id="predict"),
        pytest.param(["--estimate", ESTIMATE, "--level", "95"], "between 0 and 1", id="level"),
        pytest.param(["--estimate", ESTIMATE, "--interval-method", "wide"], "no 'wide'", id="intervals"),
    ],
)
def test_bad_options(
    files: tuple[str, str], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option is one message and exit code 2."""
    code, out, err = run(capsys, *files, *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "has no measurements", id="empty"),
        pytest.param("clients\n1", "no column holds a measured figure", id="no-figure"),
        pytest.param("clients,speeed,throughput\n1,2,3", "column 'speeed' is neither", id="unknown-column"),
        pytest.param("clients,throughput\n1,2\n2,fast", "line 3, column 'throughput'", id="no-number"),
        pytest.param(
            "clients,throughput\n1.5,2", "line 2, column 'clients': must be a whole", id="half-a-client"
        ),
        pytest.param("clients,throughput\n,2", "line 2, column 'clients'", id="empty-setting"),
        pytest.param("clients,throughput\n1,2,3", "line 2 has 3 cells", id="too-many-cells"),
        pytest.param("clients,clients,throughput\n1,1,2", "column 'clients' is there twice", id="twice"),
        pytest.param(
            "clients,throughput,response_time.ci95\n1,2,3", "no column 'response_time'", id="half-width"
        ),
        pytest.param(
            "clients,throughput\n1,-2\n2,3", "line 2, column 'throughput': must be >= 0", id="negative"
        ),
        pytest.param("clients,throughput\n1,0\n2,0", "column 'throughput' is 0 in every row", id="nothing"),
        pytest.param("clients,throughput,throughput.ci95\n1,2,0", "must be > 0", id="no-error-at-all"),
    ],
)
def test_bad_data(text: str, message: str, tmp_path: Path) -> None:
    """A wrong file is named, with line and column."""
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message) as caught:
        read_data(path)
    assert caught.value.where == str(path)


def test_all_kinds_of_columns(tmp_path: Path) -> None:
    """Settings, figures, half-widths, counts, labels and what is left out; rows of one configuration are one trial."""
    path = tmp_path / "data.csv"
    path.write_text(
        "trial,clients,pool.web,throughput,throughput.ci95,entries.web.serve.response_time,count,seconds,#note\n"
        "a,1,2,0.5,0.1,1.5,10,1,x\na,1,2,0.7,0.2,2.5,30,3,\nb,2,2,0.9,0.1,,10,1,\n",
        encoding="utf-8",
    )
    data = read_data(path)
    assert data.measures == ("throughput", "entries.web.serve.response_time")
    first, second = data.trials
    assert [(s.path, v) for s, v in first.settings] == [("clients", 1), ("pool.web", 2)]
    assert first.means.tolist() == pytest.approx([0.65, 2.25])
    assert second.half_widths[0, 0] == 0.1
    assert data.values == 3


def test_a_figure_the_model_lacks_is_refused(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The closest figures are suggested."""
    (tmp_path / "other.csv").write_text("clients,tasks.apps.utilization\n1,0.5\n2,0.6\n", encoding="utf-8")
    code, _, err = run(capsys, files[0], str(tmp_path / "other.csv"), "--estimate", PATHS[0])
    assert code == 2
    assert "no figure 'tasks.apps.utilization'; did you mean 'tasks.app.utilization'" in err
