"""``await``, and what may end it early."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TypeVar

import libcst as cst

from analyzer.static.control import Managed
from analyzer.static.races import ENDED_AND_OTHERS
from analyzer.static.state import Failure, Flow, Results, State, values_in
from analyzer.static.tasks import GROUP_ERROR
from analyzer.static.values import (
    RACED,
    UNKNOWN,
    Awaitable,
    Const,
    Coroutine,
    External,
    Future,
    Group,
    Lost,
    Many,
    TupleValue,
    Unknown,
    Value,
    alternatives,
    join,
    of_kind,
    runs_of,
)
from analyzer.static.walk import Part, Walk, changed

__all__ = ["Waiting"]

T = TypeVar("T")

ALL_ENDED = TupleValue((UNKNOWN, TupleValue(())))
"""What a wait for all of some tasks returns."""

TIMEOUT = External("asyncio.<timeout>")

CANCELLATIONS = (
    Const.of("cancelled"),
    External("asyncio.CancelledError"),
    External("asyncio.exceptions.CancelledError"),
)
"""What the code inside of a timeout raises when the timeout cuts it off: as a failure, and by its class."""


class Waiting(Part):
    """Waits for futures, tasks, and what functions of asyncio return."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._awaiting: list[cst.BaseExpression] = []
        self._cancellable = 0

    def await_(self, node: cst.Await, state: State) -> Results:
        """Return what ``await`` does."""
        results: Results = []
        with changed(self, _awaiting=[*self._awaiting, node.expression]):
            evaluated = self.walk.expressions.evaluate(node.expression, state)
        for after, value in evaluated:
            match value, node.expression:
                case Unknown(), cst.Name():
                    self.ended(after)
            awaited = value.awaited(node, after, self.walk)
            alone = all(isinstance(one, Coroutine) for one in alternatives(value))
            if not alone and any(behind.operations == after.operations for behind, _ in awaited):
                self.walk.tasks.waited(after)
            results += awaited
        return results

    def ended(self, state: State) -> None:
        """Note that something unknown may be a task that has ended, whose error comes out here."""
        for kind in ("get of call", "get of query"):
            self.walk.may_fail(state, kind)

    def awaited_at_once(self, node: cst.Call) -> bool:
        """Return whether a call is what an ``await`` is about."""
        return any(one is node for one in self._awaiting)

    def awaited_future(self, future: Future, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for a future or task does."""
        if state.operations[future.index].op == "task":
            self.interruptible(state)
            joined = self.walk.tasks.joined([future], node, state)
            return [(after, self.walk.tasks.result(future, state)) for after in joined]
        results = self.walk.operations.get(future, node, state)
        for after, _ in results:
            self.interruptible(after)
        return results

    def check_waiting(self, index: int, node: cst.CSTNode, state: State) -> None:
        """Report an operation that a task waits for at the same time."""
        if index in state.joined and any(
            operation.op == "task"
            and place not in state.joined
            and any(place + distance == index for distance in operation.outward())
            for place, operation in enumerate(state.operations)
        ):
            what = f"a task that runs meanwhile waits for the same operation as '{self.walk.code(node)}'"
            hint = "wait for it once, before the task starts or after it has ended"
            self.walk.report("MUP050", what, node, hint)

    def awaited_several(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for what a function of asyncio returned does."""
        match one.kind, one.values:
            case "limited", values:
                with self.walk.catching() as raised:
                    done = self.limited("timeout", state, lambda: values[0].awaited(node, state, self.walk))
                self.walk.raised += map(_timed_out, raised)
                return done
            case "completed", _:
                return self.walk.completing.next_completed(one, node, state)
            case "as_completed", _:
                return [(state, UNKNOWN)]
            case "late", _:
                return self._late(one, node, state)
            case "first", _:
                return self.walk.races.first(one, node, state)
            case "wait", [Many() as many]:
                gathered = self.walk.copies.gathered(many, node, state, collect=True)
                return [(s, ALL_ENDED) for s, _ in gathered]
            case "wait", values if of_kind(values, Many):
                waited = self.walk.copies.together(values, node, state, collect=True)
                return [(s, ALL_ENDED) for s, _ in waited]
            case "wait", values:
                tasks = of_kind(values, Future)
                return [(s, ALL_ENDED) for s in self.walk.tasks.joined(tasks, node, state, collect=True)]
            case "gather" | "collect", [Many() as many]:
                return self.walk.copies.gathered(many, node, state, collect=one.kind == "collect")
            case "gather" | "collect", values if of_kind(values, Many):
                return self.walk.copies.together(values, node, state, collect=one.kind == "collect")
        return self._gathered(one, node, state)

    def _late(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what a wait for tasks does that may end before they do.

        Either they have ended, all of them whole, or any of them may be under way, or have failed: that is
        what a log tells apart.
        """
        under_way = {place for value in one.values for place in value.futures()} - state.joined
        if not under_way:
            return one.values[0].awaited(node, state, self.walk)
        ended = [(_whole(s, under_way), v) for s, v in one.values[0].awaited(node, state, self.walk)]
        cut = state.with_futures(lambda future: RACED if future.index in under_way else future)
        return [*ended, (cut, ENDED_AND_OTHERS)]

    def interruptible(self, state: State) -> None:
        """Note that a timeout may end the wait that has just begun."""
        if self._cancellable:
            self.walk.may_fail(state, "cancelled")

    def cancellable(self, depth: int) -> AbstractContextManager[None]:
        """Walk code whose waits so many timeouts or groups around may cut off."""
        return changed(self, _cancellable=depth)

    def limited(self, kind: Failure, state: State, run: Callable[[], T]) -> T:
        """Run code whose waits may be cut off, which shows outside of it as a failure of this kind."""
        with self.cancellable(self._cancellable + 1), self.walk.collected() as points:
            result = run()
        for what, place in points.merged(len(state.frames)):
            cut = what == "cancelled"
            # A group of tasks raises one error for whatever went wrong in it.
            self.walk.may_fail(place, kind if cut or kind == "group" else what)
            if cut:
                self.interruptible(place)
        return result

    def managed(self, node: Managed, state: State) -> list[Flow]:
        """Run the body of ``async with`` a timeout or a group of tasks."""
        flows: list[Flow] = []
        evaluated = self.walk.expressions.evaluate(node.call, state)
        if not all(isinstance(value, Group) or value == TIMEOUT for _, value in evaluated):
            return self.walk.statements.block((node.plain,), [state])
        for after, value in evaluated:
            entered = after
            if node.target is not None:
                entered = self.walk.assignment.assign(node.target, value, after, node.node)
            if isinstance(value, Group):
                flows += self._grouped(node, value, entered)
            else:
                block = partial(self.walk.statements.block, node.body, [entered])
                flows += map(_timed_out, self.limited("timeout", entered, block))
        return flows

    def _grouped(self, node: Managed, group: Group, state: State) -> list[Flow]:
        flows: list[Flow] = []
        # A task that fails cancels the others and the body.
        with self.walk.watched() as points:
            ended = self.limited("group", state, partial(self.walk.statements.block, node.body, [state]))
        for kind, place in points.merged(len(state.frames)):
            self.walk.may_fail(self._left(group, node, place), kind)
        for flow in ended:
            content = flow.state.heap[group.number]
            if flow.kind == "raise":
                left = self._left(group, node, flow.state)
                flows.append(replace(flow, state=left, value=GROUP_ERROR))
            elif isinstance(content, Value):
                flows += self._joined_copies(content, node, flow)
            else:
                tasks = of_kind(values_in(content), Future)
                with self.walk.catching() as raised:
                    joined = self.walk.tasks.joined(tasks, node.node, flow.state, kind="group")
                flows += [replace(flow, state=s) for s in joined]
                flows += raised
        return flows

    def _joined_copies(self, content: Value, node: Managed, flow: Flow) -> list[Flow]:
        """Return how a group ends whose tasks a loop of unknown length has started."""
        runs = runs_of(content)
        if runs is not None:
            with self.walk.catching() as raised:
                joined = self.walk.copies.grouped(runs, node.node, flow.state)
            if joined is not None:
                return [*(replace(flow, state=one) for one in joined), *raised]
        if content.tracked():
            self.walk.calls.unknown_future(node.call, flow.state)
        return [flow]

    def _left(self, group: Group, node: Managed, state: State) -> State:
        """Return the state behind a group that an exception leaves: what is left in it is cancelled."""
        copies = self.walk.copies

        def wait(many: Many, before: State) -> list[Flow] | None:
            return copies.joined(many, node.node, before, collect=True)

        runs = runs_of(state.heap[group.number])
        if runs is None:
            self.walk.calls.unknown_future(node.call, state)
        return copies.abandoned(of_kind(runs or (), Many), node.call, state, wait)

    def _gathered(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        collect = one.kind == "collect"
        match [item for item in one.values if item.tracked()]:
            case [Coroutine() | Awaitable() as alone] if not collect:
                # No other task is there to run beside it.
                after_all = alone.awaited(node, state, self.walk)
                return [self.walk.expressions.new_list((UNKNOWN,) * len(one.values), s) for s, _ in after_all]
        results: Results = []
        for started, handles in self.walk.tasks.started_beside(one.values, node, state):
            after = started
            failures: set[Failure] = set()
            tasks: list[Future] = []
            for handle in handles:
                match handle:
                    case Future(index=index) if after.operations[index].op == "task":
                        tasks.append(handle)
                    case Future():
                        # All of them are waited for, also when the first one fails.
                        with self.walk.collected() as points:
                            ((after, _),) = self.walk.operations.get(handle, node, after)
                        failures.update(points.states)
                    case Lost():
                        self.walk.calls.unknown_future(node, state)
            for kind in sorted(failures if not collect else ()):
                self.walk.may_fail(after, kind)
            self.interruptible(after)
            values = [self.walk.tasks.result(h, after) if isinstance(h, Future) else UNKNOWN for h in handles]
            for joined in self.walk.tasks.joined(tasks, node, after, collect=collect):
                results.append(self.walk.expressions.new_list(values, joined))
        return results


def _timed_out(flow: Flow) -> Flow:
    """Return how code ends that a timeout may have cut off: its cancellation is a timeout outside."""
    if flow.kind != "raise" or not any(one in CANCELLATIONS for one in alternatives(flow.value)):
        return flow
    return replace(flow, value=join([flow.value, Const.of("timeout")]))


def _whole(state: State, tasks: Collection[int]) -> State:
    """Return a state in which tasks that have ended did so at their ends."""
    operations = tuple(
        replace(o, target="") if o.op == "join" and o.target == "early" and o.of in tasks else o
        for o in state.operations
    )
    return replace(state, operations=operations)
