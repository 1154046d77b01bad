"""Exploring for a question on real processes: when it stops, what it says, what it leaves behind."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.calibration.explore import ExploreSettings, Progress, explore
from analyzer.calibration.inquiry import FIRST_ROUNDS
from analyzer.calibration.of_project import calibrate_project
from analyzer.calibration.question import OWN_CLIENT
from analyzer.calibration.rundir import load_info, load_run
from analyzer.static import analyse_project
from analyzer.static.translate import translate_with_plan
from mup.cli.main import main
from mup.cli.measurements.exploring import exploration_document
from mup.cli.measurements.question_options import question
from mup.project import Project, load_project
from mup.workload.speed import Speed

pytestmark = [pytest.mark.slow, pytest.mark.services]

SERVICES = """\
import time
from mup import EP, MS, Client, Communication

class B(MS):
    @EP("/y/")
    def y(self, comm: Communication) -> None:
        time.sleep(0.001)
        comm.respond(1)

class A(MS):
    @EP("/x/")
    def x(self, comm: Communication) -> None:
        time.sleep(0.002)
        if comm.params["ask"]:
            comm.call("B", "/y/", {}).get()
        comm.respond(1)

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.02)
        await comm.call("A", "/x/", {"ask": False})
"""
TOML = """\
[project]
client = "services:User"
[registry]
port = 0
[services.A]
class = "services:A"
[services.B]
class = "services:B"
"""
SETTINGS = ExploreSettings(
    width=1e-9,  # the rule for execution times, which no run would meet
    max_seconds=9.0,
    round_seconds=0.4,
    warmup_seconds=0.2,
    idle_seconds=0.3,
    foreign_limit=1.0,  # whatever else runs beside these tests
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two services, of which the client needs one."""
    (tmp_path / "services.py").write_text(SERVICES)
    (tmp_path / "mup.toml").write_text(TOML)
    return load_project(tmp_path)


def steady() -> Speed:
    """A machine whose speed never changes."""
    return Speed((1000.0, 1000.0))


def explored(
    project: Project,
    *texts: str,
    width: float = 0.9,
    settings: ExploreSettings = SETTINGS,
    resume: Path | None = None,
    seen: list[Progress] | None = None,
) -> Path:
    """Explore for a question, on a machine that is taken to be steady."""
    return explore(
        project,
        analyse_project(project),
        settings,
        resume=resume,
        question=question(texts, width),
        progress=None if seen is None else seen.append,
        probe=steady,
        monitor=False,
    )


def test_it_stops_when_the_answer_is_known(project: Project) -> None:
    """After the first rounds if the width is generous; the run says what it was for and makes a model."""
    seen: list[Progress] = []
    directory = explored(project, "clients=8,16 pool:A=4", "think=0.5", seen=seen)
    info = load_info(directory)
    assert info.complete
    assert info.question is not None
    assert info.question.outcome == "known", info.stop
    assert info.question.as_written == ["clients=8,16 pool:A=4", "think=0.5"]
    assert {a.scenario for a in info.question.answers} == {
        "8 clients, pool A=4",
        "16 clients, pool A=4",
        "think 0.5 s",
    }
    assert {a.figure for a in info.question.answers} == {"response_time", "throughput"}
    assert info.question.rounds["hot"] >= FIRST_ROUNDS["hot"]
    assert info.question.looks >= 1
    assert "known to +-" in info.stop
    assert info.observed_seconds < SETTINGS.max_seconds
    for answer in info.question.answers:
        if answer.figure == "response_time":
            assert 0.002 < answer.mean < 1.0
    document = exploration_document(info)["question"]
    assert document == json.loads(json.dumps(document))
    assert document["outcome"] == "known"
    found = calibrate_project(project, load_run(directory), analyse_project(project))
    assert found.model.task("A").entry("/x/").activities[0].demand is not None


