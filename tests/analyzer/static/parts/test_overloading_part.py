"""What operators of objects do."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.overloading import BINARY, COMPARING, UNARY, Overloading
from analyzer.static.values import COMM, UNKNOWN, Const

MODULE = """
class Lazy:
    def __init__(self, comm):
        self.comm = comm
    def ask(self, path="/b/"):
        return self.comm.call("B", path).get()
    def __add__(self, other):
        self.ask()
        return self
    def __radd__(self, other):
        self.ask("/c/")
        return 7
    def __iadd__(self, other):
        self.ask("/c/")
        return self
    def __sub__(self, other):
        return NotImplemented
    def __rsub__(self, other):
        self.ask("/c/")
        return 8
    def __or__(self, other):
        return other(self.comm)
    def __neg__(self):
        return self.ask()
    def __eq__(self, other):
        self.ask()
        return False
    def __lt__(self, other):
        self.ask()
        return True
    def __contains__(self, item):
        self.ask()
        return 3
    def __str__(self):
        return str(self.ask())
class Plain:
    def __init__(self, number):
        self.number = number
    def __add__(self, other):
        return Plain(self.number + other)
def step(comm):
    return comm.call("B", "/c/").get()
"""

ASKED = ["callB/b/ get return"]
OTHER = ["callB/c/ get return"]


@pytest.mark.parametrize(
    ("code", "ways"),
    [
        ("x + 1", ASKED),
        ("1 + x", OTHER),
        ("x - 1", ["return"]),
        ("x - x", OTHER),
        ("x | step", OTHER),
        ("-x", ASKED),
        ("x == 1", ASKED),
        ("1 == x", ASKED),
        ("x != 1", ASKED),
        ("x < 1", ASKED),
        ("1 > x", ASKED),
        ("1 in x", ASKED),
        ("1 not in x", ASKED),
        ("x is None", ["return"]),
    ],
)
def test_an_operator_is_a_method(probe: Probe, code: str, ways: list[str]) -> None:
    done = probe(f"x = Lazy(comm)\nreturn {code}", module=MODULE, comm=COMM)
    assert isinstance(done.walk.overloading, Overloading)
    assert (done.ways, done.codes) == (ways, [])


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + x", Const.of(7)),
        ("x - x", Const.of(8)),
        ("x == 1", Const.of(value=False)),
        ("x != 1", Const.of(value=True)),
        ("1 in x", Const.of(value=True)),
        ("1 not in x", Const.of(value=False)),
        ("x - 1", UNKNOWN),
        ("(Plain(1) + 2).number", Const.of(3)),
    ],
)
def test_what_the_method_returns_is_the_result(probe: Probe, code: str, value: object) -> None:
    assert probe(f"x = Lazy(comm)\nreturn {code}", module=MODULE, comm=COMM).value == value


def test_an_augmented_assignment_asks_its_own_method_first(probe: Probe) -> None:
    assert probe("x = Lazy(comm)\nx += 1", module=MODULE, comm=COMM).ways == ["callB/c/ get next"]
    done = probe("x = Lazy(comm)\nx -= x\nreturn x", module=MODULE, comm=COMM)
    assert (done.ways, done.value) == (OTHER, Const.of(8))


def test_one_of_several_operands(probe: Probe) -> None:
    done = probe("x = Lazy(comm) if flag else 1\nreturn x + 1", module=MODULE, comm=COMM, flag=UNKNOWN)
    assert done.ways == ["callB/b/ get return", "return"]


@pytest.mark.parametrize("code", ["f'{x}'", "'%s' % x", "0 < x < 3", "'{}'.format(x)"])
def test_what_is_not_followed_is_reported(probe: Probe, code: str) -> None:
    assert probe(f"x = Lazy(comm)\nreturn {code}", module=MODULE, comm=COMM).codes == ["MUP030"]


def test_every_operator_has_one_place() -> None:
    assert not set(BINARY) & set(COMPARING)
    assert not set(UNARY) & set(BINARY)
