"""Give a project the databases it names.

``start_database`` starts the embedded one, or checks that the server behind a URI is there; then it fills it
with the project's data.
"""

from __future__ import annotations

import functools
import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mup.databases.address import checked_uri, database_of, server_of, with_database
from mup.environment import expand_uri
from mup.errors import DeploymentError
from mup.project import EMBEDDED, DatabaseConfig

__all__ = ["DatabaseServer", "start_database", "uri_of"]

START_SECONDS = 10.0
"""Until an embedded database answers; it takes half a second."""
PING_SECONDS = 2.0
"""For a server elsewhere to answer that it is there."""
FILL_SECONDS = 120.0
"""For the project's own loader."""


@dataclass(slots=True)
class DatabaseServer:
    """A database that answers, and what mup knows about its process.

    Attributes:
        name: What the project calls it.
        uri: Server and database; what services connect to.
        database: Name inside the server.
        embedded: Whether mup started it.
        pid: Its process if it runs on this host, else None: only then can its CPU time be charged.
        version: Of the server, for display.
    """

    name: str
    uri: str = field(repr=False)
    database: str
    embedded: bool
    pid: int | None
    version: str
    _process: subprocess.Popen[bytes] | None = None

    def alive(self) -> bool:
        """Whether the embedded server still runs; a foreign server counts as alive."""
        return self._process is None or self._process.poll() is None

    def stop(self) -> None:
        """Stop the server if mup started it; may be called again."""
        process, self._process = self._process, None
        if process is None:
            return
        # The end of its standard input is what it waits for.
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_database(config: DatabaseConfig, source: Path) -> DatabaseServer:
    """Start or check one database of a project, and fill it.

    Args:
        config: From ``mup.toml``.
        source: Folder from which ``config.load`` is imported.

    Raises:
        DeploymentError: The embedded server did not start, the server does not answer, or filling failed.
    """
    server = _start_embedded(config) if config.uri == EMBEDDED else _find(config)
    try:
        if config.load:
            _fill(config, server.uri, source)
    except BaseException:
        server.stop()
        raise
    return server


def uri_of(config: DatabaseConfig) -> str:
    """Return the URI of a server mup does not start: credentials filled in, name of the database included.

    Raises:
        DeploymentError: The URI refers to a variable that is not set, or it is malformed.
    """
    where = f"databases.{config.name}.uri"
    try:
        uri = checked_uri(expand_uri(config.uri, where))
    except ValueError as error:
        raise DeploymentError(str(error), where=where) from error
    return with_database(uri, database_of(uri) or config.database or config.name)


def _start_embedded(config: DatabaseConfig) -> DatabaseServer:
    where = f"databases.{config.name}"
    process = subprocess.Popen(
        [sys.executable, "-m", "mup.databases.embedded"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Its working folder must not hold a module that shadows one of ours.
        env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": _python_path()},
    )
    server = DatabaseServer(
        name=config.name,
        uri="",
        database=config.database or config.name,
        embedded=True,
        pid=process.pid,
        version="",
        _process=process,
    )
    try:
        ready = _first_line(process, START_SECONDS)
    except BaseException:
        server.stop()
        raise
    if "port" not in ready:
        server.stop()
        raise DeploymentError(
            f"the embedded database did not start: {ready.get('error', 'it ended without a word')}",
            where=where,
            hint="it needs nx-27017, and pysqlite3-binary (Linux on x86-64) or a Python with SQLite 3.45 or "
            "newer; or name a mongodb:// server as its uri",
        )
    server.uri = with_database(f"mongodb://127.0.0.1:{ready['port']}", server.database)
    server.version = f"SQLite {ready['sqlite']}"
    _notice(config.name)
    return server


@functools.cache
def _notice(name: str) -> None:
    """Tell, once per process and database, what the newcomer did not ask for."""
    print(  # noqa: T201
        f"mup: database {name!r} is the embedded one (in memory, one request at a time; "
        "set its uri to use a real MongoDB)",
        file=sys.stderr,
        flush=True,
    )


def _python_path() -> str:
    """Return where the parent imports from, so that the child finds the same mup in a checkout too."""
    package_folder = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(part for part in (package_folder, inherited) if part)


def _first_line(process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    deadline = time.monotonic() + seconds
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([process.stdout], [], [], max(deadline - time.monotonic(), 0.0))
        if not readable:
            return {"error": f"it was not ready after {seconds:g} s"}
        chunk = os.read(process.stdout.fileno(), 4096)
        if not chunk:
            return {"error": f"it ended with status {process.wait(timeout=3)}"}
        line += chunk
    answer: dict[str, Any] = json.loads(line)
    return answer


def _find(config: DatabaseConfig) -> DatabaseServer:
    # A launcher without databases does not load PyMongo.
    import pymongo  # noqa: PLC0415
    from pymongo.errors import PyMongoError  # noqa: PLC0415

    uri = uri_of(config)
    limit = int(PING_SECONDS * 1000)
    try:
        client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
            uri, serverSelectionTimeoutMS=limit, connectTimeoutMS=limit, socketTimeoutMS=limit, appname="mup"
        )
        with client:
            client.admin.command("ping")
            pid, version = _local_process(client)
    except (PyMongoError, ValueError) as error:
        raise DeploymentError(
            f"no database answers at {server_of(uri)}: {_reason(error)}",
            where=f"databases.{config.name}",
            hint="start it, correct its uri in mup.toml, or set uri = 'embedded'",
        ) from error
    return DatabaseServer(
        name=config.name, uri=uri, database=database_of(uri), embedded=False, pid=pid, version=version
    )


def _reason(error: Exception) -> str:
    return str(error).partition(", Timeout:")[0].partition(" (configured timeouts")[0]


def _local_process(client: Any) -> tuple[int | None, str]:
    """Return the server's process id if it is one of this host, and its version."""
    from pymongo.errors import PyMongoError  # noqa: PLC0415

    try:
        status = client.admin.command("serverStatus")
    except PyMongoError:
        # Not every account may ask.
        return None, ""
    version = f"{status.get('process', 'mongod')} {status.get('version', '')}".strip()
    pid = status.get("pid")
    host = str(status.get("host", "")).partition(":")[0]
    # A server in a container has another host name, and its pid means nothing here.
    if host != socket.gethostname() or not isinstance(pid, int):
        return None, version
    try:
        command = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return None, version
    return (int(pid) if command.startswith(("mongo", "nx", "python")) else None), version


def _fill(config: DatabaseConfig, uri: str, source: Path) -> None:
    where = f"databases.{config.name}.load"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mup.databases.load"],
            # Ctrl-C is for the command; it ends this one with itself.
            process_group=0,
            input=json.dumps({"uri": uri, "target": config.load, "source": str(source)}).encode(),
            stdout=subprocess.PIPE,
            timeout=FILL_SECONDS,
            env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": _python_path()},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DeploymentError(f"{config.load} did not end within {FILL_SECONDS:g} s", where=where) from error
    if done.stdout:
        raise DeploymentError(json.loads(done.stdout)["error"], where=where)
    if done.returncode:
        raise DeploymentError(f"{config.load} ended with status {done.returncode}", where=where)
