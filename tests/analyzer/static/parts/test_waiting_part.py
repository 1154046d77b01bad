"""What ``await`` does."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.waiting import Waiting

MODULE = "import asyncio\nasync def one(comm):\n    return await comm.call('B', '/b/')\n"


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        ("await comm.call('B', '/b/')", ["callB/b/ get next"]),
        ("await one(comm)", ["callB/b/ get next"]),
        ("f = comm.call('B', '/b/')\nawait f\nawait f", ["callB/b/ get next"]),
        (
            "try:\n    async with asyncio.timeout(1):\n        await one(comm)\nexcept TimeoutError:\n    pass",
            ["callB/b/ get next", "next"],
        ),
    ],
)
def test_an_await(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, MODULE, "async def")
    assert isinstance(done.walk.waiting, Waiting)
    assert done.ways == ways


LIMITED = """
import asyncio
async def ask(comm):
    try:
        await comm.call('B', '/b/')
    except asyncio.CancelledError:
        raise
"""


@pytest.mark.parametrize(
    "body",
    [
        "async with asyncio.timeout(1):\n        await ask(comm)",
        "await asyncio.wait_for(ask(comm), 1)",
        "async with asyncio.timeout(1):\n        await comm.call('B', '/b/')",
    ],
)
def test_a_cancellation_that_is_raised_again_is_a_timeout_outside(probe: Probe, body: str) -> None:
    late = "except TimeoutError:\n    await comm.call('B', '/c/')"
    ways = probe(f"try:\n    {body}\n{late}", LIMITED, "async def").ways
    assert any(way.startswith("callB/b/") and "callB/c/" in way for way in ways)
