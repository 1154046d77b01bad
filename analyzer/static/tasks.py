"""Code that runs beside the flow that started it.

Such a coroutine is one element of the path, a ``task`` with what it does, and waiting for it is a ``join``.
It is walked where it is started, in a state that knows nothing which others could change meanwhile. Plain
futures need no task: waiting for several is waiting for each.

What goes wrong in a task shows where it is waited for: the path there has the operations the task did until
then. Tasks that are not waited for any more, as the others of a gather after one has failed, may stop
anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import libcst as cst

from analyzer.static.application import Operation, Path
from analyzer.static.state import (
    Content,
    Contents,
    Failure,
    Flow,
    Frame,
    Results,
    State,
    forget,
    held_in,
    join_contents,
    mapped_contents,
)
from analyzer.static.syntax import named_parameters, target_names
from analyzer.static.values import (
    LOST,
    UNKNOWN,
    Awaitable,
    ClassValue,
    Closure,
    Comm,
    Coroutine,
    External,
    FunctionValue,
    Future,
    Group,
    Instance,
    Lost,
    ObjectRef,
    Unknown,
    Value,
    alternatives,
    join,
    mapped,
    rows_of,
)
from analyzer.static.values.containers import is_record
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Context, Part, TooManyPathsError, Walk
from analyzer.static.walking import names_in, nodes_of

__all__ = ["GROUP_ERROR", "Outcome", "Tasks", "asks", "rebound"]

MAX_EFFORT = 2500
"""What walking the tasks of one endpoint may cost, in ways to end that are looked at."""

WALK = 5
"""What walking a task once costs."""

GROUP_ERROR = External("builtins.ExceptionGroup")


@dataclass(frozen=True, slots=True)
class _Untouched(Unknown):
    """What a task knows nothing of and has not changed: whatever it changes is something else then."""


UNTOUCHED = _Untouched()

Task = tuple[State, Value]
"""A state after something was started, and what to wait for."""


@dataclass(slots=True)
class Outcome:
    """How tasks of one kind may end.

    Attributes:
        result: What waiting for one gives.
        raised: The exception one ends with, if its path ends with one.
        failures: Where else it may end: what failed, and its path until then.
        sleeps_first: It may sleep before it asks for anything.
        waits_first: It may sleep, or wait for anything else, before that.
    """

    result: Value
    raised: Value
    failures: tuple[tuple[Failure, Path], ...] = ()
    sleeps_first: bool = False
    waits_first: bool = False


@dataclass(slots=True)
class _Begun:
    """A task being walked: the operations before it, and whether it sleeps or waits before its first."""

    base: int
    sleeps: bool = False
    waits: bool = False


class Tasks(Part):
    """Starts tasks, and waits for them."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._outcomes: dict[Operation, Outcome] = {}
        self._operations: dict[Operation, Operation] = {}
        self._effort = 0
        self._sleeping: list[_Begun] = []

    def forget_tasks(self) -> None:
        """Begin with a new endpoint or scenario."""
        self._outcomes.clear()
        self._operations.clear()
        self._effort = 0
        self._sleeping.clear()

    def started_all(
        self, items: Iterable[Value], node: cst.Call | cst.Await, state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Start each of several awaitables as a task while the flow goes on."""
        return self._each(items, state, lambda item, before: self.start(item, node, before))

    def _each(
        self, items: Iterable[Value], state: State, start: Callable[[Value, State], Results]
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Start one after the other; return what there is to wait for in every state."""
        results: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
        for item in items:
            results = [
                (after, (*handles, handle))
                for before, handles in results
                for after, handle in start(item, before)
            ]
            if len(results) > self.walk.limit:
                raise TooManyPathsError
        return results

    def started_beside(
        self, items: Sequence[Value], node: cst.Call | cst.Await, state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Start the coroutines among several awaitables as tasks while the flow waits for all of them."""
        forgotten: dict[int, Contents] = {}
        while True:
            view = replace(state, heap={**state.heap, **forgotten})
            results = self._each(items, view, lambda item, before: self._start_beside(item, node, before))
            kept = self.walk.attributes.kept_before(state, [s for s, _ in results], node)
            if kept is not None:
                state = kept
                continue
            changed = {
                number
                for after, _ in results
                for number, content in view.heap.items()
                if after.heap[number] != content and self._known_to_others(after, number, view) != content
            }
            if not changed:
                return results
            # What one of them changes, the others may find changed or not.
            for number in changed:
                contents = [view.heap[number], *(self._known_to_others(s, number, view) for s, _ in results)]
                forgotten[number] = _any_of(contents, view)

    def _known_to_others(self, after: State, number: int, view: State) -> Contents:
        """Return what a coroutine has left in a container; what it has made itself is in no other's heap."""

        def known(value: Value) -> Value:
            places = (one.place for one in alternatives(value))
            made = any(place is not None and place not in view.heap for place in places)
            return self.walk.lookups.freeze(value, after) if made else value

        return mapped_contents(after.heap[number], known)

    def _start_beside(self, item: Value, node: cst.Call | cst.Await, state: State) -> Results:
        match item:
            case Coroutine() | Awaitable() if item.tracked():
                return self._run(item, node, state, state)
        return [(state, item)]

    def _spend(self, effort: int) -> None:
        """Give up when tasks with many ways to go on or fail have multiplied beyond measure."""
        self._effort += effort
        if self._effort > MAX_EFFORT:
            raise TooManyPathsError

    def start(self, item: Value, node: cst.Call | cst.Await, state: State) -> Results:
        """Start an awaitable as a task; return what to wait for."""
        match item:
            case Future(index=index) if state.operations[index].op == "task":
                return [(state, item)]
            case Coroutine() | Awaitable() | Future() if item.tracked():
                before = _before_call(item, node, state)
                return self._run(item, node, before, self._private(item, node, state))
            case Lost():
                self.walk.calls.unknown_future(node, state)
            case _:
                self.walk.calls.release([item], state, node, node)
        return [(state, UNKNOWN)]

    def _run(self, item: Value, node: cst.Call | cst.Await, before: State, start: State) -> Results:
        """Walk a task that is started in ``before`` and knows what ``start`` knows."""
        self._spend(WALK)
        start = replace(start, local_lines=(*start.local_lines[:-1], 0))
        begun = _Begun(len(before.operations))
        self._sleeping.append(begun)
        with (
            self.walk.catching() as raised,
            self.walk.waiting.cancellable(0),
            self.walk.collected() as points,
            self.walk.copies.starting(len(before.operations)) as starting,
            self.walk.beginning(len(before.operations), task=True),
        ):
            flows = [Flow(s, "return", value) for s, value in item.awaited(node, start, self.walk)]
        flows += raised
        ends = [flow.state for flow in flows] + [
            state for states in points.states.values() for state in states
        ]
        for state in ends:
            self.walk.resuming.check_left(state, start)
        self._sleeping.pop()
        if begun.waits:
            self.waited(before)
        base = len(before.operations)
        failures = tuple(
            (kind, Path(self._body(state, base), "return", 0, state.local_lines[base:]))
            for kind, state in points.merged(len(before.frames))
        )
        self._spend(len(flows) + len(failures))
        whole = [self._body(flow.state, base) for flow in flows if flow.kind == "return"]
        limit = starting.limit(whole)
        if limit == 0:
            self.walk.copies.not_followed(node)
        started = [self._started(flow, failures, node, before, start, limit or None) for flow in flows]
        for after, handle in started:
            if isinstance(handle, Future):
                outcome = self._outcomes[after.operations[handle.index]]
                outcome.sleeps_first |= begun.sleeps
                outcome.waits_first |= begun.waits
        return started

    def slept(self, state: State) -> None:
        """Note that the task being walked sleeps."""
        for begun in self._sleeping[-1:]:
            begun.sleeps |= len(state.operations) == begun.base
        self.waited(state)

    def waited(self, state: State) -> None:
        """Note that the task being walked waits for something that is no operation."""
        for begun in self._sleeping[-1:]:
            begun.waits |= not asks(state.operations[begun.base :])

    def _started(
        self,
        flow: Flow,
        failures: tuple[tuple[Failure, Path], ...],
        node: cst.Call | cst.Await,
        before: State,
        start: State,
        limit: int | None,
    ) -> Task:
        base = len(before.operations)
        operations, lines = self._body(flow.state, base), flow.state.local_lines[base:]
        # Others cannot wait for what the task has called.
        outside = _forgetting(flow.state, base)
        ended = flow.state.leave(len(before.frames)).with_futures(outside)
        result = ended.content_of([mapped(flow.value, outside)])
        after = _beside(before, start, ended)
        raises = flow.kind == "raise"
        if not operations and not raises:
            return (after.at_local_work(lines[-1]) if lines[-1] else after), result
        path = Path(operations, "raise" if raises else "return", flow.line if raises else 0, lines)
        site, held = self.walk.module.site(node), self.walk.held
        operation = self._same(Operation("task", site, bodies=(path,), limit=limit, holding=held))
        outcome = self._outcomes.setdefault(operation, Outcome(result, UNKNOWN))
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
        mine, others = _Reach(state, self.walk.contexts), _Reach(state, self.walk.contexts)
        mine.value(item)
        for frame in state.frames:
            for value in frame.values():
                others.value(value)
        for number in sorted(mine.numbers & others.numbers):
            content = _shared(state.heap[number], state)
            if content is None:
                what = "a list of futures is shared with a task that runs beside this code"
                self.walk.report("MUP052", what, node, "hand over a copy: tuple(...)")
            else:
                state = state.store(number, content)
        for depth, name in sorted(mine.names):
            function = self.walk.contexts[depth].function if depth < len(self.walk.contexts) else None
            if function is not None and name in rebound(function.node):
                frame = state.frames[depth]
                value = LOST if state.holds_tracked(frame[name]) else UNTOUCHED
                frames = (*state.frames[:depth], {**frame, name: value}, *state.frames[depth + 1 :])
                state = replace(state, frames=frames)
        return state

    def outcome(self, task: Operation) -> Outcome:
        """Return how tasks of one kind may end."""
        return self._outcomes[task]

    def result(self, task: Future, state: State) -> Value:
        """Return what a task returns."""
        operation = state.operations[task.index]
        return self._outcomes[operation].result if operation.op == "task" else UNKNOWN

    def joined(
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
            collect: Errors are results like others, and do not tell where a task has stopped.
            kind: What an error of a task is to the flow that waits; None = the same.
        """
        for task in tasks:
            self.walk.waiting.check_waiting(task.index, node, state)
        waiting = list(dict.fromkeys(task.index for task in tasks if task.index not in state.joined))
        site = self.walk.site(node)
        for index in {task.index for task in tasks} & state.joined:
            self.ended(index, state)
        states = [state]
        for index in waiting:
            join_ = Operation("join", site, "early" if collect else "", index, holding=self.walk.held)
            outcome = self._outcomes[state.operations[index]]
            if state.operations[index].limit and not self.walk.copies.waiting:
                self.walk.copies.not_followed(node)  # it is waited for one by one, with others or alone
            (path,) = state.operations[index].bodies
            for what, failed in () if collect else self._failed(index, outcome, state):
                self.walk.may_fail(failed.after(join_), kind or what)
            if path.ends == "raise" and not collect:
                error = outcome.raised if kind is None else GROUP_ERROR
                self.walk.raised.append(Flow(state.after(join_), "raise", error, path.end_line))
                states = []
            states = [s.after(join_) for s in states]
        return states

    def ended(self, index: int, state: State) -> None:
        """Note that the error of a task that has ended may come out here."""
        outcome = self._outcomes.get(state.operations[index])
        for kind, _ in () if outcome is None else outcome.failures:
            self.walk.may_fail(state, kind)

    def _failed(self, index: int, outcome: Outcome, state: State) -> Iterator[tuple[Failure, State]]:
        """Yield the states in which a task has ended early."""
        whole = state.operations[index]
        for kind, path in outcome.failures:
            self._spend(1)
            task = whole
            if path.operations != whole.bodies[0].operations:
                task = self._same(replace(whole, bodies=(path,)))
                self._outcomes.setdefault(task, Outcome(UNKNOWN, UNKNOWN))
            operations = (*state.operations[:index], task, *state.operations[index + 1 :])
            yield kind, replace(state, operations=operations)


def _before_call(item: Value, node: cst.Call | cst.Await, state: State) -> State:
    """Return the state before a call that is made for nothing but a task, of which it is a part then.

    ``asyncio.create_task(comm.call(...))`` is a task that calls and waits.
    """
    last = len(state.operations) - 1
    match node:
        case cst.Call(args=arguments) if item == Future(last) and last not in state.joined:
            if any(type(argument.value) is cst.Call for argument in arguments):
                *lines, line, own = state.local_lines
                return replace(state, operations=state.operations[:-1], local_lines=(*lines, line or own))
    return state


def asks(operations: Iterable[Operation]) -> bool:
    """Return whether code that does this has asked for something: loops may have done nothing."""
    return any(
        o.op in ("call", "query")
        or (o.op in ("choice", "task", "race") and all(asks(body.operations) for body in o.bodies))
        for o in operations
    )


def _forgetting(state: State, base: int) -> Callable[[Future], Value]:
    """Return what becomes of the futures of a task outside of it: an answer that is there is no future."""

    def change(future: Future) -> Value:
        return future if future.index < base else UNKNOWN if future.index in state.joined else LOST

    return change


def _beside(before: State, start: State, after: State) -> State:
    """Return the state of a flow while a task runs that changes ``start`` to ``after`` at some time."""
    frames: list[Frame] = []
    for mine, known, left in zip(before.frames, start.frames, after.frames, strict=True):
        changed = [n for n, value in left.items() if n not in known or known[n] != value]
        frames.append({**mine, **{n: join([mine[n], left[n]]) if n in mine else left[n] for n in changed}})
    heap: dict[int, Contents] = dict(after.heap)
    for number, content in before.heap.items():
        same = after.heap[number] == start.heap[number]
        heap[number] = content if same else join_contents([content, after.heap[number]], after.heap)
    return replace(before, frames=tuple(frames), heap=heap)


def _is_record(content: Contents) -> TypeGuard[Content]:
    """Return whether contents are the attributes of an object; those of one without are not known."""
    rows = rows_of(content)
    return bool(rows) and is_record(rows or ())


def _any_of(contents: Sequence[Contents], state: State) -> Contents:
    """Return what is known of contents that may be any of these, and others like them, at any time."""
    records = [dict(content) for content in contents if _is_record(content)]
    if len(records) < len(contents):
        return forget(contents, state.heap)
    found: list[tuple[Value, Value]] = []
    for key in dict.fromkeys(key for record in records for key in record):
        values = {record[key] for record in records if key in record}
        # What of them communicates, others may use as well.
        uses = [value for one in values for value in alternatives(one) if isinstance(value, MadeObject)]
        found.append((key, join(values) if uses or len(values) == 1 else state.content_of(values)))
    return tuple(found)


def _shared(content: Contents, state: State) -> Contents | None:
    """Return what a task can rely on in a container others can change; None if that may be a future.

    Of an object: its communication and the other objects it has.
    """
    if _is_record(content):
        lasting = Comm | ObjectRef | Instance | ClassValue | FunctionValue | External
        kept = tuple((key, value if isinstance(value, lasting) else UNTOUCHED) for key, value in content)
        held = any(state.holds_tracked(v) for _, v in content if not isinstance(v, lasting))
        return None if held else kept
    return None if forget([content], state.heap).tracked() else UNTOUCHED


class _Reach:
    """What can be reached from values: lists and dicts by number, variables of functions around closures."""

    def __init__(self, state: State, contexts: Sequence[Context]) -> None:
        self._state = state
        self._contexts = contexts
        self.numbers: set[int] = set()
        self.names: set[tuple[int, str]] = set()

    def value(self, value: Value) -> None:
        match value:
            case Group(number=number):
                self._container(number)
            case Closure():
                self._closure(value)
            case _ if value.place is not None:
                self._container(value.place)
            case _:
                for part in value.parts():
                    self.value(part)

    def _container(self, number: int) -> None:
        if number in self.numbers:
            return
        self.numbers.add(number)
        for one in held_in(self._state.heap.get(number, UNKNOWN)):
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


LOOPS = (cst.CompFor, cst.For, cst.While)
BINDING: tuple[type[cst.CSTNode], ...] = (cst.AnnAssign, cst.AsName, cst.AssignTarget, cst.AugAssign)
BINDING += (*LOOPS, cst.FunctionDef, cst.NamedExpr)
CLOSED = (*LOOPS, cst.FunctionDef, cst.Lambda)


def rebound(function: cst.FunctionDef | cst.Lambda) -> set[str]:
    """Return the variables of a function that may get another value after they have got one."""
    count = Counter(parameter.name.value for parameter in named_parameters(function.params))
    _count_bound(function.body, 1, count)
    return {name for name, number in count.items() if number > 1}


def _count_bound(root: cst.CSTNode, times: int, count: Counter[str]) -> None:
    """Count how often names are bound in a piece of code that may run so often; in a loop that is often."""
    for node in nodes_of(root, BINDING, CLOSED):
        inside = type(node) in LOOPS
        target = getattr(node, "target", None) or getattr(node, "name", None)
        if target is not None:
            count.update(dict.fromkeys(target_names(target), 2 if inside else times))
        for part in node.children if inside else ():
            _count_bound(part, 2, count)
