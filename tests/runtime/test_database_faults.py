"""Services survive the death of their database, and keep its password secret."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pymongo
import pytest
from deployments import System, ask, make_project, running, wait_for
from mongods import OwnMongod
from steady_load import load

from mup.events.reader import read_log
from mup.events.record import FAILED, Event
from mup.project import DatabaseConfig

pytestmark = pytest.mark.services

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """
from mup import EP, MS, Communication


class Reader(MS):
    pool_size = 2

    @EP("/read/")
    def read(self, comm: Communication) -> None:
        comm.respond(comm.query("db", "all", "words", {}).get())


class Threads(Reader):
    runtime = "thread"


class Loop(MS):
    runtime = "async"
    pool_size = 2

    @EP("/read/")
    async def read(self, comm: Communication) -> None:
        comm.respond(await comm.query("db", "all", "words", {}))
"""


@contextmanager
def reading(folder: Path, service: str, uri: str) -> Iterator[System]:
    """A service that reads a database."""
    project = make_project(folder, SOURCE, service)
    with running(replace(project, databases=(DatabaseConfig(name="db", uri=uri),))) as system:
        assert system.ask(service, "/read/").status == 200
        yield system


@pytest.mark.slow
@pytest.mark.parametrize("service", ["Reader", "Threads", "Loop"])
def test_mongod_killed_under_load(tmp_path: Path, own_mongod: OwnMongod, service: str) -> None:
    """Queries of a killed server fail with a clear error, soon, and work within 2 s of its return."""
    with (
        reading(tmp_path, service, own_mongod.uri) as system,
        load(lambda: system.ask(service, "/read/")) as users,
    ):
        users.await_answers(10)
        own_mongod.kill()
        killed = time.monotonic()
        try:
            wait_for(lambda: len(users.bad(killed)) >= 3, 20)
        finally:
            own_mongod.start()
        back = time.monotonic()
        wait_for(lambda: [1 for began, _, answer in users.since(back) if answer.status == 200])
        assert time.monotonic() - back < 2.0
        settled = time.monotonic()
        users.await_answers(10)
    assert users.bad(settled) == []
    assert {answer.status for answer in users.bad()} == {503}
    errors = {answer.body["error"] for answer in users.bad()}
    assert all("database 'db'" in error for error in errors), errors
    # Two looks for the server of 2 s each, for there are more users than workers and a request may wait for
    # another one's; and what this machine adds.
    assert users.slowest(killed) < 7.0
    logged = [read_log(file).records for file in sorted(system.logs.glob(f"{service}.0.w*.mlog"))]
    ends = [record for records in logged for record in records if record["event"] == Event.COMM_FINISH]
    assert sum(bool(record["flags"] & FAILED) for record in ends) >= len(users.bad())
    starts = sum(int((records["event"] == Event.COMM_START).sum()) for records in logged)
    assert starts == len(ends), "every query is logged"


PASSWORD = "p@ss/w:rd?#%41"


@pytest.fixture
def secured(secured_mongod: OwnMongod) -> OwnMongod:
    """A server with one user, whose password has every character that means something in a URI."""
    with pymongo.MongoClient(secured_mongod.uri) as client:
        client.admin.command("createUser", "app", pwd=PASSWORD, roles=["root"])
    return secured_mongod


@pytest.mark.slow
def test_a_password_stays_where_it_belongs(
    tmp_path: Path, secured: OwnMongod, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services log in with a password of the environment; no listing, log, command line or message has it."""
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    make_project(tmp_path, SOURCE, "Reader")
    (tmp_path / "mup.toml").write_text(
        '[registry]\nport = 0\n[services.Reader]\nclass = "shop:Reader"\n'
        f'[databases.db]\nuri = "mongodb://app:${{DB_PASSWORD}}@127.0.0.1:{secured.port}"\n'
    )
    logs = tmp_path / "logs"
    with mup("run", str(tmp_path), "--json", "--log", str(logs)) as command:
        assert command.stdout
        shown = ""
        while not shown.endswith("}\n") or shown.count("{") != shown.count("}"):
            shown += command.stdout.readline()
        described = json.loads(shown)
        reader = described["services"]["Reader"]["replicas"][0]
        assert ask(reader, "/read/").status == 200
        token = {"Authorization": f"Bearer {Path(described['token_file']).read_text()}"}
        listing = ask(described["registry"], "/databases", **token).raw.decode()
        assert json.loads(listing) == {
            "databases": {"db": f"mongodb://127.0.0.1:{secured.port}/db?authSource=admin"}
        }
        with mup("services", "--registry", described["registry"]) as listed:
            table = "".join(listed.communicate(timeout=30))
        assert f"127.0.0.1:{secured.port}" in table
        pids = [
            ask(reader, "/mup/status", **token).body["pid"],
            *ask(reader, "/mup/status", **token).body["workers"],
            command.pid,
        ]
        lines = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
        # The server does not know the user any more: what its refusal says is shown, too.
        with pymongo.MongoClient(secured.uri, username="app", password=PASSWORD) as client:
            client.admin.command("dropUser", "app")
        for pid in pids[1:-1]:
            os.kill(pid, signal.SIGKILL)  # new workers log in anew
        failed = wait_for(lambda: (answer := ask(reader, "/read/")).status == 500 and answer)
        assert "Authentication failed" in failed.body["error"]
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=30)
    files = b"".join(file.read_bytes() for file in logs.iterdir())
    for text in (
        shown,
        listing,
        table,
        failed.raw.decode(),
        out,
        err,
        lines.decode(),
        files.decode("latin-1"),
    ):
        assert PASSWORD not in text
        assert "p%40ss" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uri", "says"),
    [
        pytest.param("mongodb://app:${DB_PASSWORD}@127.0.0.1:1/x", "DB_PASSWORD is not set", id="unset"),
        pytest.param("mongodb://app:hush@127.0.0.1:1/x", "no database answers at 127.0.0.1:1", id="dead"),
        pytest.param("mongodb://app:hu/sh@127.0.0.1:1/x", "percent-encoded", id="malformed"),
        pytest.param("postgres://app:hush@127.0.0.1:1/x", "mongodb://, got 'postgres'", id="scheme"),
        pytest.param("app:hush@127.0.0.1:1/x", "must be 'embedded'", id="no-uri"),
    ],
)
def test_errors_at_the_start_show_no_password(tmp_path: Path, uri: str, says: str) -> None:
    """Whatever is wrong with a URI, the message names the setting or the server, and no secret."""
    make_project(tmp_path, SOURCE, "Reader")
    (tmp_path / "mup.toml").write_text(
        f'[registry]\nport = 0\n[services.Reader]\nclass = "shop:Reader"\n[databases.db]\nuri = "{uri}"\n'
    )
    with mup("run", str(tmp_path)) as command:
        out, err = command.communicate(timeout=60)
    assert command.returncode == 2
    assert says in err
    assert "hu" not in (out + err).replace("authSource", "")


@contextmanager
def mup(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command line in a process of its own."""
    command = subprocess.Popen(
        [sys.executable, "-m", "mup", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
    )
    try:
        yield command
    finally:
        command.kill()
        command.communicate()
