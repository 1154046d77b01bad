"""What do ``with`` statements do, when the class of the context manager is known?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.control import Handler, Protected, Run, With
from analyzer.static.generators import Each
from analyzer.static.state import Failure, Flow, Results, State, merge_flows
from analyzer.static.syntax import name_of
from analyzer.static.values import (
    LOST,
    NONE,
    UNKNOWN,
    ClassValue,
    ExitStack,
    FunctionValue,
    Generator,
    Partial,
    Semaphore,
    Slot,
    Suppressing,
    Value,
    alternatives,
    rows_of,
)
from analyzer.static.values.containers import MAYBE, slots_of
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Part, Points
from analyzer.static.walking import nodes_of

__all__ = ["Managers"]


ANYTHING = Suppressing((UNKNOWN,))


@dataclass(frozen=True, slots=True)
class _Unwinding:
    """Where the leaving of a stack of managers is.

    Attributes:
        state: The state.
        pending: The exception that is on its way; None without one.
        raised_in: The state in which one of the managers raised it; None if it comes from the block.
    """

    state: State
    pending: Failure | Value | None
    raised_in: State | None = None


class Managers(Part):
    """Enters and leaves context managers."""

    def with_block(self, node: With, state: State) -> list[Flow]:
        """Walk a ``with`` statement."""
        line = self.walk.module.line(node.node)
        self.walk.may_fail(state, "local")
        flows: list[Flow] = []
        for after, manager in self.walk.expressions.evaluate(node.value, state):
            if after.operations == state.operations:
                after = after.at_local_work(line)  # noqa: PLW2901
            for one in alternatives(manager):
                flows += self._block_of(node, one, after)
        return merge_flows(flows)

    def _block_of(self, node: With, manager: Value, state: State) -> list[Flow]:
        """Walk a ``with`` statement of one manager, which has been made."""
        if node.plain is not None and not isinstance(manager, ExitStack):
            node = replace(node, body=node.plain, plain=None)
        match manager:
            case ExitStack():
                return self._entered(node, manager, state)
            case Generator():
                body = self._body_of(node)
                return self.walk.generators.consume(manager, state, node.node, body, manager=True)
            case MadeObject() if self._method_of(manager, node, "exit"):
                return self._entered(node, manager, state)
            case Suppressing():
                return self._suppressed(node, manager, state)
            case Semaphore():
                inside = self._body_of(node)(state, NONE)
                self.walk.copies.guarded(manager, node.value, state, [flow.state for flow in inside])
                return inside
        if self._may_swallow(node.value):
            return self._suppressed(node, ANYTHING, state)
        # Nothing is known about it: a file, a lock.
        inside = self._body_of(node)(state, state.content_of([manager]))
        if node.asynchronous and any(f.state.operations != state.operations for f in inside):
            self.walk.copies.check_limit(node.value)
        return inside

    def _body_of(self, node: With) -> Each:
        """Return what walks the block, given what the manager hands out."""

        def body(state: State, value: Value) -> list[Flow]:
            if node.target is not None:
                state = self.walk.assignment.assign(node.target, value, state, node.node)
            return self.walk.statements.block(node.body, [state])

        return body

    def _suppressed(self, node: With, manager: Suppressing, state: State) -> list[Flow]:
        """Walk a block some of whose exceptions are swallowed."""
        body, handed = self._body_of(node), NONE if manager is not ANYTHING else UNKNOWN
        run = Run(node.node, lambda inner: body(inner, handed))
        swallow = Handler(manager.kinds, "", ())
        return self.walk.exceptions.protected(Protected(node.node, (run,), (swallow,), (), ()), state)

    def _may_swallow(self, value: cst.BaseExpression) -> bool:
        """Return whether a manager may swallow exceptions whose class is known and not followed."""
        kind = self.walk.names.dotted(self.walk.module, value.func) if isinstance(value, cst.Call) else None
        if not isinstance(kind, ClassValue):
            return False
        leave = self.walk.attributes.method_named(kind.info, ("__exit__", "__aexit__"))
        returns = () if leave is None else nodes_of(leave.node, (cst.Return,))
        answers = [answer for one in returns if (answer := getattr(one, "value", None)) is not None]
        return any(name_of(one) not in ("False", "None") for one in answers)

    def _method_of(self, owner: Value, node: With, name: str) -> FunctionValue | None:
        """Return the method that enters or leaves an object of the source tree; None if it has none."""
        match owner:
            case MadeObject(info=info):
                method = f"__a{name}__" if node.asynchronous else f"__{name}__"
                found = self.walk.names.method(info, method)
                return None if found is None else FunctionValue(found, owner)
        return None

    def _entered(self, node: With, manager: Value, state: State) -> list[Flow]:
        depth = len(state.frames)
        flows: list[Flow] = []
        points = Points()
        for after, value in self._enter(node, manager, state):
            with self.walk.collected(points), self.walk.catching() as raised:
                flows += self._body_of(node)(after, value)
            flows += raised
        done: list[Flow] = []
        for flow in merge_flows(flows):
            failure = flow.value if flow.kind == "raise" else None
            for after, swallowed in self._left(manager, node, flow.state, failure):
                if failure is not None and swallowed is not False:
                    done.append(Flow(after))
                if failure is None or swallowed is not True:
                    done.append(Flow(after, flow.kind, flow.value, flow.line))
        for kind, place in points.merged(depth):
            for after, swallowed in self._left(manager, node, place, kind):
                if swallowed is not False:
                    done.append(Flow(after))
                if swallowed is not True:
                    line = self.walk.module.line(node.node)
                    done += self.walk.exceptions.failed(kind, after, place, line)
        return merge_flows(done)

    def _enter(self, node: With, manager: Value, state: State) -> Results:
        """Return what entering a manager does, and what it hands out: a stack does itself."""
        enter = self._method_of(manager, node, "enter")
        if enter is None:
            return [(state, manager if isinstance(manager, ExitStack) else UNKNOWN)]
        return self._run(enter, Arguments((), ()), node.node, state)

    def _left(
        self, manager: Value, node: With, state: State, failure: Failure | Value | None
    ) -> list[tuple[State, bool | None]]:
        """Return what leaving a manager does, and whether it swallows what has failed; None = perhaps."""
        match manager:
            case ExitStack():
                return self._unwound(manager, node, state, failure)
            case Suppressing(kinds=kinds):
                return [(state, failure is not None and self.walk.exceptions.caught(failure, kinds))]
            case Partial():
                done = manager.call(Arguments((), ()), node.value, state, self.walk)
                return [(s, False) for s, _ in self.walk.functions.finished(done, node.node)]
        leave = self._method_of(manager, node, "exit")
        if leave is None:
            return [(state, False)]
        given = Arguments.of(*(NONE if failure is None else UNKNOWN,) * 3)
        return [(s, value.truth({})) for s, value in self._run(leave, given, node.node, state)]

    def _unwound(
        self, stack: ExitStack, node: With, state: State, failure: Failure | Value | None
    ) -> list[tuple[State, bool | None]]:
        """Return what leaving everything does that a stack has entered, the last first."""
        content = state.heap[stack.number]
        if rows_of(content) is None:
            return [(state, None)]
        outcomes = [_Unwinding(state.store(stack.number, ()), failure)]
        entered = slots_of(content)
        for number in range(len(entered) - 1, -1, -1):
            managers = alternatives(entered[str(number)]) if str(number) in entered else ()
            # Where several executions are in one state, some may not have come that far.
            following = list(outcomes) if MAYBE + str(number) in entered else []
            for before in outcomes if managers else ():
                for manager in managers:
                    following += self._step(manager, node, before, last=number == 0)
            outcomes = following if managers else outcomes
        for one in outcomes:
            if one.raised_in is not None and one.pending is not None:
                self._raised(one.pending, one.state, one.raised_in, node)
        own = [one for one in outcomes if one.raised_in is None]
        return [(one.state, failure is not None and one.pending is None) for one in own]

    def _step(self, manager: Value, node: With, before: _Unwinding, *, last: bool) -> Iterator[_Unwinding]:
        """Yield what leaving one of the managers of a stack does; the next ones get what fails there."""
        if last:
            yield from self._after(before, self._left(manager, node, before.state, before.pending))
            return
        points = Points()
        with self.walk.collected(points), self.walk.catching() as raised:
            left = self._left(manager, node, before.state, before.pending)
        yield from self._after(before, left)
        for kind, place in points.merged(len(before.state.frames)):
            yield _Unwinding(place, kind, place)
        for flow in raised:
            yield _Unwinding(flow.state, flow.value, flow.state)

    @staticmethod
    def _after(before: _Unwinding, left: Iterable[tuple[State, bool | None]]) -> Iterator[_Unwinding]:
        for after, swallowed in left:
            if before.pending is None or swallowed is not True:
                yield replace(before, state=after)
            if before.pending is not None and swallowed is not False:
                yield _Unwinding(after, None)

    def _raised(self, pending: Failure | Value, state: State, raised_in: State, node: With) -> None:
        """Note an exception that one manager has raised and that the others have let pass."""
        line = self.walk.module.line(node.node)
        if isinstance(pending, Value):
            self.walk.raised.append(Flow(state, "raise", pending, line))
        else:
            self.walk.raised += self.walk.exceptions.failed(pending, state, raised_in, line)

    def stack_method(
        self, stack: ExitStack, name: str, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what a method of a ``contextlib.ExitStack`` does."""
        known = rows_of(state.heap[stack.number]) is not None and arguments.plain and arguments.positional()
        methods: dict[str, Callable[[ExitStack, Arguments, cst.CSTNode, State], Results | None]] = {
            "callback": self._callback,
            "enter_async_context": self._enter_context,
            "enter_context": self._enter_context,
            "push_async_callback": self._callback,
        }
        found = methods[name](stack, arguments, node, state) if known and name in methods else None
        if found is not None:
            return found
        self.walk.calls.release([stack, *arguments.values], state, node, f"{name!r} of an ExitStack")
        return [(state.store(stack.number, UNKNOWN), UNKNOWN)]

    def _callback(
        self, stack: ExitStack, arguments: Arguments, _node: cst.CSTNode, state: State
    ) -> Results | None:
        function, *values = arguments.positional()
        made = Partial(function, tuple(values), tuple(arguments.keywords()))
        return [(self._pushed(stack, made, state), function)]

    def _enter_context(
        self, stack: ExitStack, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results | None:
        (manager, *more) = arguments.values
        if more:
            return None
        match manager:
            case Suppressing():
                return [(self._pushed(stack, manager, state), NONE)]
            case Generator() if not manager.tracked():
                return [(state if _lets_pass(manager) else self._pushed(stack, ANYTHING, state), UNKNOWN)]
            case MadeObject(info=info):
                leave = self.walk.attributes.method_named(info, ("__aexit__", "__exit__"))
                enter = self.walk.attributes.method_named(info, ("__aenter__", "__enter__"))
                if leave is None or enter is None or leave.is_async is not enter.is_async:
                    return None
                entered = self._run(FunctionValue(enter, manager), Arguments((), ()), node, state)
                return [(self._pushed(stack, manager, after), value) for after, value in entered]
        # A file, a lock.
        return None if state.holds_tracked(manager) else [(state, UNKNOWN)]

    def _pushed(self, stack: ExitStack, manager: Value, state: State) -> State:
        content = state.heap[stack.number]
        rows = rows_of(content)
        if rows is None:
            return state.store(stack.number, LOST if state.holds_tracked(manager) else content)
        entered = sum(not name.startswith(MAYBE) for name in slots_of(content))
        return state.store(stack.number, (*rows, (Slot(str(entered)), manager)))

    def _run(self, method: FunctionValue, given: Arguments, node: cst.CSTNode, state: State) -> Results:
        results = self.walk.functions.call_function(method, given, node, state, follow=True)
        return self.walk.functions.finished(results, node)


FUNCTIONS = (cst.FunctionDef, cst.Lambda)
LEAVING = (cst.Return, cst.Break, cst.Continue)
"""What drops an exception that is on its way through ``finally``."""


def _lets_pass(manager: Generator) -> bool:
    """Return whether no exception ends in a manager that is written as a generator: no handler is around."""
    function = manager.context.function
    if function is None or function.definition is None:
        return False
    for guard in nodes_of(function.node.body, (cst.Try, cst.TryStar, cst.With), FUNCTIONS):
        if nodes_of(guard, (cst.Yield,), FUNCTIONS):
            match guard:
                case cst.Try(handlers=[], finalbody=final):
                    if final is None or not nodes_of(final, LEAVING, FUNCTIONS):
                        continue
            return False
    return True
