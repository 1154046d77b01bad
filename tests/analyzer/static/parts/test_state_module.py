"""Executions that have done the same are the same."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.application import Operation
from analyzer.static.state import MAX_PLANS, Flow, State, forget, holds_tracked, merge, merge_flows
from analyzer.static.values import (
    LOST,
    UNKNOWN,
    Const,
    External,
    Future,
    ListRef,
    Many,
    Partial,
    TupleValue,
    Value,
    Variants,
    join,
)
from analyzer.static.values.copies import MAX_VARIANTS
from mup.events.sites import Site

CALL = Operation("call", Site("app.py", "f", 0, 1, 0), "B/b/")


def test_states_with_equal_operations_become_one() -> None:
    one, other = State(({"x": Const.of(1)},)), State(({"x": Const.of(2), "y": UNKNOWN},))
    (merged,) = merge([one, other])
    assert merged.frames == ({"x": join([Const.of(1), Const.of(2)]), "y": UNKNOWN},)
    assert len(merge([one, one.after(CALL)])) == 2


@pytest.mark.parametrize("item", [External("print"), Const.of(1), UNKNOWN])
def test_lists_of_plain_things_are_forgotten_where_they_differ(item: Value) -> None:
    shorter, longer = (State(({},), heap={1: ((UNKNOWN, item),) * number}) for number in (1, 2))
    (merged,) = merge([shorter, longer])
    assert merged.heap[1] == UNKNOWN


@pytest.mark.parametrize(
    "item",
    [Const.of("/a/"), TupleValue((Const.of("B"), Const.of("/a/"), UNKNOWN)), ListRef(2)],
    ids=["text", "tuple", "list"],
)
def test_lists_of_what_may_be_addressed_are_known_by_their_length(item: Value) -> None:
    states = [State(({},), heap={1: ((UNKNOWN, item),) * number, 2: ()}) for number in (2, 0)]
    (merged,) = merge(states)
    assert merged.heap[1] == Variants(((), ((UNKNOWN, item),) * 2))
    assert [len(one.heap[1]) for one in merged.apart([ListRef(1)])] == [0, 2]  # type: ignore[arg-type]
    assert merged.apart([ListRef(2)]) == [merged]
    (other,) = merge([merged, State(({},), heap={1: UNKNOWN, 2: ()})])
    assert other.heap[1] == UNKNOWN


def test_of_lists_of_many_lengths_it_is_known_what_is_in_them() -> None:
    names = [Const.of(name) for name in "ab"]
    contents = [tuple((UNKNOWN, one) for one in (names * MAX_VARIANTS)[:n]) for n in range(MAX_VARIANTS + 1)]
    (merged,) = merge(State(({},), heap={1: content}) for content in contents)
    assert merged.heap[1] == Many(join(names), partly=True)
    (longer,) = merge([merged, State(({},), heap={1: ((UNKNOWN, Const.of("c")),)})])
    assert longer.heap[1] == Many(join([*names, Const.of("c")]), partly=True)


def test_lists_of_what_is_to_be_awaited_are_not_many() -> None:
    held = [State(({},), (CALL,), (0, 0), heap={1: ((UNKNOWN, Future(0)),) * number}) for number in (1, 2)]
    (merged,) = merge(held)
    assert merged.heap[1] == LOST


def test_lists_of_what_is_to_be_done_stay_apart() -> None:
    todo = Partial(External("print"), ())
    states = [State(({},), heap={1: ((UNKNOWN, todo),) * number}) for number in (1, 2, 1)]
    assert [len(state.heap[1]) for state in merge(states)] == [1, 2]  # type: ignore[arg-type]
    assert len(merge_flows([Flow(state) for state in states])) == 2
    many = [State(({},), heap={1: ((UNKNOWN, todo),) * number}) for number in range(MAX_PLANS + 1)]
    (merged,) = merge(many)
    assert merged.heap[1] == UNKNOWN


def test_ways_to_end_stay_apart() -> None:
    state = State(({},))
    flows = merge_flows(
        [Flow(state, "return", Const.of(1)), Flow(state, "raise"), Flow(state, "return", Const.of(2))]
    )
    assert [flow.kind for flow in flows] == ["return", "raise"]
    assert flows[0].value == join([Const.of(1), Const.of(2)])


def test_a_future_is_found_through_the_heap() -> None:
    heap = {1: ((UNKNOWN, ListRef(2)),), 2: ((UNKNOWN, Future(0)), (UNKNOWN, ListRef(1)))}
    assert holds_tracked(ListRef(1), heap)
    assert not holds_tracked(ListRef(3), heap)
    assert forget([heap[1]], heap) == LOST
    assert State((), heap=heap).content_of([ListRef(3)]) == UNKNOWN


def test_operations_keep_their_lines() -> None:
    state = State(({},)).at_local_work(3).at_local_work(4).after(CALL).at_local_work(5)
    assert state.local_lines == (3, 5)


def test_lists_of_objects_that_communicate_stay_apart(probe: Probe) -> None:
    module = """
class Mail:
    def __init__(self, comm): self.comm = comm
    def send(self): return self.comm.call('B', '/b/').get()
class Text(Mail):
    def send(self): return self.comm.call('B', '/c/').get()
"""
    body = "\n".join(
        (
            *("found = []", "if x:", "    found.append(Mail(comm))", "if y:", "    found.append(Text(comm))"),
            *("if found:", "    return found[0].send()"),
        )
    )
    done = probe(body, module, x=UNKNOWN, y=UNKNOWN)
    assert sorted(set(done.ways)) == ["callB/b/ get return", "callB/c/ get return", "next"]
    assert done.codes == []


@pytest.mark.parametrize(
    "filled",
    [
        "for _ in comm.params['x']:\n    undo.append('/b/')",
        "for _ in comm.params['x']:\n    undo.append('/b/')\nundo.append('/c/')",
        "if comm.params['x']:\n    undo.append('/b/')",
    ],
    ids=["loop", "loop and more", "branch"],
)
def test_what_other_code_may_change_is_not_known_any_more(probe: Probe, filled: str) -> None:
    body = f"undo = []\n{filled}\nother.fill(undo)\nfor path in undo:\n    comm.call('B', path).get()"
    assert "MUP010" in probe(body, "import other\n").codes


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        (
            (
                "undo = ['/b/']\nfor _ in comm.params['x']:\n    undo.append('/c/')\nundo.append('/b/')\n"
                "for path in undo:\n    comm.call('B', path).get()"
            ),
            ["loop[callB/b/ get|callB/c/ get] next"],
        ),
        (
            (
                "undo = []\nfor _ in comm.params['x']:\n    undo.append('/c/')\nundo.append('/b/')\n"
                "while undo:\n    comm.call('B', undo.pop()).get()"
            ),
            ["loop[callB/b/ get|callB/c/ get] next"],
        ),
        (
            (
                "undo = []\nsent = []\nfor _ in comm.params['x']:\n    sent.append(comm.call('B', '/b/'))\n"
                "    undo.append('/c/')\nfor one in sent:\n    one.get()\n"
                "for path in undo:\n    comm.call('B', path).get()"
            ),
            ["fan-out[callB/b/ get] join loop[callB/c/ get] next"],
        ),
    ],
    ids=["more", "taken", "beside futures"],
)
def test_any_number_of_items_and_others_behind_them(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body)
    assert (done.ways, done.codes) == (ways, [])
