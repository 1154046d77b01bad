"""What iterations of a loop of unknown length leave behind: one of a kind for each of them.

An iteration that is followed by others is walked once. A future that it makes stands for as many as there are
iterations, so it cannot be named by one place in the path: it is that of an operation *in* the loop. Lists of
such futures are all that is followed of them; ``analyzer.static.copies`` says what waiting for them does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeGuard, TypeVar

from analyzer.static.values.futures import Future, _Operating
from analyzer.static.values.value import LOST, UNKNOWN, Opaque, Value, agreed, alternatives, join, of_kind

if TYPE_CHECKING:
    import libcst as cst

    from analyzer.static.arguments import Arguments
    from analyzer.static.state import Content, Contents, Heap, Results, State
    from analyzer.static.walk import Walk

T = TypeVar("T")

Sources: TypeAlias = tuple[tuple[int, int], ...]

__all__ = ["GROWING", "Chained", "CopyFuture", "Many", "Variants", "added_to", "any_number_of", "chained"]
__all__ += [
    "if_known",
    "is_current",
    "is_filled",
    "joined_many",
    "joined_variants",
    "made_of",
    "many_of",
    "rows_of",
]
__all__ += ["runs_of", "sources_of", "variants_of"]

MAX_VARIANTS = 12
"""Contents of different length that a list is known to have; of one with more it is known what is in it."""


@dataclass(frozen=True, slots=True)
class CopyFuture(_Operating):
    """The future of an operation of an iteration of a loop, whichever iteration that is.

    Attributes:
        loop: The loop, by its place in the path.
        inner: Which operation of an iteration.
    """

    loop: Future
    inner: int

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.loop,)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        loop = change(self.loop)
        return CopyFuture(loop, self.inner) if isinstance(loop, Future) else loop

    def futures(self) -> Iterator[int]:
        """Yield the place of the loop."""
        yield self.loop.index

    def with_futures(self, change: Callable[[Future], Value]) -> Value:
        """Return the value with the loop replaced."""
        return self.map(lambda _: change(self.loop))

    def method(self, name: str, arguments: Arguments, node: cst.CSTNode, state: State, run: Walk) -> Results:
        """Return what calling one of its methods does: alone it does not say which iteration's it is."""
        return run.calls.unknown_future(node, state)

    def awaited(self, node: cst.Call | cst.Await, state: State, run: Walk) -> Results:
        """Return what ``await`` of it does."""
        return run.calls.unknown_future(node, state)


@dataclass(frozen=True, slots=True)
class Many(Opaque):
    """Items of unknown number: what each iteration of one loop has left, in a list or on its own.

    Attributes:
        one: What any of them is.
        added: While the loop is walked: what the iteration being walked has added so far.
        partly: Some iterations may have left nothing, or what they left is not among the items any more.
        most: How many there are at most; None if that is not known.
        key: Of a dict: what any key is, or that of what was added, if it may hold a future.
        sources: Of an iterator or view: places of the containers it draws from, and how many runs these had.
    """

    has_methods: ClassVar[bool] = True
    used_up: ClassVar[bool] = True

    one: Value
    added: tuple[Value, ...] = ()
    partly: bool = False
    most: int | None = None
    key: Value = UNKNOWN
    sources: Sources = ()

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return (self.one, *self.added, self.key)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        added = tuple(change(one) for one in self.added)
        return Many(change(self.one), added, self.partly, self.most, change(self.key), self.sources)

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return LOST if self.tracked() else UNKNOWN

    @property
    def known(self) -> bool:
        """Whether it is known of each item what it is."""
        return not self.added and LOST not in (*alternatives(self.one), *alternatives(self.key))

    @property
    def grows(self) -> bool:
        """Whether these are contents of an iteration, which were `GROWING` when it began."""
        return self.one == LOST

    def of(self, item: Value, *, partly: bool = False) -> Many:
        """Return as many of something that is made of each item."""
        return Many(item, (), self.partly or partly, self.most)


