"""How does a generator go on that waits at a ``yield`` while code of other functions runs?

Where a ``with`` statement or a loop takes items, the code of the consumer is walked inside that of the
generator (``analyzer.static.generators``). A stack of context managers enters generators, and where it leaves
them does not show in the text: such a generator is walked until it yields, its variables are put aside, and
what is left of its body is walked when the stack leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.control import Block, Branch, Node, Protected, Run, Step, With
from analyzer.static.generators import BEGUN, NEW, Consumer
from analyzer.static.names import FunctionInfo
from analyzer.static.source import Module
from analyzer.static.state import Failure, Flow, State, merge_flows, values_in
from analyzer.static.values import (
    LOST,
    Const,
    External,
    Generator,
    Leaving,
    Value,
    Waiting,
    alternatives,
)
from analyzer.static.walk import Context, Part, Points, Walk, changed
from analyzer.static.walking import nodes_of

__all__ = ["Resuming"]

POINT = "<point>"
"""Variable of a generator that waits: which of its ``yield`` it is at, as a number."""

THROWN = "<thrown>"
"""Variable of a generator that goes on: how the code ended that it has waited for."""

FUNCTIONS = (cst.FunctionDef, cst.Lambda)


class Resuming(Part):
    """Walks generators until they yield, and later from there on."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._left: dict[cst.Yield, Block | None] = {}
        self._kept: dict[int, tuple[Module, cst.CSTNode]] = {}

    def can_wait(self, generator: Generator, state: State) -> bool:
        """Return whether a generator that has not begun can be walked in two parts."""
        function = generator.context.function
        if function is None or state.heap[generator.number] != NEW:
            return False
        points = self._points(function)
        return bool(points) and all(self._behind(function, one) is not None for one in points)

    def entered(
        self, generator: Generator, node: cst.CSTNode, state: State
    ) -> list[tuple[State, Value, Waiting]]:
        """Walk a generator until it yields; return what it yields, and how it waits."""
        depth, context = len(state.frames), generator.context
        assert context.function is not None  # noqa: S101 - asked before
        found: list[tuple[State, Value, Waiting]] = []
        start = state.store(generator.number, BEGUN).enter(dict(generator.arguments))
        for flow in self._walked(context, generator.body, start):
            frame = flow.state.frames[depth]
            after, (value, *kept) = self.walk.variables.left([flow.value, *frame.values()], flow.state, depth)
            if flow.kind == "paused":
                own = dict(zip(frame, kept, strict=True))
                point = own.pop(POINT)
                waiting = Waiting(
                    context.function, context.closure, context.captured, point, tuple(own.items())
                )
                found.append((after, value, waiting))
            elif flow.kind == "raise":
                self.walk.raised.append(Flow(after, "raise", value, flow.line))
            else:
                missing = External("builtins.RuntimeError")
                self.walk.raised.append(Flow(after, "raise", missing, self.walk.module.line(node)))
        return found

    def forget(self) -> None:
        """Begin with a new endpoint or scenario."""
        self._kept.clear()

    def keeps(self, place: int, node: cst.CSTNode) -> None:
        """Note that a stack has got generators that wait."""
        self._kept.setdefault(place, (self.walk.module, node))

    def check_left(self, state: State, before: State | None = None) -> None:
        """Report generators that still wait where a request ends: what is left of them runs some time.

        Args:
            state: Where it ends, or a task.
            before: Where the task began.
        """
        for place, (module, node) in self._kept.items():
            left = state.heap.get(place, ())
            outside = before is not None and before.heap.get(place, ()) == left
            if not outside and any(one == LOST or _waits(one) for one in values_in(left)):
                what = "a generator that communicates is entered, and perhaps never left: not analysed yet"
                hint = "enter it inside of `with ExitStack() as stack:`, or leave the stack in `finally`"
                module.report(self.walk.diagnostics, "MUP030", what, node, hint)

    def left(
        self, waiting: Waiting, node: cst.CSTNode, state: State, failure: Failure | Value | None
    ) -> list[tuple[State, bool | None]]:
        """Walk the rest of a generator; return whether it swallows what has failed."""
        results: list[tuple[State, bool | None]] = []
        for point in alternatives(waiting.point):
            block = self._behind(waiting.function, self._points(waiting.function)[point.python()[1]])
            results += self._rest(waiting, block or (), node, state, failure)
        return results

    def _rest(
        self,
        waiting: Waiting,
        block: Block,
        node: cst.CSTNode,
        state: State,
        failure: Failure | Value | None,
    ) -> list[tuple[State, bool | None]]:
        depth, line = len(state.frames), self.walk.module.line(node)
        thrown = Leaving("next" if failure is None else "raise")
        match failure:
            case str():
                thrown = replace(thrown, failure=failure)
            case Value():
                thrown = replace(thrown, value=failure, line=line)
        context = Context(waiting.function.module, waiting.function, None, waiting.closure, waiting.captured)
        points = Points()
        # What fails there, and outside of every `try` ends the request, needs no look.
        tries = [*self.walk.tries, points] if isinstance(failure, str) else self.walk.tries
        with changed(self.walk, tries=tries):
            flows = self._walked(context, block, state.enter({**dict(waiting.frame), THROWN: thrown}))
        results: list[tuple[State, bool | None]] = []
        for flow in flows:
            after, (value,) = self.walk.variables.left([flow.value], flow.state, depth)
            if flow.kind == "paused":
                self.walk.refuse("a context manager that yields again", node, "yield once")
            elif flow.kind != "raise":
                results.append((after, failure is not None))
            elif failure is not None and value == (
                Const.of(failure) if isinstance(failure, str) else failure
            ):
                results.append((after, False))
            else:
                self.walk.raised.append(Flow(after, "raise", value, flow.line))
        for kind, after in points.merged(depth):
            if kind == failure and after.operations == state.operations:
                results.append((after, False))
            else:
                self.walk.may_fail(after, kind)
        return results

    def _walked(self, context: Context, block: Block, start: State) -> list[Flow]:
        """Walk a part of the body of a generator."""
        depth, function = len(start.frames) - 1, context.function
        contexts, tries = list(self.walk.contexts), list(self.walk.tries)
        consumer = Consumer("", depth, lambda _, __: [], contexts, tries, manager=True, pauses=True)
        mentioned = frozenset[str]()
        if self.walk.factoring and function is not None:
            mentioned = self.walk.liveness.nested(function.node)
        with (
            self.walk.within(context),
            self.walk.catching() as raised,
            changed(self.walk, consumers=[*self.walk.consumers, consumer]),
            self.walk.liveness.during(depth, mentioned),
        ):
            flows = self.walk.statements.block(block, [start])
        return merge_flows([*flows, *raised])

    def pause(self, node: cst.Yield, value: Value, state: State) -> None:
        """Stop where a generator has yielded a value."""
        function = self.walk.contexts[-1].function
        points = () if function is None else self._points(function)
        number = next(number for number, one in enumerate(points) if one is node)
        self.walk.raised.append(Flow(state.bind(POINT, Const.of(number)), "paused", value))

    @staticmethod
    def _points(function: FunctionInfo) -> Sequence[cst.Yield]:
        """Return where a generator yields, in the order of its text."""
        node = function.definition
        return () if node is None else nodes_of(node.body, (cst.Yield,), FUNCTIONS)

    def _behind(self, function: FunctionInfo, point: cst.Yield) -> Block | None:
        """Return what is left to be done behind a ``yield``; None if that is not followed."""
        if point not in self._left:
            body = self.walk.generators.generator_body(function)
            delegates = body is None or type(point.value) is cst.From
            self._left[point] = None if delegates else self._rest_of(body or (), point)
        return self._left[point]

    def _rest_of(self, block: Block, point: cst.Yield) -> Block | None:
        for number, node in enumerate(block):
            found = self._rest_of_node(node, point)
            if found is not None:
                return (*found, *block[number + 1 :])
        return None

    def _rest_of_node(self, node: Node, point: cst.Yield) -> Block | None:
        match node:
            case Step(value=value, augmented="") if value is point:
                sent = (Step(node.node, cst.Name("None"), node.targets),) if node.targets else ()
                return (Run(node.node, self._resumed), *sent)
            case Protected():
                body, orelse = self._rest_of(node.body, point), self._rest_of(node.orelse, point)
                if body is not None:
                    return (replace(node, body=body),)
                return None if orelse is None else (replace(node, body=orelse, handlers=(), orelse=()),)
            case Branch():
                arms = (self._rest_of(arm.body, point) for arm in node.arms)
                return next((arm for arm in arms if arm is not None), None)
            case With():
                body, plain = self._rest_of(node.body, point), self._rest_of(node.plain or (), point)
                rest = (
                    None if body is None else replace(node, body=body, target=None, plain=plain, entered=True)
                )
                return None if rest is None else (rest,)
        return None

    def _resumed(self, state: State) -> list[Flow]:
        """Return how a generator goes on at its ``yield``."""
        thrown = state.frames[-1].get(THROWN)
        state = state.unbind(THROWN)
        match thrown:
            case Leaving(kind="raise", failure=failure) if failure:
                self.walk.may_fail(state, failure)
                return []
            case Leaving(kind="raise", value=value, line=line):
                return [Flow(state, "raise", value, line)]
        return [Flow(state)]


def _waits(value: Value) -> bool:
    """Return whether a generator that waits is in a value."""
    return isinstance(value, Waiting) or any(map(_waits, value.parts()))
