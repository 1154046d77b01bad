"""Where is an execution, and when are two executions the same?

A state is what one way through an endpoint has done so far: its operations, and what its variables hold.
States with equal operations are the same path and are merged, so that branches which only compute do not
multiply paths.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from analyzer.static.application import Operation
from analyzer.static.values import (
    LOST,
    UNKNOWN,
    Future,
    Value,
    alternatives,
    join,
    joined_many,
    joined_variants,
    mapped,
    rows_of,
    variants_of,
)
from analyzer.static.values.containers import RECORDS, Drawn, Records, is_record, missing_note

__all__ = [
    "Content",
    "Contents",
    "Failure",
    "Flow",
    "FlowKind",
    "Frame",
    "Heap",
    "Planned",
    "Results",
    "State",
    "forget",
    "grouped",
    "held_in",
    "holds_tracked",
    "join_contents",
    "mapped_contents",
    "merge",
    "merge_flows",
    "planned",
    "united",
    "values_in",
    "with_bound",
]

T = TypeVar("T")

Frame = Mapping[str, Value]
FlowKind = Literal["next", "return", "raise", "break", "continue", "left", "paused"]
"""How code can end.

"left": the consumer of a generator leaves it, for the reason in the value; "paused": a generator waits at a
``yield`` of the value, until it is resumed.
"""

Failure = Literal[
    "call",
    "query",
    "respond",
    "get of call",
    "get of query",
    "local",
    "builtin",
    "timeout",
    "cancelled",
    "group",
]
"""What can fail where code communicates, computes or waits; "respond": a second response, which the framework
refuses; "builtin": local work that the source defines no exception of."""

MAX_CONTENT = 10_000
"""Items of a list or dict that are followed."""

MAX_APART = 100
"""Combinations of what several lists may hold; above, nothing is known of these lists."""

Content = tuple[tuple[Value, Value], ...]
"""Items of a list (keys are UNKNOWN) or dict, or attributes of an object (keys are ``Slot``)."""

Contents = Content | Value
"""The same, or what is left of contents that are not known: `rows_of` tells."""

Heap = Mapping[int, Contents]
"""Contents of lists, dicts and objects by their place."""


@dataclass(frozen=True, slots=True)
class State:
    """One way through the code, at one point.

    Attributes:
        frames: Local variables of the active functions, the innermost last.
        operations: What has been done.
        local_lines: Per segment the line of its first local statement, 0 if it has none yet.
        joined: Operations whose future has been waited for.
        heap: Contents of lists, dicts and objects.
    """

    # Invariants of the states that a block of statements ends in (inside of them, folds and ends of loops
    # renumber operations step by step):
    #
    # - What an operation waits for (`of`) comes before it, and is in `joined`, which has places of operations
    #   only.
    # - There is one line more than there are operations.
    # - Every future, in frames, heap or the value of the flow, has the place of an operation.
    # - Where operations are equal, so are `joined` and the number of frames: such states can be merged.

    frames: tuple[Frame, ...]
    operations: tuple[Operation, ...] = ()
    local_lines: tuple[int, ...] = (0,)
    joined: frozenset[int] = frozenset()
    heap: Heap = field(default_factory=dict)

    def bind(self, name: str, value: Value) -> State:
        """Return the state with a local variable set."""
        return self._within((*self.frames[:-1], with_bound(self.frames[-1], name, value)))

    def unbind(self, name: str) -> State:
        """Return the state without a local variable."""
        if name not in self.frames[-1]:
            return self
        rest = {n: value for n, value in self.frames[-1].items() if n != name}
        return self._within((*self.frames[:-1], rest))

    def enter(self, frame: Frame) -> State:
        """Return the state inside a called function."""
        return self._within((*self.frames, frame))

    def leave(self, depth: int) -> State:
        """Return the state with only the outer ``depth`` frames left."""
        return self if len(self.frames) == depth else self._within(self.frames[:depth])

    def _within(self, frames: tuple[Frame, ...]) -> State:
        # Made so often that the detour through `replace` shows.
        return State(frames, self.operations, self.local_lines, self.joined, self.heap)

    def at_local_work(self, line: int) -> State:
        """Return the state after a local statement."""
        if self.local_lines[-1]:
            return self
        lines = (*self.local_lines[:-1], line)
        return State(self.frames, self.operations, lines, self.joined, self.heap)

    def after(self, operation: Operation) -> State:
        """Return the state after an operation."""
        joined = self.joined if operation.of is None else self.joined | {operation.of}
        operations = (*self.operations, operation)
        return State(self.frames, operations, (*self.local_lines, 0), joined, self.heap)

    def store(self, number: int, content: Contents) -> State:
        """Return the state with the contents of a list or dict set; enormous ones are not known."""
        if len(rows_of(content) or ()) > MAX_CONTENT:
            content = forget([content], self.heap)
        elif not isinstance(content, Value) and any(type(one) is Drawn and one.once for _, one in content):
            # Who goes through it later is not told from who goes through it again.
            content = tuple((k, forget([v], self.heap) if type(v) is Drawn else v) for k, v in content)
        heap = {**self.heap, number: content}
        return State(self.frames, self.operations, self.local_lines, self.joined, heap)

    def with_futures(self, change: Callable[[Future], Value]) -> State:
        """Return the state with every future replaced, wherever a variable or a container holds it."""

        def one(value: Value) -> Value:
            return mapped(value, change)

        frames: tuple[Frame, ...] = tuple({n: one(v) for n, v in frame.items()} for frame in self.frames)
        heap = {n: mapped_contents(c, one, keys=True) for n, c in self.heap.items()}
        return State(frames, self.operations, self.local_lines, self.joined, heap)

    def holds_tracked(self, value: Value) -> bool:
        """Return whether losing sight of a value could lose a remote operation."""
        return holds_tracked(value, self.heap)

    def is_task(self, value: Value) -> bool:
        """Return whether a value is a task that has been started."""
        return isinstance(value, Future) and self.operations[value.index].op == "task"

    def apart(self, values: Iterable[Value]) -> list[State]:
        """Return the state once for all that is in each of these lists, if one of them holds several."""
        states = [self]
        found = {one.place for value in values for one in alternatives(value)}
        for place in sorted(place for place in found if place is not None):
            contents = variants_of(self.heap.get(place, UNKNOWN))
            if len(contents) > 1:
                states = [state.store(place, rows) for state in states for rows in contents]
        return states if len(states) <= MAX_APART else [self]

    def content_of(self, values: Iterable[Value]) -> Value:
        """Return what is known of something taken out of values: that it may be a future, or nothing."""
        return LOST if any(self.holds_tracked(value) for value in values) else UNKNOWN


Results = list[tuple[State, Value]]
"""The states in which an expression ends, each with its value."""


@dataclass(frozen=True, slots=True)
class Flow:
    """How a piece of code ends.

    Attributes:
        value: What it returns or raises.
        line: Line of the ``raise``, 0 otherwise.
    """

    state: State
    kind: FlowKind = "next"
    value: Value = UNKNOWN
    line: int = 0


def with_bound(frame: Frame, name: str, value: Value) -> Frame:
    """Return a frame with a variable set, which therefore holds nothing of a record any more."""
    changed = {**frame, name: value}
    records = frame.get(RECORDS)
    if records is not None and name != RECORDS and (type(records) is not Records or name in records.names):
        del changed[RECORDS]
    return changed


def merge(states: Iterable[State]) -> list[State]:
    """Return one state per sequence of operations and of what is left to be done, in the order they came."""
    states = list(states)
    if len(states) < 2:
        return states  # long paths are not hashed where nothing can be merged
    plans = planned([state.heap for state in states])
    return [
        united(group) for group in grouped(states, zip((s.operations for s in states), plans, strict=True))
    ]


def grouped(items: Iterable[T], keys: Iterable[Hashable]) -> list[list[T]]:
    """Return items of equal keys together, in the order in which the keys came."""
    groups: dict[Hashable, list[T]] = {}
    for item, key in zip(items, keys, strict=True):
        groups.setdefault(key, []).append(item)
    return list(groups.values())


Planned = tuple[tuple[int, int], ...]
"""Lists of what is still to be awaited or called, by their places, and how much there is in each."""

MAX_PLANS = 32
"""Lists that many branches make longer are forgotten after all: each would double the number of states."""


def planned(heaps: Sequence[Heap]) -> Sequence[Planned]:
    """Return what tells heaps apart that must not be joined.

    ``checks.append(self.check(comm))`` in a branch: nothing would be known of a list with one coroutine more
    or less, not even that it holds coroutines.
    """
    first = heaps[0]
    if all(heap is first for heap in heaps):
        return [()] * len(heaps)
    others = [heap for heap in {id(heap): heap for heap in heaps}.values() if heap is not first]
    places = [
        place
        for place, content in first.items()
        if rows_of(content) is not None
        and any(heap.get(place) is not content and _longer(heap, first, place) for heap in others)
    ]
    plans = [
        tuple((place, len(c)) for place in places if (c := rows_of(heap.get(place, ()))) is not None)
        for heap in heaps
    ]
    return plans if len(set(plans)) <= MAX_PLANS else [()] * len(heaps)


def _longer(one: Heap, other: Heap, place: int) -> bool:
    """Return whether a list is longer in one heap than in another, and one has something to be done.

    That is a callable, or an object that communicates.
    """
    match one.get(place), other.get(place):
        case (tuple(mine), tuple(others)) if len(mine) != len(others):
            return any(
                value.to_be_done or (value.place is not None and holds_tracked(value, heap))
                for heap, content in ((one, mine), (other, others))
                for _, value in (() if is_record(content) else content)
            )
    return False


def merge_flows(flows: Iterable[Flow]) -> list[Flow]:
    """Return one flow per sequence of operations and way to end, in the order they came."""
    flows = list(flows)
    if len(flows) < 2:
        return flows
    plans = planned([flow.state.heap for flow in flows])
    keys = ((flow.kind, flow.state.operations, plan) for flow, plan in zip(flows, plans, strict=True))
    return [
        group[0]
        if len(group) == 1
        else Flow(
            united([f.state for f in group]),
            group[0].kind,
            join(f.value for f in group),
            min(f.line for f in group),
        )
        for group in grouped(flows, keys)
    ]


def united(states: Iterable[State]) -> State:
    """Return the one state that may be any of these, which have done the same."""
    states = list(states)
    if len(states) == 1:
        return states[0]
    first = states[0]
    assert all(len(s.frames) == len(first.frames) for s in states)  # noqa: S101 - invariant
    return State(
        frames=tuple(_join_frames([s.frames[i] for s in states]) for i in range(len(first.frames))),
        operations=first.operations,
        local_lines=tuple(
            min((line for line in lines if line), default=0)
            for lines in zip(*(s.local_lines for s in states), strict=True)
        ),
        joined=first.joined,
        heap=_join_heaps([s.heap for s in states]),
    )


def _join_frames(frames: list[Frame]) -> Frame:
    # A name one of them has not bound yet cannot be used there either, so the others decide.
    if all(f is frames[0] for f in frames):
        return frames[0]
    names = dict.fromkeys(name for frame in frames for name in frame)
    joined = {name: join(frame[name] for frame in frames if name in frame) for name in names}
    if RECORDS in names and any(frame.get(RECORDS) != frames[0].get(RECORDS) for frame in frames):
        del joined[RECORDS]  # what only some have unpacked does not hold of all
    return joined


def _join_heaps(heaps: list[Heap]) -> Heap:
    if all(h is heaps[0] for h in heaps):
        return heaps[0]
    joined: dict[int, Contents] = {}
    for heap in heaps:
        for number, content in heap.items():
            if number not in joined or joined[number] == content:
                joined[number] = content
            else:
                joined[number] = join_contents([joined[number], content], {**joined, **heap})
    return joined


def join_contents(contents: Sequence[Contents], heap: Heap) -> Contents:
    """Return contents that may be any of these: item by item if they have the same shape."""
    many = joined_many(contents)
    if many is not None:
        return many
    known = [rows for content in contents if (rows := rows_of(content)) is not None]
    exact = len(known) == len(contents)
    if exact and all(map(is_record, known)):
        return _joined_attributes(known)
    shapes = [tuple(key for key, _ in content) for content in known]
    if not exact or any(shape != shapes[0] for shape in shapes):
        return joined_variants(contents) or forget(contents, heap)
    columns = zip(*known, strict=True)
    return tuple((column[0][0], join(value for _, value in column)) for column in columns)


def _joined_attributes(contents: Sequence[Content]) -> Content:
    """Return attributes that may be any of these.

    One that some of them do not have cannot be used there, so the others decide what it is; that it may be
    missing is noted.
    """
    rows = [dict(content) for content in contents]
    joined = {
        key: join(row[key] for row in rows if key in row) for key in dict.fromkeys(k for r in rows for k in r)
    }
    for key in list(joined):
        note = missing_note(key)
        if note is not None and not all(key in row for row in rows):
            joined.setdefault(note, UNKNOWN)
    return tuple(joined.items())


def mapped_contents(content: Contents, change: Callable[[Value], Value], *, keys: bool = False) -> Contents:
    """Return contents with each value in them replaced, and with ``keys`` each key."""
    if isinstance(content, Value):
        return change(content)
    return tuple((change(key) if keys else key, change(value)) for key, value in content)


def values_in(content: Contents) -> Iterable[Value]:
    """Return the values in contents, or what is left of them."""
    return (content,) if isinstance(content, Value) else (value for _, value in content)


def held_in(content: Contents) -> Iterable[Value]:
    """Return the values in contents and their keys, or what is left of them."""
    return (content,) if isinstance(content, Value) else (one for row in content for one in row)


def holds_tracked(value: Value, heap: Heap) -> bool:
    """Return whether losing sight of a value could lose a remote operation."""
    return _holds_tracked(value, heap, set())


def _holds_tracked(value: Value, heap: Heap, seen: set[int]) -> bool:
    place = value.place
    if place is None:
        if value.atomic:
            return False
        return value.tracked() or any(_holds_tracked(part, heap, seen) for part in value.parts())
    if place in seen:  # a list may contain itself, or another one many times
        return False
    seen.add(place)
    return _tracked_in(heap.get(place, UNKNOWN), heap, seen)


def _tracked_in(content: Contents, heap: Heap, seen: set[int]) -> bool:
    return any(_holds_tracked(one, heap, seen) for one in held_in(content))


def forget(contents: Iterable[Contents], heap: Heap) -> Value:
    """Return what is left of contents that are not known exactly any more."""
    return LOST if any(_tracked_in(content, heap, set()) for content in contents) else UNKNOWN
