"""Real MongoDB servers that tests may treat badly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path


class CannotRunError(Exception):
    """No mongod runs on this machine."""


class OwnMongod:
    """A mongod on a port of its own, without anything on disk that survives it.

    Attributes:
        uri: Where it listens, without database.
        port: Where it listens.
        pid: Its process.
    """

    def __init__(self, binary: Path, folder: Path, options: Sequence[str] = ()) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.uri = f"mongodb://127.0.0.1:{self.port}"
        self._command = [
            *(str(binary), "--dbpath", str(folder), "--bind_ip", "127.0.0.1", "--port", str(self.port)),
            *("--storageEngine", "ephemeralForTest", "--nounixsocket", *options),
        ]
        self._log = folder / "out.txt"
        self.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it accepts connections.

        Raises:
            CannotRunError: It does not.
        """
        with self._log.open("wb") as out:
            try:
                self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT)
            except OSError as error:
                raise CannotRunError(f"it cannot be executed: {error}") from error
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    lines = self._log.read_text(errors="replace").strip().splitlines()
                    last = lines[-1] if lines else self._process.returncode
                    raise CannotRunError(f"it did not start: {last}") from error
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill it with -9."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Let it hang; return when it does."""
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + 10
        while any(
            ") T" not in (thread / "stat").read_text() for thread in Path(f"/proc/{self.pid}/task").iterdir()
        ):
            assert time.monotonic() < deadline, "it does not stop"
            time.sleep(0.01)

    def go_on(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """End it, whatever has been done to it."""
        self.go_on()
        self._process.terminate()
        self._process.wait(timeout=20)
