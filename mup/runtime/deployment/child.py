"""Child process of the launcher: starts, reports that it is ready, and is sure to end.

A child reads its configuration from standard input and lives no longer than that stays open, so it never
survives the launcher, however that one dies. It prints one JSON line when it is ready, or why it is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mup.errors import DeploymentError

__all__ = ["Child"]


class Child:
    """One process of a deployment.

    Args:
        module: What to run: ``python -m module arguments``.
        arguments: Command line.
        where: What it is, for messages.
        first_line: Sent to its standard input, which stays open.
        env: Environment on top of the launcher's.
        pass_fds: Descriptors it inherits.
        foreground: Whether it may read from the terminal; then Ctrl-C goes to it, too.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        where: str,
        first_line: str = "",
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        foreground: bool = False,
    ) -> None:
        self._where = where
        self._process = subprocess.Popen(  # noqa: S603 - our own modules
            # -P: the folder the launcher runs in must not shadow any modules.
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(env or {}),
            pass_fds=pass_fds,
            # Ctrl-C goes to the launcher alone; it stops the others in order.
            process_group=None if foreground else 0,
        )
        if first_line:
            self._write(first_line + "\n")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def how_it_ended(self) -> str:
        """Describe the end of a process that is not alive."""
        code = self._process.wait()
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def ready(self, deadline: float) -> dict[str, Any]:
        """Wait for its JSON line.

        Args:
            deadline: Seconds of the monotonic clock.

        Raises:
            DeploymentError: It says that it cannot start, dies, or says nothing in time.
        """
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        line = b""
        while not line.endswith(b"\n"):
            seconds = max(deadline - time.monotonic(), 0.0)
            if not select.select([self._process.stdout], [], [], seconds)[0]:
                raise DeploymentError("is not ready in time", where=self._where)
            data = os.read(self._process.stdout.fileno(), 65536)
            if not data:
                raise DeploymentError(
                    f"the process {self.how_it_ended()} before it was ready", where=self._where
                )
            line += data
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            where = answer.get("where") or self._where
            raise DeploymentError(answer["error"], where=where, hint=answer.get("hint", ""))
        return answer

    def terminate(self) -> None:
        """Ask it to end."""
        if self.alive():
            self._process.terminate()

    def end(self, deadline: float) -> None:
        """Wait until it has ended; kill it at the deadline (seconds of the monotonic clock)."""
        try:
            self._process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(BrokenPipeError):  # it has died: ready() says how
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child, in which it finds the mup this is, installed or not."""
    package = str(Path(__file__).resolve().parents[3])
    path = os.pathsep.join(part for part in (package, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path, **env}
