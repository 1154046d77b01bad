"""Which names code may still read."""

from __future__ import annotations

import libcst as cst

from analyzer.static.control import lower
from analyzer.static.liveness import Liveness

CODE = cst.ensure_type(
    cst.parse_statement("def f():\n    a = b\n    if c:\n        d()\n    e = lambda: g\n"), cst.FunctionDef
)


def test_a_name_is_live_until_it_is_read_last() -> None:
    behind = Liveness().behind(lower(CODE.body))
    assert {"b", "c", "d", "g"} <= behind[0]
    assert "b" not in behind[1]
    assert behind[-1] == frozenset()
    assert "a" not in behind[0]  # binding does not read


def test_nested_functions_may_read_at_any_time() -> None:
    assert Liveness().nested(CODE) == {"g"}


def test_names_are_live_while_their_code_runs() -> None:
    liveness = Liveness()
    with liveness.during(0, frozenset({"x"})), liveness.during(0, frozenset({"y"})):
        assert liveness.names(2) == [{"x", "y"}, None]
    assert liveness.names(1) == [None]
