"""Communication, futures, coroutines and generators as values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from analyzer.static.values.value import LOST, UNKNOWN, Atom, Code, Method, Opaque, Value, Whole

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.control import Block
    from analyzer.static.names import FunctionInfo
    from analyzer.static.state import Failure, FlowKind, Results, State
    from analyzer.static.values.callables import Closure, FunctionValue
    from analyzer.static.values.escape import Escape
    from analyzer.static.walk import Context, Walk

__all__ = ["COMM", "RACED", "Awaitable", "Comm", "Coroutine", "Future", "Generator", "Group", "Leaving"]
__all__ += ["Raced", "Waiting"]

REQUEST_DATA = {"params", "files", "headers", "cookies", "body", "method", "request_id", "traceparent"}


@dataclass(frozen=True, slots=True)
class _Operating(Whole):
    """Family of what operations are made with; it is not made of others, and must not get out of sight."""

    never_none: ClassVar[bool] = True
    has_methods: ClassVar[bool] = True
    always_true: ClassVar[bool] = True
    reads_safely: ClassVar[bool] = True

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return True

    def method_may_change(self, arguments: Iterable[Value]) -> bool:
        """Return whether calling one of its methods may change what is known about some object."""
        return False


@dataclass(frozen=True, slots=True)
class Comm(_Operating):
    """The ``Communication`` of the running request or scenario."""

    def attribute(self, name: str, node: cst.CSTNode, state: State, run: Walk) -> Value | None:
        """Return an attribute: an operation, or data of the request."""
        return UNKNOWN if name in REQUEST_DATA else Method(self, name)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what an operation does."""
        call = run.calls.call_of(Method(self, name), node, state)
        if call is None:
            return [(state, UNKNOWN)]
        return run.operations.communication(name, arguments, call, state)

    def is_communication(self) -> bool:
        """Return whether it gives away the ``Communication`` object."""
        return True

    def escape(self, state: State, run: Walk) -> Escape | None:
        """Return why it must not leave."""
        return None  # what holds it says so


COMM = Comm()


@dataclass(frozen=True, slots=True)
class Future(_Operating):
    """The future of the ``index``-th operation of the path: of a call or query, or a concurrent task."""

    index: int

    def futures(self) -> Iterator[int]:
        """Yield its index."""
        yield self.index

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict."""
        return self

    def with_futures(self, change: Callable[[Future], Value]) -> Value:
        """Return what it is replaced with."""
        return change(self)

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does: ``get`` waits for the answer."""
        call = run.calls.call_of(Method(self, name), node, state)
        if call is None:
            return [(state, UNKNOWN)]
        return run.asyncio.future_method(self, name, arguments, call, state)

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does: it waits for the answer."""
        return run.waiting.awaited_future(self, node, state)


@dataclass(frozen=True, slots=True)
class Raced(_Operating):
    """One of several tasks the first of which has ended, or a set of such: it may have ended or not."""

    always_true: ClassVar[bool] = False  # a set may be empty

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does: of a set, taking one of it."""
        run.calls.release(arguments.values, state, node, f"{name!r}")
        if name in ("pop", "copy", "union", "difference", "intersection"):
            return [(state, self)]
        if name == "result":
            run.waiting.ended(state)
        return [(state, UNKNOWN)]

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        return [(state, self)]

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does: that depends on which was the first."""
        return run.races.waited_again(node, state)


RACED = Raced()


@dataclass(frozen=True, slots=True)
class Group(Atom):
    """An ``asyncio.TaskGroup`` whose tasks are in the heap."""

    never_none: ClassVar[bool] = True
    has_methods: ClassVar[bool] = True
    used_up: ClassVar[bool] = True

    number: int

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does: it starts tasks."""
        call = run.calls.call_of(None, node, state)
        if call is None:
            return Opaque.method(self, name, arguments, node, state, run)
        return run.asyncio.group_method(self, name, arguments, call, state)


