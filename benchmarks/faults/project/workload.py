"""A user who buys again and again, whatever happens, and writes down every answer."""

from __future__ import annotations

import json
import os
import time

from mup.communication import Communication
from mup.errors import CallError, CommunicationError
from mup.events.ids import child_id
from mup.workload.client import Client


class Buyer(Client):
    """Appends one JSON line per purchase to the file in ``MUP_FAULTS_SEEN``."""

    async def setup(self, comm: Communication) -> None:  # noqa: ARG002 - the interface
        """Open the file; lines are short enough to be appended in one piece."""
        self.seen = os.open(os.environ["MUP_FAULTS_SEEN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.think_seconds = float(os.environ["MUP_FAULTS_THINK"])
        self.run = f"{time.monotonic_ns():x}"
        self.count = 0

    async def scenario(self, comm: Communication) -> None:
        """Buy once."""
        self.count += 1
        order = f"{self.run}-{self.index}-{self.count}"
        began, status, text = time.monotonic(), 200, ""
        try:
            await comm.call("Shop", "/buy/", {"order": order})
        except CallError as error:
            status, text = error.status, str(error)
        except CommunicationError as error:
            status, text = 0, f"{type(error).__name__}: {error}"
        # Engine and scenario are one program: ids of calls follow from those of the cycle.
        request = f"{child_id(comm.request, 1):016x}"  # type: ignore[attr-defined]
        line = json.dumps([order, request, began, time.monotonic(), status, text])
        os.write(self.seen, f"{line}\n".encode())
        await self.think(self.think_seconds, "exponential")

    async def teardown(self, comm: Communication) -> None:  # noqa: ARG002 - the interface
        """Close the file."""
        os.close(self.seen)
