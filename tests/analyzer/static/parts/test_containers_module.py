"""Dicts tell keys apart as Python does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from analyzer.static.state import State
from analyzer.static.values import UNKNOWN, Const, TupleValue, distinct, item_of, join, keyed, tuple_of
from analyzer.static.values.containers import DICT_METHODS, LIST_METHODS, MAX_ITEMS

KEYS = st.one_of(st.integers(0, 2), st.booleans(), st.sampled_from([0.0, 1.0, "a", None]))
PAIRS = st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=6)


@given(PAIRS)
def test_equal_keys_are_one(pairs: list[tuple[object, int]]) -> None:
    rows = keyed(tuple((Const.of(key), Const.of(value)) for key, value in pairs))
    assert rows is not None
    expected = dict(pairs)
    assert [(key.python()[1], value.python()[1]) for key, value in rows.values()] == list(expected.items())
    content = tuple(rows.values())
    for key, value in expected.items():
        assert item_of(content, Const.of(key)) == Const.of(value)


@given(PAIRS, PAIRS)
def test_an_update_is_python_s(first: list[tuple[object, int]], second: list[tuple[object, int]]) -> None:
    one, other = (tuple((Const.of(k), Const.of(v)) for k, v in pairs) for pairs in (first, second))
    merged = distinct((*one, *other), State(()))
    # One item alone may have any key: it stays as it is.
    assert isinstance(merged, tuple)
    assert [(k.python()[1], v.python()[1]) for k, v in merged] == list(
        {**dict(first), **dict(second)}.items()
    )


def test_an_unknown_key_may_be_any() -> None:
    content = ((Const.of("a"), Const.of(1)), (Const.of("b"), Const.of(2)))
    assert item_of(content, UNKNOWN) == join([Const.of(1), Const.of(2)])
    assert keyed((*content, (UNKNOWN, Const.of(3)))) is None
    assert distinct((*content, (UNKNOWN, Const.of(3))), State(())) == UNKNOWN


def test_enormous_tuples_are_not_known() -> None:
    assert tuple_of((Const.of(1),) * MAX_ITEMS) == TupleValue((Const.of(1),) * MAX_ITEMS)
    assert tuple_of((Const.of(1),) * (MAX_ITEMS + 2)) == UNKNOWN


def test_methods_stand_in_tables() -> None:
    assert all(
        hasattr(list, name) or name in ("add", "appendleft", "popleft", "update") for name in LIST_METHODS
    )
    assert all(hasattr(dict, name) for name in DICT_METHODS)
