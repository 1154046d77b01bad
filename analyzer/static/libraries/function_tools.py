"""What do functions of ``functools`` do?"""

from __future__ import annotations

from functools import partial

from analyzer.static.arguments import Arguments
from analyzer.static.evaluation import merge_results
from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import (
    UNKNOWN,
    External,
    Marked,
    Partial,
    mark_of,
)

__all__ = ["FUNCTIONS"]


def _partial(call: LibraryCall, *, unbound: bool = False) -> Results | None:
    if not call.given:
        return None
    keywords = tuple(call.keywords.items())
    return call.result(Partial(call.given[0], tuple(call.given[1:]), keywords, unbound))


def _update_wrapper(call: LibraryCall) -> Results | None:
    """Return the wrapper, which has the attributes of what it wraps: it is an endpoint if that is one."""
    wrapped = call.given[1] if len(call.given) > 1 else call.keywords.get("wrapped")
    if not call.given or wrapped is None:
        return None
    mark = mark_of(wrapped)
    return call.result(call.given[0] if mark is None else Marked(call.given[0], mark))


def _wraps(call: LibraryCall) -> Results | None:
    wrapped = call.given[0] if call.given else call.keywords.get("wrapped")
    if wrapped is None:
        return None
    return call.result(Partial(External("functools.update_wrapper"), (), (("wrapped", wrapped),)))


def _reduce(call: LibraryCall) -> Results | None:
    """Call the function for one item after the other, where it is known which there are."""
    if len(call.given) not in (2, 3) or call.keywords:
        return None
    results: Results = []
    for state, (function, iterable, *first) in call.walk.generators.listed(call.given, call.node, call.state):
        items = iterable.items(state, call.walk)
        if not function.runs_source():
            # One of the standard library, of what is no future.
            if not isinstance(function, External) or state.holds_tracked(iterable):
                return None
            results.append((state, UNKNOWN))
            continue
        if items is None or not (items or first):
            return None
        start, rest = (first[0], items) if first else (items[0], items[1:])
        outcomes: Results = [(state, start)]
        for item in rest:
            ways: Results = []
            for before, total in outcomes:
                ways += function.call(Arguments.of(total, item), call.node, before, call.walk)
            outcomes = merge_results(ways)
        results += outcomes
    return results


FUNCTIONS: dict[str, Known] = {
    "functools.partial": _partial,
    "functools.partialmethod": partial(_partial, unbound=True),
    "functools.reduce": _reduce,
    "functools.update_wrapper": _update_wrapper,
    "functools.wraps": _wraps,
}
