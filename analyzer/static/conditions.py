"""What does a condition tell about the values it is about?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from analyzer.static.evaluation import merge_results
from analyzer.static.expressions import literal
from analyzer.static.facts import holding
from analyzer.static.state import Results, State
from analyzer.static.syntax import name_of
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    Const,
    External,
    Generator,
    ObjectRef,
    OneOf,
    TupleValue,
    Unknown,
    Value,
    alternatives,
    compare,
    join,
)
from analyzer.static.walk import Part, Walk

__all__ = ["Conditions", "instance_of_any"]

ISINSTANCE = External("builtins.isinstance")

LOOKING = (cst.Name, cst.Attribute, cst.Integer, cst.SimpleString, cst.Tuple, cst.BinaryOperation)
"""What an expression is made of that communicates nothing, whatever it is about."""

TRUTH = ("__bool__", "__len__")


class Conditions(Part):
    """Decides conditions, and narrows what is known behind them."""

    def conditional(self, node: cst.IfExp, state: State) -> Results:
        """Return what a conditional expression does."""
        results: Results = []
        for after, holds in self.test(node.test, state):
            results += self.walk.expressions.evaluate(node.body if holds else node.orelse, after)
        return merge_results(results)

    def boolean(self, node: cst.BooleanOperation, state: State) -> Results:
        """Return what ``and`` and ``or`` do."""
        stops = not isinstance(node.operator, cst.And)
        results: Results = []
        for evaluated, value in self.walk.expressions.evaluate(node.left, state):
            for after, answer in self.truth_of(value, node.left, evaluated):
                known = answer.truth(after.heap)
                if known is None or known is stops:
                    results.append((after, holding(value, stops)))
                if known is None or known is not stops:
                    results += self.walk.expressions.evaluate(
                        node.right, self.narrow(node.left, after, holds=not stops)
                    )
        return merge_results(results)

    def test(self, node: cst.BaseExpression, state: State) -> list[tuple[State, bool]]:
        """Return the states behind a condition, each with the answer that leads there."""
        results = []
        for evaluated, value in self.walk.expressions.evaluate(node, state):
            for after, answer in self.by_method(value, TRUTH, node, evaluated):
                known = answer.truth(after.heap)
                results += [
                    (self.narrow(node, after, holds=answer), answer)
                    for answer in (True, False)
                    if known is None or known is answer
                ]
        return results

    def narrow(self, node: cst.BaseExpression, state: State, *, holds: bool) -> State:
        """Return the state with what a condition's answer tells about a variable."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            return self.narrow(node.expression, state, holds=not holds)
        if isinstance(node, cst.BooleanOperation) and holds is isinstance(node.operator, cst.And):
            return self.narrow(node.right, self.narrow(node.left, state, holds=holds), holds=holds)
        if isinstance(node, cst.Name) and node.value in state.frames[-1]:
            return state.bind(node.value, holding(state.frames[-1][node.value], holds))
        if isinstance(node, cst.Call):
            return self._narrow_kind(node, state, holds=holds)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            comparison = node.comparisons[0]
            name, other = node.left, literal(comparison.comparator)
            if isinstance(name, cst.Name) and name.value in state.frames[-1] and other == NONE:
                is_none = holds is isinstance(comparison.operator, cst.Is | cst.Equal)
                if isinstance(comparison.operator, cst.Is | cst.IsNot | cst.Equal | cst.NotEqual):
                    return self._narrow_none(name.value, state, is_none=is_none)
            if isinstance(name, cst.Name) and isinstance(state.frames[-1].get(name.value), Unknown):
                texts = self._compared_with(comparison, state, holds=holds)
                if texts:
                    return state.bind(name.value, join(texts))
            if isinstance(name, cst.Name) and isinstance(state.frames[-1].get(name.value), OneOf):
                return self._narrow_compared(name.value, comparison, state, holds=holds)
        return state

    def _narrow_compared(
        self, name: str, comparison: cst.ComparisonTarget, state: State, *, holds: bool
    ) -> State:
        """Return the state with those values of a variable of which a comparison may have this answer."""
        other = self.looked_at(comparison.comparator, state)
        if other is None:
            return state
        operator = type(comparison.operator).__name__
        value = state.frames[-1][name]
        kept = [
            one
            for one in alternatives(value)
            if compare(operator, one, other).truth(state.heap) in (None, holds)
        ]
        return state.bind(name, join(kept)) if kept else state

    def _narrow_kind(self, node: cst.Call, state: State, *, holds: bool) -> State:
        """Return the state with those values of a variable that ``isinstance`` may say this of."""
        if len(node.args) != 2 or name_of(node.func) != "isinstance":
            return state
        name = node.args[0].value
        value = state.frames[-1].get(name.value) if isinstance(name, cst.Name) else None
        if not isinstance(name, cst.Name) or not isinstance(value, OneOf):
            return state
        kind = self.looked_at(node.args[1].value, state)
        if kind is None or self.walk.lookups.lookup("isinstance", state) != ISINSTANCE:
            return state
        options = alternatives(value)
        kept = [one for one in options if instance_of_any(one, kind, self.walk) in (None, holds)]
        return state.bind(name.value, join(kept)) if 0 < len(kept) < len(options) else state

    def looked_at(self, node: cst.BaseExpression, state: State) -> Value | None:
        """Return what an expression is worth that does nothing but look; None of any other."""
        if not all(isinstance(part, LOOKING) for part in _parts_of(node)):
            return None
        with self.walk.trying():
            results = self.walk.expressions.evaluate(node, state)
        return results[0][1] if len(results) == 1 and results[0][0] is state else None

    def _compared_with(
        self, comparison: cst.ComparisonTarget, state: State, *, holds: bool
    ) -> tuple[Value, ...]:
        """Return the texts that something unknown must be one of if a comparison has this answer."""
        other = comparison.comparator
        if isinstance(comparison.operator, cst.Equal if holds else cst.NotEqual):
            found: tuple[Value, ...] | None = (literal(other) or UNKNOWN,)
        elif isinstance(comparison.operator, cst.In if holds else cst.NotIn):
            if isinstance(other, cst.Tuple | cst.List | cst.Set):
                found = tuple(literal(element.value) or UNKNOWN for element in other.elements)
            else:
                found = (
                    self.walk.expressions.items(self.walk.lookups.lookup(other.value, state), state)
                    if isinstance(other, cst.Name)
                    else None
                )
        else:
            found = None
        known = found is not None and all(isinstance(v, Const) and isinstance(v.value, str) for v in found)
        return found if known and found is not None else ()

    def _narrow_none(self, name: str, state: State, *, is_none: bool) -> State:
        value = state.frames[-1][name]
        if is_none:
            return state.bind(name, NONE) if not value.tracked() or isinstance(value, OneOf) else state
        options = [v for v in alternatives(value) if v != NONE]
        return state.bind(name, join(options)) if options else state

    def truth_of(self, value: Value, node: cst.CSTNode, state: State) -> Results:
        """Return what asking whether a value counts as true does."""
        return self.by_method(value, TRUTH, node, state)

    def by_method(self, value: Value, methods: Sequence[str], node: cst.CSTNode, state: State) -> Results:
        """Return what asking a value through the first of these methods it has does."""
        results: Results = []
        for one in alternatives(value):
            found = None
            if isinstance(one, ObjectRef):
                found = self.walk.attributes.method_named(one.info, methods)
            if found is None:
                results.append((state, one))
            else:
                results += self.walk.functions.call_method(found, one, (), node, state)
        return [(state, value)] if all(after is state for after, _ in results) else results

    def searched(self, node: cst.BaseExpression, values: Iterable[Value], state: State) -> None:
        """Note what ``in`` does to generators: it takes their items."""
        if isinstance(node, cst.Comparison) and isinstance(node.comparisons[0].operator, cst.In | cst.NotIn):
            generators = [v for v in values if isinstance(v, Generator)]
            self.walk.calls.release(generators, state, node, "a search")


def instance_of_any(value: Value, kind: Value, walk: Walk) -> bool | None:
    """Return what ``isinstance`` says of a value and a class, a tuple or a union of them; None = perhaps."""
    kinds = kind.values if isinstance(kind, TupleValue) else (kind,)
    answers = [
        instance_of_any(value, one, walk) if isinstance(one, TupleValue) else value.instance_of(one, walk)
        for one in kinds
    ]
    return True if True in answers else None if None in answers else False


def _parts_of(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return an expression and the expressions in it, as far as these do nothing but look."""
    found = [node]
    for part in found:
        if isinstance(part, cst.Attribute):
            found.append(part.value)
        elif isinstance(part, cst.Tuple):
            found += (element.value for element in part.elements)
        elif isinstance(part, cst.BinaryOperation):
            found += (part.left, part.right)
    return found