def test_it_goes_on_until_the_time_is_up(project: Project) -> None:
    """A width out of reach takes the whole budget; a look at the end says how far it got. It can go on."""
    settings = replace(SETTINGS, max_seconds=4.8)
    directory = explored(project, width=1e-5, settings=settings)
    info = load_info(directory)
    assert info.question is not None
    assert info.question.outcome == "open"
    assert info.stop.startswith(f"time is up; {OWN_CLIENT}: ")
    assert "more than there is time for" in info.stop
    assert {a.scenario for a in info.question.answers} == {OWN_CLIENT}
    before = {a.figure: a for a in info.question.answers}
    # With more time and a width that is known already, the rest is quick.
    again = explored(project, width=0.9, settings=SETTINGS, resume=directory)
    assert again == directory
    after = load_info(directory)
    assert after.question is not None
    assert after.question.outcome == "known"
    assert after.question.width == 0.9
    assert len(after.parts) <= 2
    assert after.observed_seconds <= info.observed_seconds + 3 * SETTINGS.round_seconds
    assert before["throughput"].goal <= 1e-5 < before["throughput"].half_width


def test_what_the_client_never_does_cannot_be_answered(project: Project) -> None:
    """The call of B is in the source, but no client takes that path: exploring stops and says so."""
    (branch, _) = branches(project)
    info = load_info(explored(project, "clients=4", f"probability:A/x/:{branch}=0.5"))
    assert info.question is not None
    assert info.question.outcome == "refused", info.stop
    assert info.complete
    assert "exploring cannot narrow this" in info.stop
    assert "the client has not come there" in info.stop
    assert sum(info.question.rounds.values()) <= sum(FIRST_ROUNDS.values()) + 2


def test_what_has_not_changed_is_known_from_earlier_runs(project: Project) -> None:
    """The look takes all of them, and the model is calibrated from them together."""
    first = explored(project)
    source = project.root / "services.py"
    source.write_text(SERVICES.replace("time.sleep(0.002)", "time.sleep(0.004)"))
    application = analyse_project(project)
    second = explore(
        project,
        application,
        SETTINGS,
        changed_since=[first],
        question=question(["clients=2"], 0.9),
        probe=steady,
        monitor=False,
    )
    info = load_info(second)
    assert info.question is not None
    assert info.question.outcome == "known", info.stop
    (mean,) = (a.mean for a in info.question.answers if a.figure == "response_time")
    assert mean > 0.004
    assert info.since == [first.name]


@pytest.mark.usefixtures("short_probes")
def test_the_command_says_so_and_fails(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """One document on standard output, exit code 1; resumed, the run goes on with its question."""
    options = ["--round-seconds", "0.4", "--warmup", "0.2", "--json", "--no-profile-host"]
    with pytest.raises(SystemExit, match="1"):
        main(["explore", str(project.root), "--for", "arrivals=1000", "--max-seconds", "4", *options])
    found = json.loads(capsys.readouterr().out)
    assert found["question"]["asked"] == ["arrivals=1000"]
    assert found["question"]["outcome"] == "refused"
    assert found["question"]["width"] == 0.05
    assert "exploring cannot narrow this" in found["stop"]
    with pytest.raises(SystemExit, match="1"):
        main(["explore", str(project.root), "--resume", found["run"], "--max-seconds", "8", *options])
    again = json.loads(capsys.readouterr().out)["question"]
    assert [again[name] for name in ("asked", "width", "outcome")] == [["arrivals=1000"], 0.05, "refused"]


def test_load_that_grows_for_ever_cannot_be_answered(project: Project) -> None:
    """A thousand arrivals per second are more than one worker that sleeps 2 ms can serve."""
    info = load_info(explored(project, "arrivals=1000"))
    assert info.question is not None
    assert info.question.outcome == "refused", info.stop
    assert "exploring cannot narrow this" in info.stop


def test_a_load_beyond_the_rounds_takes_bursts(project: Project) -> None:
    """Sixty-four clients ask far more often than one does: three rounds of several users are added."""
    info = load_info(explored(project, "clients=64 pool:A=32"))
    assert info.question is not None
    assert info.question.users >= 2
    bursts = [w for w in info.windows if w.phase == "burst"]
    assert len(bursts) == info.question.rounds["burst"] >= 2
    assert {(w.clients, w.think_scale) for w in bursts} == {(info.question.users, 0.0)}


def branches(project: Project) -> tuple[str, ...]:
    """Return the activities that begin the branches of A; the first one leads to B."""
    model, _ = translate_with_plan(analyse_project(project), name="p", client="User")
    (fork,) = [p for p in model.task("A").entry("/x/").precedences if p.fork == "or"]
    return fork.post
