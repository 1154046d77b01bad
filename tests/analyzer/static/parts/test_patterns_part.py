"""What ``match`` takes."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.patterns import Patterns
from analyzer.static.values import UNKNOWN, Const, join

MODULE = """
import dataclasses, enum

@dataclasses.dataclass
class Point:
    x: int
    y: int

class Kind(enum.StrEnum):
    A = "a"
"""


@pytest.mark.parametrize(
    ("subject", "pattern", "taken"),
    [
        ("(1, 2, 3)", "(1, *rest)", True),
        ("(1, 2)", "(1,)", False),
        ("{'k': 1}", "{'k': 1}", True),
        ("{'k': 1}", "{'j': _}", False),
        ("{'a': 1}", "{Kind.A: 1}", True),
        ("Point(1, 2)", "Point(1, y=2)", True),
        ("Point(1, 2)", "Point(2, _)", False),
        ("'x'", "'y' | 'x'", True),
        ("5", "str()", False),
    ],
)
def test_a_pattern_of_known_values_is_decided(probe: Probe, subject: str, pattern: str, taken: bool) -> None:
    done = probe(f"match {subject}:\n    case {pattern}:\n        return 1\nreturn 2", MODULE)
    assert isinstance(done.walk.patterns, Patterns)
    assert done.value == Const.of(1 if taken else 2)


def test_names_capture_parts(probe: Probe) -> None:
    assert probe("match (1, 2):\n    case (a, b):\n        return b").value == Const.of(2)


def test_an_unknown_subject_may_match(probe: Probe) -> None:
    done = probe("match x:\n    case 'a':\n        return 1\nreturn 2", x=UNKNOWN)
    assert done.value == join([Const.of(1), Const.of(2)])
