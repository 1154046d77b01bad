"""What statements do."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.statements import Statements
from analyzer.static.values import UNKNOWN, Const, join

CALL = "comm.call('B', '/b/').get()"


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (f"if x:\n    {CALL}", ["callB/b/ get next", "next"]),
        (f"if x:\n    return 1\n{CALL}", ["callB/b/ get next", "return"]),
        ("raise ValueError(1)", ["raise"]),
        ("assert x", ["next"]),
        ("pass", ["next"]),
    ],
)
def test_a_statement(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, x=UNKNOWN)
    assert isinstance(done.walk.statements, Statements)
    assert done.ways == ways


def test_branches_that_only_compute_become_one(probe: Probe) -> None:
    done = probe("if x:\n    y = 1\nelse:\n    y = 2\nreturn y", x=UNKNOWN)
    assert len(done.flows) == 1
    assert done.value == join([Const.of(1), Const.of(2)])


def test_a_local_class_that_communicates_is_reported(probe: Probe) -> None:
    assert probe("class Local:\n    def f(self):\n        comm.respond(1)").codes == ["MUP041"]
