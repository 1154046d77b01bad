"""Members of enumerations."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.enumerations import Enumerations
from analyzer.static.values import UNKNOWN, Const, TupleValue, join

MODULE = """
import enum

class Place(enum.StrEnum):
    FIRST = "B"
    SECOND = enum.auto()
    AGAIN = "B"

class Plain(enum.Enum):
    X = 1
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("f'{Place.FIRST}'", "B"),
        ("Place.SECOND.value", "second"),
        ("Place('B').name", "FIRST"),
        ("[p.name for p in Place][1]", "SECOND"),
        ("Plain.X.value", 1),
        ("Plain.X == Plain.X", True),
        ("Place.AGAIN is Place.FIRST", True),
        ("{'B': 5}[Place.FIRST]", 5),
        ("{Place.FIRST: 6}['B']", 6),
    ],
)
def test_a_member_is_what_python_has(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}", MODULE)
    assert isinstance(done.walk.enumerations, Enumerations)
    assert done.value == Const.of(expected)


def test_of_a_value_that_is_not_known_it_is_any_member(probe: Probe) -> None:
    """Or an error, which is local work that fails; members of a flag can be combined."""
    module = MODULE + "class Bits(enum.Flag):\n    A = 1\n    B = 2\n"
    done = probe("return Place(x).name, Plain(x).name, Place(Place.FIRST).name", module, x=UNKNOWN)
    assert done.value == TupleValue(
        (join([Const.of("FIRST"), Const.of("SECOND")]), Const.of("X"), Const.of("FIRST"))
    )
    assert probe("return Bits(x)", module, x=UNKNOWN).value == UNKNOWN


def test_other_classes_have_no_members(probe: Probe) -> None:
    done = probe("return 1", MODULE + "class Other:\n    X = 1\n")
    assert done.walk.enumerations.members(done.of_class("Other")) is None
