"""Bad input ends in one clear message with exit code 2, no traceback, nothing half-written."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import activity, entry, run, saved, users
from command_line import model as small
from commands import completed
from repeating import repeats_after

from analyzer.calibration.rundir import RunInfo
from mup.lqn import (
    Activity,
    Call,
    Constant,
    Entry,
    Exponential,
    Model,
    Precedence,
    Processor,
    Task,
    save_model,
)
from mup.lqn.json_io import model_to_json

SERVICES = """\
from mup import EP, MS, Client, Communication

class A(MS):
    port = {port}

    @EP("/x/")
    def x(self, comm: Communication) -> None:
        {body}

class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.01)
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


def mup(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command: in this process, or with an environment in one of its own."""
    if env is None:
        return completed(*arguments)
    command = [sys.executable, "-m", "mup", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=env)


def refused(*arguments: str, env: dict[str, str] | None = None) -> str:
    """Run a command that must refuse; return its one message."""
    finished = mup(*arguments, env=env)
    assert finished.returncode == 2, (finished.stdout, finished.stderr)
    assert "Traceback" not in finished.stderr + finished.stdout
    return finished.stderr


def project(folder: Path, *, body: str = "comm.respond(1)", port: int = 0, toml: str = TOML) -> str:
    (folder / "services.py").write_text(SERVICES.format(body=body, port=port))
    (folder / "mup.toml").write_text(toml)
    return str(folder)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A small calibrated model: users call A and db."""
    zero = Constant(0.0)
    ask = Activity(name="ask", demand=zero, delay=zero, calls=(Call(task="Auth", entry="/x/"),))
    work = Activity(name="work", demand=Exponential(0.01), delay=zero)
    users = Task(
        name="User",
        role="reference",
        think=Exponential(0.1),
        entries=(Entry(name="scenario", start="ask", activities=(ask,)),),
    )
    auth = Task(name="Auth", threads=2, entries=(Entry(name="/x/", start="work", activities=(work,)),))
    path = tmp_path / "model.json"
    save_model(Model(name="m", tasks=(users, auth)), path)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["paths", "model", "explore"])
def test_source_that_does_not_parse(tmp_path: Path, command: str) -> None:
    """The message names file and line; `mup paths` ran and says no (exit 1), the others could not run (2)."""
    finished = mup(command, project(tmp_path, body="if comm.params"))
    assert finished.returncode == (1 if command == "paths" else 2)
    text = finished.stdout + finished.stderr
    assert "services.py:8" in text
    assert "Traceback" not in text


@pytest.mark.slow
def test_endpoint_without_respond(tmp_path: Path) -> None:
    """A model of an endpoint that may never answer is refused, with the place."""
    message = refused("explore", project(tmp_path, body="pass"))
    assert "MUP020" in message
    assert "services.py" in message


@pytest.mark.slow
def test_unknown_database(tmp_path: Path) -> None:
    """A query on a database the project does not have is found before anything runs."""
    body = 'comm.respond(comm.query("dictionary", "q", "tr", {}).get())'
    toml = TOML + '[databases.dictionry]\nuri = "embedded"\n'
    message = refused("explore", project(tmp_path, body=body, toml=toml))
    assert "MUP013" in message
    assert "did you mean 'dictionry'" in message


@pytest.mark.slow
@pytest.mark.services
def test_dead_database(tmp_path: Path) -> None:
    """A server that does not answer is named, in seconds."""
    toml = TOML + '[databases.db]\nuri = "mongodb://127.0.0.1:1"\n'
    message = refused(
        "load", project(tmp_path, toml=toml), "--clients", "1", "--duration", "1", env=dict(os.environ)
    )
    assert "127.0.0.1:1" in message


