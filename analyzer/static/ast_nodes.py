"""Place in the text of a statement or expression of the concrete syntax tree.

libcst finds positions by writing the whole module out again, which takes twice as long as parsing it. The
interpreter's tree has them already, and both trees hold the same things in the same order; so the nodes that
are asked for in code without findings are paired one by one. Where the two do not fit together, nothing is
paired.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import libcst as cst

from analyzer.static.walking import nodes_of

__all__ = ["ATOMS", "AstNode", "Place", "ast_nodes", "paired_nodes", "places"]


AstNode: TypeAlias = ast.stmt | ast.expr
"""The same thing in the interpreter's tree: lines from 1, columns in UTF-8 bytes from 0."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is that the interpreter's tree has no node for, counted and named as there."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


PAIRS: Mapping[type[cst.CSTNode], tuple[type, ...]] = {
    cst.AnnAssign: (ast.AnnAssign,),
    cst.Assert: (ast.Assert,),
    cst.Assign: (ast.Assign,),
    cst.Attribute: (ast.Attribute,),
    cst.AugAssign: (ast.AugAssign,),
    cst.Await: (ast.Await,),
    cst.BinaryOperation: (ast.BinOp,),
    cst.BooleanOperation: (ast.BoolOp,),
    cst.Break: (ast.Break,),
    cst.Call: (ast.Call,),
    cst.ClassDef: (ast.ClassDef,),
    cst.Comparison: (ast.Compare,),
    cst.Continue: (ast.Continue,),
    cst.Del: (ast.Delete,),
    cst.Dict: (ast.Dict,),
    cst.DictComp: (ast.DictComp,),
    cst.Expr: (ast.Expr,),
    cst.For: (ast.For, ast.AsyncFor),
    cst.FunctionDef: (ast.FunctionDef, ast.AsyncFunctionDef),
    cst.GeneratorExp: (ast.GeneratorExp,),
    cst.Global: (ast.Global,),
    cst.If: (ast.If,),
    cst.IfExp: (ast.IfExp,),
    cst.Import: (ast.Import,),
    cst.ImportFrom: (ast.ImportFrom,),
    cst.Lambda: (ast.Lambda,),
    cst.List: (ast.List,),
    cst.ListComp: (ast.ListComp,),
    cst.Match: (ast.Match,),
    cst.NamedExpr: (ast.NamedExpr,),
    cst.Nonlocal: (ast.Nonlocal,),
    cst.Pass: (ast.Pass,),
    cst.Raise: (ast.Raise,),
    cst.Return: (ast.Return,),
    cst.Set: (ast.Set,),
    cst.SetComp: (ast.SetComp,),
    cst.Subscript: (ast.Subscript,),
    cst.Try: (ast.Try,),
    cst.TryStar: (ast.TryStar,),
    cst.UnaryOperation: (ast.UnaryOp,),
    cst.While: (ast.While,),
    cst.With: (ast.With, ast.AsyncWith),
    cst.WithItem: (ast.withitem,),
    cst.Yield: (ast.Yield, ast.YieldFrom),
}
"""What the same thing is called in both trees."""

KINDS = {kind for kinds in PAIRS.values() for kind in kinds}

IMPORTS: frozenset[type[cst.CSTNode]] = frozenset({cst.Import, cst.ImportFrom})
"""The interpreter has the dotted names in these as texts."""


def paired_nodes(tree: cst.Module) -> list[cst.CSTNode]:
    """Return the nodes of a tree that have an AST node, too: of the kinds in ``PAIRS``, in source order."""
    chained: set[cst.CSTNode] = set()
    found = []
    for node in nodes_of(tree, PAIRS, IMPORTS):
        if type(node) is cst.BooleanOperation:
            # `a and b and c` is one node for the interpreter, and here another one inside of it.
            left, word = node.left, type(node.operator)
            while type(left) is cst.BooleanOperation and not left.lpar and type(left.operator) is word:
                chained.add(left)
                left = left.left
        if node not in chained:
            found.append(node)
    return found


def ast_nodes(nodes: Sequence[cst.CSTNode], same: ast.Module) -> dict[cst.CSTNode, AstNode]:
    """Return the AST nodes of nodes, and of the elements and conditions of generator expressions.

    Args:
        nodes: Those of a tree that can have one, from ``paired_nodes``.
        same: The interpreter's tree of the same text.

    Returns:
        AST nodes by node; empty if the trees differ.
    """
    theirs = _paired_ast_nodes(same)
    if len(nodes) != len(theirs) or not all(map(_alike, nodes, theirs)):
        return {}
    found: dict[cst.CSTNode, Any] = {}
    for node, other in zip(nodes, theirs, strict=True):
        # `with` items have no position of their own, and begin with what they evaluate.
        found[node] = other.context_expr if type(other) is ast.withitem else other
    for node in [one for one in nodes if type(one) is cst.GeneratorExp]:
        found.update(_steps(node, found[node]))
    return found


def _steps(node: cst.GeneratorExp, same: ast.GeneratorExp) -> Iterator[tuple[cst.CSTNode, AstNode]]:
    steps: list[tuple[cst.CSTNode, AstNode]] = [(node.elt, same.elt)]
    for clause, other in zip(_clauses(node), same.generators, strict=True):
        steps += ((one.test, test) for one, test in zip(clause.ifs, other.ifs, strict=True))
    # Only the interpreter counts the parentheses as part of these.
    return ((one, other) for one, other in steps if not isinstance(other, ast.Tuple | ast.GeneratorExp))


def _clauses(node: cst.GeneratorExp) -> Iterator[cst.CompFor]:
    clause: cst.CompFor | None = node.for_in
    while clause is not None:
        yield clause
        clause = clause.inner_for_in


