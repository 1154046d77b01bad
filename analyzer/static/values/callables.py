"""What do functions, in all the forms a program handles them, do?"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from analyzer.static.values.constants import Const
from analyzer.static.values.containers import Container
from analyzer.static.values.escape import HERE
from analyzer.static.values.reading import READING_MODULES
from analyzer.static.values.value import (
    LOST,
    UNKNOWN,
    Atom,
    Code,
    Value,
    alternatives,
    hands_over_unknown,
)

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.names import FunctionInfo
    from analyzer.static.state import Results, State
    from analyzer.static.values.escape import Escape
    from analyzer.static.walk import Walk

__all__ = ["Closure", "External", "Function", "FunctionValue", "Partial"]

BUILT_IN = {"str": str, "int": int, "float": float, "bool": bool, "bytes": bytes}
"""Classes whose instances are constants."""


@dataclass(frozen=True, slots=True)
class External(Atom):
    """Something outside the source tree, by its dotted name (``mup.MS``, ``builtins.range``)."""

    name: str

    def has_instance(self, constant: object) -> bool | None:
        """Return whether a constant is an instance of it."""
        known = BUILT_IN.get(self.name.removeprefix("builtins."))
        return None if known is None else isinstance(constant, known)

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict: a built-in class, which may have several names."""
        module, _, name = self.name.rpartition(".")
        kind = getattr(builtins, name, None) if module == "builtins" else None
        return External(f"builtins.{kind.__name__}") if isinstance(kind, type) else None

    @property
    def class_name(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return run.library.external(self.name, arguments, node, state)

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        return External(f"{self.name}.{name}")

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it may change what is known about some object."""
        known = self.name.split(".", maxsplit=1)[0] in READING_MODULES
        return not known and hands_over_unknown(arguments)


@dataclass(frozen=True, slots=True)
class _Callable(Code):
    """Family of what is a function to those who call it."""

    always_true: ClassVar[bool] = True
    to_be_done: ClassVar[bool] = True

    def runs_source(self) -> bool:
        """Return whether calling it runs code of the source tree."""
        return True


@dataclass(frozen=True, slots=True)
class FunctionValue(_Callable):
    """A function or method of the source tree, possibly bound to its first argument."""

    of_class: ClassVar[bool] = True

    info: FunctionInfo
    bound: Value | None = None

    @property
    def depth(self) -> int | None:
        """Which of the active frames its free names are looked up in: it has none."""
        return None

    @property
    def captured(self) -> tuple[tuple[str, Value], ...]:
        """What free names are worth: only methods of a class inside a function have some."""
        return () if self.info.owner is None else tuple(self.info.owner.captured.items())

    @property
    def leading(self) -> tuple[Value, ...]:
        """The arguments it gets before those of the call."""
        return self.parts()

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return () if self.bound is None else (self.bound,)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return self if self.bound is None else FunctionValue(self.info, change(self.bound))

    def same(self, other: Value) -> bool | None:
        """Return whether it is certainly the same as another: plain functions are made once."""
        if isinstance(other, FunctionValue) and self.bound is None and other.bound is None:
            return self.info is other.info
        return Code.same(self, other)

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute: its name, unless some function of the source is given another."""
        if name == "__name__" and name not in run.names.attributes_assigned():
            return Const.of(self.info.qualname.rsplit(".", 1)[-1])
        return Code.attribute(self, name, node, state, run)

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return run.functions.call_function(self, arguments, node, state)

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it, if that is not walked, may change what is known about some object."""
        held = any(state.holds_tracked(value) for value in (*arguments, *self.leading))
        return not held and hands_over_unknown(arguments)

    def is_communication(self) -> bool:
        """Return whether it gives away the ``Communication`` object."""
        return self.bound is not None and self.bound.is_communication()


def _kept(value: Value, state: State, seen: frozenset[int], run: Walk) -> Value:
    """Return a variable of a function that has ended, for those requests that call what is left of it.

    All of them share what it holds: nothing is known of a list or dict, which any of them may change.
    """
    frozen = value.frozen(state, seen, run)
    if value.place is not None and isinstance(frozen, Container):
        return LOST if state.holds_tracked(value) else UNKNOWN
    return frozen


@dataclass(frozen=True, slots=True)
class Closure(_Callable):
    """A nested function or lambda.

    Attributes:
        info: The function.
        depth: Which of the active frames its free names are looked up in; None once that function has ended.
        captured: What the names were worth by then.
        reaches: Whether they reached communication or a future when it was made.
        defaults: Values of parameters that are not passed, as they were when it was defined.
    """

    info: FunctionInfo
    depth: int | None
    captured: tuple[tuple[str, Value], ...] = ()
    reaches: bool = False
    defaults: tuple[tuple[str, Value], ...] = ()

    @property
    def leading(self) -> tuple[Value, ...]:
        """The arguments it gets before those of the call."""
        return ()

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return tuple(one for _, one in (*self.captured, *self.defaults))

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        captured = tuple((name, change(one)) for name, one in self.captured)
        return replace(self, captured=captured, defaults=tuple((n, change(one)) for n, one in self.defaults))

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return self.reaches or any(one.tracked() for one in self.parts())

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap and no frames."""
        (kept,) = run.variables.without_frames([self], state, depth=0)
        # One that can call itself is not followed.
        return kept.map(lambda part: _kept(part, state, seen, run))

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return run.functions.call_function(self, arguments, node, state)

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it, if that is not walked, may change what is known about some object."""
        return not any(state.holds_tracked(value) for value in arguments)

    def communicates(self, state: State, run: Walk) -> bool:
        """Return whether a function that gets it can communicate."""
        return run.variables.captures(self, state)

    def escape(self, state: State, run: Walk) -> Escape | None:
        """Return why it must not leave."""
        found = ("MUP041", "a function that communicates", "", HERE)
        return found if run.variables.captures(self, state) else None


Function = FunctionValue | Closure
"""What runs code of the source tree."""


@dataclass(frozen=True, slots=True)
class Partial(_Callable):
    """A callable with its first arguments: ``functools.partial``, or a wrapped method of an object.

    Attributes:
        function: What is called.
        values: Arguments before those of the call.
        keywords: Arguments with keyword, which those of the call replace.
        unbound: The first argument of the call comes before the others: a ``functools.partialmethod``.
    """

    of_class: ClassVar[bool] = True

    function: Value
    values: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...] = ()
    unbound: bool = False

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.function, *self.values, *(one for _, one in self.keywords))

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        keywords = tuple((name, change(one)) for name, one in self.keywords)
        values = tuple(change(one) for one in self.values)
        return Partial(change(self.function), values, keywords, self.unbound)

    def runs_source(self) -> bool:
        """Return whether calling it runs code of the source tree."""
        return self.function.runs_source()

    def of_object(self, receiver: Value) -> Partial:
        """Return what an attribute of a class is as one of an object: a ``partialmethod`` gets the object."""
        return Partial(self.function, (receiver, *self.values), self.keywords) if self.unbound else self

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        if self.unbound and arguments.placed():
            rest = replace(arguments, nodes=arguments.nodes[1:], values=arguments.values[1:])
            return self.of_object(arguments.placed()[0]).call(rest, node, state, run)
        given = arguments.behind(self.values, self.keywords)
        return [r for one in alternatives(self.function) for r in one.call(given, node, state, run)]
