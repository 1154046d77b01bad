"""What do functions outside the source tree do with values the analyzer follows?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.attaching import is_endpoint_mark
from analyzer.static.conditions import TRUTH
from analyzer.static.evaluation import merge_results
from analyzer.static.libraries import KNOWN, LibraryCall
from analyzer.static.libraries.context_managers import swallowing
from analyzer.static.libraries.leaving import LEAVING
from analyzer.static.state import Content, Flow, Results, State
from analyzer.static.syntax import applied
from analyzer.static.values import (
    UNKNOWN,
    Closure,
    Const,
    External,
    FunctionValue,
    ListRef,
    Method,
    Partial,
    TupleValue,
    Value,
    keyed,
    of_kind,
    text_method,
)
from analyzer.static.values.containers import drawn
from analyzer.static.walk import Part

__all__ = ["Library"]

# Looking at a value is not letting it go.
HARMLESS = {
    f"builtins.{n}" for n in ("isinstance", "len", "print", "repr", "str", "id", "type", "bool", "hash")
}

TEXT = ("__str__", "__repr__")

CONVERSIONS = {
    "builtins.bool": TRUTH,
    "builtins.format": ("__format__", *TEXT),
    "builtins.hash": ("__hash__",),
    "builtins.len": ("__len__",),
    "builtins.print": TEXT,
    "builtins.repr": ("__repr__",),
    "builtins.str": TEXT,
}
"""Which methods of an object a built-in function runs: the first of these that it has."""

ITERATING = {
    f"builtins.{n}"
    for n in (
        *("all", "any", "dict", "enumerate", "filter", "frozenset", "iter", "list", "map"),
        *("max", "min", "reversed", "set", "sorted", "sum", "tuple", "zip"),
    )
}
"""These run ``__iter__`` of an object."""

# Functions of these modules do not change what they are given.
LOOKS_ONLY = (
    "builtins.",
    "collections.",
    "copy.",
    "dataclasses.",
    "datetime.",
    "functools.",
    "itertools.",
    "json.",
    "logging.",
    "math.",
    "operator.",
    "statistics.",
    "time.",
    "uuid.",
)

# What these return is known, but not what the functions they are given do meanwhile.
CALLING = {"builtins.max", "builtins.min", "builtins.sorted"}

ITERATORS = {"builtins.enumerate", "builtins.iter", "builtins.reversed", "builtins.zip"}
"""Like all of ``itertools``, these return what can be gone through once, and shows changes until then."""

CHANGING = {
    f"operator.{n}" for n in ("setitem", "delitem", "iadd", "iconcat", "ior", "iand", "isub", "ixor", "imul")
}
"""These change what they are given all the same."""


class Library(Part):
    """Calls functions of the standard library whose effect is known."""

    def external(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what calling something outside the source tree does."""
        if is_endpoint_mark(name):
            return [(state, self.walk.attaching.mark(arguments))]
        known = self.walk.asyncio.library
        special = known(name, arguments, node, state) if type(node) is cst.Call else None
        if special is None and name in CONVERSIONS:
            special = self._converted(name, arguments.positional(), node, state)
        if name in LEAVING:
            leaving = External(LEAVING[name])
            self.walk.raised.append(Flow(state, "raise", leaving, self.walk.module.line(node)))
            return []
        if special is not None:
            return special
        manager = swallowing(name, arguments, self.walk.names.declared.swallowing)
        if manager is not None:
            return [(state, manager)]
        self.walk.mistakes.blocking(name, node)
        if name in ITERATING - {"builtins.dict"}:
            values = tuple(self.walk.copies.gone_through(one, state) for one in arguments.values)
            arguments = replace(arguments, values=values)
        if name in ITERATING:
            self.walk.overloading.unfollowed_items(name, arguments.positional(), node, state)
            for one in arguments.positional() if name == "builtins.dict" else ():
                self.walk.overloading.unfollowed_mappings([one], node, state)
                self.walk.overloading.unfollowed_iteration(one, node, state)
            state = self._iterated(arguments.values, node, state)
        found = self._known(name, arguments, node, state)
        if found is not None and name in CALLING:
            functions = of_kind(arguments.values, Closure, FunctionValue, Method, Partial)
            self.walk.calls.release(functions, state, node, applied(node))
            return [(self.walk.variables.forget_contents(functions, after), value) for after, value in found]
        if found is not None:
            return found
        self.walk.calls.check_reach(name, arguments.positional(), node, state)
        if name not in HARMLESS or (name == "builtins.type" and len(arguments.values) > 1):
            handed = of_kind(arguments.values, Closure, Method, Partial)
            state = self.walk.variables.forget_contents(handed, state)
            self.walk.calls.release(arguments.values, state, node, applied(node))
            if not name.startswith(LOOKS_ONLY) or name in CHANGING:
                state = self.walk.variables.forget_contents(arguments.values, state)
        return [(state, UNKNOWN)]

    def _iterated(self, given: Sequence[Value], node: cst.CSTNode, state: State) -> State:
        """Return the state after ``__iter__`` of objects that do not communicate."""
        for one in given:
            method = one.own_method(("__iter__",), self.walk)
            if method is None or state.holds_tracked(one):
                continue
            if self.walk.generators.generator_body(method) is None:
                results = self.walk.functions.call_method(method, one, (), node, state)
                state = results[0][0] if results else state
        return state

    def _converted(
        self, name: str, given: Sequence[Value], node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what a built-in function does that asks objects which communicate; None if none does."""
        results: Results = [(state, UNKNOWN)]
        for value in given:
            results = [
                r
                for before, _ in results
                for r in self.walk.conditions.by_method(value, CONVERSIONS[name], node, before)
            ]
        if all(after is state for after, _ in results):
            return None
        return merge_results([(after, v if len(given) == 1 else UNKNOWN) for after, v in results])

    def _known(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results | None:
        """Return what a function outside the source tree does; None if that is not known."""
        found = self.walk.generators.consuming(name, arguments, node, state)
        if found is not None or name not in KNOWN or not arguments.plain:
            return found
        results: Results = []
        for apart in state.apart(arguments.values):
            given, keywords = arguments.positional(), dict(arguments.keywords())
            made = KNOWN[name](LibraryCall(self.walk, given, keywords, node, apart))
            if made is None:
                return None
            # What has changed nothing does not tell either what a list holds.
            results += [(state if after is apart else after, value) for after, value in made]
        if not (name in ITERATORS or name.startswith("itertools.")):
            return results
        return [(after, drawn(value, given, after, once=True)) for after, value in results]

    def as_pairs(self, value: Value, state: State) -> Content | None:
        """Return the items of a mapping, or of a sequence of pairs; None if they are not known."""
        if value.is_mapping:
            return value.pairs(state.heap)
        items = value.items(state, self.walk)
        if items is None:
            return None
        rows = [row.items(state, self.walk) for row in items]
        known = [(row[0], row[1]) for row in rows if row is not None and len(row) == 2]
        exact = keyed(tuple(known)) if len(known) == len(rows) else None
        return None if exact is None else tuple(exact.values())

    def text_method(
        self, owner: Const, name: str, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what a method of a constant text does."""
        if name == "format":
            self.walk.overloading.unfollowed(node, arguments.values, state)
        results: Results = []
        taken = arguments.values if name == "join" else ()
        for after, listed in self.walk.generators.listed(taken, node, state):
            values = listed or arguments.values
            known = [v.items(after, self.walk) if isinstance(v, ListRef) else None for v in values]
            plain = [v if k is None else TupleValue(k) for v, k in zip(values, known, strict=True)]
            given = replace(arguments, values=tuple(plain))
            result = text_method(name, owner, given.positional(), dict(given.keywords()))
            results.append((after, result if given.plain else UNKNOWN))
        return results
