"""A deployment starts completely or not at all, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deployments import ask, make_project, running, wait_for

from mup.errors import DeploymentError, UsageError
from mup.project import DatabaseConfig, load_project
from mup.runtime.deployment.launcher import Deployment

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """
import sys
from pathlib import Path
from mup import EP, MS

class Good(MS):
    pool_size = 2

    def setup(self):
        Path(__file__).with_name("log").open("a").write("setup " + self.service_name + "\\n")

    def teardown(self):
        Path(__file__).with_name("log").open("a").write("teardown\\n")

    @EP("/x/")
    def x(self, comm):
        comm.respond("x")

class NoEndpoint(MS):
    pass

class Empty(Good):
    pool_size = 0

class Threads(Good):
    runtime = "green"

class Async(MS):
    @EP("/x/")
    async def x(self, comm):
        comm.respond("x")

class Reserved(MS):
    @EP("/mup/x")
    def x(self, comm):
        comm.respond("x")

class Double(Good):
    @EP("/x/")
    def y(self, comm):
        comm.respond("y")

class BadSetup(Good):
    def setup(self):
        1 / 0

class DeadSetup(Good):
    def setup(self):
        import os
        os._exit(4)

class NotAService:
    pass
"""


def children_of(pids: set[int]) -> set[int]:
    """Return the processes whose parents are among ``pids``, and theirs."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) in pids and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found | children_of(found) if found else found


def alive(pids: set[int]) -> set[int]:
    """Return the processes that exist and are no zombies."""
    found = set()
    for pid in pids:
        try:
            if "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
                found.add(pid)
        except OSError:
            pass
    return found


def free_port(count: int = 1) -> int:
    """Return the first of ``count`` ports without a listener, below those that connections are given."""
    for first in range(20_000 + os.getpid() % 10_000, 32_000):
        with ExitStack() as probes, suppress(OSError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free port")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("NoEndpoint", "has no endpoint", id="no-endpoint"),
        pytest.param("Empty", "pool_size must be a whole number between 1 and 1024, got 0", id="pool-size"),
        pytest.param("Threads", "runtime must be one of process, thread, async, got 'green'", id="runtime"),
        pytest.param("Async", "an 'async def' endpoint needs the async runtime", id="async-endpoint"),
        pytest.param("Reserved", "path '/mup/x' is reserved", id="reserved-path"),
        pytest.param("Double", "path '/x/' is already served by 'x'", id="same-path"),
        pytest.param("BadSetup", "setup failed: ZeroDivisionError", id="setup-fails"),
        pytest.param("DeadSetup", "died during its setup", id="setup-dies"),
        pytest.param("NotAService", "is not a subclass of mup.MS", id="no-service"),
        pytest.param("Missing", "'Missing' does not exist", id="no-class"),
    ],
)
def test_service_that_cannot_start(tmp_path: Path, name: str, says: str) -> None:
    """A class that cannot be served is a DeploymentError with its name, and nothing stays running."""
    before = children_of({os.getpid()})
    with pytest.raises(DeploymentError, match=re.escape(says)) as caught:
        Deployment(make_project(tmp_path, SOURCE, name)).start()
    assert name in str(caught.value)
    assert children_of({os.getpid()}) <= before


def test_module_that_does_not_parse(tmp_path: Path) -> None:
    """A syntax error in the user's module is named, with file and line."""
    with pytest.raises(DeploymentError, match=r"cannot import 'shop'.*SyntaxError.*shop.py, line 1"):
        Deployment(make_project(tmp_path, "class A(:", "A")).start()


