"""What a loop does that waits for tasks in the order in which they end."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.completing import Completing

MODULE = """
import asyncio
from mup.errors import CallError
async def one(comm):
    return await comm.call('B', '/b/')
async def two(comm):
    await one(comm)
    return await comm.call('B', '/c/')
"""
ONE, TWO = "task[callB/b/ get]", "task[callB/b/ get callB/c/ get]"
LOOP = "for f in asyncio.as_completed([one(comm), two(comm)]):\n"


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (f"{LOOP}    await f", [f"{ONE} {TWO} join join next"]),
        (f"{LOOP}    x = (await f)['x']", [f"{ONE} {TWO} join join next"]),
        (
            "ts = {asyncio.create_task(one(comm)), asyncio.create_task(two(comm))}\nfor t in ts:\n    await t",
            [f"{ONE} {TWO} join join next"],
        ),
    ],
)
def test_waiting_for_all(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, MODULE, "async def")
    assert isinstance(done.walk.completing, Completing)
    assert done.ways == ways
    assert done.codes == []


def test_an_exception_leaves_the_others_behind(probe: Probe) -> None:
    """Whichever fails: nothing says that one of the others has ended."""
    done = probe(
        f"try:\n    {LOOP}        await f\nexcept CallError:\n    comm.call('B', '/b/')", MODULE, "async def"
    )
    failed = sorted({way for way in done.ways if way.endswith("callB/b/ next")})
    assert failed == [f"{ONE} {TWO} join callB/b/ next", f"{ONE} {ONE} join callB/b/ next"]


@pytest.mark.parametrize("leaving", ["break", "return"])
def test_leaving_with_the_first_is_refused(probe: Probe, leaving: str) -> None:
    done = probe(f"{LOOP}    if await f:\n        {leaving}", MODULE, "async def")
    assert set(done.codes) == {"MUP030"}


def test_what_happens_between_shows_the_order(probe: Probe) -> None:
    assert probe(f"{LOOP}    await f\n    comm.call('B', '/b/')", MODULE, "async def").codes == ["MUP030"]
