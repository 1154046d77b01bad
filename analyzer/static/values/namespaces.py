"""What does the ``__dict__`` of an object do? What is done to it is done to the attributes of the object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyzer.static.values.constants import NONE
from analyzer.static.values.containers import Container
from analyzer.static.values.value import LOST, UNKNOWN, Value, alternatives, join, of_kind

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.state import Results, State
    from analyzer.static.values.objects import ObjectRef
    from analyzer.static.walk import Walk

__all__ = ["Namespace"]


@dataclass(frozen=True, slots=True)
class Namespace(Container):
    """The ``__dict__`` of an object of a class of the source tree.

    Which attributes it has is not said: some of those that are followed may still be the class's.
    """

    owner: ObjectRef

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.owner,)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced: it is about one object."""
        owner = change(self.owner)
        return self if owner == self.owner else LOST if owner.tracked() else UNKNOWN

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return LOST if state.holds_tracked(self) else UNKNOWN

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        names, known = texts_of(key), self.owner.attributes(state.heap)
        if names is None or not all(name in known for name in names):
            return [(state, state.content_of([self]))]
        return [(state, join(known[name] for name in names))]

    def with_item(self, key: Value, value: Value, state: State) -> State | None:
        """Return the state after ``value[key] = ...``."""
        names = texts_of(key)
        if names is None or len(names) != 1:
            return self.owner.with_any_attribute(value, state)
        return self.owner.with_attribute(names[0], value, state)

    def without_item(self, key: Value, state: State) -> State | None:
        """Return the state after ``del value[key]``."""
        return self.with_item(key, UNKNOWN, state)

    def extended(self, operator: str, more: Value, state: State, run: Walk) -> State | None:
        """Return the state after ``value |= more``."""
        return self._updated([more], (), state, run)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        given = arguments.positional()
        if name == "update":
            spread = [v for a, v in arguments.pairs if a.star]
            named = tuple((key, value) for key, value in arguments.keywords())
            return [(self._updated([*given, *spread], named, state, run), NONE)]
        if name == "get" and given:
            default = given[1] if len(given) > 1 else NONE
            return [(after, join([value, default])) for after, value in self.item(given[0], node, state, run)]
        if name in ("copy", "items", "keys", "values"):
            return [(state, state.content_of([self]))]
        if name == "setdefault" and given:
            value = given[1] if len(given) > 1 else NONE
            ((_, before),) = self.item(given[0], node, state, run)
            held = join([before, value])
            return [(self.with_item(given[0], held, state) or state, held)]
        content = state.content_of([self, *arguments.values])
        return [(self.owner.with_any_attribute(state.content_of(arguments.values), state), content)]

    def _updated(
        self, more: list[Value], named: tuple[tuple[str, Value], ...], state: State, run: Walk
    ) -> State:
        """Return the state after attributes were set to what some mappings hold."""
        for mapping in more:
            pairs = run.library.as_pairs(mapping, state)
            if pairs is None:
                state = self.owner.with_any_attribute(state.content_of([mapping]), state)
                continue
            for key, value in pairs:
                state = self.with_item(key, value, state) or state
        for name, value in named:
            state = self.owner.with_attribute(name, value, state)
        return state


def texts_of(name: Value) -> list[str] | None:
    """Return the texts a value may be; None if it may be anything else."""
    known = [one.python()[1] for one in alternatives(name)]
    texts = of_kind(known, str)
    return texts if len(texts) == len(known) else None
