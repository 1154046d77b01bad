"""Which think times a source states."""

from __future__ import annotations

import ast

import pytest

from analyzer.static.think_times import is_time, stated_times


@pytest.mark.parametrize(
    ("call", "stated"),
    [
        ("self.think(2)", "2"),
        ("self.think(0.5, 'exponential')", "0.5"),
        ("self.think(seconds=3.0)", "3.0"),
        ("self.think(3, distribution='constant')", "3"),
        ("self.think(PAUSE)", "PAUSE"),
        ("self.think(self.pause, 'exponential')", "self.pause"),
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
        ("self.sleep(2)", None),
    ],
)
def test_stated_times(call: str, stated: str | None) -> None:
    """Numbers above 0, and names of what may be one, with a distribution that is stated."""
    nodes = list(ast.walk(ast.parse(call)))
    found = [ast.unparse(time) for time in stated_times(nodes)]
    assert found == ([] if stated is None else [stated])


def test_a_time_is_a_number_above_zero() -> None:
    assert is_time(ast.Constant(0.1))
    assert not any(is_time(ast.Constant(value)) for value in (0, -1, True, "1", None, 1j))
    assert not is_time(ast.Name("x"))
