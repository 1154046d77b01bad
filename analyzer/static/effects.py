"""Effects of a function that is not walked.

Answered from its text alone, on the safe side: whether it may change lists, dicts and objects it was handed,
and which variables of the functions around it it sets.
"""

# ruff: noqa: N802  (visit_NODE is how libcst spells it)

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from analyzer.static.names import MUTATORS, FunctionInfo
from analyzer.static.syntax import is_name
from analyzer.static.walking import nodes_of, show, statements_in

__all__ = ["Effects", "declared_elsewhere", "effects_of"]

_FUNCTIONS = (
    "bool dict enumerate float int isinstance len list max min print range repr reversed round set sorted str"
    " sum tuple type zip"
)
_METHODS = "debug error exception format get info items join keys log lower strip upper values warning"

LOOKING_FUNCTIONS = frozenset(_FUNCTIONS.split())
LOOKING_METHODS = frozenset(_METHODS.split())
LOOKING_MODULES = {"json", "math"}
"""Calls of these change nothing they are handed."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What a function may change.

    Attributes:
        contents: Whether it may change the contents of what it can reach.
        outer: Variables of the functions around it that it, or a function inside it, sets.
        defines: Whether there are functions inside it, which it may return.
        called: The names it calls; what it makes of classes it may return.
    """

    contents: bool
    outer: frozenset[str]
    defines: bool
    called: tuple[cst.Name | cst.Attribute, ...]


class _Finder(cst.CSTVisitor):
    def __init__(self) -> None:
        self.contents = False
        self.outer: set[str] = set()
        self.functions = 0
        self.called: list[cst.Name | cst.Attribute] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:  # noqa: ARG002
        self.functions += 1

    def visit_Lambda(self, node: cst.Lambda) -> None:  # noqa: ARG002
        self.functions += 1

    def visit_Nonlocal(self, node: cst.Nonlocal) -> None:
        self.outer |= {item.name.value for item in node.names}

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._target(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._target(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._target(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:  # noqa: ARG002
        self.contents = True  # `items += [...]` changes the list

    def visit_Del(self, node: cst.Del) -> None:
        self._target(node.target)

    def visit_Yield(self, node: cst.Yield) -> None:  # noqa: ARG002
        self.contents = True  # and so may its consumer

    def visit_Call(self, node: cst.Call) -> None:
        match node.func:
            case cst.Name(value=name) as function:
                self.called.append(function)
                self.contents |= name not in LOOKING_FUNCTIONS
            case cst.Attribute(value=owner, attr=cst.Name(value=name)) as function:
                self.called.append(function)
                looks = is_name(owner, *LOOKING_MODULES) or name in LOOKING_METHODS
                self.contents |= name in MUTATORS or not looks
            case _:
                self.contents = True

    def _target(self, target: cst.CSTNode) -> None:
        self.contents |= bool(nodes_of(target, (cst.Attribute, cst.Subscript)))


def effects_of(function: FunctionInfo) -> Effects:
    """Return what a function of the source tree may change."""
    finder = _Finder()
    show(function.node, finder)
    return Effects(finder.contents, frozenset(finder.outer), finder.functions > 1, tuple(finder.called))


def declared_elsewhere(function: FunctionInfo) -> frozenset[str]:
    """Return the variables a function declares ``nonlocal`` or ``global``."""
    found: set[str] = set()
    for statement in statements_in(function.node.body, (cst.FunctionDef,)):
        match statement:
            case cst.Nonlocal(names=items) | cst.Global(names=items):
                found.update(item.name.value for item in items)
    return frozenset(found)
