"""What does an annotation say that a value can be?

Where code alone does not tell what a destination is, a developer can: ``dest: Literal["B", "C"]``. This is
believed only where nothing is known, and a log that contradicts it matches no path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from analyzer.static.expressions import literal
from analyzer.static.names import Assigned, ClassInfo, FunctionInfo, Names
from analyzer.static.source import Module
from analyzer.static.syntax import applied
from analyzer.static.values import UNKNOWN, ClassValue, Const, External, Received, Unknown, Value, join
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
        if function is None or not isinstance(value, Unknown):
            return value
        if function not in self._locals:
            self._locals[function] = self._of_function(function)
        return self._locals[function].get(name, value)

    def received(self, function: FunctionInfo, name: str) -> Value:
        """Return what a parameter of an endpoint is worth: the framework sees to its type."""
        if function not in self._received:
            found: dict[str, Value] = {}
            self._received[function] = found
            declared = function.node.params
            for one in (*declared.posonly_params, *declared.params, *declared.kwonly_params):
                self._note(function.module, one.name, one.annotation, found, checked=True)
        return self._received[function].get(name, UNKNOWN)

    def attribute(self, info: ClassInfo, name: str, value: Value) -> Value:
        """Return what an attribute of objects of a class is worth, likewise."""
        if not isinstance(value, Unknown):
            return value
        for owner in self._names.line(info):
            if owner not in self._attributes:
                self._attributes[owner] = self._of_class(owner)
            if name in self._attributes[owner]:
                return self._attributes[owner][name]
        return value

    def constant(self, module: Module, binding: Assigned, value: Value) -> Value:
        """Return what a module or class constant is worth, likewise."""
        if not isinstance(value, Unknown) or binding.annotation is None:
            return value
        return self._value(module, binding.annotation) or value

    def _of_function(self, function: FunctionInfo) -> dict[str, Value]:
        found: dict[str, Value] = {}
        node = function.node
        parameters = node.params
        for one in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
            self._note(function.module, one.name, one.annotation, found)
        if isinstance(node, cst.FunctionDef):
            for part in statements_in(node.body, (cst.FunctionDef, cst.ClassDef)):
                if isinstance(part, cst.AnnAssign):
                    self._note(function.module, part.target, part.annotation, found)
        return found

    def _of_class(self, info: ClassInfo) -> dict[str, Value]:
        """Read the annotations of a class body, and those of ``self.x`` in its methods."""
        found: dict[str, Value] = {}
        for part in statements_in(info.node.body, (cst.ClassDef,)):
            if isinstance(part, cst.AnnAssign):
                target = part.target
                name = target.attr if isinstance(target, cst.Attribute) else target
                self._note(info.module, name, part.annotation, found)
        return found

    def _note(
        self,
        module: Module,
        target: cst.BaseExpression,
        annotation: cst.Annotation | None,
        found: dict[str, Value],
        *,
        checked: bool = False,
    ) -> None:
        if isinstance(target, cst.Name) and annotation is not None:
            value = self._value(module, annotation.annotation, checked=checked)
            if value is not None:
                found[target.value] = value

    def _value(
        self, module: Module, node: cst.BaseExpression, depth: int = 0, *, checked: bool = False
    ) -> Value | None:
        """Return what a value with this annotation can be; None if it says nothing of use.

        ``checked`` tells whether a value of another type cannot get there.
        """
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, cst.SimpleString):
            return self._quoted(module, node, depth, checked=checked)
        if isinstance(node, cst.Name | cst.Attribute):
            return self._named(module, node, depth, checked=checked)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            return self._any_of(module, [node.left, node.right], depth, checked=checked)
        if isinstance(node, cst.Subscript):
            meaning = self._names.dotted(module, node.value)
            parts = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
            name = meaning.name.rpartition(".")[2] if isinstance(meaning, External) else ""
            if name == "Literal":
                values = [literal(part) for part in parts]
                return join([v for v in values if v is not None]) if None not in values else None
            if name in ("Union", "Optional"):
                options = [*parts, cst.Name("None")] if name == "Optional" and checked else parts
                return self._any_of(module, options, depth, checked=checked)
            if name in TRANSPARENT and parts:
                return self._value(module, parts[0], depth + 1, checked=checked)
        return None

    def _any_of(
        self, module: Module, nodes: Sequence[cst.BaseExpression], depth: int, *, checked: bool
    ) -> Value | None:
        values = [literal(node) or self._value(module, node, depth + 1, checked=checked) for node in nodes]
        return join([v for v in values if v is not None]) if None not in values else None

    def _quoted(self, module: Module, node: cst.SimpleString, depth: int, *, checked: bool) -> Value | None:
        try:
            inner = cst.parse_expression(str(node.evaluated_value))
        except cst.ParserSyntaxError:
            return None
        return self._value(module, inner, depth + 1, checked=checked)

    def _named(self, module: Module, node: cst.BaseExpression, depth: int, *, checked: bool) -> Value | None:
        """Follow an alias of an annotation, or read the members of an enumeration."""
        meaning = self._names.dotted(module, node)
        if isinstance(meaning, ClassValue):
            return self._instances(meaning.info) if checked else self._members(meaning.info)
        if checked and meaning == External("builtins.bool"):
            return join([Const.of(value=True), Const.of(value=False)])
        found = self._names.find(module, node.value) if isinstance(node, cst.Name) else None
        if isinstance(found, tuple) and isinstance(found[1], Assigned) and found[1].value is not None:
            return self._value(found[0], found[1].value, depth + 1, checked=checked)
        return None

    def _instances(self, info: ClassInfo) -> Value | None:
        """Return what the framework makes of a request where this class is asked for."""
        members = self.members(info)
        if members is not None:
            combined = bool(self._names.outside(info) & FLAGS)
            return join(members) if members and not combined else None
        outside = self._names.outside(info)
        made = (d.decorator for d in info.node.decorators)
        marks = (self._names.dotted(info.module, applied(one)) for one in made)
        outside |= {mark.name for mark in marks if isinstance(mark, External)}
        return Received(info) if outside & DECODED else None

    def _members(self, info: ClassInfo) -> Value | None:
        if "enum.StrEnum" not in self._names.outside(info):
            return None
        assigned = [b for b in info.bindings.values() if isinstance(b, Assigned)]
        values = [literal(b.value) if b.value is not None else None for b in assigned]
        known = [v for v in values if isinstance(v, Const) and isinstance(v.value, str)]
        return join(known) if known and len(known) == len(values) else None
