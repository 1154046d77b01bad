"""What does waiting for all that a loop of unknown length has made do?

The iterations of a loop make calls, or start tasks, and put their futures into a list; something behind the
loop waits for all of them. Loop and wait are one element of the path, a *fan-out*, with what one copy does:
what an iteration has begun, and the waits for it. A ``join`` follows where the path waits. A ``gather`` of as
many coroutines starts its copies itself.

Followed is what has exactly this form. Whatever else is done between the waits, or a wait for some of the
futures that are not the first, leaves it unknown which futures are waited for.

When a copy fails, the path goes on without waiting for the others. Its ``join`` is ``early`` then: copies may
stop anywhere. ``analyzer.static.leaving`` says what a loop does that is left for any other reason.

A semaphore limits how many copies go on at once if it was made before them and each does all it does while it
holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import libcst as cst

from analyzer.static.application import Operation, Path
from analyzer.static.attempts import (
    could_not_begin,
    is_complete,
    single_attempts,
    without_choices,
    without_failed_beginnings,
)
from analyzer.static.leaving import Left, is_begun_by_the_flow
from analyzer.static.repetition import Repetition
from analyzer.static.state import Failure, Flow, Results, State, united
from analyzer.static.values import (
    LOST,
    RACED,
    UNKNOWN,
    Awaitable,
    Chained,
    CopyFuture,
    Coroutine,
    External,
    Future,
    ListRef,
    Many,
    Semaphore,
    SetRef,
    Value,
    alternatives,
    is_filled,
    join,
    made_of,
    mapped,
    of_kind,
    runs_of,
)
from analyzer.static.values.containers import keys_of
from analyzer.static.values.copies import is_current
from analyzer.static.walk import Part, Walk, changed
from analyzer.static.walking import nodes_of
from mup.events.sites import Site

__all__ = ["Copies", "is_complete", "with_early"]

Each = Callable[[State, Value], list[Flow]]
"""Walks one iteration of a loop from a state, given the item."""

PASSING = {f"builtins.{name}" for name in ("enumerate", "iter", "list", "reversed", "set", "sorted", "tuple")}
"""Functions that yield at most as many items as they are given."""


WAITS = (cst.Await, cst.For, cst.CompFor, cst.With)
"""What may wait where the code around it is asynchronous."""

Shape = tuple[tuple[str, Site], ...]
"""What a copy does, whatever waits for what."""


@dataclass(slots=True)
class _Starting:
    """A fan-out, or a task that a loop starts, whose copies are being walked.

    Attributes:
        base: How many operations were begun before.
        tasks_around: Tasks around the code of a copy itself.
        made: Semaphores that copies have made.
        guards: By what a copy has done when it leaves them, the semaphores that it held from its begin on.
    """

    base: int
    tasks_around: int
    made: set[Semaphore] = field(default_factory=set)
    guards: dict[Shape, set[Semaphore]] = field(default_factory=dict)

    def limit(self, copies: Iterable[Sequence[Operation]]) -> int | None:
        """Return how many copies go on at once, given what one may do.

        Returns:
            None if nothing limits that, 0 if it cannot be told.
        """
        if not self.guards:
            return None
        held = [self.guards.get(_shape(operations), set()) for operations in copies if operations]
        first = held[0] if held else set()
        if len(first) != 1 or any(guard != first for guard in held) or first & self.made:
            return 0
        return next(iter(first)).permits


@dataclass(frozen=True, slots=True)
class _Begun:
    """Copies that a ``gather`` has begun.

    Attributes:
        state: The state behind that.
        place: Of the fan-out in the path; None if they do nothing.
        short: Some may stop short of what others do.
        kinds: What may go wrong in one of them.
        raised: Exceptions that one of them may end with, and their lines.
    """

    state: State
    place: int | None = None
    short: bool = False
    kinds: tuple[Failure, ...] = ()
    raised: tuple[tuple[Value, int], ...] = ()


class Copies(Part):
    """Follows what iterations have made until all of it is waited for.

    Attributes:
        waiting: What is walked is an iteration of a loop that waits for it.
    """

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._starting: list[_Starting] = []
        self._at_once: set[Site] = set()
        self._racing = False
        self.waiting = False

    # How many there are.

    def most(self, node: cst.CSTNode, state: State) -> int | None:
        """Return how many iterations a loop has at most; None if the source does not tell."""
        match node:
            case cst.For(iter=source) | cst.CompFor(iter=source):
                return self._most(source, state)
            case cst.BaseComp(for_in=cst.CompFor(iter=source, inner_for_in=None)):
                return self._most(source, state)
            case cst.Call(func=function, args=[_, cst.Arg(value=source)]):
                if self.walk.conditions.looked_at(function, state) == External("builtins.map"):
                    return self._most(source, state)
        return None

    def _most(self, node: cst.BaseExpression, state: State) -> int | None:
        """Return how many items an expression yields at most, as far as its text tells."""
        value = self.walk.conditions.looked_at(node, state)
        if value is not None:
            items = self.walk.expressions.items(value, state)
            return None if items is None else len(items)
        match node:
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice(step=None) as part)]):
                return None if part.upper is None else self._between(part.lower, part.upper, state)
            case cst.Call():
                return self._most_of_call(node, state)
        return None

    def _most_of_call(self, node: cst.Call, state: State) -> int | None:
        function = self.walk.conditions.looked_at(node.func, state)
        name = function.name if isinstance(function, External) else ""
        given = [a.value for a in node.args if a.keyword is None and not a.star]
        match name, given:
            case _, [first, *_] if name in PASSING:
                return self._most(first, state)
            case "builtins.zip", _:
                bounds = [self._most(one, state) for one in given]
                return min((bound for bound in bounds if bound is not None), default=None)
            case ("itertools.islice", [_, upper]) | ("builtins.range", [upper]):
                return self._between(None, upper, state)
            case ("itertools.islice", [_, lower, upper]) | ("builtins.range", [lower, upper]):
                return self._between(lower, upper, state)
        return None

    def _between(
        self, lower: cst.BaseExpression | None, upper: cst.BaseExpression, state: State
    ) -> int | None:
        """Return how many places lie between two indices, if both are known and count from the front."""
        bounds = []
        for node in (lower, upper):
            value = UNKNOWN if node is None else self.walk.conditions.looked_at(node, state) or UNKNOWN
            known, number = value.python()
            if node is not None and not (known and isinstance(number, int) and number >= 0):
                return None
            bounds.append(0 if node is None else number)
        return max(0, bounds[1] - bounds[0])

    # What there are many of.

    def many(self, value: Value, state: State) -> Many | None:
        """Return what iterating over a value yields if one earlier loop has left it; else None."""
        match self.runs(value, state):
            case (Many() as many,):
                return many
        return None

    def runs(self, value: Value, state: State) -> tuple[Value, ...] | None:
        """Return what iterating over a value yields, `Many` for what a loop has left; None if not known."""
        content = value if value.place is None else state.heap.get(value.place)
        match value:
            case Awaitable(kind="as_completed", values=(Many() as many,)) if self.is_task(many, state):
                return None if any(a.keyword is not None for a in value.made_by.args) else (many,)
        if is_filled(content):
            runs = runs_of(replace(content, sources=())) if is_current(content, state.heap) else None
            if isinstance(value, SetRef) and len(runs or ()) > 1:
                # A log shows in which order it is waited for the calls of a set.
                runs = runs if all(self.is_task(run, state) for run in runs or ()) else None
            return runs_of(keys_of(runs)) if runs is not None and value.is_mapping else runs
        items = self.walk.expressions.items(value, state)
        # An iterator among the items is no run of them.
        return None if items is None or of_kind(items, Many, Chained) else items

    def noted(self, loop: cst.CSTNode) -> None:
        """Note whether a loop goes on without a wait: tasks begin when it has started all of them."""
        waiting = nodes_of(loop, WAITS, (cst.FunctionDef, cst.Lambda))
        if all(type(one) is not cst.Await and not getattr(one, "asynchronous", None) for one in waiting):
            self._at_once.add(self.walk.place(loop))

    def is_task(self, value: Value, state: State) -> bool:
        """Return whether a value is a task, or as many as a `Many` stands for."""
        begun = self.begun(value, state) if type(value) is Many else ()
        return state.is_task(value) or (bool(begun) and all(o.op == "task" for o in begun))

    @staticmethod
    def begun(many: Many, state: State) -> list[Operation]:
        """Return what the iterations that have made them have begun."""
        return [
            o
            for place in many.one.futures()
            for body in state.operations[place].bodies
            for o in body.operations
        ]

    def emptied(self, value: Value, state: State) -> State:
        """Return the state in which a condition has told that a container has nothing in it.

        A loop that has put all it has begun into it has had no iteration.
        """
        content = UNKNOWN if value.place is None else state.heap.get(value.place)
        if type(content) is not Many or self.walk.factoring or not content.known or content.partly:
            return state
        places = {*content.one.futures(), *content.key.futures()}
        if len(places) > 1 or value.place is None:
            return state
        for place in places:
            if place < self.walk.first_own or place in state.joined or state.operations[place].op != "loop":
                return state
            state = _without(place, state) or state
        return state.store(value.place, ())

    def item(self, value: Value, state: State) -> Value:
        """Return what one of any number of iterations over a value gets."""
        runs = self.runs(value, state)
        if runs is None or not of_kind(runs, Many):
            return RACED if value == RACED else state.content_of([value])
        return join(self._one_of(run, state) for run in runs)

    @staticmethod
    def _one_of(run: Value, state: State) -> Value:
        """Return what one of any number of iterations gets of a run."""
        if type(run) is not Many:
            return mapped(run, lambda future: UNKNOWN if future.index in state.joined else LOST)
        many, places = run, set(run.one.futures())
        if any(o.op == "join" and o.of in places and o.target == "first" for o in state.operations):
            return mapped(many.one, lambda _: RACED)
        if all(place in state.joined and state.operations[place].target != "flow" for place in places):
            # Coroutines that have not begun, and tasks that have ended.
            return mapped(many.one, lambda _: UNKNOWN)
        return LOST

    def over(
        self,
        many: Many,
        node: cst.CSTNode,
        state: State,
        iteration: Each,
        *,
        partly: bool = False,
        leaves: bool = False,
    ) -> list[Flow] | None:
        """Walk a loop that waits, in each of its iterations, for what one of an earlier loop has made.

        Args:
            many: What it is over.
            node: The loop.
            state: The state before it.
            iteration: Walks an iteration.
            partly: Whether copies may stop anywhere.
            leaves: Whether it may be left before all of it was waited for.

        Returns:
            How the loop ends if all of it was waited for, and how it is left; failures and exceptions have
            been noted. None if it is not followed; then nothing has.
        """
        place = self._place(many, state)
        if place is None:
            return None
        with self.walk.trying() as trial:
            leaves = leaves and not (partly or self.walk.loops_around or self.walk.tasks_around)
            partly = partly or many.partly
            flows = self._waited(many, place, node, state, iteration, partly=partly, leaves=leaves)
            trial.kept = flows is not None
        return flows

    def _place(self, many: Many, state: State) -> int | None:
        """Return where in the path the loop is that has made what is waited for, if that can be told."""
        places = set(many.one.futures())
        if len(places) != 1:
            return None
        (place,) = places
        loop = state.operations[place]
        if place < self.walk.first_own or place in state.joined or loop.op != "loop":
            return None
        # Iterations that wait themselves do not go on beside each other.
        begins = all(o.op in ("call", "query", "task") for body in loop.bodies for o in body.operations)
        return place if begins else None

    def _waited(
        self,
        many: Many,
        place: int,
        node: cst.CSTNode,
        state: State,
        iteration: Each,
        *,
        partly: bool,
        leaves: bool,
    ) -> list[Flow] | None:
        begun = state.operations[place]
        tasks = [o for body in begun.bodies for o in body.operations if o.op == "task"]
        late = any(task.limit or self.walk.tasks.outcome(task).waits_first for task in tasks)
        at_once = begun.site in self._at_once and not late and not self._racing
        if self._is_repeated(tasks=bool(tasks) and not at_once):
            return None
        base = len(state.operations)
        options = alternatives(_of_one(many.one, base))
        held = [one for one in options if any(True for _ in one.futures())]
        plain = [one for one in options if one not in held]
        if any(one.tracked() for one in plain):
            return None  # they begin what no iteration has begun

        def one(start: State) -> list[Flow]:
            flows = [f for made in begun.bodies for f in iteration(_with_copy(start, made), join(held))]
            return [*flows, *(iteration(start, join(plain)) if plain else ())]

        with self.walk.catching() as raised, self.walk.watched() as points, changed(self, waiting=True):
            loop, start, flows = self.walk.loops.repeated(node, state, one)
        around = [flow for flow in flows if flow.kind in ("next", "continue")]
        cancelled = {flow.state.operations[base:] for flow in around if _cancels(flow.state, base, begun)}
        found = () if loop.loop is None else loop.loop.bodies
        if cancelled and all(body.operations in cancelled for body in found):
            # Of copies that are cancelled nothing is waited for.
            bodies = [_waiting(body, self.walk.site(node)) for body in begun.bodies]
        else:
            bodies = [body for body in found if _waits_only(body, begun.bodies)]
        others = [body for body in found if body not in bodies and body.operations not in cancelled]
        if not bodies or not all(_stops_short(body, bodies) for body in others):
            return None
        away: list[tuple[Failure | None, Flow]] = [
            *((None, flow) for flow in raised),
            *((None, loop.leave(flow)) for flow in flows if flow not in around),
            *((kind, Flow(failed, "raise")) for kind, failed in points.merged(len(state.frames))),
        ]
        fan_out = _fan_out(begun, bodies, many.most, at_once=at_once)
        leaves = leaves and not (cancelled or self.walk.held) and is_begun_by_the_flow(begun, fan_out)
        if fan_out.limit is None and any(o.limit for body in begun.bodies for o in body.operations):
            self.not_followed(node)
        partly = partly or bool(cancelled) or len(bodies) < len(found)

        join_ = Operation("join", self.walk.site(node), "", place, holding=self.walk.held)

        def behind(flow: Flow, target: str) -> Flow:
            return _behind(flow, loop, place, fan_out, replace(join_, target=target))

        left = Left(place, base, fan_out, begun, join_, bare=bool(plain))

        def out(flow: Flow) -> Flow | None:
            if flow.kind == "raise" and _is_copy(flow.state, base, begun):
                return behind(flow, "early")
            return left.behind(flow) if leaves else None

        ways = [(kind, way) for kind, flow in away if (way := out(flow)) is not None]
        if len(ways) < len(away):
            return None
        ends = [loop.end(Flow(start)), *(loop.end(replace(flow, kind="next")) for flow in around)]
        onward = [behind(flow, "early" if partly else "") for flow in ends]
        for kind, way in ways:
            if kind is not None:
                self.walk.may_fail(way.state, kind)
            elif way.kind in ("break", "return"):
                onward.append(way)
            else:
                self.walk.raised.append(way)
        return onward

    # What waits for all of them at once.

    def gathered(
        self,
        many: Many,
        node: cst.Call | cst.Await,
        state: State,
        *,
        collect: bool = False,
        first: bool = False,
    ) -> Results:
        """Return what a ``gather`` of them does.

        Args:
            many: They.
            node: What waits for them.
            state: Where they are under way, or begin.
            collect: Errors are results.
            first: It ends with the first of them, which may be an error.
        """
        if any(True for _ in many.one.futures()):
            with changed(self, _racing=first):
                flows = self.joined(many, node, state, collect=collect or first)
            flows = flows and [_first_only(flow) for flow in flows] if first else flows
        else:
            flows = self._started(many, node, state, collect=collect)
        if flows is None:
            return self.walk.calls.unknown_future(node, state)
        number = self.walk.allocate()
        return [(flow.state.store(number, UNKNOWN), ListRef(number)) for flow in flows]

    def joined(
        self,
        many: Many,
        node: cst.CSTNode,
        state: State,
        *,
        collect: bool = False,
        kind: Failure | None = None,
    ) -> list[Flow] | None:
        """Return how waiting for all of some futures or tasks ends; None if it is not followed.

        Args:
            many: The futures.
            node: What waits for them.
            state: Where they are under way.
            collect: Errors are results like others.
            kind: What an error of a task is to the flow that waits; None = the same.
        """
        if not many.tracked():
            return [Flow(state)]
        if self.is_over(many, state) and (collect or kind is not None):
            if not collect:
                self.walk.may_fail(state, kind or "local")
            return [Flow(state)]

        def each(start: State, item: Value) -> list[Flow]:
            found: list[list[State]] = []
            for one in alternatives(item):
                match one:
                    case Future(index) if start.operations[index].op == "task":
                        found.append(self.walk.tasks.joined([one], node, start, collect=collect, kind=kind))
                    case Future() | Awaitable() if one.tracked():
                        found.append(self._answered(one, node, start, collect=collect))
                    case Coroutine() if one.tracked():
                        found.append(self._run(one, node, start, collect=collect))
                    case _:
                        found.append([start])
            # Where one of them is not followed, none is.
            states = [after for ends in found for after in ends] if all(found) else []
            for after in states:
                self.walk.waiting.interruptible(after)
            return [Flow(after) for after in states]

        return self.over(many, node, state, each, partly=collect)

    def _answered(
        self, one: Future | Awaitable, node: cst.CSTNode, state: State, *, collect: bool
    ) -> list[State]:
        """Return the states behind a wait for a call or query, maybe with a limit."""
        if not isinstance(node, cst.Call | cst.Await):
            return []  # a group waits for tasks only
        with self.walk.watched() if collect else nullcontext():
            if isinstance(one, Future):
                return [after for after, _ in self.walk.operations.get(one, node, state)]
            return [after for after, _ in one.awaited(node, state, self.walk)]

    def _run(self, one: Coroutine, node: cst.CSTNode, state: State, *, collect: bool) -> list[State]:
        """Return the states behind a coroutine that waits for what was begun before it; else none.

        A semaphore of the request around its wait limits nothing, for all calls are under way. It begins
        nothing itself: others that have begun before may wait then.
        """
        if not isinstance(node, cst.Call | cst.Await):
            return []  # a group waits for tasks only
        with (
            self.walk.watched() if collect else nullcontext(),
            self.walk.catching() if collect else nullcontext(),
        ):
            ends = [after for after, _ in one.awaited(node, state, self.walk)]
        waits = [o for after in ends for o in after.operations[len(state.operations) :]]
        return ends if all(o.op == "get" and o.holding == self.walk.held for o in waits) else []

    def grouped(self, runs: Sequence[Value], node: cst.CSTNode, state: State) -> list[State] | None:
        """Return the states in which all tasks of a group have ended; None if that is not followed.

        When one fails, the others are cancelled.
        """
        with self.walk.trying() as trial:
            with self.walk.catching() as raised, self.walk.watched() as points:
                ends: list[State] | None = [state]
                for many in of_kind(runs, Many):
                    found = [self.joined(many, node, one, kind="group") for one in ends or ()]
                    known = [flow.state for flows in found for flow in flows or ()]
                    ends = None if None in found else known
                tasks = of_kind(runs, Future)
                ends = ends and [
                    after for one in ends for after in self.walk.tasks.joined(tasks, node, one, kind="group")
                ]

            def left(place: State) -> State:
                cancelled = self.abandoned(
                    of_kind(runs, Many),
                    node,
                    place,
                    lambda one, before: self.joined(one, node, before, collect=True),
                )
                return with_early(cancelled, {index for run in runs for index in run.futures()})

            for kind, place in points.merged(len(state.frames)):
                self.walk.may_fail(left(place), kind)
            self.walk.raised += [replace(flow, state=left(flow.state)) for flow in raised]
            trial.kept = ends is not None
        return ends

    def is_over(self, many: Many, state: State) -> bool:
        """Return whether all of them were waited for before."""
        places = set(many.one.futures())
        return bool(places) and all(
            place in state.joined and state.operations[place].op == "fan-out" for place in places
        )

    def abandoned(
        self,
        left: Iterable[Many],
        node: cst.CSTNode,
        state: State,
        wait: Callable[[Many, State], list[Flow] | None],
    ) -> State:
        """Return a state in which some are not waited for: their copies may stop anywhere.

        Args:
            left: They.
            node: What would have waited.
            state: Where it does not.
            wait: Waits for one of them, whose copies may stop anywhere.
        """
        with self.walk.catching(), self.walk.collected():
            for many in left:
                flows = wait(many, state)
                if flows is None:
                    self.walk.calls.unknown_future(node, state)
                    return state
                state = united(flow.state for flow in flows)
        return state

    def gone_through(self, value: Value, state: State) -> Value:
        """Return a value as what iterating over it yields: of a dict that loops have filled, its keys."""
        runs = (self.runs(value, state) if value.is_mapping else None) or ()
        if not of_kind(runs, Many):
            return value
        return made_of(runs, lambda one: one) if any(run.tracked() for run in runs) else UNKNOWN

    # What waits for several of these, and for others.

    def together(
        self, values: Sequence[Value], node: cst.Call | cst.Await, state: State, *, collect: bool = False
    ) -> Results:
        """Return what waiting for all of these does: for each, and for all that a `Many` stands for.

        Args:
            values: They: futures, tasks and coroutines that begin now.
            node: What waits for them.
            state: Where they are under way, or begin.
            collect: Errors are results.
        """
        with self.walk.trying() as trial:
            ends = self._together(values, node, state, collect=collect)
            trial.kept = ends is not None
        if ends is None:
            return self.walk.calls.unknown_future(node, state)
        number = self.walk.allocate()
        return [(after.store(number, content), ListRef(number)) for after, content in ends]

    def _together(
        self, values: Sequence[Value], node: cst.Call | cst.Await, state: State, *, collect: bool
    ) -> Results | None:
        with self.walk.catching() as raised, self.walk.collected() as points:
            ends = self._all_of(values, node, state, collect=collect)
        left, kinds = ends, set(points.states)
        if collect:
            kinds &= {"cancelled"}
        else:
            # When one has failed, the waits for the others have begun, too.
            with self.walk.catching(), self.walk.collected():
                left = self._all_of(values, node, state, collect=True)
        if ends is None or left is None:
            return None
        for after, _ in left:
            for kind in sorted(kinds):
                self.walk.may_fail(after, kind)
            self.walk.raised += [replace(flow, state=after) for flow in raised]
        return ends

    def _all_of(
        self, values: Sequence[Value], node: cst.Call | cst.Await, state: State, *, collect: bool
    ) -> Results | None:
        """Return the states in which all have ended, and what is known of the results; None if not followed.

        Whatever begins now begins before the first wait.
        """
        known = [value for value in values if type(value) is not Many]
        several = [(many, any(True for _ in many.one.futures())) for many in of_kind(values, Many)]
        results: Results = []
        for started, handles in self.walk.tasks.started_beside(known, node, state):
            after, beginning = started, list[_Begun]()
            for many in (many for many, begun in several if not begun):
                one = self._begin(many, node, after)
                if one is None:
                    return None
                after = one.state
                beginning.append(one)
            limited = any(one.place is not None and after.operations[one.place].limit for one in beginning)
            running = len(beginning) + sum(not isinstance(one, Future) for one in known if one.tracked())
            if running > 1 and any(after.heap[n] != content for n, content in state.heap.items()):
                return None  # one may find what another has changed
            if running > 1 and limited:
                self.not_followed(node)
            if LOST in handles:
                return None
            waiting = of_kind(handles, Future)
            for future in waiting:
                if not after.is_task(future):
                    ((after, _),) = self.walk.operations.get(future, node, after)
            self.walk.waiting.interruptible(after)
            ends = [after]
            for many in (many for many, begun in several if begun):
                flows = [self.joined(many, node, one, collect=collect) for one in ends]
                if any(found is None for found in flows):
                    return None
                ends = [flow.state for found in flows for flow in found or ()]
            for one in beginning:
                ends = [flow.state for end in ends for flow in self._ended(one, node, end, collect=collect)]
            tasks = [future for future in waiting if after.is_task(future)]
            content = after.content_of(self.walk.tasks.result(task, after) for task in tasks)
            results += [
                (end, content)
                for before in ends
                for end in self.walk.tasks.joined(tasks, node, before, collect=collect)
            ]
        return results

    def _started(
        self, many: Many, node: cst.Call | cst.Await, state: State, *, collect: bool
    ) -> list[Flow] | None:
        """Return how waiting for any number of coroutines, which begin now, ends; None if not followed."""
        begun = self._begin(many, node, state)
        return None if begun is None else self._ended(begun, node, begun.state, collect=collect)

    def _ended(self, begun: _Begun, node: cst.Call | cst.Await, state: State, *, collect: bool) -> list[Flow]:
        """Return how waiting for copies that a ``gather`` has begun ends."""
        if begun.place is None:
            return [Flow(state)]
        join_ = Operation("join", self.walk.site(node), "", begun.place, holding=self.walk.held)
        early = state.after(replace(join_, target="early"))
        if not collect:
            for kind in begun.kinds:
                self.walk.may_fail(early, kind)
            self.walk.raised += [Flow(early, "raise", value, line) for value, line in begun.raised]
        self.walk.waiting.interruptible(early)
        return [Flow(early if collect or begun.short else state.after(join_))]

    def _begin(self, many: Many, node: cst.Call | cst.Await, state: State) -> _Begun | None:
        """Return how any number of coroutines begin; None if that is not followed."""
        if self._is_repeated(tasks=False):
            return None
        base = len(state.operations)
        starting = _Starting(base, self.walk.tasks_around + 1)
        whole: dict[tuple[Operation, ...], Path] = {}
        broken: list[Path] = []
        kinds: dict[Failure, None] = {}
        raised: list[tuple[Value, int]] = []
        at_once = True
        ends: list[State] = [state]
        for one in alternatives(many.one):
            if not one.tracked():
                continue
            if not isinstance(one, Coroutine | Awaitable):
                return None
            with changed(self, _starting=[*self._starting, starting]):
                started = self.walk.tasks.started_beside((one,), node, state)
            for after, (handle,) in started:
                if after.frames != state.frames or after.joined != state.joined:
                    return None
                if not isinstance(handle, Future):
                    ends.append(after)
                    continue
                task = after.operations[base]
                (path,) = task.bodies
                outcome = self.walk.tasks.outcome(task)
                at_once &= not outcome.waits_first
                if path.ends == "raise":
                    broken.append(path)
                    raised.append((outcome.raised, path.end_line))
                else:
                    whole[path.operations] = path
                broken += (failed for _, failed in outcome.failures)
                kinds.update((kind, None) for kind, _ in outcome.failures)
                ends.append(replace(after, operations=state.operations, local_lines=state.local_lines))
        ways = [way for path in whole.values() for way in without_choices(path)]
        broken = [way for path in broken for way in without_choices(path)]
        found = [without_failed_beginnings(path) for path in ways]
        done = {path.operations: path for path in found}
        # One that cannot even begin its call, and handles that, stops short of what others do.
        stopped = [path for path in done.values() if not is_complete(path) and _is_cut_short(path, done)]
        ended = [path for path in done.values() if path not in stopped]
        bodies = _with_broken(ended, [*map(without_failed_beginnings, broken), *stopped])
        if bodies is None or not all(could_not_begin(path, bodies) for path in bodies):
            return None
        short = found != ways or bool(stopped)
        quiet = united(ends)
        if not bodies:
            return _Begun(quiet)
        limit = starting.limit(whole)
        if limit == 0:
            self.not_followed(node)
        if limit:
            bodies = single_attempts(bodies)
        at_once &= limit is None
        if self._is_repeated(tasks=not at_once):
            return None
        target = "at once" if at_once else ""
        fan_out = Operation(
            "fan-out",
            self.walk.place(node),
            target,
            bodies=bodies,
            most=many.most,
            limit=limit or None,
            holding=self.walk.held,
        )
        return _Begun(quiet.after(fan_out), base, short, tuple(kinds), tuple(raised))

    @contextmanager
    def starting(self, base: int) -> Iterator[_Starting]:
        """Walk a task: what a loop starts in each iteration may hold a semaphore, which limits all of it.

        Args:
            base: How many operations were begun before.
        """
        starting = _Starting(base, self.walk.tasks_around + 1)
        among = (
            [*self._starting, starting] if self.walk.loops_around and not self._starting else self._starting
        )
        with changed(self, _starting=among):
            yield starting

    def made(self, semaphore: Semaphore) -> None:
        """Note that a copy has made a semaphore: it limits no other copy."""
        if self._starting:
            self._starting[-1].made.add(semaphore)

    def guarded(self, semaphore: Semaphore, node: cst.CSTNode, entered: State, left: Sequence[State]) -> None:
        """Note what is done while a semaphore is held, between one state and others."""
        if not self._starting:
            if any(state.operations != entered.operations for state in left):
                self.check_limit(node)
            return
        starting = self._starting[-1]
        begun = [
            state.operations[starting.base :] for state in left if state.operations != entered.operations
        ]
        if not begun:
            return
        if len(entered.operations) != starting.base or self.walk.tasks_around != starting.tasks_around:
            self.not_followed(node)
        for operations in begun:
            starting.guards.setdefault(_shape(operations), set()).add(semaphore)

    def check_limit(self, node: cst.CSTNode) -> None:
        """Report something that may limit how many copies, or tasks that a loop starts, go on at once."""
        if self._starting or (self.walk.tasks_around and self.walk.loops_around):
            self.not_followed(node)

    def not_followed(self, node: cst.CSTNode) -> None:
        """Report something that limits how many copies go on at once in a way that is not followed."""
        what = f"'{self.walk.code(node)}' may limit how many copies of a fan-out go on at once: not analysed"
        hint = (
            "make an asyncio.Semaphore with a known number before, and let each copy hold it for all it does"
        )
        self.walk.report("MUP030", what, node, hint)

    def _is_repeated(self, *, tasks: bool) -> bool:
        """Return whether a log could not tell the copies of one fan-out from those of the next.

        A task may have done its last step long before it has ended, so where one fan-out of tasks ends and
        the next begins does not show in the order of steps.
        """
        return bool(self.walk.tasks_around or (tasks and self.walk.loops_around))


def _without(place: int, state: State) -> State | None:
    """Return the state without a loop; None if a task behind it waits for what is before it."""
    behind = list(enumerate(state.operations))[place + 1 :]
    if any(index + distance <= place for index, o in behind for distance in o.outward()):
        return None

    def moved(index: int) -> int:
        return index - (index > place)

    lines = state.local_lines
    after = state.with_futures(lambda f: UNKNOWN if f.index == place else Future(moved(f.index)))
    return replace(
        after,
        operations=tuple(
            o if o.of is None else replace(o, of=moved(o.of))
            for index, o in enumerate(state.operations)
            if index != place
        ),
        local_lines=(*lines[:place], lines[place] or lines[place + 1], *lines[place + 2 :]),
        joined=frozenset(moved(index) for index in state.joined),
    )


def with_early(state: State, tasks: Collection[int]) -> State:
    """Return a state in which tasks that were waited for may have stopped anywhere."""
    operations = tuple(
        replace(o, target="early") if o.op == "join" and o.of in tasks else o for o in state.operations
    )
    return replace(state, operations=operations)


def _first_only(flow: Flow) -> Flow:
    """Return how a wait for all copies goes on if it ends with the first of them."""
    *before, join_ = flow.state.operations
    return replace(flow, state=replace(flow.state, operations=(*before, replace(join_, target="first"))))


def _shape(operations: Iterable[Operation]) -> Shape:
    return tuple((operation.op, operation.site) for operation in operations)


def _of_one(value: Value, base: int) -> Value:
    """Return a value whose futures are those of the one copy that begins at a place in the path."""
    if isinstance(value, CopyFuture):
        return Future(base + value.inner)
    return value.map(lambda part: _of_one(part, base))


def _with_copy(state: State, made: Path) -> State:
    """Return the state in which one iteration of the earlier loop has just happened."""
    base = len(state.operations)
    operations = [o if o.of is None else replace(o, of=o.of + base) for o in made.operations]
    return replace(
        state,
        operations=(*state.operations, *operations),
        local_lines=(*state.local_lines[:-1], *made.local_lines),
        joined=state.joined | {o.of for o in operations if o.of is not None},
    )


def _waits_only(body: Path, bodies: Iterable[Path]) -> bool:
    """Return whether an iteration does nothing but wait for all that one of the earlier loop has begun."""
    return is_complete(body) and any(
        body.operations[: len(made.operations)] == made.operations
        and all(o.op in ("get", "join") for o in body.operations[len(made.operations) :])
        for made in bodies
    )


def _is_cut_short(path: Path, others: Iterable[tuple[Operation, ...]]) -> bool:
    """Return whether a path is the beginning of another one."""
    size = len(path.operations)
    return any(len(one) > size and one[:size] == path.operations for one in others)


def _stops_short(body: Path, bodies: Iterable[Path]) -> bool:
    """Return whether a task does less than one of these, having failed and handled that, and no more."""
    done = [path.operations for path in _tasks([body])]
    wholes = [path.operations for path in _tasks(bodies)]
    return any(one == whole[: len(one)] for one in done for whole in wholes)


def _cancels(state: State, base: int, begun: Operation) -> bool:
    """Return whether an iteration does nothing but cancel the task that one of the earlier loop has begun."""
    done = state.operations[base:]
    tasks = [base + place for place, o in enumerate(done) if o.op == "task"]
    return (
        any(done == made.operations for made in begun.bodies) and bool(tasks) and state.joined >= set(tasks)
    )


def _waiting(made: Path, site: Site) -> Path:
    """Return an iteration that waits for the tasks one has begun."""
    joins = [Operation("join", site, "", place) for place, o in enumerate(made.operations) if o.op == "task"]
    return replace(
        made,
        operations=(*made.operations, *joins),
        local_lines=(*made.local_lines, *(0 for _ in joins)),
    )


def _is_copy(state: State, base: int, begun: Operation) -> bool:
    """Return whether the iteration that leaves a loop has begun nothing that the earlier loop had not."""
    made = {(o.op, o.site) for body in begun.bodies for o in body.operations}
    return all(o.op in ("get", "join") or (o.op, o.site) in made for o in state.operations[base + 1 :])


def _fan_out(begun: Operation, bodies: Sequence[Path], most: int | None, *, at_once: bool) -> Operation:
    """Return the element of the path for what a loop has begun and what waits for it."""
    tasks = _tasks(bodies)
    if len(tasks) < len(bodies):
        whole = tuple(bodies)
        return Operation("fan-out", begun.site, "flow", bodies=whole, most=most, holding=begun.holding)
    limits = {o.limit for body in begun.bodies for o in body.operations}
    limit = limits.pop() if len(limits) == 1 else None
    target = "at once" if at_once and limit is None else ""
    whole, held = tuple(tasks), begun.holding
    return Operation("fan-out", begun.site, target, bodies=whole, most=most, limit=limit, holding=held)


def _tasks(bodies: Iterable[Path]) -> list[Path]:
    """Return what the tasks do of the iterations that do nothing but start one and wait for it."""
    waiting = [body for body in bodies if [o.op for o in body.operations] == ["task", "join"]]
    return [body.operations[0].bodies[0] for body in waiting]


def _behind(flow: Flow, loop: Repetition, place: int, fan_out: Operation, join_: Operation) -> Flow:
    """Return a way on behind a loop that waits for copies; the fan-out is where they have begun."""
    state, base = flow.state, loop.base
    moved = loop.with_futures(flow, lambda index: UNKNOWN if index in state.joined else LOST)
    done = state.operations
    return replace(
        moved,
        state=replace(
            moved.state,
            operations=(*done[:place], fan_out, *done[place + 1 : base], join_),
            local_lines=(*state.local_lines[: base + 1], state.local_lines[-1]),
            joined=frozenset(i for i in state.joined if i < base) | {place},
        ),
    )


def _with_broken(whole: Sequence[Path], broken: Iterable[Path]) -> tuple[Path, ...] | None:
    """Return the paths of copies that come to their end, or stop where none of these does; None without any.

    A copy that fails may stop anywhere on one of the others.
    """
    found = list(whole)
    for path in broken:
        size = len(path.operations)
        if not any(path.operations == other.operations[:size] for other in found):
            found.append(Path(path.operations, "return", 0, path.local_lines))
    return tuple(found) if whole or not found else None
