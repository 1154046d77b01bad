"""What do decorators of the source tree make of a function?"""

from __future__ import annotations

from functools import partial

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.attaching import class_context, is_endpoint_mark
from analyzer.static.evaluation import merge_results
from analyzer.static.libraries.decorators import TRANSPARENT
from analyzer.static.names import FunctionInfo
from analyzer.static.state import Results, State
from analyzer.static.values import (
    UNKNOWN,
    Closure,
    FunctionValue,
    Mark,
    OneOf,
    Partial,
    SharedObject,
    Value,
    unmarked,
)
from analyzer.static.walk import Context, Part, Walk

__all__ = ["Decorators"]

MARKING = {"functools.wraps"}
"""Transparent decorators that decide whether a function is an endpoint."""


class Decorators(Part):
    """Applies decorators."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._decorated: dict[FunctionInfo, Value | None] = {}
        self._marked: dict[FunctionInfo, Value] = {}

    def transparent(self, name: str) -> bool:
        """Return whether a decorator leaves what a function does alone, or is declared to."""
        known = name in TRANSPARENT or name in self.walk.names.declared.transparent
        return known or is_endpoint_mark(name) or name.endswith(".setter")

    def may_change(self, name: str, function: FunctionInfo, node: cst.CSTNode) -> None:
        """Report a decorator that is not known, of a function that communicates."""
        what = f"the decorator {name!r} may change what {function.qualname!r} communicates"
        hint = "call an undecorated function, or declare it: [analysis] transparent in mup.toml"
        self.walk.report("MUP030", what, node, hint)

    def decorated(self, function: FunctionInfo) -> Value | None:
        """Return what a function's decorators make of it; None if they leave it alone or are not known."""
        if function not in self._decorated:
            self._decorated[function] = None
            if not all(map(self.transparent, self.walk.lookups.decorators(function))):
                value = unmarked(self.marked(function))
                known = isinstance(value, FunctionValue | Closure | Partial | SharedObject)
                self._decorated[function] = value if known else None
        return self._decorated[function]

    def marked(self, function: FunctionInfo) -> Value:
        """Return what a function's decorators make of it, marked if it is an endpoint; or unknown."""
        if function not in self._marked:
            self._marked[function] = FunctionValue(function)  # a decorator may mention what it decorates
            self._marked[function] = self.decorate(function)
        return self._marked[function]

    def as_imported(self, function: FunctionInfo) -> Value:
        """Return a function as code sees it while modules are imported; unknown decorators are ignored."""
        value = self.marked(function)
        return FunctionValue(function) if value == UNKNOWN else value

    def read(self, function: FunctionInfo) -> Value:
        """Return a function as code sees it that reads its name."""
        if self.walk.attaching.active:
            return self.as_imported(function)
        return self.decorated(function) or FunctionValue(function)

    def mark(self, function: FunctionInfo, decorator: cst.Decorator) -> Mark:
        """Return what a decorator marks a function as that is a call of ``EP``."""
        code = partial(self.walk.expressions.evaluate, decorator.decorator)
        value = self.walk.attaching.run(_context(function), code)
        return value if isinstance(value, Mark) else Mark(UNKNOWN, UNKNOWN, UNKNOWN)

    def decorate(self, function: FunctionInfo) -> Value:
        """Run a function's decorators, as its definition does, and return what they make of it."""
        value: Value = FunctionValue(function)
        for decorator, name in reversed(self._of(function)):
            if is_endpoint_mark(name) or not self.transparent(name):
                code = partial(self._applied, decorator, value)
                applied = self.walk.attaching.run(_context(function), code)
                value = UNKNOWN if applied is None else applied
        return value

    def _of(self, function: FunctionInfo) -> list[tuple[cst.Decorator, str]]:
        return list(zip(function.decorators, self.walk.lookups.decorators(function), strict=True))

    def _applied(self, decorator: cst.Decorator, function: Value, state: State) -> Results:
        return [
            result
            for after, wrapper in self.walk.expressions.evaluate(decorator.decorator, state)
            for result in wrapper.call(Arguments.of(function), decorator, after, self.walk)
        ]

    def of_nested(self, function: Closure, state: State) -> tuple[State, Value]:
        """Return the state after a nested function was decorated during an import, and the result."""
        value: Value = function
        for decorator, name in reversed(self._of(function.info)):
            if is_endpoint_mark(name) or name in MARKING or not self.transparent(name):
                results = merge_results(self._applied(decorator, value, state))
                if len(results) != 1:
                    return state, UNKNOWN
                state, value = results[0]
        return state, UNKNOWN if isinstance(value, OneOf) else value


def _context(function: FunctionInfo) -> Context:
    """Return where the decorators of a function are."""
    if function.owner is None:
        return Context(function.module)
    return class_context(function.owner, function.qualname.rsplit(".", 1)[-1])
