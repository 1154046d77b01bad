"""Interface of every kind of value, and the value that may be any of several.

A *kind* is a class. It answers for itself what it is made of, whether it counts as true, and what calling it,
reading its attributes or going through it does. A kind without an answer cannot be made: the answers are
abstract here, and ``tests/analyzer/static/test_kinds.py`` asks every kind there is.

The values are a lattice: ``join`` is associative, commutative and idempotent, and never loses a future.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from analyzer.static.values.reading import READING_METHODS, called_name

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.names import ClassInfo, FunctionInfo
    from analyzer.static.state import Content, Heap, Results, State
    from analyzer.static.values.escape import Escape
    from analyzer.static.values.futures import Future
    from analyzer.static.walk import Walk

__all__ = [
    "LOST",
    "UNKNOWN",
    "Atom",
    "Code",
    "Lost",
    "Method",
    "OneOf",
    "Opaque",
    "Unknown",
    "Value",
    "Whole",
]
__all__ += ["agreed", "alternatives", "any_of", "join", "mapped", "of_kind"]

T = TypeVar("T")

MAX_ALTERNATIVES = 16
"""More possible values than this are as good as unknown."""


@dataclass(frozen=True, slots=True)
class Value:
    """Base of all kinds of values; what is not answered here, every kind answers.

    All values are immutable and hashable, so that two ways through a program that end up the same can be
    recognised. Contents of lists, dicts and objects are in the heap of a state, by ``place``.
    """

    never_none: ClassVar[bool] = False
    """Whether it is certainly not None."""
    reads_safely: ClassVar[bool] = False
    """Whether reading an attribute of it never raises."""
    always_true: ClassVar[bool] = False
    """Whether it counts as true in every execution."""
    has_methods: ClassVar[bool] = False
    """Whether its attributes are methods of its own."""
    is_mapping: ClassVar[bool] = False
    """Whether it is a dict, or one that never changes."""
    to_be_done: ClassVar[bool] = False
    """Whether it is code of the source tree that has not run: in a list, it is there to be run."""
    used_up: ClassVar[bool] = False
    """Whether waiting for it, or going through it, leaves nothing."""

    of_class: ClassVar[bool] = False
    """Whether, as an attribute, it is the class's: a method, which attributes of the object leave alone."""
    is_unknown: ClassVar[bool] = False
    """Whether nothing is known of it but perhaps its truth."""

    @property
    def atomic(self) -> bool:
        """Whether it refers to nothing else that may end or change, heap contents aside."""
        return False

    @property
    def plain(self) -> bool:
        """Whether it is a constant, unknown or a tuple of these: nothing in it is to be kept track of."""
        return False

    # What it is made of.

    @abstractmethod
    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of (heap contents aside)."""

    @abstractmethod
    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""

    @property
    def place(self) -> int | None:
        """Where its contents are in the heap; None if it has none there."""
        return None

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation (heap contents aside)."""
        return any(part.tracked() for part in self.parts())

    def holds(self) -> bool:
        """Return whether it may hold a future: itself, in a part, or in the heap."""
        return self.place is not None or self.tracked() or any(part.holds() for part in self.parts())

    def futures(self) -> Iterator[int]:
        """Yield the index of every future in it (heap contents aside)."""
        for part in self.parts():
            yield from part.futures()

    def with_futures(self, change: Callable[[Future], Value]) -> Value:
        """Return the value with every future in it replaced; there is at least one."""
        return self.map(lambda part: mapped(part, change))

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap; ``seen`` are the containers around it."""
        return self.map(lambda part: part.frozen(state, seen, run))

    # What it is worth.

    def python(self) -> tuple[bool, Any]:
        """Return (True, what Python has) of a constant or what is made of constants, else (False, None)."""
        return False, None

    def printed(self) -> tuple[bool, Any]:
        """Return, likewise, what formatting it gives."""
        return False, None

    @property
    def text(self) -> str | None:
        """The text it is, if it is a constant; None of anything else."""
        return None

    @abstractmethod
    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true; None if that depends on the execution."""

    def same(self, other: Value) -> bool | None:
        """Return whether it is certainly the same as another one, or certainly not; None = perhaps."""
        return False if self.never_none and other.python() == (True, None) else None

    def instance_of(self, kind: Value, run: Walk) -> bool | None:
        """Return what ``isinstance`` says; None = perhaps."""
        return None

    def as_text(self) -> Value:
        """Return what it is where a text is expected."""
        return self

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict; None if what it equals is not known."""
        return None

    # What it is as a class.

    @property
    def class_name(self) -> str:
        """The last part of the name of a class; "" of what is none."""
        return ""

    def classes(self) -> tuple[Value, ...]:
        """Return the classes it stands for where one is expected: those in a tuple, or else itself."""
        return (self,)

    def has_instance(self, constant: object) -> bool | None:
        """Return whether a constant is an instance of it, if it is a class; None = perhaps."""
        return None

    def has_object(self, info: ClassInfo, run: Walk) -> bool | None:
        """Return whether objects of a class of the source tree are instances of it; None = perhaps."""
        return None

    # What it does.

    def own_method(self, names: Sequence[str], run: Walk) -> FunctionInfo | None:
        """Return the first of these methods that is code of its class, if it is known which object it is."""
        return None

    def runs_source(self) -> bool:
        """Return whether calling it runs code of the source tree, which gives every operation its place."""
        return False

    @abstractmethod
    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""

    @abstractmethod
    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute if reading it runs no code; None if it raises."""

    @abstractmethod
    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does."""

    @abstractmethod
    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does that are no code of the source tree."""

    @abstractmethod
    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading ``value[key]`` does."""

    @abstractmethod
    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields; None if that is not known."""

    def pairs(self, heap: Heap) -> Content | None:
        """Return the items of a container with their keys (UNKNOWN without); None if they are not known."""
        return None

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does."""
        run.waiting.interruptible(state)
        return [(state, self)]

    # What changes it.

    def with_item(self, key: Value, value: Value, state: State) -> State | None:
        """Return the state after ``value[key] = ...``; None if it is no container that is followed."""
        return None

    def without_item(self, key: Value, state: State) -> State | None:
        """Return the state after ``del value[key]``; None if it is no container that is followed."""
        return None

    def extended(self, operator: str, more: Value, state: State, run: Walk) -> State | None:
        """Return the state after ``value += more`` has changed it; None if that makes a new value."""
        return None

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it, if that is not walked, may change what is known about some object."""
        return hands_over_unknown(arguments)

    def method_may_change(self, arguments: Iterable[Value]) -> bool:
        """Return whether calling one of its methods may change what is known about some object."""
        return hands_over_unknown(arguments)

    # What may reach communication.

    def communicates(self, state: State, run: Walk) -> bool:
        """Return whether a function that gets it can communicate."""
        return state.holds_tracked(self)

    def is_communication(self) -> bool:
        """Return whether it gives away the ``Communication`` object."""
        return False

    def escape(self, state: State, run: Walk) -> Escape | None:
        """Return why it must not leave the code the analyzer sees; None if it may."""
        if not state.holds_tracked(self):
            return None
        return "MUP041", "a future", ", where it is not seen what waits for it", "wait for it here with get()"


