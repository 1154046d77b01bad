"""What does an annotation say that a value can be?

Where code alone does not tell what a destination is, a developer can: ``dest: Literal["B", "C"]``. This is
believed only where nothing is known, and a log that contradicts it matches no path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import libcst as cst

from analyzer.static.expressions import literal
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names
from analyzer.static.reflection import literal_text
from analyzer.static.source import Module
from analyzer.static.syntax import last_name, name_of, named_parameters
from analyzer.static.values import UNKNOWN, ClassValue, Const, External, Received, Value, join, of_kind
from analyzer.static.walking import statements_in

__all__ = ["FLAGS", "AnnotatedValues"]

FLAGS = {"enum.Flag", "enum.IntFlag"}
"""Enumerations whose members can be combined."""

MAX_DEPTH = 20
"""No annotation refers to another one through more aliases and brackets."""

TRANSPARENT = {"Annotated", "ClassVar", "Final", "Required", "NotRequired"}

DECODED = {
    "attr.define",
    "attr.frozen",
    "attrs.define",
    "attrs.frozen",
    "dataclasses.dataclass",
    "msgspec.Struct",
    "typing.NamedTuple",
}
"""Bases and decorators of classes of which the framework makes objects."""


class AnnotatedValues:
    """Looks up what annotations say.

    Args:
        names: Meaning of names in the source tree.

    Attributes:
        members: Returns the members of an enumeration, None for any other class.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self.members: Callable[[ClassInfo], Sequence[Value] | None] = lambda _: None
        self._locals: dict[FunctionInfo, dict[str, Value]] = {}
        self._received: dict[FunctionInfo, dict[str, Value]] = {}
        self._attributes: dict[ClassInfo, dict[str, Value]] = {}

    def local(self, function: FunctionInfo | None, name: str, value: Value) -> Value:
        """Return what a parameter or variable is worth: ``value``, or its annotation if that is unknown."""
        if function is None or not value.is_unknown:
            return value
        if function not in self._locals:
            self._locals[function] = self._of_function(function)
        return self._locals[function].get(name, value)

    def received(self, function: FunctionInfo, name: str) -> Value:
        """Return what a parameter of an endpoint is worth: the framework sees to its type."""
        if function not in self._received:
            self._received[function] = self._of_parameters(function, checked=True)
        return self._received[function].get(name, UNKNOWN)

    def attribute(self, info: ClassInfo, name: str, value: Value) -> Value:
        """Return what an attribute of objects of a class is worth, likewise."""
        if not value.is_unknown:
            return value
        for owner in self._names.line(info):
            if owner not in self._attributes:
                self._attributes[owner] = self._of_class(owner)
            if name in self._attributes[owner]:
                return self._attributes[owner][name]
        return value

    def constant(self, module: Module, binding: Assigned, value: Value) -> Value:
        """Return what a module or class constant is worth, likewise."""
        if not value.is_unknown or binding.annotation is None:
            return value
        return self._value(module, binding.annotation) or value

    def _of_parameters(self, function: FunctionInfo, *, checked: bool = False) -> dict[str, Value]:
        pairs = ((one.name.value, one.annotation) for one in named_parameters(function.node.params))
        return self._said(function.module, pairs, checked=checked)

    def _of_function(self, function: FunctionInfo) -> dict[str, Value]:
        parts = of_kind(statements_in(function.node.body, (cst.FunctionDef, cst.ClassDef)), cst.AnnAssign)
        pairs = ((name_of(part.target), part.annotation) for part in parts)
        return {**self._of_parameters(function), **self._said(function.module, pairs)}

    def _of_class(self, info: ClassInfo) -> dict[str, Value]:
        """Read the annotations of a class body, and those of ``self.x`` in its methods."""
        parts = of_kind(statements_in(info.node.body, (cst.ClassDef,)), cst.AnnAssign)
        return self._said(info.module, ((last_name(part.target), part.annotation) for part in parts))

    def _said(
        self, module: Module, pairs: Iterable[tuple[str, cst.Annotation | None]], *, checked: bool = False
    ) -> dict[str, Value]:
        """Return what annotations say of names; of two that say something, the last counts."""
        found: dict[str, Value] = {}
        for name, annotation in pairs:
            if name and annotation is not None:
                value = self._value(module, annotation.annotation, checked=checked)
                found |= {} if value is None else {name: value}
        return found

    def _value(
        self, module: Module, node: cst.BaseExpression, depth: int = 0, *, checked: bool = False
    ) -> Value | None:
        """Return what a value with this annotation can be; None if it says nothing of use.

        ``checked`` tells whether a value of another type cannot get there.
        """
        if depth > MAX_DEPTH:
            return None
        match node:
            case cst.SimpleString():
                return self._quoted(module, node, depth, checked=checked)
            case cst.Name() | cst.Attribute():
                return self._named(module, node, depth, checked=checked)
            case cst.BinaryOperation(operator=cst.BitOr()):
                return self._any_of(module, [node.left, node.right], depth, checked=checked)
            case cst.Subscript():
                parts = [e.slice.value for e in node.slice if type(e.slice) is cst.Index]
                name = self._names.external(module, node.value).rpartition(".")[2]
                if name == "Literal":
                    return _one_of([literal(part) for part in parts])
                if name in ("Union", "Optional"):
                    options = [*parts, cst.Name("None")] if name == "Optional" and checked else parts
                    return self._any_of(module, options, depth, checked=checked)
                if name in TRANSPARENT and parts:
                    return self._value(module, parts[0], depth + 1, checked=checked)
        return None

    def _any_of(
        self, module: Module, nodes: Sequence[cst.BaseExpression], depth: int, *, checked: bool
    ) -> Value | None:
        return _one_of(
            [literal(node) or self._value(module, node, depth + 1, checked=checked) for node in nodes]
        )

    def _quoted(self, module: Module, node: cst.SimpleString, depth: int, *, checked: bool) -> Value | None:
        try:
            inner = cst.parse_expression(str(node.evaluated_value))
        except cst.ParserSyntaxError:
            return None
        return self._value(module, inner, depth + 1, checked=checked)

    def _named(self, module: Module, node: cst.BaseExpression, depth: int, *, checked: bool) -> Value | None:
        """Follow an alias of an annotation, or read the members of an enumeration."""
        match self._names.dotted(module, node):
            case ClassValue(info):
                return self._instances(info) if checked else self._members(info)
            case External("builtins.bool") if checked:
                return join([Const.of(value=True), Const.of(value=False)])
        match self._names.find(module, name_of(node)) if name_of(node) else None:
            case (there, Assigned(value=cst.BaseExpression() as alias)):
                return self._value(there, alias, depth + 1, checked=checked)
        return None

    def _instances(self, info: ClassInfo) -> Value | None:
        """Return what the framework makes of a request where this class is asked for."""
        members, outside = self.members(info), self._names.outside(info)
        if members is not None:
            return join(members) if members and not outside & FLAGS else None
        return Received(info) if DECODED & {*outside, *self._names.class_decorators(info)} else None

    def _members(self, info: ClassInfo) -> Value | None:
        if "enum.StrEnum" not in self._names.outside(info):
            return None
        texts = [literal_text(one.value) for one in of_kind(info.bindings.values(), Assigned)]
        return _one_of([None if text is None else Const.of(text) for text in texts]) if texts else None


def _one_of(values: Sequence[Value | None]) -> Value | None:
    """Return the value that may be any of these; None if one of them is not known."""
    known = [value for value in values if value is not None]
    return join(known) if len(known) == len(values) else None
