"""Which code of a generator runs between which statements of its consumer."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.generators import Generators

MODULE = """
def calling(comm):
    comm.call('B', '/b/').get()
    yield 1
    comm.call('B', '/c/').get()
    yield 2

def delegating(comm):
    yield from calling(comm)
    yield 3
"""


@pytest.mark.parametrize(
    ("body", "ways"),
    [
        ("for x in calling(comm):\n    comm.respond(x)", ["callB/b/ get respond callB/c/ get respond next"]),
        ("for x in calling(comm):\n    break", ["callB/b/ get next"]),
        ("return next(calling(comm))", ["callB/b/ get return"]),
        ("return any(x == 2 for x in calling(comm))", ["callB/b/ get callB/c/ get return"]),
        ("x = calling(comm)", ["next"]),
        ("return len(list(delegating(comm)))", ["callB/b/ get callB/c/ get return"]),
    ],
)
def test_a_generator_runs_when_items_are_taken(probe: Probe, body: str, ways: list[str]) -> None:
    done = probe(body, MODULE)
    assert isinstance(done.walk.generators, Generators)
    assert done.ways == ways


def test_items_are_what_was_yielded(probe: Probe) -> None:
    done = probe("return tuple(list(delegating(comm)))", MODULE)
    assert done.value.python() == (True, (1, 2, 3))


def test_a_generator_of_the_module_is_shared_by_all_requests(probe: Probe) -> None:
    module = "PLACES = (x for x in ('/b/', '/c/'))\n"
    assert probe("for x in PLACES:\n    comm.respond(x)", module).ways == ["loop[respond] next"]
