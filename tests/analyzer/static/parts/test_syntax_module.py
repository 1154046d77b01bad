"""Questions about pieces of syntax."""

from __future__ import annotations

import libcst as cst
import pytest

from analyzer.static.syntax import applied, is_name, last_name, name_of, simple_statements


@pytest.mark.parametrize(("code", "name", "last"), [("a", "a", "a"), ("a.b.c", "", "c"), ("f()", "", "")])
def test_names(code: str, name: str, last: str) -> None:
    node = cst.parse_expression(code)
    assert (name_of(node), last_name(node)) == (name, last)
    assert is_name(node, "a", "z") is (name == "a")
    assert not is_name(node, "z")


def test_nothing_has_no_name() -> None:
    assert name_of(None) == last_name(None) == ""
    assert not is_name(None, "")


@pytest.mark.parametrize("code", ["deco.of", "deco.of(1)"])
def test_what_a_decorator_is(code: str) -> None:
    assert last_name(applied(cst.parse_expression(code))) == "of"


def test_statements_of_a_line() -> None:
    module = cst.parse_module("a = 1; b = 2\nif a: pass\n")
    line, block = module.body
    assert [type(one) for one in simple_statements(line)] == [cst.Assign, cst.Assign]
    assert list(simple_statements(block)) == [block]