@pytest.mark.slow
@pytest.mark.services
def test_port_in_use(tmp_path: Path, family: Any) -> None:
    """The message names port and service; nothing is left running."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused("run", project(tmp_path, port=port), env=family.environment)
    assert str(port) in message
    assert "A" in message
    assert not family.alive()


@pytest.mark.slow
@pytest.mark.services
def test_registry_that_is_not_there(tmp_path: Path) -> None:
    """Attaching to a registry that is down names its URL."""
    message = refused(
        *("load", project(tmp_path), "--clients", "1", "--duration", "1", "--attach", "http://127.0.0.1:1"),
        env=dict(os.environ),
    )
    assert "http://127.0.0.1:1" in message


@pytest.mark.slow
def test_run_without_events(tmp_path: Path) -> None:
    """An empty log says so, and how to get a better one."""
    run = tmp_path / "run"
    run.mkdir()
    RunInfo(project="x").save(run)
    assert "mup explore" in refused("model", project(tmp_path), "--run", str(run))
    (run / "A.0.w0.mlog").write_bytes(b"")
    assert "A.0.w0.mlog" in refused("model", project(tmp_path), "--run", str(run))
    assert not (tmp_path / "model.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--clients", "0"), "0"),
        (("--clients", "-3"), "-3"),
        (("--pool", "Auth=0"), "0"),
        (("--replicas", "Auth=-1"), "-1"),
        (("--pool", "auth=2"), "did you mean 'Auth'"),
        (("--replicas", "Atuh=2"), "did you mean 'Auth'"),
        (("--cores", "host=2"), "host"),
        ((), "nothing to change"),
    ],
)
def test_impossible_what_ifs(model: str, options: tuple[str, ...], says: str) -> None:
    """Numbers below 1 and unknown names are refused, with the closest known name."""
    assert says in refused("whatif", model, *options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--clients", "0"), "0"),
        (("--clients", "1", "--pool", "A=0"), "0"),
        (("--clients", "1", "--pool", "a=2"), "did you mean 'A'"),
        (("--clients", "x"), "x"),
    ],
)
def test_impossible_loads(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    """Nothing is started for a load that cannot be."""
    assert says in refused("load", project(tmp_path), *options)
    assert not (tmp_path / ".mup").exists()


@pytest.mark.slow
def test_json_errors_are_json(model: str) -> None:
    """Under --json a failure is one document on stdout, exit code 2."""
    finished = mup("whatif", model, "--pool", "auth=2", "--json")
    assert finished.returncode == 2
    assert "did you mean" in json.loads(finished.stdout)["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "needs at least one service"),
        ("[services.A]\n", "class: is missing"),
        (TOML + "pool_size = 0\n", "pool_size"),
        (TOML + "colour = 1\n", "colour"),
        ("[project\n", "not TOML"),
    ],
    ids=["empty", "no-class", "pool-0", "unknown-field", "no-toml"],
)
def test_wrong_project_files(tmp_path: Path, text: str, says: str) -> None:
    """The message names file and field."""
    message = refused("explore", project(tmp_path, toml=text))
    assert says in message
    assert "mup.toml" in message


@pytest.mark.slow
def test_no_project_at_all(tmp_path: Path) -> None:
    """A folder without mup.toml is told from a broken one."""
    assert "mup.toml" in refused("explore", str(tmp_path / "nowhere"))


def test_unknown_commands_suggest_known_ones() -> None:
    """A typo costs one line."""
    assert "did you mean 'whatif'" in refused("what-if")


def test_a_model_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A target that cannot be written is named and no temporary file stays."""
    folder = tmp_path / "project"
    folder.mkdir()
    message = refused("model", project(folder), "--static", "-o", str(folder / "none" / "model.json"))
    assert "model.json" in message
    assert not list(folder.glob("**/*.tmp"))


@pytest.mark.slow
def test_outputs_are_checked_before_the_work(tmp_path: Path, model: str) -> None:
    """A report or table that could not be written is refused at once, not after minutes of simulation."""
    assert "folder does not exist" in refused(
        "whatif", model, "--clients", "2", "--csv", str(tmp_path / "x" / "y")
    )
    started = project(tmp_path)
    assert "folder does not exist" in refused("validate", started, "--report", str(tmp_path / "x" / "y"))


