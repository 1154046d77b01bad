"""Positional and keyword arguments, and what stands before them."""

from __future__ import annotations

from analyzer.static.arguments import Arguments
from analyzer.static.values import NONE, UNKNOWN, Const

ONE, TWO = Const.of(1), Const.of(2)


def test_an_argument_is_found_by_place_or_name() -> None:
    given = Arguments.of(ONE).behind((), [("b", TWO)])
    assert given.get(0, ("a",))[0] == ONE
    assert given.get(1, ("a", "b"))[0] == TWO
    assert given.get(1, ("c",)) == (None, None)


def test_arguments_of_a_partial_stand_before_and_a_keyword_of_the_call_wins() -> None:
    given = Arguments.of(TWO).behind((), [("b", TWO)]).behind((ONE,), [("b", ONE), ("c", NONE)])
    assert given.positional() == [ONE, TWO]
    assert dict(given.keywords()) == {"b": TWO, "c": NONE}
    assert given.plain
    assert UNKNOWN not in given.values
