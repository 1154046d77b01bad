"""The exploratory run on real processes: what it stores, when it stops, what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.calibration.explore import ExploreSettings, Progress, explore
from analyzer.calibration.rundir import PartInfo, RunInfo, VoidWindow, Window, latest_run, load_info, load_run
from analyzer.static import analyse_project
from mup.errors import LogError, StaleLogError, UsageError
from mup.project import Project, load_project
from mup.workload.speed import Speed
from mup.workload.speed_history import read_history

pytestmark = pytest.mark.slow

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
        await self.think({think})
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
NEVER = 1e-9
"""A width no run reaches."""
QUICK = ExploreSettings(
    width=NEVER,
    max_seconds=2.4,
    round_seconds=0.4,
    warmup_seconds=0.2,
    idle_seconds=0.3,
    foreign_limit=1.0,  # whatever else runs beside these tests
)


def make(folder: Path, answer: str = "1", think: float = 0.005) -> Project:
    (folder / "services.py").write_text(SERVICES.format(answer=answer, think=think))
    (folder / "mup.toml").write_text(TOML)
    return load_project(folder)


def steady() -> Speed:
    """A machine whose speed never changes."""
    return Speed((1000.0, 1000.0))


@pytest.mark.services
def test_a_run_describes_itself(tmp_path: Path) -> None:
    """Windows with their CPU, processes, fingerprints, widths and paths are stored; the logs are there."""
    project = make(tmp_path)
    seen: list[Progress] = []
    directory = explore(
        project, analyse_project(project), QUICK, progress=seen.append, probe=steady, monitor=False
    )
    assert directory == latest_run(project.state / "runs")
    run = load_run(directory)
    info = run.info
    (part,) = run.parts
    rounds = [*part.windows, *(void.window for void in part.info.void)]
    assert len(rounds) == len(seen) >= 6
    assert sum(w.seconds for w in rounds) == pytest.approx(2.4, rel=0.3)
    assert {w.phase for w in run.windows} == {"hot", "cold"}
    assert {w.think_scale for w in run.windows} == {0.0, 1.0}
    assert {w.speed for w in run.windows} == {1000.0}
    assert {p.role for p in part.processes} == {"registry", "front", "worker", "client"}
    for process in part.processes:
        used = [w.cpu[str(process.pid)] for w in part.windows]
        assert process.cpu == pytest.approx(sum(used))
        assert process.cpu > 0 or process.role in ("registry", "worker")
    assert set(info.fingerprints) == {"A/x/", "User.scenario"}
    width = info.widths["A/x/"]
    assert width.executions > 50
    assert 0.002 < width.mean < 0.02
    assert info.paths["A/x/"][0].executions >= width.executions
    assert info.paths["User.scenario"][0].executions == info.paths["A/x/"][0].executions
    assert not info.unmatched
    assert info.response_time is not None
    assert info.response_time > width.mean
    assert {log.header["role"] for log in run.logs} == {"front", "worker", "client"}
    assert info.complete
    assert info.stop == "time is up"


@pytest.mark.services
def test_the_stop_rule_ends_the_run_early(tmp_path: Path) -> None:
    """With a generous width the run is over as soon as there are enough rounds, and says why."""
    project = make(tmp_path)
    settings = ExploreSettings(
        width=0.9,
        max_seconds=20.0,
        round_seconds=0.3,
        warmup_seconds=0.0,
        idle_seconds=0.0,
        foreign_limit=1.0,
    )
    info = load_info(explore(project, analyse_project(project), settings, probe=steady, monitor=False))
    assert info.observed_seconds < 10
    assert info.stop == "every endpoint and path within 90.00%"
    assert info.complete


@pytest.mark.services
def test_a_client_that_thinks_long_thinks_less(tmp_path: Path) -> None:
    """Three seconds of think time would show nothing; the factor that was used instead is recorded."""
    project = make(tmp_path, think=3.0)
    info = load_info(explore(project, analyse_project(project), QUICK, probe=steady, monitor=False))
    (scale,) = {w.think_scale for w in info.windows if w.phase == "cold"}
    assert 0.0005 < scale < 0.05
    assert min(w.cycles for w in info.windows if w.phase == "cold") > 3


@pytest.mark.services
def test_a_client_that_never_thinks_has_hot_rounds_only(tmp_path: Path) -> None:
    """Rounds with think times would be the same."""
    project = make(tmp_path, think=0)
    info = load_info(explore(project, analyse_project(project), QUICK, probe=steady, monitor=False))
    assert {w.phase for w in info.windows} == {"hot"}


def jumping(*jumps: int) -> Callable[[], Speed]:
    """Return a probe: from some calls on the machine is 10 % slower, and from the next ones as before.

    The first call is before the first round.
    """

    def speeds() -> Iterator[Speed]:
        call, slow = 0, False
        while True:
            slow ^= call in jumps
            yield Speed((900.0,) if slow else (1000.0,))
            call += 1

    source = speeds()
    return lambda: next(source)


@pytest.mark.services
def test_a_round_across_which_the_speed_jumps_is_repeated(tmp_path: Path) -> None:
    """The first round is void and listed with the reason; the next one is of the same phase."""
    project = make(tmp_path)
    seen: list[Progress] = []
    settings = ExploreSettings(
        max_seconds=4.0,
        round_seconds=0.4,
        warmup_seconds=0.2,
        idle_seconds=0,
        width=NEVER,
        foreign_limit=1.0,
    )
    directory = explore(
        project, analyse_project(project), settings, probe=jumping(1), monitor=False, progress=seen.append
    )
    (part,) = load_info(directory).parts
    assert "speed jumped by 10.0%" in part.void[0].reason
    assert [p.phase for p in seen[:2]] == ["hot", "hot"]
    assert part.void[0].window not in part.windows


@pytest.mark.services
def test_the_speed_of_every_round_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Void rounds, too: the history of the machine has a line for each, all of one run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = make(tmp_path)
    seen: list[Progress] = []
    explore(project, analyse_project(project), QUICK, probe=jumping(2), progress=seen.append)
    records = read_history().records
    assert len(records) == len(seen)
    assert {r.kind for r in records} == {"explore"}
    assert len({r.run for r in records}) == 1
    assert all(r.probed in (900.0, 950.0, 1000.0) for r in records)
    assert all(0 < (r.utilization or 0) <= 1 for r in records)
    assert any(r.monitored for r in records)


@pytest.mark.services
def test_without_time_to_repeat_void_rounds_count_with_a_warning(tmp_path: Path) -> None:
    """Every round is void: three of each phase are kept, and the run says so."""
    project = make(tmp_path)
    info = load_info(
        explore(project, analyse_project(project), QUICK, probe=jumping(*range(1, 300)), monitor=False)
    )
    assert [w.phase for w in info.windows].count("hot") == 3
    assert all("jumped" in w.flaw for w in info.windows)
    assert any("rounds count although the machine's speed jumped" in w for w in info.warnings)


@pytest.mark.services
def test_a_burst_adds_rounds_with_several_clients(tmp_path: Path) -> None:
    """They come last, with their own phase, and count in no width."""
    project = make(tmp_path)
    settings = ExploreSettings(
        max_seconds=2.4,
        round_seconds=0.4,
        warmup_seconds=0.2,
        idle_seconds=0,
        burst=3,
        foreign_limit=1.0,
    )
    info = load_info(explore(project, analyse_project(project), settings, probe=steady, monitor=False))
    (part,) = info.parts
    bursts = [w for w in [*part.windows, *(v.window for v in part.void)] if w.phase == "burst"]
    assert len(bursts) >= 3
    assert {w.clients for w in bursts} == {3}
    assert info.widths["A/x/"].batches == sum(1 for w in part.windows if w.phase == "hot")


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


def started(tmp_path: Path, family: Any, *, rounds: int) -> tuple[subprocess.Popen[str], Path]:
    """Start an exploration that will not end by itself; return it once some rounds are on disk."""
    command = [sys.executable, "-m", "mup", "explore", str(tmp_path), "--precision", str(NEVER)]
    process = subprocess.Popen(
        [*command, "--round-seconds", "0.5", "--warmup", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=family.environment,
    )
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        for file in (tmp_path / ".mup" / "runs").glob("*/run.json"):
            # On a busy machine all of them may be void.
            parts = load_info(file.parent).parts
            if sum(len(part.windows) + len(part.void) for part in parts) >= rounds:
                return process, file.parent
        time.sleep(0.1)
    process.kill()
    raise AssertionError("no round ended in time")


@pytest.mark.services
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.repeats),
    ],
)
def test_ctrl_c_keeps_what_was_observed(tmp_path: Path, family: Any, number: int, code: int) -> None:
    """Interrupted after a few rounds, the run is saved and shown, the exit code says so, no process stays."""
    make(tmp_path)
    process, run = started(tmp_path, family, rounds=1)
    assert len(family.alive()) >= 5  # the command, registry, front, worker, client
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == code, output
    assert "stopped because interrupted" in output
    info = load_run(run).info
    assert info.stop == "interrupted"
    assert not info.complete
    assert not family.alive()


@pytest.mark.services
def test_a_killed_run_can_be_used_and_resumed(tmp_path: Path, family: Any) -> None:
    """After SIGKILL its rounds can be read; resuming adds a part and completes the run."""
    project = make(tmp_path)
    process, directory = started(tmp_path, family, rounds=2)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 15
    while family.alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not family.alive()
    broken = load_run(directory)
    assert not broken.info.complete
    assert broken.logs
    settings = ExploreSettings(
        width=0.9,
        max_seconds=30,
        round_seconds=0.4,
        warmup_seconds=0.2,
        idle_seconds=0.0,
        foreign_limit=1.0,
    )
    assert (
        explore(project, analyse_project(project), settings, resume=directory, probe=steady, monitor=False)
        == directory
    )
    run = load_run(directory)
    assert run.info.complete
    assert [part.info.folder for part in run.parts] == ["", "part-2"]
    # Rounds that were kept in doubt may have been left out in favour of better ones.
    assert {w.start for w in run.parts[0].windows} <= {w.start for w in broken.windows}
    assert all(part.logs for part in run.parts)
    hot = [sum(1 for w in part.windows if w.phase == "hot") for part in run.parts]
    # What was not yet on disk when the processes were killed is in no batch of the first part.
    assert hot[1] <= run.info.widths["A/x/"].batches <= sum(hot)


def resumable(project: Project, **changes: Any) -> Path:
    """Return a run directory of a project as an exploration that was broken off leaves it."""
    from analyzer.calibration.rundir import describe_host, fingerprints

    directory = project.state / "runs" / "20260101-000000-explore"
    directory.mkdir(parents=True)
    fields = {
        **describe_host(),
        "project": project.name,
        "client": "User",
        "complete": False,
        "fingerprints": fingerprints(analyse_project(project)),
        **changes,
    }
    RunInfo(**fields).save(directory)
    return directory


def test_a_run_of_other_source_is_not_resumed(tmp_path: Path) -> None:
    """Its first part and its second would be of different programs."""
    directory = resumable(make(tmp_path))
    changed = make(tmp_path, answer="2")
    with pytest.raises(StaleLogError, match=r"source of A/x/ has changed"):
        explore(changed, analyse_project(changed), QUICK, resume=directory)
    assert not load_info(directory).parts


def test_a_run_without_time_left_is_not_resumed(tmp_path: Path) -> None:
    """Void rounds took their time, too; the hint says how to give it more."""
    project = make(tmp_path)
    windows = [Window(0, 2 * 10**9), Window(2 * 10**9, 3 * 10**9)]
    void = VoidWindow(window=windows[1], reason="the machine's speed jumped by 9.0%")
    directory = resumable(project, parts=[PartInfo(windows=windows[:1], void=[void])])
    settings = ExploreSettings(max_seconds=3.0, round_seconds=1.0)
    with pytest.raises(UsageError, match="3 s of at most 3 s are used up") as caught:
        explore(project, analyse_project(project), settings, resume=directory)
    assert "--max-seconds 6" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "message"),
    [({"client": "Other"}, "client is 'Other'"), ({"cores": 999}, "another machine")],
    ids=["client", "machine"],
)
def test_a_run_of_something_else_is_not_resumed(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """What was measured then would not fit what is measured now."""
    project = make(tmp_path)
    with pytest.raises(LogError, match=message):
        explore(project, analyse_project(project), QUICK, resume=resumable(project, **change))


@pytest.mark.parametrize(
    "wrong", [{"width": 0}, {"max_seconds": -1}, {"think_scale": -0.5}, {"burst": -1}, {"width": 1.5}]
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    """The message names field and value."""
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ExploreSettings(**wrong)
