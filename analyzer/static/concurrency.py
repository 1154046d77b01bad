"""What do asyncio's tasks, gathers and timeouts make of a path?

A coroutine that runs beside the flow that started it is one element of the path, a ``task`` with what it
does, and waiting for it is a ``join``. It is walked where it is started, in a state that knows nothing which
others could change meanwhile. Plain futures need no task: waiting for several is waiting for each.

What goes wrong in a task shows where it is waited for: the path there has the operations the task did until
then. Tasks nobody waits for any more (as the others of a gather after one has failed) may stop anywhere.
"""

# ruff: noqa: N802  (visit_NODE is how libcst spells it)

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TypeGuard, TypeVar

import libcst as cst

from analyzer.static.application import Operation, Path
from analyzer.static.arguments import Arguments
from analyzer.static.catalogue import Catalogue
from analyzer.static.control import Block, Managed
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.evaluation import Evaluation, Points, TooManyPathsError
from analyzer.static.names import Names, target_names
from analyzer.static.state import (
    Content,
    Failure,
    Flow,
    Frame,
    Results,
    State,
    forget,
    join_contents,
)
from analyzer.static.values import (
    LOST,
    UNKNOWN,
    Awaitable,
    ClassValue,
    Closure,
    Comm,
    Const,
    Coroutine,
    External,
    FunctionValue,
    Future,
    Group,
    Instance,
    Lost,
    ObjectRef,
    Slot,
    TupleValue,
    Value,
    alternatives,
    join,
    mapped,
)
from analyzer.static.variables import Context
from analyzer.static.walking import names_in

__all__ = ["Concurrency"]

T = TypeVar("T")

MAX_EFFORT = 2500
"""What walking the tasks of one endpoint may cost, in ways to end that are looked at."""
WALK = 5
"""What walking a task once costs."""

LOOP = "asyncio.<loop>"
TIMEOUT = External("asyncio.<timeout>")
GROUP_ERROR = External("builtins.ExceptionGroup")

Task = tuple[State, Value]
"""A state after something was started, and what to wait for."""


@dataclass(slots=True)
class _Outcome:
    """How tasks of one kind may end.

    Attributes:
        result: What waiting for one gives.
        raised: The exception one ends with, if its path ends with one.
        failures: Where else it may end: what failed, and its path until then.
    """

    result: Value
    raised: Value
    failures: tuple[tuple[Failure, Path], ...] = ()