@dataclass(frozen=True, slots=True)
class Chained(Opaque):
    """Items of unknown number in several runs, one after the other: ``first + second``.

    Attributes:
        runs: Each a `Many`, as at least one is, or a single item.
        sources: Of an iterator or view: places of the containers it draws from, and how many runs these had.
    """

    has_methods: ClassVar[bool] = True
    used_up: ClassVar[bool] = True

    runs: tuple[Value, ...]
    sources: Sources = ()

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return self.runs

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        return Chained(tuple(change(run) for run in self.runs), self.sources)

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return LOST if self.tracked() else UNKNOWN


GROWING = Many(LOST)
"""Contents when an iteration begins: what earlier ones may have left, and nothing of its own."""


@dataclass(frozen=True, slots=True)
class Variants(Opaque):
    """Contents of a list that has got more items on some ways here than on others.

    Attributes:
        contents: What it may hold, one of each length, the shortest first.
    """

    has_methods: ClassVar[bool] = True

    contents: tuple[Content, ...]

    def parts(self) -> tuple[Value, ...]:
        """Return the values it is made of."""
        return tuple(one for content in self.contents for _, one in content)

    def map(self, change: Callable[[Value], Value]) -> Value:
        """Return the value with each of its parts replaced."""
        changed = (tuple((key, change(one)) for key, one in rows) for rows in self.contents)
        return Variants(tuple(changed))

    def frozen(self, state: State, seen: frozenset[int], run: Walk) -> Value:
        """Return a value that needs no heap."""
        return LOST if state.holds_tracked(self) else UNKNOWN


def variants_of(content: Contents) -> tuple[Content, ...]:
    """Return all that a list may hold; nothing if that is not known."""
    if isinstance(content, Variants):
        return content.contents
    rows = rows_of(content)
    return () if rows is None else (rows,)


def is_filled(content: Contents | None) -> TypeGuard[Many | Chained]:
    """Return whether loops of unknown length have put something into a list or dict."""
    return isinstance(content, Many | Chained)


def rows_of(content: Contents) -> Content | None:
    """Return the items of contents, with their keys; None if they are not known."""
    return None if isinstance(content, Value) else content


def if_known(content: Contents, made: Callable[[Content], T]) -> T | Value:
    """Return what is made of the items of contents; what is left of them if they are not known."""
    return content if isinstance(content, Value) else made(content)


def many_of(content: Contents | None) -> Many | None:
    """Return contents that a loop of unknown length has left, if it is known what each item is; else None."""
    return content if type(content) is Many and content.known else None


def runs_of(content: Contents | None) -> tuple[Value, ...] | None:
    """Return the items of contents, `Many` for as many as a loop has left; None if they are not known."""
    if type(content) is Many:
        return (content,) if content.known else None
    if isinstance(content, Chained):
        return content.runs if all(run.known for run in of_kind(content.runs, Many)) else None
    rows = None if content is None else rows_of(content)
    items = None if rows is None else tuple(item for _, item in rows)
    # An iterator among the items is no run of them.
    return None if items is None or of_kind(items, Many, Chained) else items


def chained(runs: Iterable[Value]) -> Contents:
    """Return contents of which these are the runs."""
    found = tuple(runs)
    if not of_kind(found, Many):
        return tuple((UNKNOWN, item) for item in found)
    return found[0] if len(found) == 1 else Chained(found)


def sources_of(values: Iterable[Value], heap: Heap) -> Sources:
    """Return what an iterator or view draws from that is made of these, and how much it has now."""
    found: dict[int, int] = {}
    for value in values:
        if is_filled(value):
            found.update(value.sources)
        elif value.place is not None:
            found[value.place] = len(runs_of(heap.get(value.place)) or ())
    return tuple(found.items())


def is_current(value: Many | Chained, heap: Heap) -> bool:
    """Return whether what an iterator or view draws from has as much as it had."""
    return all(len(runs_of(heap.get(place)) or ()) == size for place, size in value.sources)


def made_of(runs: Iterable[Value], change: Callable[[Value], Value], *, partly: bool = False) -> Value:
    """Return as many of something that is made of each item of some runs, one of them a `Many` at least."""
    made = chained(
        run.of(change(run.one), partly=partly) if type(run) is Many else change(run) for run in runs
    )
    return made if isinstance(made, Value) else LOST