def places(known: Mapping[cst.CSTNode, AstNode], lines: Sequence[str]) -> dict[cst.CSTNode, Place]:
    """Return where names of functions and classes, decorators, and clauses of generator expressions are.

    The interpreter's tree has no nodes for these, but it has what stands before and behind them.

    Args:
        known: AST nodes by node.
        lines: Of the text.
    """
    found: dict[cst.CSTNode, Place] = {}
    for node, same in known.items():
        match same, node:
            case ast.GeneratorExp(), cst.GeneratorExp() as generator:
                found.update(_clause_places(generator, same, lines))
            case (
                (ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef()),
                (cst.FunctionDef() | cst.ClassDef()) as definition,
            ):
                found.update(_decorator_places(definition, same, lines))
                line, name = lines[same.lineno - 1].encode(), definition.name.value.encode()
                word = DEFINES.match(line, same.col_offset)
                if word and line.startswith(name, word.end()):
                    start = word.end()
                    found[definition.name] = Place(same.lineno, start, same.lineno, start + len(name))
    return found


def _decorator_places(
    node: cst.FunctionDef | cst.ClassDef,
    same: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
    lines: Sequence[str],
) -> Iterator[tuple[cst.CSTNode, Place]]:
    for decorator, other in zip(node.decorators, same.decorator_list, strict=True):
        before = lines[other.lineno - 1].encode()[: other.col_offset].rstrip()
        end = _end(decorator.decorator, other, lines)
        if before.endswith(b"@") and end is not None:
            yield decorator, Place(other.lineno, len(before) - 1, *end)


DEFINES = re.compile(rb"(?:async\s+)?(?:def|class)\s+")


def _clause_places(
    node: cst.GeneratorExp, same: ast.GeneratorExp, lines: Sequence[str]
) -> Iterator[tuple[cst.CSTNode, Place]]:
    """Yield where each ``for`` of a generator expression is; it begins right behind what is before it."""
    clauses = list(_clauses(node))
    ends = [_end(node.elt, same.elt, lines)]
    for clause, other in zip(clauses, same.generators, strict=True):
        last, its_ast_node = (clause.ifs[-1].test, other.ifs[-1]) if clause.ifs else (clause.iter, other.iter)
        ends.append(_end(last, its_ast_node, lines))
    for clause, start in zip(clauses, ends, strict=False):
        # A clause holds those behind it.
        if start is not None and ends[-1] is not None:
            yield clause, Place(*start, *ends[-1])


def _end(node: cst.BaseExpression, same: ast.expr, lines: Sequence[str]) -> tuple[int, int] | None:
    """Return the end of an expression with its parentheses; None if something unexpected is in between."""
    line, column = same.end_lineno or same.lineno, same.end_col_offset or 0
    missing = len(node.rpar)
    if missing and isinstance(same, ast.Tuple | ast.GeneratorExp):
        missing -= 1
    while missing:
        space = SPACE.match(lines[line - 1].encode(), column)
        rest = lines[line - 1].encode()[space.end() if space else column :]
        if rest.startswith(b")"):
            column = len(lines[line - 1].encode()) - len(rest) + 1
            missing -= 1
        elif line == len(lines) or (rest and not rest.startswith((b"#", b"\\"))):
            return None
        else:
            line, column = line + 1, 0
    return line, column


SPACE = re.compile(rb"\s*")


def _alike(one: cst.CSTNode, other: ast.AST) -> bool:
    kind = type(one)
    if type(other) not in PAIRS[kind]:
        return False
    match other, one:
        case ast.Call(args=positional, keywords=named, func=theirs), cst.Call(args=args, func=ours):
            return len(args) == len(positional) + len(named) and _word(ours) == _word(theirs)
    return kind not in NAMED or _word(one) == _word(other)


NAMED = frozenset({cst.Attribute, cst.ClassDef, cst.FunctionDef})


def _word(node: Any) -> str:
    """Return the name a node ends with, "" if it has none: tells when two lists are out of step."""
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | cst.Name(value=word):
            pass
        case ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word) | ast.FunctionDef(name=word):
            pass
        case cst.Attribute(attr=name) | cst.FunctionDef(name=name) | cst.ClassDef(name=name):
            word = name.value
        case _:
            word = ""
    return str(word)


ATOMS = frozenset({str, bytes, int, float, complex, bool, type(None), type(...)})
"""What the interpreter's nodes are made of besides nodes."""

MIXED = frozenset(
    {
        ast.AsyncFunctionDef,
        ast.Call,
        ast.ClassDef,
        ast.Dict,
        ast.FunctionDef,
        ast.IfExp,
        ast.Lambda,
        ast.MatchClass,
        ast.MatchMapping,
    }
)
"""Nodes whose parts are listed in another order than they stand in the source."""


def _paired_ast_nodes(root: ast.Module) -> list[ast.AST]:
    """Return the nodes of the kinds that are paired, in source order."""
    found: list[ast.AST] = []
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is list:
            stack.extend(reversed(node))
            continue
        if kind in KINDS:
            found.append(node)
        if kind in MIXED:
            stack.extend(sorted(_children(node), key=_start, reverse=True))
        elif kind not in ATOMS:
            for name in reversed(kind._fields):
                part = getattr(node, name, None)
                if type(part) not in ATOMS:
                    stack.append(part)
    return found


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.arguments | ast.comprehension | ast.match_case):
            yield from _children(child)  # without a position of their own
        elif isinstance(child, ast.withitem) or hasattr(child, "lineno"):
            yield child


def _start(node: ast.AST) -> tuple[int, int]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.decorator_list:
            node = node.decorator_list[0]
        case ast.withitem(context_expr=first):
            node = first
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
