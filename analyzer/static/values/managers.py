"""What do the context managers of ``contextlib`` do that decide how a ``with`` block ends?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from analyzer.static.values.value import LOST, UNKNOWN, Atom, Value
from mup.events.sites import Site

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.state import Results, State
    from analyzer.static.walk import Walk

__all__ = ["ExitStack", "Semaphore", "Suppressing"]


@dataclass(frozen=True, slots=True)
class Suppressing(Atom):
    """``contextlib.suppress(...)``, or what may swallow exceptions of which nothing is known.

    Attributes:
        kinds: The classes of the exceptions; UNKNOWN may be any.
    """

    never_none: ClassVar[bool] = True

    kinds: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Semaphore(Atom):
    """A semaphore or lock.

    Attributes:
        site: Where it is made.
        permits: How many may hold it at once.
        name: The attribute or constant that has it, of one that all requests of a replica share; "" of one
            of an event loop that the execution has made.
    """

    never_none: ClassVar[bool] = True

    site: Site
    permits: int
    name: str = ""

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute; how long one is held that is taken without a block is not followed."""
        if self.name and name == "acquire":
            run.mistakes.unknown_limit(node)
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class ExitStack(Atom):
    """A ``contextlib.ExitStack``; what it leaves at the end is in the heap, the last first to be left."""

    never_none: ClassVar[bool] = True
    has_methods: ClassVar[bool] = True

    number: int

    @property
    def place(self) -> int | None:
        """Where its contents are in the heap."""
        return self.number

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return LOST if state.holds_tracked(self) else UNKNOWN

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        return run.managers.stack_method(self, name, arguments, node, state)
