"""What does a loop do that waits for several tasks in whatever order they end?

Such is a loop over ``asyncio.as_completed``, or over a set of tasks. If it waits for all of them, the order
is of no account: it is walked in that in which they were given. Where an exception leaves it, the order says
which of the others have ended: none has to. Where anything else leaves it, the model would have to wait for
the first of several, whichever that is, so it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import libcst as cst

from analyzer.static.application import Operation
from analyzer.static.copies import with_early
from analyzer.static.keyed_copies import Keyed
from analyzer.static.state import Failure, Flow, Results, State, merge_flows, united
from analyzer.static.values import (
    UNKNOWN,
    Awaitable,
    Coroutine,
    Future,
    ListRef,
    Many,
    SetRef,
    Value,
    alternatives,
    many_of,
    of_kind,
)
from analyzer.static.walk import Part

__all__ = ["FIRST_REWRITE", "Completing"]

FIRST_REWRITE = (
    "wait for all: asyncio.gather, or asyncio.wait without a limit; or ask one after the other, each with"
    " asyncio.wait_for, until one answers"
)

ANSWERS: frozenset[Failure] = frozenset({"call", "query", "get of call", "get of query"})
"""Failures of what a task does."""


class Completing(Part):
    """Walks loops over tasks in the order in which they end."""

    def items(self, iterable: Value, state: State) -> tuple[Value, ...] | None:
        """Return what there is to wait for, in any order; None if a loop is about something else."""
        match iterable:
            case Awaitable(kind="as_completed", values=values):
                known = not of_kind(values, Many)
                waits = (replace(iterable, kind="completed", values=(one, *values)) for one in values)
                return tuple(waits) if known else None
            case SetRef():
                members = iterable.members(state)
                return members if all(_task(one, state) for one in members or ()) else None
        return None

    def runs(self, iterable: Awaitable, state: State) -> tuple[State, tuple[Value, ...]] | None:
        """Return the tasks that it waits for, as many as a loop has left tasks or coroutines."""
        runs: list[Value] = []
        for one in iterable.values:
            started: tuple[State, Value] | None = (state, one)
            if type(one) is Many and not any(True for _ in one.one.futures()):
                started = self._started(one, iterable.made_by, state)
            if started is None:
                return None
            state, run = started
            runs.append(run)
        return state, tuple(runs)

    def _started(self, many: Many, node: cst.Call, state: State) -> tuple[State, Many] | None:
        """Start a task for each of any number of coroutines."""
        tasks = ListRef(self.walk.allocate())

        def iteration(start: State) -> list[Flow]:
            flows = []
            for one in alternatives(many.one):
                begun = [(start, one)]
                if isinstance(one, Coroutine):
                    begun = self.walk.tasks.start(one, node, start)
                flows += [Flow(tasks.grown(UNKNOWN, task, after)) for after, task in begun]
            return flows

        loop, start, flows = self.walk.loops.repeated(node, state.store(tasks.number, ()), iteration)
        ends = [loop.end(Flow(start)), *(loop.end(flow) for flow in flows)]
        after = united(end.state for end in ends)
        left = many_of(after.heap[tasks.number])
        return None if left is None else (after, replace(left, most=many.most))

    def next_completed(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Wait for the next of several tasks to end: in the order they were given, whatever happens."""
        self.walk.may_fail(state, "timeout")
        return one.values[0].awaited(node, state, self.walk)

    @contextmanager
    def whole(
        self, items: Sequence[Value], node: cst.CSTNode, before: State
    ) -> Iterator[Callable[[Flow], Flow]]:
        """Walk a loop that waits for these in the order given, and see to it that nothing depends on that.

        Args:
            items: What the loop is over.
            node: It.
            before: The state before it.

        Yields:
            What says how the code behind the loop goes on, given how the loop has ended.
        """
        tasks = frozenset(index for item in items for one in _waited(item) for index in _task(one, before))

        def behind(flow: Flow) -> Flow:
            if flow.kind == "raise":
                return replace(flow, state=self._apart(flow.state, tasks, node))
            if not tasks <= flow.state.joined:
                what = "this waits for the first of several tasks, whichever that is"
                self.walk.refuse(what, node, FIRST_REWRITE)
            if _communicates_between(flow.state, tasks):
                self._between(node)
            return flow

        with self.walk.catching() as raised, self.walk.watched() as points:
            yield behind
        self.walk.raised += map(behind, raised)
        for kind, states in points.states.items():
            for state in states:
                self.walk.may_fail(self._apart(state, tasks, node, failed=kind in ANSWERS), kind)

    def waited(
        self,
        iterable: Value,
        node: cst.CSTNode,
        state: State,
        each: Callable[[State, Value], list[Flow]],
        keyed: Callable[[State], Keyed | None],
    ) -> list[Flow] | None:
        """Walk a loop that waits for all that an earlier loop has made; None if it is another one.

        Args:
            iterable: What it is over.
            node: It.
            state: The state before it.
            each: Walks an iteration, given the item.
            keyed: Returns the dict that it looks up in each iteration, if it is over something else.

        Returns:
            How it ends ("next"), and how it is left before it has waited for all.
        """
        match iterable:
            case Awaitable(kind="as_completed", values=values) if of_kind(values, Many):
                begun = self.runs(iterable, state)
                after, runs = begun or (state, ())
                flows = self._several(runs, node, after, self._patient(each), in_order=False)
                return [self._refused(node, state)] if flows is None else flows
        several = self.walk.copies.runs(iterable, state) or ()
        if any(any(True for _ in many.one.futures()) for many in of_kind(several, Many)):
            return self._several(several, node, state, each, in_order=not isinstance(iterable, SetRef))
        found = keyed(state)
        return found and self.walk.copies.over(found.many, node, state, found.each(each), leaves=True)

    def _patient(self, each: Callable[[State, Value], list[Flow]]) -> Callable[[State, Value], list[Flow]]:
        """Return what walks an iteration whose wait may come to its limit before any task has ended."""

        def patient(start: State, item: Value) -> list[Flow]:
            self.walk.may_fail(start, "timeout")
            return each(start, item)

        return patient

    def _several(
        self,
        runs: Sequence[Value],
        node: cst.CSTNode,
        state: State,
        each: Callable[[State, Value], list[Flow]],
        *,
        in_order: bool,
    ) -> list[Flow] | None:
        """Walk a loop that waits for runs of futures one after the other; None if it does anything else.

        Args:
            runs: Single futures, and `Many`.
            node: The loop.
            state: The state before it.
            each: Walks an iteration, given the item.
            in_order: It waits for them in this order, not in that in which they end.
        """
        copies = self.walk.copies
        if len(runs) == 1:
            many = runs[0]
            return copies.over(many, node, state, each, leaves=in_order) if type(many) is Many else None
        places = {place for run in runs for place in run.futures()}

        def abandoned(left: list[Many], place: State) -> State:
            # What comes behind an exception is not waited for, nor is what came before it in any order.
            after = copies.abandoned(
                left, node, place, lambda many, start: copies.over(many, node, start, each, partly=True)
            )
            return after if in_order else with_early(after, places)

        with self.walk.trying() as trial:
            flows: list[Flow] | None = [Flow(state)] if runs else None
            for number, run in enumerate(runs):
                with self.walk.catching() as raised, self.walk.watched() as points:
                    flows = None if flows is None else self._run(run, node, flows, each)
                left = of_kind(runs[number + 1 :], Many)
                for kind, place in points.merged(len(state.frames)):
                    self.walk.may_fail(abandoned(left, place), kind)
                self.walk.raised += [replace(flow, state=abandoned(left, flow.state)) for flow in raised]
            trial.kept = flows is not None
        return flows

    def _run(
        self,
        run: Value,
        node: cst.CSTNode,
        flows: Sequence[Flow],
        each: Callable[[State, Value], list[Flow]],
    ) -> list[Flow] | None:
        """Walk the iterations for one run, from the states in which those before it have ended."""
        done: list[Flow] = []
        for before in flows:
            if type(run) is Many:
                found = self.walk.copies.over(run, node, before.state, each)
            else:
                found = self._alone(run, before.state, each)
            if found is None:
                return None
            values = [(flow, flow.state.content_of([before.value, flow.value])) for flow in found]
            done += [replace(flow, kind="next", value=value) for flow, value in values]
        return merge_flows(done)

    def _alone(
        self, item: Value, state: State, each: Callable[[State, Value], list[Flow]]
    ) -> list[Flow] | None:
        """Walk the iteration for a single item; None if it does not just wait."""
        flows: list[Flow] = []
        for flow in each(state, item):
            waits = all(o.op in ("get", "join") for o in flow.state.operations[len(state.operations) :])
            if flow.kind == "raise" and waits:
                self.walk.raised.append(flow)
            elif flow.kind in ("next", "continue") and waits:
                flows.append(flow)
            else:
                return None
        return flows

    def _refused(self, node: cst.CSTNode, state: State) -> Flow:
        """Report a loop over any number of tasks that does not just wait for each."""
        what = "a loop over any number of tasks as they end is analysed if it waits for all, and does no more"
        self.walk.report("MUP030", what, node, FIRST_REWRITE)
        return Flow(state)

    def _between(self, node: cst.CSTNode) -> None:
        what = "communication between tasks that end in any order is not analysed yet"
        self.walk.report("MUP030", what, node, "wait for all tasks with asyncio.gather first")

    def _apart(
        self, state: State, tasks: frozenset[int], node: cst.CSTNode, *, failed: bool = False
    ) -> State:
        """Return a state in which an exception leaves the loop: it has waited for no other task than this."""
        joins = [i for i, o in enumerate(state.operations) if o.op == "join" and o.of in tasks]
        last = joins[-1] if joins else 0
        ended = bool(joins) and last == len(state.operations) - 1
        if ended and (failed or _raises(state.operations, last)):
            joins.pop()
        if not joins or (tasks <= state.joined and not ended):
            return state
        if any(
            i not in joins for i in range(joins[0], len(state.operations) - (ended and last not in joins))
        ):
            self._between(node)
            return state
        return _without(state, joins)


