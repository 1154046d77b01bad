"""Where does a variable live, who can reach it, and what is left of it when its function has ended?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import libcst as cst

from analyzer.static.effects import Effects, declared_elsewhere, effects_of
from analyzer.static.names import FunctionInfo
from analyzer.static.state import Contents, Frame, Heap, State, forget, mapped_contents, values_in, with_bound
from analyzer.static.syntax import named_parameters
from analyzer.static.values import (
    LOST,
    UNKNOWN,
    Closure,
    Generator,
    Value,
    Waiting,
    alternatives,
    join,
    of_kind,
    variants_of,
)
from analyzer.static.walk import Part, Points, Walk
from analyzer.static.walking import names_in

__all__ = ["Variables"]

MOST_FRAMELESS = 20_000
"""Contents and frames that are remembered to hold nothing that sees frames."""

T = TypeVar("T")


class Variables(Part):
    """Looks after variables of nested functions and the contents of what they hold."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self.closures = False
        self.functions: dict[cst.CSTNode, FunctionInfo] = {}
        self._declared: dict[FunctionInfo, frozenset[str]] = {}
        self._effects: dict[FunctionInfo, Effects] = {}
        self._mentioned: dict[FunctionInfo, frozenset[str]] = {}
        # Contents and frames that hold nothing that sees frames, by their address: kept, so it stays theirs.
        self._frameless: dict[int, object] = {}
        self._met = 0  # how many values that may see frames were met

    def bind(self, name: str, value: Value, state: State, node: cst.CSTNode | None = None) -> State:
        """Return the state after an assignment to a variable, wherever that variable lives."""
        context = self.walk.contexts[-1]
        declared = () if context.function is None else self.declared(context.function)
        if name not in declared or name in state.frames[-1]:
            return state.bind(name, value)
        bound = self._bound_outside(name, value, context.closure, state)
        # A global variable, or one of a function that has ended: its readers are not known.
        if bound is None and node is not None:
            self.walk.calls.release([value], state, node, f"the variable {name!r}")
        return bound or state

    def rebind(self, name: str, value: Value, function: Closure, state: State) -> State:
        """Return the state after a nested function has set a variable of a function around it."""
        return self._bound_outside(name, value, function.depth, state) or state

    def _bound_outside(self, name: str, value: Value, depth: int | None, state: State) -> State | None:
        """Return the state with a variable set that a frame or one around it has; None if none has it."""
        while depth is not None and depth < len(state.frames):
            if name in state.frames[depth]:
                frame = with_bound(state.frames[depth], name, value)
                return replace(state, frames=(*state.frames[:depth], frame, *state.frames[depth + 1 :]))
            depth = self.walk.contexts[depth].closure if depth < len(self.walk.contexts) else None
        return None

    def declared(self, function: FunctionInfo) -> frozenset[str]:
        """Return the variables a function declares ``nonlocal`` or ``global``."""
        if function not in self._declared:
            self._declared[function] = declared_elsewhere(function)
        return self._declared[function]

    def closure(self, node: cst.FunctionDef | cst.Lambda, qualname: str, state: State) -> Closure:
        """Return the nested function that a definition makes."""
        self.closures = True
        info = self.functions.setdefault(node, FunctionInfo(self.walk.module, node, qualname))
        made = Closure(info, len(state.frames) - 1, defaults=self.defaults(node.params, state))
        return replace(made, reaches=self.captures(made, state))

    def free_names(self, closure: Closure, state: State) -> dict[str, Value]:
        """Return what a nested function can see of the functions around it."""
        used = self._mentioned_in(closure)
        around = {**self._around(closure.depth, state), **dict(closure.captured)}
        return {name: value for name, value in around.items() if name in used}

    def _mentioned_in(self, closure: Closure) -> frozenset[str]:
        # Asked at every call of a nested function, in every state.
        if closure.info not in self._mentioned:
            self._mentioned[closure.info] = names_in(closure.info.node)
        return self._mentioned[closure.info]

    def visible(self, state: State) -> dict[str, Value]:
        """Return the variables that a function or class made here can see, but for global ones."""
        return self._around(len(state.frames) - 1, state)

    def _around(self, depth: int | None, state: State) -> dict[str, Value]:
        """Return the variables that code inside the function of a frame can see."""
        found: dict[str, Value] = {}
        while depth is not None and depth < len(state.frames):
            context = self.walk.contexts[depth] if depth < len(self.walk.contexts) else None
            found = {**dict(context.captured if context else ()), **state.frames[depth], **found}
            depth = context.closure if context else None
        return found

    def _reached(self, closure: Closure, state: State) -> list[Closure]:
        """Return a nested function and those it can call."""
        found = [closure]
        for function in found:
            for value in self.free_names(function, state).values():
                found += [v for v in of_kind(alternatives(value), Closure) if v not in found]
        return found

    def captures(self, closure: Closure, state: State) -> bool:
        """Return whether a nested function can reach communication or futures of the function around it."""
        return any(
            state.holds_tracked(value)
            for function in self._reached(closure, state)
            for value in (function, *self.free_names(function, state).values())
        )

    def effects(self, function: FunctionInfo) -> Effects:
        """Return what a function may change when it is not walked."""
        if function not in self._effects:
            self._effects[function] = effects_of(function)
        return self._effects[function]

    def forget_contents(self, values: Iterable[Value], state: State) -> State:
        """Return the state after something that may change every list, dict and object among these.

        Functions among them may be called, and change what they can reach.
        """
        waiting, seen = list(values), set[int | Closure]()
        while waiting:
            value = waiting.pop()
            if isinstance(value, Closure) and value not in seen:
                seen.add(value)
                free = self.free_names(value, state)
                waiting += free.values()
                for name in self.effects(value.info).outer & set(free):
                    state = self.rebind(name, state.content_of([free[name]]), value, state)
            if value.place is not None:
                if value.place in seen:
                    continue
                seen.add(value.place)
                content = state.heap[value.place]
                left = forget([content], state.heap)
                if variants_of(content) or not left.tracked():
                    waiting += values_in(content)
                    state = state.store(value.place, left)
            if isinstance(value, Generator):
                state = state.store(value.number, UNKNOWN)  # another consumer may have taken items
            waiting += value.parts()
        return state

    def left(self, values: Sequence[Value], state: State, depth: int) -> tuple[State, list[Value]]:
        """Return a state and values behind the end of a function: nested functions keep what they saw."""
        if not self.closures:
            return state.leave(depth), list(values)
        without_frames = self.without_frames(values, state, depth)
        frames = tuple(self._frame_without_frames(frame, state, depth) for frame in state.frames[:depth])
        heap = self._heap_without_frames(state, depth)
        return replace(state, frames=frames, heap=heap), without_frames

    def _heap_without_frames(self, state: State, depth: int) -> Heap:
        """Return what lists, dicts and objects hold whose nested functions do not need some frames."""
        if id(state.heap) in self._frameless:
            return state.heap
        met = self._met
        heap = {n: self._contents_without_frames(c, state, depth) for n, c in state.heap.items()}
        return heap if self._met > met else self._noted_as_frameless(state.heap)

    def _contents_without_frames(self, content: Contents, state: State, depth: int) -> Contents:
        """Return contents whose nested functions do not need some frames; the same object if it has none."""
        if id(content) in self._frameless:
            return content
        met = self._met
        found = mapped_contents(content, lambda value: self._without_frames(value, state, depth, ()))
        return found if self._met > met else self._noted_as_frameless(content)

    def _frame_without_frames(self, frame: Frame, state: State, depth: int) -> Frame:
        """Return the variables of a function likewise."""
        if id(frame) in self._frameless:
            return frame
        met = self._met
        values = self.without_frames(list(frame.values()), state, depth)
        return dict(zip(frame, values, strict=True)) if self._met > met else self._noted_as_frameless(frame)

    def _noted_as_frameless(self, one: T) -> T:
        if len(self._frameless) > MOST_FRAMELESS:
            self._frameless.clear()
        self._frameless[id(one)] = one
        return one

    @contextmanager
    def ending(self, depth: int) -> Iterator[None]:
        """Walk a function whose frame is the ``depth``-th; nested ones keep what they saw where it fails."""
        points = self.walk.tries[-1] if self.walk.tries else Points()
        known = {kind: len(states) for kind, states in points.states.items()}
        yield
        for kind, states in points.states.items() if self.closures else ():
            first = known.get(kind, 0)
            states[first:] = [self.left((), state, depth)[0] for state in states[first:]]

    def without_frames(self, values: Sequence[Value], state: State, depth: int) -> list[Value]:
        """Return values whose nested functions do not need the frames from ``depth`` on."""
        return [self._without_frames(value, state, depth, ()) for value in values]

    def _without_frames(
        self, value: Value, state: State, depth: int, around: tuple[FunctionInfo, ...]
    ) -> Value:
        if value.atomic:
            return value
        self._met += isinstance(value, Closure | Generator | Waiting)
        if isinstance(value, Generator):
            return self._generator_without_frames(value, state, depth, around)
        if isinstance(value, Waiting) and value.closure is not None and value.closure >= depth:
            free = {**self._around(value.closure, state), **dict(value.captured)}
            value = replace(value, closure=None, captured=tuple(free.items()))
        if not isinstance(value, Closure):
            return value.map(lambda part: self._without_frames(part, state, depth, around))
        if value.depth is None or value.depth < depth:
            # It may have seen one that sees a function that ends now: what decorates a nested function does.
            return value.map(lambda part: self._without_frames(part, state, depth, around))
        communicates = self.captures(value, state)
        if value.info in around:
            # It can call itself; what that would communicate is not followed anyway.
            return LOST if communicates else UNKNOWN
        ending, place = self._ending(value.depth, state, depth)
        free = {**ending, **dict(value.captured)}
        changing = self.effects(value.info).outer
        captured = []
        for name in sorted(set(free) & self._mentioned_in(value)):
            kept = self._without_frames(free[name], state, depth, (*around, value.info))
            captured.append((name, state.content_of([free[name]]) if name in changing else kept))
        defaults = tuple(
            (n, self._without_frames(v, state, depth, (*around, value.info))) for n, v in value.defaults
        )
        return Closure(value.info, place, tuple(captured), communicates, defaults)

    def _ending(self, place: int | None, state: State, depth: int) -> tuple[dict[str, Value], int | None]:
        """Return the variables that end with the frames from ``depth`` on, and the frame around them."""
        found: dict[str, Value] = {}
        while place is not None and place >= depth:
            context = self.walk.contexts[place] if place < len(self.walk.contexts) else None
            frame = state.frames[place] if place < len(state.frames) else {}
            found = {**dict(context.captured if context else ()), **frame, **found}
            place = context.closure if context else None
        return found, place

    def _generator_without_frames(
        self, value: Generator, state: State, depth: int, around: tuple[FunctionInfo, ...]
    ) -> Value:
        arguments = tuple(
            (name, self._without_frames(v, state, depth, around)) for name, v in value.arguments
        )
        context = value.context
        if context.closure is not None and context.closure >= depth:
            free = {**self._around(context.closure, state), **dict(context.captured)}
            kept = tuple((name, self._without_frames(v, state, depth, around)) for name, v in free.items())
            context = replace(context, closure=None, captured=kept)
        return replace(value, arguments=arguments, context=context)

    def defaults(self, declared: cst.Parameters, state: State) -> tuple[tuple[str, Value], ...]:
        """Return the defaults of a nested function that is being defined."""
        found = []
        for parameter in named_parameters(declared):
            if parameter.default is not None:
                results = self.walk.expressions.evaluate(parameter.default, state)
                if any(after.operations != state.operations for after, _ in results):
                    what = "a default that communicates is not analysed yet"
                    self.walk.report("MUP030", what, parameter.default)
                found.append((parameter.name.value, join(value for _, value in results)))
        return tuple(found)
