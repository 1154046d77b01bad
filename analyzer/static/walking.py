"""Look through a syntax tree, several times faster than libcst's own ``visit``.

Most nodes of a concrete syntax tree are whitespace, commas and parentheses, which no question here is about;
and nothing is replaced, so no new tree has to be made on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import libcst as cst

__all__ = ["names_in", "nodes_of", "of_types", "statements_in", "walk"]

Kind = TypeVar("Kind", bound=cst.CSTNode)

PUNCTUATION = {
    "asynchronous",
    "colon",
    "comma",
    "dot",
    "equal",
    "first_line",
    "footer",
    "header",
    "indent",
    "lbracket",
    "leading_lines",
    "lbrace",
    "lines_after_decorators",
    "lpar",
    "newline",
    "operator",
    "rbrace",
    "rbracket",
    "rpar",
    "semicolon",
    "separator",
    "star",
    "trailing_whitespace",
}
"""Fields that hold no names, calls or statements; those called ``whitespace...`` are left out, too."""

LEAVES = frozenset({str, bool, type(None), cst.MaybeSentinel})

TEXTS = frozenset({cst.FormattedStringText, cst.Name, cst.SimpleString})
TEXTS |= {cst.Float, cst.Imaginary, cst.Integer}
"""Nodes that are nothing but a piece of text."""

ORDERS: dict[type, tuple[str, ...]] = {
    cst.Arg: ("keyword", "value"),
    cst.ClassDef: ("decorators", "name", "bases", "keywords", "body"),
    cst.ExceptHandler: ("type", "name", "body"),
    cst.ExceptStarHandler: ("type", "name", "body"),
    cst.FunctionDef: ("decorators", "name", "params", "returns", "body"),
    cst.IfExp: ("body", "test", "orelse"),
    cst.MatchCase: ("pattern", "guard", "body"),
    cst.Parameters: ("posonly_params", "params", "star_arg", "kwonly_params", "star_kwarg"),
}
"""Where fields are defined in another order than their contents stand in the source."""


@cache
def _parts(kind: Any) -> tuple[str, ...]:
    """Return the fields of a class of nodes that can hold code, the last one in the source first."""
    if kind in TEXTS:
        return ()
    names = [field.name for field in fields(kind) if not field.name.startswith("whitespace")]
    names = [name for name in names if name not in PUNCTUATION]
    first = ORDERS.get(kind, ())
    return tuple(reversed([*first, *(name for name in names if name not in first)]))


def walk(
    root: cst.CSTNode, closed: Collection[type] = (), parts: Callable[[Any], tuple[str, ...]] = _parts
) -> Iterator[cst.CSTNode]:
    """Yield a node and everything in it in source order, each before its parts.

    Args:
        root: The node.
        closed: Classes of nodes that are not entered.
        parts: Which fields of a class of nodes are looked into, the last one in the source first.
    """
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        kind: Any = type(node)  # asked by identity: `isinstance` is slow for abstract classes like libcst's
        if kind is list or kind is tuple:
            stack.extend(reversed(node))
            continue
        yield node
        if kind not in closed:
            for name in parts(kind):
                part = getattr(node, name)
                if type(part) not in LEAVES:
                    stack.append(part)


def nodes_of(root: cst.CSTNode, kinds: Collection[type[Kind]], closed: Collection[type] = ()) -> list[Kind]:
    """Return the nodes of some classes in a tree, in source order; those of ``closed`` are not entered."""
    found: list[Kind] = []
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        kind: Any = type(node)
        if kind is list or kind is tuple:
            stack.extend(reversed(node))
            continue
        if kind in kinds:
            found.append(node)
        if kind not in closed:
            for name in _parts(kind):
                part = getattr(node, name)
                if type(part) not in LEAVES:
                    stack.append(part)
    return found


def of_types(nodes: Iterable[cst.CSTNode], *kinds: type[Kind]) -> list[Kind]:
    """Return the nodes of some classes, in the same order."""
    found: list[Any] = [node for node in nodes if type(node) in kinds]
    return found


BLOCKS = {"body", "cases", "finalbody", "handlers", "orelse"}
"""Fields of statements that hold other statements."""


@cache
def _blocks(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in _parts(kind) if name in BLOCKS)


def statements_in(root: cst.CSTNode, closed: Collection[type] = ()) -> Iterator[cst.CSTNode]:
    """Yield a statement or block and every statement inside it, in source order; no expressions.

    What statements consist of besides, such as ``except`` and the lines of a block, is among them.
    Statements of the classes in ``closed`` are not entered.
    """
    return walk(root, closed, _blocks)


def names_in(root: cst.CSTNode) -> frozenset[str]:
    """Return every name a piece of code mentions."""
    return frozenset(node.value for node in nodes_of(root, (cst.Name,)))
