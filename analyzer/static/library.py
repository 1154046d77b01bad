"""What do functions outside the source tree do with values the analyzer follows?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from analyzer.static.arguments import Arguments
from analyzer.static.patterns import Patterns
from analyzer.static.state import Content, Results, State
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
    distinct,
    from_python,
    join,
    keyed,
    text_method,
)

__all__ = ["Library"]


ORDERED = {str, bytes, int, float, bool}
"""Kinds of constants that can be compared."""


class Library(Patterns):
    """Calls functions of the standard library whose effect is known."""

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
            kinds = given[1].values if isinstance(given[1], TupleValue) else (given[1],)
            answers = {v.instance_of(kind, self) for v in alternatives(given[0]) for kind in kinds}
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
            return None if items is None else [self.new_list(items, state)]
        if name == "collections.OrderedDict" and len(given) < 2:
            return self._dict(given, keywords, state)
        if name == "collections.defaultdict" and len(given) == 1 and isinstance(given[0], External):
            after, made = self.new_dict(keywords.items(), state)
            assert isinstance(made, DictRef)  # noqa: S101  (what was just made)
            return [(after, replace(made, factory=given[0].name))]
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
                known = not isinstance(owner, ObjectRef) or owner.has(one, state, self)
                if known or len(given) == 2:
                    results += owner.read(one, node, state, self)
                else:
                    results.append((state, given[2]))
        return results

    def _dict(self, given: Sequence[Value], keywords: dict[str, Value], state: State) -> Results:
        number = self.allocate()
        pairs: Content = tuple((Const.of(name), value) for name, value in keywords.items())
        if given:
            more = self.as_pairs(given[0], state)
            if more is None:
                content = state.content_of([*given, *keywords.values()])
                return [(state.store(number, content), DictRef(number))]
            return [(state.store(number, distinct((*more, *pairs), state)), DictRef(number))]
        return [(state.store(number, pairs), DictRef(number))]

    def as_pairs(self, value: Value, state: State) -> Content | None:
        """Return the items of a mapping, or of a sequence of pairs; None if they are not known."""
        if isinstance(value, DictRef | MapValue):
            return value.pairs(state.heap)
        rows = [self.items(row, state) for row in self.items(value, state) or (UNKNOWN,)]
        if value == TupleValue(()) or self.items(value, state) == ():
            return ()
        known = [(row[0], row[1]) for row in rows if row is not None and len(row) == 2]
        exact = keyed(tuple(known)) if len(known) == len(rows) else None
        return None if exact is None else tuple(exact.values())

    def _set(self, given: Sequence[Value], state: State) -> Results:
        items = self.items(given[0], state) if given else ()
        number = self.allocate()
        # A set has no order that the source could tell.
        content: Content | Value = state.content_of(given)
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
                number = self.allocate()
                return [(state.store(number, state.content_of(items)), ListRef(number))]
            # One of them it is, whichever.
            return [(state, join(items))] if items and any(item.tracked() for item in items) else None
        if name == "sorted":
            ordered = sorted(plain, reverse=bool(reverse.value))
            return [self.new_list([Const.of(v) for v in ordered], state)]
        choose: Callable[[list[object]], object] = {"min": min, "max": max}[name]  # type: ignore[assignment]
        return [(state, from_python(choose(plain)))] if plain else None

    def text_method(
        self, owner: Const, name: str, arguments: Arguments, node: cst.CSTNode, state: State
    ) -> Results:
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
                pairs = value.pairs(state.heap) if isinstance(value, DictRef | MapValue) else None
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


def _quantified(name: str, items: Sequence[Value]) -> Value:
    answers = [bool(v.value) if isinstance(v, Const) else None for v in items]
    if name == "any":
        known = True if True in answers else None if None in answers else False
    else:
        known = False if False in answers else None if None in answers else True
    return UNKNOWN if known is None else Const.of(known)