@dataclass(frozen=True, slots=True)
class Opaque(Value):
    """Family of the kinds with nothing known about what they do; a kind overrides what is."""

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return True if self.always_true else None

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does: whatever it is handed is out of sight."""
        return run.calls.call_unknown(arguments, node, state)

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        return Method(self, name) if self.has_methods else UNKNOWN

    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does."""
        value = self.attribute(name, node, state, run)
        missing = run.expressions.missing
        return missing("AttributeError", node, state) if value is None else [(state, value)]

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does: it may return what it holds."""
        run.calls.release(arguments.values, state, node, f"{name!r}")
        return [(state, LOST if self.tracked() else UNKNOWN)]

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        return [(state, state.content_of([self]))]

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        return None


@dataclass(frozen=True, slots=True)
class Whole(Opaque):
    """Family of the kinds that are not made of others."""

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return ()

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return self


@dataclass(frozen=True, slots=True)
class Atom(Whole):
    """Family of the kinds that are not made of others and are nothing to keep track of."""

    @property
    def atomic(self) -> bool:
        """Whether it refers to nothing else that may end or change, heap contents aside."""
        return True

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return False

    def futures(self) -> Iterator[int]:
        """Yield the index of every future in it."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Unknown(Atom):
    """Anything that is neither communication nor a future.

    Attributes:
        known_truth: What a condition has already told about its truth, None if nothing has.
    """

    is_unknown: ClassVar[bool] = True

    known_truth: bool | None = None

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return self.known_truth

    @property
    def plain(self) -> bool:
        """Whether nothing in it is to be kept track of."""
        return True

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it may change what is known about some object: its name may tell."""
        return called_name(node) not in READING_METHODS


@dataclass(frozen=True, slots=True)
class Lost(Whole):
    """May hold a future the analyzer has lost track of."""

    has_methods: ClassVar[bool] = True

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return True

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return run.calls.unknown_future(node, state)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        return run.calls.unknown_future(node, state)

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does."""
        return run.calls.unknown_future(node, state)


