"""What conditions have told about unknown values, and when does it stop being true?

After ``if words:`` it is known that ``words`` is not empty - until something may have changed it, under this
name or any other. Then every such fact is forgotten: which names share an object is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.state import Frame, State
from analyzer.static.values import (
    UNKNOWN,
    Closure,
    Comm,
    Const,
    External,
    FunctionValue,
    Future,
    Method,
    Unknown,
    Value,
    alternatives,
    join,
    truth,
)

__all__ = ["changed_in_loop", "holding", "may_change", "without_facts"]

READING_MODULES = {
    "asyncio",
    "base64",
    "builtins",
    "copy",
    "datetime",
    "functools",
    "hashlib",
    "html",
    "itertools",
    "json",
    "logging",
    "math",
    "mup",
    "operator",
    "re",
    "statistics",
    "string",
    "time",
    "typing",
    "urllib",
    "uuid",
}
"""Nothing in these changes whether what it is handed is empty."""

READING_METHODS = {
    "casefold",
    "copy",
    "count",
    "critical",
    "debug",
    "decode",
    "encode",
    "endswith",
    "error",
    "exception",
    "find",
    "format",
    "get",
    "index",
    "info",
    "isalnum",
    "isalpha",
    "isdecimal",
    "isdigit",
    "issubset",
    "items",
    "join",
    "keys",
    "lower",
    "lstrip",
    "partition",
    "replace",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "union",
    "upper",
    "values",
    "warning",
}
"""Methods of unknown objects that change nothing: those of texts, looking into containers, writing logs."""


def holding(value: Value, holds: bool) -> Value:
    """Return a value of which a condition has told whether it counts as true."""
    options = [one for one in alternatives(value) if truth(one) in (None, holds)]
    return (
        join(replace(v, holds=holds) if isinstance(v, Unknown) else v for v in options) if options else value
    )


def may_change(node: cst.Call, callee: Value, arguments: Sequence[Value], state: State) -> bool:
    """Return whether a call that is not walked may change what is known about some object."""
    return any(_may_change(node, one, arguments, state) for one in alternatives(callee))


def _may_change(node: cst.Call, callee: Value, arguments: Sequence[Value], state: State) -> bool:
    if isinstance(callee, Method):
        return not isinstance(callee.owner, Comm | Future | Const) and _hands_over_unknown(arguments)
    if isinstance(callee, External):
        known = callee.name.split(".", maxsplit=1)[0] in READING_MODULES
        return not known and _hands_over_unknown(arguments)
    if isinstance(callee, Closure):
        return not any(state.holds_tracked(value) for value in arguments)
    if isinstance(callee, FunctionValue):
        held = any(state.holds_tracked(value) for value in (*arguments, *_bound(callee)))
        return not held and _hands_over_unknown(arguments)
    if not isinstance(callee, Unknown):
        return _hands_over_unknown(arguments)
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    return name not in READING_METHODS


def _hands_over_unknown(arguments: Sequence[Value]) -> bool:
    return any(isinstance(one, Unknown) for value in arguments for one in alternatives(value))


def _bound(function: FunctionValue) -> tuple[Value, ...]:
    return () if function.bound is None else (function.bound,)


def without_facts(state: State) -> State:
    """Return the state in which nothing is known about the truth of unknown values."""
    frames = tuple({name: _plain(value) for name, value in frame.items()} for frame in state.frames)
    return state if frames == state.frames else replace(state, frames=frames)


def _plain(value: Value) -> Value:
    return UNKNOWN if isinstance(value, Unknown) else value


def changed_in_loop(start: State, ends: Iterable[State]) -> State:
    """Return a state every iteration can start in: without the facts that one of these ends does not have."""
    ends = tuple(ends)
    frames = tuple(
        _agreed(frame, [end.frames[depth] for end in ends]) for depth, frame in enumerate(start.frames)
    )
    return start if frames == start.frames else replace(start, frames=frames)


def _agreed(frame: Frame, ends: Sequence[Frame]) -> Frame:
    return {
        name: UNKNOWN
        if isinstance(value, Unknown) and any(end.get(name, value) != value for end in ends)
        else value
        for name, value in frame.items()
    }
