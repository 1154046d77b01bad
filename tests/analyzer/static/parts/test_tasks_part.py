"""What runs beside the flow that started it."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.application import Operation, Path
from analyzer.static.tasks import Tasks, asks
from analyzer.static.values import UNKNOWN
from mup.events.sites import Site

MODULE = """
import asyncio

async def one(comm):
    await comm.call('B', '/b/')

async def failing(comm):
    await comm.call('B', '/b/')
    raise ValueError
"""


def test_a_task_is_one_element_of_the_path(probe: Probe) -> None:
    done = probe("t = asyncio.create_task(one(comm))\ncomm.respond(1)\nawait t", MODULE, "async def")
    assert isinstance(done.walk.tasks, Tasks)
    assert done.ways == ["task[callB/b/ get] respond join next"]


def test_what_it_raises_shows_where_it_is_waited_for(probe: Probe) -> None:
    body = (
        "t = asyncio.create_task(failing(comm))\ntry:\n    await t\nexcept ValueError:\n    comm.respond(1)"
    )
    # The task may fail before, during and after its call.
    assert "task[callB/b/ get] join respond next" in probe(body, MODULE, "async def").ways


def test_a_list_of_futures_is_not_shared_with_a_task(probe: Probe) -> None:
    body = "xs = [comm.call('B', '/b/')]\nt = asyncio.create_task(use(xs))\nawait t\nawait xs[0]"
    module = MODULE + "async def use(xs):\n    await xs[0]\n"
    assert "MUP052" in probe(body, module, "async def").codes


@pytest.mark.parametrize(
    ("made", "change", "read"),
    [
        ("found = ['a']", "found.append('b')", "len(found)"),
        ("found = {'a': 'b'}", "found['a'] = 'c'", "found['a']"),
        ("found = Found()", "found.kind = answer", "found.kind"),
    ],
    ids=["list", "dict", "attribute"],
)
def test_what_a_task_changes_is_not_known_behind_it(probe: Probe, made: str, change: str, read: str) -> None:
    module = MODULE + (
        "class Found:\n    def __init__(self):\n        self.kind = 'a'\n"
        f"async def change(comm, found):\n    answer = await comm.call('B', '/b/')\n    {change}\n"
        "async def look(comm, found):\n    await comm.call('B', '/b/')\n    print(found)\n"
    )
    changed, seen = (
        probe(f"{made}\nawait asyncio.create_task({name}(comm, found))\nreturn {read}", module, "async def")
        for name in ("change", "look")
    )
    assert changed.value == UNKNOWN
    assert seen.value != UNKNOWN


def test_code_has_asked_only_if_it_did_on_every_way() -> None:
    """A loop may have had no iteration, and one way of a choice may do nothing."""
    site = Site("app.py", "f", 1, 1, 1)
    call = Operation("call", site, "B/b/")
    asking, nothing = Path((call,), "return", 0, (0, 0)), Path((), "return", 0, (0,))
    assert asks([call])
    assert asks([Operation("choice", site, bodies=(asking, asking))])
    assert asks([Operation("task", site, bodies=(asking,))])
    assert not asks([])
    assert not asks([Operation("loop", site, bodies=(asking,))])
    assert not asks([Operation("choice", site, bodies=(asking, nothing))])
