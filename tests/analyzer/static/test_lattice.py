"""Whatever the order in which values meet, the same is known; and no future is lost."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from kinds_of_values import random_value, zoo

from analyzer.static.state import State, join_contents, merge
from analyzer.static.values import LOST, UNKNOWN, Const, DictRef, Future, ListRef, OneOf, Slot, Value, join
from analyzer.static.values.value import MAX_ALTERNATIVES

KINDS = zoo().kinds
TRIPLES = 3000


def triples(seed: int) -> Iterator[tuple[Value, Value, Value]]:
    """Yield random triples of values."""
    draw = random.Random(seed)
    for _ in range(TRIPLES):
        yield tuple(random_value(draw, KINDS) for _ in range(3))  # type: ignore[misc]


def below(one: Value, other: Value) -> bool:
    """Return whether all that may be one of them may be the other."""
    return join([one, other]) == other


def test_join_is_associative() -> None:
    differing = [t for t in triples(1) if join([join(t[:2]), t[2]]) != join([t[0], join(t[1:])])]
    assert differing == []


def test_join_of_all_at_once_is_join_of_one_after_the_other() -> None:
    assert all(join(t) == join([join(t[:2]), t[2]]) for t in triples(2))


def test_join_is_commutative_and_idempotent() -> None:
    for one, other, _ in triples(3):
        assert join([one, other]) == join([other, one])
        assert join([one, one]) == one


def test_join_is_monotone() -> None:
    for one, more, other in triples(4):
        assert below(one, join([one, more]))
        assert below(join([one, other]), join([one, more, other]))


def test_join_never_loses_a_future() -> None:
    for values in triples(5):
        joined = join(values)
        known = {index for value in values for index in value.futures()}
        assert joined == LOST or known <= set(joined.futures())
        assert joined.holds() or not any(value.holds() for value in values)
        assert joined.tracked() or not any(value.tracked() for value in values)


def test_nothing_joined_changes_nothing() -> None:
    assert all(join([join(()), value]) == value for value, _, _ in triples(6))


@pytest.mark.parametrize("held", [Future(0), ListRef(1), DictRef(1)], ids=["future", "list", "dict"])
def test_something_unknown_stands_for_all_but_what_may_hold_a_future(held: Value) -> None:
    assert join([UNKNOWN, Const.of(1), held]) == OneOf(frozenset({UNKNOWN, held}))
    many = [Const.of(number) for number in range(MAX_ALTERNATIVES + 1)]
    assert join([*many, held]) == OneOf(frozenset({UNKNOWN, held}))


def test_more_futures_than_can_be_told_apart_are_lost() -> None:
    assert join(Future(index) for index in range(MAX_ALTERNATIVES + 1)) == LOST


@pytest.mark.parametrize("keyed", [False, True], ids=["list", "object"])
def test_contents_meet_in_any_order(keyed: bool) -> None:
    draw = random.Random(7)
    heap = {1: (), 2: (), 3: ()}

    def content() -> tuple[tuple[Value, Value], ...] | Value:
        names = draw.sample("abc", draw.randrange(1, 4))
        pairs = tuple((Slot(n) if keyed else UNKNOWN, random_value(draw, KINDS)) for n in sorted(names))
        return pairs if draw.random() < 0.9 else draw.choice((UNKNOWN, LOST))

    for _ in range(1000):
        a, b, c = content(), content(), content()
        one = join_contents([join_contents([a, b], heap), c], heap)
        other = join_contents([a, join_contents([b, c], heap)], heap)
        assert _by_key(one) == _by_key(other)


def _by_key(content: tuple[tuple[Value, Value], ...] | Value) -> object:
    """Return contents of which the order of attributes counts for nothing."""
    by_name = not isinstance(content, Value) and all(isinstance(key, Slot) for key, _ in content)
    return dict(content) if by_name else content  # type: ignore[arg-type]


def test_states_meet_in_any_order() -> None:
    draw = random.Random(8)
    for _ in range(500):
        states = [State(({"x": random_value(draw, KINDS)},), heap={1: ()}) for _ in range(3)]
        assert merge([*merge(states[:2]), states[2]]) == merge([states[0], *merge(states[1:])])
