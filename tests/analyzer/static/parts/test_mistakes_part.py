"""Mistakes that show in the model, or only in production."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probe
from source_outline import HEAD, OTHERS, analyse_files, codes

from analyzer.static.mistakes import Mistakes

MODULE = """
import asyncio, time, subprocess
import httpx, requests
async def ask(comm):
    return await comm.call("B", "/b/")
async def quiet():
    return 1
def helper(future):
    return future.get()
"""


@pytest.mark.parametrize(
    ("body", "define", "expected"),
    [
        pytest.param("comm.respond(await ask(comm))", "async def", [], id="awaited"),
        pytest.param("ask(comm)\ncomm.respond(1)", "async def", ["MUP061"], id="coroutine-that-communicates"),
        pytest.param("quiet()\ncomm.respond(1)", "async def", ["MUP061"], id="coroutine"),
        pytest.param("asyncio.sleep(1)\ncomm.respond(1)", "async def", ["MUP061"], id="sleep"),
        pytest.param("asyncio.create_task(ask(comm))\ncomm.respond(1)", "async def", [], id="task"),
        pytest.param("comm.respond(comm.call('B', '/b/'))", "def", ["MUP062"], id="future"),
        pytest.param("comm.respond(ask(comm))", "async def", ["MUP062"], id="coroutine-as-response"),
        pytest.param("comm.respond(comm.call('B', '/b/').get())", "def", [], id="answer"),
        pytest.param("comm.respond(comm.call('B', '/b/').get())", "async def", ["MUP063"], id="get"),
        pytest.param("comm.respond(helper(comm.call('B', '/b/')))", "async def", ["MUP063"], id="helper"),
        pytest.param(
            "f = comm.call('B', '/b/')\nawait f\ncomm.respond(f.get())", "async def", [], id="again"
        ),
        pytest.param("time.sleep(1)\ncomm.respond(1)", "async def", ["MUP064"], id="sleep-on-a-loop"),
        pytest.param("time.sleep(1)\ncomm.respond(1)", "def", [], id="sleep-of-a-thread"),
        pytest.param("requests.get('http://x')\ncomm.respond(1)", "def", ["MUP064"], id="requests"),
        pytest.param("httpx.get('http://x')\ncomm.respond(1)", "def", ["MUP064"], id="httpx"),
        pytest.param("subprocess.run(['x'])\ncomm.respond(1)", "def", ["MUP064"], id="subprocess"),
    ],
)
def test_a_mistake_is_found(probe: Probe, body: str, define: str, expected: list[str]) -> None:
    done = probe(body, MODULE, define)
    assert isinstance(done.walk.mistakes, Mistakes)
    assert done.codes == expected


@pytest.mark.parametrize(
    ("runtime", "define", "expected"),
    [
        ("process", "async def", ["MUP060"]),
        ("thread", "async def", ["MUP060"]),
        ("async", "def", ["MUP060"]),
        ("async", "async def", []),
        ("thread", "def", []),
    ],
)
def test_the_runtime_fits_the_endpoint(
    tmp_path: Path, runtime: str, define: str, expected: list[str]
) -> None:
    service = (
        f'class A(MS):\n    runtime = "{runtime}"\n    @EP("/a")\n    {define} a(self, comm):\n'
        "        comm.respond(1)\n"
    )
    assert codes(analyse_files(tmp_path, app=HEAD + service + OTHERS)) == expected


def test_what_a_decorator_makes_of_an_endpoint_counts(tmp_path: Path) -> None:
    """The wrapper is what the runtime calls."""
    source = """
def awaited(function):
    async def wrapper(self, comm):
        comm.respond(1)
    return wrapper
class A(MS):
    runtime = "async"
    @EP("/a")
    @awaited
    def a(self, comm):
        comm.respond(2)
"""
    assert "MUP060" not in codes(analyse_files(tmp_path, app=HEAD + source + OTHERS))
