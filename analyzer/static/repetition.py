"""Result of a loop with an unknown number of iterations, from a walk of one iteration.

An iteration is walked in a state that may be any iteration's first. Its operations then follow those done
before the loop, from index ``base`` on. Ways through the body that communicate and may be followed by
another iteration become the *bodies* of one loop operation. Ways that leave (``break``, ``return``, an
exception, the last test of a ``while``) are the path before the loop, the loop, and what the leaving
iteration did - unless that is what an ordinary iteration does, which then counts as one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeGuard

from analyzer.static.application import Held, Operation, Path
from analyzer.static.state import (
    Content,
    Contents,
    Flow,
    State,
    forget,
    held_in,
    holds_tracked,
    mapped_contents,
)
from analyzer.static.values import (
    GROWING,
    LOST,
    UNKNOWN,
    Closure,
    CopyFuture,
    Coroutine,
    Future,
    Generator,
    Group,
    Many,
    Value,
    any_number_of,
    chained,
    join,
    mapped,
    of_kind,
    rows_of,
    runs_of,
)
from analyzer.static.values.containers import is_record, missing_note
from mup.events.sites import Site

Freeze = Callable[[Value, State], Value]

__all__ = [
    "Freeze",
    "Repetition",
    "behind_runs",
    "carried",
    "first_lines",
    "is_growing",
    "items_left",
    "repetition",
]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A loop seen from the state it was entered in.

    Attributes:
        before: That state.
        loop: The loop as an operation; None if no iteration that another may follow communicates.
        gathered: Contents, behind the loop, of lists and dicts to which iterations add what they have made.
        most: How many iterations there are at most; None if that is not known.
    """

    before: State
    loop: Operation | None
    gathered: Mapping[int, Contents] = field(default_factory=dict)
    most: int | None = None

    @property
    def base(self) -> int:
        """Return the index of the first operation of an iteration."""
        return len(self.before.operations)

    def leave(self, flow: Flow) -> Flow:
        """Return a way out of the loop from inside an iteration (or instead of one)."""
        state = flow.state
        if self.loop is None:
            return replace(flow, state=self._untouched(state, self._with_line(state)))
        tail = _suffix(state, self.base)
        if not self._waits(flow):
            ordinary = {(), *(body.operations for body in self.loop.bodies)}
            traces = _traces(tail, state.local_lines[self.base :])
            if all(any(_begins(taken, whole) for whole in ordinary) for taken, _ in traces):
                return self._cut_short(state, self.end(flow)) if tail else self.end(flow)
        shifted = tuple(
            o if o.of is None or o.of < self.base else replace(o, of=o.of + 1)
            for o in state.operations[self.base :]
        )
        moved = self.with_futures(flow, lambda index: Future(index + 1))
        behind = replace(
            moved.state,
            operations=(*self.before.operations, self.loop, *shifted),
            local_lines=(*self.before.local_lines, *state.local_lines[self.base :]),
            joined=frozenset(i if i < self.base else i + 1 for i in state.joined),
        )
        return replace(moved, state=self._untouched(state, behind))

    def end(self, flow: Flow) -> Flow:
        """Return the way on after complete iterations."""
        state = flow.state
        if self.loop is None:
            return replace(flow, state=self._gathering(self._with_line(state)))
        moved = self.with_futures(flow, lambda index: UNKNOWN if index in state.joined else LOST)
        behind = replace(
            moved.state,
            operations=(*self.before.operations, self.loop),
            local_lines=(*self.before.local_lines, 0),
            joined=frozenset(i for i in state.joined if i < self.base),
        )
        return replace(moved, state=self._gathering(behind))

    def _cut_short(self, inside: State, flow: Flow) -> Flow:
        """Return the way on behind the loop if what its last iteration has made may be missing in a list."""
        state = flow.state
        for number, content in self.gathered.items():
            runs = runs_of(content)
            if inside.heap.get(number) == GROWING and runs is not None:
                last = [replace(run, partly=True) for run in of_kind(runs[-1:], Many)]
                state = state.store(number, chained((*runs[: len(runs) - len(last)], *last)))
        return replace(flow, state=state)

    def _gathering(self, state: State) -> State:
        """Return a state behind the loop with what iterations have gathered."""
        for number, content in self.gathered.items():
            state = state.store(number, content)
        return state

    def _untouched(self, inside: State, state: State) -> State:
        """Return a state behind the loop with what others have gathered than the iteration that leaves it."""
        for number, content in self.gathered.items():
            if inside.heap.get(number) == GROWING:
                state = state.store(number, content)
        return state

    @property
    def waits_for_earlier(self) -> bool:
        """Whether an iteration that may be repeated waits for what was called before the loop."""
        bodies = () if self.loop is None else self.loop.bodies
        return any(
            (o.op in ("get", "join") and o.of is None) or any(index + place < 0 for place in o.outward())
            for body in bodies
            for index, o in enumerate(body.operations)
        )

    def has_tasks_that_wait_for_earlier(self, flows: Iterable[Flow]) -> bool:
        """Whether a task that an iteration has started waits for what was called before the loop."""
        return self.loop is not None and any(
            index + place < self.base <= index
            for flow in flows
            for index, o in enumerate(flow.state.operations)
            for place in o.outward()
        )

    def _with_line(self, state: State) -> State:
        line = self.before.local_lines[-1] or state.local_lines[self.base]
        lines = (*state.local_lines[: self.base], line, *state.local_lines[self.base + 1 :])
        return replace(state, local_lines=lines)

    def _waits(self, flow: Flow) -> bool:
        """Return whether a reply of this iteration may still be waited for later, and be known by then."""
        state = flow.state
        values = [flow.value, *(v for frame in state.frames for v in frame.values())]
        gathered = set(state.joined)
        for number, content in state.heap.items():
            if number in self.gathered and is_growing(content):
                gathered.update(content.futures())
            else:
                values += held_in(content)
        return any(i >= self.base and i not in gathered for v in values for i in v.futures())

    def with_futures(self, flow: Flow, change: Callable[[int], Value]) -> Flow:
        """Return the flow with every future of the iteration replaced, wherever a variable holds it."""

        def one(future: Future) -> Value:
            return future if future.index < self.base else change(future.index)

        return replace(flow, state=flow.state.with_futures(one), value=mapped(flow.value, one))


