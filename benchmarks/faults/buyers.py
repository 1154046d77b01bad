"""Users who go on whatever is done to the system, and what they have seen so far."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from faults.system import System, wait_for
from mup.errors import MupError
from mup.project import load_project
from mup.workload.driver import LoadDriver

__all__ = ["BROKEN", "Buyers", "Purchase", "buying"]

BROKEN = 0
"""Status of a purchase without an answer: the connection broke, or was not accepted."""


class Purchase(NamedTuple):
    """What a user saw of one purchase; times in seconds of the monotonic clock of this machine."""

    order: str
    request: str
    began: float
    ended: float
    status: int
    text: str


class Buyers:
    """Reads what the users write down.

    Args:
        file: Where they do.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._seen: list[Purchase] = []

    def seen(self) -> list[Purchase]:
        """Return every purchase that has ended so far, in that order."""
        if self._file.exists():
            with self._file.open("rb") as lines:
                lines.seek(self._offset)
                data = lines.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._offset += len(whole)
            self._seen += [Purchase(*json.loads(line)) for line in whole.splitlines()]
        return self._seen

    def since(self, moment: float) -> list[Purchase]:
        """Return the purchases that began after a moment and have ended."""
        return [purchase for purchase in self.seen() if purchase.began >= moment]

    def statuses(self, first: float, last: float) -> Counter[int]:
        """Count the answers that came between two moments by status."""
        return Counter(p.status for p in self.seen() if first <= p.ended <= last)

    def await_good(self, count: int, moment: float, seconds: float = 60.0) -> float:
        """Wait until so many purchases in a row, begun after a moment, succeed; return when the first began.

        Raises:
            TimeoutError: They do not.
        """

        def recovered() -> float:
            row: list[float] = []
            for purchase in self.since(moment):
                row = [*row, purchase.began] if purchase.status == 200 else []
            return min(row) if len(row) >= count else 0.0

        return wait_for(recovered, f"{count} purchases in a row", seconds)


@contextmanager
def buying(system: System, *, users: int, think: float = 0.05, seconds: float = 3600.0) -> Iterator[Buyers]:
    """Let users buy until the end of the block.

    Args:
        system: Where they buy.
        users: How many.
        think: Mean seconds between two purchases of one user.
        seconds: The longest time the block takes.
    """
    file = system.project / f"seen-{time.monotonic_ns()}.jsonl"
    buyers = Buyers(file)
    env = {"MUP_FAULTS_SEEN": str(file), "MUP_FAULTS_THINK": str(think)}
    with LoadDriver(load_project(system.project), system.registry, system.logs, env=env) as driver:

        def run() -> None:
            # It ends with an error when it is killed; if it ends by itself, there are no sales, which shows.
            with suppress(MupError):
                driver.run(users, seconds)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            buyers.await_good(users, 0.0)
            yield buyers
        finally:
            # Purchases under way are given up: their users never learn what came of them.
            if thread.is_alive():
                os.kill(driver.pid, signal.SIGKILL)
            thread.join()
