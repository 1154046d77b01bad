"""What do functions of ``functools`` do, and those of ``operator`` that make functions or read items?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from analyzer.static.arguments import Arguments
from analyzer.static.evaluation import merge_results
from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import (
    UNKNOWN,
    Const,
    External,
    Marked,
    Partial,
    TupleValue,
    Value,
    mark_of,
)

__all__ = ["FUNCTIONS"]

ITEMS, ATTRIBUTES, METHOD = (f"operator.{n}.__call__" for n in ("itemgetter", "attrgetter", "methodcaller"))
"""What the functions made by these do, with what they were made of as first argument."""

Reader = Callable[[LibraryCall, Results, Value], Results | None]


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
        if items is None and state is not call.state and not call.walk.calls.communicate([function], state):
            # A generator has run to its end; how many items it had is not known.
            called = function.call(Arguments.of(UNKNOWN, UNKNOWN), call.node, state, call.walk)
            results += [
                (call.walk.variables.forget_contents([function], after), UNKNOWN) for after, _ in called
            ]
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


def _made(name: str) -> Known:
    """Return what makes a function that reads from what it is given."""

    def known(call: LibraryCall) -> Results | None:
        if not call.given:
            return None
        return call.result(
            Partial(External(name), (TupleValue(tuple(call.given)),), tuple(call.keywords.items()))
        )

    return known


def _read(reader: Reader) -> Known:
    """Return what such a function does: one thing asked for is it, several are a tuple."""

    def known(call: LibraryCall) -> Results | None:
        match call.given:
            case [TupleValue(values=(wanted,)), owner]:
                return reader(call, [(call.state, owner)], wanted)
            case [TupleValue(values=several), owner]:
                return _together(call, reader, several, owner)
        return None

    return known


def _together(call: LibraryCall, reader: Reader, wanted: Sequence[Value], owner: Value) -> Results | None:
    results: Results = [(call.state, TupleValue(()))]
    for one in wanted:
        following: Results = []
        for before, got in results:
            found = reader(call, [(before, owner)], one)
            if found is None or not isinstance(got, TupleValue):
                return None
            following += [(after, TupleValue((*got.values, value))) for after, value in found]
        results = following
    return results


def _item(call: LibraryCall, results: Results, key: Value) -> Results | None:
    return [r for state, owner in results for r in owner.item(key, call.node, state, call.walk)]


def _attribute(call: LibraryCall, results: Results, name: Value) -> Results | None:
    match name:
        case Const(value=str(text)):
            for part in text.split("."):
                results = [
                    r for state, owner in results for r in owner.read(part, call.node, state, call.walk)
                ]
            return results
    return None


def _method(call: LibraryCall) -> Results | None:
    match call.given:
        case [TupleValue(values=(Const(value=str(name)), *given)), owner]:
            arguments = Arguments.of(*given).behind((), list(call.keywords.items()))
            return [
                result
                for state, method in owner.read(name, call.node, call.state, call.walk)
                for result in method.call(arguments, call.node, state, call.walk)
            ]
    return None


def _getitem(call: LibraryCall) -> Results | None:
    match call.given:
        case [owner, key]:
            return owner.item(key, call.node, call.state, call.walk)
    return None


FUNCTIONS: dict[str, Known] = {
    ITEMS: _read(_item),
    ATTRIBUTES: _read(_attribute),
    METHOD: _method,
    "operator.attrgetter": _made(ATTRIBUTES),
    "operator.getitem": _getitem,
    "operator.itemgetter": _made(ITEMS),
    "operator.methodcaller": _made(METHOD),
    "functools.partial": _partial,
    "functools.partialmethod": partial(_partial, unbound=True),
    "functools.reduce": _reduce,
    "functools.update_wrapper": _update_wrapper,
    "functools.wraps": _wraps,
}
