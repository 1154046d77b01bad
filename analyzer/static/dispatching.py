"""Functions that the class of their first argument chooses: ``functools.singledispatch``.

Python looks for an implementation that was registered for the class, then for its bases in their order, then
takes the decorated function itself. What is registered stands in decorators all over the source tree; where
something else registers, or for classes that are not known, any of them may be meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.names import ClassInfo, FunctionInfo, Names
from analyzer.static.source import Module
from analyzer.static.syntax import last_name, name_of, positional_parameters
from analyzer.static.values import (
    ClassValue,
    Const,
    EnumMember,
    External,
    Function,
    FunctionValue,
    Instance,
    ObjectRef,
    Received,
    SharedObject,
    Value,
    alternatives,
    join,
)
from analyzer.static.walk import Part, Walk
from analyzer.static.walking import nodes_of

__all__ = ["Dispatching", "Registered", "dispatched_by", "registered"]

BY_FUNCTION = "functools.singledispatch"
BY_METHOD = "functools.singledispatchmethod"


@dataclass(frozen=True)
class Registered:
    """An implementation.

    Attributes:
        function: What runs.
        kinds: For which classes; None = not known.
    """

    function: FunctionInfo
    kinds: tuple[Value, ...] | None


def dispatched_by(function: FunctionInfo, names: Names) -> str:
    """Return which of the two decorators a function has, alone; else ""."""
    match function.decorators:
        case [cst.Decorator(decorator=used)]:
            name = names.library_name(function.module, used)
            return name if name in (BY_FUNCTION, BY_METHOD) else ""
    return ""


def registered(function: FunctionInfo, names: Names) -> tuple[list[Registered], bool]:
    """Return the implementations of such a function, and whether there are no others."""
    found: list[Registered] = []
    mentions = 0
    for module in _modules(names):
        if function.owner is None:
            place: cst.Module | cst.ClassDef = module.tree
        elif function.owner.module is module:
            place = function.owner.node
        else:
            # Another class may have registered with it through this one.
            owners = [n.value for n, _ in _registrations(module.tree) if type(n.value) is cst.Attribute]
            mentions += [last_name(one) for one in owners].count(name_of(function.place))
            continue
        for node, definition in _registrations(place):
            if not _means(node.value, function, module, names):
                continue
            mentions += 1
            if definition is not None:
                found.append(_registered(definition, function, module, names))
    return found, mentions == len(found)


def _modules(names: Names) -> list[Module]:
    """Return the modules read so far and all that they import."""
    found = dict.fromkeys(names.modules_read())
    waiting = list(found)
    while waiting:
        for module in names.modules_imported(waiting.pop()):
            if module not in found:
                found[module] = None
                waiting.append(module)
    return list(found)


def _registrations(root: cst.Module | cst.ClassDef) -> Iterator[tuple[cst.Attribute, cst.FunctionDef | None]]:
    """Yield every mention of a ``register``, with the function of a module or class that it decorates."""
    decorating: dict[int, cst.FunctionDef] = {}
    body = root.body if isinstance(root, cst.Module) else root.body.body
    for definition in body:
        match definition:
            case (
                cst.FunctionDef(decorators=[cst.Decorator(decorator=cst.Call(func=used, args=[_]))])
                | cst.FunctionDef(decorators=[cst.Decorator(decorator=used)])
            ):
                decorating[id(used)] = definition
    for node in nodes_of(root, (cst.Attribute,)):
        if node.attr.value == "register":
            yield node, decorating.get(id(node))


def _means(node: cst.BaseExpression, function: FunctionInfo, module: Module, names: Names) -> bool:
    """Return whether an expression in a module, or in the body of its class, is the function."""
    if function.owner is None:
        return names.dotted(module, node) == FunctionValue(function)
    return last_name(node) == name_of(function.place)


def _registered(node: cst.FunctionDef, function: FunctionInfo, module: Module, names: Names) -> Registered:
    owner = function.owner
    name = node.name.value if owner is None else f"{owner.qualname}.{node.name.value}"
    made = FunctionInfo(module, node, name, owner)
    decorator = node.decorators[0].decorator
    if type(decorator) is cst.Call:
        return Registered(made, _kinds(decorator.args[0].value, module, names))
    match positional_parameters(node.params)[0 if owner is None else 1 :]:
        case (cst.Param(annotation=cst.Annotation(annotation=stated)), *_):
            return Registered(made, _kinds(stated, module, names))
    return Registered(made, None)


def _kinds(node: cst.BaseExpression, module: Module, names: Names) -> tuple[Value, ...] | None:
    match node:
        case cst.BinaryOperation(operator=cst.BitOr(), left=one, right=other):
            left, right = _kinds(one, module, names), _kinds(other, module, names)
            return None if left is None or right is None else (*left, *right)
    value = names.dotted(module, node)
    return (value,) if isinstance(value, ClassValue | External) else None


class Dispatching(Part):
    """Chooses implementations."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._known: dict[tuple[FunctionInfo, int], list[Registered] | None] = {}

    def dispatches(self, callee: Function) -> bool:
        """Return whether the class of an argument decides what runs."""
        return dispatched_by(callee.info, self.walk.names) != ""

    def chosen(self, callee: Function, arguments: Arguments) -> list[tuple[FunctionValue, Arguments]] | None:
        """Return what may run, each with the arguments it may be given; None if that is not known."""
        implementations = self._implementations(callee.info)
        place = next((i for i, a in enumerate(arguments.nodes) if a.keyword is None and not a.star), None)
        if implementations is None or place is None or not arguments.plain:
            return None
        bound = callee.bound if isinstance(callee, FunctionValue) else None
        handed: dict[FunctionInfo, list[Value]] = {}
        for value in alternatives(arguments.values[place]):
            for function in self._for(value, callee.info, implementations):
                handed.setdefault(function, []).append(value)
        values = arguments.values
        return [
            (
                FunctionValue(function, bound),
                replace(arguments, values=(*values[:place], join(given), *values[place + 1 :])),
            )
            for function, given in handed.items()
        ]

    def _implementations(self, function: FunctionInfo) -> list[Registered] | None:
        key = (function, len(self.walk.names.modules_read()))
        if key not in self._known:
            found, complete = registered(function, self.walk.names)
            self._known[key] = found if complete else None
        return self._known[key]

    def _for(
        self, value: Value, default: FunctionInfo, implementations: list[Registered]
    ) -> list[FunctionInfo]:
        """Return what may run for a value."""
        everything = [*(one.function for one in implementations), default]
        line = _bases(value, self.walk.names)
        if line is None or any(one.kinds is None for one in implementations):
            return everything
        for kind in line:
            # What a module has registered last for a class has replaced what it had before. Which of several
            # modules is imported last may depend on what is served.
            fitting = [one.function for one in implementations if kind in (one.kinds or ())]
            if fitting:
                return list({one.module: one for one in fitting}.values())
        return [default]


def _bases(value: Value, names: Names) -> list[Value] | None:
    """Return the class of a value and its bases, in their order; None where they are not all known."""
    match value:
        case Const(value=constant):
            return [External(f"builtins.{kind.__name__}") for kind in type(constant).__mro__]
        case Instance() | ObjectRef() | SharedObject() | EnumMember() | Received():
            outside = {External(name) for name in names.outside(value.info)}
            if outside <= PLAIN_BASES:
                return [
                    base.meaning() if isinstance(base, ClassInfo) else base for base in names.mro(value.info)
                ]
    return None


PLAIN_BASES = frozenset(
    External(name)
    for name in ("builtins.object", "typing.Generic", "typing.Protocol", "abc.ABC", "enum.Enum", "mup.MS")
)
"""Bases that no implementation is registered for but by their own names."""