def test_port_in_use(tmp_path: Path) -> None:
    """A port that is in use is named with its service."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(DeploymentError, match=f"port {port} of replica 0 is in use") as caught:
            Deployment(make_project(tmp_path, SOURCE, "Good", port=port)).start()
        assert caught.value.where == "services.Good"
        project = replace(make_project(tmp_path, SOURCE, "Good"), registry_port=port)
        with pytest.raises(DeploymentError, match=f"port {port} of the registry"):
            Deployment(project).start()


def test_replicas_listen_on_consecutive_ports(tmp_path: Path) -> None:
    """Replica i listens on port + i; pool and replicas can be overridden."""
    port = free_port(2)
    project = make_project(tmp_path, SOURCE, "Good", port=port)
    with running(project, pools={"Good": 1}, replicas={"Good": 2}) as system:
        assert [r.url for r in system.deployment.replicas()] == [
            f"http://127.0.0.1:{port}",
            f"http://127.0.0.1:{port + 1}",
        ]
        info = system.deployment.services()["Good"]
        assert (info.pool_size, info.replicas) == (1, 2)
        for replica in range(2):
            assert ask(system.url("Good", replica), "/x/").raw == b"x"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"pools": {"Goof": 2}}, "did you mean 'Good'", id="unknown-pool"),
        pytest.param({"replicas": {"": 2}}, "known: Good", id="unknown-replicas"),
        pytest.param({"pools": {"Good": 0}}, ">= 1, got 0", id="zero"),
        pytest.param({"replicas": {"Good": -1}}, ">= 1, got -1", id="negative"),
    ],
)
def test_wrong_overrides(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    """Pools and replicas of unknown services or below 1 are refused before anything starts."""
    with pytest.raises(UsageError, match=says):
        Deployment(make_project(tmp_path, SOURCE, "Good"), **options)


def test_setup_and_teardown_run_per_worker(tmp_path: Path) -> None:
    """Each worker sets up once and tears down once, also when it never served."""
    with running(make_project(tmp_path, SOURCE, "Good")):
        pass
    lines = (tmp_path / "log").read_text().splitlines()
    assert sorted(lines) == ["setup Good", "setup Good", "teardown", "teardown"]


def test_stop_is_quick_complete_and_repeatable(tmp_path: Path) -> None:
    """Stopping ends every process and frees every port; stopping again does nothing."""
    before = children_of({os.getpid()})
    deployment = Deployment(make_project(tmp_path, SOURCE, "Good"))
    deployment.start()
    pids = {p.pid for p in deployment.processes()}
    (replica,) = deployment.replicas()
    started = time.monotonic()
    deployment.stop()
    deployment.stop()
    assert time.monotonic() - started < 2
    assert alive(pids) == set()
    assert children_of({os.getpid()}) <= before
    with socket.socket() as again:
        # Closed connections linger in the kernel; this still refuses a port with a listener.
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", int(replica.url.rpartition(":")[2])))


def write_project(folder: Path) -> Path:
    """Write a project with a mup.toml on any free ports."""
    make_project(folder, SOURCE, "Good")
    (folder / "mup.toml").write_text('[registry]\nport = 0\n[services.Good]\nclass = "shop:Good"\n')
    return folder


def start_command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run ``mup run`` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "mup", "run", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_command_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM end `mup run` with status 0 and leave no process."""
    command = start_command(write_project(tmp_path))
    try:
        assert command.stdout
        head = [command.stdout.readline()]
        while head[-1] and not head[-1].startswith("registry"):
            head.append(command.stdout.readline())
        pids = children_of({command.pid})
        # Registry, front, two workers; for a moment also the analysis of the source.
        assert len(pids) in (4, 5)
        command.send_signal(number)
        out, err = command.communicate(timeout=10)
    finally:
        command.kill()
    assert command.returncode == 0
    assert "Good" in "".join(head)
    assert "http://127.0.0.1:" in "".join(head)
    assert "registry" in out + "".join(head)
    assert "stopped" in err
    assert "Traceback" not in err
    assert alive(pids) == set()


def test_nothing_survives_a_killed_launcher(tmp_path: Path) -> None:
    """When `mup run` is killed with -9, everything it started ends by itself."""
    command = start_command(write_project(tmp_path), "--json")
    try:
        assert command.stdout
        text = ""
        while not text.endswith("}\n") or text.count("{") != text.count("}"):
            text += command.stdout.readline()
        described = json.loads(text)
        assert described["services"]["Good"]["pool_size"] == 2
        assert ask(described["services"]["Good"]["replicas"][0], "/x/").raw == b"x"
        pids = children_of({command.pid})
        assert len(pids) in (4, 5), (
            "the registry, a replica, its workers; for a moment also the analysis of the source"
        )
    finally:
        command.kill()
        command.communicate()
    wait_for(lambda: not alive(pids))


