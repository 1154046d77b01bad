"""``mup learn lqn``: files in, a model that simulates out; and messages."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from layered_systems import running_example, traces_of, without_times
from rich.console import Console

from analyzer.learning.lqn_unknowns import find_unknowns, with_means
from analyzer.learning.trace_files import write_traces
from mup.cli.learning.learn_lqn import _progress
from mup.cli.main import main
from mup.lqn import load_model, save_model
from mup.lqn.edits import with_clients
from mup.lqn.files import read_model, write_model
from simulator import simulate
from simulator.networks.inlined import TimeKey, inline

STARTER = Path(__file__).parents[3] / "examples" / "starter"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an uncalibrated model and traces."""
    folder = tmp_path_factory.mktemp("learn")
    save_model(without_times(running_example(), "B", "D"), folder / "model.json")
    write_traces(folder / "traces.npz", traces_of(running_example(), count=12, replications=30))
    return folder


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(w) for w in words])
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.mark.slow
def test_a_calibrated_model_comes_out(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rates, errors and seconds as JSON, and a model in which nothing is unknown."""
    output = files / "learned.json"
    assert run("learn", "lqn", files / "model.json", files / "traces.npz", "-o", output, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["rates"]["B.serve:comp demand"] == pytest.approx(20.0, rel=0.15)
    assert set(document) >= {"rates", "times", "err_train", "err_validation", "simulated", "seconds"}
    assert all(a.calibrated for _, _, a in load_model(output).walk())


def test_an_lqnx_file_says_the_structure(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It cannot say that a time is unknown, so all are learned, whatever stands there; the result is one, too."""
    model = with_means(running_example(), {TimeKey("B", "serve", "comp", "demand"): 3.0})
    write_model(model, files / "structure.lqnx")
    names = ("A.cycle:think1", "A.cycle:think2", "B.serve:comp", "D.query:select")
    traces = traces_of(running_example(), count=12, replications=30)
    # An lqnx file has activities of its own for calls, so paths differ; where a request is does not.
    seen = [[i for i, n in enumerate(traces.names) if n.rpartition(">")[2] == name] for name in names]
    x = np.stack([traces.x[:, :, columns].sum(axis=2) for columns in seen], axis=2)
    write_traces(files / "few.npz", replace(traces, x=x, names=names))
    output = files / "learned.lqnx"
    words = ("learn", "lqn", files / "structure.lqnx", files / "few.npz", "--no-correction", "-o", output)
    assert run(*words, "--json") == 0
    rates = json.loads(capsys.readouterr().out)["rates"]
    assert rates["B.serve:comp demand"] == pytest.approx(20.0, rel=0.2)
    assert len(rates) == 4
    found = read_model(output).task("B").entry("serve").activity("comp").demand
    assert found is not None
    assert found.mean == pytest.approx(1 / rates["B.serve:comp demand"], rel=1e-6)


@pytest.mark.slow
def test_the_structure_that_source_tells_is_calibrated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Static analysis knows no time: all 16 are learned, and tell what twice the users would see."""
    assert run("model", "--static", STARTER, "-o", tmp_path / "structure.json") == 0
    structure = with_clients(read_model(tmp_path / "structure.json"), 20)
    unknowns = find_unknowns(structure)
    keys = [key for key in inline(unknowns.model).times if key in unknowns.keys]
    means = {key: 0.02 * (1 + i % 4) for i, key in enumerate(keys)}
    truth = with_means(structure, means)
    write_traces(tmp_path / "traces.npz", traces_of(truth, count=12, replications=30))
    capsys.readouterr()
    words = ("learn", "lqn", tmp_path / "structure.json", tmp_path / "traces.npz", "--clients", 20)
    assert run(*words, "--no-correction", "-o", tmp_path / "model.json", "--json") == 0
    times = json.loads(capsys.readouterr().out)["times"]
    assert {key: one["mean"] for key, one in times.items()} == pytest.approx(
        {str(key): mean for key, mean in means.items()}, rel=0.1
    )
    seen, expected = (
        simulate(with_clients(model, 40), precision=0.01, seed=1).cycle.response_time.mean
        for model in (truth, read_model(tmp_path / "model.json"))
    )
    assert expected == pytest.approx(seen, rel=0.05)


def test_a_terminal_is_told_what_is_being_done() -> None:
    """In a line that goes away; a file is told nothing."""
    shown = StringIO()
    with _progress(Console(file=shown, force_terminal=True, width=80)) as show:
        assert show is not None
        show("search 2 of 4")
    assert "search 2 of 4" in shown.getvalue()
    with _progress(Console(file=StringIO())) as show:
        assert show is None


def test_columns_are_listed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("learn", "lqn", files / "model.json", "--columns") == 0
    assert "A.cycle:think1>B.serve:(waiting)" in capsys.readouterr().out.split()


def test_a_wrong_column_is_named_with_its_file(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One message that names the file, the column and what is close; nothing is written."""
    traces = traces_of(running_example(), count=6, replications=2)
    write_traces(files / "wrong.npz", replace(traces, names=("A.cycle:thnk1", *traces.names[1:])))
    output = files / "never.json"
    assert run("learn", "lqn", files / "model.json", files / "wrong.npz", "-o", output) == 2
    message = capsys.readouterr().err
    assert "wrong.npz" in message
    assert "'A.cycle:thnk1' counts nothing" in message
    assert "A.cycle:think1" in message
    assert not output.exists()
