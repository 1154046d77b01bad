"""Interface of a library function's semantics: what it gets, and how it tells its effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from analyzer.static.arguments import Arguments
from analyzer.static.state import Contents, Results, State
from analyzer.static.values import DictRef, Value

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.walk import Walk

__all__ = ["Known", "LibraryCall"]


@dataclass(frozen=True)
class LibraryCall:
    """A call of a function of a library, without ``*`` and ``**``.

    Attributes:
        walk: The walk it is met in.
        given: Arguments without keyword.
        keywords: Arguments with keyword.
        node: The code that calls it.
        state: The state in which it is called.
    """

    walk: Walk
    given: Sequence[Value]
    keywords: dict[str, Value]
    node: cst.CSTNode
    state: State

    def items(self, value: Value) -> tuple[Value, ...] | None:
        """Return what iterating over a value yields; None if that is not known."""
        return value.items(self.state, self.walk)

    def items_of_each(self) -> list[tuple[Value, ...]] | None:
        """Return what iterating over each argument yields; None without one, or if one is not known."""
        found = [self.items(value) for value in self.given]
        known = [items for items in found if items is not None]
        return known if known and len(known) == len(found) else None

    def result(self, value: Value) -> Results:
        """Return a value, and nothing else has changed."""
        return [(self.state, value)]

    def new_list(self, items: Iterable[Value]) -> Results:
        """Return a new list."""
        return [self.walk.expressions.new_list(items, self.state)]

    def new_dict(self, content: Contents) -> Results:
        """Return a new dict."""
        return self.stored(content, DictRef)

    def stored(self, content: Contents, made: Callable[[int], Value]) -> Results:
        """Return something new with these contents, made of their place."""
        number = self.walk.allocate()
        return [(self.state.store(number, content), made(number))]

    def made(self, keywords: dict[str, Value]) -> Arguments:
        """Return arguments with these keywords only."""
        return Arguments((), ()).behind((), list(keywords.items()))


Known: TypeAlias = Callable[[LibraryCall], Results | None]
"""Returns what a call does; None if it is not known."""
