"""Semantics of the classes of ``collections`` and ``types``."""

from __future__ import annotations

from analyzer.static.libraries.builtin_functions import dict_of
from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import UNKNOWN, ClassValue, Const, DictRef, External, Value

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
    "collections.OrderedDict": dict_of,
    "collections.defaultdict": _default_dict,
    "collections.deque": _deque,
    "collections.namedtuple": _named_tuple,
    "types.SimpleNamespace": _namespace,
}
