"""``mup runs``: listing and pruning."""

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import run

from analyzer.calibration.run_lock import writing
from analyzer.calibration.rundir import PartInfo, RunInfo, Width, Window, fingerprints
from analyzer.static import analyse_project
from mup.errors import UsageError
from mup.project import load_project

SOURCE = """\
from mup import EP, MS, Client, Communication

class A(MS):
    @EP("/x/")
    def x(self, comm: Communication) -> None:
        comm.respond(1)

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await comm.call("A", "/x/", {})
"""
TOML = """\
[project]
client = "services:User"
[services.A]
class = "services:A"
"""
DAY = 86400


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project without runs."""
    (tmp_path / "services.py").write_text(SOURCE)
    (tmp_path / "mup.toml").write_text(TOML)
    return tmp_path


def explored(project: Path, name: str, *, days: float = 0.0, **fields: Any) -> Path:
    """Add a run of the project's source, last written to so many days ago."""
    directory = project / ".mup" / "runs" / f"{name}-explore"
    directory.mkdir(parents=True)
    (directory / "A.0.w0.mlog").write_bytes(b"x" * 1000)
    known = {
        "project": "shop",
        "created": "2026-01-02T03:04:05+0000",
        "stop": "time is up",
        "fingerprints": fingerprints(analyse_project(load_project(project))),
        "parts": [PartInfo(windows=[Window(0, 5 * 10**9)])],
        "widths": {"A/x/": Width(mean=1, half_width=0.1, executions=1, batches=3)},
    }
    RunInfo(**{**known, **fields}).save(directory)
    for path in (*directory.iterdir(), directory):
        os.utime(path, (time.time() - days * DAY,) * 2)
    return directory


def listed(capsys: pytest.CaptureFixture[str], project: Path, *options: str) -> dict[str, Any]:
    """Return the document of ``mup runs --json``."""
    code, out, err = run(capsys, "runs", str(project), "--json", *options)
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def names(project: Path) -> list[str]:
    return sorted(p.name[:5] for p in (project / ".mup" / "runs").iterdir())


def test_a_project_without_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The list is empty, and a person is told how to make a run."""
    assert listed(capsys, project) == {"runs": []}
    code, out, _ = run(capsys, "runs", str(project))
    assert code == 0
    assert "mup explore" in out


def test_runs_are_listed_newest_first(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With date, observed time, size, whether they are complete, fresh, and used by a model."""
    monkeypatch.setenv("COLUMNS", "200")  # a narrow table is followed by a note
    old = explored(project, "20260101-000000", days=9, complete=False, stop="interrupted")
    (project / "services.py").write_text(SOURCE.replace("respond(1)", "respond(2)"))
    new = explored(project, "20260102-000000")
    (project / "model.json").write_text(json.dumps({"provenance": {"run": new.name, "runs": [new.name]}}))
    (project / "notes.json").write_text("[1, 2")
    first, second = listed(capsys, project)["runs"]
    assert (first["run"], second["run"]) == (str(new), str(old))
    assert (first["source"], second["source"]) == ("fresh", "stale")
    assert second["stale"] == {"A/x/": "changed since the log was written"}
    assert (first["used_by"], second["used_by"]) == (["model.json"], [])
    assert (first["complete"], second["complete"]) == (True, False)
    assert first["observed_seconds"] == 5
    assert first["endpoints"] == 1
    assert first["size"] == 1000 + (new / "run.json").stat().st_size
    code, out, _ = run(capsys, "runs", str(project))
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:]] == [new.name, old.name]
    assert "interrupted" in out


def test_source_that_cannot_be_analysed_is_unknown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A syntax error in the project does not keep its runs from being listed."""
    explored(project, "20260101-000000")
    (project / "services.py").write_text("class A(\n")
    (found,) = listed(capsys, project)["runs"]
    assert found["source"] == "unknown"


def test_pruning_keeps_the_newest_and_what_models_need(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default one run stays, and the one of the model; `--include-used` spares that no longer."""
    for day in ("01", "02", "03", "04"):
        explored(project, f"{day}-20260101", days=1)
    model = {"provenance": {"run": "02-20260101-explore"}}
    (project / "model.json").write_text(json.dumps(model))
    document = listed(capsys, project, "--prune", "--yes")
    assert [Path(p).name[:2] for p in document["deleted"]] == ["03", "01"]
    assert [Path(r["run"]).name[:2] for r in document["runs"]] == ["04", "02"]
    assert len(names(project)) == 2
    listed(capsys, project, "--prune", "--yes", "--include-used")
    assert names(project) == ["04-20"]


