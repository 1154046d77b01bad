"""What a name is worth."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize(
    ("names", "ways"),
    [
        (
            "try:\n    from fast import ask\nexcept ImportError:\n    def ask(comm):\n        comm.call('B', '/b/')\n",
            "/b/",
        ),
        ("try:\n    from app import slow as ask\nexcept ImportError:\n    from fast import ask\n", "/c/"),
        ("try:\n    from fast import ask\nexcept ImportError:\n    from app import slow as ask\n", "/c/"),
    ],
)
def test_a_function_for_where_a_module_is_missing(probe: Probe, names: str, ways: str) -> None:
    module = f"def slow(comm):\n    comm.call('B', '/c/')\n{names}"
    done = probe("ask(comm)", module)
    assert done.codes == []
    assert done.ways == [f"callB{ways} next"]


def test_one_of_two_definitions_is_not_guessed(probe: Probe) -> None:
    module = "import os\nif os.name:\n    from fast import ask\nelse:\n    def ask(comm):\n        pass\n"
    assert probe("ask(comm)", module).codes == ["MUP041"]
