"""Semantics of the classes of ``collections`` and ``types``."""

from __future__ import annotations

import libcst as cst

from analyzer.static.libraries.builtin_functions import dict_of
from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import UNKNOWN, ClassValue, Const, DictRef, External, MapValue, Value, keyed

__all__ = ["FUNCTIONS"]


def _deque(call: LibraryCall) -> Results | None:
    if call.keywords or len(call.given) > 1:
        return None
    items = call.items(call.given[0]) if call.given else ()
    return None if items is None else call.new_list(items)


def _default_dict(call: LibraryCall) -> Results | None:
    match call.given:
        case [External(name=factory)]:
            content = tuple((Const.of(name), value) for name, value in call.keywords.items())
            return call.stored(content, lambda number: DictRef(number, factory))
    return None


def _proxy(call: LibraryCall) -> Results | None:
    """Return what shows a mapping: all that is done with it is done with that."""
    fitting = len(call.given) == 1 and not call.keywords and call.given[0].is_mapping
    return call.result(call.given[0]) if fitting else None


def _chain_map(call: LibraryCall) -> Results:
    """Return several mappings as one that never changes; of those that may change by now nothing is known."""
    rows: list[tuple[Value, Value]] = []
    for one in reversed(call.given):
        pairs = one.pairs(call.state.heap) if one.is_mapping and _is_new(one, call) else None
        if pairs is None or call.keywords:
            state = call.walk.variables.forget_contents(call.given, call.state)
            return [(state, call.state.content_of(call.given))]
        rows += pairs
    exact = keyed(tuple(rows))
    return call.result(UNKNOWN if exact is None else MapValue(tuple(exact.values())))


def _is_new(value: Value, call: LibraryCall) -> bool:
    """Return whether nothing else can change a mapping: it is constant, or has no name."""
    nodes = call.node.args if type(call.node) is cst.Call else ()
    places = zip(nodes, call.given, strict=False)
    return value.place is None or any(v is value and type(a.value) is cst.Dict for a, v in places)


def _namespace(call: LibraryCall) -> Results | None:
    if call.given:
        return None
    info = call.walk.making.namespace("SimpleNamespace", list(call.keywords), ordered=False)
    return call.walk.making.instantiate(info, call.made(call.keywords), call.node, call.state)


def _named_tuple(call: LibraryCall) -> Results | None:
    if len(call.given) != 2 or call.keywords:
        return None
    name, fields = call.given[0].python()[1], _field_names(call, call.given[1])
    if fields is None or not isinstance(name, str) or not name.isidentifier():
        return None
    return call.result(ClassValue(call.walk.making.namespace(name, fields, ordered=True)))


def _field_names(call: LibraryCall, value: Value) -> list[str] | None:
    text = value.python()[1]
    if isinstance(text, str):
        names = text.replace(",", " ").split()
    else:
        names = [str(item.python()[1]) for item in call.items(value) or (UNKNOWN,)]
    return names if all(name.isidentifier() and name != "None" for name in names) else None


FUNCTIONS: dict[str, Known] = {
    "collections.ChainMap": _chain_map,
    "collections.OrderedDict": dict_of,
    "collections.defaultdict": _default_dict,
    "collections.deque": _deque,
    "collections.namedtuple": _named_tuple,
    "types.MappingProxyType": _proxy,
    "types.SimpleNamespace": _namespace,
}
