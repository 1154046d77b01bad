"""Copies of a fan-out that try a call again, or go on with another one when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_outline import analyse_files, codes, endpoint_source, outline

from analyzer.static import translate
from analyzer.static.application import Operation
from analyzer.static.application import Path as Way
from analyzer.static.attempts import (
    could_not_begin,
    single_attempts,
    without_choices,
    without_failed_beginnings,
)
from analyzer.static.rounds_in_logs import not_told_apart
from mup.events.sites import Site

MODULE = """
import asyncio
from mup.errors import CommunicationError
async def again(comm, w):
    for attempt in range(2):
        try:
            return await comm.call("B", "/b/", timeout=1.0)
        except CommunicationError:
            await asyncio.sleep(0.1)
async def otherwise(comm, w):
    try:
        return await comm.call("B", "/b/")
    except CommunicationError:
        return await comm.call("B", "/c/")
async def limited(jobs, most):
    gate = asyncio.Semaphore(most)
    async def one(job):
        async with gate:
            return await job
    return await asyncio.gather(*(one(job) for job in jobs), return_exceptions=True)
"""
ONE = "call:B/b/ get:0"
TWO = "call:B/b/ get:0 call:B/b/ get:2"

FOLLOWED = {
    "again": ("asyncio.gather(*(again(comm, w) for w in comm.params))", f"fan-out[{ONE} | {TWO}] early:0"),
    "again under a semaphore": (
        "limited((again(comm, w) for w in comm.params), 3)",
        f"fan-out[{ONE}] early:0",
    ),
    "otherwise": (
        "asyncio.gather(*(otherwise(comm, w) for w in comm.params))",
        f"fan-out[{ONE} | call:B/b/ call:B/c/ get:1 | {ONE} call:B/c/ get:2] join:0",
    ),
    "otherwise under a semaphore": (
        "limited([otherwise(comm, w) for w in comm.params], 3)",
        f"fan-out[{ONE} | call:B/b/ call:B/c/ get:1 | {ONE} call:B/c/ get:2] early:0",
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_copies_that_go_on_after_a_failure(tmp_path: Path, name: str) -> None:
    body, expected = FOLLOWED[name]
    source = endpoint_source(f"await {body}\ncomm.respond(1)", define="async def", module=MODULE)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == [f"{expected} respond"]
    assert not list(not_told_apart(application.endpoint("A/a/").paths))
    (fan_out, *_) = application.endpoint("A/a/").paths[0].operations
    assert fan_out.limit == (3 if "semaphore" in name else None)
    translate(application, name="x")


def test_what_a_copy_may_begin_with_either_way_is_not_told_apart(tmp_path: Path) -> None:
    """With nothing to wait for before, the other call of one copy looks like the first one of the next."""
    module = (
        MODULE + "async def ends(comm, w):\n    try:\n        await comm.call('B', '/b/')\n    finally:\n"
    )
    module += "        await comm.call('B', '/c/')\n"
    body = "await asyncio.gather(*(ends(comm, w) for w in comm.params))\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=module))
    assert codes(application) == ["MUP030"]


def operation(number: int, *, of: int | None = None) -> Operation:
    site = Site("app.py", "f", number, number, 1)
    return Operation("call", site, "B/b/") if of is None else Operation("get", site, of=of)


def way(*operations: Operation) -> Way:
    return Way(operations, "return", 0, tuple(range(len(operations) + 1)))


def test_a_call_that_is_made_again_is_left_out_of_the_copy() -> None:
    first, second = operation(1), operation(2)
    assert without_failed_beginnings(way(first, first, operation(3, of=1))) == Way(
        (first, operation(3, of=0)), "return", 0, (1, 2, 3)
    )
    for path in (way(first, second, operation(3, of=1)), way(first, operation(3, of=0), first)):
        assert without_failed_beginnings(path) == path


def test_a_copy_leaves_nothing_but_what_could_not_begin() -> None:
    failed = way(operation(1), operation(2), operation(3, of=1))
    waits = way(operation(1), operation(3, of=0))
    task = Operation("task", Site("app.py", "f", 1, 1, 1), bodies=(waits,))
    assert could_not_begin(waits, [])
    assert could_not_begin(failed, [failed, waits])
    assert not could_not_begin(failed, [failed, way(operation(2), operation(3, of=0))])
    assert not could_not_begin(way(task), [waits])
    assert not could_not_begin(way(operation(1, of=-1)), [waits])
    assert not could_not_begin(way(Operation("respond", Site("app.py", "f", 1, 1, 1))), [waits])


def test_several_attempts_are_what_single_ones_do() -> None:
    call, other, wait = operation(1), operation(2), operation(3, of=0)
    one = way(call, wait)
    two = way(call, wait, call, operation(3, of=2))
    three = way(*two.operations, call, operation(3, of=4))
    mixed = way(call, wait, other, operation(3, of=2))
    assert single_attempts([one, two, three, mixed]) == (one, mixed)
    assert single_attempts([two, mixed]) == (two, mixed)
    assert single_attempts([]) == ()


OWNED = """
import asyncio
class Client:
    def __init__(self, comm):
        self.comm = comm
        self.tries, self.path = 0, "/b/"
    async def ask(self, w):
        return await self.comm.call("B", self.path)
    async def counted(self, w):
        self.tries += 1
        await self.comm.call("B", "/b/")
        if self.tries > 1:
            await self.comm.call("B", "/c/")