def _without(state: State, joins: Sequence[int]) -> State:
    """Return a state that has not waited for some tasks; at most one other wait stands behind these."""
    lines = list(state.local_lines)
    for index in reversed(joins):
        lines[index : index + 2] = [lines[index] or lines[index + 1]]
    left = {state.operations[index].of for index in joins}
    return replace(
        state,
        operations=tuple(o for i, o in enumerate(state.operations) if i not in joins),
        local_lines=tuple(lines),
        joined=state.joined - {of for of in left if of is not None},
    )


def _communicates_between(state: State, tasks: frozenset[int]) -> bool:
    """Return whether the flow does something between its waits for tasks whose order it may show."""
    joins = [i for i, o in enumerate(state.operations) if o.op == "join" and o.of in tasks]
    between = set(range(joins[0], joins[-1])) - set(joins) if joins else ()
    return bool(between) and any(len(state.operations[i].bodies[0].operations) > 1 for i in tasks)


def _raises(operations: Sequence[Operation], join: int) -> bool:
    task = operations[join].of
    return task is not None and operations[task].bodies[0].ends == "raise"


def _waited(item: Value) -> tuple[Value, ...]:
    return item.values[:1] if isinstance(item, Awaitable) else (item,)


def _task(value: Value, state: State) -> tuple[int, ...]:
    """Return where in the path a task has begun, as the only item; nothing if the value is no task."""
    match value:
        case Future(index=index) if state.operations[index].op == "task":
            return (index,)
    return ()
