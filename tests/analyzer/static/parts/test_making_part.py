"""How objects begin."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.making import Making

MODULE = """
import dataclasses, typing

@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)
    c: str = "c"
    def __post_init__(self):
        self.d = self.a + 1

class Pair(typing.NamedTuple):
    x: int
    y: int = 2

class Error(Exception):
    pass

class Kept:
    count = 0
    def __init__(self, comm):
        self.comm = comm
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [("Data(1).d", 2), ("Data(1).c", "c"), ("len(Data(1).b)", 0), ("Pair(1).y", 2), ("Pair(1, 3)[1]", 3)],
)
def test_fields_are_filled(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}", MODULE)
    assert isinstance(done.walk.making, Making)
    assert done.value.python() == (True, expected)


def test_an_object_may_hold_communication(probe: Probe) -> None:
    done = probe("Kept(comm).comm.call('B', '/b/').get()", MODULE)
    assert done.ways == ["callB/b/ get next"]


def test_positional_patterns_are_about_fields(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    assert done.walk.making.field_names(done.of_class("Data")) == ["a", "b", "c"]