@dataclass(frozen=True, slots=True)
class Code(Opaque):
    """Family of code as a value: it is not seen what is done with its attributes."""

    never_none: ClassVar[bool] = True

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute."""
        run.calls.release([self], state, node, f"attribute {name!r}")
        return UNKNOWN


@dataclass(frozen=True, slots=True)
class Method(Code):
    """A method of one of the other values, not called yet: ``comm.call``, ``future.get``, ``list.append``."""

    owner: Value
    name: str

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.owner,)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return Method(change(self.owner), self.name)

    def with_futures(self, change: Callable[[Future], Value]) -> Value:
        """Return the value with every future in it replaced; of an answer that is there nothing is known."""
        owner = mapped(self.owner, change)
        return Method(owner, self.name) if owner.tracked() else UNKNOWN

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap: a method of a container changes what is not seen any more."""
        return self if self.owner.place is None else UNKNOWN

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return self.owner.method(self.name, arguments, node, state, run)

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it may change what is known about some object: its owner may."""
        return self.owner.method_may_change(arguments)

    def is_communication(self) -> bool:
        """Return whether it gives away the ``Communication`` object."""
        return self.owner.is_communication()


UNKNOWN = Unknown()
LOST = Lost()


@dataclass(frozen=True, slots=True)
class OneOf(Value):
    """One of several values, depending on local decisions: each answers for itself."""

    values: frozenset[Value]

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return tuple(self.values)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return join(map(change, self.values))

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return agreed(one.truth(heap) for one in self.values)

    def runs_source(self) -> bool:
        """Return whether calling it runs code of the source tree."""
        return all(one.runs_source() for one in self.values)

    def call(self, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling it does."""
        return [r for one in alternatives(self) for r in one.call(arguments, node, state, run)]

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute; what raises does not decide."""
        found = [one.attribute(name, node, state, run) for one in alternatives(self)]
        known = [value for value in found if value is not None]
        return join(known) if known else None

    def read(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an attribute does."""
        return [r for one in alternatives(self) for r in one.read(name, node, state, run)]

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        return [r for one in alternatives(self) for r in one.method(name, arguments, node, state, run)]

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        return [r for one in alternatives(self) for r in one.item(key, node, state, run)]

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields: who goes through it asks each."""
        return None

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does."""
        return [r for one in alternatives(self) for r in one.awaited(node, state, run)]

    def may_change(self, node: cst.Call, arguments: Iterable[Value], state: State) -> bool:
        """Return whether calling it may change what is known about some object."""
        return any(one.may_change(node, arguments, state) for one in self.values)


def agreed(answers: Iterable[T]) -> T | None:
    """Return what all answers are; None if they differ, or there is none."""
    different = set(answers)
    return different.pop() if len(different) == 1 else None


def any_of(answers: Collection[bool | None]) -> bool | None:
    """Return whether one of some answers is yes; None = perhaps."""
    return True if True in answers else None if None in answers else False


def of_kind(values: Iterable[object], *kinds: type[T]) -> list[T]:
    """Return those that are of one of some classes."""
    return [one for one in values if isinstance(one, kinds)]


def alternatives(value: Value) -> tuple[Value, ...]:
    """Return the values it may have, in a stable order."""
    if type(value) is OneOf:
        return tuple(sorted(value.values, key=repr))
    return (value,)


def mapped(value: Value, change: Callable[[Future], Value]) -> Value:
    """Return the value with every future in it (heap contents aside) replaced."""
    return value.with_futures(change) if any(True for _ in value.futures()) else value


def join(values: Iterable[Value]) -> Value:
    """Return the value that may be any of these; of none, the one that never is.

    What may hold a future and what does not are bounded apart: something unknown, or too much, stands for all
    that holds no future, and never for what does. It counts as true or false if all of these do. So the order
    in which values are joined decides nothing.
    """
    flat: set[Value] = set()
    for value in values:
        flat.update(value.values if type(value) is OneOf else (value,))
    if len(flat) == 1:
        return flat.pop()
    held = {value for value in flat if value.holds()}
    if LOST in held or len(held) > MAX_ALTERNATIVES:
        return LOST
    plain = flat - held
    if len(plain) > MAX_ALTERNATIVES or any(value.is_unknown for value in plain):
        plain = {Unknown(agreed(value.truth({}) for value in plain))}
    found = plain | held
    return found.pop() if len(found) == 1 else OneOf(frozenset(found))


def hands_over_unknown(values: Iterable[Value]) -> bool:
    """Return whether something unknown is among some arguments."""
    return any(one.is_unknown for value in values for one in alternatives(value))