@dataclass(frozen=True, slots=True)
class Awaitable(Opaque):
    """What a function of asyncio returned that waits for other things when it is awaited.

    Attributes:
        kind: ``gather``, ``collect`` (a gather whose errors are results), ``wait``, ``first`` (a wait for
            one of several), ``late`` (one of these two, which a timeout may end), ``limited`` (what raises an
            error when its time is over), ``as_completed`` (gone through by a loop) or ``completed`` (the next
            of several).
        values: What it waits for; of ``completed`` this one first, then all.
        made_by: The call that made it.
    """

    never_none: ClassVar[bool] = True
    has_methods: ClassVar[bool] = True
    used_up: ClassVar[bool] = True

    kind: Literal["gather", "collect", "wait", "first", "late", "limited", "as_completed", "completed"]
    values: tuple[Value, ...]
    made_by: cst.Call = field(repr=False)

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return self.values

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return replace(self, values=tuple(change(one) for one in self.values))

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return self

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        if run.calls.call_of(None, node, state) is None:
            return Opaque.method(self, name, arguments, node, state, run)
        return [(state, UNKNOWN)]

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does."""
        return run.waiting.awaited_several(self, node, state)


@dataclass(frozen=True, slots=True)
class _Suspended(Code):
    """Family of code that was called and runs when it is awaited or gone through."""

    to_be_done: ClassVar[bool] = True
    used_up: ClassVar[bool] = True

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return self


@dataclass(frozen=True, slots=True)
class Coroutine(_Suspended):
    """An ``async def`` that was called and runs when it is awaited.

    Attributes:
        function: What runs.
        arguments: By the names of its parameters.
        made_by: The call that made it: those of different calls differ.
    """

    function: FunctionValue | Closure
    arguments: tuple[tuple[str, Value], ...]
    made_by: cst.CSTNode = field(repr=False)

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.function, *(one for _, one in self.arguments))

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced: its function must stay one."""
        function = change(self.function)
        if type(function) is not type(self.function):
            return LOST
        arguments = tuple((name, change(one)) for name, one in self.arguments)
        return replace(self, function=function, arguments=arguments)

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return True

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does: it runs."""
        return run.functions.inline(self.function, dict(self.arguments), node, state)

    def escape(self, state: State, run: Walk) -> Escape | None:
        """Return why it must not leave."""
        remedy = "await it here, or with asyncio.gather or a task"
        return "MUP030", "a coroutine that communicates", ": not analysed yet", remedy


@dataclass(frozen=True, slots=True)
class Generator(_Suspended):
    """A generator: its code runs when something takes items from it.

    Attributes:
        context: Where its code is.
        body: Its control flow.
        arguments: Its variables before it begins.
        number: Says in the heap whether it has begun.
        reaches: Whether its code can reach communication or futures.
    """

    context: Context
    body: Block
    arguments: tuple[tuple[str, Value], ...]
    number: int
    reaches: bool

    def __repr__(self) -> str:
        return f"Generator({self.number})"

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return tuple(one for _, one in self.arguments)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return replace(self, arguments=tuple((name, change(one)) for name, one in self.arguments))

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap: what of it has been taken is not known there."""
        return LOST if self.tracked() else UNKNOWN

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return self.reaches or any(one.tracked() for _, one in self.arguments)

    def escape(self, state: State, run: Walk) -> Escape | None:
        """Return why it must not leave."""
        remedy = "make a list of it here"
        found = ("MUP030", "a generator that communicates", ": not analysed yet", remedy)
        return found if self.reaches else None


@dataclass(frozen=True, slots=True)
class Waiting(Code):
    """A generator that has yielded, as a context manager does: what is left of it runs when it is left.

    Attributes:
        function: Its code.
        closure: Which of the active frames its free names are looked up in, or None.
        captured: Those names and their values if that function has ended.
        point: Which of its ``yield`` it is at, as a number.
        frame: Its variables.
    """

    to_be_done: ClassVar[bool] = True

    function: FunctionInfo
    closure: int | None
    captured: tuple[tuple[str, Value], ...]
    point: Value
    frame: tuple[tuple[str, Value], ...]

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return tuple(one for _, one in (*self.captured, *self.frame))

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        captured, frame = (
            tuple((name, change(one)) for name, one in rows) for rows in (self.captured, self.frame)
        )
        return replace(self, captured=captured, frame=frame)

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return LOST

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return True


@dataclass(frozen=True, slots=True)
class Leaving(Opaque):
    """How the consumer of a generator goes on once the generator is closed; no value of the source.

    Attributes:
        kind: As of a flow.
        value: As of a flow.
        line: As of a flow.
        failure: What failed, if that is why; else "".
        done: How many operations there were then.
    """

    kind: FlowKind
    value: Value = UNKNOWN
    line: int = 0
    failure: Failure | Literal[""] = ""
    done: int = 0

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.value,)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return replace(self, value=change(self.value))

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return True
