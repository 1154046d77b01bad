"""Nodes of both trees that are the same thing."""

from __future__ import annotations

import ast

import libcst as cst

from analyzer.static.ast_nodes import ast_nodes, paired_nodes

CODE = "def f(a):\n    x = a.b(c)[0]\n    return [y for y in x if y]\n"


def test_every_node_has_the_place_of_its_ast_node() -> None:
    tree = cst.parse_module(CODE)
    pairs = ast_nodes(paired_nodes(tree), ast.parse(CODE))
    calls = {node: same for node, same in pairs.items() if isinstance(node, cst.Call)}
    (same,) = calls.values()
    assert (same.lineno, same.col_offset) == (2, 8)
    assert ast.get_source_segment(CODE, same) == "a.b(c)"


def test_trees_that_do_not_fit_together_are_not_paired() -> None:
    assert ast_nodes(paired_nodes(cst.parse_module(CODE)), ast.parse("x = 1\n")) == {}
