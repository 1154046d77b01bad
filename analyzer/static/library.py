"""What do functions outside the source tree do with values the analyzer follows?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.evaluation import Arguments, Results
from analyzer.static.patterns import Patterns
from analyzer.static.state import Content, State
from analyzer.static.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Const,
    DictRef,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    ListRef,
    MapValue,
    ObjectRef,
    Partial,
    SharedObject,
    TupleValue,
    Value,
    alternatives,
    from_python,
    join,
    text_method,
    tracked,
)

__all__ = ["Library"]


ORDERED = {str, bytes, int, float, bool}
"""Kinds of constants that can be compared."""


class Library(Patterns):
    """Calls functions of the standard library whose effect is known."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self._factories_of: dict[int, str] = {}

    def outside(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results | None:
        """Return what a function outside the source tree does; None if that is not known."""
        found = self.consuming(name, arguments, node, state)
        if found is not None or not arguments.plain:
            return found
        given, keywords = arguments.positional(), dict(arguments.keywords())
        if name in ("functools.partial", "functools.partialmethod") and given:
            return [(state, Partial(given[0], tuple(given[1:]), tuple(keywords.items())))]
        if name.startswith(("collections.", "types.")):
            return self._collection(name, given, keywords, node, state)
        if not name.startswith("builtins."):
            return None
        short = name.removeprefix("builtins.")
        if short in ("getattr", "setattr", "hasattr") and len(given) >= 2:
            return self._reflected(short, given, node, state)
        if short == "type" and len(given) == 1:
            return self._type_of(given[0], state)
        if short == "isinstance" and len(given) == 2:
            kinds = given[1].items if isinstance(given[1], TupleValue) else (given[1],)
            answers = {self.is_instance(v, kind) for v in alternatives(given[0]) for kind in kinds}
            known = True if answers == {True} else False if answers == {False} else None
            return [(state, UNKNOWN if known is None else Const.of(known))]
        if (
            short == "callable"
            and len(given) == 1
            and isinstance(given[0], Closure | FunctionValue | Partial)
        ):
            return [(state, Const.of(value=True))]
        if short == "dict" and len(given) <= 1:
            return self._dict(given, keywords, state)
        if short in ("set", "frozenset") and len(given) <= 1 and not keywords:
            return self._set(given, state)
        if short in ("sorted", "enumerate", "zip", "min", "max", "any", "all") and given:
            return self._sequence(short, given, keywords, state)
        return None

    def _collection(
        self, name: str, given: Sequence[Value], keywords: dict[str, Value], node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what classes of ``collections`` make."""
        if name == "collections.deque" and not keywords and len(given) < 2:
            items = self.items(given[0], state) if given else ()
            return None if items is None else [self._new_list(items, state)]
        if name == "collections.OrderedDict" and len(given) < 2:
            return self._dict(given, keywords, state)
        if name == "collections.defaultdict" and len(given) == 1 and isinstance(given[0], External):
            after, made = self.new_dict(keywords.items(), state)
            assert isinstance(made, DictRef)  # noqa: S101  (what was just made)
            self._factories_of[made.number] = given[0].name
            return [(after, made)]
        if name == "types.SimpleNamespace" and not given:
            info = self.namespace("SimpleNamespace", list(keywords), ordered=False)
            named = Arguments((), ()).behind((), list(keywords.items()))
            return self.instantiate(info, named, node, state)
        if name == "collections.namedtuple" and len(given) == 2 and not keywords:
            fields = self._field_names(given[1], state)
            if fields is not None and isinstance(given[0], Const) and str(given[0].value).isidentifier():
                return [(state, ClassValue(self.namespace(given[0].value, fields, ordered=True)))]
        return None

    def _field_names(self, value: Value, state: State) -> list[str] | None:
        if isinstance(value, Const) and isinstance(value.value, str):
            names = value.value.replace(",", " ").split()
        else:
            items = self.items(value, state) or (UNKNOWN,)
            names = [str(i.value) if isinstance(i, Const) else "" for i in items]
        return names if all(name.isidentifier() for name in names) else None

    def _subscripted(self, node: cst.Subscript, values: Sequence[Value], state: State) -> Results:
        """Return what reading ``owner[key]`` does: a ``defaultdict`` makes what it does not have."""
        owner = values[0]
        if not isinstance(owner, DictRef) or owner.number not in self._factories_of or len(values) != 2:
            return super()._subscripted(node, values, state)
        pairs, key = self._pairs(owner, state), values[1]
        if pairs is None or not all(isinstance(k, Const | EnumMember) for k in (key, *(k for k, _ in pairs))):
            content = self._content_of([owner], state)
            return [(self.forget_contents([owner], state), content)]
        found = [value for k, value in pairs if k == key]
        if found:
            return [(state, found[-1])]
        state, made = self.empty(self._factories_of[owner.number], state)
        return [(state.store(owner.number, (*pairs, (key, made))), made)]

    def _type_of(self, value: Value, state: State) -> Results | None:
        if isinstance(value, Instance | ObjectRef | SharedObject | EnumMember):
            return [(state, ClassValue(value.info))]
        return None

    def _reflected(
        self, name: str, given: Sequence[Value], node: cst.CSTNode, state: State
    ) -> Results | None:
        """Return what ``getattr`` and its like do if the name of the attribute is known."""
        names = [v.value for v in alternatives(given[1]) if isinstance(v, Const) and isinstance(v.value, str)]
        if len(names) != len(alternatives(given[1])) or name == "hasattr":
            return None
        if name == "setattr" and len(given) == 3 and len(names) == 1 and isinstance(given[0], ObjectRef):
            target = cst.Attribute(cst.Name(OWNER), cst.Name(names[0]))
            after = self.assign_attribute(target, given[2], state.bind(OWNER, given[0]), node)
            return [(after, NONE)]
        if name == "setattr":
            return None
        results: Results = []
        for one in names:
            for owner in alternatives(given[0]):
                known = not isinstance(owner, ObjectRef) or self.has(owner, one, state)
                if known or len(given) == 2:
                    results += self.read_attribute(owner, one, node, state)
                else:
                    results.append((state, given[2]))
        return results

    def _dict(self, given: Sequence[Value], keywords: dict[str, Value], state: State) -> Results:
        number = self._allocate()
        pairs: Content = tuple((Const.of(name), value) for name, value in keywords.items())
        if given:
            more = self.as_pairs(given[0], state)
            if more is None:
                content = self._content_of([*given, *keywords.values()], state)
                return [(state.store(number, content), DictRef(number))]
            pairs = merged_pairs(more, pairs)
        return [(state.store(number, pairs), DictRef(number))]

    def as_pairs(self, value: Value, state: State) -> Content | None:
        """Return the items of a mapping, or of a sequence of pairs; None if they are not known."""
        if isinstance(value, DictRef | MapValue):
            return self._pairs(value, state)
        rows = [self.items(row, state) for row in self.items(value, state) or (UNKNOWN,)]
        if value == TupleValue(()) or self.items(value, state) == ():
            return ()
        known = [(row[0], row[1]) for row in rows if row is not None and len(row) == 2]
        exact = all(isinstance(key, Const | EnumMember) for key, _ in known)
        return merged_pairs((), tuple(known)) if len(known) == len(rows) and exact else None

    def _set(self, given: Sequence[Value], state: State) -> Results:
        items = self.items(given[0], state) if given else ()
        number = self._allocate()
        # A set has no order that the source could tell.
        content: Content | Value = self._content_of(given, state)
        if items is not None and len(set(items)) < 2 and all(isinstance(i, Const) for i in items):
            content = tuple((UNKNOWN, item) for item in dict.fromkeys(items))
        return [(state.store(number, content), ListRef(number))]

    def _sequence(
        self, name: str, given: Sequence[Value], keywords: dict[str, Value], state: State
    ) -> Results | None:
        """Return what functions of sequences of known items return."""
        sequences = [self.items(value, state) for value in given]
        if name in ("min", "max") and len(given) > 1:
            sequences = [tuple(given)]
        if name in ("enumerate", "sorted"):
            sequences = sequences[:1]
        known = [s for s in sequences if s is not None]
        if len(known) < len(sequences):
            return None
        items = known[0]
        if name == "enumerate":
            start = keywords.get("start", given[1] if len(given) > 1 else Const.of(0))
            if not isinstance(start, Const) or not isinstance(start.value, int):
                return [(state, TupleValue(tuple(TupleValue((UNKNOWN, item)) for item in items)))]
            rows = tuple(TupleValue((Const.of(start.value + i), item)) for i, item in enumerate(items))
            return [(state, TupleValue(rows))]
        if name == "zip":
            columns = zip(*known, strict=False)
            return [(state, TupleValue(tuple(TupleValue(row) for row in columns)))]
        if name in ("any", "all"):
            return [(state, _quantified(name, items))]
        return self._ordered(name, items, keywords, state)

    def _ordered(
        self, name: str, items: Sequence[Value], keywords: dict[str, Value], state: State
    ) -> Results | None:
        reverse = keywords.get("reverse", Const.of(value=False))
        plain = [v.value for v in items if isinstance(v, Const)]
        kinds = {type(v) for v in plain}
        comparable = len(plain) == len(items) and len(kinds) <= 1 and kinds <= ORDERED
        if not comparable or not isinstance(reverse, Const) or set(keywords) - {"reverse"}:
            if name == "sorted":
                number = self._allocate()
                return [(state.store(number, self._content_of(items, state)), ListRef(number))]
            # One of them it is, whichever.
            return [(state, join(items))] if items and any(tracked(i) for i in items) else None
        if name == "sorted":
            ordered = sorted(plain, reverse=bool(reverse.value))
            return [self._new_list([Const.of(v) for v in ordered], state)]
        choose: Callable[[list[object]], object] = {"min": min, "max": max}[name]  # type: ignore[assignment]
        return [(state, from_python(choose(plain)))] if plain else None

    def _container_method(
        self, owner: Value, name: str, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
        """Return what a method of a list or dict does."""
        pairs = self._pairs(owner, state)
        given = arguments.positional()
        if pairs is not None and arguments.plain:
            if isinstance(owner, DictRef):
                found = self._dict_method(owner, name, pairs, arguments, state)
            else:
                found = self._list_method(owner, name, pairs, given, state)
            if found is not None:
                return found
        return super()._container_method(owner, name, arguments, node, state)

    def text(self, owner: Const, name: str, arguments: Arguments, node: cst.CSTNode, state: State) -> Results:
        """Return what a method of a constant text does."""
        if name == "format":
            self.operated(arguments.values, node, state)
        results: Results = []
        for after, values in self.listed(arguments.values, node, state):
            known = [self.items(v, after) if isinstance(v, ListRef) else None for v in values]
            plain = [v if k is None else TupleValue(k) for v, k in zip(values, known, strict=True)]
            given = replace(arguments, values=tuple(plain))
            result = text_method(name, owner, given.positional(), dict(given.keywords()))
            results.append((after, result if given.plain else UNKNOWN))
        return results

    def _dict_method(
        self, owner: DictRef, name: str, pairs: Content, arguments: Arguments, state: State
    ) -> Results | None:
        given = arguments.positional()
        exact = all(isinstance(key, Const | EnumMember) for key, _ in pairs)
        if name == "copy" and not given:
            number = self._allocate()
            return [(state.store(number, pairs), DictRef(number))]
        if name == "clear":
            return [(state.store(owner.number, ()), NONE)]
        if name == "update" and len(given) <= 1 and exact:
            more = self.as_pairs(given[0], state) if given else ()
            if more is None:
                return None
            named = tuple((Const.of(key), value) for key, value in arguments.keywords())
            return [(state.store(owner.number, merged_pairs(pairs, (*more, *named))), NONE)]
        if name not in ("pop", "setdefault") or not given or not exact or not isinstance(given[0], Const):
            return None
        found = [value for key, value in pairs if key == given[0]]
        if name == "pop":
            rest = tuple(pair for pair in pairs if pair[0] != given[0])
            default = given[1] if len(given) > 1 else UNKNOWN
            return [(state.store(owner.number, rest), found[0] if found else default)]
        if found:
            return [(state, found[0])]
        value = given[1] if len(given) > 1 else NONE
        return [(state.store(owner.number, (*pairs, (given[0], value))), value)]

    def _list_method(
        self, owner: Value, name: str, pairs: Content, given: Sequence[Value], state: State
    ) -> Results | None:
        if name == "copy" and isinstance(owner, ListRef | TupleValue):
            return [self._new_list([value for _, value in pairs], state)]
        if not isinstance(owner, ListRef):
            return None
        if name == "clear":
            return [(state.store(owner.number, ()), NONE)]
        if name == "reverse":
            return [(state.store(owner.number, pairs[::-1]), NONE)]
        if (
            name == "insert"
            and len(given) == 2
            and isinstance(given[0], Const)
            and isinstance(given[0].value, int)
        ):
            items = list(pairs)
            items.insert(given[0].value, (UNKNOWN, given[1]))
            return [(state.store(owner.number, tuple(items)), NONE)]
        if name == "appendleft" and len(given) == 1:
            return [(state.store(owner.number, ((UNKNOWN, given[0]), *pairs)), NONE)]
        if name == "popleft" and pairs:
            return [(state.store(owner.number, pairs[1:]), pairs[0][1])]
        if (
            name == "pop"
            and len(given) == 1
            and isinstance(given[0], Const)
            and isinstance(given[0].value, int)
        ):
            place = given[0].value
            if -len(pairs) <= place < len(pairs):
                items = list(pairs)
                _, taken = items.pop(place)
                return [(state.store(owner.number, tuple(items)), taken)]
        return None

    def expanded(self, arguments: Arguments, state: State) -> Arguments:
        """Return arguments with ``*`` and ``**`` replaced by what they stand for, where that is known."""
        if arguments.plain:
            return arguments
        nodes: list[cst.Arg] = []
        values: list[Value] = []
        for argument, value in zip(arguments.nodes, arguments.values, strict=True):
            more: Arguments | None = None
            if argument.star == "*":
                items = self.items(value, state)
                more = None if items is None else Arguments.of(*items)
            elif argument.star == "**":
                pairs = self._pairs(value, state) if isinstance(value, DictRef | MapValue) else None
                if pairs is not None and all(
                    isinstance(k, Const) and isinstance(k.value, str) for k, _ in pairs
                ):
                    named = [(k.value, v) for k, v in pairs if isinstance(k, Const)]
                    more = Arguments((), ()).behind((), named)
            nodes += [argument] if more is None else more.nodes
            values += [value] if more is None else more.values
        return replace(arguments, nodes=tuple(nodes), values=tuple(values))


OWNER = "__owner__"
"""Variable for an object that an attribute is set of by name."""


def merged_pairs(first: Content, second: Content) -> Content:
    """Return the items of a dict after an update."""
    return tuple({**dict(first), **dict(second)}.items())


def _quantified(name: str, items: Sequence[Value]) -> Value:
    answers = [bool(v.value) if isinstance(v, Const) else None for v in items]
    if name == "any":
        known = True if True in answers else None if None in answers else False
    else:
        known = False if False in answers else None if None in answers else True
    return UNKNOWN if known is None else Const.of(known)
