"""What do built-in functions and classes do?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.attribute_texts import attributes_like, text_affixes
from analyzer.static.conditions import instance_of_any
from analyzer.static.libraries.library_call import Known, LibraryCall
from analyzer.static.state import Results
from analyzer.static.values import (
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    ListRef,
    ObjectRef,
    Partial,
    SetRef,
    SharedObject,
    Super,
    TupleValue,
    Value,
    alternatives,
    distinct,
    from_python,
    join,
)

__all__ = ["FUNCTIONS", "dict_of"]

ORDERED = {str, bytes, int, float, bool}
"""Kinds of constants that can be compared."""


GETTERS = ("__getattr__", "__getattribute__")
"""Methods that decide which attributes an object has."""

Callables = ClassValue | Closure | FunctionValue | Partial


def _super(call: LibraryCall) -> Results | None:
    if call.given or call.keywords:
        return None
    function = call.walk.contexts[-1].function
    me = next(iter(call.state.frames[-1].values()), None)
    if function is None or function.owner is None:
        return None
    if not isinstance(me, Instance | ObjectRef | SharedObject | ClassValue):
        return None
    return call.result(Super(me.info, function.owner, me))


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


def _list(call: LibraryCall) -> Results | None:
    items = _only(call)
    return _as_many(call) if items is None else call.new_list(items)


def _tuple(call: LibraryCall) -> Results | None:
    items = _only(call)
    return _as_many(call) if items is None else call.result(TupleValue(items))


def _reversed(call: LibraryCall) -> Results | None:
    items = _only(call)
    return _as_many(call) if items is None else call.result(TupleValue(items[::-1]))


def dict_of(call: LibraryCall) -> Results | None:
    """Return what ``dict`` and its like make."""
    if len(call.given) > 1:
        return None
    named = tuple((Const.of(name), value) for name, value in call.keywords.items())
    if not call.given:
        return call.new_dict(named)
    more = call.walk.library.as_pairs(call.given[0], call.state)
    if more is None:
        return call.new_dict(call.state.content_of([*call.given, *call.keywords.values()]))
    return call.new_dict(distinct((*more, *named), call.state))


def _set(call: LibraryCall) -> Results | None:
    if len(call.given) > 1 or call.keywords:
        return None
    items = call.items(call.given[0]) if call.given else ()
    if items is None:
        many = None if not call.given else call.walk.copies.many(call.given[0], call.state)
        if many is not None:
            number = call.walk.allocate()
            return [(call.state.store(number, many), SetRef(number))]
    elif all(isinstance(item, Const) for item in items):
        items = tuple(dict.fromkeys(items))
    return [call.walk.expressions.new_set(items, call.given, call.state)]


def _type(call: LibraryCall) -> Results | None:
    kinds: list[Value] = []
    for one in alternatives(call.given[0]) if len(call.given) == 1 else ():
        if isinstance(one, Const):
            kinds.append(External(f"builtins.{one.kind.__name__}"))
        elif isinstance(one, Instance | ObjectRef | SharedObject | EnumMember):
            kinds.append(ClassValue(one.info))
        else:
            return None
    return call.result(join(kinds)) if kinds else None


def _isinstance(call: LibraryCall) -> Results | None:
    if len(call.given) != 2:
        return None
    value, kind = call.given
    answers = {instance_of_any(one, kind, call.walk) for one in alternatives(value)}
    known = answers.pop() if len(answers) == 1 else None
    return call.result(UNKNOWN if known is None else Const.of(known))


def _callable(call: LibraryCall) -> Results | None:
    if len(call.given) != 1 or call.keywords:
        return None
    answers = {isinstance(one, Callables) for one in alternatives(call.given[0])}
    known = len(answers) == 1 and all(
        isinstance(one, Callables | Const) for one in alternatives(call.given[0])
    )
    return call.result(Const.of(answers.pop())) if known else None


def _names(value: Value) -> list[str] | None:
    """Return the names of attributes that a text may be; None if they are not known."""
    texts = [one.python()[1] for one in alternatives(value)]
    names = [text for text in texts if isinstance(text, str)]
    return names if len(names) == len(texts) else None


def _getattr(call: LibraryCall) -> Results | None:
    names = _names(call.given[1]) if len(call.given) in (2, 3) else None
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
    if call.walk.attributes.method_named(owner.info, ("__getattribute__",)) is not None:
        return None
    there = owner.has(name, call.state, call.walk)
    asked = call.walk.attributes.method_named(owner.info, ("__getattr__",)) is not None
    return None if asked and not there else there


def _hasattr(call: LibraryCall) -> Results | None:
    """Return whether an object of the source tree has an attribute, if asking for it runs no code."""
    names = _names(call.given[1]) if len(call.given) == 2 else None
    if names is None:
        return None
    answers: set[bool | None] = set()
    for owner in alternatives(call.given[0]):
        if not isinstance(owner, ObjectRef):
            return None
        attributes = call.walk.attributes
        for name in names:
            runs = attributes.property_of(owner.info, None, name) or attributes.descriptor(
                owner.info, None, name
            )
            if runs is not None or attributes.method_named(owner.info, GETTERS) is not None:
                return None
            answers.add(owner.has(name, call.state, call.walk))
    known = answers.pop() if len(answers) == 1 else None
    return call.result(UNKNOWN if known is None else Const.of(known))


def _by_prefix(call: LibraryCall) -> Results | None:
    """Return what ``getattr(self, f"get_{kind}")`` does: any attribute may be meant that begins like this."""
    if len(call.given) not in (2, 3) or not isinstance(call.node, cst.Call):
        return None
    owner = call.given[0]
    affixes = text_affixes(call.node.args[1].value)
    if affixes is None or not isinstance(owner, Instance | ObjectRef | SharedObject):
        return None
    names = attributes_like(owner.info, *affixes, call.walk.names)
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


def _vars(call: LibraryCall) -> Results | None:
    if len(call.given) != 1 or call.keywords:
        return None
    return call.given[0].read("__dict__", call.node, call.state, call.walk)


def _enumerate(call: LibraryCall) -> Results | None:
    items = call.items(call.given[0]) if call.given else None
    if items is None:
        many = call.walk.copies.many(call.given[0], call.state) if call.given else None
        return None if many is None else call.result(many.of(TupleValue((UNKNOWN, many.one))))
    start = call.keywords.get("start", call.given[1] if len(call.given) > 1 else Const.of(0))
    first = start.python()[1]
    numbers = [Const.of(first + i) if isinstance(first, int) else UNKNOWN for i in range(len(items))]
    rows = zip(numbers, items, strict=True)
    return call.result(TupleValue(tuple(TupleValue(row) for row in rows)))


def _zip(call: LibraryCall) -> Results | None:
    sequences = [call.items(value) for value in call.given]
    known = [sequence for sequence in sequences if sequence is not None]
    if not known or len(known) < len(sequences):
        return _zipped(call)
    return call.result(TupleValue(tuple(TupleValue(row) for row in zip(*known, strict=False))))


def _zipped(call: LibraryCall) -> Results | None:
    """Return rows of which one column is what a loop of unknown length has left."""
    many = [call.walk.copies.many(value, call.state) for value in call.given]
    others = [value for value, one in zip(call.given, many, strict=True) if one is None]
    found = [one for one in many if one is not None]
    if len(found) != 1 or any(call.state.holds_tracked(value) for value in others):
        return None
    row = TupleValue(tuple(UNKNOWN if one is None else one.one for one in many))
    # The others may have fewer items.
    strict = call.keywords.get("strict") == Const.of(value=True)
    return call.result(found[0].of(row, partly=not strict))


def _as_many(call: LibraryCall) -> Results | None:
    """Return a new list of what a loop of unknown length has left."""
    many = call.walk.copies.many(call.given[0], call.state) if len(call.given) == 1 else None
    if many is None:
        return None
    number = call.walk.allocate()
    return [(call.state.store(number, many), ListRef(number))]


def _any(call: LibraryCall) -> Results | None:
    answers = _answers(call)
    if answers is None:
        return None
    known = True if True in answers else None if None in answers else False
    return call.result(UNKNOWN if known is None else Const.of(known))


def _all(call: LibraryCall) -> Results | None:
    answers = _answers(call)
    if answers is None:
        return None
    known = False if False in answers else None if None in answers else True
    return call.result(UNKNOWN if known is None else Const.of(known))


def _answers(call: LibraryCall) -> list[bool | None] | None:
    items = call.items(call.given[0]) if len(call.given) == 1 else None
    return None if items is None else [item.truth(call.state.heap) for item in items]


def _comparable(call: LibraryCall, items: Sequence[Value]) -> list[object] | None:
    """Return constants in their order; None if it is not known."""
    reverse = call.keywords.get("reverse", Const.of(value=False))
    plain = [item.value for item in items if isinstance(item, Const)]
    kinds = {type(value) for value in plain}
    known = len(plain) == len(items) and len(kinds) <= 1 and kinds <= ORDERED and isinstance(reverse, Const)
    if not known or set(call.keywords) - {"reverse"}:
        return None
    return sorted(plain, reverse=bool(reverse.python()[1]))


def _ordered_by_key(call: LibraryCall, items: Sequence[Value]) -> list[Value] | None:
    """Return values in the order of what a function makes of them; None if that is not known."""
    key, reverse = call.keywords.get("key"), call.keywords.get("reverse", Const.of(value=False))
    if key is None or set(call.keywords) - {"key", "reverse"} or not isinstance(reverse, Const):
        return None
    keys: list[Value] = []
    for item in items:
        with call.walk.trying() as trial:
            results = key.call(Arguments.of(item), call.node, call.state, call.walk)
        if len(results) != 1 or results[0][0].operations != call.state.operations:
            return None
        if trial.diagnostics.all() or trial.raised:
            return None
        keys.append(results[0][1])
    plain = [one.python() for one in keys]
    kinds = {type(value) for _, value in plain}
    if not all(known for known, _ in plain) or len(kinds) > 1 or not kinds <= ORDERED:
        return None
    order = sorted(range(len(items)), key=lambda place: plain[place][1], reverse=bool(reverse.value))
    return [items[place] for place in order]


def _sorted(call: LibraryCall) -> Results | None:
    items = call.items(call.given[0]) if call.given else None
    if items is None:
        return None if call.keywords else _as_many(call)
    ordered = _comparable(call, items)
    if ordered is not None:
        return call.new_list([Const.of(value) for value in ordered])
    by_key = _ordered_by_key(call, items)
    return call.new_unknown_list(items) if by_key is None else call.new_list(by_key)


def _extreme(place: int) -> Known:
    """Return what ``min`` (place 0) or ``max`` (place -1) does."""

    def known(call: LibraryCall) -> Results | None:
        several = len(call.given) > 1
        items = tuple(call.given) if several else call.items(call.given[0]) if call.given else None
        if not items:
            return None
        ordered = _comparable(call, items)
        if ordered is not None:
            return call.result(from_python(ordered[place]))
        # One of them it is, whichever.
        return call.result(join(items)) if any(item.tracked() for item in items) else None

    return known


FUNCTIONS: dict[str, Known] = {
    "builtins.all": _all,
    "builtins.any": _any,
    "builtins.callable": _callable,
    "builtins.delattr": _delattr,
    "builtins.dict": dict_of,
    "builtins.enumerate": _enumerate,
    "builtins.float": _converted(float),
    "builtins.frozenset": _set,
    "builtins.getattr": _getattr,
    "builtins.hasattr": _hasattr,
    "builtins.int": _converted(int),
    "builtins.isinstance": _isinstance,
    "builtins.iter": _tuple,
    "builtins.len": _len,
    "builtins.object.__delattr__": _delattr,
    "builtins.object.__setattr__": _setting(directly=True),
    "builtins.list": _list,
    "builtins.max": _extreme(-1),
    "builtins.min": _extreme(0),
    "builtins.range": _computed(range),
    "builtins.reversed": _reversed,
    "builtins.set": _set,
    "builtins.setattr": _setting(directly=False),
    "builtins.sorted": _sorted,
    "builtins.str": _converted(str),
    "builtins.super": _super,
    "builtins.tuple": _tuple,
    "builtins.type": _type,
    "builtins.vars": _vars,
    "builtins.zip": _zip,
}
