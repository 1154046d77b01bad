"""Loops: those that are unrolled, and those with any number of iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import libcst as cst

from analyzer.static.control import Loop
from analyzer.static.evaluation import merge_results, one_by_one
from analyzer.static.facts import changed_in_loop
from analyzer.static.names import assigned_names
from analyzer.static.repetition import Repetition, behind_runs, carried, items_left, repetition
from analyzer.static.state import Flow, Results, State, merge, merge_flows
from analyzer.static.syntax import name_of, target_names
from analyzer.static.values import (
    GROWING,
    LOST,
    UNKNOWN,
    Const,
    Generator,
    ListRef,
    Value,
    alternatives,
    mapped,
    runs_of,
    variants_of,
)
from analyzer.static.walk import Part, TooManyPathsError

__all__ = ["Loops"]

SHORT_SEQUENCE = 32
"""Loops of at most so many iterations, nested ones together, are always unrolled, others if they
communicate."""


class Loops(Part):
    """Walks loops."""

    def repeated(
        self, node: cst.CSTNode, before: State, iteration: Callable[[State], list[Flow]]
    ) -> tuple[Repetition, State, list[Flow]]:
        """Walk a loop that may have any number of iterations.

        Args:
            node: The loop.
            before: The state in which an iteration may begin.
            iteration: Walks one from a state; tells how it ends.

        Returns:
            The loop, the state that any iteration may begin in, and how an iteration ends from there.
            Failures and exceptions inside have been noted as ways out of the loop.
        """
        start = replace(before, local_lines=(*before.local_lines[:-1], 0))
        while True:
            with (
                self.walk.catching() as raised,
                self.walk.watched() as points,
                self.walk.beginning(len(before.operations)),
            ):
                flows = iteration(start)
            again = [f.state.leave(len(before.frames)) for f in flows if f.kind in ("next", "continue")]
            kept = self.walk.attributes.kept_before(start, again, node)
            if kept is not None:
                start = kept
                continue
            following = changed_in_loop(carried(start, again), again)
            if following == start:
                break
            # What an iteration leaves behind, the next one finds.
            start = following
        most = self.walk.copies.most(node, before)
        loop = repetition(before, again, self.walk.place(node), most, self.walk.held)
        freeze = self.walk.lookups.freeze
        gathered = {
            n: behind_runs(before.heap[n], items_left(loop, [(s, s.heap[n]) for s in again], freeze), before)
            for n, content in start.heap.items()
            if content == GROWING and runs_of(before.heap.get(n)) is not None
        }
        loop = replace(loop, gathered=gathered)
        misplaced = loop.has_tasks_that_wait_for_earlier([*flows, *raised])
        self.walk.raised += [loop.leave(flow) for flow in raised]
        for kind, state in points.merged(len(before.frames)):
            self.walk.may_fail(loop.leave(Flow(state)).state, kind)
        if loop.loop is not None:
            self.walk.loops_found += 1
            self.walk.copies.noted(node)
            if sum(body.size for body in loop.loop.bodies) > self.walk.limit:
                raise TooManyPathsError
        if loop.waits_for_earlier or misplaced:
            what = "a loop without a visible bound waits for an operation made before it"
            self.walk.report("MUP031", what, node, "wait for it before the loop")
        return loop, start, flows

    def iterables(self, node: cst.BaseExpression, state: State) -> Results:
        """Evaluate what a loop is over; objects of known classes say what that is."""
        return merge_results(
            [
                result
                for after, value in self.walk.expressions.evaluate(node, state)
                for one in alternatives(value)
                for result in self.walk.generators.opened(one, node, after)
            ]
        )

    def loop(self, node: Loop, state: State) -> list[Flow]:
        """Walk a loop."""
        if getattr(node.node, "asynchronous", None) is not None:
            self.walk.tasks.waited(state)
        if node.iterable is None:
            counted = self._counted(node, state)
            return self._unbounded(node, state, UNKNOWN) if counted is None else counted
        flows: list[Flow] = []
        failure = self.walk.own_exceptions.failure(state, node.iterable)
        self.walk.may_fail(state, failure)
        for before, iterable in self.iterables(node.iterable, state):
            self.walk.may_fail_behind(state, before, failure)
            for start, one in one_by_one(iterable, before):
                flows += self._over(node, start, one)
        return flows

    def _over(self, node: Loop, before: State, one: Value) -> list[Flow]:
        """Walk a loop over one of the values that it may be over."""
        if isinstance(one, Generator):
            return self._over_generator(node, before, one)
        waited = self.walk.completing.items(one, before)
        if waited is not None and len(waited) > 1:
            with self.walk.completing.whole(waited, node.node, before) as behind:
                found = self._unrolled(node, before, waited)
            return [behind(flow) for flow in found]
        items = self.walk.expressions.items(one, before) if waited is None else waited
        if items is None:
            return self._unbounded(node, before, one)
        if self.walk.unrolls(items, SHORT_SEQUENCE):
            found = self._unrolled(node, before, items)
        else:
            found = self._long(node, before, one, items)
        if any(self.walk.expressions.items(one, flow.state) != items for flow in found):
            # What a container yields that is changed during the iteration is unknown.
            return self._unbounded(node, before, one)
        return found

    def _counted(self, node: Loop, state: State) -> list[Flow] | None:
        """Unroll a ``while`` whose every test has a known answer; None if there is one that has not."""
        assert node.test is not None  # noqa: S101  (only `while` has no iterable)
        if _constant(node.test).truth({}) is not None:
            return None
        with suppress(TooManyPathsError), self.walk.trying() as trial:
            flows = self._tested(node, node.test, state)
            if flows is not None:
                trial.kept = True
            return flows
        return None

    def _tested(self, node: Loop, test: cst.BaseExpression, state: State) -> list[Flow] | None:
        states, finished, done = [state], list[State](), list[Flow]()
        for _ in range(SHORT_SEQUENCE + 1):
            inside: list[State] = []
            for before in states:
                answers = self._answered(test, before)
                if answers is None:
                    return None
                for after, holds in answers:
                    (inside if holds else finished).append(after)
            if not inside:
                return self._behind(node, state, done, merge(finished))
            following: list[State] = []
            for flow in self.walk.statements.block(node.body, merge(inside)):
                if flow.kind in ("next", "continue"):
                    following.append(flow.state)
                else:
                    done.append(_outside(flow))
            states = merge(following)
        return None

    def _answered(self, test: cst.BaseExpression, state: State) -> list[tuple[State, bool]] | None:
        """Return the states behind a test whose answer is known, perhaps by how long lists are; else None."""
        answers = self.walk.conditions.test(test, state)
        if len({holds for _, holds in answers}) < 2:
            return answers
        lists = [ListRef(place) for place, content in state.heap.items() if len(variants_of(content)) > 1]
        apart = [self.walk.conditions.test(test, one) for one in state.apart(lists)]
        known = all(len({holds for _, holds in found}) < 2 for found in apart)
        return [answer for found in apart for answer in found] if known and lists else None

    def _behind(self, node: Loop, before: State, done: Sequence[Flow], finished: list[State]) -> list[Flow]:
        """Return how a loop ends that was left like this, or has come to its end in these states."""
        rest = self.walk.statements.block(node.orelse, finished) if finished else []
        line = self.walk.module.line(node.node)
        return [_marked(flow, before, line) for flow in merge_flows([*done, *rest])]

    def _body(self, node: Loop, item: Value, state: State) -> list[Flow]:
        """Walk the body of a ``for`` with an item."""
        assert node.target is not None  # noqa: S101  (only `for` has items)
        inside = self.walk.assignment.assign(node.target, item, state, node.node)
        return self.walk.statements.block(node.body, [inside])

    def _over_generator(self, node: Loop, state: State, generator: Generator) -> list[Flow]:
        """Walk a loop that takes the items of a generator."""
        flows = self.walk.generators.consume(
            generator, state, node.node, lambda inner, item: self._body(node, item, inner)
        )
        done = [_outside(flow) for flow in flows if flow.kind != "next"]
        return self._behind(node, state, done, merge(flow.state for flow in flows if flow.kind == "next"))

    def _long(self, node: Loop, state: State, iterable: Value, items: tuple[Value, ...]) -> list[Flow]:
        """Unroll a long loop only if it has to be: if iterations that others follow communicate."""
        if not self.walk.unrolls(items):
            return self._unbounded(node, state, iterable)
        loops = self.walk.loops_found
        with self.walk.trying() as trial:
            flows = self._unbounded(node, state, iterable)
            found = {finding.code for finding in trial.diagnostics.all()}
            trial.kept = self.walk.loops_found == loops and not found & {"MUP031", "MUP040"}
        return flows if trial.kept else self._unrolled(node, state, items)

    def _unrolled(self, node: Loop, state: State, items: tuple[Value, ...]) -> list[Flow]:
        assert node.target is not None  # noqa: S101  (only `for` has items)
        states, done, left = [state], [], []
        with self.walk.widened(items):
            for item in items:
                following = []
                states = [self.walk.assignment.assign(node.target, item, s, node.node) for s in states]
                for flow in self.walk.statements.block(node.body, states) if states else ():
                    if flow.kind in ("next", "continue"):
                        following.append(flow.state)
                    elif flow.kind == "break":
                        left.append(Flow(flow.state))
                    else:
                        done.append(flow)
                base = len(state.operations)
                states = self.walk.statements.folded_states(merge(following), base, node.node)
                if len(states) + len(done) + len(left) > self.walk.limit:
                    raise TooManyPathsError
        return self._behind(node, state, [*done, *left], states)

    def _unbounded(self, node: Loop, state: State, iterable: Value) -> list[Flow]:
        """Walk one iteration, knowing nothing that an earlier one may have changed."""
        before = state
        names = assigned_names(getattr(node.node, "body", node.node))
        if node.target is not None:
            names |= target_names(node.target)
        for name in sorted(names & set(before.frames[-1])):
            # An answer that is already there is nothing special.
            value = mapped(before.frames[-1][name], lambda f: UNKNOWN if f.index in state.joined else LOST)
            before = before.bind(name, before.content_of([value]))
        waited = self._waiting(node, before, iterable)
        if waited is not None:
            left = [_outside(flow) for flow in waited if flow.kind != "next"]
            return self._behind(node, state, left, merge(f.state for f in waited if f.kind == "next"))
        last: list[State] = []

        def iteration(start: State) -> list[Flow]:
            inside, last[:] = self._next(node, start, iterable)
            return self.walk.statements.block(node.body, merge(inside)) if inside else []

        loop, _, flows = self.repeated(node.node, before, iteration)
        endless = node.test is not None and _constant(node.test).truth({}) is True
        asks = any(s.operations != before.operations for s in last)
        around = [f for f in flows if f.kind in ("next", "continue")]
        finished = [loop.leave(Flow(_adopted(s, around) if asks else s)).state for s in last]
        done: list[Flow] = []
        for flow in flows:
            if flow not in around:
                done.append(_outside(loop.leave(flow)))
            elif not endless and not asks:
                finished.append(loop.end(flow).state)
        return self._behind(node, state, done, merge(finished))

    def _waiting(self, node: Loop, before: State, iterable: Value) -> list[Flow] | None:
        """Walk a loop that waits for all that an earlier loop has made; None if it is another one."""
        if node.target is None:
            return None
        body = getattr(node.node, "body", None)
        keyed = partial(self.walk.keyed.of, node.iterable, node.target, [body] if body else [])

        def each(start: State, item: Value) -> list[Flow]:
            return self._body(node, item, start)

        return self.walk.completing.waited(iterable, node.node, before, each, keyed)

    def _next(self, node: Loop, start: State, iterable: Value) -> tuple[list[State], list[State]]:
        """Return the states in which another iteration begins, and those in which none does."""
        if node.target is not None:
            item = self.walk.copies.item(iterable, start)
            return [self.walk.assignment.assign(node.target, item, start, node.node)], [start]
        assert node.test is not None  # noqa: S101  (a loop has a target or a test)
        answers = self.walk.conditions.test(node.test, start)
        return [s for s, holds in answers if holds], [s for s, holds in answers if not holds]


def _constant(node: cst.BaseExpression) -> Value:
    if name_of(node) == "True":
        return Const.of(value=True)
    if type(node) is cst.Integer:
        return Const.of(node.evaluated_value)
    return UNKNOWN


def _marked(flow: Flow, before: State, line: int) -> Flow:
    """Return the flow of a loop that only computed as local work; one that communicated speaks for itself."""
    if flow.kind != "next" or flow.state.operations != before.operations:
        return flow
    return Flow(flow.state.at_local_work(line))


def _adopted(state: State, around: Sequence[Flow]) -> State:
    """Return the state behind the last test of a loop with the names that only its iterations bind."""
    for flow in around:
        for name, value in flow.state.frames[-1].items():
            if name not in state.frames[-1]:
                state = state.bind(name, flow.state.content_of([value]))
    return state


def _outside(flow: Flow) -> Flow:
    """Return what leaving a loop is to the code around it."""
    return replace(flow, kind="next") if flow.kind == "break" else flow
