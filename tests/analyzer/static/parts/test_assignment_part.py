"""What binding a value to a target changes."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.assignment import Assignment
from analyzer.static.values import LOST, UNKNOWN, Const, TupleValue

CASES = [
    ("a, (b, c) = 1, (2, 3)\nreturn (a, b, c)", (1, 2, 3)),
    ("a, *b, c = (1, 2, 3, 4)\nreturn (a, b[0], b[1], c)", (1, 2, 3, 4)),
    ("d = {}\nd['x'] = 1\nd['x'] += 1\nreturn d['x']", 2),
    ("x = [1, 2, 3]\ndel x[0]\nreturn x[0]", 2),
    ("x = y = [1]\nx += [2]\nreturn y[1]", 2),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_what_was_assigned_is_found(probe: Probe, body: str, expected: object) -> None:
    done = probe(body)
    assert isinstance(done.walk.assignment, Assignment)
    assert done.value.python() == (True, expected)


def test_an_item_at_an_unknown_place_may_be_any(probe: Probe) -> None:
    assert probe("x = [1, 2]\nx[i] = 3\nreturn x[0]", i=UNKNOWN).value == UNKNOWN
    assert probe("x = [1]\nx[i] = comm.call('B', '/b/')\nreturn x[0]", i=UNKNOWN).value == LOST


def test_an_attribute_is_set_on_the_object_every_name_has(probe: Probe) -> None:
    module = "class Box:\n    def __init__(self):\n        self.x = 1\n"
    done = probe("a = Box()\nb = a\nb.x = 2\nreturn (a.x, b.x)", module)
    assert done.value == TupleValue((Const.of(2), Const.of(2)))
