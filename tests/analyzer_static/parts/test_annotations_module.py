"""What annotations say."""

from __future__ import annotations

import pytest
from probing import Probe

from analyzer.static.annotations import AnnotatedValues
from analyzer.static.values import UNKNOWN, Const, Value, join

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
