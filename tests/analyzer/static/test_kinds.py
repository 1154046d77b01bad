"""Every kind of value answers for itself, and none lets a future out of sight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kinds_of_values import zoo

from analyzer.static import values
from analyzer.static.arguments import Arguments
from analyzer.static.catalogue import Catalogue
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.execution import Execution
from analyzer.static.state import Results, State
from analyzer.static.values import LOST, NONE, UNKNOWN, Const, Future, Value, mapped
from analyzer.static.walk import Context, Walk

ZOO = zoo()
ANSWERS = [name for name, one in vars(Value).items() if getattr(one, "__isabstractmethod__", False)]


def kinds(base: type[Value] = Value) -> Iterator[type[Value]]:
    """Yield all kinds; a family is no kind itself and has no public name in ``values``."""
    for one in base.__subclasses__():
        yield from kinds(one)
        if getattr(values, one.__name__, None) is one and one is not Value:
            yield one


def named(value: Value) -> str:
    return type(value).__name__


def walk() -> Walk:
    """Return a walk that is in the small tree."""
    made = Execution(ZOO.names, Catalogue({}, None), Diagnostics()).walk
    made.contexts = [Context(ZOO.module)]
    return made


@pytest.fixture
def evaluator() -> Walk:
    """A walk that is inside a function of the small tree."""
    return walk()


def start() -> State:
    """A state with the contents the values refer to, after a call."""
    from analyzer.static.application import Operation
    from mup.events.sites import Site

    call = Operation("call", Site("app.py", "f", 0, 1, 0), "B/b/")
    heap = {1: (), 2: (), 3: (), 4: (), 5: Const.of("new")}
    return State(({},), (call, call), (0, 0, 0), heap=heap)


def test_there_is_a_value_of_every_kind() -> None:
    assert {type(one) for one in ZOO.kinds} == set(kinds())


def test_an_unanswered_question_is_abstract() -> None:
    assert {"parts", "map", "truth", "call", "attribute", "read", "method", "item", "items"} == set(ANSWERS)


@pytest.mark.parametrize("kind", sorted(kinds(), key=lambda kind: kind.__name__))
def test_a_kind_answers_every_question(kind: type[Value]) -> None:
    open_questions = [name for name in ANSWERS if getattr(getattr(kind, name), "__isabstractmethod__", False)]
    assert open_questions == []


@pytest.mark.parametrize("value", ZOO.kinds, ids=named)
def test_a_value_is_made_of_its_parts(value: Value) -> None:
    assert value.map(lambda part: part) == value
    changed = value.map(lambda _: LOST)
    assert set(changed.parts()) <= {LOST}
    assert bool(value.parts()) is (changed != value)


@pytest.mark.parametrize("value", ZOO.kinds, ids=named)
def test_futures_are_found_and_replaced(value: Value) -> None:
    found = set(value.futures())
    assert found <= {0, 1}
    assert not found or value.tracked()
    moved = mapped(value, lambda future: Future(future.index + 5))
    assert set(moved.futures()) == {index + 5 for index in found}
    assert not set(mapped(value, lambda _: UNKNOWN).futures())


@pytest.mark.parametrize("value", ZOO.kinds, ids=named)
def test_a_value_knows_what_it_is_worth(value: Value) -> None:
    known, plain = value.python()
    if known:
        assert value.truth({}) in (None, bool(plain))
    if value.never_none:
        assert value.same(NONE) is False
        assert NONE.same(value) is False
    assert value.frozen(start(), frozenset(), walk()).place is None


def kept(results: Results) -> bool:
    """Return whether every way on still has the future that was handed over, or has waited for it."""
    return all(
        state.holds_tracked(value)
        or 0 in state.joined
        or any(
            not isinstance(c, Value) and any(state.holds_tracked(v) for _, v in c)
            for c in state.heap.values()
        )
        for state, value in results
    )


@pytest.mark.parametrize("value", ZOO.kinds, ids=named)
def test_calling_it_with_a_future_keeps_or_reports_it(value: Value, evaluator: Walk) -> None:
    results = value.call(Arguments.of(Future(0)), ZOO.call, start(), evaluator)
    reported = [d.code for d in evaluator.diagnostics.all()]
    assert reported or kept(results)


@pytest.mark.parametrize("value", ZOO.kinds, ids=named)
def test_its_attributes_and_items_hold_no_less(value: Value, evaluator: Walk) -> None:
    state = start()
    for results in (
        value.read("attribute", ZOO.call, state, evaluator),
        value.item(UNKNOWN, ZOO.call, state, evaluator),
    ):
        assert all(isinstance(after, State) and isinstance(one, Value) for after, one in results)
    items = value.items(state, evaluator)
    if items is not None and value.tracked():
        assert any(item.tracked() for item in items) or any(
            one.tracked() for pair in value.pairs(state.heap) or () for one in pair
        )


@pytest.mark.parametrize("value", ZOO.kinds, ids=named)
def test_handing_out_what_is_tracked_is_reported(value: Value, evaluator: Walk) -> None:
    evaluator.calls.release([value], start(), ZOO.call, "a library")
    communicates = value.tracked() or value.is_communication()
    assert bool(evaluator.diagnostics.all()) is communicates
