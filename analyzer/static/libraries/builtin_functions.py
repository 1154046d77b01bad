"""What do built-in functions and classes do?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.attribute_texts import attributes_like, text_affixes
from analyzer.static.conditions import instance_of_any
from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    ListRef,
    Many,
    ObjectRef,
    Partial,
    SetRef,
    SharedObject,
    Super,
    TupleValue,
    Value,
    agreed,
    alternatives,
    answer,
    chained,
    distinct,
    from_python,
    join,
    made_of,
    many_of,
    of_kind,
)
from analyzer.static.values.namespaces import texts_of

__all__ = ["FUNCTIONS", "dict_of"]

MOST_ORDERS = 3
"""Values whose order is not known are each one of so many at most: their combinations are paths."""


GETTERS = ("__getattr__", "__getattribute__")
"""Methods that decide which attributes an object has."""


def _super(call: LibraryCall) -> Results | None:
    if call.given or call.keywords:
        return None
    function = call.walk.contexts[-1].function
    if function is None or function.owner is None:
        return None
    match next(iter(call.state.frames[-1].values()), None):
        case (
            Instance(info=info) | ObjectRef(info=info) | SharedObject(info=info) | ClassValue(info=info)
        ) as me:
            return call.result(Super(info, function.owner, me))
    return None


def _computed(function: Callable[..., object]) -> Known:
    """Return what a function does that is computed of constants."""

    def known(call: LibraryCall) -> Results | None:
        plain = [value.python() for value in call.given]
        if not plain or call.keywords or not all(is_known for is_known, _ in plain):
            return None
        try:
            return call.result(from_python(function(*(value for _, value in plain))))
        except (TypeError, ValueError, OverflowError):
            return call.result(UNKNOWN)

    return known


def _converted(kind: Callable[[Any], object]) -> Known:
    """Return what a class does that is made of one constant."""

    def known(call: LibraryCall) -> Results | None:
        if len(call.given) != 1 or call.keywords or not isinstance(call.given[0], Const):
            return None
        try:
            return call.result(from_python(kind(call.given[0].value)))
        except (TypeError, ValueError, OverflowError):
            return call.result(UNKNOWN)

    return known


def _only(call: LibraryCall) -> tuple[Value, ...] | None:
    """Return the items of the only argument, none of no argument; None if they are not known."""
    if call.keywords or len(call.given) > 1:
        return None
    return call.items(call.given[0]) if call.given else ()


def _len(call: LibraryCall) -> Results | None:
    items = _only(call)
    return None if items is None else call.result(Const.of(len(items)))


def _sequence(make: Callable[[LibraryCall, tuple[Value, ...]], Results]) -> Known:
    """Return what a function does that makes a sequence of the items of its only argument."""

    def known(call: LibraryCall) -> Results | None:
        items = _only(call)
        return _as_many(call) if items is None else make(call, items)

    return known


_tuple = _sequence(lambda call, items: call.result(TupleValue(items)))


def _filled(value: Value, call: LibraryCall) -> Value | None:
    """Return the contents of a dict that is made of pairs a loop of unknown length has left; else None."""
    if value.place is not None and value.is_mapping:
        return many_of(call.state.heap.get(value.place))
    match call.walk.copies.many(value, call.state):
        case Many(one=TupleValue(values=(key, one))) as many if key.place is None:
            made = many.of(one, partly=not key.tracked())
            return replace(made, key=key if key.tracked() else UNKNOWN)
    return None


def dict_of(call: LibraryCall) -> Results | None:
    """Return what ``dict`` and its like make."""
    if len(call.given) > 1:
        return None
    named = tuple((Const.of(name), value) for name, value in call.keywords.items())
    if not call.given:
        return call.new_dict(named)
    more = call.walk.library.as_pairs(call.given[0], call.state)
    if more is None:
        filled = None if named else _filled(call.given[0], call)
        return call.new_dict(filled or call.state.content_of([*call.given, *call.keywords.values()]))
    return call.new_dict(distinct((*more, *named), call.state))


def _set(call: LibraryCall) -> Results | None:
    if len(call.given) > 1 or call.keywords:
        return None
    items = call.items(call.given[0]) if call.given else ()
    if items is None:
        runs = call.walk.copies.runs(call.given[0], call.state)
        if runs is not None:
            return call.stored(chained(runs), SetRef)
    elif all(isinstance(item, Const) for item in items):
        items = tuple(dict.fromkeys(items))
    return [call.walk.expressions.new_set(items, call.given, call.state)]


def _type(call: LibraryCall) -> Results | None:
    kinds: list[Value] = []
    for one in alternatives(call.given[0]) if len(call.given) == 1 else ():
        match one:
            case Const(kind=kind):
                kinds.append(External(f"builtins.{kind.__name__}"))
            case Instance(info=info) | ObjectRef(info=info) | SharedObject(info=info) | EnumMember(info=info):
                kinds.append(ClassValue(info))
            case _:
                return None
    return call.result(join(kinds)) if kinds else None


def _isinstance(call: LibraryCall) -> Results | None:
    if len(call.given) != 2:
        return None
    value, kind = call.given
    return call.result(answer(agreed(instance_of_any(one, kind, call.walk) for one in alternatives(value))))


def _callable(call: LibraryCall) -> Results | None:
    if len(call.given) != 1 or call.keywords:
        return None
    known = agreed(map(_is_callable, alternatives(call.given[0])))
    return None if known is None else call.result(Const.of(known))


def _is_callable(value: Value) -> bool | None:
    match value:
        case ClassValue() | Closure() | FunctionValue() | Partial():
            return True
        case Const():
            return False
    return None


def _getattr(call: LibraryCall) -> Results | None:
    names = texts_of(call.given[1]) if len(call.given) in (2, 3) else None
    if names is None:
        return _by_prefix(call)
    results: Results = []
    for name in names:
        for owner in alternatives(call.given[0]):
            there = _is_there(owner, name, call)
            if there is not False or len(call.given) == 2:
                results += owner.read(name, call.node, call.state, call.walk)
            if there is not True and len(call.given) == 3:
                results.append((call.state, call.given[2]))
    return results


def _is_there(owner: Value, name: str, call: LibraryCall) -> bool | None:
    """Return whether reading an attribute gives a value and no error; None = perhaps."""
    if not isinstance(owner, ObjectRef):
        return True
    there = owner.has(name, call.state, call.walk)
    asked = owner.own_method(("__getattribute__",) if there else GETTERS, call.walk)
    return there if asked is None else None


def _hasattr(call: LibraryCall) -> Results | None:
    """Return whether an object of the source tree has an attribute, if asking for it runs no code."""
    names = texts_of(call.given[1]) if len(call.given) == 2 else None
    if names is None:
        return None
    answers: set[bool | None] = set()
    attributes = call.walk.attributes
    for owner in alternatives(call.given[0]):
        if not isinstance(owner, ObjectRef):
            return None
        for name in names:
            of = owner.info, None, name
            if attributes.property_of(*of) or attributes.descriptor(*of):
                return None
            if owner.own_method(GETTERS, call.walk) is not None:
                return None
            answers.add(owner.has(name, call.state, call.walk))
    return call.result(answer(agreed(answers)))


def _by_prefix(call: LibraryCall) -> Results | None:
    """Return what ``getattr(self, f"get_{kind}")`` does: any attribute may be meant that begins like this."""
    if len(call.given) not in (2, 3) or type(call.node) is not cst.Call:
        return None
    affixes = text_affixes(call.node.args[1].value)
    match call.given[0]:
        case (Instance(info=info) | ObjectRef(info=info) | SharedObject(info=info)) as owner:
            names = None if affixes is None else attributes_like(info, *affixes, call.walk.names)
        case _:
            return None
    if not names:
        return None
    # No such attribute: the default, or an error, which what calls functions has seen to.
    results = [(call.state, call.given[2])] if len(call.given) == 3 else []
    for name in names:
        results += owner.read(name, call.node, call.state, call.walk)
    return results


def _setting(*, directly: bool) -> Known:
    """Return what ``setattr`` and its like do, past a ``__setattr__`` of the class or not."""

    def known(call: LibraryCall) -> Results | None:
        if len(call.given) != 3:
            return None
        owner, name, value = call.given
        return call.walk.attributes.set_by_name(owner, name, value, call.node, call.state, directly=directly)

    return known


def _delattr(call: LibraryCall) -> Results | None:
    if len(call.given) != 2:
        return None
    owner, name = call.given
    return call.walk.attributes.set_by_name(owner, name, UNKNOWN, call.node, call.state, directly=True)


def _new(kind: type | None = None) -> Known:
    """Return what ``__new__`` of a built-in class does where it makes a member of an enumeration."""

    def known(call: LibraryCall) -> Results | None:
        match call.given:
            case [ClassValue(info=info), *rest] if call.walk.enumerations.is_being_made(info):
                return call.walk.enumerations.new(info, rest, call.state, kind)
        return None

    return known


def _vars(call: LibraryCall) -> Results | None:
    if len(call.given) != 1 or call.keywords:
        return None
    return call.given[0].read("__dict__", call.node, call.state, call.walk)


def _enumerate(call: LibraryCall) -> Results | None:
    items = call.items(call.given[0]) if call.given else None
    if items is None:
        runs = call.walk.copies.runs(call.given[0], call.state) if call.given else None
        return None if runs is None else call.result(made_of(runs, lambda one: TupleValue((UNKNOWN, one))))
    start = call.keywords.get("start", call.given[1] if len(call.given) > 1 else Const.of(0))
    first = start.python()[1]
    numbers = [Const.of(first + i) if isinstance(first, int) else UNKNOWN for i in range(len(items))]
    rows = zip(numbers, items, strict=True)
    return call.result(TupleValue(tuple(TupleValue(row) for row in rows)))


def _zip(call: LibraryCall) -> Results | None:
    known = call.items_of_each()
    if known is None:
        return _zipped(call)
    return call.result(TupleValue(tuple(map(TupleValue, zip(*known, strict=False)))))


def _zipped(call: LibraryCall) -> Results | None:
    """Return rows of which one column is what loops of unknown length have left."""
    columns = [call.walk.copies.runs(value, call.state) or () for value in call.given]
    several = [place for place, runs in enumerate(columns) if of_kind(runs, Many)]
    others = [value for place, value in enumerate(call.given) if place not in several]
    if len(several) != 1 or any(call.state.holds_tracked(value) for value in others):
        return None
    (column,) = several
    # The others may have fewer items.
    strict = call.keywords.get("strict") == Const.of(value=True)

    def row(one: Value) -> Value:
        return TupleValue(tuple(one if place == column else UNKNOWN for place in range(len(columns))))

    return call.result(made_of(columns[column], row, partly=not strict))


def _as_many(call: LibraryCall) -> Results | None:
    """Return a new list of what a loop of unknown length has left."""
    runs = call.walk.copies.runs(call.given[0], call.state) if len(call.given) == 1 else None
    return None if runs is None else call.stored(chained(runs), ListRef)


def _deciding(*, decides: bool) -> Known:
    """Return what ``any`` (True decides) or ``all`` (False decides) does."""

    def known(call: LibraryCall) -> Results | None:
        items = call.items(call.given[0]) if len(call.given) == 1 else None
        if items is None:
            return None
        answers = [item.truth(call.state.heap) for item in items]
        return call.result(
            answer(decides if decides in answers else None if None in answers else not decides)
        )

    return known


def _ordered(call: LibraryCall, items: Sequence[Value], keys: Sequence[Value]) -> list[Value] | None:
    """Return items in the order of their keys; None if that is not known."""
    reverse = call.keywords.get("reverse", Const.of(value=False))
    plain = [key.python() for key in keys]
    if not all(known for known, _ in plain) or not isinstance(reverse, Const):
        return None
    try:
        order = sorted(range(len(items)), key=lambda place: plain[place][1], reverse=bool(reverse.value))
    except TypeError:
        return None
    return [items[place] for place in order]


def _keys(call: LibraryCall, items: Sequence[Value]) -> Sequence[Value] | None:
    """Return what values are ordered by; None if that is not known.

    That is themselves, or what a function makes of them that does nothing else.
    """
    key = call.keywords.get("key")
    if key is None or key == NONE:
        return items
    keys: list[Value] = []
    for item in items:
        with call.walk.trying() as trial:
            results = key.call(Arguments.of(item), call.node, call.state, call.walk)
        if len(results) != 1 or results[0][0].operations != call.state.operations:
            return None
        if trial.diagnostics.all() or trial.raised:
            return None
        keys.append(results[0][1])
    known = key.runs_source() or all(one.python()[0] for one in keys)
    return keys if known else None


def _sorted(call: LibraryCall) -> Results | None:
    items = call.items(call.given[0]) if call.given else None
    if items is None:
        return None if call.keywords else _as_many(call)
    keys = None if set(call.keywords) - {"key", "reverse"} else _keys(call, items)
    ordered = None if keys is None else _ordered(call, items, keys)
    if ordered is not None:
        return call.new_list(ordered)
    if len(items) <= MOST_ORDERS and not any(call.state.holds_tracked(item) for item in items):
        # Each may stand at every place.
        return call.new_list([join(items)] * len(items))
    return call.stored(call.state.content_of(items), ListRef)


def _extreme(first: Callable[..., Any]) -> Known:
    """Return what ``min`` or ``max`` does, which is ``first`` of places by key: the first of equal ones."""

    def known(call: LibraryCall) -> Results | None:
        several = len(call.given) > 1
        items = tuple(call.given) if several else call.items(call.given[0]) if call.given else None
        if not items or set(call.keywords) - {"default", "key"}:
            return None
        keys = _keys(call, items)
        plain = [key.python() for key in keys or ()]
        if plain and all(known for known, _ in plain):
            with suppress(TypeError):
                return call.result(items[first(range(len(items)), key=lambda place: plain[place][1])])
        # One of them it is, whichever.
        return call.result(join(items)) if keys or any(item.tracked() for item in items) else None

    return known


FUNCTIONS: dict[str, Known] = {
    "builtins.all": _deciding(decides=False),
    "builtins.any": _deciding(decides=True),
    "builtins.callable": _callable,
    "builtins.delattr": _delattr,
    "builtins.dict": dict_of,
    "builtins.enumerate": _enumerate,
    "builtins.float": _converted(float),
    "builtins.frozenset": _set,
    "builtins.getattr": _getattr,
    "builtins.hasattr": _hasattr,
    "builtins.int": _converted(int),
    "builtins.int.__new__": _new(int),
    "builtins.isinstance": _isinstance,
    "builtins.iter": _tuple,
    "builtins.len": _len,
    "builtins.object.__delattr__": _delattr,
    "builtins.object.__new__": _new(),
    "builtins.object.__setattr__": _setting(directly=True),
    "builtins.list": _sequence(LibraryCall.new_list),
    "builtins.max": _extreme(max),
    "builtins.min": _extreme(min),
    "builtins.range": _computed(range),
    "builtins.reversed": _sequence(lambda call, items: call.result(TupleValue(items[::-1]))),
    "builtins.set": _set,
    "builtins.setattr": _setting(directly=False),
    "builtins.sorted": _sorted,
    "builtins.str": _converted(str),
    "builtins.str.__new__": _new(str),
    "builtins.super": _super,
    "builtins.tuple": _tuple,
    "builtins.type": _type,
    "builtins.vars": _vars,
    "builtins.zip": _zip,
}
