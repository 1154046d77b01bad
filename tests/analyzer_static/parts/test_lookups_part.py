"""What a name is worth."""

from __future__ import annotations

from probing import Probe

from analyzer.static.lookups import Lookups
from analyzer.static.values import UNKNOWN, Const, MapValue, TupleValue

MODULE = """
NAME = "B"
LIST = [NAME, "c"]
TABLE = {"a": NAME}
CIRCLE = CIRCLE_TOO
CIRCLE_TOO = CIRCLE
CHANGED = 1
CHANGED = 2
"""


def test_a_constant_of_a_module_needs_no_heap(probe: Probe) -> None:
    done = probe("return NAME", MODULE)
    assert isinstance(done.walk.lookups, Lookups)
    assert done.value == Const.of("B")
    assert done.in_module("LIST") == TupleValue((Const.of("B"), Const.of("c")))
    assert done.in_module("TABLE") == MapValue(((Const.of("a"), Const.of("B")),))


def test_what_is_not_one_constant_is_unknown(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    assert done.in_module("CIRCLE") == UNKNOWN
    assert done.in_module("CHANGED") == UNKNOWN
    assert done.in_module("NOWHERE") == UNKNOWN


def test_a_local_name_hides_that_of_the_module(probe: Probe) -> None:
    assert probe("NAME = 1\nreturn NAME", MODULE).value == Const.of(1)