def repetition(
    before: State,
    repeating: Iterable[State],
    site: Site,
    most: int | None = None,
    holding: tuple[Held, ...] = (),
) -> Repetition:
    """Return the loop that was entered in ``before`` and whose iterations may end in these states.

    Args:
        before: The state before it.
        repeating: How iterations may end that others follow.
        site: Its place.
        most: How many iterations there are at most; None if that is not known.
        holding: What is held around it.
    """
    base = len(before.operations)
    bodies: dict[tuple[Operation, ...], tuple[int, ...]] = {}
    for state in repeating:
        for operations, lines in _traces(_suffix(state, base), state.local_lines[base:]):
            if operations:
                bodies[operations] = first_lines(bodies.get(operations, lines), lines)
    if not bodies:
        return Repetition(before, None, most=most)
    paths = tuple(Path(operations, "return", 0, lines) for operations, lines in bodies.items())
    return Repetition(before, Operation("loop", site, bodies=paths, holding=holding), most=most)


def first_lines(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """Return the lines where local work begins that is in either of two places."""
    return tuple(min(filter(None, pair), default=0) for pair in zip(one, other, strict=True))


def items_left(loop: Repetition, ends: Iterable[tuple[State, Contents]], freeze: Freeze) -> Value:
    """Return what a list or dict holds behind a loop that has filled it: LOST if that is not followed.

    What can be called or named any number of times may be of several kinds. Of all else, every iteration that
    communicates must have added one thing, the same kind of thing each; what it has made may be in it, and
    what was made before the loop must not.

    Args:
        loop: The loop.
        ends: How iterations may end, each with the contents then, which were `GROWING` when it began.
        freeze: Makes a value that needs no heap.
    """
    ends = [(state, _with_own(content, loop.before, state, freeze)) for state, content in ends]
    if not any(_holds_added(content, state) for state, content in ends):
        return UNKNOWN
    found = _one_left_by_each(loop, ends)
    if found != LOST or not all(is_growing(content) for _, content in ends):
        return found
    # What can be used any number of times need not be told apart.
    added = [
        tuple((content.key, _lasting(loop.before, state, one)) for one in content.added)
        for state, content in ends
        if is_growing(content)
    ]
    return any_number_of(added) or LOST


def _with_own(content: Contents, before: State, state: State, freeze: Freeze) -> Contents:
    """Return what an iteration has added; its coroutines own the objects that it has made for them."""

    def own(value: Value) -> Value:
        if value.place is None or value.place in before.heap or not state.holds_tracked(value):
            return value.map(own)
        return freeze(value, state)

    def owning(value: Value) -> Value:
        return value.map(own) if isinstance(value, Coroutine) else value.map(owning)

    if not is_growing(content):
        return content
    return replace(content, added=tuple(map(owning, content.added)))


def _one_left_by_each(loop: Repetition, ends: Iterable[tuple[State, Contents]]) -> Value:
    """Return what iterations have left that have each added the same; LOST if they have not."""
    base, partly = loop.base, False
    bodies = () if loop.loop is None else loop.loop.bodies
    made: list[tuple[Value, Value]] = []
    others: list[tuple[Value, Value]] = []
    for state, content in ends:
        done = _suffix(state, base)
        if not is_growing(content):
            return LOST
        if done and (len(content.added) != 1 or all(done != body.operations for body in bodies)):
            return LOST
        for added in content.added:
            row = (added, content.key)
            if not all(_stands_alone(one, loop.before, state) for one in row):
                return LOST
            if any(index < base for one in row for index in one.futures()):
                return LOST
            change = _as_copy(state, base)
            value, key = (mapped(_lasting(loop.before, state, one), change) for one in row)
            (made if done else others).append((value, key))
        partly = partly or content.partly
    if len(set(made)) > 1:
        return LOST
    items, keys = zip(*made, *others, strict=True)
    return Many(join(items), partly=partly, most=loop.most, key=join(keys))


def behind_runs(before: Contents, left: Value, state: State) -> Contents:
    """Return what a list holds behind a loop, given what it held before and what iterations have added."""
    runs = runs_of(before)
    if before == ():
        return left
    return (
        chained((*runs, left))
        if runs is not None and type(left) is Many
        else forget([before, left], state.heap)
    )


def _begins(taken: Sequence[Operation], whole: Sequence[Operation]) -> bool:
    """Return whether an iteration does what another one does, but for tasks, which may do nothing."""
    if len(taken) == 1 and [o.op for o in whole] == ["task"] and taken[0].op in ("call", "query"):
        # `create_task(comm.call(...))`, which is one task, may end between the two.
        return taken == whole[0].bodies[0].operations[:1]
    return taken == whole[: len(taken)] and all(o.op == "task" for o in whole[len(taken) :])


def is_growing(content: Contents) -> TypeGuard[Many]:
    """Return whether contents are those of an iteration, which were `GROWING` when it began."""
    return type(content) is Many and content.grows


def _holds_added(content: Contents, state: State) -> bool:
    """Return whether an iteration may have added something that holds a future."""
    if is_growing(content):
        return any(map(state.holds_tracked, (*content.added, content.key)))
    return forget([content], state.heap).tracked()


def _as_copy(state: State, base: int) -> Callable[[Future], Value]:
    """Return what becomes, behind a loop, of futures that an iteration has made and put aside."""

    def change(future: Future) -> Value:
        return UNKNOWN if future.index in state.joined else CopyFuture(Future(base), future.index - base)

    return change


def _stands_alone(value: Value, before: State, after: State) -> bool:
    """Return whether a value needs nothing that an iteration has made but futures, and what is unknown."""
    if isinstance(value, Generator | Group) or (value.place is not None and value.place not in before.heap):
        return not after.holds_tracked(value)
    return all(_stands_alone(part, before, after) for part in value.parts())


def carried(start: State, ends: Iterable[State]) -> State:
    """Return a state every iteration can start in, given one the first can start in.

    A variable that an iteration may leave with a future, or with something that communicates, is lost to
    the next one unless it always holds the same; contents of lists and dicts that change are forgotten, but
    for those that get one thing more in each iteration.
    """
    ends = tuple(ends)
    base = len(start.operations)
    found = start
    for name in sorted({n for end in ends for n in end.frames[-1]}):
        known = start.frames[-1].get(name)
        having = [end for end in ends if name in end.frames[-1]]
        left = [_left_behind(end.frames[-1][name], end, base) for end in having]
        held = any(holds_tracked(value, end.heap) for value, end in zip(left, having, strict=True))
        if all(v == known for v in left):
            continue
        if not held:
            if known is not None and not holds_tracked(known, start.heap):
                # Something the iteration called has set it.
                found = found.bind(name, UNKNOWN)
            continue
        plain = not any(v.place is not None or isinstance(v, Closure) for v in left)
        same = plain and known is None and len(set(left)) == 1
        found = found.bind(name, left[0] if same else LOST)
    found = _carried_outside(found, ends, base)
    for number in _changed(start, ends):
        if _grows(start.heap[number], ends, number):
            found = found.store(number, GROWING)
            continue
        record = _carried_record(start, number, ends, base)
        if record is not None:
            found = found.store(number, record)
            continue
        several = _several(start, number, ends)
        if several is not None:
            found = found.store(number, several)
            continue
        lost = any(place.holds_tracked(_content(place, number, base)) for place in (*ends, start))
        found = found.store(number, LOST if lost else UNKNOWN)
    return found


def _grows(before: Contents, ends: Sequence[State], number: int) -> bool:
    """Return whether a list or dict gets at most one thing, with a future, in each iteration."""
    contents = [end.heap[number] for end in ends]
    if before == GROWING:
        return all(map(is_growing, contents))
    runs = runs_of(before)
    if runs is None or any(key != UNKNOWN for key, _ in rows_of(before) or ()):
        return False
    size = len(runs)
    if any((rows := rows_of(content)) and is_record(rows) for content in contents):
        return False
    known = [found for content in contents if (found := runs_of(content)) is not None]
    if len(known) < len(contents) or any(one[:size] != runs or len(one) > size + 1 for one in known):
        return False
    keys = [[key for key, _ in rows_of(content) or ()] for content in contents]
    added = zip(known, keys, ends, strict=True)
    return any(holds_tracked(v, end.heap) for one, held, end in added for v in (*one[size:], *held))


def _several(start: State, number: int, ends: Sequence[State]) -> Contents | None:
    """Return a list after any number of iterations, if it is known what each item may be; else None."""
    contents = [mapped_contents(end.heap[number], partial(_lasting, start, end)) for end in ends]
    return any_number_of([start.heap[number], *contents])


def _lasting(start: State, end: State, value: Value) -> Value:
    """Return a value of one iteration without what only that iteration has made."""
    if isinstance(value, Generator | Group) or (value.place is not None and value.place not in start.heap):
        return end.content_of([value])
    return value.map(partial(_lasting, start, end))


def _carried_outside(start: State, ends: tuple[State, ...], base: int) -> State:
    """Forget what an iteration changes in functions around: by ``nonlocal``, or consuming a generator."""
    frames = list(start.frames)
    for depth, frame in enumerate(start.frames[:-1]):
        changed = [end for end in ends if end.frames[depth] is not frame]
        for name in sorted({n for end in changed for n in end.frames[depth]}):
            known = frame.get(name)
            left = [(end, end.frames[depth][name]) for end in changed if name in end.frames[depth]]
            if any(value != known for _, value in left):
                value = _forgotten(UNKNOWN if known is None else known, start, left, base)
                frames[depth] = {**frames[depth], name: value}
    return start if frames == list(start.frames) else replace(start, frames=tuple(frames))


def _carried_record(start: State, number: int, ends: tuple[State, ...], base: int) -> Content | None:
    """Return the attributes of an object after any number of iterations; None if it is no known object."""
    content = start.heap[number]
    records = [end.heap[number] for end in ends]
    known = [rows for one in (content, *records) if (rows := rows_of(one)) is not None]
    if len(known) <= len(records) or not all(map(is_record, known)):
        return None
    before = dict(known[0])
    carried: dict[Value, Value] = {}
    for key in dict.fromkeys(key for record in known for key, _ in record):
        left = [(end, dict(r).get(key)) for end, r in zip(ends, known[1:], strict=True)]
        found = [(end, value) for end, value in left if value is not None]
        if key in before and all(value == before[key] for _, value in found):
            carried[key] = before[key]
        else:
            carried[key] = _forgotten(before.get(key, UNKNOWN), start, found, base)
            note = missing_note(key)
            if key not in before and note is not None:
                carried.setdefault(note, UNKNOWN)
    return tuple(carried.items())


def _forgotten(known: Value, start: State, left: Iterable[tuple[State, Value]], base: int) -> Value:
    """Return what is left of a value that iterations change."""
    held = any(holds_tracked(_left_behind(value, end, base), end.heap) for end, value in left)
    return LOST if held or holds_tracked(known, start.heap) else UNKNOWN


def _changed(before: State, ends: Iterable[State]) -> list[int]:
    """Return the lists and dicts whose contents an iteration may have changed."""
    heaps = [end.heap for end in ends]
    return [n for n, content in before.heap.items() if any(heap[n] != content for heap in heaps)]


def _left_behind(value: Value, end: State, base: int) -> Value:
    """Return what a value of one iteration is to the next: an answer that is there is nothing special."""

    def one(future: Future) -> Value:
        if future.index < base:
            return future
        return UNKNOWN if future.index in end.joined else LOST

    return mapped(value, one)


def _content(state: State, number: int, base: int) -> Value:
    content = state.heap[number]
    return join(_left_behind(item, state, base) for item in held_in(content)) if content else UNKNOWN


def _traces(
    operations: tuple[Operation, ...], lines: tuple[int, ...]
) -> list[tuple[tuple[Operation, ...], tuple[int, ...]]]:
    """Return what an iteration does; one that only makes a choice is several, one for each body."""
    if len(operations) == 1 and operations[0].op == "choice":
        return [(body.operations, body.local_lines) for body in operations[0].bodies]
    return [(operations, lines)]


def _suffix(state: State, base: int) -> tuple[Operation, ...]:
    """Return the operations of an iteration, counted from its first; those before it have no index."""
    return tuple(
        o if o.of is None else replace(o, of=o.of - base if o.of >= base else None)
        for o in state.operations[base:]
    )
