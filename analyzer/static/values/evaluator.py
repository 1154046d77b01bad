"""What may a value ask of the evaluator that walks the program?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.names import ClassInfo, FunctionInfo, Names
    from analyzer.static.state import Content, Results, State
    from analyzer.static.stated import Stated
    from analyzer.static.values.callables import Closure, Function
    from analyzer.static.values.constants import Const
    from analyzer.static.values.futures import Awaitable, Future, Group
    from analyzer.static.values.objects import ModuleValue, ObjectRef, SharedObject
    from analyzer.static.values.value import Method, Value

__all__ = ["HERE", "Escape", "Evaluator"]

HERE = "call it here, or in a function of this source tree"
"""What to do with a function or ``Communication`` object instead of handing it out."""

Escape: TypeAlias = tuple[str, str, str, str]
"""Why a value must not leave the code that is seen: code, what it is, the consequence and the remedy."""


class Evaluator(Protocol):
    """What values need: the rules of the language, and where operations and findings go."""

    @property
    def names(self) -> Names:
        """Meaning of names in the source tree."""

    @property
    def stated(self) -> Stated:
        """What annotations say."""

    @property
    def role(self) -> Literal["endpoint", "client"]:
        """What the ``Communication`` object can do."""

    # Findings and ways on.

    def release(
        self, values: Iterable[Value], state: State, node: cst.CSTNode, to: str | cst.CSTNode
    ) -> None:
        """Report values that leave the code that is seen."""

    def unknown_future(self, node: cst.CSTNode, state: State) -> Results:
        """Report a wait for a future that is not known; nothing is known of its answer."""

    def missing_attribute(self, node: cst.CSTNode, state: State) -> Results:
        """Note the ``AttributeError`` of reading an attribute that is not there; there is no way on."""

    def interruptible(self, state: State) -> None:
        """Note that a timeout may end the wait that has just begun."""

    def call_of(self, method: Method | None, node: cst.CSTNode, state: State) -> cst.Call | None:
        """Return the call an operation needs in the source; None, and a finding about ``method``, without."""

    # Variables and contents.

    def allocate(self) -> int:
        """Return a new place in the heap."""

    def new_list(self, values: Iterable[Value], state: State) -> tuple[State, Value]:
        """Return the state with a new list."""

    def empty(self, factory: str, state: State) -> tuple[State, Value]:
        """Return what a function of the library returns that makes an empty container."""

    def forget_contents(self, values: Iterable[Value], state: State) -> State:
        """Return the state after something that may change every container among these."""

    def items(self, value: Value, state: State) -> tuple[Value, ...] | None:
        """Return what iterating over a value yields; None if that is not known."""

    def as_pairs(self, value: Value, state: State) -> Content | None:
        """Return the items of a mapping, or of a sequence of pairs; None if they are not known."""

    def captures(self, closure: Closure, state: State) -> bool:
        """Return whether a nested function can reach communication or futures of the function around it."""

    def settled(self, values: Sequence[Value], state: State, depth: int) -> list[Value]:
        """Return values whose nested functions do not need the frames from ``depth`` on."""

    # Calls.

    def call_function(
        self, callee: Function, arguments: Arguments, node: cst.CSTNode, state: State, *, follow: bool = False
    ) -> Results:
        """Return what calling a function of the source tree does."""

    def call_method(
        self,
        method: FunctionInfo,
        owner: Value,
        given: Sequence[Value],
        node: cst.CSTNode,
        state: State,
        *,
        follow: bool = False,
    ) -> Results:
        """Return what calling a method of the source tree with these arguments does."""

    def inline(self, callee: Function, frame: dict[str, Value], node: cst.CSTNode, state: State) -> Results:
        """Return what running a function of the source tree with these variables does."""

    def external(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling something outside the source tree does."""

    def call_unknown(self, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling something does of which nothing is known."""

    def text_method(
        self, owner: Const, name: str, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what a method of a constant text does."""

    # Objects.

    def member(self, owner: ModuleValue, name: str) -> Value:
        """Return a name of a module of the source tree."""

    def class_attribute(
        self, info: ClassInfo, after: ClassInfo | None, name: str, receiver: Value | None
    ) -> Value:
        """Return an attribute that comes from a class or its bases."""

    def method_named(self, info: ClassInfo, names: Sequence[str]) -> FunctionInfo | None:
        """Return the first of these methods that a class has."""

    def property_of(self, info: ClassInfo, after: ClassInfo | None, name: str) -> FunctionInfo | None:
        """Return what reading an attribute runs; None if it is no property."""

    def is_cached(self, getter: FunctionInfo) -> bool:
        """Return whether a property keeps what it returned first."""

    def is_made_once(self, info: ClassInfo, name: str, value: Value) -> bool:
        """Return whether only the making of an object gives this attribute a value."""

    def is_named_tuple(self, info: ClassInfo) -> bool:
        """Return whether objects of a class are tuples of their fields."""

    def is_service(self, number: int) -> bool:
        """Return whether an object is the service or client itself, while it is set up."""

    def members(self, info: ClassInfo) -> tuple[Value, ...] | None:
        """Return the members of an enumeration; None for any other class."""

    def instantiate(self, info: ClassInfo, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling a class does."""

    def call_object(
        self, owner: ObjectRef | SharedObject, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what calling an object does."""

    def item_of_object(
        self, owner: ObjectRef | SharedObject, key: Value, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what reading an item of an object does."""

    # Operations.

    def communication(self, name: str, arguments: Arguments, node: cst.Call, state: State) -> Results:
        """Return what a method of the ``Communication`` object does."""

    def future_method(
        self, future: Future, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a future or task does."""

    def group_method(
        self, group: Group, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a group of tasks does."""

    def think(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        """Return what thinking does."""

    def awaited_future(self, future: Future, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for a future or task does."""

    def awaited_several(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for what a function of asyncio returned does."""
