"""Services on three machines, of which one loses its network and gets it back."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from faults.hosts import Network
from faults.system import System, wait_for, write_project

__all__ = ["CALL_SECONDS", "Cluster", "Visit", "cluster"]

CALL_SECONDS = 2.0
"""The deadline of the calls in ``project/gates.py``."""
ASKED = ("Gate/stock/", "Gate/notes/", "Door/stock/", "Door/notes/")
"""Blocking and awaiting callers; a service on both machines, and one on the machine that is cut off only."""


class Visit(NamedTuple):
    """One request to a gate; times in seconds of the monotonic clock."""

    asked: str
    began: float
    ended: float
    status: int
    answer: Any


@dataclass(slots=True)
class Cluster:
    """Machine 0: registry, gates and users. Machines 1 and 2: ``Stock``. Machine 2 also: ``Notes``.

    Attributes:
        network: Joins them.
        systems: What runs on each.
        file: Where users write down what they see.
    """

    network: Network
    systems: list[System]
    file: Path

    def visits(self) -> list[Visit]:
        """Return everything users have seen so far."""
        data = self.file.read_bytes()
        return [Visit(*json.loads(line)) for line in data[: data.rfind(b"\n") + 1].splitlines()]

    def await_statuses(self, asked: str, wanted: set[int], since: float, count: int = 10) -> float:
        """Wait until so many answers in a row, asked for after a moment, have one of the statuses.

        Returns:
            When the first of them was asked for.
        """

        def found() -> float:
            row: list[float] = []
            for visit in self.visits():
                if visit.asked == asked and visit.began >= since:
                    row = [*row, visit.began] if visit.status in wanted else []
            return row[0] if len(row) >= count else 0.0

        return wait_for(found, f"{count} answers of {asked} with {sorted(wanted)}", 90.0)

    def statuses(self, asked: str, first: float, last: float) -> Counter[int]:
        """Count the answers to what was asked between two moments."""
        return Counter(v.status for v in self.visits() if v.asked == asked and first <= v.began <= last)

    def slowest(self, first: float, last: float) -> float:
        """Return the longest time an answer took to what was asked between two moments."""
        return max(v.ended - v.began for v in self.visits() if first <= v.began <= last)


@contextmanager
def cluster(folder: Path, network: Network, *, expiry: float = 3.0) -> Iterator[Cluster]:
    """Run services on three machines, and users who ask all the time.

    Args:
        folder: Empty.
        network: Of three machines.
        expiry: Seconds of silence after which the registry gives up a replica.
    """
    env = {"MUP_REGISTRY_TOKEN": secrets.token_hex(8), "MUP_REGISTRY_EXPIRY": str(expiry)}
    home = network.address(0)
    project = write_project(folder / "shop", [])
    text = f'[project]\nname = "shop"\n[registry]\nport = 9099\nhost = "{home}"\n'
    for name, module in (("Gate", "gates"), ("Door", "gates"), ("Stock", "shop"), ("Notes", "gates")):
        text += f'[services.{name}]\nclass = "{module}:{name}"\nport = 0\n'
    (project / "mup.toml").write_text(text, encoding="utf-8")

    def machine(number: int, services: Sequence[str], *options: str) -> System:
        copy = project.with_name(f"machine{number}")
        project_here = _copied(project, copy)
        chosen = [word for name in services for word in ("--service", name)]
        words = [*chosen, "--host", network.address(number), *options]
        return System(project_here, options=words, env=env, prefix=network.prefix(number))

    with ExitStack() as stack:
        first = stack.enter_context(machine(0, ["Gate", "Door"]))
        join = ["--registry", first.registry, "--replicas", "Stock=1"]
        others = [
            machine(1, ["Stock"], *join),
            machine(2, ["Stock", "Notes"], *join, "--first-replica", "1"),
        ]
        pool = stack.enter_context(ThreadPoolExecutor())
        stack.callback(lambda: list(pool.map(System.stop, others)))
        list(pool.map(System.start, others))
        file = folder / "visits.jsonl"
        urls = [f"{first.first_urls(name)[0]}/{path}/" for name, path in _split(ASKED)]
        with file.open("wb") as seen:
            visitor = subprocess.Popen(
                [*network.prefix(0), sys.executable, str(Path(__file__).with_name("visitor.py")), *urls],
                stdin=subprocess.PIPE,
                stdout=seen,
            )
        try:
            running = Cluster(network, [first, *others], file)
            now = time.monotonic()
            for asked in ASKED:
                running.await_statuses(asked, {200}, now)
            yield running
        finally:
            visitor.kill()
            visitor.communicate()


def _split(asked: Sequence[str]) -> Iterator[tuple[str, str]]:
    for one in asked:
        service, path, _ = one.split("/")
        yield service, path


def _copied(project: Path, copy: Path) -> Path:
    copy.mkdir()
    for file in project.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    return copy
