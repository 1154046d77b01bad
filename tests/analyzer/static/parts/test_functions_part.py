"""What calling a function of the source tree does."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.functions import Functions
from analyzer.static.values import UNKNOWN, Const


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("f(1)", (1, 2, (), ())),
        ("f(1, 3, 4)", (1, 3, (4,), ())),
        ("f(1, b=5)", (1, 5, (), ())),
    ],
)
def test_parameters_get_their_arguments(probe: Probe, call: str, expected: object) -> None:
    module = "def f(a, b=2, *rest, c=()):\n    return (a, b, rest, c)\n"
    done = probe(f"return {call}", module)
    assert isinstance(done.walk.functions, Functions)
    assert done.value.python() == (True, expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("options.setdefault('path', '/c/')", "/b/"),
        ("options.setdefault('other', '/c/')", "/b/"),
        ("options['path'] = '/c/'", "/c/"),
        ("options.update(path='/c/')", "/c/"),
        ("options.pop('path')", "/c/"),
        ("del options['path']", "/c/"),
        ("comm.params", "/b/"),
    ],
)
def test_a_function_may_change_its_keyword_arguments(probe: Probe, change: str, expected: str) -> None:
    module = f"def f(comm, **options):\n    {change}\n    comm.call('B', options.get('path', '/c/'))\n"
    done = probe("f(comm, path='/b/')", module)
    assert done.codes == []
    assert done.ways == [f"callB{expected} next"]


def test_keyword_arguments_of_each_call_are_its_own(probe: Probe) -> None:
    module = "def f(comm, **options):\n    path = options.pop('path', '/b/')\n    comm.call('B', path, **options).get()\n"
    done = probe("f(comm, path='/c/', timeout=1)\nf(comm)", module)
    assert done.codes == []
    assert done.ways == ["callB/c/ get callB/b/ get next"]


def test_a_helper_that_communicates_is_inlined(probe: Probe) -> None:
    module = "def helper(comm):\n    return comm.call('B', '/b/').get()\n"
    assert probe("helper(comm)", module).ways == ["callB/b/ get next"]


def test_recursion_that_communicates_is_reported(probe: Probe) -> None:
    module = "def again(comm):\n    comm.call('B', '/b/').get()\n    again(comm)\n"
    assert probe("again(comm)", module).codes == ["MUP032"]


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("down(comm, 3)", 3),
        ("down(comm, depth=2)", 2),
        ("each(comm, ('/b/', '/c/'))", 2),
        ("each(comm, ['/b/', '/c/', '/b/'])", 3),
        ("plan(comm, {'path': '/b/', 'then': [{'path': '/c/', 'then': []}]})", 2),
        ("Tree(comm).walk(0)", 3),
    ],
)
def test_recursion_that_counts_is_unrolled(probe: Probe, body: str, calls: int) -> None:
    """Each call gets a constant that none of those around it has got."""
    module = """
    def down(comm, depth):
        if depth > 0:
            comm.call("B", "/b/").get()
            down(comm, depth - 1)
    def each(comm, paths):
        if paths:
            first, *rest = paths
            comm.call("B", first).get()
            each(comm, rest)
    def plan(comm, node):
        comm.call("B", node["path"]).get()
        for one in node["then"]:
            plan(comm, one)
    class Tree:
        def __init__(self, comm):
            self.comm = comm
        def walk(self, depth):
            self.comm.call("B", "/b/").get()
            return depth if depth == 2 else self.walk(depth + 1)
    """
    done = probe(body, module)
    assert ([way.count("call") for way in done.ways], done.codes) == ([calls], [])


LAYERS = """
    class Layer:
        def __init__(self, then):
            self.then = then
        def run(self, comm):
            return self.then(comm)
    class Logged(Layer):
        def run(self, comm):
            comm.call("B", "/c/").get()
            return super().run(comm)
    class Node:
        def __init__(self, path, *children):
            self.path, self.children = path, children
        def visit(self, comm):
            comm.call("B", self.path).get()
            for child in self.children:
                child.visit(comm)
        def later(self, comm):
            comm.call("B", self.path).get()
            Node("/c/").later(comm)
    class Step:
        def __init__(self, path, then=None):
            self.path, self.then = path, then
        def run(self, comm):
            comm.call("B", self.path).get()
            if self.then is not None:
                self.then.run(comm)
    STEPS = Step("/b/", Step("/c/", Step("/b/")))
    def work(comm):
        return comm.call("B", "/b/").get()
