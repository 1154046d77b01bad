"""What holds only inside a piece of code is left when that code is left, also by an exception."""

from __future__ import annotations

from contextlib import suppress

import pytest
from probing import Probe

from analyzer.static.diagnostics import Diagnostics
from analyzer.static.state import Flow, State
from analyzer.static.values import NONE
from analyzer.static.walk import Context, Points, TooLongError, TooManyPathsError


def test_every_scope_ends_with_its_code(probe: Probe) -> None:
    done = probe("return 1")
    walk, here = done.walk, Context(done.function.module)
    before = (
        list(walk.contexts),
        walk.raised,
        list(walk.tries),
        walk.diagnostics,
        walk.unrolls([NONE] * 1000),
    )
    for scope in (
        lambda: walk.within(here),
        lambda: walk.widened([NONE, NONE]),
        walk.catching,
        lambda: walk.apart(here, Diagnostics()),
        walk.unhurried,
        walk.trying,
        walk.collected,
        walk.watched,
    ):
        with suppress(TooManyPathsError), scope():
            walk.raised.append(Flow(State(({},)), "raise"))
            raise TooManyPathsError
        walk.raised.clear()
        after = (
            list(walk.contexts),
            walk.raised,
            list(walk.tries),
            walk.diagnostics,
            walk.unrolls([NONE] * 1000),
        )
        assert after == before


def test_loops_inside_one_another_multiply(probe: Probe) -> None:
    walk = probe("return 1").walk
    with walk.widened([NONE] * 10):
        assert walk.unrolls([NONE] * 100)
        assert not walk.unrolls([NONE] * 101)


def test_an_attempt_counts_only_if_it_is_kept(probe: Probe) -> None:
    walk = probe("return 1").walk
    state = State(({},))
    for kept in (False, True):
        with walk.collected() as points, walk.catching() as raised:
            with walk.trying() as trial:
                walk.may_fail(state, "local")
                walk.raised.append(Flow(state, "raise"))
                trial.kept = kept
            assert bool(points.states) is kept
            assert bool(raised) is kept


def test_too_many_steps_are_given_up(probe: Probe) -> None:
    walk = probe("return 1").walk
    with pytest.raises(TooLongError, match="takes more than"):
        walk.spend(10**9)


def test_points_of_a_copy_are_its_own() -> None:
    points = Points()
    points.add("local", State(({},)))
    points.copy().add("local", State(({},)))
    assert len(points.states["local"]) == 1
