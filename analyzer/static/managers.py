"""What do ``with`` statements do, when the class of the context manager is known?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.control import Handler, Protected, Run, With
from analyzer.static.generators import Each
from analyzer.static.state import Failure, Flow, Results, State, forget, merge, merge_flows
from analyzer.static.syntax import name_of
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    ExitStack,
    Function,
    FunctionValue,
    Generator,
    Many,
    Partial,
    Semaphore,
    Suppressing,
    Value,
    Waiting,
    added_to,
    alternatives,
    runs_of,
)
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Part, Points
from analyzer.static.walking import nodes_of

__all__ = ["Managers"]


AWAITED = {"__aenter__", "__aexit__", "aclose", "enter_async_context"}
"""Methods of a stack of managers that do nothing until they are awaited."""

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
        if node.entered:
            return self._resumed(node, state)
        line = self.walk.module.line(node.node)
        self.walk.may_fail(state, "local")
        flows: list[Flow] = []
        for after, manager in self.walk.expressions.evaluate(node.value, state):
            if after.operations == state.operations:
                after = after.at_local_work(line)  # noqa: PLW2901
            for one in alternatives(manager):
                flows += self._block_of(node, one, after)
        return merge_flows(flows)

    def _resumed(self, node: With, state: State) -> list[Flow]:
        """Walk the rest of a ``with`` statement at which a generator has waited."""
        held = state.frames[-1].get(self._held(node), NONE)
        inside = state.unbind(self._held(node))
        return merge_flows([flow for one in alternatives(held) for flow in self._block_of(node, one, inside)])

    def _held(self, node: With) -> str:
        """Return the variable that keeps the manager of a block while its generator waits."""
        site = self.walk.place(node.node)
        return f"<manager {site.line}:{site.column}>"

    def _block_of(self, node: With, manager: Value, state: State) -> list[Flow]:
        """Walk a ``with`` statement of one manager, which has been made."""
        flows = self._managed(node, manager, state)
        return [self._keeping(flow, node, manager) for flow in flows]

    def _keeping(self, flow: Flow, node: With, manager: Value) -> Flow:
        """Return how a block ends; where its generator waits, a variable keeps the manager, once entered."""
        if flow.kind != "paused" or self._held(node) in flow.state.frames[-1]:
            return flow
        return replace(flow, state=flow.state.bind(self._held(node), manager))

    def _managed(self, node: With, manager: Value, state: State) -> list[Flow]:
        if node.plain is not None and not isinstance(manager, ExitStack):
            node = replace(node, body=node.plain, plain=None)
        match manager:
            case ExitStack():
                return self._entered(node, manager, state)
            case Generator() if self._waits_inside(manager, state):
                return self._waiting(node, manager, state)
            case Waiting():
                return self._entered(node, manager, state)
            case Generator():
                body = self._body_of(node)
                return self.walk.generators.consume(manager, state, node.node, body, manager=True)
            case MadeObject() if self._method_of(manager, node, "exit"):
                return self._entered(node, manager, state)
            case Suppressing():
                return self._suppressed(node, manager, state)
            case Semaphore(name=name) if name:
                return self._holding(node, manager, state)
            case Semaphore():
                inside = self._body_of(node)(state, NONE)
                self.walk.copies.guarded(manager, node.value, state, [flow.state for flow in inside])
                return inside
        if not node.entered and self._may_swallow(node.value):
            return self._suppressed(node, ANYTHING, state)
        # Nothing is known about it: a file.
        if node.asynchronous:
            self.walk.tasks.waited(state)
        inside = self._body_of(node)(state, state.content_of([manager]))
        if node.asynchronous and any(f.state.operations != state.operations for f in inside):
            self.walk.copies.check_limit(node.value)
        return inside

    def _holding(self, node: With, semaphore: Semaphore, state: State) -> list[Flow]:
        """Walk a block in which a semaphore or lock is held that requests share."""
        if node.asynchronous:
            self.walk.tasks.waited(state)
        with self.walk.holding(semaphore, node.value):
            inside = self._body_of(node)(state, NONE)
        if not semaphore.permits and any(f.state.operations != state.operations for f in inside):
            self.walk.mistakes.unknown_limit(node.value)
        return inside

    def _waiting(self, node: With, manager: Generator, state: State) -> list[Flow]:
        """Walk a block around code that waits, with a generator as its manager, which waits meanwhile."""
        inside = replace(node, target=None, entered=True)
        flows: list[Flow] = []
        for entered, value, waiting in self.walk.resuming.entered(manager, node.node, state):
            after = entered
            if node.target is not None:
                after = self.walk.assignment.assign(node.target, value, after, node.node)
            flows += self._block_of(inside, waiting, after)
        return merge_flows(flows)

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
        kind = self.walk.names.dotted(self.walk.module, value.func) if type(value) is cst.Call else None
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
            if flow.kind == "paused":
                done.append(flow)
                continue
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
        if node.entered:
            return [(state, UNKNOWN)]
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
            case Waiting():
                return self.walk.resuming.left(manager, node.node, state, failure)
            case FunctionValue() | Closure():
                return self._exited(manager, node, state, failure)
            case Suppressing(kinds=kinds):
                return [(state, failure is not None and self.walk.exceptions.caught(failure, kinds))]
            case Partial():
                done = manager.call(Arguments((), ()), node.value, state, self.walk)
                return [(s, False) for s, _ in self.walk.functions.finished(done, node.node)]
        leave = self._method_of(manager, node, "exit")
        return [(state, False)] if leave is None else self._exited(leave, node, state, failure)

    def _exited(
        self, leave: Function, node: With, state: State, failure: Failure | Value | None
    ) -> list[tuple[State, bool | None]]:
        """Return what a function does that leaves something, given what has failed."""
        given = Arguments.of(*(NONE if failure is None else UNKNOWN,) * 3)
        return [(s, value.truth({})) for s, value in self._run(leave, given, node.node, state)]

    def _unwound(
        self, stack: ExitStack, node: With, state: State, failure: Failure | Value | None
    ) -> list[tuple[State, bool | None]]:
        """Return what leaving everything does that a stack has entered, the last first."""
        return [
            left
            for one in state.apart([stack])
            for left in self._unwound_known(stack.number, node, one, failure)
        ]

    def _unwound_known(
        self, number: int, node: With, state: State, failure: Failure | Value | None
    ) -> list[tuple[State, bool | None]]:
        runs = runs_of(state.heap[number])
        if runs is None:
            if forget([state.heap[number]], state.heap).tracked():
                what = "it is not known what a stack of context managers leaves that communicates"
                self.walk.refuse(what, node.node, "enter them in a loop over known items")
            return [(state, None)]
        outcomes = [_Unwinding(state.store(number, ()), failure)]
        for place in range(len(runs) - 1, -1, -1):
            outcomes = [after for one in outcomes for after in self._run_left(runs[place], node, one, place)]
        for one in outcomes:
            if one.raised_in is not None and one.pending is not None:
                self._raised(one.pending, one.state, one.raised_in, node)
        own = [one for one in outcomes if one.raised_in is None]
        return [(one.state, failure is not None and one.pending is None) for one in own]

    def _run_left(self, run: Value, node: With, before: _Unwinding, place: int) -> Iterable[_Unwinding]:
        """Return what leaving a manager does that is at some place of a stack, or any number of them."""
        if type(run) is Many:
            return self._many_left(run, node, before)
        return [
            after
            for manager in alternatives(run)
            for after in self._step(manager, node, before, last=place == 0)
        ]

    def _many_left(self, many: Many, node: With, before: _Unwinding) -> Iterator[_Unwinding]:
        """Yield what leaving any number of managers does, of which it is known what each may be."""
        pending: list[Failure | Value | None] = [before.pending]

        def iteration(start: State) -> list[Flow]:
            flows: list[Flow] = []
            for one in pending:  # it grows meanwhile
                for manager in alternatives(many.one):
                    for left in self._step(manager, node, _Unwinding(start, one), last=False):
                        flows.append(Flow(left.state))
                        pending.extend([] if left.pending in pending else [left.pending])
            return flows

        loop, start, flows = self.walk.loops.repeated(node.node, before.state, iteration)
        for after in merge([loop.end(Flow(start)).state, *(loop.end(flow).state for flow in flows)]):
            for one in pending:
                if one == before.pending:
                    yield replace(before, state=after)
                else:
                    yield _Unwinding(after, one, None if one is None else before.state)

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
        methods: dict[str, Callable[[ExitStack, Arguments, cst.CSTNode, State], Results | None]] = {
            "__aenter__": self._itself,
            "__aexit__": self._exit,
            "__enter__": self._itself,
            "__exit__": self._exit,
            "aclose": self._close,
            "callback": self._callback,
            "close": self._close,
            "enter_async_context": self._enter_context,
            "enter_context": self._enter_context,
            "pop_all": self._pop_all,
            "push": self._push,
            "push_async_callback": self._callback,
            "push_async_exit": self._push,
        }
        runs = name not in AWAITED or (type(node) is cst.Call and self.walk.waiting.awaited_at_once(node))
        known = runs and arguments.plain and name in methods
        found = methods[name](stack, arguments, node, state) if known else None
        if found is not None:
            # The value is what `await` returns, so it must be none that could be awaited itself.
            waited = [one for _, value in found for one in alternatives(value) if name in AWAITED]
            awaitable = [one for one in waited if one.used_up or any(True for _ in one.futures())]
            self.walk.calls.release(awaitable, state, node, f"{name!r} of an ExitStack")
            return found
        self.walk.calls.release([stack, *arguments.values], state, node, f"{name!r} of an ExitStack")
        return [(state.store(stack.number, UNKNOWN), UNKNOWN)]

    @staticmethod
    def _itself(stack: ExitStack, _arguments: Arguments, _node: cst.CSTNode, state: State) -> Results:
        return [(state, stack)]

    def _close(
        self, stack: ExitStack, _arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what leaving all of a stack does while nothing has failed."""
        return self._left_by(stack, node, state, None)

    def _exit(
        self, stack: ExitStack, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what leaving all of a stack does, and whether that swallows what has failed."""
        given = arguments.positional()
        kinds = alternatives(given[0]) if len(given) == 3 else ()
        found = [self._left_by(stack, node, state, None if one == NONE else UNKNOWN) for one in kinds]
        return (
            [result for results in found for result in results or ()] if found and None not in found else None
        )

    def _left_by(
        self, stack: ExitStack, node: cst.CSTNode, state: State, failure: Value | None
    ) -> Results | None:
        if type(node) is not cst.Call:
            return None
        left = self._unwound(stack, With(node, node, None, ()), state, failure)
        return [(s, UNKNOWN if swallowed is None else Const.of(swallowed)) for s, swallowed in left]

    def _pop_all(self, stack: ExitStack, _arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return a new stack with all that a stack was to leave, which does not leave it any more."""
        made = ExitStack(self.walk.allocate())
        self.walk.resuming.keeps(made.number, node)
        return [(state.store(made.number, state.heap[stack.number]).store(stack.number, ()), made)]

    def _push(
        self, stack: ExitStack, arguments: Arguments, _node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what a stack does with an object that it leaves without having entered it, or a function."""
        (given, *more) = arguments.values
        leave = self._exit_of(given)
        if more or leave is None:
            return None
        return [(self._pushed(stack, leave, state), given)]

    def _exit_of(self, manager: Value) -> Value | None:
        """Return what leaves an object, or a function that is called to leave something."""
        match manager:
            case FunctionValue():
                return manager
            case Closure(info=info) if info.definition is not None:
                return manager
            case MadeObject(info=info):
                found = self.walk.attributes.method_named(info, ("__aexit__", "__exit__"))
                return None if found is None else FunctionValue(found, manager)
        return None

    def _callback(
        self, stack: ExitStack, arguments: Arguments, _node: cst.CSTNode, state: State
    ) -> Results | None:
        if not arguments.positional():
            return None
        function, *values = arguments.positional()
        made = Partial(function, tuple(values), tuple(arguments.keywords()))
        if state.holds_tracked(made) and not made.runs_source():
            return None  # the library calls it, at a place that is not in the source tree
        return [(self._pushed(stack, made, state), function)]

    def _enter_context(
        self, stack: ExitStack, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results | None:
        (manager, *more) = arguments.values or (UNKNOWN, UNKNOWN)
        if more:
            return None
        match manager:
            case Generator() if manager.tracked() and self.walk.resuming.can_wait(manager, state):
                begun = self.walk.resuming.entered(manager, node, state)
                self.walk.resuming.keeps(stack.number, node)
                return [(self._pushed(stack, waiting, after), value) for after, value, waiting in begun]
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
                left = FunctionValue(leave, manager)
                return [(self._pushed(stack, left, after), value) for after, value in entered]
            case Semaphore(name=name) if name:
                self.walk.mistakes.unknown_limit(node)
        # A file.
        return None if state.holds_tracked(manager) else [(state, UNKNOWN)]

    def _pushed(self, stack: ExitStack, manager: Value, state: State) -> State:
        content = state.heap[stack.number]
        more = added_to(content, UNKNOWN, manager)
        return state.store(
            stack.number, forget([content, ((UNKNOWN, manager),)], state.heap) if more is None else more
        )

    def _waits_inside(self, manager: Generator, state: State) -> bool:
        """Return whether the generator whose code this is waits inside of a block, perhaps of this one."""
        outer = self.walk.consumers[-1] if self.walk.consumers else None
        if outer is None or not outer.pauses or len(self.walk.contexts) != outer.depth + 1:
            return False
        return self.walk.resuming.can_wait(manager, state)

    def _run(self, method: Function, given: Arguments, node: cst.CSTNode, state: State) -> Results:
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
