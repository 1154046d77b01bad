"""What do decorators of the source tree make of a function?"""

from __future__ import annotations

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.diagnostics import Diagnostics
from analyzer.static.names import FunctionInfo
from analyzer.static.state import Results, State
from analyzer.static.values import (
    UNKNOWN,
    ClassValue,
    Closure,
    FunctionValue,
    Partial,
    SharedObject,
    Value,
    join,
)
from analyzer.static.walk import Context, Part, TooManyPathsError, Walk

__all__ = ["Decorators"]

# Decorators that leave what a function does alone.
TRANSPARENT = {
    "builtins.property",
    "functools.cached_property",
    "functools.wraps",
    "contextlib.asynccontextmanager",
    "contextlib.contextmanager",
    "typing.no_type_check",
    "typing.overload",
    "builtins.staticmethod",
    "builtins.classmethod",
    "typing.override",
    "typing.final",
    "abc.abstractmethod",
    "mup.EP",
    "mup.service.EP",
}


class Decorators(Part):
    """Applies decorators."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._decorated: dict[FunctionInfo, Value | None] = {}

    def decorated(self, function: FunctionInfo) -> Value | None:
        """Return what a function's decorators make of it; None if they leave it alone or are not known."""
        if function not in self._decorated:
            self._decorated[function] = None
            self._decorated[function] = self._decorate(function)
        return self._decorated[function]

    def _decorate(self, function: FunctionInfo) -> Value | None:
        assert isinstance(function.node, cst.FunctionDef | cst.Lambda)  # noqa: S101
        if isinstance(function.node, cst.Lambda):
            return None
        names = self.walk.lookups.decorators(function)
        own = [
            (decorator, name)
            for decorator, name in zip(function.node.decorators, names, strict=True)
            if not is_transparent(name)
        ]
        if not own:
            return None
        value: Value = FunctionValue(function)
        try:
            for decorator, _ in reversed(own):
                with self.walk.apart(Context(function.module), Diagnostics()):
                    states = self.walk.expressions.evaluate(decorator.decorator, State(({},)))
                    results = [
                        (s, v)
                        for state, wrapper in states
                        for s, v in self._applied(wrapper, value, decorator, state)
                    ]
                value = join(self.walk.lookups.freeze(v, s) for s, v in results) if results else UNKNOWN
        except TooManyPathsError:
            return None
        return value if isinstance(value, FunctionValue | Closure | Partial | SharedObject) else None

    def _applied(self, wrapper: Value, function: Value, node: cst.CSTNode, state: State) -> Results:
        if isinstance(wrapper, FunctionValue | Closure):
            return self.walk.functions.call_function(
                wrapper, Arguments.of(function), node, state, follow=True
            )
        if isinstance(wrapper, ClassValue):
            return self.walk.making.instantiate(wrapper.info, Arguments.of(function), node, state)
        return [(state, UNKNOWN)]


def is_transparent(name: str) -> bool:
    """Return whether a decorator leaves what a function does alone."""
    endpoint = name.startswith("mup.") and name.endswith(".EP")
    return name in TRANSPARENT or endpoint or name.endswith(".setter")
