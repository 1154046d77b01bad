"""Every request gets its own answer while workers are killed and pools change."""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from deployments import System, ask, make_project, running, wait_for
from prometheus_client.parser import text_string_to_metric_families as parse

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = '''
import asyncio
import hashlib
import time

from mup import EP, MS, Communication

PLAN = {"quick": 0.0, "late": 0.0, "slow": 0.003}


def answer(comm):
    """The body comes back, with what was read of it."""
    seen = hashlib.sha256(comm.body).hexdigest()
    return comm.body, 200, {"X-Tag": comm.headers["x-tag"], "X-Seen": seen}


class Processes(MS):
    pool_size = 3

    @EP("/echo/{plan}")
    def echo(self, comm: Communication) -> None:
        time.sleep(PLAN[comm.params["plan"]])
        if comm.params["plan"] == "late":
            comm.respond(*answer(comm))
            time.sleep(0.003)  # the worker is held
        else:
            comm.respond(*answer(comm))

    @EP("/fail")
    def fail(self, comm: Communication) -> None:
        raise ValueError(comm.headers["x-tag"])


class Threads(Processes):
    runtime = "thread"
    echo = EP("/echo/{plan}")(Processes.echo)
    fail = EP("/fail")(Processes.fail)


class Loop(MS):
    runtime = "async"
    pool_size = 3

    @EP("/echo/{plan}")
    async def echo(self, comm: Communication) -> None:
        await asyncio.sleep(PLAN[comm.params["plan"]])
        comm.respond(*answer(comm))
        if comm.params["plan"] == "late":
            await asyncio.sleep(0.003)

    @EP("/fail")
    async def fail(self, comm: Communication) -> None:
        raise ValueError(comm.headers["x-tag"])
'''

USERS = 6
KILLS = 4
PATHS = (*(("/echo/quick", "/echo/late", "/echo/slow") * 5), "/fail")
SIZES = (0, 1, 900, 16_300, 16_400, 70_000, 400_000)
"""Of bodies: around what a worker reads at once, and more than a socket holds."""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service of each runtime."""
    with running(
        make_project(tmp_path_factory.mktemp("stress"), SOURCE, "Processes", "Threads", "Loop")
    ) as system:
        yield system


class User(threading.Thread):
    """Asks on one connection after the other.

    Attributes:
        statuses: Of the answers.
        wrong: What should not have been.
    """

    numbers = itertools.count()

    def __init__(self, url: str, stop: threading.Event) -> None:
        super().__init__()
        self._parts = urlsplit(url)
        self._stop_asking = stop
        self._random = random.Random(next(self.numbers))
        self.statuses: Counter[int] = Counter()
        self.wrong: list[str] = []

    def run(self) -> None:
        """Ask until told to stop."""
        connection = http.client.HTTPConnection(self._parts.hostname or "", self._parts.port, timeout=20)
        while not self._stop_asking.is_set():
            tag = f"tag{next(self.numbers)}"
            body = self._random.randbytes(self._random.choice(SIZES))
            path = self._random.choice(PATHS)
            try:
                connection.request(
                    "POST", path, body, {"X-Tag": tag, "Content-Type": "application/octet-stream"}
                )
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(f"{path} with {len(body)} bytes: {error!r}")
                return
            self.statuses[response.status] += 1
            if response.status == 200:
                seen = hashlib.sha256(body).hexdigest()
                mine = (response.headers["X-Tag"], response.headers["X-Seen"], content) == (tag, seen, body)
            elif response.status == 500:
                mine = path == "/fail" and json.loads(content)["error"] == f"ValueError: {tag}"
            else:
                mine = response.status == 502 and json.loads(content)["error"].startswith(
                    "the worker was killed"
                )
            if not mine:
                self.wrong.append(f"{tag} {path}: {response.status} {response.headers} {content[:200]!r}")
        connection.close()


@pytest.mark.parametrize("service", ["Processes", "Threads", "Loop"])
def test_every_request_gets_its_own_answer(system: System, service: str) -> None:
    """Or 502, if its worker was killed; in the end no worker is busy, and the metrics have counted every answer."""
    url, stop = system.url(service), threading.Event()
    users = [User(url, stop) for _ in range(USERS)]
    for user in users:
        user.start()
    sizes = itertools.cycle((5, 2, 4, 3))
    try:
        for _ in range(KILLS):
            # Until all have served for a moment.
            before = system.status(service)["served"]
            wait_for(lambda low=before: system.status(service)["served"] > low + 60, 30)  # type: ignore[misc]
            change = json.dumps({"pool_size": next(sizes)}).encode()
            assert ask(url, "/mup/pool", change, Content_Type="application/json").status == 200
            victim = killed(system, service)
            wait_for(lambda pid=victim: recovered(system, service, pid), 30)  # type: ignore[misc]
    finally:
        stop.set()
        for user in users:
            user.join(40)
    assert [line for user in users for line in user.wrong] == []
    assert not any(user.is_alive() for user in users)
    # The worker that was let go may have been counted for the one that was killed, whose successor is on its way.
    status = wait_for(lambda: at_rest(now := system.status(service)) and now, 30)
    assert (len(status["workers"]), status["pool_size"]) == (3, 3)
    statuses = sum((user.statuses for user in users), Counter[int]())
    assert statuses[200] > KILLS * 60 / 2
    assert statuses == answered(system, service)
    # A worker that was killed behind its answer has not served its request to the end.
    assert statuses[502] <= status["errors"] - statuses[500] <= KILLS * 5


def killed(system: System, service: str) -> int:
    """Kill some worker, and return which; one that a smaller pool lets go may have ended before that."""
    while True:
        victim: int = random.choice(system.status(service)["workers"])
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            return victim


def recovered(system: System, service: str, victim: int) -> bool:
    """Whether there are as many workers as there should be, none of them in a process that was killed."""
    status = system.status(service)
    return victim not in status["workers"] and len(status["workers"]) == status["pool_size"]


def at_rest(status: dict[str, Any]) -> bool:
    """Whether no worker is busy, no request waits, and all workers are there."""
    return status["busy"] + status["queued"] == 0 and len(status["workers"]) == status["pool_size"]


def answered(system: System, service: str) -> Counter[int]:
    """Return how many answers of its endpoints a replica has counted, by status."""
    counts: Counter[int] = Counter()
    for family in parse(system.ask(service, "/mup/metrics").raw.decode()):
        for sample in family.samples:
            if sample.name == "mup_requests_total" and sample.labels["endpoint"]:
                counts[int(sample.labels["status"])] += int(sample.value)
    return counts


def test_a_loop_gives_back_what_its_workers_had(system: System) -> None:
    """A pool that has grown and shrunk leaves no descriptor behind, neither in the front nor in the loop."""
    front = system.status("Loop")["pid"]

    def descriptors() -> tuple[int, ...]:
        pids = (front, *sorted(set(system.status("Loop")["workers"])))
        return tuple(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)

    def resize(size: int) -> None:
        change = json.dumps({"pool_size": size}).encode()
        assert ask(system.url("Loop"), "/mup/pool", change, Content_Type="application/json").status == 200
        wait_for(lambda: len(system.status("Loop")["workers"]) == size)

    resize(1)
    time.sleep(0.2)  # connections of ours are closed
    before = descriptors()
    for _ in range(5):
        resize(20)
        resize(1)
    wait_for(lambda: descriptors() == before)
