"""Run a function of a measurement in a process of its own, and return its result.

Only for processes with one thread: the measurements themselves run in one (`analyzer.host.stage`).
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import Any

import msgspec

from mup.errors import DeploymentError

__all__ = ["Fork", "fork"]


class Fork:
    """A forked process that computes one result."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self._pipe = pipe

    def result(self) -> Any:
        """Wait for the end of the process and return what its function returned, as JSON values.

        Raises:
            DeploymentError: It failed.
        """
        with os.fdopen(self._pipe, "rb") as file:
            text = file.read()
        _, status = os.waitpid(self.pid, 0)
        if status or not text:
            raise DeploymentError(f"a process of the host measurement failed (status {status})")
        return msgspec.json.decode(text)


def fork(function: Callable[..., Any], *arguments: Any) -> Fork:
    """Start ``function(*arguments)`` in a copy of this process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Fork(pid, reading)
    status = 1
    try:
        os.close(reading)
        text = msgspec.json.encode(function(*arguments))
        with os.fdopen(writing, "wb") as file:
            file.write(text)
        status = 0
    except BaseException:  # noqa: BLE001  (nothing may escape into the copy of the caller)
        traceback.print_exc()
    finally:
        os._exit(status)
