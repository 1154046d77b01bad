"""What do functions of ``inspect`` say about functions of the source tree?"""

from __future__ import annotations

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import Closure, Const, FunctionValue, Partial, Value, unmarked

__all__ = ["FUNCTIONS"]


def _function(value: Value) -> FunctionValue | Closure | None:
    value = unmarked(value)
    while isinstance(value, Partial):
        value = unmarked(value.function)
    return value if isinstance(value, FunctionValue | Closure) else None


def _is_function(*, asynchronous: bool) -> Known:
    """Return what tells coroutine functions, or else generator functions, from all others."""

    def known(call: LibraryCall) -> Results | None:
        function = _function(call.given[0]) if len(call.given) == 1 else None
        if function is None:
            return None
        yields = call.walk.generators.generator_body(function.info) is not None
        return call.result(Const.of(function.info.is_async is asynchronous and yields is not asynchronous))

    return known


FUNCTIONS: dict[str, Known] = {
    "asyncio.iscoroutinefunction": _is_function(asynchronous=True),
    "inspect.iscoroutinefunction": _is_function(asynchronous=True),
    "inspect.isgeneratorfunction": _is_function(asynchronous=False),
}
