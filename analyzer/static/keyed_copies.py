"""Loops that look up by key what a comprehension has made of the same items.

``futures = {key(x): comm.call(...) for x in items}``, and later ``futures[key(y)].get()`` in a loop over
``items``: it waits for each of them once, as a loop over ``futures.values()`` does. That is so if both go
through the same variable, which is bound once and not changed, and if the keys are the same expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import libcst as cst

from analyzer.static.reflection import MUTATORS, Mentions, mentions_of
from analyzer.static.state import Flow, State
from analyzer.static.syntax import name_of
from analyzer.static.tasks import rebound
from analyzer.static.values import UNKNOWN, DictRef, Many, Value, many_of
from analyzer.static.walk import Part
from analyzer.static.walking import nodes_of

__all__ = ["Keyed", "KeyedCopies"]


class Keyed(NamedTuple):
    """What a loop looks up: a dict, by its place in the heap, and what it holds."""

    place: int
    many: Many

    def each(self, iteration: Callable[[State, Value], list[Flow]]) -> Callable[[State, Value], list[Flow]]:
        """Return what walks an iteration of the loop for what it finds in the dict under its key."""

        def found(start: State, item: Value) -> list[Flow]:
            flows = iteration(start.store(self.place, ((UNKNOWN, item),)), UNKNOWN)
            return [replace(f, state=f.state.store(self.place, start.heap[self.place])) for f in flows]

        return found


class KeyedCopies(Part):
    """Finds what loops look up by key."""

    def of(
        self,
        iterable: cst.BaseExpression | None,
        target: cst.BaseExpression | None,
        body: Sequence[cst.CSTNode],
        state: State,
    ) -> Keyed | None:
        """Return the dict that a loop looks up in each of its iterations; None if it is another loop.

        Args:
            iterable: What it is over.
            target: What an iteration calls an item.
            body: What it does.
            state: The state before it.
        """
        return self._of_its_own_keys(iterable, target, body, state) or self._of_items(
            iterable, target, body, state
        )

    def _of_its_own_keys(
        self,
        iterable: cst.BaseExpression | None,
        target: cst.BaseExpression | None,
        body: Sequence[cst.CSTNode],
        state: State,
    ) -> Keyed | None:
        """Return the dict that a loop goes through itself, and looks up each key of it."""
        match iterable:
            case cst.Name(value=name):
                pass
            case cst.Call(
                func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="keys")), args=()
            ):
                pass
            case _:
                return None
        found = self._filled(name, state)
        key = None if found is None or target is None else self._plain(target, target)
        if found is None or target is None or key is None or name_of(target) in ("", name):
            return None
        return found if self._looks_up(name, key, target, body) else None

    def _filled(self, name: str, state: State) -> Keyed | None:
        """Return the dict that a variable holds, if a loop has filled it with futures."""
        value = self.walk.lookups.lookup(name, state)
        place = value.number if isinstance(value, DictRef) else -1
        many = many_of(state.heap.get(place))
        return Keyed(place, many) if many is not None and any(True for _ in many.one.futures()) else None

    def _of_items(
        self,
        iterable: cst.BaseExpression | None,
        target: cst.BaseExpression | None,
        body: Sequence[cst.CSTNode],
        state: State,
    ) -> Keyed | None:
        """Return the dict that was made of what a loop is over, and is looked up in the same way."""
        function = self.walk.contexts[-1].function
        items = name_of(iterable)
        if not items or target is None or function is None:
            return None
        looked_up = {name_of(node) for part in body for node in nodes_of(part, (cst.Name,))}
        for name in sorted(looked_up - {items}):
            found = self._filled(name, state)
            if found is None:
                continue
            made = self._comprehension(name, items, function.node)
            key = None if made is None else self._plain(made.key, made.for_in.target)
            if key is not None and self._looks_up(name, key, target, body):
                return found
        return None

    def _comprehension(
        self, name: str, items: str, function: cst.FunctionDef | cst.Lambda
    ) -> cst.DictComp | None:
        """Return what alone has made a dict, of items that are what they were then."""
        if {name, items} & rebound(function) or _changed(items, function):
            return None
        for statement in nodes_of(function.body, (cst.Assign, cst.AnnAssign)):
            match statement:
                case (
                    cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=found))], value=made)
                    | cst.AnnAssign(target=cst.Name(value=found), value=made)
                ) if found == name:
                    return made if type(made) is cst.DictComp and _only_over(made, items) else None
        return None

    def _looks_up(self, name: str, key: str, target: cst.BaseExpression, body: Sequence[cst.CSTNode]) -> bool:
        """Return whether some code does nothing with a dict but look up a key that depends on a target so."""
        mentions = [n for part in body for n in nodes_of(part, (cst.Name,)) if name_of(n) == name]
        found = []
        for node in (n for part in body for n in nodes_of(part, (cst.Subscript,))):
            match node:
                case cst.Subscript(
                    value=cst.Name(value=owner), slice=[cst.SubscriptElement(slice=cst.Index(value=asked))]
                ) if owner == name:
                    found.append(self._plain(asked, target))
        return len(found) == len(mentions) and set(found) == {key}

    def _plain(self, key: cst.BaseExpression, target: cst.BaseExpression) -> str | None:
        """Return a key as text, with the items of a loop called by their places in its target."""
        names = [name_of(node) for node in nodes_of(target, (cst.Name,))]
        known = {name_of(node) for node in nodes_of(key, (cst.Name,))}
        if not set(names) & known or nodes_of(key, (cst.Call,)):
            return None
        text = self.walk.module.tree.code_for_node(key)
        for place, name in enumerate(names):
            text = re.sub(rf"\b{re.escape(name)}\b", f"#{place}", text)
        return text


def _only_over(comprehension: cst.DictComp, items: str) -> bool:
    """Return whether a comprehension takes all items of a variable, and nothing else."""
    clause = comprehension.for_in
    return name_of(clause.iter) == items and not clause.ifs and clause.inner_for_in is None


def _changed(name: str, function: cst.FunctionDef | cst.Lambda) -> bool:
    """Return whether a function may change what a variable holds."""
    uses = Mentions.of(mentions_of(function.body))
    if any(name_of(node) == name for node in uses.changed):
        return True
    for node in nodes_of(function.body, (cst.Call,)):
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=method))):
                if owner == name and method in MUTATORS:
                    return True
    return False
