"""Where in the text is a statement, call or comprehension of the concrete syntax tree?

libcst finds positions by writing the whole module out again, which takes twice as long as parsing it. The
interpreter's tree has them already, and both trees hold the same things in the same order; so the nodes that
are asked for again and again are paired one by one. Where the two do not fit together, nothing is paired.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import libcst as cst

from analyzer.static.walking import walk

__all__ = ["Twin", "twins"]


Twin: TypeAlias = ast.stmt | ast.expr
"""The same thing in the interpreter's tree: lines from 1, columns in UTF-8 bytes from 0."""

PAIRS: Mapping[type, tuple[type, ...]] = {
    cst.AnnAssign: (ast.AnnAssign,),
    cst.Assert: (ast.Assert,),
    cst.Assign: (ast.Assign,),
    cst.AugAssign: (ast.AugAssign,),
    cst.Await: (ast.Await,),
    cst.Break: (ast.Break,),
    cst.Call: (ast.Call,),
    cst.ClassDef: (ast.ClassDef,),
    cst.Continue: (ast.Continue,),
    cst.Del: (ast.Delete,),
    cst.DictComp: (ast.DictComp,),
    cst.Expr: (ast.Expr,),
    cst.For: (ast.For, ast.AsyncFor),
    cst.FunctionDef: (ast.FunctionDef, ast.AsyncFunctionDef),
    cst.GeneratorExp: (ast.GeneratorExp,),
    cst.Global: (ast.Global,),
    cst.If: (ast.If,),
    cst.Import: (ast.Import,),
    cst.ImportFrom: (ast.ImportFrom,),
    cst.Lambda: (ast.Lambda,),
    cst.ListComp: (ast.ListComp,),
    cst.Match: (ast.Match,),
    cst.Nonlocal: (ast.Nonlocal,),
    cst.Pass: (ast.Pass,),
    cst.Raise: (ast.Raise,),
    cst.Return: (ast.Return,),
    cst.SetComp: (ast.SetComp,),
    cst.Try: (ast.Try,),
    cst.TryStar: (ast.TryStar,),
    cst.While: (ast.While,),
    cst.With: (ast.With, ast.AsyncWith),
    cst.WithItem: (ast.withitem,),
}
"""What the same thing is called in both trees."""

KINDS = {kind for kinds in PAIRS.values() for kind in kinds}


def twins(tree: cst.Module, same: ast.Module) -> dict[cst.CSTNode, Twin]:
    """Return the twins of all nodes of the kinds in ``PAIRS``, and of the names of functions and classes.

    Args:
        tree: The concrete syntax tree.
        same: The interpreter's tree of the same text.

    Returns:
        Twins by node; empty if the trees differ.
    """
    ours = [node for node in walk(tree) if type(node) in PAIRS]
    theirs = [node for node in _walk(same) if type(node) in KINDS]
    if len(ours) != len(theirs) or not all(map(_alike, ours, theirs)):
        return {}
    found: dict[cst.CSTNode, Twin] = {}
    for node, other in zip(ours, theirs, strict=True):
        # `with` items have no position of their own, and begin with what they evaluate.
        twin = other.context_expr if isinstance(other, ast.withitem) else other
        if isinstance(twin, ast.stmt | ast.expr):
            found[node] = twin
            if isinstance(node, cst.FunctionDef | cst.ClassDef):
                # Its line is what matters; the column is that of the keyword.
                found[node.name] = twin
    return found


def _alike(one: cst.CSTNode, other: ast.AST) -> bool:
    if type(other) not in PAIRS[type(one)]:
        return False
    if isinstance(one, cst.Call) and isinstance(other, ast.Call):
        return len(one.args) == len(other.args) + len(other.keywords) and _word(one.func) == _word(other.func)
    return _word(one) == _word(other)


def _word(node: cst.CSTNode | ast.AST) -> str:
    """Return the name a node ends with, "" if it has none: tells when two lists are out of step."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        return node.name.value
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    return ""


def _walk(root: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and everything in it in source order, each before its parts."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        children = list(_children(node))
        # Places inside of f-strings are not reliable before Python 3.12, but their order is right.
        if not isinstance(node, ast.JoinedStr | ast.FormattedValue | ast.Module):
            children.sort(key=_start)
        stack.extend(reversed(children))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.withitem):
            yield child
        elif isinstance(child, ast.arguments | ast.comprehension | ast.match_case):
            yield from _children(child)  # without a position of their own
        elif hasattr(child, "lineno"):
            yield child


def _start(node: ast.AST) -> tuple[int, int]:
    if isinstance(node, ast.withitem):
        node = node.context_expr
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.decorator_list:
        node = node.decorator_list[0]
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
