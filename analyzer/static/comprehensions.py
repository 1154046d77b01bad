"""Results of comprehensions.

One over known items is unrolled; of one over any number of them, futures are followed if each iteration
leaves one of a kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import libcst as cst

from analyzer.static.evaluation import one_by_one
from analyzer.static.repetition import is_growing, items_left
from analyzer.static.state import (
    Contents,
    Flow,
    Results,
    State,
    forget,
    grouped,
    mapped_contents,
    united,
    values_in,
)
from analyzer.static.values import (
    GROWING,
    UNKNOWN,
    DictRef,
    Generator,
    ListRef,
    Many,
    SetRef,
    TupleValue,
    Value,
    added_to,
    distinct,
    if_known,
    joined_many,
    joined_variants,
)
from analyzer.static.walk import Context, Part, TooManyPathsError

__all__ = ["Comprehensions"]


Collected = tuple[State, Contents]
"""A state, and what has been collected by then."""


@dataclass(frozen=True, eq=False, slots=True)
class _Clause:
    """A ``for`` of a comprehension.

    Attributes:
        loop: It.
        element: What is collected: key and value, or the value alone.
        node: The comprehension.
    """

    loop: cst.CompFor
    element: Sequence[cst.BaseExpression]
    node: cst.BaseComp


class Comprehensions(Part):
    """Walks comprehensions."""

    def comprehension(self, node: cst.BaseComp, state: State) -> Results:
        """Unroll a comprehension over known items; one over unknown items must not communicate."""
        element: Sequence[cst.BaseExpression] = ()
        match node:
            case cst.DictComp(key=key, value=value):
                element = (key, value)
            case cst.ListComp(elt=value) | cst.SetComp(elt=value):
                element = (value,)
        depth = len(state.frames)
        # The comprehension's variables live in a frame of their own, and names around it stay visible.
        outer = self.walk.contexts[-1]
        inside = Context(outer.module, outer.function, outer.owner, closure=depth - 1, comprehension=True)
        with self.walk.within(inside):
            with self.walk.catching() as raised:
                found = self._clause(_Clause(node.for_in, element, node), [(state.enter({}), ())])
            for flow in raised:
                outside, (error,) = self.walk.variables.left([flow.value], flow.state, depth)
                self.walk.raised.append(replace(flow, state=outside, value=error))
            return [self._made(node, content, after, depth) for after, content in found]

    def _made(self, node: cst.BaseComp, content: Contents, state: State, depth: int) -> tuple[State, Value]:
        """Return the container of what has been collected."""
        number = self.walk.allocate()
        left, values = self.walk.variables.left(list(values_in(content)), state, depth)
        rest = iter(values)
        content = mapped_contents(content, lambda _: next(rest))
        match node, content:
            # Items of equal keys take each other's place.
            case cst.DictComp(), Many():
                content = replace(content, partly=content.partly or not content.key.tracked())
            case cst.DictComp(), tuple():
                content = distinct(content, left)
            case cst.SetComp(), tuple():
                items = [value for _, value in content]
                return self.walk.expressions.new_set(items, items, left)
        made = {cst.DictComp: DictRef, cst.SetComp: SetRef}.get(type(node), ListRef)
        return left.store(number, content), made(number)

    def _clause(self, clause: _Clause, states: Sequence[Collected]) -> list[Collected]:
        results: list[Collected] = []
        for state, content in states:
            if clause.loop.asynchronous is not None:
                self.walk.tasks.waited(state)
            for after, iterables in self.walk.loops.iterables(clause.loop.iter, state):
                for before, iterable in one_by_one(iterables, after):
                    if not isinstance(iterable, Generator):
                        self.walk.may_fail_behind(state, before)
                    results += self._over(clause, before, content, iterable)
        return results

    def _over(self, clause: _Clause, state: State, content: Contents, iterable: Value) -> list[Collected]:
        """Walk a comprehension over one of the values that it may be over."""
        if isinstance(iterable, Generator):
            return self._generator_clause(clause, state, content, iterable)
        waited = self.walk.completing.items(iterable, state)
        if waited is not None:
            with self.walk.completing.whole(waited, clause.node, state) as behind:
                found = self._known_clause(clause, state, content, waited)
            for one, _ in found:
                behind(Flow(one))
            return found
        items = self.walk.expressions.items(iterable, state)
        if items is None or not self.walk.unrolls(items):
            return [self._unknown_clause(clause, state, iterable)]
        return self._known_clause(clause, state, content, items)

    def _known_clause(
        self, clause: _Clause, state: State, content: Contents, items: Sequence[Value]
    ) -> list[Collected]:
        current: list[Collected] = [(state, content)]
        with self.walk.widened(items):
            for item in items:
                current = self._iteration(clause, item, current, len(state.operations))
        return current

    def _iteration(
        self, clause: _Clause, item: Value, states: Sequence[Collected], base: int
    ) -> list[Collected]:
        results: list[Collected] = []
        self.walk.spend(len(states))
        loop = clause.loop
        for before, content in states:
            passing = [self.walk.assignment.assign(loop.target, item, before, clause.node)]
            for condition in loop.ifs:
                answers = [a for s in passing for a in self.walk.conditions.test(condition.test, s)]
                results += [(s, content) for s, holds in answers if not holds]
                passing = [s for s, holds in answers if holds]
            for state in passing:
                if loop.inner_for_in is not None:
                    results += self._clause(replace(clause, loop=loop.inner_for_in), [(state, content)])
                    continue
                for after, values in self.walk.expressions.evaluate_all(clause.element, state):
                    key = values[0] if len(values) > 1 else UNKNOWN
                    results.append((after, _added(content, key, values[-1], after)))
        if self.walk.factoring and len(results) > 1:
            flows = self.walk.folded([Flow(s, value=_packed(c)) for s, c in results], base, clause.node)
            results = [(flow.state, _unpacked(flow.value)) for flow in flows]
        groups = grouped(results, (state.operations for state, _ in results))
        if len(groups) > self.walk.limit:
            raise TooManyPathsError
        joined = [(united(s for s, _ in group), [c for _, c in group]) for group in groups]
        made = type(clause.node)
        return [(state, _any_of(contents, state, made)) for state, contents in joined]

    def _generator_clause(
        self, clause: _Clause, state: State, content: Contents, iterable: Generator
    ) -> list[Collected]:
        """Walk a comprehension over a generator; what it has collected is in the heap meanwhile."""
        number = self.walk.allocate()

        def each(inner: State, item: Value) -> list[Flow]:
            ends = self._iteration(clause, item, [(inner, inner.heap[number])], len(inner.operations))
            return [Flow(after.store(number, found)) for after, found in ends]

        flows = self.walk.generators.consume(iterable, state.store(number, content), clause.node, each)
        return [(flow.state, flow.state.heap[number]) for flow in self.walk.going_on(flows)]

    def _unknown_clause(self, clause: _Clause, state: State, iterable: Value) -> tuple[State, Value]:
        def iteration(start: State, item: Value) -> list[Flow]:
            ends = self._iteration(clause, item, [(start, GROWING)], len(start.operations))
            # The contents travel as the value of the flow.
            return [Flow(s, value=c if isinstance(c, Value) else forget([c], s.heap)) for s, c in ends]

        node, body = clause.node, [*clause.element, *clause.loop.ifs]
        keyed = partial(self.walk.keyed.of, clause.loop.iter, clause.loop.target, body)
        waited = self.walk.completing.waited(iterable, node, state, iteration, keyed)
        if waited is not None:
            after = united(flow.state for flow in waited)
            return after, _forgotten([flow.value for flow in waited], after)
        item = self.walk.copies.item(iterable, state)
        loop, start, flows = self.walk.loops.repeated(node, state, lambda inner: iteration(inner, item))
        ends = [loop.end(Flow(start)), *(loop.end(flow) for flow in flows)]
        after = united(end.state for end in ends)
        return after, items_left(loop, [(flow.state, flow.value) for flow in flows], self.walk.lookups.freeze)


def _forgotten(contents: Sequence[Contents], state: State) -> Value:
    """Return what is left of contents that are not known exactly, those of an iteration included."""
    rows = [tuple((UNKNOWN, one) for one in c.added) if is_growing(c) else c for c in contents]
    return forget(rows, state.heap)


def _any_of(contents: Sequence[Contents], state: State, made: type[cst.BaseComp]) -> Contents:
    """Return contents that may be any of these, of what such a comprehension makes."""
    if len(set(contents)) == 1:
        return contents[0]
    several = joined_variants(contents) if made is cst.ListComp else None
    return joined_many(contents) or several or _forgotten(contents, state)


def _added(content: Contents, key: Value, value: Value, state: State) -> Contents:
    """Return contents with one more item."""
    hidden = state.holds_tracked(key) and not key.tracked()
    more = None if hidden else added_to(content, key, value)
    return _forgotten([content, ((key, value),)], state) if more is None else more


def _packed(content: Contents) -> Value:
    return if_known(content, lambda rows: TupleValue(tuple(map(TupleValue, rows))))


def _unpacked(value: Value) -> Contents:
    if not isinstance(value, TupleValue):
        return value
    key_and_value = (row.parts() for row in value.values)
    return tuple((key, item) for key, item in key_and_value)