"""


@pytest.mark.parametrize(
    ("body", "calls"),
    [
        ("Layer(Logged(Layer(Logged(work).run).run).run).run(comm)", 3),
        ("Node('/b/', Node('/c/', Node('/b/')), Node('/c/')).visit(comm)", 4),
        ("STEPS.run(comm)", 3),
        ("Step('/c/', STEPS).run(comm)", 4),
    ],
)
def test_recursion_to_older_objects_is_unrolled(probe: Probe, body: str, calls: int) -> None:
    """What an object was given when it was made was there before: layers around a handler, nodes of a tree."""
    done = probe(body, LAYERS)
    assert ([way.count("call") for way in done.ways], done.codes) == ([calls], [])


@pytest.mark.parametrize(
    "body",
    [
        "Node('/b/').later(comm)",
        "one = Node('/b/')\nother = Node('/c/', one)\none.children = [other]\nother.visit(comm)",
    ],
)
def test_recursion_to_newer_objects_is_reported(probe: Probe, body: str) -> None:
    """It may have no end: each makes the next, or they know each other."""
    assert "MUP032" in probe(body, LAYERS).codes


@pytest.mark.parametrize("body", ["down(comm, comm.params['depth'])", "down(comm, 1000)", "down(comm, 0)"])
def test_recursion_without_a_visible_end_is_reported(probe: Probe, body: str) -> None:
    module = "def down(comm, n):\n    comm.call('B', '/b/').get()\n    if n:\n        down(comm, n or 0)\n"
    assert probe(body, module).codes == ([] if body == "down(comm, 0)" else ["MUP032"])


def test_a_nested_function_sees_the_variables_around_it(probe: Probe) -> None:
    assert probe("x = 1\ndef inner():\n    return x\nx = 2\nreturn inner()").value == Const.of(2)
    module = "def make():\n    x = 1\n    def inner():\n        return x\n    return inner\n"
    assert probe("return make()()", module).value == Const.of(1)
    assert probe("return send(1)", send=UNKNOWN).value == UNKNOWN


@pytest.mark.parametrize(
    ("decorator", "ways"),
    [
        pytest.param("@lib.never_raises(default=0)", ["callB/b/ get next"], id="of-a-library"),
        pytest.param("@lru_cache", ["raise"], id="that-remembers"),
        pytest.param("", ["raise"], id="none"),
    ],
)
def test_a_decorator_that_is_not_known_may_swallow_errors(
    probe: Probe, decorator: str, ways: list[str]
) -> None:
    """Where nothing communicates it is no error, but nothing is said of what the function does either."""
    module = (
        f"import lib\nfrom functools import lru_cache\n{decorator}\ndef parse(text):\n    raise ValueError\n"
    )
    done = probe("parse(1)\ncomm.call('B', '/b/').get()", module)
    assert done.ways == ways
    assert done.codes == []


def test_what_a_function_called_by_a_lambda_raises_is_caught_outside(probe: Probe) -> None:
    module = """
class Declined(Exception):
    pass
def pay(comm):
    comm.call('B', '/b/').get()
    raise Declined
def step(action):
    try:
        return action()
    except Exception:
        return None
"""
    done = probe("step(lambda: pay(comm))\ncomm.call('B', '/c/')", module)
    assert done.codes == []
    assert "callB/b/ get callB/c/ next" in done.ways


ATTEMPT = """
from dataclasses import dataclass
from mup.errors import CallError
class OwnError(Exception):
    pass
def refused():
    raise OwnError
@dataclass(frozen=True)
class Ok:
    value: object
def attempt(operation):
    try:
        return Ok(operation())
    except (CallError, OwnError):
        return None
def priced(comm):
    tax = comm.call("B", "/c/")
    comm.call("B", "/b/").get()
    return attempt(tax.get)
"""


def test_a_function_runs_inside_of_itself_with_other_code(probe: Probe) -> None:
    """What runs code that it is handed calls itself only in name, where that code does it again."""
    found = probe("attempt(lambda: priced(comm))", ATTEMPT)
    assert not found.codes
    assert "callB/c/ callB/b/ get get next" in found.ways
