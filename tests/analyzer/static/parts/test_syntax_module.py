"""Questions about pieces of syntax."""

from __future__ import annotations

import libcst as cst
import pytest

from analyzer.static.syntax import (
    applied,
    container_of,
    is_name,
    keywords,
    last_name,
    name_of,
    named_parameters,
    positional_parameters,
    simple_statements,
    targets_in,
)


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


@pytest.mark.parametrize(("code", "name"), [("a", "a"), ("a[b][c]", "a"), ("x.a[b]", "a"), ("f()[b]", "")])
def test_what_items_are_taken_of(code: str, name: str) -> None:
    assert last_name(container_of(cst.parse_expression(code))) == name


def test_targets_of_an_assignment() -> None:
    found = [last_name(one) for one in targets_in(cst.parse_expression("a, (x.b, [c, *d]), e"))]
    assert found == ["a", "b", "c", "d", "e"]


def test_parameters_and_what_they_are_given() -> None:
    node = cst.parse_expression("lambda a, /, b, *rest, c, **more: f(a, *rest, b=1, c=x, **more)")
    assert isinstance(node, cst.Lambda)
    assert [one.name.value for one in positional_parameters(node.params)] == ["a", "b"]
    assert [one.name.value for one in named_parameters(node.params)] == ["a", "b", "c"]
    assert isinstance(node.body, cst.Call)
    assert list(keywords(node.body.args)) == ["b", "c"]