class Concurrency(Evaluation):
    """Evaluation of ``await`` and of what asyncio offers; statements are the subclass's business."""

    def __init__(self, names: Names, catalogue: Catalogue, diagnostics: Diagnostics) -> None:
        super().__init__(names, catalogue, diagnostics)
        self._outcomes: dict[Operation, _Outcome] = {}
        self._operations: dict[Operation, Operation] = {}
        self._awaiting: list[cst.BaseExpression] = []
        self._cancellable = 0
        self._effort = 0
        self._library: dict[str, Callable[[Arguments, cst.Call, State], Results]] = {
            "asyncio.gather": self._gather,
            "asyncio.wait_for": self._wait_for,
            "asyncio.shield": self._shield,
            "asyncio.create_task": self._create_task,
            "asyncio.ensure_future": self._create_task,
            f"{LOOP}.create_task": self._create_task,
            "asyncio.as_completed": self._as_completed,
            "asyncio.wait": self._wait,
            "asyncio.sleep": self._sleep,
            "asyncio.TaskGroup": self._task_group,
            "asyncio.timeout": lambda _arguments, _node, state: [(state, TIMEOUT)],
            "asyncio.timeout_at": lambda _arguments, _node, state: [(state, TIMEOUT)],
            "asyncio.get_running_loop": lambda _arguments, _node, state: [(state, External(LOOP))],
            "asyncio.get_event_loop": lambda _arguments, _node, state: [(state, External(LOOP))],
        }

    def forget_tasks(self) -> None:
        """Begin with a new endpoint or scenario."""
        self._outcomes.clear()
        self._operations.clear()
        self._effort = 0

    @abstractmethod
    def collected(self) -> AbstractContextManager[Points]:
        """Collect where exceptions can occur in a piece of code, in a ``try`` or not."""

    @abstractmethod
    def run_block(self, block: Block, states: list[State]) -> list[Flow]:
        """Run statements from states."""

    # What expressions call.

    def library(self, name: str, arguments: Arguments, node: cst.Call, state: State) -> Results | None:
        """Return what calling a function of asyncio does; None if it is none, or does nothing special."""
        known = self._library.get(name)
        return None if known is None else known(arguments, node, state)

    def group_method(
        self, group: Group, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a group of tasks does."""
        if name != "create_task":
            return [(state, UNKNOWN)]
        results: Results = []
        for after, task in self._create_task(arguments, node, state):
            content = after.heap[group.number]
            if isinstance(content, Value):
                results.append((after.store(group.number, forget([content, task], after.heap)), task))
            else:
                results.append((after.store(group.number, (*content, (UNKNOWN, task))), task))
        return results

    def future_method(
        self, future: Future, name: str, arguments: Arguments, node: cst.Call, state: State
    ) -> Results:
        """Return what a method of a future or task does."""
        if state.operations[future.index].op != "task":
            if name == "get":
                return self._get(future, node, state)
            self.report("MUP042", f"a future has no operation {name!r}", node, "wait for it with get()")
        elif name == "cancel":
            # From here on it may stop anywhere: nobody waits for the rest of it.
            return [(replace(state, joined=state.joined | {future.index}), UNKNOWN)]
        elif name == "add_done_callback":
            self.release(arguments.values, state, node, node.func)
        return [(state, UNKNOWN)]

    def await_(self, node: cst.Await, state: State) -> Results:
        """Return what ``await`` does."""
        results: Results = []
        self._awaiting.append(node.expression)
        evaluated = self.evaluate(node.expression, state)
        self._awaiting.pop()
        for after, value in evaluated:
            results += value.awaited(node, after, self)
        return results

    def awaited_future(self, future: Future, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for a future or task does."""
        if state.operations[future.index].op == "task":
            self.interruptible(state)
            return [(s, self._result(future, state)) for s in self._joined([future], node, state)]
        results = self._get(future, node, state)
        for after, _ in results:
            self.interruptible(after)
        return results

    def _get(self, future: Future, node: cst.Call | cst.Await, state: State) -> Results:
        self._check_waiting(future.index, node, state)
        return super()._get(future, node, state)

    def _check_waiting(self, index: int, node: cst.CSTNode, state: State) -> None:
        """Report an operation that a task waits for at the same time."""
        if index in state.joined and any(
            operation.op == "task"
            and place not in state.joined
            and any(place + distance == index for distance in operation.outward())
            for place, operation in enumerate(state.operations)
        ):
            self.report(
                "MUP050",
                f"a task that runs meanwhile waits for the same operation as '{self.code(node)}'",
                node,
                "wait for it once, before the task starts or after it has ended",
            )

    def awaited_several(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Return what waiting for what a function of asyncio returned does."""
        if one.kind == "limited":
            return self._limited("timeout", state, lambda: one.values[0].awaited(node, state, self))
        if one.kind == "completed":
            return self._next_completed(one, node, state)
        if one.kind == "wait":
            tasks = [item for item in one.values if isinstance(item, Future)]
            return [
                (s, TupleValue((UNKNOWN, UNKNOWN))) for s in self._joined(tasks, node, state, collect=True)
            ]
        return self._gathered(one, node, state)

    # Timeouts and cancellation.

    def interruptible(self, state: State) -> None:
        """Note that a timeout may end the wait that has just begun."""
        if self._cancellable:
            self.may_fail(state, "cancelled")

    def _limited(self, kind: Failure, state: State, run: Callable[[], T]) -> T:
        """Run code whose waits may be cut off, which shows outside of it as a failure of this kind."""
        self._cancellable += 1
        with self.collected() as points:
            result = run()
        self._cancellable -= 1
        for what, place in points.merged(len(state.frames)):
            cut = what == "cancelled"
            # A group of tasks raises one error for whatever went wrong in it.
            self.may_fail(place, kind if cut or kind == "group" else what)
            if cut:
                self.interruptible(place)
        return result

    def managed(self, node: Managed, state: State) -> list[Flow]:
        """Run the body of ``async with`` a timeout or a group of tasks."""
        flows: list[Flow] = []
        evaluated = self.evaluate(node.call, state)
        if not all(isinstance(value, Group) or value == TIMEOUT for _, value in evaluated):
            return self.run_block((node.plain,), [state])
        for after, value in evaluated:
            entered = after if node.target is None else self.assign(node.target, value, after, node.node)
            if isinstance(value, Group):
                flows += self._grouped(node, value, entered)
            else:
                flows += self._limited("timeout", entered, partial(self.run_block, node.body, [entered]))
        return flows

    def _grouped(self, node: Managed, group: Group, state: State) -> list[Flow]:
        flows: list[Flow] = []
        # A task that fails cancels the others and the body.
        for flow in self._limited("group", state, partial(self.run_block, node.body, [state])):
            content = flow.state.heap[group.number]
            if flow.kind == "raise":
                flows.append(replace(flow, value=GROUP_ERROR))
            elif isinstance(content, Value):
                if content.tracked():
                    self.unknown_future(node.call, flow.state)
                flows.append(flow)
            else:
                tasks = [task for _, task in content if isinstance(task, Future)]
                outer, self.raised = self.raised, []
                joined = self._joined(tasks, node.node, flow.state, kind="group")
                flows += [replace(flow, state=s) for s in joined]
                flows += self.raised
                self.raised = outer
        return flows

    # Functions of asyncio.

    def _awaited_at_once(self, node: cst.Call) -> bool:
        return any(one is node for one in self._awaiting)

    def _given(self, arguments: Arguments, node: cst.Call, state: State) -> list[Value] | None:
        """Return the positional arguments, ``*`` spread; None if that is not known."""
        given: list[Value] = []
        for argument, value in zip(arguments.nodes, arguments.values, strict=True):
            if argument.star == "*":
                items = self.items(value, state)
                if items is None:
                    if state.holds_tracked(value):
                        self.unknown_future(node, state)
                    return None
                given += items
            elif argument.keyword is None and not argument.star:
                given.append(value)
        return given

    def _gather(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        given = self._given(arguments, node, state)
        if given is None:
            return [(state, UNKNOWN)]
        collect = any(
            argument.keyword is not None
            and argument.keyword.value == "return_exceptions"
            and value != Const.of(value=False)
            for argument, value in zip(arguments.nodes, arguments.values, strict=True)
        )
        results: Results = []
        for items in self._combinations(given):
            if self._awaited_at_once(node):
                started: list[tuple[State, tuple[Value, ...]]] = [(state, items)]
            else:
                started = self._started_all(items, node, state)
            for after, handles in started:
                results.append((after, Awaitable("collect" if collect else "gather", handles, node)))
        return results

    def _combinations(self, values: Sequence[Value]) -> Iterator[tuple[Value, ...]]:
        return product(*(alternatives(v) if v.tracked() else (UNKNOWN,) for v in values))

    def _gathered(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        waiting = [item for item in one.values if item.tracked()]
        collect = one.kind == "collect"
        if len(waiting) == 1 and isinstance(waiting[0], Coroutine | Awaitable) and not collect:
            # Nobody else is there to run beside it.
            after_all = waiting[0].awaited(node, state, self)
            return [self.new_list((UNKNOWN,) * len(one.values), s) for s, _ in after_all]
        results: Results = []
        for started, handles in self._started_beside(one.values, node, state):
            after = started
            failures: set[Failure] = set()
            for handle in handles:
                if isinstance(handle, Future) and after.operations[handle.index].op != "task":
                    # All of them are waited for, also when the first one fails.
                    with self.collected() as points:
                        ((after, _),) = self._get(handle, node, after)
                    failures.update(points.states)
                elif isinstance(handle, Lost):
                    self.unknown_future(node, state)
            for kind in sorted(failures if not collect else ()):
                self.may_fail(after, kind)
            self.interruptible(after)
            tasks = [h for h in handles if isinstance(h, Future) and after.operations[h.index].op == "task"]
            values = [self._result(h, after) if isinstance(h, Future) else UNKNOWN for h in handles]
            for joined in self._joined(tasks, node, after, collect=collect):
                results.append(self.new_list(values, joined))
        return results

    def _wait_for(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("fut",))
        options = alternatives(value or UNKNOWN)
        return [(state, Awaitable("limited", (one,), node)) for one in options]

    def _shield(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        if self._awaited_at_once(node):
            value, _ = arguments.get(0, ("arg",))
            return [(state, value or UNKNOWN)]
        return self._create_task(arguments, node, state)

    def _create_task(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("coro", "coro_or_future", "arg"))
        options = alternatives(value or UNKNOWN)
        return [started for one in options for started in self._start(one, node, state)]

    def _as_completed(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("fs",))
        items = self.items(value or UNKNOWN, state)
        if items is None:
            lost = value is not None and state.holds_tracked(value)
            return [(state, LOST if lost else UNKNOWN)]
        results: Results = []
        for combination in self._combinations(items):
            for after, handles in self._started_all(combination, node, state):
                waits = tuple(Awaitable("completed", (one, *handles), node) for one in handles)
                results.append((after, TupleValue(waits)))
        return results

    def _next_completed(self, one: Awaitable, node: cst.Call | cst.Await, state: State) -> Results:
        """Wait for the next of several tasks to end: in the order they were given, whatever happens."""
        tasks = {task.index for task in one.values if isinstance(task, Future)}
        joins = [i for i, o in enumerate(state.operations) if o.op == "join" and o.of in tasks]
        between = state.operations[joins[-1] + 1 :] if joins else ()
        bodies = [state.operations[index].bodies[0].operations for index in sorted(tasks)]
        if between and any(len(body) > 1 for body in bodies):
            self.report(
                "MUP030",
                "communication between tasks of asyncio.as_completed is not analysed yet",
                node,
                "wait for all tasks with asyncio.gather first",
            )
        self.may_fail(state, "timeout")
        return one.values[0].awaited(node, state, self)

    def _wait(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        value, _ = arguments.get(0, ("fs",))
        items = self.items(value or UNKNOWN, state)
        if items is None:
            if value is not None and state.holds_tracked(value):
                self.unknown_future(node, state)
            return [(state, UNKNOWN)]
        plain = any(
            i.tracked() and not (isinstance(i, Future) and state.operations[i.index].op == "task")
            for i in items
        )
        if plain or len(arguments.nodes) > 1:
            self.report(
                "MUP030",
                "asyncio.wait is analysed for all of some tasks only",
                node,
                "use asyncio.gather, or asyncio.timeout around it",
            )
            return [(state, UNKNOWN)]
        return [(state, Awaitable("wait", items, node))]

    def _sleep(self, arguments: Arguments, node: cst.Call, state: State) -> Results:
        if self.role == "client":
            self.report(
                "MUP051",
                "a sleep in a scenario counts as response time",
                node,
                "users think with 'await self.think(seconds)'",
            )
        self.release(arguments.values, state, node, node.func)
        return [(state, UNKNOWN)]

    def _task_group(self, _arguments: Arguments, _node: cst.Call, state: State) -> Results:
        number = self.allocate()
        return [(state.store(number, ()), Group(number))]

    # Starting tasks.

    def _started_all(
        self, items: Iterable[Value], node: cst.Call | cst.Await, state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Start each of several awaitables as a task while the flow goes on."""
        results: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
        for item in items:
            results = [
                (after, (*handles, handle))
                for before, handles in results
                for after, handle in self._start(item, node, before)
            ]
            self._check(results)
        return results

    def _started_beside(
        self, items: Sequence[Value], node: cst.Call | cst.Await, state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Start the coroutines among several awaitables as tasks while the flow waits for all of them."""
        forgotten: dict[int, Content | Value] = {}
        while True:
            view = replace(state, heap={**state.heap, **forgotten})
            results: list[tuple[State, tuple[Value, ...]]] = [(view, ())]
            for item in items:
                results = [
                    (after, (*handles, handle))
                    for before, handles in results
                    for after, handle in self._start_beside(item, node, before)
                ]
                self._check(results)
            changed = {n for s, _ in results for n, content in view.heap.items() if s.heap[n] != content}
            if not changed:
                return results
            # What one of them changes, the others may find changed or not.
            for number in changed:
                contents = [view.heap[number], *(s.heap[number] for s, _ in results)]
                forgotten[number] = _any_of(contents, view)

    def _start_beside(self, item: Value, node: cst.Call | cst.Await, state: State) -> Results:
        if not isinstance(item, Coroutine | Awaitable) or not item.tracked():
            return [(state, item)]
        return self._run(item, node, state, state)

    def _check(self, results: Sequence[object]) -> None:
        if len(results) > self.limit:
            raise TooManyPathsError

    def _spend(self, effort: int) -> None:
        """Give up when tasks with many ways to go on or fail have multiplied beyond measure."""
        self._effort += effort
        if self._effort > MAX_EFFORT:
            raise TooManyPathsError

    def _start(self, item: Value, node: cst.Call | cst.Await, state: State) -> Results:
        """Start an awaitable as a task; return what to wait for."""
        if isinstance(item, Lost):
            self.unknown_future(node, state)
        if isinstance(item, Future) and state.operations[item.index].op == "task":
            return [(state, item)]
        if not isinstance(item, Coroutine | Awaitable | Future) or not item.tracked():
            self.release([] if isinstance(item, Lost) else [item], state, node, node)
            return [(state, UNKNOWN)]
        return self._run(item, node, state, self._private(item, node, state))

    def _run(self, item: Value, node: cst.Call | cst.Await, before: State, start: State) -> Results:
        """Walk a task that is started in ``before`` and knows what ``start`` knows."""
        self._spend(WALK)
        start = replace(start, local_lines=(*start.local_lines[:-1], 0))
        outer, self.raised = self.raised, []
        cancellable, self._cancellable = self._cancellable, 0
        with self.collected() as points:
            flows = [Flow(s, "return", value) for s, value in item.awaited(node, start, self)]
        flows += self.raised
        self.raised, self._cancellable = outer, cancellable
        base = len(before.operations)
        failures = tuple(
            (kind, Path(self._body(state, base), "return", 0, state.local_lines[base:]))
            for kind, state in points.merged(len(before.frames))
        )
        self._spend(len(flows) + len(failures))
        return [self._started(flow, failures, node, before, start) for flow in flows]

    def _started(
        self,
        flow: Flow,
        failures: tuple[tuple[Failure, Path], ...],
        node: cst.Call | cst.Await,
        before: State,
        start: State,
    ) -> Task:
        base = len(before.operations)
        operations, lines = self._body(flow.state, base), flow.state.local_lines[base:]
        ended = _without_futures(flow.state.leave(len(before.frames)), base)
        value = mapped(flow.value, _forgetting(flow.state, base))
        result = LOST if ended.holds_tracked(value) else UNKNOWN
        after = _beside(before, start, ended)
        raises = flow.kind == "raise"
        if not operations and not raises:
            return (after.at_local_work(lines[-1]) if lines[-1] else after), result
        path = Path(operations, "raise" if raises else "return", flow.line if raises else 0, lines)
        operation = self._same(Operation("task", self.module.site(node), bodies=(path,)))
        outcome = self._outcomes.setdefault(operation, _Outcome(result, UNKNOWN))
        outcome.result = join([outcome.result, result])
        outcome.raised = flow.value if raises else UNKNOWN
        if outcome.failures != failures:
            outcome.failures = tuple(dict.fromkeys((*outcome.failures, *failures)))
        waited = frozenset(i for i in flow.state.joined if i < base)
        return replace(after.after(operation), joined=after.joined | waited), Future(base)

    def _body(self, state: State, base: int) -> tuple[Operation, ...]:
        """Return the operations of a task, counted from its first."""
        return tuple(
            self._same(o if o.of is None else replace(o, of=o.of - base)) for o in state.operations[base:]
        )

    def _same(self, operation: Operation) -> Operation:
        """Return the one object that stands for all equal operations: large tasks are compared in no time."""
        return self._operations.setdefault(operation, operation)

    def _private(self, item: Value, node: cst.CSTNode, state: State) -> State:
        """Return what a task can rely on while the flow that started it goes on."""
        mine, others = _Reach(state, self.contexts), _Reach(state, self.contexts)
        mine.value(item)
        for frame in state.frames:
            for value in frame.values():
                others.value(value)
        for number in sorted(mine.numbers & others.numbers):
            content = _shared(state.heap[number], state)
            if content is None:
                self.report(
                    "MUP052",
                    "a list of futures is shared with a task that runs beside this code",
                    node,
                    "hand over a copy: tuple(...)",
                )
            else:
                state = state.store(number, content)
        for depth, name in sorted(mine.names):
            function = self.contexts[depth].function if depth < len(self.contexts) else None
            if function is not None and name in _rebound(function.node):
                frame = state.frames[depth]
                value = LOST if state.holds_tracked(frame[name]) else UNKNOWN
                frames = (*state.frames[:depth], {**frame, name: value}, *state.frames[depth + 1 :])
                state = replace(state, frames=frames)
        return state

    # Waiting for tasks.

    def _result(self, task: Future, state: State) -> Value:
        operation = state.operations[task.index]
        return self._outcomes[operation].result if operation.op == "task" else UNKNOWN

    def _joined(
        self,
        tasks: Sequence[Future],
        node: cst.CSTNode,
        state: State,
        *,
        collect: bool = False,
        kind: Failure | None = None,
    ) -> list[State]:
        """Return the states in which tasks have ended; errors go where they are caught.

        Args:
            tasks: Those to wait for.
            node: What waits for them.
            state: Where they run.
            collect: Errors are results like others, and tell nobody where a task has stopped.
            kind: What an error of a task is to the flow that waits; None = the same.
        """
        for task in tasks:
            self._check_waiting(task.index, node, state)
        waiting = list(dict.fromkeys(task.index for task in tasks if task.index not in state.joined))
        site = self.module.site(node) if isinstance(node, cst.Call | cst.Await) else self.place(node)
        states = [state]
        for index in waiting:
            join_ = Operation("join", site, "early" if collect else "", index)
            outcome = self._outcomes[state.operations[index]]
            (path,) = state.operations[index].bodies
            for what, failed in () if collect else self._failed(index, outcome, state):
                self.may_fail(failed.after(join_), kind or what)
            if path.ends == "raise" and not collect:
                error = outcome.raised if kind is None else GROUP_ERROR
                self.raised.append(Flow(state.after(join_), "raise", error, path.end_line))
                states = []
            states = [s.after(join_) for s in states]
        return states

    def _failed(self, index: int, outcome: _Outcome, state: State) -> Iterator[tuple[Failure, State]]:
        """Yield the states in which a task has ended early."""
        whole = state.operations[index]
        for kind, path in outcome.failures:
            self._spend(1)
            task = whole
            if path.operations != whole.bodies[0].operations:
                task = self._same(replace(whole, bodies=(path,)))
                self._outcomes.setdefault(task, _Outcome(UNKNOWN, UNKNOWN))
            operations = (*state.operations[:index], task, *state.operations[index + 1 :])
            yield kind, replace(state, operations=operations)


def _forgetting(state: State, base: int) -> Callable[[Future], Value]:
    """Return what becomes of the futures of a task outside of it: an answer that is there is no future."""

    def change(future: Future) -> Value:
        return future if future.index < base else UNKNOWN if future.index in state.joined else LOST

    return change


def _without_futures(state: State, base: int) -> State:
    """Return a state at the end of a task as others see it, who cannot wait for what the task has called."""
    change = _forgetting(state, base)
    frames: list[Frame] = [{n: mapped(v, change) for n, v in frame.items()} for frame in state.frames]
    heap: dict[int, Content | Value] = {}
    for number, content in state.heap.items():
        if isinstance(content, Value):
            heap[number] = mapped(content, change)
        else:
            heap[number] = tuple((mapped(k, change), mapped(v, change)) for k, v in content)
    return replace(state, frames=tuple(frames), heap=heap)


def _beside(before: State, start: State, after: State) -> State:
    """Return the state of a flow while a task runs that changes ``start`` to ``after`` at some time."""
    frames: list[Frame] = []
    for mine, known, left in zip(before.frames, start.frames, after.frames, strict=True):
        changed = [n for n, value in left.items() if n not in known or known[n] != value]
        frames.append({**mine, **{n: join([mine[n], left[n]]) if n in mine else left[n] for n in changed}})
    heap: dict[int, Content | Value] = dict(after.heap)
    for number, content in before.heap.items():
        same = after.heap[number] == start.heap[number]
        heap[number] = content if same else join_contents([content, after.heap[number]], after.heap)
    return replace(before, frames=tuple(frames), heap=heap)


def _is_record(content: Content | Value) -> TypeGuard[Content]:
    """Return whether contents are the attributes of an object; those of one without are not known."""
    return not isinstance(content, Value) and content != () and all(isinstance(k, Slot) for k, _ in content)


def _any_of(contents: Sequence[Content | Value], state: State) -> Content | Value:
    """Return what is known of contents that may be any of these, and others like them, at any time."""
    records = [dict(content) for content in contents if _is_record(content)]
    if len(records) < len(contents):
        return forget(contents, state.heap)
    found: list[tuple[Value, Value]] = []
    for key in dict.fromkeys(key for record in records for key in record):
        values = {record[key] for record in records if key in record}
        if len(values) == 1:
            found.append((key, values.pop()))
        else:
            found.append((key, LOST if any(state.holds_tracked(value) for value in values) else UNKNOWN))
    return tuple(found)


def _shared(content: Content | Value, state: State) -> Content | Value | None:
    """Return what a task can rely on in a container others can change; None if that may be a future.

    Of an object, whom it talks through and which other objects it has.
    """
    if _is_record(content):
        lasting = Comm | ObjectRef | Instance | ClassValue | FunctionValue | External
        kept = tuple((key, value if isinstance(value, lasting) else UNKNOWN) for key, value in content)
        held = any(state.holds_tracked(v) for _, v in content if not isinstance(v, lasting))
        return None if held else kept
    left = forget([content], state.heap)
    return None if left.tracked() else left


class _Reach:
    """What can be reached from values: lists and dicts by number, variables of functions around closures."""

    def __init__(self, state: State, contexts: Sequence[Context]) -> None:
        self._state = state
        self._contexts = contexts
        self.numbers: set[int] = set()
        self.names: set[tuple[int, str]] = set()

    def value(self, value: Value) -> None:
        if value.place is not None:
            self._container(value.place)
        elif isinstance(value, Group):
            self._container(value.number)
        elif isinstance(value, Closure):
            self._closure(value)
        else:
            for part in value.parts():
                self.value(part)

    def _container(self, number: int) -> None:
        if number in self.numbers:
            return
        self.numbers.add(number)
        content = self._state.heap.get(number, UNKNOWN)
        for pair in () if isinstance(content, Value) else content:
            for one in pair:
                self.value(one)

    def _closure(self, closure: Closure) -> None:
        mentioned = names_in(closure.info.node)
        depth: int | None = closure.depth
        while depth is not None and depth < len(self._state.frames):
            frame = self._state.frames[depth]
            for name in mentioned & set(frame):
                if (depth, name) not in self.names:
                    self.names.add((depth, name))
                    self.value(frame[name])
            depth = self._contexts[depth].closure if depth < len(self._contexts) else None


def _rebound(function: cst.FunctionDef | cst.Lambda) -> set[str]:
    """Return the variables of a function that may get another value after they have got one."""
    visitor = _Rebinding()
    for parameter in (
        *function.params.posonly_params,
        *function.params.params,
        *function.params.kwonly_params,
    ):
        visitor.count[parameter.name.value] += 1
    function.body.visit(visitor)
    return {name for name, number in visitor.count.items() if number > 1}


class _Rebinding(cst.CSTVisitor):
    """Count how often names are bound; in a loop that is often. Read ``count`` after the visit."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self._loops = 0

    def _bind(self, target: cst.CSTNode) -> None:
        self.count.update(dict.fromkeys(target_names(target), 2 if self._loops else 1))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._bind(node.name)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: ARG002
        return False

    def visit_For(self, node: cst.For) -> None:
        self._loops += 1
        self._bind(node.target)

    def leave_For(self, original_node: cst.For) -> None:  # noqa: ARG002
        self._loops -= 1

    def visit_While(self, node: cst.While) -> None:  # noqa: ARG002
        self._loops += 1

    def leave_While(self, original_node: cst.While) -> None:  # noqa: ARG002
        self._loops -= 1

    def visit_CompFor(self, node: cst.CompFor) -> None:  # noqa: ARG002
        self._loops += 1

    def leave_CompFor(self, original_node: cst.CompFor) -> None:
        self._bind(original_node.target)
        self._loops -= 1

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._bind(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._bind(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._bind(node.name)
