"""Which think times a source states."""

from __future__ import annotations

import ast

import pytest

from analyzer.static.think_times import is_time, think_arguments


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("self.think(2)", "2"),
        ("self.think(0.5, 'exponential')", "0.5 'exponential'"),
        ("self.think(seconds=3.0)", "3.0"),
        ("self.think(3, distribution='constant')", "3 'constant'"),
        ("self.think(PAUSE)", "PAUSE"),
        ("self.think(self.pause, 'exponential')", "self.pause 'exponential'"),
        ("self.think(0)", None),
        ("self.think(-1)", None),
        ("self.think(True)", None),
        ("self.think('times.csv', 'recorded')", None),
        ("self.think(2, family)", None),
        ("self.think(*times)", None),
        ("self.think(**times)", None),
        ("self.think(2, surprise=1)", None),
        ("self.think()", None),
        ("think(2)", None),
        ("other.think(2)", None),
        ("self.client.think(2)", None),
        ("self.sleep(2)", None),
    ],
)
def test_what_is_stated(call: str, what: str | None) -> None:
    """Numbers above 0, and names of what may be one, with a distribution that is stated."""
    nodes = list(ast.walk(ast.parse(call)))
    found = " ".join(ast.unparse(part) for part in think_arguments(nodes, "self"))
    assert found == (what or "")


def test_a_time_is_a_number_above_zero() -> None:
    assert is_time(ast.Constant(0.1))
    assert not any(is_time(ast.Constant(value)) for value in (0, -1, True, "1", None, 1j))
    assert not is_time(ast.Name("x"))
