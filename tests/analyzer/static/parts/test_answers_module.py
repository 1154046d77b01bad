"""What several values answer together."""

from __future__ import annotations

from analyzer.static.values import NONE, UNKNOWN, Const, TupleValue, agreed, answer, any_of, negated
from analyzer.static.values.constants import index_among


def test_answers_are_joined() -> None:
    assert agreed([True, True]) is True
    assert agreed([True, False]) is None
    assert agreed(list[bool]()) is None
    assert any_of([False, None, True]) is True
    assert any_of([False, None]) is None
    assert any_of([]) is False
    assert (answer(holds=None), negated(holds=None)) == (UNKNOWN, UNKNOWN)
    assert negated(holds=True) == answer(holds=False) == Const.of(value=False)


def test_an_index_counts_from_either_end() -> None:
    assert [index_among(Const.of(place), 2) for place in (0, 1, -1, 2, -3)] == [0, 1, 1, None, None]
    assert index_among(UNKNOWN, 2) is None
    assert index_among(Const.of("0"), 2) is None


def test_only_a_text_has_a_text_and_only_a_tuple_several_classes() -> None:
    assert [one.text for one in (Const.of("a"), Const.of(1), NONE, UNKNOWN)] == ["a", None, None, None]
    assert TupleValue((NONE, UNKNOWN)).classes() == (NONE, UNKNOWN)
    assert NONE.classes() == (NONE,)
