"""What a piece of a syntax tree is: questions that many parts of the analysis ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import libcst as cst

from analyzer.static.walking import nodes_of

__all__ = ["applied", "container_of", "is_name", "keywords", "last_name", "name_of", "named_parameters"]
__all__ += ["positional_parameters", "simple_statements", "stars", "target_names", "targets_in"]


def name_of(node: cst.CSTNode | None) -> str:
    """Return the name that an expression is; "" if it is none."""
    return node.value if type(node) is cst.Name else ""


def is_name(node: cst.CSTNode | None, *names: str) -> bool:
    """Return whether an expression is one of these names."""
    return type(node) is cst.Name and node.value in names


def last_name(node: cst.CSTNode | None) -> str:
    """Return the last part of a name or attribute: ``c`` of ``a.b.c``; "" of anything else."""
    return node.attr.value if type(node) is cst.Attribute else name_of(node)


Node = TypeVar("Node", bound=cst.CSTNode)


def applied(node: Node) -> Node | cst.BaseExpression:
    """Return what is called, of a call; else the code itself: what a decorator is, called or not."""
    return node.func if isinstance(node, cst.Call) else node


def container_of(node: cst.CSTNode) -> cst.CSTNode:
    """Return what items are taken of: ``a`` of ``a[b][c]``; any other expression itself."""
    while type(node) is cst.Subscript:
        node = node.value
    return node


def targets_in(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what an assignment sets: each part of a tuple or list, however deep; else the target itself."""
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from targets_in(element.value)
        case _:
            yield target


def target_names(target: cst.CSTNode) -> set[str]:
    """Return the names an assignment target binds."""
    return {name_of(node) for node in nodes_of(target, (cst.Name,), (cst.Attribute, cst.Subscript))}


def stars(elements: Iterable[cst.CSTNode]) -> list[int]:
    """Return which elements of a tuple, list or pattern take or give any number of items."""
    kinds = (cst.MatchStar, cst.StarredElement)
    return [place for place, one in enumerate(elements) if isinstance(one, kinds)]


def positional_parameters(declared: cst.Parameters) -> tuple[cst.Param, ...]:
    """Return the parameters that can be given by their places."""
    return (*declared.posonly_params, *declared.params)


def named_parameters(declared: cst.Parameters) -> tuple[cst.Param, ...]:
    """Return the parameters with a name of their own: all but ``*args`` and ``**kwargs``."""
    return (*positional_parameters(declared), *declared.kwonly_params)


def keywords(arguments: Iterable[cst.Arg]) -> dict[str, cst.BaseExpression]:
    """Return what is given by name, by its names."""
    return {one.keyword.value: one.value for one in arguments if one.keyword is not None}


def simple_statements(statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Return the statements in a line of simple statements; of any other only itself."""
    return statement.body if type(statement) is cst.SimpleStatementLine else (statement,)
