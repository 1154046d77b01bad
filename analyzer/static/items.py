"""Which containers does code change whose items it has given another name, or handed to what changes them?

``handlers = table[name]; handlers.append(f)`` changes what ``table`` holds. Told from names alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from analyzer.static.reflection import MUTATORS
from analyzer.static.source import Module
from analyzer.static.syntax import last_name, name_of, named_parameters, target_names, targets_in
from analyzer.static.walking import of_types

__all__ = ["containers_changed", "taken_from"]

FILLING = {"heappush", "insort", "insort_left", "insort_right"}
"""Functions that put something into a list they are given."""

TAKING = {"get", "items", "pop", "setdefault", "values"}
"""Methods that return items of a container."""


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
    scopes = list(_scopes(module))
    changed = [_changed(nodes) for nodes in scopes]
    filling = set(FILLING)
    for nodes, names in zip(scopes, changed, strict=True):
        declared = (one.params for one in nodes if isinstance(one, cst.FunctionDef | cst.Lambda))
        if names and any(one.name.value in names for params in declared for one in named_parameters(params)):
            filling |= {one.name.value for one in of_types(nodes, cst.FunctionDef)}
    for nodes, names in zip(scopes, changed, strict=True):
        for node in nodes if names else of_types(nodes, cst.Call):
            yield from _named(node, names, filling)


def _scopes(module: Module) -> Iterator[list[cst.CSTNode]]:
    """Yield the code outside of functions, and that of each function with those inside of it."""
    outside: list[cst.CSTNode] = []
    inside, end = outside, 0
    for node in module.nodes:
        place = module.ast_nodes.get(node)
        # What Python has no line of is where the code before it is.
        if place is not None and place.lineno > end:
            inside = outside
            if type(node) is cst.FunctionDef:
                inside, end = [], place.end_lineno or place.lineno
                yield inside
        inside.append(node)
    yield outside


def _changed(nodes: list[cst.CSTNode]) -> set[str]:
    """Return the names whose contents some pieces of code change."""
    found: set[str] = set()
    for node in of_types(nodes, cst.Call, cst.Assign, cst.AugAssign, cst.Del):
        targets: list[cst.CSTNode] = []
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=method)) if method.value in MUTATORS:
                found.add(name_of(taken_from(owner)))
            case cst.Assign():
                targets += (target.target for target in node.targets)
            case cst.AugAssign(target=target) | cst.Del(target=target):
                targets.append(target)
        for one in (one for target in targets for one in targets_in(target)):
            if type(one) is cst.Subscript:
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
        case cst.For(target=target, iter=value):
            yield from [taken_from(value)] if target_names(target) & changed else []
        case cst.BaseComp():
            clause: cst.CompFor | None = node.for_in
            while clause is not None:
                yield from [taken_from(clause.iter)] if target_names(clause.target) & changed else []
                clause = clause.inner_for_in
    yield from (taken_from(item) for item in items if taken_from(item) is not item)
