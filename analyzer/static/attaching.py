"""What happens to functions and classes while modules are imported: which become endpoints of what?

A function becomes an endpoint when ``EP(...)`` marks it and a service has it as an attribute. Both happen
while modules are imported, by any code whatever: decorators, factories, hooks of base classes, statements
behind the class. That code is walked like any other. What it assigns to attributes of the classes that are
watched is kept in the heap, by name, so that what depends on a condition is unknown instead of certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.control import lower
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import ClassInfo, FunctionInfo
from analyzer.static.source import Module
from analyzer.static.state import Contents, Heap, Results, State, forget, mapped_contents, united, values_in
from analyzer.static.syntax import keywords
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    DictRef,
    FunctionValue,
    Mark,
    Marked,
    ObjectRef,
    OneOf,
    Partial,
    Value,
    join,
    rows_of,
)
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Context, Part, TooManyPathsError, Walk, changed

__all__ = ["Attaching", "Made", "class_context", "code_in", "is_endpoint_mark"]

FIELDS = ("path", "name", "method")
"""Attributes of an ``EP``."""

NO_TEXT = Const.of("")


@dataclass(frozen=True, slots=True)
class Made:
    """A function that was marked while a module was imported.

    Attributes:
        functions: Its code, and that of what it wraps; empty if it is not known.
        once: It, if there is only one function of that code; None otherwise.
        mark: As what.
        module, node: Where.
    """

    functions: frozenset[FunctionInfo]
    once: FunctionInfo | None
    mark: Mark
    module: Module
    node: cst.CSTNode


class Attaching(Part):
    """Walks what runs while modules are imported.

    Attributes:
        active: Whether such code is being walked.
        made: The functions that were marked, in the order that happened.
        copied: Whether something has kept what an object held while it was filled: it lacks what came later.
        fillers: What the functions are called that put something into what is being filled.
    """

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self.active = False
        self.made: list[Made] = []
        self.copied = False
        self.fillers: frozenset[str] = frozenset()
        self._places: dict[ClassInfo, int] = {}
        self._heap: Heap = {}
        self._filling: list[Value] = []

    # Code that runs while a module is imported.

    @contextmanager
    def importing(self, context: Context) -> Iterator[None]:
        """Walk code that runs while a module is imported; what it reports is not about any request."""
        with changed(self, active=True), self.walk.unhurried(), self.walk.apart(context, Diagnostics()):
            yield

    def run(self, context: Context, code: Callable[[State], Results]) -> Value | None:
        """Walk code that runs while a module is imported.

        Args:
            context: Where it is.
            code: Walks it, from the state it is given.

        Returns:
            Its value, which needs no heap; None if it cannot be followed to its end.
        """
        try:
            with self.importing(context):
                results = code(State(({},), heap=self._heap))
                value = join(self.walk.lookups.freeze(v, s) for s, v in results) if results else None
                self._keep(state for state, _ in results)
        except (TooManyPathsError, RecursionError):
            return None
        return value

    def _keep(self, states: Iterable[State]) -> None:
        """Keep what classes have got; nothing communicates here, so the states are one."""
        states = list(states)
        if not states:
            return
        state = united(states)
        kept = {place: state.heap[place] for place in self._places.values() if place in state.heap}
        for place, content in kept.items():
            if rows_of(content) is not None:
                kept[place] = mapped_contents(content, lambda one: self.walk.lookups.freeze(one, state))
        self._heap = kept | self._contents(self._filling, state)

    def executed(self, statement: cst.CSTNode, state: State) -> Results:
        """Return what a statement of a module does."""
        small = isinstance(statement, cst.BaseSmallStatement)
        line = cst.SimpleStatementLine([statement]) if small else statement  # type: ignore[list-item]
        flows = self.walk.statements.block(lower(cst.IndentedBlock([line])), [state])  # type: ignore[list-item]
        return [(flow.state, NONE) for flow in flows if flow.kind == "next"]

    def subclassed(self, hook: FunctionInfo, info: ClassInfo, state: State) -> Results:
        """Return what ``__init_subclass__`` of a base does for a class."""
        named, callee = keywords(info.node.keywords), FunctionValue(hook, ClassValue(info))
        return [
            (after, NONE)
            for before, values in self.walk.expressions.evaluate_all(list(named.values()), state)
            for given in [Arguments((), ()).behind((), list(zip(named, values, strict=True)))]
            for after, _ in self.walk.functions.call_function(callee, given, info.node, before)
        ]

    def decorated(self, info: ClassInfo, decorator: cst.BaseExpression, state: State) -> Results:
        """Return what a decorator makes of a class."""
        return [
            result
            for after, wrapper in self.walk.expressions.evaluate(decorator, state)
            for result in wrapper.call(Arguments.of(ClassValue(info)), decorator, after, self.walk)
        ]

    # Containers that are filled.

    @contextmanager
    def filled(self, context: Context, value: cst.BaseExpression) -> Iterator[Value | None]:
        """Make a container, and keep what code puts into it that is run meanwhile.

        Args:
            context: Where it is.
            value: What makes it.

        Yields:
            The container; None if it is none that is followed.
        """
        marked = len(self.made)
        with self.importing(context):
            results = self.walk.expressions.evaluate(value, State(({},), heap=self._heap))
        made = results[0][1] if len(results) == 1 else None
        if made is None or made.place is None:
            yield None
            return
        outer, self.copied = self.copied, False
        self._filling.append(made)
        self._heap = {**self._heap, **self._contents([made], results[0][0])}
        try:
            yield made
        finally:
            self._filling.remove(made)
            self.copied = outer
            del self.made[marked:]  # what runs here runs once more where endpoints are looked for

    def start(self) -> State:
        """Return the state in which code of a module or class begins: with what is being filled."""
        return State(({},), heap=self._heap if self._filling else {})

    def is_filling(self, value: Value) -> bool:
        """Return whether a value is what is being filled, or part of it, or made of such."""
        return bool(self._filling) and (value.place in self._heap or any(map(self.is_filling, value.parts())))

    def unfrozen(self, value: Value, state: State) -> Value:
        """Return another name for what is being filled; the rest of it needs no heap."""
        if value.place in self._heap:
            return value
        if not self.is_filling(value):
            return self.walk.lookups.freeze(value, state)
        return value.map(lambda part: self.unfrozen(part, state))

    def content(self, container: Value) -> Value:
        """Return what a container holds by now that is being filled."""
        return self.walk.lookups.freeze(container, State(({},), heap=self._heap))

    def _contents(self, containers: Iterable[Value], state: State) -> dict[int, Contents]:
        """Return what is in containers, and in containers in them; all else as values that need no heap."""

        def frozen(value: Value) -> Value:
            return self.walk.lookups.freeze(value, state) if value.place is None else value

        found: dict[int, Contents] = {}
        waiting = list(containers)
        while waiting:
            place = waiting.pop().place
            if place is None or place in found or place not in state.heap:
                continue
            content = state.heap[place]
            found[place] = content if rows_of(content) is not None else forget([content], state.heap)
            if rows_of(content) is not None:
                waiting += (value for value in values_in(content) if value.place is not None)
                found[place] = mapped_contents(content, frozen)
        return found

    # Attributes of classes.

    def watch(self, info: ClassInfo) -> None:
        """Follow what is assigned to attributes of a class from here on."""
        if info not in self._places:
            self._places[info] = self.walk.allocate()
            self._heap = {**self._heap, self._places[info]: ()}

    def defined(self, info: ClassInfo, state: State) -> State:
        """Return the state after a ``class`` statement inside a function; the class is watched."""
        self._places[info] = self.walk.allocate()
        return state.store(self._places[info], ())

    def assign(self, info: ClassInfo, name: Value, value: Value, state: State, *, certain: bool) -> State:
        """Return the state after an attribute of a class has been set.

        Args:
            info: The class.
            name: Of the attribute: a constant, if it is known.
            value: What it is set to.
            state: The state before.
            certain: Whether it certainly is this class.
        """
        place = self._places.get(info)
        if place is None or place not in state.heap:
            return state
        if not certain:
            return state.store(place, UNKNOWN)
        return DictRef(place).with_item(name, value, state) or state

    def assigned(self, info: ClassInfo) -> dict[str, Value] | None:
        """Return the attributes a class got since it was watched; None if they are not known."""
        content = rows_of(self._heap.get(self._places.get(info, -1), ()))
        if content is None:
            return None
        rows = [(key.python()[1], value) for key, value in content]
        return dict(rows) if all(isinstance(name, str) for name, _ in rows) else None

    # What `EP` does.

    def marked(self, function: Value, mark: Mark, node: cst.CSTNode) -> Value:
        """Return a function that has been marked."""
        if self.active:
            once = function.info if isinstance(function, FunctionValue) else None
            self.made.append(Made(frozenset(code_in(function)), once, mark, self.walk.module, node))
        return Marked(function, mark)

    def mark(self, arguments: Arguments) -> Mark:
        """Return what ``EP`` makes of arguments; what is not known will be reported where it is used."""
        if not arguments.plain:
            return Mark(UNKNOWN, UNKNOWN, UNKNOWN)
        given = {"name": NO_TEXT, "method": NO_TEXT, "path": UNKNOWN, **dict(arguments.keywords())}
        given |= dict(zip(FIELDS, arguments.positional(), strict=False))
        return Mark(given["path"], given["name"], given["method"])

    def is_mark(self, info: ClassInfo) -> bool:
        """Return whether objects of a class are marks: it derives from ``EP``."""
        return self.walk.names.derives_from(info, "EP")

    def method_of_mark(
        self, owner: MadeObject, name: str, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what ``__init__`` or ``__call__`` of ``EP`` does for an object of a subclass."""
        if name == "__call__":
            return self._mark_of(owner, state).call(arguments, node, state, self.walk)
        if isinstance(owner, ObjectRef):
            for field, value in zip(FIELDS, self.mark(arguments).parts(), strict=True):
                state = owner.with_attribute(field, value, state)
        return [(state, NONE)]

    def _mark_of(self, owner: MadeObject, state: State) -> Mark:
        own = owner.attributes(state.heap)
        path, name, method = (self.walk.lookups.freeze(own.get(field, UNKNOWN), state) for field in FIELDS)
        return Mark(path, name, method)


def class_context(owner: ClassInfo, name: str) -> Context:
    """Return where an expression in the body of a class is: names from ``name`` on are not bound yet."""
    bound = list(owner.bindings)
    later = bound[bound.index(name) :] if name in bound else []
    captured = tuple(owner.captured.items())
    return Context(owner.module, owner=owner, captured=captured, unbound=frozenset(later))


def is_endpoint_mark(name: str) -> bool:
    """Return whether a dotted name is that of ``EP``."""
    return name.startswith("mup.") and name.endswith(".EP")


def code_in(value: Value) -> Iterator[FunctionInfo]:
    """Yield the functions whose code runs when a value is called: its own, and what that wraps."""
    if isinstance(value, FunctionValue | Closure):
        yield value.info
    if isinstance(value, Closure | Marked | OneOf | Partial):
        for part in value.parts():
            yield from code_in(part)
