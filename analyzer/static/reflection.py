"""Which attributes does code set by other means than an assignment?

``setattr``, ``__setattr__`` and what is done to a ``__dict__``. Where an object is followed the walk sees all
of them; what requests share, and what every object begins with, is told from the text, on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from analyzer.static.expressions import literal
from analyzer.static.syntax import last_name, name_of
from analyzer.static.values import Const
from analyzer.static.walking import nodes_of

__all__ = ["Mentions", "Write", "mentions_of", "writes"]

LOOKING_FUNCTIONS = {
    "bool",
    "dict",
    "enumerate",
    "frozenset",
    "len",
    "list",
    "print",
    "repr",
    "set",
    "sorted",
}
LOOKING_FUNCTIONS |= {"str", "sum", "tuple", "any", "all", "max", "min", "isinstance", "iter", "zip", "dumps"}
LOOKING_FUNCTIONS |= {"join", "map", "filter", "reversed"}
LOOKING_METHODS = {"copy", "count", "get", "index", "items", "keys", "values"}
"""What only looks at the container it is given, or that it belongs to."""

KINDS = (
    cst.Assign,
    cst.Attribute,
    cst.AugAssign,
    cst.Call,
    cst.CompFor,
    cst.Comparison,
    cst.Del,
    cst.For,
    cst.If,
    cst.IfExp,
    cst.Name,
    cst.StarredDictElement,
    cst.StarredElement,
    cst.Subscript,
    cst.UnaryOperation,
    cst.While,
)
"""Classes of nodes that tell what happens to a container that is mentioned in them."""


@dataclass(frozen=True, slots=True)
class Write:
    """A reflective write.

    Attributes:
        owner: The object, as code.
        name: The attribute; None if the text does not tell.
    """

    owner: cst.BaseExpression
    name: str | None


@dataclass
class Mentions:
    """How containers are used in a piece of code.

    Attributes:
        read: Expressions that are only looked into where they stand.
        changed: Expressions an item of which is set or deleted.
    """

    read: set[cst.CSTNode] = field(default_factory=set)
    changed: set[cst.CSTNode] = field(default_factory=set)

    @staticmethod
    def of(nodes: list[cst.CSTNode]) -> Mentions:
        """Return how containers are used, given all nodes of ``KINDS`` in a piece of code."""
        found = Mentions()
        for node in nodes:
            found._note(node)
        return found

    def only_looks(self, node: cst.CSTNode) -> bool:
        """Return whether what is mentioned here is not changed here, nor kept where it may be."""
        return node in self.read and node not in self.changed

    def _note(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Call):
            if last_name(node.func) in LOOKING_FUNCTIONS:
                self.read.update(argument.value for argument in node.args)
            self.read.update(argument.value for argument in node.args if argument.star)
        elif isinstance(node, cst.Attribute):
            if node.attr.value in LOOKING_METHODS:
                self.read.add(node.value)
        elif isinstance(node, cst.For | cst.CompFor):
            self.read.add(node.iter)
        elif isinstance(node, cst.StarredDictElement | cst.StarredElement | cst.Subscript):
            self.read.add(node.value)
        elif isinstance(node, cst.Comparison):
            self.read.update((node.left, *(part.comparator for part in node.comparisons)))
        elif isinstance(node, cst.If | cst.While | cst.IfExp):
            self.read.add(node.test)
        elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            self.read.add(node.expression)
        elif isinstance(node, cst.Assign):
            for target in node.targets:
                self._set(target.target)
        elif isinstance(node, cst.AugAssign | cst.Del):
            self.changed.add(node.target)
            self._set(node.target)

    def _set(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._set(element.value)
        while isinstance(target, cst.Subscript):
            target = target.value
            self.changed.add(target)


def mentions_of(root: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the nodes of a piece of code that tell how containers are used in it."""
    return nodes_of(root, KINDS)


def writes(root: cst.CSTNode) -> Iterator[Write]:
    """Yield the reflective writes in a piece of code."""
    nodes = mentions_of(root)
    mentions = Mentions.of(nodes)
    for node in nodes:
        if isinstance(node, cst.Call):
            written = _called(node)
            if written is not None:
                yield written
            name = node.func
            if name_of(name) == "vars" and len(node.args) == 1:
                yield from _namespace(node, node.args[0].value, mentions)
        elif isinstance(node, cst.Attribute) and node.attr.value == "__dict__":
            yield from _namespace(node, node.value, mentions)


def _called(node: cst.Call) -> Write | None:
    values = [argument.value for argument in node.args if not argument.star]
    function = node.func
    if name_of(function) in ("setattr", "delattr") and len(values) > 1:
        return Write(values[0], _text(values[1]))
    if isinstance(function, cst.Attribute) and function.attr.value in ("__setattr__", "__delattr__"):
        # `object.__setattr__(it, name, value)`, or `super().__setattr__(name, value)`.
        if len(values) == 3:
            return Write(values[0], _text(values[1]))
        return Write(function.value, _text(values[0]) if values else None)
    return None


def _namespace(node: cst.CSTNode, owner: cst.BaseExpression, mentions: Mentions) -> Iterator[Write]:
    """Yield the write that a ``__dict__`` which does more than being looked into may be."""
    if not mentions.only_looks(node):
        yield Write(owner, None)


def _text(node: cst.BaseExpression) -> str | None:
    known = literal(node)
    return known.value if isinstance(known, Const) and isinstance(known.value, str) else None