def test_run_command_supervises(tmp_path: Path) -> None:
    """A replica that dies is reported and restarted."""
    command = start_command(write_project(tmp_path), "--json")
    try:
        assert command.stdout
        assert command.stderr
        text = ""
        while not text.endswith("}\n") or text.count("{") != text.count("}"):
            text += command.stdout.readline()
        described = json.loads(text)
        url = described["services"]["Good"]["replicas"][0]
        token = Path(described["token_file"]).read_text()
        time.sleep(1.0)
        status = ask(url, "/mup/status", Authorization=f"Bearer {token}").body
        os.kill(status["pid"], signal.SIGKILL)
        lines = [command.stderr.readline(), command.stderr.readline()]
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=10)
    finally:
        command.kill()
    assert "Good.0" in lines[0]
    assert "was killed by SIGKILL" in lines[0]
    assert "was restarted" in lines[1]
    assert command.returncode == 0


def test_run_command_refuses_bad_options(tmp_path: Path) -> None:
    """A wrong --pool is a usage error with a hint."""
    from mup.cli.services.run import command

    write_project(tmp_path)
    result = CliRunner().invoke(command, [str(tmp_path), "--pool", "Good"])
    assert isinstance(result.exception, UsageError)
    assert "must be NAME=N" in str(result.exception)
    result = CliRunner().invoke(command, [str(tmp_path), "--pool", "Goo=2"])
    assert "did you mean 'Good'" in str(result.exception)


def test_replica_alone_needs_a_registry(tmp_path: Path) -> None:
    """A replica started by hand says which registry does not answer, and exits with status 2."""
    make_project(tmp_path, SOURCE, "Good")
    port = free_port()
    config = {
        "service": "Good",
        "target": "shop:Good",
        "source": str(tmp_path),
        "registry": f"http://127.0.0.1:{port}",
        "registry_patience": 0.1,
    }
    done = subprocess.run(
        [sys.executable, "-m", "mup.runtime.replica", json.dumps(config)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert f"the registry at http://127.0.0.1:{port} does not answer" in json.loads(done.stdout)["error"]
    assert "Traceback" not in done.stderr


def test_replica_refuses_a_wrong_configuration(tmp_path: Path) -> None:
    """A configuration with an unknown field is refused by name."""
    done = subprocess.run(
        [sys.executable, "-m", "mup.runtime.replica", '{"service": "A", "colour": 1}'],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert "configuration is wrong" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("runtime", ["process", "thread", "async"])
def test_no_request_waits_for_a_driver_to_be_imported(tmp_path: Path, runtime: str) -> None:
    """With databases in the project a fresh worker has their drivers; without, it carries none."""
    source = f"""
import sys
from mup import EP, MS

class Fresh(MS):
    runtime = {runtime!r}
    @EP("/loaded/")
    {"async " if runtime == "async" else ""}def loaded(self, comm):
        comm.respond("pymongo" in sys.modules)
"""
    project = make_project(tmp_path, source, "Fresh")
    with_database = replace(project, databases=(DatabaseConfig(name="db"),))
    for deployed, loaded in ((project, False), (with_database, True)):
        with running(deployed) as system:
            assert system.ask("Fresh", "/loaded/").body is loaded


def test_embedded_database_is_part_of_the_deployment(tmp_path: Path) -> None:
    """A database of the project is started, registered, queried in parallel with a call, and stopped."""
    source = """
from mup import EP, MS

class Reader(MS):
    @EP("/read/")
    def read(self, comm):
        row = comm.query("db", "one", "words", {"_id": comm.params["word"]})
        comm.respond(row.get())
"""
    make_project(tmp_path, source, "Reader")
    (tmp_path / "fill.py").write_text(
        "def fill(db):\n    db.words.insert_one({'_id': 'house', 'text': 'Haus'})\n"
    )
    (tmp_path / "mup.toml").write_text(
        '[services.Reader]\nclass = "shop:Reader"\n[databases.db]\nload = "fill:fill"\n'
    )
    with running(load_project(tmp_path).with_any_ports()) as system:
        answer = system.ask("Reader", "/read/?word=house")
        assert answer.body == [{"_id": "house", "text": "Haus"}]
        database = system.deployment.databases()["db"]
        assert database.embedded
        assert ("database", "db") in {(p.role, p.service) for p in system.deployment.processes()}
    assert database.pid is not None
    assert alive({database.pid}) == set()
