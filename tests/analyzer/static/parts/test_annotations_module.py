"""What annotations say."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.annotations import AnnotatedValues
from analyzer.static.values import UNKNOWN, Const, FunctionValue, Received, Value, join

BOTH = join([Const.of("B"), Const.of("C")])


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("Literal['B', 'C']", BOTH),
        ('\'Literal["B"] | Literal["C"]\'', BOTH),
        ("Optional[Literal['B']]", Const.of("B")),
        ("Name", BOTH),
        ("Annotated[Name, 1]", BOTH),
        ("Place", Const.of("B")),
        ("str", UNKNOWN),
    ],
)
def test_an_annotation_is_believed_where_nothing_is_known(
    probe: Probe, annotation: str, expected: Value
) -> None:
    module = (
        "import enum\nfrom typing import Annotated, Literal, Optional\n"
        "Name = Literal['B', 'C']\nclass Place(enum.StrEnum):\n    B = 'B'\n"
    )
    done = probe(f"x: {annotation} = y\nreturn x", module, y=UNKNOWN)
    assert isinstance(done.walk.annotated, AnnotatedValues)
    assert done.value == expected
    assert probe(f"x: {annotation} = 'known'\nreturn x", module).value == Const.of("known")


RECEIVED = """
import enum, msgspec
from dataclasses import dataclass
from typing import Literal, Optional
class Color(enum.Enum):
    RED = enum.auto()
    BLUE = enum.auto()
class Mode(enum.Flag):
    A = 1
    B = 2
class Order(msgspec.Struct):
    n: int = 1
    def send(self, comm):
        comm.call("B", "/b/").get()
@dataclass
class Cancel:
    id: str
class Port:
    def use(self, comm): ...
"""


@pytest.mark.parametrize(
    ("annotation", "alternatives"),
    [
        ("bool", 2),
        ("bool | None", 3),
        ("Color", 2),
        ("Order | Cancel", 2),
        ("Optional[Literal['a', 'b']]", 3),
        ("int", 0),
        ("Port", 0),
        ("Mode", 0),
        ("bool | int", 0),
    ],
)
def test_the_framework_sees_to_types_of_parameters(probe: Probe, annotation: str, alternatives: int) -> None:
    done = probe("return 1", f"{RECEIVED}\ndef endpoint(self, comm, x: {annotation}): ...\n")
    function = done.in_module("endpoint")
    assert isinstance(function, FunctionValue)
    value = done.walk.annotated.received(function.info, "x")
    assert len(value.parts()) == alternatives
    assert (value == UNKNOWN) is (alternatives == 0)


def test_what_the_framework_has_made_has_the_methods_of_its_class(probe: Probe) -> None:
    done = probe("order.send(comm)\nreturn order.n, order.other", RECEIVED)
    order = Received(done.of_class("Order"))
    done = probe("order.send(comm)\nreturn order.n, order.other", RECEIVED, order=order)
    assert done.ways == ["callB/b/ get return"]
    assert done.value.parts() == (UNKNOWN, UNKNOWN)
