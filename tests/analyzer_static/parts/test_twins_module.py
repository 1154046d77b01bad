"""Nodes of both trees that are the same thing."""

from __future__ import annotations

import ast

import libcst as cst

from analyzer.static.twins import paired_nodes, twins

CODE = "def f(a):\n    x = a.b(c)[0]\n    return [y for y in x if y]\n"


def test_every_node_has_the_place_of_its_twin() -> None:
    tree = cst.parse_module(CODE)
    pairs = twins(paired_nodes(tree), ast.parse(CODE))
    calls = {node: twin for node, twin in pairs.items() if isinstance(node, cst.Call)}
    (twin,) = calls.values()
    assert (twin.lineno, twin.col_offset) == (2, 8)
    assert ast.get_source_segment(CODE, twin) == "a.b(c)"


def test_trees_that_do_not_fit_together_are_not_paired() -> None:
    assert twins(paired_nodes(cst.parse_module(CODE)), ast.parse("x = 1\n")) == {}
