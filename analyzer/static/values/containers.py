"""What do tuples, lists, sets and dicts do?

Tuples, and mappings that never change, have their items themselves; contents of lists and dicts are in the
heap of a state, because what one name changes shows under every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from analyzer.static.values.constants import NONE, Const, index_among
from analyzer.static.values.copies import (
    Many,
    Variants,
    added_to,
    any_number_of,
    chained,
    if_known,
    is_filled,
    made_of,
    rows_of,
    runs_of,
    sources_of,
    variants_of,
)
from analyzer.static.values.futures import Coroutine, Future, Generator
from analyzer.static.values.value import (
    LOST,
    UNKNOWN,
    Atom,
    Opaque,
    Value,
    agreed,
    alternatives,
    join,
    of_kind,
)

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.state import Content, Contents, Heap, Results, State
    from analyzer.static.walk import Walk

__all__ = ["ANY_ATTRIBUTE", "MAX_ITEMS", "MAYBE", "DictRef", "ListRef", "MapValue", "SetRef", "TupleValue"]
__all__ += ["RECORDS", "Records", "Slot"]
__all__ += ["distinct", "item_of", "tuple_of"]

MAX_ITEMS = 10_000
"""A tuple of more values, those of tuples inside it together, is not known."""


@dataclass(frozen=True, slots=True)
class Container(Opaque):
    """Family of what holds items; its methods are found by name."""

    never_none: ClassVar[bool] = True
    has_methods: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class TupleValue(Container):
    """A tuple, range or other immutable sequence of known length.

    Attributes:
        plain: It holds constants and unknown values only, nothing to keep track of.
    """

    values: tuple[Value, ...]
    plain: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Long ranges are asked for this in every iteration of a loop over them.
        object.__setattr__(self, "plain", all(one.plain for one in self.values))

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return self.values

    def classes(self) -> tuple[Value, ...]:
        """Return the classes it stands for where one is expected."""
        return self.values

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return TupleValue(tuple(map(change, self.values)))

    @property
    def atomic(self) -> bool:
        """Whether it refers to nothing else that may end or change, heap contents aside."""
        return self.plain

    def holds(self) -> bool:
        """Return whether it may hold a future."""
        return not self.plain and any(one.holds() for one in self.values)

    def futures(self) -> Iterator[int]:
        """Yield the index of every future in it."""
        for one in () if self.plain else self.values:
            yield from one.futures()

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return self if self.plain else TupleValue(tuple(one.frozen(state, seen, run) for one in self.values))

    def as_key(self) -> Value | None:
        """Return what tells it from other keys of a dict."""
        keys = [one.as_key() for one in self.values]
        known = tuple(key for key in keys if key is not None)
        return TupleValue(known) if len(known) == len(keys) else None

    def tracked(self) -> bool:
        """Return whether losing sight of it could lose a remote operation."""
        return not self.plain and any(one.tracked() for one in self.values)

    def python(self) -> tuple[bool, Any]:
        """Return what Python has."""
        items = [one.python() for one in self.values]
        return all(known for known, _ in items), tuple(item for _, item in items)

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return bool(self.values)

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        return self.values

    def pairs(self, heap: Heap) -> Content | None:
        """Return its items."""
        return tuple((UNKNOWN, one) for one in self.values)

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        return [(state, self.at(key))]

    def at(self, key: Value) -> Value:
        """Return the item at an index, any item if that is not known."""
        return join(self._at(place) for place in alternatives(key))

    def _at(self, place: Value) -> Value:
        index = index_among(place, len(self.values))
        if index is not None:
            return self.values[index]
        return join(self.values) if self.values else UNKNOWN

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does; it may be a list that never changes."""
        if name == "copy" and arguments.plain:
            return [run.expressions.new_list(self.values, state)]
        if name in CHANGING:
            report_change(f"{name!r}", node, run)
        return Opaque.method(self, name, arguments, node, state, run)

    def is_communication(self) -> bool:
        """Return whether it gives away the ``Communication`` object."""
        return any(one.is_communication() for one in self.values)


