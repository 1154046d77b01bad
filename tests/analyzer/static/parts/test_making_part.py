"""How objects begin."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.making import Making

MODULE = """
import dataclasses, typing

@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)
    c: str = "c"
    def __post_init__(self):
        self.d = self.a + 1

class Pair(typing.NamedTuple):
    x: int
    y: int = 2

class Error(Exception):
    pass

class Kept:
    count = 0
    def __init__(self, comm):
        self.comm = comm
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [("Data(1).d", 2), ("Data(1).c", "c"), ("len(Data(1).b)", 0), ("Pair(1).y", 2), ("Pair(1, 3)[1]", 3)],
)
def test_fields_are_filled(probe: Probe, code: str, expected: object) -> None:
    done = probe(f"return {code}", MODULE)
    assert isinstance(done.walk.making, Making)
    assert done.value.python() == (True, expected)


FACTORIES = """
import dataclasses

class Step:
    def __init__(self, path="/b/"):
        self.path = path if path else "/c/"
    def run(self, comm):
        comm.call("B", self.path).get()

def two_steps():
    return [Step(), Step("/c/")]

@dataclasses.dataclass
class Flow:
    steps: list = dataclasses.field(default_factory=lambda: [Step(), Step("/c/")])
    more: list = dataclasses.field(default_factory=two_steps)
    last: Step = dataclasses.field(default_factory=Step)
"""


@pytest.mark.parametrize("field", ["steps", "more"])
def test_a_default_is_what_its_factory_returns(probe: Probe, field: str) -> None:
    done = probe(f"for step in Flow().{field}:\n    step.run(comm)", FACTORIES)
    assert done.ways == ["callB/b/ get callB/c/ get next"]


def test_each_object_has_a_default_of_its_own(probe: Probe) -> None:
    done = probe("a, b = Flow(), Flow()\na.steps.append(1)\nreturn len(b.steps)", FACTORIES)
    assert done.value.python() == (True, 2)


def test_an_object_may_hold_communication(probe: Probe) -> None:
    done = probe("Kept(comm).comm.call('B', '/b/').get()", MODULE)
    assert done.ways == ["callB/b/ get next"]


def test_positional_patterns_are_about_fields(probe: Probe) -> None:
    done = probe("return 1", MODULE)
    assert done.walk.making.field_names(done.of_class("Data")) == ["a", "b", "c"]


RECORDS = """
import dataclasses, typing

class Pair(typing.NamedTuple):
    x: str
    y: int = 2

@dataclasses.dataclass(frozen=True)
class Place:
    service: str
    path: str = "/b/"

@dataclasses.dataclass
class Loose:
    service: str

@dataclasses.dataclass(frozen=True)
class Partly:
    service: str
    noted: int = dataclasses.field(default=0, compare=False)

@dataclasses.dataclass(frozen=True)
class Own:
    service: str
    def __eq__(self, other): return True
    def __hash__(self): return 1

class Plain:
    def __init__(self, service): self.service = service

PAIRS = (Pair("a"), Pair("b"), Pair("a", 3))
PLACES = (Place("a"), Place("b"), Place("a", "/c/"))
SAME = (Place("a"), Place("a"))
LOOSE, PARTLY, OWN = (Loose("a"), Loose("b")), (Partly("a"), Partly("b")), (Own("a"), Own("b"))
PLAIN = (Plain("a"), Plain("b"))
"""


@pytest.mark.parametrize(
    ("records", "known"),
    [
        ("PAIRS", 3),
        ("PLACES", 3),
        pytest.param("SAME", 1, id="equal-ones"),
        pytest.param("LOOSE", None, id="may-change"),
        pytest.param("PARTLY", None, id="by-some-fields"),
        pytest.param("OWN", None, id="by-a-method-of-its-own"),
        pytest.param("PLAIN", None, id="by-identity"),
    ],
)
def test_records_are_keys_of_dicts_where_it_is_known_what_they_equal(
    probe: Probe, records: str, known: int | None
) -> None:
    done = probe(f"return len({{one: 1 for one in {records}}})", RECORDS)
    assert done.value.python() == (known is not None, known)


def test_a_named_tuple_is_found_by_a_tuple_of_its_fields(probe: Probe) -> None:
    done = probe("return {one: one.y for one in PAIRS}[('a', 3)]", RECORDS)
    assert done.value.python() == (True, 3)
