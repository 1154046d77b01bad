"""Which handler catches what goes wrong, and what happens on the way out?"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

import libcst as cst

from analyzer.static.application import Operation
from analyzer.static.control import Handler, Protected
from analyzer.static.factoring import responses
from analyzer.static.names import mup_name
from analyzer.static.state import Failure, Flow, State, merge, merge_flows
from analyzer.static.values import (
    UNKNOWN,
    ClassValue,
    Const,
    External,
    Leaving,
    Value,
    agreed,
    alternatives,
    any_of,
)
from analyzer.static.walk import Part, Points, changed

__all__ = ["Exceptions"]

CATCH_ALL = {"Exception", "BaseException"}

PASSING = {"SystemExit", "KeyboardInterrupt", "GeneratorExit", "CancelledError"}
"""What ``except Exception`` does not catch."""

ANCESTORS = {
    "MupError": (),
    "CommunicationError": ("MupError",),
    "CallError": ("CommunicationError", "MupError"),
    "CallTimeoutError": ("CommunicationError", "MupError"),
    "BrokenCallError": ("CommunicationError", "MupError"),
    "NoReplicaError": ("CommunicationError", "MupError"),
    "UnknownServiceError": ("NoReplicaError", "CommunicationError", "MupError"),
    "QueryError": ("CommunicationError", "MupError"),
    "UnknownDatabaseError": ("QueryError", "CommunicationError", "MupError"),
    "DatabaseDownError": ("QueryError", "CommunicationError", "MupError"),
    "QueryTimeoutError": ("QueryError", "CommunicationError", "MupError"),
}
"""The framework's exceptions, as in mup.errors."""

STANDARD = sys.stdlib_module_names
"""Modules whose exceptions are none of the framework's, nor raised by its operations."""

_CALL = ("NoReplicaError", "UnknownServiceError", "CallTimeoutError")
_QUERY = ("QueryError", "UnknownDatabaseError")

RAISES: dict[str, tuple[str, ...]] = {
    "call": _CALL,
    "get of call": (*_CALL, "CallError", "BrokenCallError"),
    "query": _QUERY,
    "respond": ("MupError",),
    "get of query": (*_QUERY, "DatabaseDownError", "QueryTimeoutError", "CallTimeoutError"),
}
"""What a failing operation may raise."""

ASYNCIO = {
    "timeout": {"TimeoutError", "OSError", "Exception", "BaseException"},
    "cancelled": {"CancelledError", "BaseException"},
    "group": {"ExceptionGroup", "BaseExceptionGroup", "Exception", "BaseException"},
}
"""What certainly catches what asyncio raises."""

HANDLED = "<handled>"
"""Local variable that holds what is being handled; no Python name looks like it.

The class of what was raised, or as a constant the kind of operation that has failed.
"""


@dataclass(frozen=True, slots=True)
class _Part:
    """Where the handling of a group of exceptions is.

    Attributes:
        state: The state.
        group: What was raised.
        raised: What a handler has raised that has run; it waits for those behind it.
        done: What had been done when that was raised, or else the group.
    """

    state: State
    group: Value
    raised: Value | None
    done: tuple[Operation, ...]


