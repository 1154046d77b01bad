"""What does binding a value to a target change?"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.control import Step
from analyzer.static.expressions import item_key, operands
from analyzer.static.facts import without_facts
from analyzer.static.state import Results, State
from analyzer.static.syntax import container_of, name_of, stars
from analyzer.static.values import (
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    FunctionValue,
    Method,
    ObjectRef,
    Partial,
    TupleValue,
    Value,
    alternatives,
    binary,
    join,
    of_kind,
)
from analyzer.static.values.containers import RECORDS, ListRef, MapValue, Records, report_change
from analyzer.static.values.namespaces import texts_of
from analyzer.static.walk import Part

__all__ = ["Assignment"]


class Assignment(Part):
    """Assigns to names, items and attributes."""

    def assign(self, target: cst.BaseExpression, value: Value, state: State, node: cst.CSTNode) -> State:
        """Return the state after binding a value to a target."""
        match target:
            case cst.Name(value=name):
                known = self.walk.annotated.local(self.walk.contexts[-1].function, name, value)
                return self.walk.variables.bind(name, known, state, node)
            case cst.StarredElement(value=inner):
                return self.assign(inner, value, state, node)
            case cst.Tuple() | cst.List():
                return self._unpack(target, value, state, node)
            case cst.Subscript() | cst.Attribute():
                found = self.ways(target, value, state, node)
                self._check_ways(
                    found, f"'{self.walk.code(target)}' communicates", "it is assigned here", node
                )
                return found[0]
        self.walk.calls.release([value], state, node, target)
        return state

    def ways(
        self, target: cst.BaseExpression, value: Value, state: State, node: cst.CSTNode
    ) -> Sequence[State]:
        """Return the states after binding a value to a target: setting an attribute or item may run code."""
        match target:
            case cst.Subscript():
                return self._assign_item(target, value, state, node) or [state]
            case cst.Attribute():
                return self._assign_attribute(target, value, state, node) or [state]
        return [self.assign(target, value, state, node)]

    def _listed(
        self, target: cst.BaseExpression, value: Value, state: State, node: cst.CSTNode
    ) -> tuple[State, Value]:
        """Return a value whose items are taken by an assignment, a generator as the list of them."""
        outcomes = self.walk.generators.listed([value], node, state)
        if len(outcomes) > 1:
            what = f"what is unpacked to '{self.walk.code(target)}' communicates in several ways"
            self.walk.refuse(what, target, "make a list of it first")
        for after, (listed,) in outcomes[:1]:
            return after, listed
        return state, value

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, state: State, node: cst.CSTNode) -> State:
        state, value = self._listed(target, value, state, node)
        several = alternatives(value)
        if len(several) > 1:
            return self._unpack_any(target, several, state, node)
        items = self.walk.expressions.items(value, state)
        size = len(target.elements)
        starred = stars(target.elements)
        if items is not None and starred and len(items) >= size - 1:
            before, behind = starred[0], size - starred[0] - 1
            state, middle = self.walk.expressions.new_list(items[before : len(items) - behind], state)
            items = (*items[:before], middle, *items[len(items) - behind :])
        if items is None or len(items) != size:
            items = (state.content_of([value]),) * size
        for element, item in zip(target.elements, items, strict=True):
            state = self.assign(element.value, item, state, node)
        return state

    def _unpack_any(
        self, target: cst.Tuple | cst.List, several: Sequence[Value], state: State, node: cst.CSTNode
    ) -> State:
        """Unpack one of several records: each target may get what it gets of any of them."""
        rows = [self.walk.expressions.items(one, state) for one in several]
        known = [row for row in rows if row is not None]
        if (
            stars(target.elements)
            or len(known) < len(rows)
            or {len(row) for row in known} != {len(target.elements)}
        ):
            return self._unpack(target, state.content_of(several), state, node)
        for element, column in zip(target.elements, zip(*known, strict=True), strict=True):
            state = self.assign(element.value, join(column), state, node)
        names = tuple(name_of(element.value) for element in target.elements)
        if len(set(names)) < len(names):
            return state
        return state.bind(RECORDS, Records(tuple(known), names))

    def _assign_item(
        self, target: cst.Subscript, value: Value, state: State, node: cst.CSTNode
    ) -> Sequence[State]:
        if isinstance(target.slice[0].slice, cst.Slice):
            # What is put in place of a part of a list are the items of the value.
            state, value = self._listed(target, value, state, node)
        for after, values in self.place_of(target, state):
            state = after
            owner = values[0]
            key = _key_of(target, values)
            custom = self._item_methods(owner, "__setitem__")
            if custom:
                return self._run_one_of(custom, owner, (key, value), state, node)
            changed = owner.with_item(key, value, state)
            if changed is not None:
                return [changed]
            self._check_alias(target, owner, node, state)
            self.walk.calls.release([value], state, node, target.value)
            state = without_facts(state)
        return [state]

    def _check_alias(self, target: cst.BaseExpression, owner: Value, node: cst.CSTNode, state: State) -> None:
        """Report a change of what a module holds under the name of a variable of a function.

        Under the name that it has in its module it is not taken for constant.
        """
        name = name_of(container_of(target))
        local = name in state.frames[-1] or name not in self.walk.names.scope(self.walk.module)
        if name and local and of_kind(alternatives(owner), MapValue, TupleValue):
            report_change(f"{self.walk.code(target)!r}", node, self.walk)

    def place_of(self, target: cst.BaseExpression, state: State) -> Sequence[tuple[State, tuple[Value, ...]]]:
        """Evaluate what says where something is assigned: owner and index."""
        results = self.walk.expressions.evaluate_all(operands(target), state)
        if len(results) > 1:
            what = f"'{self.walk.code(target)}' communicates in several ways where it is assigned"
            self.walk.refuse(what, target, "put the index into a variable first")
        return results[:1]

    def delete(self, target: cst.BaseExpression, state: State) -> State:
        """Return the state after ``del``."""
        match target:
            case cst.Attribute():
                return self._delete_attribute(target, state)
            case cst.Subscript():
                for after, values in self.place_of(target, state):
                    state, key = after, _key_of(target, values)
                    custom = self._item_methods(values[0], "__delitem__")
                    if custom:
                        found = self._run_one_of(custom, values[0], (key,), state, target)
                        what = f"{custom[0].info.qualname!r} communicates"
                        self._check_ways(found, what, "an item is deleted", target)
                        return found[0]
                    for owner in alternatives(values[0]):
                        changed = owner.without_item(key, state)
                        if changed is None:
                            self._check_alias(target, owner, target, state)
                        state = without_facts(state) if changed is None else changed
        return state

    def _delete_attribute(self, target: cst.Attribute, state: State) -> State:
        for after, owner in self.walk.expressions.evaluate(target.value, state)[:1]:
            state = after
            for one in alternatives(owner):
                if not isinstance(one, ObjectRef):
                    continue
                if not self._deletes_by_code(one, target.attr.value):
                    state = one.with_attribute(target.attr.value, UNKNOWN, state)
                    continue
                if state.holds_tracked(one):
                    self._report(one, "deleting", "may run code that communicates", target)
                state = state.store(one.number, state.content_of([one]))
        return state

    def _deletes_by_code(self, owner: ObjectRef, name: str) -> bool:
        """Return whether ``del owner.name`` runs code of the source tree."""
        attributes = self.walk.attributes
        return (
            owner.own_method(("__delattr__",), self.walk) is not None
            or attributes.property_of(owner.info, None, name) is not None
            or attributes.descriptor(owner.info, None, name) is not None
        )

    def _item_methods(self, owner: Value, name: str) -> list[FunctionValue]:
        """Return the methods that set or delete an item of what may be objects of the source tree."""
        found = [(one.own_method((name,), self.walk), one) for one in alternatives(owner)]
        return [FunctionValue(method, one) for method, one in found if method is not None]

    def _run_one_of(
        self,
        methods: Sequence[FunctionValue],
        owner: Value,
        given: Sequence[Value],
        state: State,
        node: cst.CSTNode,
    ) -> Sequence[State]:
        """Return the states after one of several methods; of several objects nothing is known then."""
        if alternatives(owner) == (methods[0].bound,):
            return self._run(methods[0], given, state, node)
        self.walk.calls.release([*given, owner], state, node, "one of several objects")
        for one in alternatives(owner):
            if one.place is not None:
                state = state.store(one.place, state.content_of([one]))
        return [without_facts(state)]

    def _assign_attribute(
        self, target: cst.Attribute, value: Value, state: State, node: cst.CSTNode
    ) -> Sequence[State]:
        """Return the states after ``target = value``."""
        shown, name = f"the attribute '{self.walk.code(target)}'", Const.of(target.attr.value)
        return [
            one
            for after, owner in self.walk.expressions.evaluate(target.value, state)
            for one in self.set_attribute(owner, name, value, after, node, shown)
        ]

    def set_attribute(
        self,
        owner: Value,
        name: Value,
        value: Value,
        state: State,
        node: cst.CSTNode,
        shown: str,
        *,
        directly: bool = False,
    ) -> Sequence[State]:
        """Return the states after an attribute has been set: what that runs may communicate in several ways.

        Args:
            owner: What it is an attribute of.
            name: Its name: a text, if it is known.
            value: What it is set to.
            state: The state before.
            node: The code that sets it.
            shown: The attribute, in words.
            directly: Whether a ``__setattr__`` of the class is passed by.
        """
        objects, names = alternatives(owner), texts_of(name)
        if len(objects) > 1 and any(self._runs_code(one, names, directly=directly) for one in objects):
            several = [
                self.set_attribute(one, name, value, state, node, shown, directly=directly) for one in objects
            ]
            return [after for states in several for after in states]
        states: Sequence[State] = [state]
        for one in objects:
            custom = None if directly else one.own_method(("__setattr__",), self.walk)
            if custom is not None:
                code = FunctionValue(custom, one)
                states = [after for s in states for after in self._run(code, (name, value), s, node)]
            elif isinstance(one, ClassValue) and self.walk.attaching.active:
                certain = len(objects) == 1
                states = [
                    self.walk.attaching.assign(one.info, name, value, s, certain=certain) for s in states
                ]
            elif not isinstance(one, ObjectRef):
                for s in states:
                    self.walk.calls.release([value], s, node, shown)
                states = [self.walk.variables.forget_contents([value], s) for s in states]
            elif names is None:
                states = [self._store_any(one, value, s, node) for s in states]
            else:
                certain = len(objects) * len(names) == 1
                for text in names:
                    states = [
                        a for s in states for a in self._set(one, text, value, s, node, certain=certain)
                    ]
        return states

    def _runs_code(self, owner: Value, names: Sequence[str] | None, *, directly: bool) -> bool:
        """Return whether setting an attribute of some names runs code of the source tree."""
        custom = not directly and owner.own_method(("__setattr__",), self.walk) is not None
        setting = isinstance(owner, ObjectRef) and any(
            self.walk.attributes.setter(owner, n) for n in names or ()
        )
        return custom or setting

    def _set(
        self, owner: ObjectRef, name: str, value: Value, state: State, node: cst.CSTNode, *, certain: bool
    ) -> Sequence[State]:
        setter = self.walk.attributes.setter(owner, name)
        if setter is None:
            return [self._store(owner, name, value, state, certain=certain)]
        function, leading = setter
        return self._run(function, (*leading, value), state, node)

    def _store(self, owner: ObjectRef, name: str, value: Value, state: State, *, certain: bool) -> State:
        if not certain:
            value = join([owner.attributes(state.heap).get(name, UNKNOWN), value])
        return owner.with_attribute(name, value, state)

    def _store_any(self, owner: ObjectRef, value: Value, state: State, node: cst.CSTNode) -> State:
        """Return the state after an attribute was set whose name is not known."""
        if state.holds_tracked(owner) and self.walk.attributes.has_setters(owner.info):
            self._report(owner, "setting", "may run code that communicates", node)
        if of_kind(alternatives(value), Closure, FunctionValue, Partial, Method):
            self._report(owner, "setting", "may replace one of its methods", node)
        return owner.with_any_attribute(value, state)

    def _report(self, owner: ObjectRef, action: str, what: str, node: cst.CSTNode) -> None:
        setting = action == "setting"
        which = " whose name is not known" if setting else ""
        whole = f"{action} an attribute of {owner.info.qualname!r}{which} {what}"
        self.walk.refuse(whole, node, "set it by its name" if setting else "call a method instead")

    def _run(
        self, function: FunctionValue, given: Sequence[Value], state: State, node: cst.CSTNode
    ) -> Sequence[State]:
        """Return the states after what setting an attribute or item runs."""
        results = self.walk.functions.call_function(function, Arguments.of(*given), node, state, follow=True)
        return [after for after, _ in results] or [state]

    def _check_ways(self, results: Sequence[object], what: str, where: str, node: cst.CSTNode) -> None:
        if len(results) > 1:
            self.walk.refuse(f"{what} in several ways where {where}", node, "call a method instead")

    def augment(self, node: Step, target: cst.BaseExpression, value: Value, state: State) -> Results:
        """Return the states after an augmented assignment, with what was added."""
        return [
            (one, value)
            for after, old in self.walk.expressions.evaluate(target, state)
            for one in self._augmented(node, target, old, value, after)
        ]

    def _augmented(
        self, node: Step, target: cst.BaseExpression, old: Value, value: Value, state: State
    ) -> Sequence[State]:
        """Return the states after an augmented assignment of something that is known."""
        found = self.walk.overloading.augmented(node.augmented, (old, value), node.node, state)
        if found is not None:
            return [one for after, made in found for one in self.ways(target, made, after, node.node)] or [
                state
            ]
        changed = old.extended(node.augmented, value, state, self.walk)
        if changed is not None:
            return [changed]
        if isinstance(old, MapValue) or isinstance(value, ListRef):
            self._check_alias(target, old, node.node, state)
        known = binary(node.augmented, old, value)
        combined = state.content_of([old, value]) if known == UNKNOWN else known
        return self.ways(target, combined, state, node.node)


def _key_of(target: cst.Subscript, values: Sequence[Value]) -> Value:
    """Return the key of an item, given what its parts are worth; a slice is none that is known."""
    key = item_key(target, values[1:])
    return UNKNOWN if key is None else key