def test_runs_without_rounds_are_not_worth_keeping(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest run stays only if it observed anything; a directory that is no run goes."""
    explored(project, "01-20260101", days=1)
    explored(project, "02-20260101", days=1, parts=[])
    (project / ".mup" / "runs" / "03-rubbish").mkdir()
    os.utime(project / ".mup" / "runs" / "03-rubbish", (0, 0))
    listed(capsys, project, "--prune", "--yes")
    assert names(project) == ["01-20"]


def test_only_old_runs_go(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--older-than` looks at the time of the last change, and keeps none but the younger ones."""
    explored(project, "01-20260101", days=10)
    explored(project, "02-20260101", days=3)
    explored(project, "03-20260101", days=1)
    listed(capsys, project, "--prune", "--yes", "--older-than", "2", "--keep", "2")
    assert names(project) == ["02-20", "03-20"]
    listed(capsys, project, "--prune", "--yes", "--older-than", "2")
    assert names(project) == ["03-20"]


def test_a_run_that_is_going_on_is_left_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One whose explorer was killed is not going on, however fresh its files are."""
    killed = explored(project, "01-20260101", complete=False, stop="")
    explored(project, "02-20260101", days=1)
    held = explored(project, "03-20260101", days=1, complete=False, stop="")
    program = (
        "import sys, time; from pathlib import Path; from analyzer.calibration.run_lock import writing\n"
    )
    program += "with writing(Path(sys.argv[1])):\n    print('now', flush=True)\n    time.sleep(60)"
    explorers = [
        subprocess.Popen([sys.executable, "-c", program, str(run_directory)], stdout=subprocess.PIPE)
        for run_directory in (killed, held)
    ]
    try:
        for explorer in explorers:
            assert explorer.stdout is not None
            assert explorer.stdout.readline() == b"now\n"
        explorers[0].kill()
        explorers[0].wait()
        assert [r["active"] for r in listed(capsys, project)["runs"]] == [True, False, False]
        with pytest.raises(UsageError, match="another exploration is writing to this run"), writing(held):
            pass
        listed(capsys, project, "--prune", "--yes", "--keep", "0")
        assert names(project) == ["03-20"]
    finally:
        for explorer in explorers:
            explorer.kill()
            explorer.communicate()


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_without_a_user_to_ask_nothing_is_deleted(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    """A script has to say --yes."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    explored(project, "01-20260101", days=1)
    code, out, err = run(capsys, "runs", str(project), "--prune", "--keep", "0", *options)
    assert code == 2
    assert "--yes" in out + err
    assert names(project) == ["01-20"]


class Terminal(io.StringIO):
    """A user at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "left"), [("n\n", ["01-20"]), ("y\n", [])])
def test_the_user_is_asked_before_anything_is_deleted(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    left: list[str],
) -> None:
    """The question names how many runs; only yes deletes."""
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    explored(project, "01-20260101", days=1)
    code, out, err = run(capsys, "runs", str(project), "--prune", "--keep", "0")
    assert code == 0
    assert "Delete these 1 of 1 runs?" in err
    assert ("nothing was deleted" in out) == bool(left)
    assert names(project) == left


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", "3"), "--prune"),
        (("--yes",), "--prune"),
        (("--prune", "--keep", "-1"), "--keep: must be >= 0"),
        (("--prune", "--older-than", "-1"), "--older-than: must be >= 0"),
        (("--prune", "--older-than", "nan"), "--older-than: must be >= 0"),
    ],
)
def test_options_that_make_no_sense(
    project: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    """One message, exit code 2."""
    code, _, err = run(capsys, "runs", str(project), *options)
    assert code == 2
    assert message in err