class Exceptions(Part):
    """Walks ``try`` statements."""

    def protected(self, node: Protected, state: State) -> list[Flow]:
        """Walk a ``try``: its body, what catches its exceptions, and what runs in any case."""
        depth = len(state.frames)
        with self.walk.collected() as points:
            flows = self.walk.statements.block(node.body, [state])
        done: list[Flow] = []
        passed: list[State] = []
        entered: dict[int, list[State]] = {}
        for flow in flows:
            if flow.kind == "next":
                passed.append(flow.state)
            elif flow.kind != "raise" or self._catch(node, flow.value, flow.state, entered):
                done.append(flow)
        escaped: list[tuple[Failure, State]] = []
        for kind, place in points.merged(depth):
            if self._catch(node, kind, place, entered):
                escaped.append((kind, place))
        later = Points()
        # What goes wrong from here on passes ``finally``, but none of the handlers.
        with self.walk.collected(later) if node.final else nullcontext():
            done += self._handled(node, state, entered)
            if passed:
                done += self.walk.statements.block(node.orelse, passed)
        escaped += later.merged(depth)
        return self._finally(node, merge_flows(done), escaped)

    def _handled(self, node: Protected, state: State, entered: Mapping[int, list[State]]) -> Iterator[Flow]:
        """Walk the handlers from the states that enter them."""
        around, base = state.frames[-1].get(HANDLED, UNKNOWN), len(state.operations)
        going_on: list[_Part] = []
        for index, handler in enumerate(node.handlers):
            states = entered.get(index, [])
            groups = [one for one in states if node.parts and self._is_group(one.frames[-1][HANDLED])]
            single = [one for one in states if not any(one is group for group in groups)]
            for flow in self._walked(node, handler, single, base):
                # From here on a bare `raise` means what it meant before.
                yield replace(flow, state=flow.state.bind(HANDLED, around))
            parts = [_Part(one, one.frames[-1][HANDLED], None, one.operations) for one in groups]
            ended = [e for part in [*parts, *going_on] for e in self._of_part(node, handler, part, base)]
            whole = self._takes(self._types_of(handler) or ()) is True
            going_on = [] if whole else [*going_on, *ended]
            for part in ended:
                behind = replace(part, state=part.state.bind(HANDLED, around))
                yield from self._ended(node, behind, whole=whole)

    def _walked(self, node: Protected, handler: Handler, states: list[State], base: int) -> Iterator[Flow]:
        if states:
            handling = merge(s.bind(handler.name, UNKNOWN) if handler.name else s for s in states)
            handling = self.walk.statements.folded_states(handling, base, node.node)
            before = [one for one in handling if not responses(one.operations)]
            yield from self.walk.statements.block(handler.body, before)
            with changed(self.walk, answering=True):
                behind = [one for one in handling if responses(one.operations)]
                flows = self.walk.statements.block(handler.body, behind)
            yield from flows

    def _ended(self, node: Protected, part: _Part, *, whole: bool) -> Iterator[Flow]:
        """Yield how a ``try`` ends if no other handler runs; ``whole``: nothing is left of the group."""
        if part.raised is None:
            yield Flow(part.state)
            if whole:
                return
        match part.group if part.raised is None else part.raised:
            case Const(value=failure) if part.state.operations == part.done:
                self.walk.may_fail(part.state, failure)
            case raised:
                yield Flow(part.state, "raise", raised, self.walk.module.line(node.node))

    def _of_part(self, node: Protected, handler: Handler, part: _Part, base: int) -> Iterator[_Part]:
        """Walk a handler for its part of a group; what it raises waits until all handlers have run."""
        with self.walk.collected() as points:
            flows = list(self._walked(node, handler, [part.state.bind(HANDLED, part.group)], base))
        for flow in flows:
            if flow.kind == "raise":
                yield _Part(flow.state, part.group, flow.value, flow.state.operations)
            else:
                yield replace(part, state=flow.state)
        for kind, place in points.merged(len(part.state.frames)):
            yield _Part(place, part.group, Const.of(kind), place.operations)

    def _is_group(self, kind: Value) -> bool:
        """Return whether what was raised may be a group of exceptions, also by code that is not followed."""
        if kind in (UNKNOWN, Const.of("group"), Const.of("local")):
            return True
        return bool(kind.class_name) and "BaseExceptionGroup" in self._lineage(kind)

    @staticmethod
    def _takes(kinds: tuple[Value, ...]) -> bool | None:
        """Return whether ``except*`` takes all of a group of exceptions; None = perhaps, or a part."""
        return True if {kind.class_name for kind in kinds} & CATCH_ALL else None

    def _finally(
        self, node: Protected, flows: list[Flow], escaped: list[tuple[Failure, State]]
    ) -> list[Flow]:
        if not node.final:
            for kind, state in escaped:
                self.walk.may_fail(state, kind)
            return flows
        done: list[Flow] = []
        for flow in flows:
            if flow.kind == "left":
                done += self._dropped(node, flow)
                continue
            if flow.kind == "paused":
                done.append(flow)
                continue
            ends = self.walk.statements.block(node.final, [flow.state])
            done += [replace(flow, state=end.state) if end.kind == "next" else end for end in ends]
        for kind, state in escaped:
            for end in self.walk.statements.block(node.final, [state]):
                line = self.walk.module.line(node.node)
                done += [end] if end.kind != "next" else self.failed(kind, end.state, state, line)
        return merge_flows(done)

    def failed(self, kind: Failure, state: State, before: State, line: int) -> list[Flow]:
        """Return how a failure goes on that was underway in ``before``, after code that ran meanwhile.

        What that communicates happens even when the exception goes on to end the request.
        """
        if state.operations != before.operations:
            return [Flow(state, "raise", Const.of(kind), line)]
        self.walk.may_fail(state, kind)
        return []

    def _dropped(self, node: Protected, flow: Flow) -> list[Flow]:
        """Walk the ``finally`` of a generator that its consumer has left: Python ignores what fails there."""
        with self.walk.collected() as points:
            ends = self.walk.statements.block(node.final, [flow.state])
        done = [replace(flow, state=e.state) if e.kind in ("next", "raise") else e for e in ends]
        failed = points.merged(len(flow.state.frames))
        return done + [
            replace(flow, state=place) for kind, place in failed if kind not in ("local", "builtin")
        ]

    def _catch(
        self, node: Protected, raised: Failure | Value, state: State, entered: dict[int, list[State]]
    ) -> bool:
        """Send a state to the handlers that may catch what was raised; tell whether it may pass them."""
        if isinstance(raised, Leaving):
            return True
        passed = [
            self._catch_one(node, kind, state.bind(HANDLED, kind), entered)
            for kind in alternatives(_as_value(raised))
        ]
        return any(passed)

    def _catch_one(self, node: Protected, kind: Value, state: State, entered: dict[int, list[State]]) -> bool:
        group = node.parts and self._is_group(kind)
        for index, handler in enumerate(node.handlers):
            types = self._types_of(handler)
            caught = True if types is None else self.caught(kind, types)
            if group and types is not None and (caught is not False or kind.text != "local"):
                caught = self._takes(types)
            if caught is not False:
                entered.setdefault(index, []).append(state)
            if caught is True:
                return False
        return True

    def caught(self, raised: Failure | Value, kinds: tuple[Value, ...]) -> bool | None:
        """Return whether what was raised is of one of some classes; None = perhaps."""
        if isinstance(raised, Leaving):
            return False
        options = alternatives(_as_value(raised))
        return agreed(any_of([self._matches(one, kind) for kind in kinds]) for one in options)

    def _types_of(self, handler: Handler) -> tuple[Value, ...] | None:
        """Return the classes of what a handler catches; None if it catches everything."""
        known = handler.types
        return known if known is None or isinstance(known, tuple) else self._types(known)

    def _types(self, node: cst.BaseExpression) -> tuple[Value, ...]:
        match node:
            case cst.Tuple(elements=elements):
                kinds = tuple(kind for element in elements for kind in self._types(element.value))
                return kinds or (UNKNOWN,)
        with self.walk.catching():
            results = self.walk.expressions.evaluate(node, State(({},)))
        return results[0][1].classes() if results else (UNKNOWN,)

    def _matches(self, raised: Value, kind: Value) -> bool | None:
        """Return whether a handler catches something; None = perhaps."""
        name, failure = kind.class_name, raised.text
        if failure in ASYNCIO:
            # `except*` may catch a group by what is in it.
            return True if name in ASYNCIO[failure] else None if not name or failure == "group" else False
        if name in CATCH_ALL:
            return name == "BaseException" or raised.class_name not in PASSING
        framework = name in ANCESTORS and bool(mup_name(kind))
        if failure == "local":
            return False if framework else None
        if failure == "builtin":
            return False if framework or isinstance(kind, ClassValue) else None
        if failure is not None and framework:
            caught = [r == name or name in ANCESTORS[r] for r in RAISES[failure]]
            return True if all(caught) else None if any(caught) else False
        if failure is None and not raised.class_name:
            return None
        if failure is None and name in self._lineage(raised):
            return True
        match kind:
            case ClassValue():
                return False
            case External(name=full) if full.partition(".")[0] in STANDARD:
                # Its base classes are not known, but no exception of mup is among them.
                return False if failure is not None or self._is_known(raised) else None
        return False if framework else None

    def _is_known(self, raised: Value) -> bool:
        """Return whether all bases of an exception class are known."""
        match raised:
            case ClassValue(info=info):
                bases = [External(name) for name in self.walk.names.outside(info)]
            case External():
                bases = [raised]
            case _:
                return True
        return all(one.name.startswith("builtins.") or one.class_name in ANCESTORS for one in bases)

    def _lineage(self, raised: Value) -> set[str]:
        """Return the names of an exception class and all its bases."""
        found = {raised.class_name}
        if isinstance(raised, ClassValue):
            found = {ClassValue(one).class_name for one in self.walk.names.line(raised.info)}
            found |= {name.rpartition(".")[2] for name in self.walk.names.outside(raised.info)}
        for name in tuple(found):
            kind = getattr(builtins, name, None)
            if isinstance(kind, type):
                found |= {k.__name__ for k in kind.__mro__}
            found.update(ANCESTORS.get(name, ()))
        return found


def _as_value(raised: Failure | Value) -> Value:
    return raised if isinstance(raised, Value) else Const.of(raised)
