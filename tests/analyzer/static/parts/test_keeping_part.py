"""Containers that do nothing with tasks but hold on to them."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.keeping import Keeping

MODULE = """
import asyncio, weakref
kept = set()
weak = weakref.WeakSet()
read = set()
async def ask(comm):
    return await comm.call("B", "/b/")
def reader():
    return [task for task in read]
class Service:
    def setup(self):
        self.kept = set()
        self.listed: list = []
        self.read = set()
        self.filled = set(range(3))
    async def drain(self):
        await asyncio.gather(*self.read)
    def count(self):
        return len(self.kept)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("kept.add(task)\ntask.add_done_callback(kept.discard)", [], id="set-of-a-module"),
        pytest.param("weak.add(task)", [], id="weak-set"),
        pytest.param("me.kept.add(task)\ntask.add_done_callback(me.kept.discard)", [], id="set-of-a-service"),
        pytest.param("me.listed.append(task)", [], id="list"),
        pytest.param("read.add(task)", ["MUP041"], id="set-that-a-function-reads"),
        pytest.param("me.read.add(task)", ["MUP041"], id="set-that-is-waited-for"),
        pytest.param("me.filled.add(task)", ["MUP041"], id="set-that-is-not-empty-at-first"),
        pytest.param("kept.update([task])", ["MUP041"], id="another-method"),
        pytest.param("kept.add(comm.call('B', '/c/'))", ["MUP041"], id="future-of-a-call"),
        pytest.param("kept.add(comm)", ["MUP041"], id="communication"),
        pytest.param("unknown.add(task)", ["MUP041"], id="unknown-name"),
    ],
)
def test_tasks_are_kept_where_no_code_reads_them(probe: Probe, body: str, expected: list[str]) -> None:
    done = probe(f"me = some()\ntask = asyncio.create_task(ask(comm))\n{body}", MODULE, "async def")
    assert isinstance(done.walk.keeping, Keeping)
    assert done.codes == expected
    if not expected:
        assert done.ways == ["task[callB/b/ get] next"]
