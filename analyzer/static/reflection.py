"""Which attributes does code set by other means than an assignment?

``setattr``, ``__setattr__`` and what is done to a ``__dict__``. Where an object is followed the walk sees all
of them; what requests share, and what every object begins with, is told from the text, on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from analyzer.static.expressions import literal
from analyzer.static.syntax import last_name, targets_in
from analyzer.static.values import Const
from analyzer.static.walking import nodes_of

__all__ = ["LOOKING_METHODS", "MUTATORS", "Mentions", "Write", "literal_text", "mentions_of", "writes"]

MUTATORS = {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
}
"""Methods that change what they belong to."""

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
LOOKING_FUNCTIONS |= {"join", "map", "filter", "reversed", "MappingProxyType"}
LOOKING_METHODS = {"copy", "count", "get", "index", "items", "keys", "values"}
"""What only looks at the container it is given, or that it belongs to."""

KINDS = (
    cst.AsName,
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
        match node:
            case cst.Name():
                pass
            case cst.Call(func=function, args=arguments):
                looks = last_name(function) in LOOKING_FUNCTIONS
                self.read.update(argument.value for argument in arguments if looks or argument.star)
            case cst.Attribute(value=owner, attr=cst.Name(value=name)) if name in LOOKING_METHODS:
                self.read.add(owner)
            case cst.For(target=bound, iter=part) | cst.CompFor(target=bound, iter=part):
                self.read.add(part)
                self._set(bound)
            case cst.AsName(name=bound):
                self._set(bound)
            case cst.StarredDictElement() | cst.StarredElement() | cst.Subscript():
                self.read.add(node.value)
            case cst.Comparison(left=left, comparisons=comparisons):
                self.read.update((left, *(one.comparator for one in comparisons)))
            case cst.If(test=part) | cst.While(test=part) | cst.IfExp(test=part):
                self.read.add(part)
            case cst.UnaryOperation(operator=cst.Not(), expression=part):
                self.read.add(part)
            case cst.Assign(targets=targets):
                for target in targets:
                    self._set(target.target)
            case cst.AugAssign(target=part) | cst.Del(target=part):
                self.changed.add(part)
                self._set(part)

    def _set(self, target: cst.CSTNode) -> None:
        for one in targets_in(target):
            while type(one) is cst.Subscript:
                one = one.value  # noqa: PLW2901
                self.changed.add(one)


def mentions_of(root: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the nodes of a piece of code that tell how containers are used in it."""
    return nodes_of(root, KINDS)


def writes(root: cst.CSTNode) -> Iterator[Write]:
    """Yield the reflective writes in a piece of code."""
    nodes = mentions_of(root)
    mentions = Mentions.of(nodes)
    keys = _keys(nodes)
    for node in nodes:
        match node:
            case (
                cst.Attribute(value=owner, attr=cst.Name(value="__dict__"))
                | cst.Call(func=cst.Name(value="vars"), args=[cst.Arg(value=owner)])
            ):
                # What does more than being looked into may be written.
                if not mentions.only_looks(node):
                    yield Write(owner, keys.get(node))
            case (
                cst.Call(func=cst.Name(value="setattr" | "delattr") as function)
                | cst.Call(func=cst.Attribute(attr=cst.Name(value="__setattr__" | "__delattr__")) as function)
            ):
                match function, [argument.value for argument in node.args if not argument.star]:
                    # `setattr(it, name, value)`, or `object.__setattr__(it, name, value)`.
                    case (cst.Name(), [owner, name, *_]) | (cst.Attribute(), [owner, name, _]):
                        yield Write(owner, literal_text(name))
                    # `super().__setattr__(name, value)`.
                    case cst.Attribute(value=owner), names:
                        yield Write(owner, literal_text(names[0]) if names else None)


def _keys(nodes: list[cst.CSTNode]) -> dict[cst.CSTNode, str]:
    """Return the only key that is used of a container where it is mentioned, if the text tells."""
    found: dict[cst.CSTNode, str] = {}
    for node in nodes:
        match node:
            case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
                text = literal_text(key)
            case cst.Call(
                func=cst.Attribute(value=owner, attr=cst.Name(value="pop" | "setdefault")),
                args=[cst.Arg(value=key, star="", keyword=None), *_],
            ):
                text = literal_text(key)
            case _:
                continue
        if text is not None:
            found[owner] = text
    return found


def literal_text(node: cst.BaseExpression | None) -> str | None:
    """Return the text that an expression spells out; None if it is no literal, or no text."""
    match literal(node) if node is not None else None:
        case Const(value=str(text)):
            return text
    return None
