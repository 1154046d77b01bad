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
    External,
    Generator,
    OneOf,
    Unknown,
    Value,
    alternatives,
    any_of,
    compare,
    join,
    of_kind,
)
from analyzer.static.walk import Part, Walk
from analyzer.static.walking import names_in

__all__ = ["Conditions", "instance_of_any"]

ISINSTANCE = External("builtins.isinstance")

TELLING_NONE = {"Equal": True, "Is": True, "IsNot": False, "NotEqual": False}
"""Operators that tell None from anything else, and whether they say that it is None."""

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
        stops = type(node.operator) is cst.Or
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
            for after, answer in self.truth_of(value, node, evaluated):
                known = answer.truth(after.heap)
                results += [
                    (self.narrow(node, after, holds=holds), holds)
                    for holds in (True, False)
                    if known in (None, holds)
                ]
        return results

    def narrow(self, node: cst.BaseExpression, state: State, *, holds: bool) -> State:
        """Return the state with what a condition's answer tells about a variable."""
        frame = state.frames[-1]
        match node, holds:
            case cst.UnaryOperation(operator=cst.Not(), expression=inner), _:
                return self.narrow(inner, state, holds=not holds)
            case (cst.BooleanOperation(left=left, operator=cst.And(), right=right), True) | (
                cst.BooleanOperation(left=left, operator=cst.Or(), right=right),
                False,
            ):
                return self.narrow(right, self.narrow(left, state, holds=holds), holds=holds)
            case ((cst.NamedExpr(target=named) | cst.Comparison(left=cst.NamedExpr(target=named))), _) if (
                name_of(named) in frame
            ):
                return self.narrow(_without_binding(node), state, holds=holds)
            case cst.Name(value=name), _ if name in frame:
                told = state.bind(name, holding(frame[name], holds))
                return told if holds else self.walk.copies.emptied(frame[name], told)
            case cst.Call(
                func=cst.Name(value="isinstance"), args=[cst.Arg(value=cst.Name(value=name)), kind]
            ), _:
                return self._narrow_kind(name, kind.value, state, holds=holds)
            case cst.Comparison(left=cst.Name(value=name), comparisons=[comparison]), _ if name in frame:
                return self._narrow_compared(name, comparison, state, holds=holds)
            case (
                (
                    (cst.Attribute() as looked)
                    | cst.Call(func=cst.Attribute() as looked)
                    | cst.Comparison(left=cst.Attribute() as looked)
                ),
                _,
            ):
                return self._narrow_owner(_owner_of(looked), node, state, holds=holds)
        return state

    def _narrow_compared(
        self, name: str, comparison: cst.ComparisonTarget, state: State, *, holds: bool
    ) -> State:
        """Return the state with those values of a variable of which a comparison may have this answer."""
        operator = type(comparison.operator).__name__
        if operator in TELLING_NONE and literal(comparison.comparator) == NONE:
            return self._narrow_none(name, state, is_none=TELLING_NONE[operator] is holds)
        match state.frames[-1][name]:
            case Unknown():
                texts = self._compared_with(operator, comparison.comparator, state, holds=holds)
                return state.bind(name, join(texts)) if texts else state
            case OneOf() as value:
                other = self.looked_at(comparison.comparator, state)
                if other is not None:
                    answers = ((one, compare(operator, one, other)) for one in alternatives(value))
                    kept = [one for one, answer in answers if answer.truth(state.heap) in (None, holds)]
                    return state.bind(name, join(kept)) if kept else state
        return state

    def _narrow_owner(self, name: str, node: cst.BaseExpression, state: State, *, holds: bool) -> State:
        """Return the state with those values of a variable of whose attributes a condition may hold.

        What an object has may have been changed since; of what never changes the condition is asked again.
        """
        options = alternatives(state.frames[-1].get(name, UNKNOWN))
        if len(options) < 2 or any(one.place is not None or one.tracked() for one in options):
            return state
        if any(state.holds_tracked(state.frames[-1].get(word, UNKNOWN)) for word in names_in(node)):
            return state  # what may communicate is not asked twice
        answers = [self._asked(node, state.bind(name, one)) for one in options if _only_asks(node)]
        kept = [
            one
            for one, answer in zip(options, answers, strict=False)
            if answer is None or self._truth_known(answer, state) in (None, holds)
        ]
        return state.bind(name, join(kept)) if 0 < len(kept) < len(options) else state

    def _truth_known(self, value: Value, state: State) -> bool | None:
        """Return whether a value counts as true; None if that is not known, or said by code."""
        if any(one.own_method(TRUTH, self.walk) is not None for one in alternatives(value)):
            return None
        return value.truth(state.heap)

    def _narrow_kind(self, name: str, node: cst.BaseExpression, state: State, *, holds: bool) -> State:
        """Return the state with those values of a variable that ``isinstance`` may say this of."""
        options = alternatives(state.frames[-1].get(name, UNKNOWN))
        kind = self.looked_at(node, state) if len(options) > 1 else None
        if kind is None or self.walk.lookups.lookup("isinstance", state) != ISINSTANCE:
            return state
        kept = [one for one in options if instance_of_any(one, kind, self.walk) in (None, holds)]
        return state.bind(name, join(kept)) if 0 < len(kept) < len(options) else state

    def looked_at(self, node: cst.BaseExpression, state: State) -> Value | None:
        """Return what an expression is worth that does nothing but look; None of any other."""
        return self._asked(node, state) if _only_looks(node) else None

    def _asked(self, node: cst.BaseExpression, state: State) -> Value | None:
        """Return what an expression is worth; None if evaluating it does anything."""
        with self.walk.trying():
            results = self.walk.expressions.evaluate(node, state)
        return results[0][1] if len(results) == 1 and results[0][0] == state else None

    def _compared_with(
        self, operator: str, node: cst.BaseExpression, state: State, *, holds: bool
    ) -> Sequence[Value]:
        """Return the texts that something unknown must be one of if a comparison has this answer."""
        found: Sequence[Value | None] = ()
        if operator == ("Equal" if holds else "NotEqual"):
            found = (literal(node),)
        elif operator == ("In" if holds else "NotIn"):
            match node:
                case cst.Tuple(elements=parts) | cst.List(elements=parts) | cst.Set(elements=parts):
                    found = [literal(part.value) for part in parts]
                case cst.Name() | cst.Attribute():
                    container = self.looked_at(node, state)
                    found = () if container is None else container.items(state, self.walk) or ()
        texts = [value for value in found if value is not None and value.text is not None]
        return texts if len(texts) == len(found) else ()

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
            found = one.own_method(methods, self.walk)
            if found is None:
                results.append((state, one))
            else:
                results += self.walk.functions.call_method(found, one, (), node, state)
        return [(state, value)] if all(after is state for after, _ in results) else results

    def searched(self, node: cst.BaseExpression, values: Iterable[Value], state: State) -> None:
        """Note what ``in`` does to generators: it takes their items."""
        match node:
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn()), *_]):
                self.walk.calls.release(of_kind(values, Generator), state, node, "a search")


