"""What comprehensions make."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.comprehensions import Comprehensions
from analyzer.static.values import LOST, UNKNOWN


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("[x + 1 for x in (1, 2)][1]", 3),
        ("[x for x in (1, 2, 3) if x != 2][1]", 3),
        ("[(x, y) for x in (1, 2) for y in 'ab'][3]", (2, "b")),
        ("{k: v for k, v in (('a', 1), ('b', 2))}['b']", 2),
    ],
)
def test_a_known_one_is_unrolled(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}")
    assert isinstance(done.walk.comprehensions, Comprehensions)
    assert done.value.python() == (True, expected)


def test_of_an_unknown_one_the_futures_are_lost(probe: Probe) -> None:
    assert probe("return [comm.call('B', '/b/') for x in xs][0]", xs=UNKNOWN).value == LOST
    assert probe("return [x for x in xs][0]", xs=UNKNOWN).value == UNKNOWN
