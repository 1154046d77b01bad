"""Attributes that are set by other means than an assignment."""

from __future__ import annotations

import libcst as cst
import pytest
from probing import Probe

from analyzer.static.reflection import Mentions, mentions_of, writes
from analyzer.static.values import COMM, UNKNOWN, Const, Value, join
from analyzer.static.values.namespaces import texts_of

MODULE = """
import contextlib
from dataclasses import dataclass
from types import SimpleNamespace

class Options:
    flag = False
    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)
    def take(self, values):
        self.__dict__.update(values)
        return self
    def ask(self, comm):
        return comm.call('B', '/c/').get()

class Plain:
    flag = False
    def __init__(self, comm=None):
        self.comm = comm

class Checked:
    flag = False
    def __setattr__(self, name, value):
        super().__setattr__(name, value)

@dataclass(frozen=True)
class Job:
    urgent: bool = False
    def __post_init__(self):
        object.__setattr__(self, 'urgent', True)

class Flag:
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, instance, owner=None):
        return instance.comm.call('B', '/b/').get()
    def __set__(self, instance, value):
        instance.comm.call('B', '/c/').get()

class Featured:
    beta = Flag()
    def __init__(self, comm):
        self.comm = comm

class Counted:
    class Mark:
        def __get__(self, instance, owner=None):
            return instance.flag
        def __set__(self, instance, value):
            instance.flag = value
    flag = False
    mark = Mark()

def other(comm):
    return comm.call('B', '/b/').get()

def remember(comm, item, seen=[]):
    seen.append(item)
    if len(seen) > 3:
        comm.call('B', '/b/').get()

def over(comm, paths=[]):
    for path in paths:
        comm.call('B', path).get()

def with_default(comm, wanted=False):
    if wanted:
        comm.call('B', '/b/').get()
"""
CALL = "if o.flag:\n    comm.call('B', '/b/').get()"
BOTH = ["callB/b/ get next", "next"]
CALLED = ["callB/b/ get next"]


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        pytest.param(f"o = Options(**x)\n{CALL}", BOTH, id="loop-over-what-it-is-given"),
        pytest.param(f"o = Options().take(x)\n{CALL}", BOTH, id="update-of-its-dict"),
        pytest.param(f"o = Plain()\nsetattr(o, x, True)\n{CALL}", BOTH, id="setattr"),
        pytest.param(f"o = Plain()\nsetattr(o, 'flag', True)\n{CALL}", CALLED, id="setattr-of-a-known-name"),
        pytest.param(f"o = Plain()\nvars(o).update(x)\n{CALL}", BOTH, id="update-of-vars"),
        pytest.param(f"o = Plain()\nvars(o)['flag'] = True\n{CALL}", CALLED, id="item-of-vars"),
        pytest.param(f"o = Plain()\nd = o.__dict__\nd[x] = 1\n{CALL}", BOTH, id="another-name-of-the-dict"),
        pytest.param(f"o = Plain()\no.__dict__ |= x\n{CALL}", BOTH, id="or-of-the-dict"),
        pytest.param(f"o = Plain()\no.__dict__.update(flag=True)\n{CALL}", CALLED, id="update-by-keywords"),
        pytest.param(f"o = Plain()\nif x:\n    setattr(o, 'flag', True)\n{CALL}", BOTH, id="in-a-branch"),
        pytest.param(f"o = Checked()\no.flag = True\n{CALL}", CALLED, id="own-setattr"),
        pytest.param(f"o = Checked()\nobject.__setattr__(o, x, 1)\n{CALL}", BOTH, id="past-the-class"),
        pytest.param(
            "o = Job()\nif o.urgent:\n    comm.call('B', '/b/').get()", CALLED, id="past-a-frozen-data-class"
        ),
        pytest.param(f"o = Plain()\no.flag = True\ndel o.flag\n{CALL}", BOTH, id="deleted"),
        pytest.param(
            "o = Plain()\nif x:\n    o.more = 1\nif getattr(o, 'more', 0):\n    comm.call('B', '/b/').get()",
            BOTH,
            id="perhaps-not-there",
        ),
        pytest.param(
            "o = Options()\nif x:\n    o.ask = other\no.ask(comm)",
            ["callB/b/ get next", "callB/c/ get next"],
            id="method-replaced-in-a-branch",
        ),
        pytest.param("o = Featured(comm)\no.beta", CALLED, id="descriptor-read"),
        pytest.param("o = Featured(comm)\no.beta = 1", ["callB/c/ get next"], id="descriptor-set"),
        pytest.param(f"o = Counted()\no.mark = True\n{CALL}", CALLED, id="nested-descriptor-set"),
        pytest.param(f"o = Counted()\no.mark = x\n{CALL}", BOTH, id="nested-descriptor-set-to-anything"),
        pytest.param(
            "o = Counted()\no.mark = True\nif o.mark:\n    comm.call('B', '/b/').get()",
            CALLED,
            id="nested-descriptor-read",
        ),
        pytest.param("remember(comm, 1)", BOTH, id="default-that-is-filled"),
        pytest.param("over(comm)", ["next"], id="default-that-is-only-read"),
        pytest.param("with_default(comm, **x)", BOTH, id="default-that-may-be-given"),
        pytest.param("with_default(*[comm, True])", CALLED, id="known-star"),
    ],
)
def test_what_may_have_been_set_is_not_known(probe: Probe, body: str, ways: list[str]) -> None:
    assert probe(body, MODULE, x=UNKNOWN).ways == ways