CHANGING = {
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "extendleft",
    "insert",
    "pop",
    "popitem",
}
CHANGING |= {"popleft", "remove", "reverse", "rotate", "setdefault", "sort", "update"}
"""Methods that change what they belong to."""


def report_change(what: str, node: cst.CSTNode, run: Walk) -> None:
    """Report a change of what is taken for constant: other code reached it under another name."""
    if not run.attaching.active:
        run.report(
            "MUP030",
            f"{what} changes a container under another name, whose contents were taken for constant",
            node,
            "change it by the name it has in its module, or make a copy: list(...), dict(...)",
        )


@dataclass(frozen=True, slots=True)
class Drawn(TupleValue):
    """What draws its items from others: an iterator such as that of ``zip``, or a view of a dict.

    Attributes:
        sources: Places of the containers it draws from, and what these held when it was made.
        once: Whether going through it leaves nothing: an iterator.
    """

    sources: tuple[tuple[int, Content | Value], ...] = ()
    once: bool = True

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return Drawn(tuple(map(change, self.values)), self.sources, self.once)

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap: of an iterator others may have taken any items."""
        return state.content_of([self]) if self.once else TupleValue.frozen(self, state, seen, run)

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return True if self.once else bool(self.values) if self.is_current(heap) else None

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields; None if what it draws from has changed."""
        return self.values if self.is_current(state.heap) else None

    def is_current(self, heap: Heap) -> bool:
        """Return whether what it draws from is what it was; a wait for a future in it is no change."""
        return all(_alike(content, heap.get(place, UNKNOWN)) for place, content in self.sources)


def _alike(before: Content | Value, now: Content | Value) -> bool:
    """Return whether contents of a container are the same, futures in them aside."""
    if before == now or isinstance(before, Value) or isinstance(now, Value):
        return before == now
    pairs = [
        (one, other) for rows in zip(before, now, strict=False) for one, other in zip(*rows, strict=True)
    ]
    return len(before) == len(now) and all(a == b or (a.holds() and b.holds()) for a, b in pairs)


def drawn(value: Value, given: Sequence[Value], state: State, *, once: bool) -> Value:
    """Return known items as what draws them from these containers."""
    if is_filled(value):
        return replace(value, sources=sources_of(given, state.heap))
    if not isinstance(value, TupleValue):
        return value
    sources: dict[int, Content | Value] = {}
    pending = list(given)
    while pending:
        one = pending.pop()
        place = one.place
        if place is not None and place not in sources:
            sources[place] = state.heap.get(place, UNKNOWN)
            for rows in one.contents(state.heap) if isinstance(one, _Stored) else ():
                pending += (part for _, part in rows if part.place is not None)
        elif isinstance(one, Drawn):
            sources.update(one.sources)
        elif not one.plain:
            pending += one.parts()
    return Drawn(value.values, tuple(sources.items()), once)


