"""Ways that nothing can tell apart later."""

from __future__ import annotations

from analyzer.static.application import Operation, Path
from analyzer.static.factoring import as_trees, fold
from analyzer.static.state import Flow, State
from analyzer.static.values import UNKNOWN, External, Future, Partial
from mup.events.sites import Site

SITE = Site("app.py", "f", 0, 1, 0)


def call(line: int) -> Operation:
    return Operation("call", Site("app.py", "f", line, line, 0), f"B/{line}/")


GET = Operation("get", SITE, of=0)


def test_ways_that_have_ended_become_a_choice() -> None:
    ways = [Flow(State(({},)).after(call(1)).after(GET)), Flow(State(({},)).after(call(2)).after(GET))]
    folded = fold(ways, 0, [()], SITE)
    assert len({flow.state.operations for flow in folded}) == 1
    (choice,) = folded[0].state.operations
    assert choice.op == "choice"
    assert {body.operations[0] for body in choice.bodies} == {call(1), call(2)}


def test_what_is_left_to_be_done_makes_no_further_body() -> None:
    todo = (UNKNOWN, Partial(External("print"), ()))
    ways = [
        Flow(State(({},), heap={1: (todo,) * left}).after(call(line)).after(GET))
        for line in (1, 2)
        for left in (0, 1)
    ]
    folded = fold(ways, 0, [()], SITE)
    (choice,) = folded[0].state.operations
    assert [body.operations[0] for body in choice.bodies] == [call(1), call(2)]


def test_a_future_that_may_yet_be_waited_for_keeps_ways_apart() -> None:
    ways = [Flow(State(({"f": Future(0)},)).after(call(line))) for line in (1, 2)]
    assert {flow.state.operations for flow in fold(ways, 0, [("f",)], SITE)} == {(call(1),), (call(2),)}
    assert len({flow.state.operations for flow in fold(ways, 0, [()], SITE)}) == 1


def test_common_beginnings_of_paths_are_written_once() -> None:
    paths = [Path((call(1), call(line)), "return", 0, (0, 0, 0)) for line in (2, 3)]
    (tree,) = as_trees(paths)
    assert [operation.op for operation in tree.operations] == ["call", "choice"]
