"""Which containers does code change whose items it has given another name, or handed to what changes them?

``handlers = table[name]; handlers.append(f)`` changes what ``table`` holds. Told from names alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from analyzer.static.reflection import MUTATORS
from analyzer.static.source import Module
from analyzer.static.syntax import last_name, name_of, target_names, targets_in
from analyzer.static.walking import nodes_of

__all__ = ["containers_changed", "taken_from"]

FILLING = {"heappush", "insort", "insort_left", "insort_right"}
"""Functions that put something into a list they are given."""

TAKING = {"get", "items", "pop", "setdefault", "values"}
"""Methods that return items of a container."""

NAMING: tuple[type[cst.CSTNode], ...] = (cst.AnnAssign, cst.Assign, cst.Call, cst.CompFor, cst.Del, cst.For)
NAMING += (cst.AugAssign, cst.FunctionDef, cst.NamedExpr, cst.Param)


def taken_from(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the container that an expression takes an item of an item of; any other expression itself."""
    while True:
        match node:
            case cst.Subscript(value=owner):
                node = owner
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in TAKING:
                node = owner
            case _:
                return node


def containers_changed(module: Module) -> Iterator[cst.BaseExpression]:
    """Yield the containers of which a module changes items that have another name by then."""
    outer = nodes_of(module.tree, (cst.FunctionDef,), (cst.FunctionDef,))
    scopes = [nodes_of(module.tree, NAMING, (cst.FunctionDef,)), *(nodes_of(one, NAMING) for one in outer)]
    changed = [_changed(nodes) for nodes in scopes]
    filling = set(FILLING)
    for nodes, names in zip(scopes, changed, strict=True):
        if names & {node.name.value for node in nodes if isinstance(node, cst.Param)}:
            filling |= {node.name.value for node in nodes if isinstance(node, cst.FunctionDef)}
    for nodes, names in zip(scopes, changed, strict=True):
        for node in nodes:
            yield from _named(node, names, filling)


def _changed(nodes: list[cst.CSTNode]) -> set[str]:
    """Return the names whose contents some pieces of code change."""
    found: set[str] = set()
    for node in nodes:
        targets: list[cst.CSTNode] = []
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=method)) if method.value in MUTATORS:
                found.add(name_of(taken_from(owner)))
            case cst.Assign():
                targets += (target.target for target in node.targets)
            case cst.AugAssign(target=target) | cst.Del(target=target):
                targets.append(target)
        for one in (one for target in targets for one in targets_in(target)):
            if isinstance(one, cst.Subscript):
                found.add(name_of(taken_from(one)))
    return found - {""}


def _named(node: cst.CSTNode, changed: set[str], filling: set[str]) -> Iterator[cst.BaseExpression]:
    """Yield the containers whose items get one of some names, or are handed to one of some functions."""
    items: list[cst.BaseExpression] = []
    match node:
        case cst.Call(func=function, args=arguments) if last_name(function) in filling:
            items += (one.value for one in arguments)
        case cst.Assign(targets=targets, value=value):
            items += [value] if any(target_names(one.target) & changed for one in targets) else []
        case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
            items += [value] if target_names(target) & changed else []
        case cst.NamedExpr(target=target, value=value):
            items += [value] if target_names(target) & changed else []
        case cst.For(target=target, iter=value) | cst.CompFor(target=target, iter=value):
            yield from [taken_from(value)] if target_names(target) & changed else []
    yield from (taken_from(item) for item in items if taken_from(item) is not item)
