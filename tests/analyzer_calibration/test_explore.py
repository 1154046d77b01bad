"""The exploratory run on real processes: what it stores, when it stops, what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from analyzer.calibration.explore import ExploreSettings, explore
from analyzer.calibration.rundir import latest_run, load_run
from analyzer.static import analyse_project
from mup.errors import LogError, UsageError
from mup.project import Project, load_project

SERVICES = """\
import time
from mup import EP, MS, Client, Communication

class A(MS):
    @EP("/x/")
    def x(self, comm: Communication) -> None:
        time.sleep(0.002)
        comm.respond({answer})

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.005)
        await comm.call("A", "/x/", {{}})
"""
TOML = """\
[project]
client = "services:User"
[registry]
port = 0
[services.A]
class = "services:A"
"""
QUICK = ExploreSettings(max_seconds=2.0, round_seconds=0.5, warmup_seconds=0.2, idle_seconds=0.3)


def make(folder: Path, answer: str = "1") -> Project:
    (folder / "services.py").write_text(SERVICES.format(answer=answer))
    (folder / "mup.toml").write_text(TOML)
    return load_project(folder)


@pytest.mark.services
def test_a_run_describes_itself(tmp_path: Path) -> None:
    """Windows, processes with their CPU, fingerprints and widths are stored; the logs hold the executions."""
    project = make(tmp_path)
    directory = explore(project, analyse_project(project), QUICK)
    assert directory == latest_run(project.state / "runs")
    run = load_run(directory)
    info = run.info
    assert len(info.windows) == 4
    assert info.observed_seconds == pytest.approx(2, rel=0.3)
    assert {p.role for p in info.processes} == {"registry", "front", "worker", "client"}
    assert all(p.cpu > 0 for p in info.processes if p.role != "registry")
    assert set(info.fingerprints) == {"A/x/", "User.scenario"}
    width = info.widths["A/x/"]
    assert width.executions > 50
    assert 0.002 < width.mean < 0.02
    assert info.response_time is not None
    assert info.response_time > width.mean
    assert {log.header["role"] for log in run.logs} == {"front", "worker", "client"}


@pytest.mark.services
def test_the_stop_rule_ends_the_run_early(tmp_path: Path) -> None:
    """With a generous width the run is over as soon as there are enough batches, and says why."""
    project = make(tmp_path)
    settings = ExploreSettings(
        width=0.9, max_seconds=20.0, round_seconds=0.3, warmup_seconds=0.0, idle_seconds=0.0
    )
    info = load_run(explore(project, analyse_project(project), settings)).info
    assert info.observed_seconds < 5
    assert info.stop == "every endpoint within 90.00%"


@pytest.mark.services
def test_a_failing_scenario_is_one_message_and_leaves_nothing(tmp_path: Path) -> None:
    """The endpoint divides by zero: the run is refused with the reason, and no run directory stays."""
    project = make(tmp_path, answer="1 / 0")
    with pytest.raises(LogError, match=r"completed no cycle.*division by zero"):
        explore(project, analyse_project(project), QUICK)
    assert not list((project.state / "runs").iterdir())


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    """Logs of two runs in one directory could not be told apart."""
    project = make(tmp_path)
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "old.mlog").write_bytes(b"")
    with pytest.raises(UsageError, match="not empty"):
        explore(project, analyse_project(project), QUICK, directory=taken)
    assert (taken / "old.mlog").exists()


@pytest.mark.services
def test_ctrl_c_keeps_what_was_observed(tmp_path: Path, family: Any) -> None:
    """Interrupted after a few rounds, the run is saved, says so, and no process stays."""
    project = make(tmp_path)
    command = [
        sys.executable,
        "-m",
        "mup",
        "explore",
        str(tmp_path),
        "--round-seconds",
        "0.5",
        "--width",
        "1e-9",
    ]
    process = subprocess.Popen(
        [*command, "--warmup", "0"], stdout=subprocess.PIPE, text=True, env=family.environment
    )
    deadline = time.monotonic() + 20
    logs = project.state / "runs"
    while not list(logs.glob("*/A.0.w0.mlog")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(6)  # idle measurement and at least one round
    assert len(family.alive()) >= 5  # the command, registry, front, worker, client
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert load_run(latest_run(logs)).info.stop == "interrupted"
    assert not family.alive()


@pytest.mark.parametrize("wrong", [{"width": 0}, {"max_seconds": -1}, {"think_scale": -0.5}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    """The message names field and value."""
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ExploreSettings(**wrong)
