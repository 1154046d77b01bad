"""What communication, futures and coroutines do."""

from __future__ import annotations

from probing import Probe

from analyzer.static.values import UNKNOWN, Method
from analyzer.static.values.futures import COMM, REQUEST_DATA, Coroutine, Future


def test_data_of_a_request_is_no_operation(probe: Probe) -> None:
    for name in sorted(REQUEST_DATA):
        assert probe(f"return comm.{name}").value == UNKNOWN
    assert probe("return comm.call").value == Method(COMM, "call")


def test_a_coroutine_runs_when_it_is_awaited(probe: Probe) -> None:
    module = "async def one(comm):\n    return comm.call('B', '/b/')\n"
    waiting = probe("return one(comm)", module, "async def")
    assert isinstance(waiting.value, Coroutine)
    assert waiting.ways == ["return"]
    assert probe("return await one(comm)", module, "async def").value == Future(0)


def test_an_operation_needs_a_call_of_its_own(probe: Probe) -> None:
    assert probe("return sorted([1, 2], key=comm.call)").codes == ["MUP041"]
