"""Results of comprehensions.

One over known items is unrolled; of one over any number of them, futures are followed if each iteration
leaves one of a kind.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from analyzer.static.application import Operation
from analyzer.static.repetition import items_left
from analyzer.static.state import Content, Flow, Results, State, forget, united
from analyzer.static.values import (
    GROWING,
    LOST,
    UNKNOWN,
    DictRef,
    Generator,
    ListRef,
    Many,
    SetRef,
    TupleValue,
    Value,
    added_to,
    alternatives,
    distinct,
    joined_many,
)
from analyzer.static.walk import Context, Part, TooManyPathsError

__all__ = ["Comprehensions"]


class Comprehensions(Part):
    """Walks comprehensions."""

    def comprehension(self, node: cst.BaseComp, state: State) -> Results:
        """Unroll a comprehension over known items; one over unknown items must not communicate."""
        element: Sequence[cst.BaseExpression]
        if isinstance(node, cst.DictComp):
            element = (node.key, node.value)
        else:
            assert isinstance(node, cst.BaseSimpleComp)  # noqa: S101  (the grammar has no third kind)
            element = (node.elt,)
        inner = state.enter({})
        depth = len(state.frames)
        # The comprehension's variables live in a frame of their own, and names around it stay visible.
        context = self.walk.contexts[-1]
        inside = Context(
            context.module, context.function, context.owner, closure=depth - 1, comprehension=True
        )
        with self.walk.within(inside):
            found = self._clause(node.for_in, element, [(inner, ())], node)
            return [self._made(node, content, after, depth) for after, content in found]

    def _made(
        self, node: cst.BaseComp, content: Content | Value, state: State, depth: int
    ) -> tuple[State, Value]:
        """Return the container of what has been collected."""
        number = self.walk.allocate()
        if isinstance(content, Value):
            left, (content,) = self.walk.variables.left([content], state, depth)
        else:
            keys = [key for key, _ in content]
            left, values = self.walk.variables.left([value for _, value in content], state, depth)
            content = tuple(zip(keys, values, strict=True))
        if isinstance(node, cst.DictComp):
            # Items of equal keys take each other's place.
            content = content.of(content.one, partly=True) if isinstance(content, Many) else content
            known = content if isinstance(content, Value) else distinct(content, left)
            return left.store(number, known), DictRef(number)
        if isinstance(node, cst.SetComp):
            items = None if isinstance(content, Value) else [value for _, value in content]
            if items is not None:
                return self.walk.expressions.new_set(items, items, left)
            return left.store(number, content), SetRef(number)
        return left.store(number, content), ListRef(number)

    def _clause(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        states: list[tuple[State, Content | Value]],
        node: cst.BaseComp,
    ) -> list[tuple[State, Content | Value]]:
        results: list[tuple[State, Content | Value]] = []
        for state, content in states:
            for after, iterables in self.walk.loops.iterables(clause.iter, state):
                for iterable in alternatives(iterables):
                    if not isinstance(iterable, Generator):
                        self.walk.may_fail_behind(state, after)
                    results += self._over(clause, element, after, content, iterable, node)
        return results

    def _over(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        state: State,
        content: Content | Value,
        iterable: Value,
        node: cst.BaseComp,
    ) -> list[tuple[State, Content | Value]]:
        """Walk a comprehension over one of the values that it may be over."""
        if isinstance(iterable, Generator):
            return self._generator_clause(clause, element, state, content, iterable, node)
        waited = self.walk.completing.items(iterable, state)
        if waited is not None:
            with self.walk.completing.whole(waited, node, state) as behind:
                found = self._known_clause(clause, element, state, content, waited, node)
            for one, _ in found:
                behind(Flow(one))
            return found
        items = self.walk.expressions.items(iterable, state)
        if items is None or not self.walk.unrolls(items):
            return [self._unknown_clause(clause, element, state, iterable, node)]
        return self._known_clause(clause, element, state, content, items, node)

    def _known_clause(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        state: State,
        content: Content | Value,
        items: Sequence[Value],
        node: cst.BaseComp,
    ) -> list[tuple[State, Content | Value]]:
        current: list[tuple[State, Content | Value]] = [(state, content)]
        with self.walk.widened(items):
            for item in items:
                current = self._iteration(clause, element, item, current, node, len(state.operations))
        return current

    def _iteration(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        item: Value,
        states: list[tuple[State, Content | Value]],
        node: cst.BaseComp,
        base: int,
    ) -> list[tuple[State, Content | Value]]:
        results: list[tuple[State, Content | Value]] = []
        self.walk.spend(len(states))
        for before, content in states:
            passing = [self.walk.assignment.assign(clause.target, item, before, node)]
            for condition in clause.ifs:
                answers = [a for s in passing for a in self.walk.conditions.test(condition.test, s)]
                results += [(s, content) for s, holds in answers if not holds]
                passing = [s for s, holds in answers if holds]
            for state in passing:
                if clause.inner_for_in is not None:
                    results += self._clause(clause.inner_for_in, element, [(state, content)], node)
                    continue
                for after, values in self.walk.expressions.evaluate_all(element, state):
                    key = values[0] if len(values) > 1 else UNKNOWN
                    results.append((after, _added(content, key, values[-1], after)))
        if self.walk.factoring and len(results) > 1:
            flows = self.walk.folded([Flow(s, value=_packed(c)) for s, c in results], base, node)
            results = [(flow.state, _unpacked(flow.value)) for flow in flows]
        groups: dict[tuple[Operation, ...], list[tuple[State, Content | Value]]] = {}
        for pair in results:
            groups.setdefault(pair[0].operations, []).append(pair)
        merged: list[tuple[State, Content | Value]] = []
        for group in groups.values():
            state = united(s for s, _ in group)
            merged.append((state, _any_of([c for _, c in group], state)))
        if len(merged) > self.walk.limit:
            raise TooManyPathsError
        return merged

    def _generator_clause(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        state: State,
        content: Content | Value,
        iterable: Generator,
        node: cst.BaseComp,
    ) -> list[tuple[State, Content | Value]]:
        """Walk a comprehension over a generator; what it has collected is in the heap meanwhile."""
        number = self.walk.allocate()

        def each(inner: State, item: Value) -> list[Flow]:
            ends = self._iteration(
                clause, element, item, [(inner, inner.heap[number])], node, len(inner.operations)
            )
            return [Flow(after.store(number, found)) for after, found in ends]

        flows = self.walk.generators.consume(iterable, state.store(number, content), node, each)
        self.walk.raised += [flow for flow in flows if flow.kind != "next"]
        return [(flow.state, flow.state.heap[number]) for flow in flows if flow.kind == "next"]

    def _unknown_clause(
        self,
        clause: cst.CompFor,
        element: Sequence[cst.BaseExpression],
        state: State,
        iterable: Value,
        node: cst.BaseComp,
    ) -> tuple[State, Value]:
        def iteration(start: State, item: Value) -> list[Flow]:
            ends = self._iteration(clause, element, item, [(start, GROWING)], node, len(start.operations))
            # The contents travel as the value of the flow.
            return [Flow(s, value=c if isinstance(c, Value) else forget([c], s.heap)) for s, c in ends]

        many = self.walk.copies.many(iterable, state)
        completing = self.walk.completing.many(iterable, state)
        if completing is not None:
            state, many = completing
        if many is None:
            keyed = self.walk.keyed.of(clause.iter, clause.target, [*element, *clause.ifs], state)
            waited = (
                None
                if keyed is None
                else self.walk.copies.over(keyed.many, node, state, keyed.each(iteration))
            )
        else:
            waited = self.walk.copies.over(many, node, state, iteration)
        if waited is not None:
            after = united(flow.state for flow in waited)
            return after, _forgotten([flow.value for flow in waited], after)
        if completing is not None:
            return self.walk.completing.refused(node, state).state, UNKNOWN
        item = self.walk.copies.item(iterable, state)
        loop, start, flows = self.walk.loops.repeated(node, state, lambda inner: iteration(inner, item))
        ends = [loop.end(Flow(start)), *(loop.end(flow) for flow in flows)]
        after = united(end.state for end in ends)
        return after, items_left(loop, [(flow.state, flow.value) for flow in flows])


def _forgotten(contents: Sequence[Content | Value], state: State) -> Value:
    """Return what is left of contents that are not known exactly, those of an iteration included."""
    rows = [
        tuple((UNKNOWN, value) for value in content.added)
        if isinstance(content, Many) and content.one == LOST
        else content
        for content in contents
    ]
    return forget(rows, state.heap)


def _any_of(contents: Sequence[Content | Value], state: State) -> Content | Value:
    """Return contents that may be any of these."""
    if len(set(contents)) == 1:
        return contents[0]
    return joined_many(contents) or _forgotten(contents, state)


def _added(content: Content | Value, key: Value, value: Value, state: State) -> Content | Value:
    """Return contents with one more item."""
    more = added_to(content, key, value)
    return _forgotten([content, ((UNKNOWN, value),)], state) if more is None else more


def _packed(content: Content | Value) -> Value:
    return content if isinstance(content, Value) else TupleValue(tuple(TupleValue(p) for p in content))


def _unpacked(value: Value) -> Content | Value:
    if not isinstance(value, TupleValue):
        return value
    return tuple((row.values[0], row.values[1]) for row in value.values if isinstance(row, TupleValue))
