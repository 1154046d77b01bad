"""Think times that the source states: a model takes them from there, not from a log."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["FAMILIES", "PARAMETERS", "is_time", "think_arguments"]

PARAMETERS: Final = (("seconds", "mean", "time"), ("distribution", "family", "kind"))
"""What the arguments of ``think`` may be called."""
FAMILIES: Final = ("constant", "exponential")
"""Distributions whose parameter is the mean."""


def is_time(tree: ast.AST) -> bool:
    """Return whether an expression is a number above 0."""
    return isinstance(tree, ast.Constant) and type(tree.value) in (int, float) and tree.value > 0  # type: ignore[operator]


def think_arguments(nodes: Iterable[ast.AST], client: str) -> Iterator[ast.expr]:
    """Yield what calls of ``think`` state: numbers above 0, names of what may be one, and distributions.

    Both have to be stated, or all of the think time is taken from a log.

    Args:
        nodes: Of a method of a client.
        client: Its first parameter, the client. Other objects may mean something else by ``think``.
    """
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="think")) if owner == client:
                time, family = (_argument(node, position) for position in range(2))
                given = len(node.args) + len(node.keywords)
                known = family is None or (isinstance(family, ast.Constant) and family.value in FAMILIES)
                if time is None or not known or given != 1 + (family is not None):
                    continue
                if isinstance(time, ast.Name | ast.Attribute) or is_time(time):
                    yield time
                    if family is not None:
                        yield family


def _argument(call: ast.Call, position: int) -> ast.expr | None:
    if position < len(call.args):
        return call.args[position]
    return next((k.value for k in call.keywords if k.arg in PARAMETERS[position]), None)
