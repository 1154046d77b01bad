"""A loop of which any number of iterations may happen."""

from __future__ import annotations

from dataclasses import replace

from analyzer.static.application import Operation
from analyzer.static.repetition import carried, repetition
from analyzer.static.state import Flow, State
from analyzer.static.values import LOST, UNKNOWN, Const, Future
from mup.events.sites import Site

SITE = Site("app.py", "f", 0, 1, 0)
CALL, GET = Operation("call", SITE, "B/b/"), Operation("get", SITE, of=0)
BEFORE = State(({"x": Const.of(1)},))


def test_an_iteration_that_communicates_becomes_a_body() -> None:
    end = BEFORE.after(CALL).after(GET)
    loop = repetition(BEFORE, [BEFORE, end], SITE)
    assert loop.loop is not None
    assert [body.operations for body in loop.loop.bodies] == [(CALL, GET)]
    assert loop.end(Flow(end)).state.operations == (loop.loop,)


def test_a_way_out_keeps_what_it_did_and_its_futures_move() -> None:
    end = BEFORE.after(CALL).after(GET)
    loop = repetition(BEFORE, [end], SITE)
    leaving = BEFORE.after(CALL).bind("f", Future(0))
    left = loop.leave(Flow(leaving, "break")).state
    assert left.operations == (loop.loop, CALL)
    assert left.frames[-1]["f"] == Future(1)


def test_a_loop_that_only_computes_is_none() -> None:
    loop = repetition(BEFORE, [BEFORE], SITE)
    assert loop.loop is None
    assert loop.leave(Flow(BEFORE)).state == BEFORE


def test_what_an_iteration_leaves_behind_the_next_one_finds() -> None:
    other = BEFORE.bind("x", Const.of(2))
    assert carried(BEFORE, [other]).frames == ({"x": UNKNOWN},)
    pending = replace(BEFORE.after(CALL), frames=({"x": Future(0)},))
    assert carried(BEFORE, [pending]).frames == ({"x": LOST},)
