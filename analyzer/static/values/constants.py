"""Constants and members of enumerations as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from analyzer.static.values.value import UNKNOWN, Atom, Method, Value, alternatives, join

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.state import Heap, Results, State
    from analyzer.static.walk import Walk

__all__ = ["NONE", "Const", "Setting", "answer", "index_among", "negated"]

MAX_CHARACTERS = 1000
"""A longer text is not gone through character by character."""


@dataclass(frozen=True, slots=True)
class Const(Atom):
    """A str, bytes, int, float, bool or None that is the same in every execution."""

    value: Any
    kind: type

    @staticmethod
    def of(value: object) -> Const:
        """Return the constant; its type takes part in equality, so that 1 is not True."""
        return Const(value, type(value))

    def python(self) -> tuple[bool, Any]:
        """Return what Python has."""
        return True, self.value

    def printed(self) -> tuple[bool, Any]:
        """Return what formatting it gives."""
        return True, self.value

    @property
    def plain(self) -> bool:
        """Whether nothing in it is to be kept track of."""
        return True

    @property
    def text(self) -> str | None:
        """The text it is; None of another constant."""
        return self.value if self.kind is str else None

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return bool(self.value)

    def same(self, other: Value) -> bool | None:
        """Return whether it is certainly the same as another: None is told from what never is."""
        return False if self.value is None and other.never_none else None

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict: 1, 1.0 and True are the same one."""
        return Const(self.value, float) if isinstance(self.value, int | float) else self

    def instance_of(self, kind: Value, run: Walk) -> bool | None:
        """Return what ``isinstance`` says."""
        return kind.has_instance(self.value)

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute: a method of a text; None has none."""
        if self.value is None:
            return None
        return UNKNOWN if self.text is None else Method(self, name)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        return run.library.text_method(self, name, arguments, node, state)

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does: a character of a text."""
        return [(state, join(self._character(place) for place in alternatives(key)))]

    def _character(self, place: Value) -> Value:
        index = None if self.text is None else index_among(place, len(self.text))
        return UNKNOWN if index is None else Const.of(self.value[index])

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        if self.text is None or len(self.text) > MAX_CHARACTERS:
            return None
        return tuple(map(Const.of, self.text))

    def method_may_change(self, arguments: Iterable[Value]) -> bool:
        """Return whether calling one of its methods may change what is known about some object."""
        return False


NONE = Const.of(None)


def answer(holds: bool | None) -> Value:
    """Return the answer of a question as a value: unknown for None."""
    return UNKNOWN if holds is None else Const.of(holds)


def negated(holds: bool | None) -> Value:
    """Return the opposite answer as a value."""
    return answer(None if holds is None else not holds)


def index_among(key: Value, size: int) -> int | None:
    """Return the place of ``key`` among so many items, counted from the first; None if it has none there."""
    _, index = key.python()
    return index % size if isinstance(index, int) and -size <= index < size else None


@dataclass(frozen=True, slots=True)
class Setting(Atom):
    """A variable of the environment, which is its default unless a deployment says otherwise.

    Only what an operation addresses is taken to be the default, and a finding says so. No branch is left out.
    """

    never_none: ClassVar[bool] = True

    variable: str
    default: Const

    def as_text(self) -> Value:
        """Return what it is where a text is expected."""
        return self.default

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute: a method of a text."""
        return Method(self, name)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does: a text that is made of it is such a variable, too."""
        return [
            (after, UNKNOWN if made.text is None else Setting(self.variable, Const.of(made.text)))
            for after, made in run.library.text_method(self.default, name, arguments, node, state)
        ]

    def method_may_change(self, arguments: Iterable[Value]) -> bool:
        """Return whether calling one of its methods may change what is known about some object."""
        return False
