"""Which operation a call of the framework makes."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.operations import Operations
from analyzer.static.values import UNKNOWN, Const, Future, join


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("comm.call('B', '/nowhere/')", ["MUP012"]),
        ("comm.call('C', '/b/')", ["MUP011"]),
        ("comm.call(x, '/b/')", ["MUP010"]),
        ("comm.send('B')", ["MUP042"]),
        ("comm.query('db', 'q', 'c')", ["MUP014"]),
        ("comm.call('B', '/b/').result()", ["MUP042"]),
    ],
)
def test_a_mistake_is_reported(probe: Probe, body: str, codes: list[str]) -> None:
    done = probe(body, x=UNKNOWN)
    assert isinstance(done.walk.operations, Operations)
    assert done.codes == codes


def test_each_destination_is_a_way(probe: Probe) -> None:
    paths = join([Const.of("/b/"), Const.of("/c/")])
    assert probe("comm.call('B', x)", x=paths).ways == ["callB/b/ next", "callB/c/ next"]


def test_a_call_returns_its_future(probe: Probe) -> None:
    done = probe("comm.respond(1)\nreturn comm.call('B', '/b/')")
    assert done.value == Future(1)
    assert done.state.joined == frozenset()
