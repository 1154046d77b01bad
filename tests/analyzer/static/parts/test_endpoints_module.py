"""Functions that are marked as endpoints."""

from __future__ import annotations

from analyzer.static.values import UNKNOWN, Const, External, ListRef, Partial, TupleValue, join
from analyzer.static.values.endpoints import Mark, Marked, mark_of, unmarked

MARK = Mark(Const.of("/x"), Const.of(""), Const.of("GET"))
OTHER = Mark(Const.of("/y"), Const.of(""), Const.of(""))
ONE, TWO = External("a.one"), External("a.two")


def test_what_serves_requests_has_no_mark() -> None:
    """However deep it is in a value."""
    assert unmarked(Marked(ONE, MARK)) == ONE
    assert unmarked(Partial(Marked(Marked(ONE, MARK), OTHER), ())) == Partial(ONE, ())
    assert unmarked(TupleValue((Marked(ONE, MARK), UNKNOWN))) == TupleValue((ONE, UNKNOWN))
    assert unmarked(ListRef(1)) == ListRef(1)


def test_mark_of_what_may_be_several() -> None:
    assert mark_of(ONE) is None
    assert mark_of(Marked(ONE, MARK)) == MARK
    assert mark_of(join([Marked(ONE, MARK), Marked(TWO, MARK)])) == MARK
    assert mark_of(join([Marked(ONE, MARK), Marked(TWO, OTHER)])) == UNKNOWN
    assert mark_of(join([Marked(ONE, MARK), TWO])) == UNKNOWN