class Moving:
    def __init__(self, comm):
        self.comm, self.path = comm, "/b/"
    async def ask(self, w):
        self.path = "/c/"
        return await self.comm.call("B", self.path)
"""


@pytest.mark.parametrize("listed", [True, False])
def test_each_copy_may_have_an_object_of_its_own(tmp_path: Path, listed: bool) -> None:
    body = "Client(comm).ask(w) for w in comm.params"
    body = f"jobs = [{body}]\nawait asyncio.gather(*jobs)" if listed else f"await asyncio.gather(*({body}))"
    source = endpoint_source(f"{body}\ncomm.respond(1)", define="async def", module=OWNED)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    assert outline(application) == [f"fan-out[{ONE}] join:0 respond"]


def test_what_a_copy_changes_of_its_object_is_not_known(tmp_path: Path) -> None:
    body = "await asyncio.gather(*({} for w in comm.params))\ncomm.respond(1)"
    source = endpoint_source(body.format("Client(comm).counted(w)"), define="async def", module=OWNED)
    application = analyse_files(tmp_path, app=source)
    assert codes(application) == []
    (found,) = outline(application)
    assert f"{ONE} call:B/c/ get:2" in found
    source = endpoint_source(body.format("Moving(comm).ask(w)"), define="async def", module=OWNED)
    assert codes(analyse_files(tmp_path, app=source)) == ["MUP010"]


def test_ways_through_a_copy_are_told_apart_where_one_leaves_something_behind() -> None:
    call, wait, other = operation(1), operation(3, of=0), operation(2)
    site = Site("app.py", "f", 0, 9, 1)
    choice = Operation("choice", site, bodies=(way(call, wait), way(call), way()))
    path = way(other, operation(3, of=0), choice, other, operation(3, of=3))
    assert [found.operations for found in without_choices(path)] == [
        (other, wait, call, operation(3, of=2), other, operation(3, of=4)),
        (other, wait, call, other, operation(3, of=3)),
        (other, wait, other, operation(3, of=2)),
    ]
    assert all(len(found.local_lines) == len(found.operations) + 1 for found in without_choices(path))
    closed = way(Operation("choice", site, bodies=(way(call, wait), way())))
    assert without_choices(closed) == (closed,)
    assert without_choices(way(call)) == (way(call),)
    many = way(*[choice] * 40)
    assert without_choices(many) == (many,)


def test_a_copy_with_many_ways_may_fail_anywhere(tmp_path: Path) -> None:
    """So many ways through the rest of the endpoint that alternatives are folded into choices."""
    body = "for n in 'abcdefgh':\n    if comm.params[n]:\n        await comm.call('B', '/c/')\n"
    body += "await limited([again(comm, w) for w in comm.params], 3)\ncomm.respond(1)"
    application = analyse_files(tmp_path, app=endpoint_source(body, define="async def", module=MODULE))
    assert codes(application) == []
    assert any(f"fan-out[{ONE}] early" in one for one in outline(application))
