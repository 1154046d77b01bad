"""Parts of pure expressions, and what they are worth."""

from __future__ import annotations

import libcst as cst
import pytest

from analyzer.static.expressions import combine, literal, operands
from analyzer.static.values import LOST, UNKNOWN, Const, Future


@pytest.mark.parametrize(
    ("code", "expected"), [("1", 1), ("'a' 'b'", "ab"), ("None", None), ("1.5", 1.5), ("x", ...), ("-1", ...)]
)
def test_a_literal_is_a_constant(code: str, expected: object) -> None:
    assert literal(cst.parse_expression(code)) == (None if expected is ... else Const.of(expected))


@pytest.mark.parametrize(
    ("code", "count"),
    [("a + b", 2), ("not a", 1), ("a < b < c", 3), ("a[b:c]", 3), ("{a: b, **c}", 3), ("f'{a}-{b}'", 2)],
)
def test_operands_come_in_order(code: str, count: int) -> None:
    found = operands(cst.parse_expression(code))
    assert [one.value for one in found if isinstance(one, cst.Name)] == list("abc")[:count]


def test_a_text_of_constants_is_one() -> None:
    node = cst.parse_expression("f'{a:03d}|{b!r}'")
    assert combine(node, [Const.of(7), Const.of("x")]) == Const.of("007|'x'")
    assert combine(node, [UNKNOWN, Const.of("x")]) == UNKNOWN


def test_a_future_in_a_tuple_of_comparisons_is_not_lost_sight_of() -> None:
    assert combine(cst.parse_expression("[a]"), [Future(0)]) == LOST
