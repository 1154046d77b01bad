"""What conditions have told, and when it stops being true."""

from __future__ import annotations

from analyzer.static.facts import changed_in_loop, holding, without_facts
from analyzer.static.state import State
from analyzer.static.values import NONE, UNKNOWN, Const, Future, Unknown, join

TRUE = Unknown(known_truth=True)


def test_a_condition_leaves_what_can_have_that_answer() -> None:
    assert holding(join([NONE, Const.of("a")]), holds=True) == Const.of("a")
    assert holding(UNKNOWN, holds=True) == TRUE
    assert holding(NONE, holds=True) == NONE  # it never comes here


def test_facts_are_forgotten_and_futures_are_not() -> None:
    state = State(({"x": TRUE, "f": Future(0)},))
    assert without_facts(state).frames == ({"x": UNKNOWN, "f": Future(0)},)


def test_only_what_an_iteration_changes_is_forgotten() -> None:
    start = State(({"x": TRUE, "y": TRUE},))
    end = State(({"x": TRUE, "y": UNKNOWN},))
    assert changed_in_loop(start, [end]).frames == ({"x": TRUE, "y": UNKNOWN},)
    assert changed_in_loop(start, [start]) is start
