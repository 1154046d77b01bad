"""What functions of asyncio make of a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probe
from source_outline import analyse_files

from analyzer.static.asyncio_functions import LOOP, Asyncio

HEAD = "import asyncio\n"
CASES = [
    (
        "await asyncio.gather(comm.call('B', '/b/'), comm.call('B', '/c/'))",
        ["callB/b/ callB/c/ get get next"],
    ),
    ("t = asyncio.create_task(one(comm))\nawait t", ["task[callB/b/ get] join next"]),
    (
        "loop = asyncio.get_running_loop()\nt = loop.create_task(one(comm))\nawait t",
        ["task[callB/b/ get] join next"],
    ),
    ("await asyncio.wait_for(comm.call('B', '/b/'), 1)", ["callB/b/ get next"]),
    ("async with asyncio.TaskGroup() as g:\n    g.create_task(one(comm))", ["task[callB/b/ get] join next"]),
]


@pytest.mark.parametrize(("body", "ways"), CASES)
def test_a_function_of_asyncio(probe: Probe, body: str, ways: list[str]) -> None:
    module = f"{HEAD}async def one(comm):\n    await comm.call('B', '/b/')\n"
    done = probe(body, module, "async def")
    assert isinstance(done.walk.asyncio, Asyncio)
    assert done.ways == ways
    assert done.codes == []


def test_the_loop_has_a_name_no_module_has() -> None:
    assert not LOOP.rpartition(".")[2].isidentifier()


def test_a_sleeping_user_is_told_to_think(tmp_path: Path) -> None:
    source = (
        "import asyncio\nfrom mup import Client\nclass User(Client):\n    async def scenario(self, comm):\n"
    )
    application = analyse_files(tmp_path, app=f"{source}        await asyncio.sleep(1)\n")
    (finding,) = [one for one in application.diagnostics if one.code == "MUP051"]
    assert finding.hint == "users think with 'await self.think(seconds)'"
