"""What containers hold that are filled while modules are imported."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.names import ClassInfo, FunctionInfo
from analyzer.static.tables import Tables
from analyzer.static.values import UNKNOWN, ClassValue, Const, FunctionValue, MapValue, TupleValue, Value

MODULE = """
TABLE = {"zero": 0}
KINDS = []
def put(name):
    def register(function):
        TABLE[name] = function
        return function
    return register
def kind(made):
    KINDS.append(made)
    return made
@put("one")
def one(): return 1
@put("one")
def two(): return 2
@kind
class Some:
    parts = {}
    def __init_subclass__(cls):
        cls.parts.setdefault(cls.__name__, cls)
class More(Some): pass
GROWING = {}
def grow(name):
    GROWING[name] = name
"""


def plain(value: Value) -> object:
    """Return a value with names in place of functions and classes."""
    if isinstance(value, FunctionValue | ClassValue):
        return value.info.qualname
    if isinstance(value, MapValue):
        return {plain(key): plain(one) for key, one in value.rows}
    if isinstance(value, TupleValue):
        return [plain(one) for one in value.values]
    return value.python()[1] if isinstance(value, Const) else value


def test_what_imports_put_into_a_dict_and_a_list(probe: Probe) -> None:
    done = probe("pass", module=MODULE)
    assert isinstance(done.walk.tables, Tables)
    assert plain(done.in_module("TABLE")) == {"zero": 0, "one": "two"}
    assert plain(done.in_module("KINDS")) == ["Some"]
    assert done.in_module("GROWING") == UNKNOWN


def test_what_a_hook_puts_into_an_attribute_of_a_class(probe: Probe) -> None:
    done = probe("return Some.parts.get('More'), More.parts['More'], len(Some.parts)", module=MODULE)
    assert plain(done.value) == ["More", "More", 1]
    assert probe("return Some.parts", module=MODULE).value == UNKNOWN  # what gets it may change it


def test_a_step_that_cannot_be_followed_leaves_nothing_known(probe: Probe) -> None:
    done = probe("return TABLE", module=f"{MODULE}\nTABLE.update(open('x'))")
    assert done.value == UNKNOWN


def test_definitions_are_what_they_were(probe: Probe) -> None:
    """Filling a container runs decorators once more: what they make is not affected."""
    done = probe("return one() + two(), TABLE['one']()", module=MODULE)
    assert plain(done.value) == [3, 2]
    assert isinstance(done.of_class("Some"), ClassInfo)
    assert isinstance(done.function, FunctionInfo)


LISTS = """
from collections import defaultdict
CHECKS = defaultdict(list)
PLAIN = {}
def check(*kinds):
    def register(function):
        for kind in kinds:
            CHECKS[kind].append(function)
        return function
    return register
@check("a", "b")
def one(comm): return comm.call("B", "/b/").get()
@check("b")
def two(comm): return comm.call("B", "/c/").get()
"""
ONE, TWO = "callB/b/ get", "callB/c/ get"


@pytest.mark.parametrize(
    "body",
    [
        "for one_of in CHECKS[kind]:\n    one_of(comm)",
        "for one_of in CHECKS.get(kind, ()):\n    one_of(comm)",
        "return [1 for one_of in CHECKS[kind] if one_of(comm)]",
    ],
)
def test_a_key_that_is_missing_has_what_the_container_makes(probe: Probe, body: str) -> None:
    ways = probe(body, LISTS, kind=UNKNOWN).ways
    assert {way.rpartition(" ")[0] for way in ways} == {"", ONE, f"{ONE} {TWO}"}
    assert probe(body.replace("kind", "'c'"), LISTS).ways in (["next"], ["return"])


def test_a_method_of_the_same_name_fills_nothing(probe: Probe) -> None:
    other = "\ndef later(comm, client):\n    return client.check('x')\n"
    assert plain(probe("pass", LISTS + other).in_module("CHECKS")) == {"a": ["one"], "b": ["one", "two"]}
    inside = "\ndef later(name):\n    import app\n    return app.check('x')(name)\n"
    assert probe("pass", LISTS + inside).in_module("CHECKS") == UNKNOWN
