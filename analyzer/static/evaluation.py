"""What does an expression do, and what is it worth, in every state that can reach it?

Expressions are walked in evaluation order. What they communicate extends the path of a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import libcst as cst

from analyzer.static.expressions import combine, item_key, literal, operands
from analyzer.static.state import Flow, Results, State, grouped, planned, united, with_bound
from analyzer.static.syntax import stars
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Const,
    DictRef,
    External,
    ListRef,
    Many,
    OneOf,
    SetRef,
    TupleValue,
    Value,
    alternatives,
    chained,
    distinct,
    is_filled,
    join,
    negated,
    of_kind,
    runs_of,
    tuple_of,
)
from analyzer.static.values.containers import Drawn
from analyzer.static.values.objects import MadeObject
from analyzer.static.walk import Part, TooManyPathsError

__all__ = ["Expressions"]

MAX_PATHS = 1000
"""Ways on from one expression that are told apart."""


class Expressions(Part):
    """Evaluates expressions."""

    @cached_property
    def _methods(self) -> dict[type, Callable[[Any, State], Results]]:
        """What walks which expression: `isinstance` is slow for abstract classes like libcst's."""
        walk = self.walk
        return {
            cst.Attribute: self._attribute,
            cst.Await: walk.waiting.await_,
            cst.BooleanOperation: walk.conditions.boolean,
            cst.Call: walk.calls.call,
            cst.DictComp: walk.comprehensions.comprehension,
            cst.GeneratorExp: walk.generators.generator_expression,
            cst.IfExp: walk.conditions.conditional,
            cst.Lambda: self._lambda,
            cst.ListComp: walk.comprehensions.comprehension,
            cst.Name: self._name,
            cst.NamedExpr: self._named_expression,
            cst.SetComp: walk.comprehensions.comprehension,
            cst.Yield: walk.generators.yielded,
        }

    def evaluate(self, node: cst.BaseExpression, state: State) -> Results:
        """Return the states in which an expression ends, each with its value.

        Executions that end in an exception are added to ``raised`` instead.
        """
        known = literal(node)
        if known is not None:
            return [(state, known)]
        return self._methods.get(type(node), self._pure)(node, state)

    def _named_expression(self, node: cst.NamedExpr, state: State) -> Results:
        return [(self._named(node.target, v, s), v) for s, v in self.evaluate(node.value, state)]

    def _lambda(self, node: cst.Lambda, state: State) -> Results:
        return [(state, self.walk.variables.closure(node, f"{self.walk.qualname}<lambda>", state))]

    def _name(self, node: cst.Name, state: State) -> Results:
        value = self.walk.lookups.lookup(node.value, state)
        if type(value) is Drawn or type(value) is OneOf:
            return [self._drawn(node.value, value, state)]
        return [(state, value)]

    def _drawn(self, name: str, value: Value, state: State) -> tuple[State, Value]:
        """Return what a variable is worth that may be an iterator: what is left of that is not known."""
        found = [one for one in alternatives(value) if isinstance(one, Drawn)]
        left = state.content_of([value]) if found else value
        if not all(one.is_current(state.heap) for one in found):
            return state, left
        if not any(one.once for one in found):
            return state, value
        depth: int | None = len(state.frames) - 1
        while depth is not None and depth < len(state.frames) and name not in state.frames[depth]:
            depth = self.walk.contexts[depth].closure
        if depth is None or depth >= len(state.frames):
            return state, left
        frame = with_bound(state.frames[depth], name, left)
        return replace(state, frames=(*state.frames[:depth], frame, *state.frames[depth + 1 :])), value

    def evaluate_all(
        self, nodes: Sequence[cst.BaseExpression], state: State
    ) -> list[tuple[State, tuple[Value, ...]]]:
        """Evaluate expressions one after the other."""
        results: list[tuple[State, tuple[Value, ...]]] = [(state, ())]
        for node in nodes:
            results = [
                (after, (*values, value))
                for before, values in results
                for after, value in self.evaluate(node, before)
            ]
            if self.walk.factoring and len(results) > 1:
                results = self._folded_values(results, state, node)
            if len(results) > self.walk.limit:
                raise TooManyPathsError
        return results

    def _folded_values(
        self, results: list[tuple[State, tuple[Value, ...]]], before: State, node: cst.CSTNode
    ) -> list[tuple[State, tuple[Value, ...]]]:
        flows = [Flow(state, value=TupleValue(values)) for state, values in results]
        folded = self.walk.folded(flows, len(before.operations), node)
        groups = grouped(folded, (flow.state.operations for flow in folded))
        return [
            (
                united(f.state for f in group),
                tuple(map(join, zip(*(f.value.parts() for f in group), strict=True))),
            )
            for group in groups
        ]

    def _pure(self, node: cst.BaseExpression, state: State) -> Results:
        results: Results = []
        for after, values in self._operands(node, state):
            match node:
                case cst.List(elements=elements):
                    results.append(self._new_list(self._displayed(elements, values, after), values, after))
                    continue
                case cst.Tuple(elements=elements):
                    items = self._displayed(elements, values, after)
                    known = after.content_of(values) if items is None else chained(items)
                    results.append((after, known if isinstance(known, Value) else tuple_of(items or ())))
                    continue
            self.walk.may_fail_behind(state, after)
            match node:
                case cst.Set(elements=elements):
                    items = self._displayed(elements, values, after)
                    self.walk.overloading.unfollowed_keys(values, node, after)
                    results.append(self.new_set(items, values, after))
                case cst.Dict():
                    results.append(self._new_dict(node, values, after))
                case cst.Subscript():
                    results += self._subscripted(node, values, after)
                case cst.UnaryOperation(operator=cst.Not()):
                    truths = self.walk.conditions.truth_of(values[0], node, after)
                    results += [(answered, negated(one.truth(answered.heap))) for answered, one in truths]
                case _:
                    overloaded = self.walk.overloading.of(node, values, after)
                    results += self._operated(node, values, after) if overloaded is None else overloaded
        return results

    def _operands(self, node: cst.BaseExpression, state: State) -> list[tuple[State, tuple[Value, ...]]]:
        """Evaluate the operands of an expression; ``*`` in a list takes the items of a generator."""
        found = self.evaluate_all(operands(node), state)
        starred = stars(getattr(node, "elements", ()))
        if not starred:
            return found
        results = []
        for before, values in found:
            for after, listed in self.walk.generators.listed([values[n] for n in starred], node, before):
                taken = dict(zip(starred, listed, strict=True))
                results.append((after, tuple(taken.get(n, own) for n, own in enumerate(values))))
        return results

    def _operated(self, node: cst.BaseExpression, values: Sequence[Value], state: State) -> Results:
        """Return the result of what no method of the source tree does."""
        if type(node) is cst.BinaryOperation:
            return [self._combined(node, values, state)]
        self.walk.overloading.unfollowed(node, values, state)
        self.walk.conditions.searched(node, values, state)
        match node, values:
            case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn())]), [
                one,
                many,
            ]:
                items = self.items(many, state) if type(many) in (ListRef, SetRef) else None
                values = values if items is None else (one, TupleValue(items))
        return [(state, combine(node, values))]

    def _combined(
        self, node: cst.BinaryOperation, values: Sequence[Value], state: State
    ) -> tuple[State, Value]:
        """Return the result of an operator; that of lists and dicts may hold futures, too."""
        left, right = values
        match node.operator, left, right:
            case cst.BitOr(), DictRef(), DictRef():
                return self._merged(values, state)
            case _, _, DictRef():  # `"%(name)s" % {...}`
                value = combine(node, (left, self.walk.lookups.freeze(right, state)))
                return state, state.content_of(values) if value == UNKNOWN else value
            case cst.Modulo(), _, _:  # maybe of a text
                self.walk.overloading.unfollowed(node, values, state)
            case cst.BitOr(), _, _ if is_kind(left) and is_kind(right):
                return state, TupleValue((*left.classes(), *right.classes()))
            case cst.Add(), ListRef(), ListRef():
                items, more = self.walk.copies.runs(left, state), self.walk.copies.runs(right, state)
                if items is not None and more is not None:
                    return self._new_list((*items, *more), (), state)
        value = combine(node, values)
        return state, state.content_of(values) if value == UNKNOWN else value

    def _merged(self, dicts: Sequence[Value], state: State) -> tuple[State, Value]:
        """Return the state with a new dict of the items of several; later ones replace earlier ones."""
        made = DictRef(self.walk.allocate())
        pairs = [one.pairs(state.heap) for one in dicts]
        runs = [run for one in dicts for run in runs_of(state.heap.get(one.place or 0)) or (UNKNOWN,)]
        if None not in pairs:
            content = distinct(tuple(row for rows in pairs for row in rows or ()), state)
        elif all(type(run) is Many and not run.key.tracked() for run in runs):
            content = chained(replace(run, partly=True) for run in of_kind(runs, Many))
        else:
            content = state.content_of(dicts)
        return state.store(made.number, content), made

    def _subscripted(self, node: cst.Subscript, values: Sequence[Value], state: State) -> Results:
        """Return what reading ``owner[key]`` does."""
        owner, *keys = values
        key = item_key(node, keys)
        if key is not None:
            self.walk.overloading.unfollowed_keys(keys, node, state)
            return merge_results(owner.item(key, node, state, self.walk))
        several = [(one, self._reads_items(one)) for one in alternatives(owner)]
        if any(reads for _, reads in several):
            results: Results = []
            for one, reads in several:
                unknown = [(state, state.content_of([one]))]
                results += one.item(UNKNOWN, node, state, self.walk) if reads else unknown
            return merge_results(results)
        self.walk.overloading.unfollowed_keys(keys, node, state)
        match node.slice:
            case [cst.SubscriptElement(slice=cst.Slice() as part)]:
                taken = self._sliced(part, values, state)
                copied = isinstance(owner, ListRef) and isinstance(taken, TupleValue)
                return [self.new_list(taken.parts(), state) if copied else (state, taken)]
        return [(state, state.content_of([owner]))]

    def _reads_items(self, owner: Value) -> bool:
        """Return whether a method of the source tree reads items of an object."""
        return isinstance(owner, MadeObject) and self.walk.names.method(owner.info, "__getitem__") is not None

    def _displayed(
        self, elements: Sequence[cst.BaseElement], values: Sequence[Value], state: State
    ) -> tuple[Value, ...] | None:
        """Return the runs of a list, set or tuple that is spelt out; None if a part is unknown."""
        found: list[Value] = []
        for element, value in zip(elements, values, strict=True):
            drawn = is_filled(value) or (isinstance(value, Drawn) and value.once)
            kept = state.content_of([value]) if drawn else value
            items = self.walk.copies.runs(value, state) if type(element) is cst.StarredElement else (kept,)
            if items is None:
                return None
            found += items
        return tuple(found)

    def new_list(self, values: Iterable[Value], state: State) -> tuple[State, Value]:
        """Return the state with a new list."""
        made = ListRef(self.walk.allocate())
        return state.store(made.number, tuple((UNKNOWN, one) for one in values)), made

    def _new_list(
        self, runs: Iterable[Value] | None, held: Iterable[Value], state: State
    ) -> tuple[State, Value]:
        """Return the state with a new list of some runs; of items that are not known, what they hold."""
        made = ListRef(self.walk.allocate())
        return state.store(made.number, state.content_of(held) if runs is None else chained(runs)), made

    def new_set(
        self, items: Sequence[Value] | None, held: Iterable[Value], state: State
    ) -> tuple[State, Value]:
        """Return the state with a new set; of items that are not known, or may be equal, what they hold."""
        made = SetRef(self.walk.allocate())
        known = state if items is None else state.store(made.number, chained(items))
        if not of_kind(items or (), Many) and (items is None or made.members(known) is None):
            known = state.store(made.number, state.content_of(held))
        return known, made

    def _new_dict(self, node: cst.Dict, values: Sequence[Value], state: State) -> tuple[State, Value]:
        number = self.walk.allocate()
        rest = list(values)
        pairs: list[tuple[Value, Value]] = []
        for element in node.elements:
            if type(element) is cst.DictElement:
                self.walk.overloading.unfollowed_keys(rest[:1], node, state)
                pairs.append((rest.pop(0), rest.pop(0)))
                continue
            spread = rest.pop(0)
            self.walk.overloading.unfollowed_mappings([spread], node, state)
            more = spread.pairs(state.heap) if spread.is_mapping else None
            if more is None:
                return state.store(number, state.content_of(values)), DictRef(number)
            pairs += more
        return state.store(number, distinct(tuple(pairs), state)), DictRef(number)

    def _sliced(self, part: cst.Slice, values: Sequence[Value], state: State) -> Value:
        """Return ``owner[a:b:c]`` as a tuple: a copy that shares nothing with the owner."""
        bounds: list[int | None] = []
        rest = list(values[1:])
        for bound in (part.lower, part.upper, part.step):
            match NONE if bound is None else rest.pop(0):
                case Const(value=int() | None as known):
                    bounds.append(known)
                case _:
                    return state.content_of(values[:1])
        results: list[Value] = []
        for before, owner in one_by_one(values[0], state):
            items = None if owner.is_mapping else self.items(owner, before)
            if bounds[2] == 0 or items is None:
                return state.content_of(values[:1])
            taken, text = slice(*bounds), owner.text
            results.append(TupleValue(items[taken]) if text is None else Const.of(text[taken]))
        return join(results)

    def items(self, value: Value, state: State) -> tuple[Value, ...] | None:
        """Return what iterating over a value yields; None if that is not known."""
        return value.items(state, self.walk)

    def _attribute(self, node: cst.Attribute, state: State) -> Results:
        results: Results = []
        for after, owner in self.evaluate(node.value, state):
            if not owner.reads_safely:
                self.walk.may_fail_behind(state, after)
            results += owner.read(node.attr.value, node, after, self.walk)
        return merge_results(results)

    def _named(self, target: cst.BaseExpression, value: Value, state: State) -> State:
        """Return the state after ``target := value``, which binds outside of comprehensions."""
        assert type(target) is cst.Name  # noqa: S101  (the grammar has no other target)
        depth = len(state.frames) - 1
        while self.walk.contexts[depth].comprehension:
            outside = self.walk.contexts[depth].closure
            if outside is None:
                break
            depth = outside
        frame = with_bound(state.frames[depth], target.value, value)
        return replace(state, frames=(*state.frames[:depth], frame, *state.frames[depth + 1 :]))

    def missing(self, error: str, node: cst.CSTNode, state: State) -> Results:
        """Note the exception of reading an attribute or item that is not there; there is no way on."""
        missing = External(f"builtins.{error}")
        self.walk.raised.append(Flow(state, "raise", missing, self.walk.module.line(node)))
        return []


def is_kind(value: Value) -> bool:
    """Return whether a value is a class of the source tree, None, or a union of these."""
    if isinstance(value, TupleValue):
        return bool(value.values) and all(map(is_kind, value.values))
    return isinstance(value, ClassValue) or value == NONE


def one_by_one(value: Value, state: State) -> Results:
    """Return each of the values that one may be, of a list each of the contents that it may have."""
    return [(before, one) for one in alternatives(value) for before in state.apart([one])]


def merge_results(results: Results) -> Results:
    """Return one result per sequence of operations and of what is left to be done."""
    if len(results) < 2:
        return results
    plans = planned([state.heap for state, _ in results])
    groups = grouped(results, zip((state.operations for state, _ in results), plans, strict=True))
    if len(groups) > MAX_PATHS:
        raise TooManyPathsError
    return [(united(s for s, _ in group), join(v for _, v in group)) for group in groups]
