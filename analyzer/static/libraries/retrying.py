"""What do the decorators of ``tenacity`` and ``backoff`` do, which call a function again if it fails?

What they make of a function is told by code that does the same, walked like that of the source tree: a loop
that ends where the function returns, or where its error is let out. When that is depends on the execution.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.names import ClassInfo, FunctionInfo
from analyzer.static.source import Module, parsed
from analyzer.static.state import Results
from analyzer.static.values import UNKNOWN, ClassValue, Const, External, FunctionValue, Partial, Value

__all__ = ["FUNCTIONS"]

AGAIN: Final = """\
        {kind} again(*args, **kwargs):
            while True:
                try:
                    result = {call}(*args, **kwargs)
                except Exception:
                    if original and random.random() < 0.5:
                        raise
                    if wrapped and random.random() < 0.5:
                        raise tenacity.RetryError
                else:
                    if not results or random.random() < 0.5:
                        return result
                    if wrapped and random.random() < 0.5:
                        raise tenacity.RetryError
"""
"""What is made of a coroutine or a function that is called again where it fails."""

SOURCE: Final = f"""\
import inspect
import random

import tenacity


def on_exception(function, original, wrapped, results):
    if inspect.iscoroutinefunction(function):
{AGAIN.format(kind="async def", call="await function")}    else:
{AGAIN.format(kind="def", call="function")}    return again


class Attempt:
    def __init__(self, state):
        self.failed = False
        self.retry_state = state

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.failed = kind is not None
        return self.failed


class Retrying:
    def __init__(self, error, original, wrapped, results):
        self.error = error
        self.original = original
        self.wrapped = wrapped
        self.results = results

    def __call__(self, function, *args, **kwargs):
        return on_exception(function, self.original, self.wrapped, self.results)(*args, **kwargs)

    def __iter__(self):
        while True:
            attempt = Attempt(self.error)
            yield attempt
            if not attempt.failed:
                return
            if self.original and random.random() < 0.5:
                raise self.error
            if self.wrapped and random.random() < 0.5:
                raise tenacity.RetryError

    async def __aiter__(self):
        for attempt in self:
            yield attempt


def on_predicate(function):
    if inspect.iscoroutinefunction(function):
        async def again(*args, **kwargs):
            while True:
                result = await function(*args, **kwargs)
                if random.random() < 0.5:
                    return result
    else:
        def again(*args, **kwargs):
            while True:
                result = function(*args, **kwargs)
                if random.random() < 0.5:
                    return result
    return again
"""

EXCEPTIONS_ONLY: Final = External("tenacity.<exceptions>")
"""A condition that looks at exceptions alone: no result is asked for again."""


@cache
def _module() -> Module:
    return parsed("retrying", "tenacity or backoff", SOURCE)


def _function(call: LibraryCall, name: str) -> FunctionValue:
    info = call.walk.names.scope(_module())[name]
    assert isinstance(info, FunctionInfo)  # noqa: S101 - it is in the text above
    return FunctionValue(info)


def _decorator(call: LibraryCall, name: str, flags: dict[str, bool]) -> Value:
    keywords = tuple((flag, Const.of(value=value)) for flag, value in flags.items())
    return Partial(_function(call, name), (), keywords)


def _communicates(call: LibraryCall) -> bool:
    """Return whether something the decorator is given may communicate."""
    return any(v.communicates(call.state, call.walk) for v in (*call.given, *call.keywords.values()))


def _flags(call: LibraryCall) -> dict[str, bool] | None:
    """Return how ``tenacity`` ends, and whether it asks for results again; None if that is not known."""
    if call.keywords.keys() & {"retry_error_callback", "retry_error_cls", "cls"} or _communicates(call):
        return None
    condition = call.keywords.get("retry")
    known, reraise = call.keywords.get("reraise", Const.of(value=False)).python()
    return {
        "original": not known or bool(reraise) or condition is not None,
        "wrapped": not known or not reraise,
        "results": condition not in (None, EXCEPTIONS_ONLY),
    }


def _retry(call: LibraryCall) -> Results | None:
    """Return what ``tenacity.retry`` makes of a function, or a decorator."""
    flags = _flags(call)
    if flags is None:
        return None
    decorator = _decorator(call, "on_exception", flags)
    if not call.given:
        return call.result(decorator)
    return None if call.keywords or len(call.given) > 1 else _applied(call, decorator)


def _applied(call: LibraryCall, decorator: Value) -> Results:
    return decorator.call(call.made({}).behind(tuple(call.given), ()), call.node, call.state, call.walk)


def _retrying(call: LibraryCall) -> Results | None:
    """Return an object that makes attempts: those of a loop, or calls of a function."""
    flags = _flags(call)
    info = call.walk.names.scope(_module())["Retrying"]
    if flags is None or call.given or not isinstance(info, ClassInfo):
        return None
    given = {flag: Const.of(value=value) for flag, value in flags.items()}
    return ClassValue(info).call(call.made({"error": UNKNOWN, **given}), call.node, call.state, call.walk)


def _exceptions_only(call: LibraryCall) -> Results | None:
    return call.result(EXCEPTIONS_ONLY)


def _on_exception(call: LibraryCall) -> Results | None:
    """Return the decorator ``backoff.on_exception`` makes."""
    if call.keywords.keys() & {"raise_on_giveup"} or _communicates(call):
        return None
    return call.result(
        _decorator(call, "on_exception", {"original": True, "wrapped": False, "results": False})
    )


def _on_predicate(call: LibraryCall) -> Results | None:
    """Return the decorator ``backoff.on_predicate`` makes."""
    return None if _communicates(call) else call.result(_decorator(call, "on_predicate", {}))


FUNCTIONS: dict[str, Known] = {
    "backoff.on_exception": _on_exception,
    "backoff.on_predicate": _on_predicate,
    "tenacity.AsyncRetrying": _retrying,
    "tenacity.Retrying": _retrying,
    "tenacity.retry": _retry,
    "tenacity.retry_if_exception": _exceptions_only,
    "tenacity.retry_if_exception_type": _exceptions_only,
    "tenacity.retry_if_not_exception_type": _exceptions_only,
}
