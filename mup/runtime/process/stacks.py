"""Stacks of all threads of a worker, logged on SIGUSR1.

They are written by faulthandler from inside the signal handler, so that a worker that is stuck in a library,
or keeps the interpreter to itself, shows where. Each process writes into a file in memory of its own, for on
standard error the lines of several would be mixed; the front reads them one after the other.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import tempfile
import time

__all__ = ["Stacks"]

PATIENCE = 2.0
"""Seconds a worker gets to begin; one that is stopped never does."""
QUIET = 0.05
"""Seconds without a further line after which a worker has said everything."""


class Stacks:
    """The stacks of one worker process; made by its front before the fork, and used on both sides."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self._descriptor = os.memfd_create("mup-stacks")
        else:
            with tempfile.TemporaryFile() as file:
                self._descriptor = os.dup(file.fileno())

    def fileno(self) -> int:
        """Return the descriptor, which the worker has to keep open."""
        return self._descriptor

    def register(self) -> None:
        """In the worker: write the stacks of all threads at every SIGUSR1."""
        faulthandler.register(signal.SIGUSR1, self._descriptor, all_threads=True)

    async def ask(self, pid: int) -> list[str]:
        """In the front: have a worker write its stacks; return the lines, none if it does not answer."""
        # Of its own: the process may end meanwhile, and its file be closed.
        descriptor = os.dup(self._descriptor)
        try:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.kill(pid, signal.SIGUSR1)
            size, since = 0, time.monotonic()
            # Nothing tells that a signal handler has ended: it has when nothing is added any more.
            while time.monotonic() - since < (QUIET if size else PATIENCE):
                await asyncio.sleep(0.01)
                now = os.fstat(descriptor).st_size
                if now != size:
                    size, since = now, time.monotonic()
            return os.pread(descriptor, size, 0).decode("utf-8", "replace").splitlines()
        except ProcessLookupError:
            return []
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """In the front: give the memory back."""
        os.close(self._descriptor)