def test_outputs_do_not_replace_other_files(tmp_path: Path, model: str) -> None:
    """`mup model -o mup.toml` and `mup graph -o logo.svg`, which is no picture, would lose the user's work."""
    folder = project(tmp_path)
    assert "not overwritten" in refused("model", folder, "--static", "-o", str(tmp_path / "mup.toml"))
    (tmp_path / "logo.svg").write_text("notes")
    assert "not overwritten" in refused("graph", model, "-o", str(tmp_path / "logo.svg"))
    assert "SVG" in refused("graph", model, "-o", str(tmp_path / "services.py"))
    assert (tmp_path / "mup.toml").read_text() == TOML


def test_a_mean_that_is_not_the_values_mean(tmp_path: Path, model: str) -> None:
    """Editing the mean of measured values would have no effect, so it is an error."""
    data = json.loads(Path(model).read_text())
    work = data["tasks"][1]["entries"][0]["activities"][0]
    work["demand"] = {"family": "empirical", "mean": 5.0, "values": [0.1, 0.3]}
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(data))
    message = refused("simulate", str(edited))
    assert "demand.mean: 5.0 is not the mean of the values" in message


@pytest.mark.slow
@pytest.mark.services
@pytest.mark.parametrize(
    "number", repeats_after(1, [signal.SIGINT, signal.SIGKILL]), ids=["ctrl-c", "kill-9"]
)
def test_a_stopped_what_if_stops(model: str, family: Any, number: signal.Signals) -> None:
    """Simulations end with the command that asked for them, within seconds and without a traceback."""
    command = [sys.executable, "-m", "mup", "whatif", model, "--clients", "1,2,3,4", "--precision", "0.0001"]
    process = subprocess.Popen(
        command, env=family.environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 20
    while not family.alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3.0)  # simulating by now
    assert process.poll() is None
    os.killpg(process.pid, number) if number == signal.SIGINT else process.kill()
    assert process.wait(timeout=5) == (130 if number == signal.SIGINT else -9)
    deadline = time.monotonic() + 5
    while family.alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not family.alive()
    _, errors = process.communicate(timeout=5)
    assert "Traceback" not in errors


def edited(change: Callable[[Any], None]) -> dict[str, Any]:
    """Return the JSON of a good model (users call T.e) after a change that makes it a bad one."""
    data = model_to_json(good())
    change(data)
    return data


def good(*branches: Precedence) -> Model:
    """Return two users of one service."""
    parts = ("a", "b", "c", "d") if branches else ("a",)
    work = entry("e", *(activity(name, 0.01) for name in parts), arcs=branches)
    return small(users(Call(task="T", entry="e")), Task(name="T", entries=(work,)))


OR = Precedence(pre=("a",), post=("b", "c"), fork="or", probabilities=(0.5, 0.5))


def called(task: str) -> Callable[[Any], None]:
    """Return a change that makes T.e call an entry."""

    def change(data: Any) -> None:
        data["tasks"][1]["entries"][0]["activities"][0]["calls"] = [{"task": task, "entry": "e"}]

    return change


def probabilities(data: Any) -> None:
    data["tasks"][1]["entries"][0]["precedences"][0]["probabilities"] = [0.5, 0.3]


def choosing() -> dict[str, Any]:
    merged = Precedence(pre=("b", "c"), post=("d",), join="or")
    data = model_to_json(good(OR, merged))
    probabilities(data)
    return data


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("model.json", '{"schema": "mup-lqn/1", "name', "not JSON"),
        ("model.json", "", "not JSON"),
        ("model.json", "[1]", "a model is a JSON object"),
        ("model.lqnx", "<lqn-model><processor", "not XML"),
        ("model.lqnx", "", "not XML"),
        ("model.json", edited(called("T")), "synchronous calls form a cycle: T.e -> T.e"),
        ("model.json", edited(called("TT")), "calls[0]: no task is named 'TT'; did you mean 'T'?"),
        (
            "model.json",
            choosing(),
            "tasks['T'].entries['e'].precedences[0].probabilities: must be between 0 and 1 and sum to 1",
        ),
        ("model.json", edited(lambda data: data["tasks"].pop(0)), "has no reference task"),
    ],
    ids=[
        "cut json",
        "empty json",
        "list",
        "cut xml",
        "empty xml",
        "cycle",
        "unknown",
        "probabilities",
        "no load",
    ],
)
@pytest.mark.parametrize("command", ["simulate", "whatif"])
def test_models_that_break_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, name: str, data: Any, says: str
) -> None:
    """One message with the path of the element, exit code 2, nothing on stdout."""
    file = saved(tmp_path, data, name)
    code, out, err = run(capsys, command, file, *(["--pool", "T=2"] if command == "whatif" else []))
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("mup: error:") == 1


