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


MADE = """
from dataclasses import dataclass
from enum import Enum, Flag, IntEnum, StrEnum, nonmember
from typing import NamedTuple

class Tier(Enum):
    FREE = ("free", 1, None)
    PRO = "pro", 2, "/b/"
    AGAIN = ("free", 1, None)
    def __init__(self, label, weight, path):
        self.label, self.weight = label, weight
        self.path = path
    @classmethod
    def of(cls, label):
        for tier in cls:
            if tier.label == label:
                return tier
        raise KeyError(label)

class Code(IntEnum):
    OK = 200, "fine"
    def __new__(cls, value, text):
        code = int.__new__(cls, value)
        code._value_ = value
        code.text = text
        return code

class Word(str, Enum):
    ONE = ("one", 1)
    def __new__(cls, value, number):
        word = super().__new__(cls, value)
        word._value_ = value
        word.number = number
        return word

class Odd(str, Enum):
    A = ("text", "value")
    def __new__(cls, text, value):
        odd = str.__new__(cls, text)
        odd._value_ = value
        return odd

@dataclass(frozen=True)
class Fields:
    label: str
    size: int = 2

class Mixed(Fields, Enum):
    A = ("a",)
    B = "b", 3

class Row(NamedTuple):
    path: str

class Rows(Enum):
    A = Row("/c/")

class Later(Enum):
    A = ("a", "b")
    def __init__(self, one, two):
        self._value_ = two

class Bits(Flag):
    R = 1
    W = 2
    RW = R | W

class Some(Enum):
    A = 1
    B = nonmember(2)
    def f(self):
        return 1
    g = f

class Ignoring(Enum):
    _ignore_ = ["x", "y"]
    x = 1
    y = 2
    A = x + y

class Changed(Enum):
    A = (1,)
    def __init__(self, count):
        self.count = count
    def more(self):
        self.count += 1

class Kept(Enum):
    A = (1, True)
    def __init__(self, number, keep):
        if keep or number:
            self.number = number
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Tier.PRO.path", "/b/"),
        ("Tier.FREE.path", None),
        ("Tier.AGAIN.name", "FREE"),
        ("len(Tier)", 2),
        ("Tier.of('pro').weight", 2),
        ("Tier['PRO'].label", "pro"),
        ("Tier.__members__['AGAIN'].name", "FREE"),
        ("Tier(('pro', 2, '/b/')).name", "PRO"),
        ("Code.OK.text", "fine"),
        ("Code(200).text", "fine"),
        ("Code.OK + 1", 201),
        ("Word.ONE.number", 1),
        ("Word.ONE == 'one'", True),
        ("Odd.A == 'text'", UNKNOWN),
        ("Mixed.A.size", 2),
        ("Mixed.B.value.label", "b"),
        ("Rows.A.value.path", "/c/"),
        ("Later.A.value", "b"),
        ("Later('b')", UNKNOWN),
        ("len(Bits)", 2),
        ("len(Some)", 1),
        ("[one.name for one in Ignoring][0]", "A"),
        ("Changed.A.count", UNKNOWN),
        ("Kept.A.number", 1),
    ],
)
def test_what_making_a_member_gives_it(probe: Probe, code: str, expected: object) -> None:
    value = probe(f"return {code}", MADE).value
    assert value == (expected if expected is UNKNOWN else Const.of(expected))


def test_a_condition_about_an_attribute_tells_which_member_it_is(probe: Probe) -> None:
    body = "tier = Tier.of(x)\nif tier.path is not None:\n    return tier.label\nreturn 1"
    assert probe(body, MADE, x=UNKNOWN).value == join([Const.of("pro"), Const.of(1)])
