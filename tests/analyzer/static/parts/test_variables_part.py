"""Where variables live, and what is left of them."""

from __future__ import annotations

from probing import Probe

from analyzer.static.values import LOST, UNKNOWN, Closure, Const
from analyzer.static.variables import Variables


def test_nonlocal_sets_the_variable_around(probe: Probe) -> None:
    done = probe("x = 1\ndef inner():\n    nonlocal x\n    x = 2\ninner()\nreturn x")
    assert isinstance(done.walk.variables, Variables)
    assert done.value in (Const.of(2), UNKNOWN)


def test_a_nested_function_keeps_what_it_saw(probe: Probe) -> None:
    done = probe("x = 1\nreturn lambda: x")
    assert isinstance(done.value, Closure)
    _, (kept,) = done.walk.variables.left([done.value], done.state, 0)
    assert isinstance(kept, Closure)
    assert (kept.depth, dict(kept.captured)) == (None, {"x": Const.of(1)})


def test_forgotten_contents_hold_what_they_held(probe: Probe) -> None:
    done = probe("xs = [comm.call('B', '/b/')]\nys = [1]\nreturn (xs, ys)")
    after = done.walk.variables.forget_contents([done.value], done.state)
    assert set(after.heap.values()) == {LOST, UNKNOWN}


def test_a_nested_function_keeps_what_it_saw_where_the_one_around_it_fails(probe: Probe) -> None:
    module = (
        "from mup.errors import CallError\n"
        "def step(comm, undo, back):\n"
        "    def take_back():\n        comm.call('B', back).get()\n"
        "    undo.append(take_back)\n    comm.call('B', '/b/').get()\n"
    )
    body = (
        "undo = []\ntry:\n    step(comm, undo, '/c/')\nexcept CallError:\n"
        "    for action in undo:\n        action()"
    )
    assert probe(body, module).ways == ["callB/b/ get callB/c/ get next", "callB/b/ get next"]