def released() -> Model:
    semaphore = (
        entry("e", activity("w", 0.01), token="release"),
        entry("f", activity("w", 0.01), token="acquire"),
    )
    return small(users(Call(task="T", entry="e")), Task(name="T", entries=semaphore))


def called_back() -> Model:
    t = (entry("e", activity("w", 0.01, Call(task="V", entry="v"))), entry("f", activity("w", 0.01)))
    v = entry("v", activity("w", 0.01, Call(task="T", entry="f")))
    return small(
        users(Call(task="T", entry="e")), Task(name="T", entries=t), Task(name="V", threads=9, entries=(v,))
    )


def without_time() -> Model:
    loop = Precedence(pre=("a",), post=("b", "c"), fork="loop", counts=(Constant(10**6),))
    body = entry("e", activity("a", 0), activity("b", 0), activity("c", 0), arcs=(loop,))
    return small(users(Call(task="T", entry="e"), think=None), Task(name="T", entries=(body,)))


def flooded() -> Model:
    return small(Task(name="T", entries=(entry("e", activity("w", 0.01), arrivals=Exponential(0.005)),)))


def unmeasured() -> Model:
    return small(users(Call(task="T", entry="e")), Task(name="T", entries=(entry("e", activity("w", None)),)))


def sized(**parts: Any) -> Model:
    return small(
        users(Call(task="T", entry="e"), clients=parts.pop("clients", 2)),
        Task(name="T", entries=(entry("e", activity("w", 0.01)),), **parts),
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (released(), "tasks['T']: a thread was given back at"),
        (called_back(), "tasks['T']: deadlock at"),
        (without_time(), "tasks['U']: a cycle takes no time at all"),
        (flooded(), "T.e: unstable"),
        (unmeasured(), "tasks['T'].entries['e'].activities['w'].demand"),
        (
            good(OR, Precedence(pre=("b", "c"), post=("d",), join="and")),
            "precedences[1]: this join can never complete",
        ),
        (sized(clients=10**12), "tasks['U']: 1000000000000 clients are too many"),
        (sized(replicas=10**9), "tasks['T']: 1000000000 replicas are too many"),
    ],
    ids=["token", "deadlock", "zero time", "unstable", "uncalibrated", "join", "clients", "replicas"],
)
def test_models_that_cannot_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], data: Model, says: str
) -> None:
    """What goes wrong while simulating is one message, too, and a JSON document under --json."""
    file = saved(tmp_path, data)
    code, out, err = run(capsys, "simulate", file)
    assert (code, out) == (2, "")
    assert says in err
    code, out, _ = run(capsys, "simulate", file, "--json")
    error = json.loads(out)["error"]
    assert code == 2
    # A list of what is missing is part of the message, a place of its own stands beside it.
    assert says in f"{error.get('where', '')}: {error['message']}"


def test_cores_that_threads_stick_to_have_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each such core has a queue of its own; a billion of them do not fit."""
    huge = Processor(name="P", cores=10**9, discipline="cores")
    base = sized()
    placed = replace(base, processors=(huge,), tasks=(base.tasks[0], replace(base.tasks[1], processor="P")))
    code, _, err = run(capsys, "simulate", saved(tmp_path, placed))
    assert code == 2
    assert "processors['P'].cores: 1000000000 cores" in err


@pytest.mark.slow
def test_a_million_clients_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Absurd but possible: figures come out, within seconds if little time is simulated."""
    file = saved(tmp_path, sized(clients=10**6))
    code, out, err = run(capsys, "simulate", file, "--horizon", "1", "--no-saturation", "--json")
    assert code == 0, err
    assert json.loads(out)["cycle"]["throughput"]["mean"] == pytest.approx(100, rel=0.4)
