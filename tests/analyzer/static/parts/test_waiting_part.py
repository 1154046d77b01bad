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
