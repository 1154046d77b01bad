"""A real mongod that may be killed: what it has acknowledged is on its disk."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accuracy.mongod import mongod_binary, wait_for_mongod

__all__ = ["Mongod", "durable_mongod"]


class Mongod:
    """A server with a journal, on a port of its own.

    Args:
        binary: The program.
        folder: Where it keeps data and log.

    Attributes:
        uri: Server, database, and the wish that a write is in the journal before it is acknowledged: by
            default MongoDB acknowledges what a killed server loses.
    """

    def __init__(self, binary: Path, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self.uri = f"mongodb://127.0.0.1:{self._port}/shop?journal=true"
        self._log = folder / "mongod.log"
        self._command = [
            *(str(binary), "--dbpath", str(folder), "--bind_ip", "127.0.0.1", "--port", str(self._port)),
            *("--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"),
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        ]
        self.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def start(self) -> None:
        """Start it; return when it accepts connections.

        Raises:
            DeploymentError: It does not.
        """
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT)
        wait_for_mongod(self._process, self._port, self._log)

    def kill(self) -> None:
        """Kill it with -9."""
        self._process.kill()
        self._process.wait()


@contextmanager
def durable_mongod(folder: Path) -> Iterator[Mongod]:
    """Run a server.

    Raises:
        DeploymentError: The package is not installed, or the server does not start.
    """
    binary = mongod_binary()
    folder.mkdir(parents=True)
    server = Mongod(binary, folder)
    try:
        yield server
    finally:
        server.kill()