@dataclass(frozen=True, slots=True)
class MapValue(Container):
    """A mapping that never changes, as pairs of key and value: a module or class constant.

    Attributes:
        rows: Its items.
        missing: What it has for every other key (``defaultdict``); None if that is an error.
    """

    is_mapping: ClassVar[bool] = True

    rows: Content
    missing: Value | None = None

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        known = tuple(one for row in self.rows for one in row)
        return known if self.missing is None else (*known, self.missing)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        missing = None if self.missing is None else change(self.missing)
        return MapValue(tuple((change(key), change(value)) for key, value in self.rows), missing)

    def python(self) -> tuple[bool, Any]:
        """Return what Python has."""
        rows = [(key.python(), value.python()) for key, value in self.rows]
        known = all(key[0] and value[0] for key, value in rows)
        return known, {key[1]: value[1] for key, value in rows} if known else None

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return bool(self.rows)

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        return tuple(key for key, _ in self.rows)

    def pairs(self, heap: Heap) -> Content | None:
        """Return its items."""
        return self.rows

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        return [(state, item_of(self.rows, key, self.missing))]

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does."""
        looked = _looked_up(name, self.rows, arguments, state)
        if name in CHANGING:
            report_change(f"{name!r}", node, run)
        return Opaque.method(self, name, arguments, node, state, run) if looked is None else looked


RECORDS = "<records>"
"""Local variable that holds which records were unpacked last; no Python name looks like it."""


@dataclass(frozen=True, slots=True)
class Records(Atom):
    """One of several records is what some variables hold together; no value of the source.

    Attributes:
        rows: What each of the records holds.
        names: The variable of each column, "" for other targets; none has been bound since.
    """

    rows: tuple[tuple[Value, ...], ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slot(Atom):
    """The key of an attribute among the contents of an object; no value of the source."""

    name: str


def slots_of(content: Contents) -> dict[str, Value]:
    """Return what the contents of an object have by ``Slot``; nothing if they are not known."""
    return {key.name: value for key, value in rows_of(content) or () if isinstance(key, Slot)}


def is_record(content: Content) -> bool:
    """Return whether contents are the attributes of an object, or empty."""
    return all(isinstance(key, Slot) for key, _ in content)


ANY_ATTRIBUTE = Slot("*")
"""Its value is what any attribute may have become that was set by a name which is not known."""

MAYBE = "?"
"""Before the name of an attribute: some of the executions that are in this state do not have it."""

CONSUMING = {
    "difference",
    "difference_update",
    "extend",
    "extendleft",
    "intersection",
    "intersection_update",
    "isdisjoint",
    "issubset",
    "issuperset",
    "symmetric_difference",
    "symmetric_difference_update",
    "union",
    "update",
}
"""Methods of lists, sets and dicts that go through what they are given."""


def missing_note(key: Value) -> Slot | None:
    """Return the slot that notes that an attribute may be missing; None for keys that are no attributes."""
    match key:
        case Slot(name) if key != ANY_ATTRIBUTE and not name.startswith(MAYBE):
            return Slot(MAYBE + name)
    return None


VIEWS = {"items", "keys", "values"}
"""Methods of dicts that return what shows later changes."""

TAKING = {"pop", "popleft"}
"""Methods of lists that take an item out of them."""

UNORDERED = {"add", "clear", "update"}
"""Methods of sets that do what those of lists do, whatever the order."""


@dataclass(frozen=True, slots=True)
class _Stored(Container, Atom):
    """Family of containers whose contents are in the heap."""

    number: int

    @property
    def place(self) -> int | None:
        """Where its contents are in the heap."""
        return self.number

    def pairs(self, heap: Heap) -> Content | None:
        """Return its items."""
        return rows_of(heap.get(self.number, UNKNOWN))

    def contents(self, heap: Heap) -> tuple[Content, ...]:
        """Return all that it may hold; nothing if that is not known."""
        return variants_of(heap.get(self.number, UNKNOWN))

    def truth(self, heap: Heap) -> bool | None:
        """Return whether it counts as true."""
        return agreed(map(bool, self.contents(heap)))

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does: some run the generators they are given."""
        if name == "sort":
            run.overloading.unfollowed_items("builtins.sorted", [self], node, state)
            run.calls.release(arguments.values, state, node, "'sort' of a list")
            state = run.variables.forget_contents(arguments.values, state)
        if name not in CONSUMING:
            return self.changed(name, arguments, node, state, run)
        if name == "update":
            run.overloading.unfollowed_mappings(arguments.values, node, state)
        return [
            result
            for after, values in run.generators.listed(arguments.values, node, state)
            for result in self.changed(name, replace(arguments, values=values), node, after, run)
        ]

    def changed(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does, generators that it goes through aside."""
        return self.rearranged(arguments.values, node, state, run)

    def followed(
        self, method: Followed | None, arguments: Arguments, state: State, run: Walk
    ) -> Results | None:
        """Return what a method does to contents that are known; None if it is not followed."""
        pairs = self.pairs(state.heap)
        if method is None or pairs is None:
            return None
        return method(_Change(self.number, pairs, arguments, arguments.positional(), state, run))

    def grown(self, key: Value, value: Value, state: State, *, partly: bool = False) -> State:
        """Return the state after one more item has been put into contents that are not known."""
        # An object that is a key may hold a future; that is not followed.
        hidden = state.holds_tracked(key) and not key.tracked()
        more = None if hidden else added_to(state.heap.get(self.number, UNKNOWN), key, value, partly=partly)
        return state.store(self.number, state.content_of([self, key, value]) if more is None else more)

    def rearranged(self, values: Sequence[Value], node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what a method does that may rearrange the contents, and hand some of them out.

        A generator would be lost among what is not known; what its code communicates must not be.
        """
        lost = of_kind((one for value in values for one in alternatives(value)), Generator)
        run.calls.release(lost, state, node, "a container whose contents are not known")
        content = state.content_of([self, *values])
        return [(state.store(self.number, content), content)]


@dataclass(frozen=True, slots=True)
class ListRef(_Stored):
    """A list or set whose items are in the heap."""

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        rows = _frozen_rows(self.number, state, seen, run)
        return if_known(rows, lambda known: TupleValue(tuple(value for _, value in known)))

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        pairs = self.pairs(state.heap)
        return None if pairs is None else tuple(value for _, value in pairs)

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does."""
        # Of an empty list there is none: that raises.
        known = [rows for rows in self.contents(state.heap) if rows]
        found = [TupleValue(tuple(value for _, value in rows)).at(key) for rows in known]
        return [(state, join(found) if found else state.content_of([self]))]

    def changed(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does, generators that it goes through aside."""
        apart = state.apart([self])
        if len(apart) > 1:
            return [result for one in apart for result in self.changed(name, arguments, node, one, run)]
        if name in TAKING and self.pairs(state.heap) == ():
            return run.expressions.missing("IndexError", node, state)
        found = self.followed(LIST_METHODS.get(name), arguments, state, run)
        if found is not None:
            return found
        content = state.heap.get(self.number)
        if is_filled(content) and arguments.plain:
            if name in ("append", "add") and len(arguments.values) == 1:
                return [(self.grown(UNKNOWN, arguments.values[0], state), NONE)]
            if name == "copy" and not arguments.values:
                number = run.allocate()
                return [(state.store(number, content), ListRef(number))]
            left = any_number_of([content]) if name in TAKING else None
            if type(left) is Many:
                return [(state.store(self.number, left), left.one)]
        if name in ("extend", "update") and arguments.plain and len(arguments.values) == 1:
            after = self.lengthened(arguments.values[0], state, run)
            return [(after, NONE)]
        return self.rearranged(arguments.values, node, state, run)

    def lengthened(self, more: Value, state: State, run: Walk) -> State:
        """Return the state after some items have been put behind its own."""
        runs, added = run.copies.runs(self, state), run.copies.runs(more, state)
        several = self.contents(state.heap)
        if len(several) > 1 and added is not None and not of_kind(added, Many):
            behind = tuple((UNKNOWN, item) for item in added)
            return state.store(self.number, Variants(tuple((*rows, *behind) for rows in several)))
        if runs is None or added is None:
            return state.store(self.number, state.content_of([self, more]))
        return state.store(self.number, chained((*runs, *added)))

    def with_item(self, key: Value, value: Value, state: State) -> State | None:
        """Return the state after ``value[key] = ...``."""
        return state.store(self.number, state.content_of([self, value]))

    def without_item(self, key: Value, state: State) -> State | None:
        """Return the state after ``del value[key]``."""
        pairs = self.pairs(state.heap) or ()
        index = index_among(key, len(pairs))
        left = state.content_of([self]) if index is None else (*pairs[:index], *pairs[index + 1 :])
        return state.store(self.number, left)

    def extended(self, operator: str, more: Value, state: State, run: Walk) -> State | None:
        """Return the state after ``value += more``."""
        if operator != "Add":
            return state.store(self.number, state.content_of([self, more]))
        return self.lengthened(more, state, run)


@dataclass(frozen=True, slots=True)
class SetRef(ListRef):
    """A set: its items are known as those of a list are, but not the order in which they come."""

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        if self.items(state, run) is None:
            return state.content_of([self])
        return ListRef.frozen(self, state, seen, run)

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        members = ListRef.items(self, state, run)
        return members if members is not None and len(members) < 2 else None

    def members(self, state: State) -> tuple[Value, ...] | None:
        """Return its items in any order; None if they are not known, or one may be there twice."""
        pairs = self.pairs(state.heap)
        members = tuple(value for _, value in pairs or ())
        told_apart = len(members) < 2 or all(isinstance(m, Coroutine | Future) for m in members)
        known = pairs is not None and told_apart and len(set(members)) == len(members)
        return members if known else None

    def changed(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does, generators that it goes through aside."""
        if name in UNORDERED:
            return ListRef.changed(self, name, arguments, node, state, run)
        return self.rearranged(arguments.values, node, state, run)


@dataclass(frozen=True, slots=True)
class DictRef(_Stored):
    """A dict whose items are in the heap, as pairs of key and value.

    Attributes:
        factory: Name of what makes the values it does not have yet (``defaultdict``), "" without.
    """

    is_mapping: ClassVar[bool] = True

    factory: str = field(default="", repr=False)

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""

        def mapping(rows: Content) -> MapValue:
            after, made = run.making.empty(self.factory, state) if self.factory else (state, None)
            return MapValue(rows, None if made is None else made.frozen(after, seen, run))

        return if_known(_frozen_rows(self.number, state, seen, run), mapping)

    def items(self, state: State, run: Walk) -> tuple[Value, ...] | None:
        """Return what iterating over it yields."""
        pairs = self.pairs(state.heap)
        return None if pairs is None else tuple(key for key, _ in pairs)

    def item(self, key: Value, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what reading an item does: a ``defaultdict`` makes what it does not have."""
        pairs = self.pairs(state.heap)
        if not self.factory:
            return [(state, self._any(state) if pairs is None else item_of(pairs, key))]
        rows, wanted = keyed(pairs), key.as_key()
        if pairs is None or rows is None or wanted is None:
            return [(run.variables.forget_contents([self], state), state.content_of([self]))]
        if wanted in rows:
            return [(state, rows[wanted][1])]
        state, made = run.making.empty(self.factory, state)
        return [(state.store(self.number, (*pairs, (key, made))), made)]

    def changed(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does, generators that it goes through aside."""
        pairs = self.pairs(state.heap)
        found = self.followed(DICT_METHODS.get(name), arguments, state, run)
        if found is None and pairs is not None:
            found = _looked_up(name, pairs, arguments, state)
            if found is not None and name in VIEWS:
                found = [(after, drawn(value, [self], after, once=False)) for after, value in found]
        if found is not None:
            return found
        content = state.heap.get(self.number)
        runs = runs_of(content) if is_filled(content) and not arguments.values else None
        if runs is not None and name in VIEWS:
            return [(state, drawn(_view(name, runs), [self], state, once=False))]
        return self.rearranged(arguments.values, node, state, run)

    def _any(self, state: State) -> Value:
        """Return what is known of any of its values, if the items are not known."""
        runs = runs_of(state.heap.get(self.number)) or (self,)
        return state.content_of(run.one if type(run) is Many else run for run in runs)

    def with_item(self, key: Value, value: Value, state: State) -> State | None:
        """Return the state after ``value[key] = ...``."""
        pairs = self.pairs(state.heap)
        if pairs is None:
            # It may take the place of another one.
            return self.grown(key, value, state, partly=True)
        return state.store(self.number, distinct((*pairs, (key, value)), state))

    def without_item(self, key: Value, state: State) -> State | None:
        """Return the state after ``del value[key]``."""
        rows, wanted = keyed(self.pairs(state.heap)), key.as_key()
        if rows is None or wanted is None:
            return state.store(self.number, state.content_of([self]))
        return state.store(self.number, tuple(row for known, row in rows.items() if known != wanted))

    def extended(self, operator: str, more: Value, state: State, run: Walk) -> State | None:
        """Return the state after ``value |= more``."""
        return state.store(self.number, state.content_of([self, more]))


def _view(name: str, runs: Sequence[Value]) -> Value:
    """Return what a view of a dict yields that loops of unknown length have filled."""
    if name == "keys":
        return keys_of(runs)
    if name == "values":
        return made_of(runs, lambda one: one)
    rows = [
        run.of(TupleValue((run.key, run.one))) if type(run) is Many else TupleValue((UNKNOWN, run))
        for run in runs
    ]
    return made_of(rows, lambda one: one)


def keys_of(runs: Iterable[Value]) -> Value:
    """Return what iterating over a dict yields that loops of unknown length have filled."""
    return made_of([run.of(run.key) if type(run) is Many else UNKNOWN for run in runs], lambda one: one)


def _frozen_rows(number: int, state: State, seen: frozenset[int], run: Walk) -> Contents:
    """Return contents that need no heap; a value if they are not known, or enormous."""
    content = rows_of(state.heap[number])
    if content is None or number in seen:
        return UNKNOWN
    inner = seen | {number}
    rows = tuple((key.frozen(state, inner, run), value.frozen(state, inner, run)) for key, value in content)
    whole = tuple_of(tuple(one for row in rows for one in row))
    return rows if isinstance(whole, TupleValue) else whole


def tuple_of(items: tuple[Value, ...]) -> Value:
    """Return a tuple; one that holds enormously many values, itself or in tuples inside it, is not known."""
    pending: list[Value] = list(items)
    count = 0
    while pending and count <= MAX_ITEMS:
        value = pending.pop()
        count += 1
        pending.extend(value.parts())
    if not pending:
        return TupleValue(items)
    return LOST if any(item.holds() for item in items) else UNKNOWN


def keyed(pairs: Content | None) -> dict[Value, tuple[Value, Value]] | None:
    """Return the items of a dict that got these one after the other, by what tells their keys apart.

    None if that is not known of one of them. As in Python, the first key and the last value stay.
    """
    found: dict[Value, tuple[Value, Value]] = {}
    if pairs is None:
        return None
    for key, value in pairs:
        known = key.as_key()
        if known is None:
            return None
        found[known] = (found[known][0] if known in found else key, value)
    return found


def item_of(pairs: Content, key: Value, default: Value | None = None) -> Value:
    """Return the value of a key, or of any key if it is not known; one that is missing raises an error."""
    rows = keyed(pairs)
    results: list[Value] = []
    for one in alternatives(key):
        wanted = one.as_key()
        if rows is None or wanted is None:
            results += [value for _, value in pairs] + ([default] if default else [])
        elif wanted in rows or default is not None:
            results.append(rows[wanted][1] if wanted in rows else default or UNKNOWN)
    return join(results) if results else UNKNOWN


def distinct(pairs: Content, state: State) -> Contents:
    """Return the items of a dict that got these one after the other; one alone may have any key."""
    rows = keyed(pairs)
    if rows is None:
        return pairs if len(pairs) == 1 else state.content_of([one for row in pairs for one in row])
    return tuple(rows.values())


# Methods, by name: what each does to contents that are known; None if it is not followed.


@dataclass(frozen=True, slots=True)
class _Change:
    """A call of a method of a list or dict.

    Attributes:
        owner: The list or dict, by its place.
        pairs: What it holds.
        arguments: What the method is given.
        given: The arguments without keyword.
        state: The state before.
        run: The walk it is met in.
    """

    owner: int
    pairs: Content
    arguments: Arguments
    given: Sequence[Value]
    state: State
    run: Walk

    @property
    def plain(self) -> bool:
        """Whether all arguments are spelt out."""
        return self.arguments.plain

    def left(self, rows: Content, result: Value = NONE) -> Results:
        """Return what it does: leave these items behind, and return something."""
        return [(self.state.store(self.owner, rows), result)]

    def looked_up(self) -> tuple[dict[Value, tuple[Value, Value]], Value] | None:
        """Return the items of a dict, and the key that is given first; None if they are not known."""
        rows, wanted = keyed(self.pairs), self.given[0].as_key() if self.given and self.plain else None
        return None if rows is None or wanted is None else (rows, wanted)


def _looked_up(name: str, pairs: Content, arguments: Arguments, state: State) -> Results | None:
    """Return what a method does that looks into a mapping; None if it is another."""
    given = arguments.positional()
    if name == "get" and given:
        if not arguments.plain:
            return None
        default = given[1] if len(given) > 1 else NONE
        return [(state, item_of(pairs, given[0], default))]
    if name == "items":
        return [(state, TupleValue(tuple(map(TupleValue, pairs))))]
    if name in ("keys", "values"):
        return [(state, TupleValue(tuple(row[name == "values"] for row in pairs)))]
    return None


def _append(call: _Change) -> Results | None:
    fitting = call.plain and len(call.given) == 1
    return call.left((*call.pairs, (UNKNOWN, call.given[0]))) if fitting else None


def _extend(call: _Change) -> Results | None:
    fitting = call.plain and len(call.given) == 1
    more = call.run.expressions.items(call.given[0], call.state) if fitting else None
    return None if more is None else call.left((*call.pairs, *((UNKNOWN, item) for item in more)))


def _pop(call: _Change) -> Results | None:
    given = call.given if call.plain else [UNKNOWN]
    place = index_among(given[0] if given else Const.of(-1), len(call.pairs))
    if len(given) > 1 or place is None:
        return None
    return call.left((*call.pairs[:place], *call.pairs[place + 1 :]), call.pairs[place][1])


def _copy(call: _Change) -> Results | None:
    items = (value for _, value in call.pairs)
    return [call.run.expressions.new_list(items, call.state)] if call.plain else None


def _clear(call: _Change) -> Results | None:
    return call.left(()) if call.plain else None


def _reverse(call: _Change) -> Results | None:
    return call.left(call.pairs[::-1]) if call.plain else None


def _insert(call: _Change) -> Results | None:
    known, place = call.given[0].python() if call.plain and len(call.given) == 2 else (False, None)
    if not known or not isinstance(place, int):
        return None
    items = list(call.pairs)
    items.insert(place, (UNKNOWN, call.given[1]))
    return call.left(tuple(items))


def _appendleft(call: _Change) -> Results | None:
    fitting = call.plain and len(call.given) == 1
    return call.left(((UNKNOWN, call.given[0]), *call.pairs)) if fitting else None


def _popleft(call: _Change) -> Results | None:
    return call.left(call.pairs[1:], call.pairs[0][1]) if call.pairs and call.plain else None


Followed = Callable[[_Change], "Results | None"]

LIST_METHODS: dict[str, Followed] = {
    "add": _append,
    "append": _append,
    "appendleft": _appendleft,
    "clear": _clear,
    "copy": _copy,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "popleft": _popleft,
    "reverse": _reverse,
    "update": _extend,
}


def _copy_dict(call: _Change) -> Results | None:
    if call.arguments.values:
        return None
    number = call.run.allocate()
    return [(call.state.store(number, call.pairs), DictRef(number))]


def _update(call: _Change) -> Results | None:
    if not call.plain or len(call.given) > 1:
        return None
    more = call.run.library.as_pairs(call.given[0], call.state) if call.given else ()
    named = tuple((Const.of(key), value) for key, value in call.arguments.keywords())
    rows = None if more is None else keyed((*call.pairs, *more, *named))
    return None if rows is None else call.left(tuple(rows.values()))


def _pop_key(call: _Change) -> Results | None:
    looked = call.looked_up()
    if looked is None:
        return None
    rows, wanted = looked
    _, found = rows.pop(wanted, (wanted, call.given[1] if len(call.given) > 1 else UNKNOWN))
    return call.left(tuple(rows.values()), found)


def _setdefault(call: _Change) -> Results | None:
    looked = call.looked_up()
    if looked is None:
        return None
    rows, wanted = looked
    if wanted in rows:
        return [(call.state, rows[wanted][1])]
    value = call.given[1] if len(call.given) > 1 else NONE
    return call.left((*call.pairs, (call.given[0], value)), value)


DICT_METHODS: dict[str, Followed] = {
    "clear": _clear,
    "copy": _copy_dict,
    "pop": _pop_key,
    "setdefault": _setdefault,
    "update": _update,
}
