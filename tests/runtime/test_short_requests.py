"""Each of many short requests gets its own answer, with every runtime and dying workers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from deployments import System, make_project, running
from prometheus_client.parser import text_string_to_metric_families as parse

pytestmark = [pytest.mark.services, pytest.mark.slow]

SOURCE = """
import os
import signal

from mup import EP, MS, Communication

class Process(MS):
    @EP("/number/")
    def number(self, comm: Communication, number: int) -> None:
        comm.respond(number)

    @EP("/die/")
    def die(self, comm: Communication) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

class Processes(Process):
    pool_size = 3

class Threads(Processes):
    runtime = "thread"

class Loop(MS):
    runtime = "async"
    pool_size = 3

    @EP("/number/")
    async def number(self, comm: Communication, number: int) -> None:
        comm.respond(number)
"""

SERVICES = ("Process", "Processes", "Threads", "Loop")
USERS, REQUESTS = 24, 60


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service of each kind."""
    with running(make_project(tmp_path_factory.mktemp("short"), SOURCE, *SERVICES)) as system:
        yield system


async def user(address: tuple[str, int], numbers: range, deadly: int) -> Counter[str]:
    """Ask for some numbers, one after the other over one connection; return how often there was which answer.

    Instead of the deadly number it asks its worker to die.
    """
    seen: Counter[str] = Counter()
    reader, writer = await asyncio.open_connection(*address)
    for number in numbers:
        target = "/die/" if number == deadly else f"/number/?number={number}"
        writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        body = (await reader.readexactly(length)).decode()
        seen["right" if body == str(number) else head.split()[1]] += 1
    writer.close()
    return seen


def asked(system: System, service: str, deadly: int = -1) -> Counter[str]:
    """Have users ask for numbers, each for others."""
    parts = urlsplit(system.url(service))

    async def ask() -> Counter[str]:
        async with asyncio.timeout(60):
            ranges = [range(first, first + REQUESTS) for first in range(0, USERS * REQUESTS, REQUESTS)]
            address = (parts.hostname or "", parts.port or 0)
            return sum(
                await asyncio.gather(*(user(address, numbers, deadly) for numbers in ranges)), Counter()
            )

    return asyncio.run(ask())


@pytest.mark.parametrize("service", SERVICES)
def test_each_gets_its_own_answer(system: System, service: str) -> None:
    """The front has counted each once, as served and as one that had a worker."""
    assert asked(system, service) == {"right": USERS * REQUESTS}
    system.settle(service)
    assert system.status(service)["served"] == USERS * REQUESTS
    samples = [s for f in parse(system.ask(service, "/mup/metrics").raw.decode()) for s in f.samples]
    counts = {s.name: s.value for s in samples}
    assert counts["mup_queue_seconds_count"] == USERS * REQUESTS
    assert (counts["mup_in_flight"], counts["mup_queue_length"], counts["mup_workers_busy"]) == (0, 0, 0)


@pytest.mark.parametrize("service", ["Process", "Processes"])
def test_a_worker_that_dies_takes_one_request_along(tmp_path: Path, service: str) -> None:
    """The one it had; those that waited are served by others, or by its successor."""
    with running(make_project(tmp_path, SOURCE, service)) as system:
        seen = asked(system, service, deadly=USERS * REQUESTS // 2 + 10)
    assert seen == {"right": USERS * REQUESTS - 1, "502": 1}
