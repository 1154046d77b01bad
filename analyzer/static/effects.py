"""Effects of a function that is not walked.

Answered from its text alone, on the safe side: whether it may change lists, dicts and objects it was handed,
and which variables of the functions around it it sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from analyzer.static.names import FunctionInfo
from analyzer.static.reflection import MUTATORS
from analyzer.static.syntax import is_name
from analyzer.static.walking import nodes_of, of_types, statements_in

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
        called: The names it calls or goes through; what it makes of classes, or finds in them, it may return.
    """

    contents: bool
    outer: frozenset[str]
    defines: bool
    called: tuple[cst.Name | cst.Attribute, ...]


_TELLING: tuple[type[cst.CSTNode], ...] = (cst.AnnAssign, cst.AssignTarget, cst.AugAssign, cst.Call, cst.Del)
_TELLING += (cst.CompFor, cst.For, cst.FunctionDef, cst.Lambda, cst.Nonlocal, cst.Yield)
"""Classes of nodes that tell what a function may change."""


def effects_of(function: FunctionInfo) -> Effects:
    """Return what a function of the source tree may change."""
    contents, functions = False, 0
    outer: set[str] = set()
    called: list[cst.Name | cst.Attribute] = []
    for node in nodes_of(function.node, _TELLING):
        match node:
            case cst.FunctionDef() | cst.Lambda():
                functions += 1
            case cst.Nonlocal(names=items):
                outer.update(item.name.value for item in items)
            case cst.CompFor(iter=cst.Name() | cst.Attribute() as used):
                called.append(used)
            case cst.CompFor():
                pass
            case cst.AssignTarget() | cst.AnnAssign() | cst.For() | cst.Del():
                match node:
                    case cst.For(iter=cst.Name() | cst.Attribute() as used):
                        called.append(used)
                contents |= bool(nodes_of(node.target, (cst.Attribute, cst.Subscript)))
            case cst.Call(func=cst.Name(value=name) as used):
                called.append(used)
                contents |= name not in LOOKING_FUNCTIONS
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)) as used):
                called.append(used)
                looks = is_name(owner, *LOOKING_MODULES) or name in LOOKING_METHODS
                contents |= name in MUTATORS or not looks
            case _:
                # `items += [...]` changes the list, a consumer may; of other calls nothing is known.
                contents = True
    return Effects(contents, frozenset(outer), functions > 1, tuple(called))


def declared_elsewhere(function: FunctionInfo) -> frozenset[str]:
    """Return the variables a function declares ``nonlocal`` or ``global``."""
    found: set[str] = set()
    kinds: tuple[type[cst.Nonlocal | cst.Global], ...] = (cst.Nonlocal, cst.Global)
    for statement in of_types(statements_in(function.node.body, (cst.FunctionDef,)), *kinds):
        found.update(item.name.value for item in statement.names)
    return frozenset(found)
