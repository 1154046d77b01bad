"""Starting the embedded database, checking a foreign one, and filling either."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mup.databases.command import parse_command
from mup.databases.driver import open_driver
from mup.databases.server import DatabaseServer, start_database
from mup.errors import DeploymentError
from mup.project import DatabaseConfig

pytestmark = pytest.mark.services

SEED = """
def fill(database):
    print("filling")
    database.words.delete_many({})
    database.words.insert_many([{"_id": i} for i in range(3)])

def broken(database):
    raise ValueError("no words today")
"""


def _count(uri: str) -> int:
    driver = open_driver("db", uri)
    try:
        return driver.execute("words", parse_command({"$command": "count"}))[0]["count"]
    finally:
        driver.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "seed_words.py").write_text(SEED)
    return tmp_path


def _gone(pid: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_embedded_server_uses_its_own_sqlite(embedded: DatabaseServer) -> None:
    """It runs on pysqlite3, not on the system's SQLite, and says which version."""
    from pysqlite3 import sqlite_version

    assert embedded.version == f"SQLite {sqlite_version}"
    assert embedded.embedded
    assert embedded.database == "embedded"


def test_start_fill_stop(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The embedded server is filled by the project's function, announced in one line, and gone after stop."""
    # A name of its own: the announcement comes once per process and database.
    config = DatabaseConfig(name="announced", database="dictionary", load="seed_words:fill")
    server = start_database(config, source)
    try:
        assert server.uri.endswith("/dictionary")
        assert _count(server.uri) == 3
        assert server.alive()
        pid = server.pid
        assert pid is not None
    finally:
        server.stop()
    server.stop()
    assert _gone(pid)
    out, err = capfd.readouterr()
    assert out == ""
    assert [line for line in err.splitlines() if "embedded" in line] == [err.splitlines()[0]]


def test_a_failing_fill_leaves_nothing(source: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The user's exception is named, and the server just started is stopped again."""
    with pytest.raises(
        DeploymentError, match="seed_words:broken failed: ValueError: no words today"
    ) as caught:
        start_database(DatabaseConfig(name="db", load="seed_words:broken"), source)
    assert caught.value.where == "databases.db.load"
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    commands = [
        Path(f"/proc/{pid}/cmdline").read_bytes().count(b"mup.databases.embedded") for pid in children
    ]
    # At most the one the session's fixture has started.
    assert sum(commands) <= 1


def test_a_missing_fill_function(source: Path) -> None:
    """A wrong name is named together with the folder it was looked for in."""
    with pytest.raises(DeploymentError, match="cannot import 'seed_words:fil'"):
        start_database(DatabaseConfig(name="db", load="seed_words:fil"), source)


def test_a_real_mongod_is_found_and_its_process_known(mongod: Any, source: Path) -> None:
    """A server on this host is checked, filled, and its pid is known, so that its CPU can be charged."""
    config = DatabaseConfig(name="db", uri=mongod.uri, database="filled", load="seed_words:fill")
    server = start_database(config, source)
    assert server.uri == f"{mongod.uri}/filled"
    assert server.pid == mongod.pid
    assert server.version.startswith("mongod 6")
    assert _count(server.uri) == 3
    server.stop()
    assert _count(server.uri) == 3, "a server mup did not start must survive"


def test_a_dead_server_is_refused_within_three_seconds(source: Path) -> None:
    """Nothing listens at the URI: DeploymentError naming the address, no password, soon."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    start = time.monotonic()
    with pytest.raises(DeploymentError, match=f"no database answers at 127.0.0.1:{port}") as caught:
        start_database(DatabaseConfig(name="db", uri=f"mongodb://u:secret@127.0.0.1:{port}"), source)
    assert time.monotonic() - start < 3.0
    assert "secret" not in str(caught.value)


def test_the_embedded_server_dies_with_its_parent(tmp_path: Path) -> None:
    """A parent killed without a chance to clean up takes its database along."""
    script = (
        "import sys, time; from pathlib import Path\n"
        "from mup.databases.server import start_database\n"
        "from mup.project import DatabaseConfig\n"
        "print(start_database(DatabaseConfig(name='db'), Path('.')).pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    with parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    assert _gone(pid)
