"""Calls and queries of an event loop as tasks of asyncio, of real services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from deployments import System, make_project, running

from mup.project import DatabaseConfig

SOURCE = """
import asyncio
import time

from mup import EP, MS, Communication
from mup.errors import CallError


class Back(MS):
    pool_size = 4

    @EP("/slow/")
    def slow(self, comm: Communication) -> None:
        time.sleep(float(comm.params.get("seconds", 0.2)))
        comm.respond(comm.params.get("text", ""))

    @EP("/broken/")
    def broken(self, comm: Communication) -> None:
        raise ValueError("broken on purpose")


class Loop(MS):
    runtime = "async"
    pool_size = 4

    @EP("/tasks/")
    async def tasks(self, comm: Communication) -> None:
        tasks = [asyncio.create_task(comm.call("Back", "/slow/", {"text": t})) for t in "ab"]
        comm.respond([await task for task in tasks])

    @EP("/group/")
    async def group(self, comm: Communication) -> None:
        async with asyncio.TaskGroup() as group:
            call = group.create_task(comm.call("Back", "/slow/", {"text": "c"}))
            query = group.create_task(comm.query("db", "find", "words", {}))
        comm.respond([call.result(), query.result()])

    @EP("/late/")
    async def late(self, comm: Communication) -> None:
        slow = asyncio.create_task(comm.call("Back", "/slow/", {"seconds": 0.6}))
        quick = asyncio.create_task(comm.call("Back", "/slow/", {"seconds": 0.01, "text": "d"}))
        done, late = await asyncio.wait([slow, quick], timeout=0.3)
        for task in late:
            task.cancel()
        comm.respond([[task.result() for task in done], len(late)])

    @EP("/cancelled/")
    async def cancelled(self, comm: Communication) -> None:
        call = comm.call("Back", "/slow/", {"text": "e"})
        task = asyncio.create_task(call)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            comm.respond([await call])

    @EP("/failed/")
    async def failed(self, comm: Communication) -> None:
        try:
            await asyncio.create_task(comm.call("Back", "/broken/"))
        except CallError as error:
            comm.respond(error.status)
"""

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A service with an event loop, and what it calls."""
    project = make_project(tmp_path_factory.mktemp("tasks"), SOURCE, "Back", "Loop")
    with running(replace(project, databases=(DatabaseConfig(name="db"),))) as system:
        yield system


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/tasks/", ["a", "b"]),
        ("/group/", ["c", []]),
        ("/late/", [["d"], 1]),
        ("/cancelled/", ["e"]),
        ("/failed/", 500),
    ],
)
def test_a_call_is_a_task(system: System, path: str, answer: object) -> None:
    """What has begun goes on, whatever becomes of the task that waits for it."""
    assert system.ask("Loop", path).body == answer