def added_to(content: Contents, key: Value, value: Value, *, partly: bool = False) -> Contents | None:
    """Return contents with one more item; None if these are contents of which nothing is known.

    Args:
        content: The contents before.
        key: Of the item; UNKNOWN in a list.
        value: The item.
        partly: It may take the place of another one.
    """
    if type(content) is Many and content.grows:
        held = key if key.tracked() else UNKNOWN
        return None if content.added else Many(LOST, (value,), content.partly or partly, key=held)
    longer = [(*rows, (key, value)) for rows in variants_of(content)]
    if len(longer) > 1:
        return None if partly else Variants(tuple(longer))
    if longer:
        return longer[0]
    runs = runs_of(content)
    if runs is None or key.tracked() or (partly and len(of_kind(runs, Many)) < len(runs)):
        return None
    if partly:
        runs = tuple(replace(run, partly=True) for run in of_kind(runs, Many))
    return chained((*runs, value))


def joined_many(contents: Iterable[Contents]) -> Many | Chained | None:
    """Return items that may be any of these, if they differ only in whether one was added; else None."""
    given = list(contents)
    chains = of_kind(given, Chained)
    if chains and len(chains) == len(given) and len({len(one.runs) for one in chains}) == 1:
        columns = list(zip(*(one.runs for one in chains), strict=True))
        runs = [column[0] if len(set(column)) == 1 else joined_many(column) for column in columns]
        known = tuple(run for run in runs if run is not None)
        return Chained(known) if len(known) == len(runs) else None
    many = of_kind(given, Many)
    added = {(one.added, one.key) for one in many if one.added}
    if len(many) < len(given) or len({one.one for one in many}) != 1 or len(added) > 1:
        return None
    if not added and len({one.key for one in many}) > 1:
        return None
    whole = all(bool(one.added) is bool(added) and not one.partly for one in many)
    most = agreed(one.most for one in many)
    items, key = added.pop() if added else ((), many[0].key)
    return Many(many[0].one, items, partly=not whole, most=most, key=key)


def _is_known(item: Value) -> bool:
    """Return whether it is known what an item of a list is, and it can be used any number of times."""
    known = LOST not in alternatives(item) and not any(one.is_unknown for one in alternatives(item))
    lasts = not any(True for _ in item.futures()) and _lasts(item)
    return known and lasts and all(map(_tells, alternatives(item)))


def _lasts(value: Value) -> bool:
    """Return whether nothing in a value is used up by going through it, or waiting for it."""
    return not value.used_up and all(map(_lasts, value.parts()))


def _tells(value: Value) -> bool:
    """Return whether a value may decide what is communicated: a text, or what can do so itself, is in it."""
    does = value.runs_source() or value.tracked() or value.place is not None
    return does or value.text is not None or any(map(_tells, value.parts()))


def any_number_of(contents: Iterable[Contents]) -> Many | None:
    """Return contents of a list that may be any of these, or longer ones; None if an item is not known."""
    items: list[Value] = []
    for content in contents:
        known, runs = variants_of(content), runs_of(content)
        if not known and runs is None:
            return None
        keys = [key for rows in known for key, _ in rows] + [run.key for run in of_kind(runs or (), Many)]
        if any(key != UNKNOWN for key in keys):
            return None
        items += [one for rows in known for _, one in rows]
        items += [run.one if type(run) is Many else run for run in (() if known else runs or ())]
    return Many(join(items), partly=True) if items and all(map(_is_known, items)) else None


def joined_variants(contents: Sequence[Contents]) -> Contents | None:
    """Return contents of a list of known items that may be any of these; None if they are something else."""
    if of_kind(contents, Many, Chained):
        return any_number_of(contents)
    by_length: dict[int, Content] = {}
    for content in contents:
        found = variants_of(content)
        if not found:
            return None
        for rows in found:
            other = by_length.get(len(rows), rows)
            by_length[len(rows)] = tuple(
                (key, join([one, more])) for (key, one), (_, more) in zip(rows, other, strict=True)
            )
    found = tuple(by_length[length] for length in sorted(by_length))
    items = [row for rows in found for row in rows]
    if not all(key == UNKNOWN and _is_known(one) for key, one in items):
        return None
    return Variants(found) if len(found) <= MAX_VARIANTS else any_number_of(found)
