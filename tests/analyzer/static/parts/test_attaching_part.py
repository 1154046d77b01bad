"""Code that runs while modules are imported."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import libcst as cst
from probing import Probe, Probed

from analyzer.static.attaching import Attaching, class_context, code_in, is_endpoint_mark
from analyzer.static.names import ClassInfo
from analyzer.static.values import UNKNOWN, Const, FunctionValue, Mark, Marked, Value
from analyzer.static.walk import Context

MODULE = """
import os
from mup import EP

class GET(EP):
    def __init__(self, path):
        super().__init__(path, method="GET")

class A:
    first = 1
    second = 2

def handler(self, comm):
    pass

def add(cls, name):
    setattr(cls, name, handler)
    cls.more = 1

def perhaps(cls):
    if os.environ.get("X"):
        cls.more = 1
"""


def imported(done: Probed, line: int) -> Value | None:
    """Return what an expression of the function is worth if it stands in its module, which is imported."""
    lines = done.function.node.body.body
    assert isinstance(lines, Sequence)
    statement = lines[line]
    assert isinstance(statement, cst.SimpleStatementLine)
    (expression,) = statement.body
    assert isinstance(expression, cst.Expr)
    run = partial(done.walk.expressions.evaluate, expression.value)
    return done.walk.attaching.run(Context(done.function.module), run)


def test_marks(probe: Probe) -> None:
    """A call of EP, or of a class that derives from it, makes a mark; calling that marks a function."""
    done = probe("EP('/x', name='y')\nEP(*os.argv)\nGET('/x')(handler)", MODULE)
    attaching = done.walk.attaching
    assert isinstance(attaching, Attaching)
    assert imported(done, 0) == Mark(Const.of("/x"), Const.of("y"), Const.of(""))
    assert imported(done, 1) == Mark(UNKNOWN, UNKNOWN, UNKNOWN)
    marked = imported(done, 2)
    assert isinstance(marked, Marked)
    assert marked.mark == Mark(Const.of("/x"), Const.of(""), Const.of("GET"))
    (made,) = attaching.made
    assert (made.mark, [f.qualname for f in made.functions]) == (marked.mark, ["handler"])
    assert not attaching.active


def test_attributes_of_classes(probe: Probe) -> None:
    """What is assigned is known by name; behind a condition nothing is."""
    done = probe("add(A, 'handle')\nperhaps(A)\nadd(A, os.environ['NAME'])", MODULE)
    info, attaching = done.of_class("A"), done.walk.attaching
    attaching.watch(info)
    assert attaching.assigned(info) == {}
    imported(done, 0)
    found = attaching.assigned(info)
    assert found is not None
    assert list(found) == ["handle", "more"]
    assert [one.qualname for one in code_in(found["handle"])] == ["handler"]
    imported(done, 1)
    assert attaching.assigned(info) == found, "it had the attribute already, with the same value"
    imported(done, 2)
    assert attaching.assigned(info) is None


def test_a_condition_makes_attributes_unknown(probe: Probe) -> None:
    done = probe("perhaps(A)", MODULE)
    info, attaching = done.of_class("A"), done.walk.attaching
    attaching.watch(info)
    imported(done, 0)
    assert attaching.assigned(info) is None


def test_names_of_a_class_that_are_not_bound_yet(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    info = done.of_class("A")
    assert isinstance(info, ClassInfo)
    assert class_context(info, "second").unbound == {"second"}
    assert class_context(info, "first").unbound == {"first", "second"}


def test_code_of_a_value(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    handler = FunctionValue(done.function)
    assert [*code_in(Marked(handler, UNKNOWN))] == [done.function]
    assert [*code_in(UNKNOWN)] == []
    assert is_endpoint_mark("mup.EP")
    assert not is_endpoint_mark("web.EP")
