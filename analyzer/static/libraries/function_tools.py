"""What do functions of ``functools`` do, and those of ``inspect`` that look at functions?"""

from __future__ import annotations

from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import Closure, Const, External, FunctionValue, Marked, Partial, mark_of, unmarked

__all__ = ["FUNCTIONS"]


def _partial(call: LibraryCall) -> Results | None:
    if not call.given:
        return None
    return call.returns(Partial(call.given[0], tuple(call.given[1:]), tuple(call.keywords.items())))


def _update_wrapper(call: LibraryCall) -> Results | None:
    """Return the wrapper, which has the attributes of what it wraps: it is an endpoint if that is one."""
    wrapped = call.given[1] if len(call.given) > 1 else call.keywords.get("wrapped")
    if not call.given or wrapped is None:
        return None
    mark = mark_of(wrapped)
    return call.returns(call.given[0] if mark is None else Marked(call.given[0], mark))


def _wraps(call: LibraryCall) -> Results | None:
    wrapped = call.given[0] if call.given else call.keywords.get("wrapped")
    if wrapped is None:
        return None
    return call.returns(Partial(External("functools.update_wrapper"), (), (("wrapped", wrapped),)))


def _is_coroutine_function(call: LibraryCall) -> Results | None:
    function = unmarked(call.given[0]) if len(call.given) == 1 else None
    if not isinstance(function, FunctionValue | Closure):
        return None
    generates = call.walk.generators.generator_body(function.info) is not None
    return call.returns(Const.of(function.info.is_async and not generates))


FUNCTIONS: dict[str, Known] = {
    "asyncio.iscoroutinefunction": _is_coroutine_function,
    "functools.partial": _partial,
    "functools.partialmethod": _partial,
    "functools.update_wrapper": _update_wrapper,
    "functools.wraps": _wraps,
    "inspect.iscoroutinefunction": _is_coroutine_function,
}
