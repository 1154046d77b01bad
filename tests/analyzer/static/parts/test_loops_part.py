"""Loops that are unrolled, and those of which any number of iterations may happen."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.loops import SHORT_SEQUENCE, Loops
from analyzer.static.values import UNKNOWN, Const

CALL = "comm.call('B', '/b/').get()"


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (f"for i in range(2):\n    {CALL}", ["callB/b/ get callB/b/ get next"]),
        (f"for x in xs:\n    {CALL}", ["loop[callB/b/ get] next"]),
        (f"i = 0\nwhile i < 2:\n    {CALL}\n    i += 1", ["callB/b/ get callB/b/ get next"]),
        (f"while xs:\n    {CALL}\n    break", ["callB/b/ get next", "next"]),
    ],
)
def test_a_loop(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, xs=UNKNOWN)
    assert isinstance(done.walk.loops, Loops)
    assert done.ways == ways


def test_a_long_loop_that_only_computes_is_not_unrolled(probe: Probe) -> None:
    assert probe("n = 0\nfor i in range(5):\n    n += 1\nreturn n").value == Const.of(5)
    many = SHORT_SEQUENCE + 1
    assert probe(f"n = 0\nfor i in range({many}):\n    n += 1\nreturn n").value == UNKNOWN


def test_a_wait_for_an_earlier_call_is_reported(probe: Probe) -> None:
    assert probe("f = comm.call('B', '/b/')\nfor x in xs:\n    f.get()", xs=UNKNOWN).codes == ["MUP031"]
