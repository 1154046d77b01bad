"""Arithmetic of constants is Python's, and only what is cheap."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.static.values import (
    UNKNOWN,
    Const,
    TupleValue,
    binary,
    compare,
    from_python,
    join,
    text_method,
    unary,
)
from analyzer.static.values.operators import MAX_TEXT

PLAIN = st.one_of(st.integers(-5, 5), st.text("ab%", max_size=3), st.booleans(), st.none())
FUNCTIONS = {"Add": operator.add, "Subtract": operator.sub, "Multiply": operator.mul, "Modulo": operator.mod}


@settings(deadline=None)
@given(st.sampled_from(sorted(FUNCTIONS)), PLAIN, PLAIN)
def test_an_operator_gives_what_python_gives(name: str, left: object, right: object) -> None:
    result = binary(name, Const.of(left), Const.of(right))
    if result != UNKNOWN:
        assert result.python() == (True, FUNCTIONS[name](left, right))


@settings(deadline=None)
@given(PLAIN, PLAIN)
def test_a_comparison_says_what_python_says(left: object, right: object) -> None:
    assert compare("Equal", Const.of(left), Const.of(right)) == Const.of(left == right)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [("Power", 10, 10**9), ("LeftShift", 1, 10**9), ("Multiply", "a", 10**9), ("Modulo", "%999999999d", 1)],
)
def test_what_would_not_fit_is_not_computed(name: str, left: object, right: object) -> None:
    assert binary(name, Const.of(left), Const.of(right)) == UNKNOWN


def test_every_combination_counts() -> None:
    either = join([Const.of(1), Const.of(2)])
    assert binary("Add", either, Const.of(1)) == join([Const.of(2), Const.of(3)])
    assert unary("Minus", either) == join([Const.of(-1), Const.of(-2)])
    assert binary("Add", TupleValue((UNKNOWN,)), TupleValue(())) == TupleValue((UNKNOWN,))


def test_long_texts_are_not_kept() -> None:
    assert from_python("a" * (MAX_TEXT + 1)) == UNKNOWN
    assert text_method("zfill", Const.of("1"), [Const.of(10**9)], {}) == UNKNOWN
    assert text_method("upper", Const.of("a"), [], {}) == Const.of("A")
