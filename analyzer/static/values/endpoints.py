"""What is ``EP(path)``, and what is a function it has marked?

Marks matter while it is found out which endpoints a service has. What serves requests is the function, and a
mark does nothing to that: everywhere else values are `unmarked`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analyzer.static.values.value import UNKNOWN, Opaque, Value, alternatives

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.state import Heap, Results, State
    from analyzer.static.values.escape import Escape
    from analyzer.static.walk import Walk

__all__ = ["Mark", "Marked", "mark_of", "unmarked"]


@dataclass(frozen=True, slots=True)
class Mark(Opaque):
    """What ``EP(path, name=..., method=...)`` makes: a decorator that marks a function as an endpoint."""

    never_none: ClassVar[bool] = True
    always_true: ClassVar[bool] = True

    path: Value
    name: Value
    verb: Value

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.path, self.name, self.verb)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return Mark(change(self.path), change(self.name), change(self.verb))

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does: it marks what it is given."""
        if not arguments.plain or len(arguments.values) != 1:
            return Opaque.call(self, arguments, node, state, run)
        return [(state, run.attaching.marked(arguments.values[0], self, node))]

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        return {"path": self.path, "name": self.name, "method": self.verb}.get(name, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Marked(Opaque):
    """A function that is an endpoint of the class it is an attribute of; it does what the function does."""

    never_none: ClassVar[bool] = True

    function: Value
    mark: Value

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.function, self.mark)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return Marked(change(self.function), change(self.mark))

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return self.function.truth(heap)

    def instance_of(self, kind: Value, run: Walk) -> bool | None:
        """Return what ``isinstance`` says."""
        return self.function.instance_of(kind, run)

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return self.function.call(arguments, node, state, run)

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        return self.function.attribute(name, node, state, run)

    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does."""
        return self.function.read(name, node, state, run)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        return self.function.method(name, arguments, node, state, run)

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        return self.function.item(key, node, state, run)

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        return self.function.items(state, run)

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it, if that is not walked, may change what is known about some object."""
        return self.function.may_change(node, arguments, state)

    def communicates(self, state: State, run: Walk) -> bool:
        """Return whether a function that gets it can communicate."""
        return self.function.communicates(state, run)

    def is_communication(self) -> bool:
        """Return whether it gives away the ``Communication`` object."""
        return self.function.is_communication()

    def escape(self, state: State, run: Walk) -> Escape | None:
        """Return why it must not leave."""
        return self.function.escape(state, run)


def unmarked(value: Value) -> Value:
    """Return what a value is where it does not matter which functions are endpoints."""
    if value.atomic:
        return value
    return unmarked(value.function) if isinstance(value, Marked) else value.map(unmarked)


def mark_of(value: Value) -> Value | None:
    """Return what a value is marked as; unknown if that depends on something, None if it is none."""
    marks = {one.mark if isinstance(one, Marked) else None for one in alternatives(value)}
    return marks.pop() if len(marks) == 1 else UNKNOWN
