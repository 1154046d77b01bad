"""What may stand for MODEL and FILE: a project folder, nothing at all, or ``-`` for the standard streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run, saved, shop

TOML = """\
[services.A]
class = "services:A"
"""
SERVICE = """\
from mup import EP, MS, Communication


class A(MS):
    @EP("/a/")
    def a(self, comm: Communication) -> None:
        comm.respond(1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without a model."""
    (tmp_path / "mup.toml").write_text(TOML)
    (tmp_path / "services.py").write_text(SERVICE)
    return tmp_path


def mup(*arguments: str, text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mup", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=text, cwd=cwd)


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--engine", "analytic", "--json"),
        ("stats", "--json"),
        ("graph", "--json"),
        ("whatif", "--pool", "NoSuchTask=2"),
        ("autoscale", "--clients", "0"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_project_stands_for_its_model(
    arguments: tuple[str, ...],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the folder, its mup.toml, or nothing in the folder itself, the model is model.json there."""
    file = saved(project, shop())
    command, *options = arguments
    monkeypatch.chdir(project)
    expected = run(capsys, command, file, *options)
    for named in ([str(project)], ["mup.toml"], []):
        status, out, err = run(capsys, command, *named, *options)
        assert (status, err) == (expected[0], (expected[1] and expected[2]) or err)
        if expected[0] == 0:
            assert json.loads(out).keys() == json.loads(expected[1]).keys()
        else:
            assert "NoSuchTask" in err or "clients" in err


@pytest.mark.parametrize("command", ["simulate", "whatif", "stats", "autoscale", "convert", "diff", "fit"])
def test_a_project_without_a_model_says_how_to_get_one(
    command: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not "Is a directory"."""
    others = {"convert": ["-"], "diff": [str(project)], "fit": ["d.csv", "--estimate", "think"]}
    status, _, err = run(capsys, command, str(project), *others.get(command, []))
    assert status == 2
    assert f"run 'mup explore {project}', then 'mup model {project}'" in err


def test_validate_without_a_model_says_how_to_get_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same remedy as for all commands that need the model of a project."""
    status, _, err = run(capsys, "validate", str(project))
    assert status == 2
    assert f"run 'mup explore {project}', then 'mup model {project}'" in err


def test_a_folder_that_is_no_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is said what a folder would need."""
    status, _, err = run(capsys, "whatif", str(tmp_path), "--clients", "2")
    assert status == 2
    assert "no model.json and no mup.toml" in err


def test_graph_of_a_project_draws_its_model_or_its_source(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As all commands do; --static asks for what the source says."""
    status, out, _ = run(capsys, "graph", str(project))
    assert (status, "1 tasks" in out) == (0, True)
    saved(project, shop())
    status, out, _ = run(capsys, "graph", str(project))
    assert (status, "m, 3 tasks" in out) == (0, True)
    status, out, _ = run(capsys, "graph", str(project), "--static")
    assert (status, "1 tasks" in out) == (0, True)


@pytest.mark.slow
def test_models_and_pictures_go_through_pipes(tmp_path: Path) -> None:
    """``-`` is standard input as MODEL and standard output as --output; what is said goes to stderr."""
    file = Path(saved(tmp_path, shop()))
    drawn = mup("graph", "-", text=file.read_text(), cwd=tmp_path)
    assert drawn.returncode == 0
    assert drawn.stdout.startswith("<svg")
    assert drawn.stderr == "wrote standard output: m, 3 tasks\n"
    written = mup("convert", str(file), "-")
    assert json.loads(written.stdout)["name"] == "m"
    assert mup("stats", "-", "--json", text=written.stdout).stdout == mup("stats", str(file), "--json").stdout
    (tmp_path / "m.lqnx").write_text("")
    assert mup("convert", str(file), str(tmp_path / "n.lqnx")).returncode == 0
    assert mup("stats", "-", text=(tmp_path / "n.lqnx").read_text()).returncode == 0
    assert not (tmp_path / "-").exists()
    assert not (tmp_path / "-.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["stats", "-"], "", "standard input: is empty"),
        (["stats", "-"], "{", "standard input: not JSON"),
        (["stats", "-"], "<lqn", "standard input: "),
        (["graph", "m.json", "-o", "-", "--json"], "", "both want standard output"),
        (["whatif", "m.json", "--clients", "2", "--csv", "-"], "", "only --output can be '-'"),
    ],
)
def test_streams_that_cannot_be_used(arguments: list[str], text: str, message: str, tmp_path: Path) -> None:
    """One message, exit code 2, no file named ``-``."""
    saved(tmp_path, shop(), "m.json")
    done = mup(*arguments, text=text, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "-").exists()


def test_pool_takes_the_project_as_an_argument(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the other commands do, and still as --project."""
    for words in ([str(project / "missing")], ["--project", str(project / "missing")]):
        status, _, err = run(capsys, "pool", "A", "2", *words)
        assert status == 2
        assert err.startswith(f"mup: error: {project / 'missing'}")
