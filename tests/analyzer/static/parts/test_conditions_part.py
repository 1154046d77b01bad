"""What a condition tells about the values it is about."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.conditions import TRUTH, Conditions
from analyzer.static.values import NONE, UNKNOWN, Const, Unknown, join


def test_what_is_known_decides(probe: Probe) -> None:
    done = probe("x = [1]\nif x and not []:\n    return 1\nreturn 2")
    assert isinstance(done.walk.conditions, Conditions)
    assert done.value == Const.of(1)


def test_none_is_told_from_what_is_not(probe: Probe) -> None:
    maybe = join([NONE, Const.of("a")])
    assert probe("if x is not None:\n    return x", x=maybe).flows[0].value == Const.of("a")
    assert probe("if x is None:\n    return x", x=maybe).flows[0].value == NONE


def test_a_text_that_was_compared_is_known(probe: Probe) -> None:
    done = probe("if x in ('a', 'b'):\n    return x\nreturn 'c'", x=UNKNOWN)
    assert done.value == join([Const.of("a"), Const.of("b"), Const.of("c")])


@pytest.mark.parametrize("container", ["NAMES", "View.names", "View().names", "view.names", "TABLE"])
def test_a_text_is_one_of_what_a_constant_holds(probe: Probe, container: str) -> None:
    module = """
NAMES = ("a", "b")
TABLE = {"a": 1, "b": 2}
class View:
    names = ("a", "b")
"""
    body = f"view = View()\nif x not in {container}:\n    return 'c'\nreturn x.upper()"
    found = join([Const.of("A"), Const.of("B"), Const.of("c")])
    # Only what is looked at is followed: a call may do anything.
    assert probe(body, module, x=UNKNOWN).value == (UNKNOWN if "()" in container else found)


def test_the_answer_is_kept_for_the_next_condition(probe: Probe) -> None:
    done = probe("if x:\n    return x\nreturn x", x=UNKNOWN)
    assert {flow.value for flow in done.flows} <= {
        Unknown(known_truth=True),
        Unknown(known_truth=False),
        UNKNOWN,
    }
    assert TRUTH[0] == "__bool__"


@pytest.mark.parametrize("condition", ["x or not x", "x or y or not x", "not (x and not x)"])
def test_what_always_holds_has_one_answer(probe: Probe, condition: str) -> None:
    done = probe(f"if {condition}:\n    return 1\nreturn 2", x=UNKNOWN, y=UNKNOWN)
    assert done.value == Const.of(1)


MODULE = """
import enum
from dataclasses import dataclass
class Color(enum.Enum):
    RED = enum.auto()
    BLUE = enum.auto()
    GREEN = enum.auto()
@dataclass
class Card:
    number: int = 1
@dataclass
class Cash:
    pass
Payment = Card | Cash
def some(x):
    return Card() if x else Cash()
def color(x):
    return Color.RED if x else Color.BLUE
"""


@pytest.mark.parametrize(
    "tests",
    [
        ("c is Color.RED", "c is Color.BLUE"),
        ("c == Color.RED", "c == Color.BLUE"),
        ("c != Color.BLUE", "c in (Color.BLUE, Color.GREEN)"),
        ("not c is Color.BLUE", "c is not Color.RED"),
        ("isinstance(p, Card)", "isinstance(p, Cash)"),
        ("isinstance(p, Card)", "isinstance(p, (Color, Cash))"),
        ("isinstance(p, Card)", "isinstance(p, Payment)"),
        ("not isinstance(p, Cash)", "not isinstance(p, Card)"),
        ("w == 'a'", "w == 'b'"),
        ("b", "b is False"),
    ],
)
def test_conditions_that_cover_all_cases_leave_none(probe: Probe, tests: tuple[str, str]) -> None:
    first, second = tests
    body = f"c, p = color(x), some(x)\nif {first}:\n    return 1\nelif {second}:\n    return 2\nreturn 3"
    both = join([Const.of(value=True), Const.of(value=False)])
    done = probe(body, MODULE, x=UNKNOWN, w=join([Const.of("a"), Const.of("b")]), b=both)
    assert done.value == join([Const.of(1), Const.of(2)])


@pytest.mark.parametrize(
    ("subject", "patterns"),
    [
        ("c", ("Color.RED", "Color.BLUE")),
        ("color(x)", ("Color.RED", "Color.BLUE")),
        ("p", ("Card(number=n)", "Cash()")),
        ("p", ("Card(n)", "Payment()")),
        ("b", ("True", "False")),
        ("w", ("'a'", "'b' | 'c'")),
    ],
)
def test_patterns_that_cover_all_cases_leave_none(
    probe: Probe, subject: str, patterns: tuple[str, str]
) -> None:
    cases = "".join(f"    case {one}:\n        return {n}\n" for n, one in enumerate(patterns, 1))
    body = f"c, p = color(x), some(x)\nmatch {subject}:\n{cases}return 3"
    both = join([Const.of(value=True), Const.of(value=False)])
    done = probe(body, MODULE, x=UNKNOWN, w=join([Const.of("a"), Const.of("b")]), b=both)
    expected = [1, 2, 3] if "Payment()" in patterns else [1, 2]
    assert done.value == join(map(Const.of, expected))


def test_a_guard_may_fail(probe: Probe) -> None:
    body = "match b:\n    case True if x:\n        return 1\n    case False:\n        return 2\nreturn 3"
    both = join([Const.of(value=True), Const.of(value=False)])
    assert probe(body, MODULE, x=UNKNOWN, b=both).value == join(map(Const.of, (1, 2, 3)))


def test_an_inner_match_says_nothing_about_the_outer_subject(probe: Probe) -> None:
    """Also where both have the same values."""
    body = "match b:\n    case _:\n        match (b, 1)[0]:\n            case True:\n                return b\nreturn 3"
    both = join([Const.of(value=True), Const.of(value=False)])
    assert probe(body, MODULE, b=both).value == join([*both.parts(), Const.of(3)])


def test_a_record_that_is_unpacked_keeps_what_each_part_may_be(probe: Probe) -> None:
    done = probe("a, b = ('x', 1) if x else ('y', 2)\nreturn a", MODULE, x=UNKNOWN)
    assert done.value == join([Const.of("x"), Const.of("y")])


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        ("assert False", ["raise"]),
        ("assert 0, 'never'", ["raise"]),
        ("assert x", ["next"]),
        ("try:\n    assert False\nexcept AssertionError:\n    pass", ["next"]),
        ("assert isinstance(p, Card)\nif isinstance(p, Cash):\n    comm.call('B', '/b/')", ["next"]),
    ],
)
def test_assertions(probe: Probe, body: str, ways: list[str]) -> None:
    assert probe(f"p = some(x)\n{body}", MODULE, x=UNKNOWN).ways == ways


@pytest.mark.parametrize(
    "helper",
    [
        "def fail(m) -> NoReturn:\n    log(m)\n    raise KeyError",
        "def fail(m):\n    m = 1\n    raise KeyError(m)",
    ],
)
def test_a_function_that_only_raises_does_not_return(probe: Probe, helper: str) -> None:
    done = probe("if x:\n    fail(1)\ncomm.respond(1)", f"from typing import NoReturn\n{helper}\n", x=UNKNOWN)
    assert "respond next" in done.ways
    assert set(done.ways) <= {"raise", "respond next"}
    assert probe("fail(1)\ncomm.respond(1)", f"from typing import NoReturn\n{helper}\n").ways == ["raise"]