def instance_of_any(value: Value, kind: Value, walk: Walk) -> bool | None:
    """Return what ``isinstance`` says of a value and a class, a tuple or a union of them; None = perhaps."""
    kinds = kind.classes()
    if kinds == (kind,):
        return value.instance_of(kind, walk)
    return any_of([instance_of_any(value, one, walk) for one in kinds])


def _only_looks(node: cst.BaseExpression) -> bool:
    """Return whether evaluating an expression communicates nothing, whatever it is about."""
    match node:
        case cst.Name() | cst.Integer() | cst.SimpleString():
            return True
        case cst.Attribute(value=owner):
            return _only_looks(owner)
        case cst.Tuple(elements=elements):
            return all(_only_looks(element.value) for element in elements)
        case cst.BinaryOperation(left=left, right=right):
            return _only_looks(left) and _only_looks(right)
    return False


def _owner_of(node: cst.BaseExpression) -> str:
    """Return the variable that an attribute of an attribute ... is one of; "" if it is none."""
    while type(node) is cst.Attribute:
        node = node.value
    return name_of(node)


def _without_binding(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return a condition about a variable that it binds itself as one about the variable."""
    match node:
        case cst.NamedExpr(target=target):
            return target
        case cst.Comparison(left=cst.NamedExpr(target=target)):
            return node.with_changes(left=target)
    return node


def _only_asks(node: cst.BaseExpression) -> bool:
    """Return whether a condition is an attribute or method, or compares one, and does nothing else."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner), args=arguments):
            return _only_looks(owner) and all(_only_looks(one.value) for one in arguments)
        case cst.Comparison(left=left, comparisons=comparisons):
            return _only_asks(left) and all(_only_looks(one.comparator) for one in comparisons)
    return _only_looks(node)
