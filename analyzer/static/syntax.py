"""What a piece of a syntax tree is: questions that many parts of the analysis ask."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

__all__ = ["applied", "is_name", "last_name", "name_of", "simple_statements"]


def name_of(node: cst.CSTNode | None) -> str:
    """Return the name that an expression is; "" if it is none."""
    return node.value if type(node) is cst.Name else ""


def is_name(node: cst.CSTNode | None, *names: str) -> bool:
    """Return whether an expression is one of these names."""
    return type(node) is cst.Name and node.value in names


def last_name(node: cst.CSTNode | None) -> str:
    """Return the last part of a name or attribute: ``c`` of ``a.b.c``; "" of anything else."""
    return node.attr.value if type(node) is cst.Attribute else name_of(node)


def applied(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return what is called, of a call; else the expression itself: what a decorator is, called or not."""
    return node.func if type(node) is cst.Call else node


def simple_statements(statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Return the statements in a line of simple statements; of any other only itself."""
    return statement.body if type(statement) is cst.SimpleStatementLine else (statement,)
