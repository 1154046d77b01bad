"""How generators go on that have waited while code of other functions ran."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.resuming import Resuming

MODULE = """
from contextlib import AsyncExitStack, ExitStack, contextmanager

@contextmanager
def held(comm, path):
    comm.call('B', '/b/').get()
    try:
        yield path
    finally:
        comm.call('B', path).get()

@contextmanager
def tolerant(comm):
    try:
        yield
    except KeyError:
        comm.call('B', '/c/').get()

@contextmanager
def inside(comm):
    with held(comm, '/c/') as path:
        yield path

@contextmanager
def again(comm):
    comm.call('B', '/b/').get()
    yield 1
    yield 2

@contextmanager
def repeated(comm):
    for path in ('/b/', '/c/'):
        comm.call('B', path).get()
        yield path

@contextmanager
def never(comm):
    comm.call('B', '/b/').get()
    if comm.params['x']:
        yield 1

@contextmanager
def early(comm):
    future = comm.call('B', '/b/')
    sent = yield future
    if sent is None:
        future.get()
"""

STACK = "with ExitStack() as stack:\n    for make in ({}):\n        x = stack.enter_context(make)\n    {}"


@pytest.mark.parametrize(
    ("entered", "block", "ways"),
    [
        (
            "held(comm, '/b/'), held(comm, '/c/')",
            "comm.respond(x)",
            ["callB/b/ get callB/b/ get respond callB/c/ get callB/b/ get next"],
        ),
        ("tolerant(comm),", "raise KeyError", ["callB/c/ get next"]),
        ("tolerant(comm),", "raise ValueError", ["raise"]),
        (
            "tolerant(comm), held(comm, '/b/')",
            "raise KeyError",
            ["callB/b/ get callB/b/ get callB/c/ get next"],
        ),
        ("inside(comm),", "comm.respond(x)", ["callB/b/ get respond callB/c/ get next"]),
        ("never(comm),", "comm.respond(x)", ["callB/b/ get raise", "callB/b/ get respond next"]),
        ("early(comm),", "comm.respond(1)", ["callB/b/ respond get next"]),
    ],
    ids=["two", "swallowing", "passing", "both", "inside", "never", "early"],
)
def test_the_rest_of_a_generator_runs_when_a_stack_leaves_it(
    probe: Probe, entered: str, block: str, ways: list[str]
) -> None:
    done = probe(STACK.format(entered, block), MODULE)
    # Local work in it may fail, too.
    assert set(ways) <= set(done.ways)
    assert done.codes == []


@pytest.mark.parametrize(
    ("entered", "left"),
    [
        (
            "stack.enter_context(held(comm, '/c/'))\n    {many}",
            "respond loop[callB/b/ get|callB/b/] callB/c/ get next",
        ),
        (
            "{many}\n    stack.enter_context(held(comm, '/c/'))",
            "respond callB/c/ get loop[callB/b/ get|callB/b/] next",
        ),
    ],
    ids=["before", "behind"],
)
def test_what_a_loop_has_put_on_a_stack_is_left_in_its_place(probe: Probe, entered: str, left: str) -> None:
    many = "for _ in comm.params['x']:\n        stack.enter_context(held(comm, '/b/'))"
    body = f"with ExitStack() as stack:\n    {entered.format(many=many)}\n    comm.respond(1)"
    done = probe(body, MODULE)
    assert any(way.endswith(left) for way in done.ways)
    assert done.codes == []


def test_what_it_returns_tells_of_the_variables_it_kept(probe: Probe) -> None:
    body = "with ExitStack() as stack:\n    for n in range(2):\n        x = stack.enter_context(inside(comm))\n    return x"
    done = probe(body, MODULE)
    assert done.value.text == "/c/"


@pytest.mark.parametrize("made", ["again(comm)", "repeated(comm)"])
def test_generators_that_yield_otherwise_are_refused(probe: Probe, made: str) -> None:
    assert "MUP030" in probe(STACK.format(f"{made},", "comm.respond(1)"), MODULE).codes


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("stack.enter_context(held(comm, '/c/'))\ncomm.call('B', '/b/').get()\nstack.close()", ["MUP030"]),
        (
            "stack.enter_context(held(comm, '/c/'))\nother = stack.pop_all()\ncomm.call('B', '/b/').get()",
            ["MUP030"],
        ),
        (
            "try:\n    stack.enter_context(held(comm, '/c/'))\n    comm.respond(1)\nfinally:\n    stack.close()",
            [],
        ),
        (
            "with stack:\n    stack.enter_context(held(comm, '/c/'))\n    stack.pop_all().close()",
            [],
        ),
        ("stack.callback(print)\ncomm.respond(1)", []),
    ],
    ids=["failing", "popped", "finally", "popped-and-closed", "callback"],
)
def test_a_generator_that_nothing_leaves_is_reported(probe: Probe, body: str, codes: list[str]) -> None:
    assert sorted(set(probe(f"stack = ExitStack()\n{body}", MODULE).codes)) == codes


def test_generators_that_have_begun_do_not_wait(probe: Probe) -> None:
    resuming = probe("return 1", MODULE).walk.resuming
    assert isinstance(resuming, Resuming)
    made = probe("return held(comm, '/c/')", MODULE)
    (flow,) = made.flows
    assert made.walk.resuming.can_wait(flow.value, flow.state)  # type: ignore[arg-type]
    begun = flow.state.store(flow.value.number, ())  # type: ignore[attr-defined]
    assert not made.walk.resuming.can_wait(flow.value, begun)  # type: ignore[arg-type]
