"""What constants do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.static.values import UNKNOWN, External
from analyzer.static.values.constants import MAX_CHARACTERS, NONE, Const

PLAIN = st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.booleans(), st.none())


@given(PLAIN, PLAIN)
def test_keys_are_equal_as_in_python(one: object, other: object) -> None:
    assert (Const.of(one).as_key() == Const.of(other).as_key()) is (one == other)


@given(PLAIN)
def test_a_constant_is_true_as_in_python(value: object) -> None:
    assert Const.of(value).truth({}) is bool(value)
    assert External("builtins.str").has_instance(value) is isinstance(value, str)


def test_the_type_of_a_constant_counts() -> None:
    assert Const.of(1) != Const.of(value=True)
    assert NONE.python() == (True, None)
    assert UNKNOWN.python() == (False, None)
    assert MAX_CHARACTERS > 100