def test_what_else_an_object_holds_stays_known(probe: Probe) -> None:
    """An unknown value does not hide what communicates."""
    done = probe("o = Plain(comm)\nsetattr(o, x, 1)\no.flag = True\nreturn o.flag, o.comm", MODULE, x=UNKNOWN)
    assert done.codes == []
    flag, held = done.value.parts()
    assert flag == Const.of(value=True)
    assert COMM in held.parts()


def test_a_function_that_may_replace_any_method_is_reported(probe: Probe) -> None:
    assert probe("o = Options()\nsetattr(o, x, other)", MODULE, x=UNKNOWN).codes == ["MUP030"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("setattr(a, 'b', 1)", [("a", "b")]),
        ("setattr(a, b, 1)", [("a", None)]),
        ("a.__dict__['b'] = 1", [("a", "b")]),
        ("a.__dict__[b] = 1", [("a", None)]),
        ("del vars(a)['b']", [("a", "b")]),
        ("c = a.__dict__.setdefault('b', {})", [("a", "b")]),
        ("a.__dict__.pop('b', None)", [("a", "b")]),
        ("a.__dict__.pop(b)", [("a", None)]),
        ("vars(a).update(b)", [("a", None)]),
        ("object.__setattr__(a, 'b', 1)", [("a", "b")]),
        ("c = dict(vars(a))", []),
        ("c = a.__dict__.copy()", []),
        ("c = {**a.__dict__}", []),
        ("c = a.__dict__['b']", []),
    ],
)
def test_writes_are_found_in_the_text(code: str, expected: list[tuple[str, str | None]]) -> None:
    tree = cst.parse_module(code)
    assert [(tree.code_for_node(one.owner), one.name) for one in writes(tree)] == expected


def test_a_container_that_is_kept_elsewhere_is_not_only_read() -> None:
    tree = cst.parse_module("for x in a: pass\nb = c\nd.e(f)\nreturned = [len(g), h[0]]\ni[0] = 1\n")
    nodes = mentions_of(tree)
    mentions = Mentions.of(nodes)
    names = {node.value for node in nodes if isinstance(node, cst.Name) and mentions.only_looks(node)}
    assert {"a", "g", "h"} <= names
    assert not {"c", "f", "i"} & names


@pytest.mark.parametrize("value", [UNKNOWN, Const.of("x")])
def test_a_shared_object_is_unknown_where_its_attributes_are_set_by_name(probe: Probe, value: Value) -> None:
    module = (
        "class State:\n    def __init__(self):\n        self.ready = False\n"
        "state = State()\ndef change(name):\n    setattr(state, name, True)\n"
    )
    assert probe("return state.ready", module, x=value).value == UNKNOWN


def test_names_are_texts_or_not_known() -> None:
    both = join([Const.of("a"), Const.of("b")])
    assert sorted(texts_of(both) or ()) == ["a", "b"]
    assert texts_of(join([Const.of("a"), Const.of(1)])) is None
    assert texts_of(UNKNOWN) is None
