"""What does binding a value to a target change?"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.control import Step
from analyzer.static.expressions import operands
from analyzer.static.facts import without_facts
from analyzer.static.names import ClassInfo, FunctionInfo
from analyzer.static.state import State
from analyzer.static.values import (
    UNKNOWN,
    ClassValue,
    Const,
    FunctionValue,
    ObjectRef,
    Value,
    alternatives,
    binary,
    join,
)
from analyzer.static.walk import Part

__all__ = ["Assignment"]


class Assignment(Part):
    """Assigns to names, items and attributes."""

    def assign(self, target: cst.BaseExpression, value: Value, state: State, node: cst.CSTNode) -> State:
        """Return the state after binding a value to a target."""
        if isinstance(target, cst.Name):
            function = self.walk.contexts[-1].function
            return self.walk.variables.bind(
                target.value, self.walk.annotated.local(function, target.value, value), state, node
            )
        if isinstance(target, cst.StarredElement):
            return self.assign(target.value, value, state, node)
        if isinstance(target, cst.Tuple | cst.List):
            return self._unpack(target, value, state, node)
        if isinstance(target, cst.Subscript):
            return self._assign_item(target, value, state, node)
        if isinstance(target, cst.Attribute):
            return self.assign_attribute(target, value, state, node)
        self.walk.calls.release([value], state, node, target)
        return state

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, state: State, node: cst.CSTNode) -> State:
        for after, (listed,) in self.walk.generators.listed([value], node, state)[:1]:
            state, value = after, listed
        items = self.walk.expressions.items(value, state)
        size = len(target.elements)
        stars = [i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)]
        if items is not None and stars and len(items) >= size - 1:
            before, behind = stars[0], size - stars[0] - 1
            state, middle = self.walk.expressions.new_list(items[before : len(items) - behind], state)
            items = (*items[:before], middle, *items[len(items) - behind :])
        if items is None or len(items) != size:
            items = (state.content_of([value]),) * size
        for element, item in zip(target.elements, items, strict=True):
            state = self.assign(element.value, item, state, node)
        return state

    def _assign_item(self, target: cst.Subscript, value: Value, state: State, node: cst.CSTNode) -> State:
        for after, values in self.place_of(target, state):
            state = after
            owner = values[0]
            key = values[1] if len(values) == 2 else UNKNOWN
            changed = owner.with_item(key, value, state)
            if changed is not None:
                return changed
            self.walk.calls.release([value], state, node, target.value)
            state = without_facts(state)
        return state

    def place_of(self, target: cst.BaseExpression, state: State) -> Sequence[tuple[State, tuple[Value, ...]]]:
        """Evaluate what says where something is assigned: owner and index."""
        results = self.walk.expressions.evaluate_all(operands(target), state)
        if len(results) > 1:
            self.walk.report(
                "MUP030",
                f"'{self.walk.code(target)}' communicates in several ways where it is assigned:"
                " not analysed yet",
                target,
                "put the index into a variable first",
            )
        return results[:1]

    def delete(self, target: cst.BaseExpression, state: State) -> State:
        """Return the state after ``del``."""
        if not isinstance(target, cst.Subscript):
            return state
        for after, values in self.place_of(target, state):
            state = after
            for owner in alternatives(values[0]):
                changed = owner.without_item(values[-1], state)
                state = without_facts(state) if changed is None else changed
        return state

    def assign_attribute(self, target: cst.Attribute, value: Value, state: State, node: cst.CSTNode) -> State:
        """Return the state after ``target = value``."""
        name = target.attr.value
        for after, owner in self.walk.expressions.evaluate(target.value, state)[:1]:
            state = after
            objects = alternatives(owner)
            for one in objects:
                setter = self._setter(one, name)
                if setter is not None:
                    state = self._run_setter(FunctionValue(setter, one), value, state, node)
                elif isinstance(one, ObjectRef) and not self.walk.names.attribute(one.info, "__setattr__"):
                    state = self._store(one, name, value, state, certain=len(objects) == 1)
                elif isinstance(one, ClassValue) and self.walk.attaching.active:
                    state = self.walk.attaching.assign(
                        one.info, Const.of(name), value, state, certain=len(objects) == 1
                    )
                else:
                    self.walk.calls.release([value], state, node, f"the attribute '{self.walk.code(target)}'")
                    state = self.walk.variables.forget_contents([value], state)
        return state

    def _store(self, owner: ObjectRef, name: str, value: Value, state: State, *, certain: bool) -> State:
        if isinstance(state.heap[owner.number], Value):
            return state.store(owner.number, state.content_of([owner, value]))
        if not certain:
            value = join([owner.attributes(state.heap).get(name, UNKNOWN), value])
        return owner.with_attribute(name, value, state)

    def _setter(self, owner: Value, name: str) -> FunctionInfo | None:
        if isinstance(owner, ObjectRef):
            for base in self.walk.names.mro(owner.info):
                if isinstance(base, ClassInfo) and name in base.setters:
                    return base.setters[name]
        return None

    def _run_setter(self, setter: FunctionValue, value: Value, state: State, node: cst.CSTNode) -> State:
        results = self.walk.functions.call_function(setter, Arguments.of(value), node, state, follow=True)
        return results[0][0] if results else state

    def augment(
        self, node: Step, target: cst.BaseExpression, value: Value, state: State
    ) -> tuple[State, Value]:
        """Return the state after an augmented assignment, and what was added."""
        for after, old in self.walk.expressions.evaluate(target, state)[:1]:
            state = after
            self.walk.conditions.operated([old], node.node, state)
            changed = old.extended(node.augmented, value, state, self.walk)
            if changed is not None:
                return changed, value
            combined = binary(node.augmented, old, value)
            if combined == UNKNOWN:
                combined = state.content_of([old, value])
            return self.assign(target, combined, state, node.node), value
        return state, value
