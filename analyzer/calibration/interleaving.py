"""Assign the steps of an execution to the concurrent tasks of a path.

The steps of tasks are mixed in a log in whatever order they happened. Each task, and the flow that started
it, is a thread of a small program (see ``analyzer.calibration.matching``); every step must be the next one of
some thread. Of threads at the same place with the same things outstanding only one is tried, and what has
failed once is not tried again: the search is linear unless tasks do the same things at the same call sites
in ways that only show much later. Where a path has many tasks with many ways each, branches that cannot lead
to the end are left out (``analyzer.calibration.reaching``). It gives up after ``MOST_STATES``.

Where the order of steps does not tell the copies of a fan-out apart, the moments at which waits were over do:
a thread goes on when its waits are over, and once one of a copy is, no more copies begin.

Local work: on one event loop a task runs from the moment its last wait is over to its next step. Where
that moment is not known (before its first step), its work begins with the latest step of any task before.
What the flow did just before it started a task, or between that and waiting for it, counts with the first
step after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal, TypeAlias

from analyzer.calibration.matching import (
    Decision,
    Effort,
    LoopEntry,
    OperationKey,
    SegmentKey,
    Shape,
    Span,
    Waits,
    _Decide,
    _Enter,
    _Instruction,
    _Iterate,
    _Join,
    _Spawn,
    _Split,
    _Stop,
    _Take,
    _Token,
    _Wait,
    _Work,
)
from analyzer.calibration.reaching import Labels, Reaching

__all__ = ["interleaved"]

MAX_STATES = 20_000
"""Places tried to tell how far a sequence of steps fits."""
MOST_STATES = 10 * MAX_STATES
"""Places tried before it counts as one that does not fit: what cannot be the whole path shows soon."""

_Name: TypeAlias = tuple[int, ...]
"""Of a thread: () is the flow; a task is named by who started it, where, and how many others go on there."""

MAIN: _Name = ()

OVER = -2
"""Stands for a wait that was over before the next step."""


@dataclass(frozen=True, slots=True)
class _Thread:
    """The flow, or one task.

    Attributes:
        name: Of all threads under way only this one has it.
        at: Its next instruction.
        made: Which step each operation was whose reply may still be waited for, those of the flow that
            started it included.
        tasks: The tasks it may wait for, by the operation that started them.
        fresh: It is a copy that has begun just now, and does the next step, or part of one.
        waited: Of a copy whose first wait says that no more begin, and of its tasks: which step that was, -1
            before it, ``OVER`` once that is over; None of others.
        pending: The waits that are over when it does its next step, as a set of bits.
        beside: Those since its last step with which asyncio waits on its behalf (gather): they may be left.
        either: Sets of waits, of each of which one is over by then: of copies the first of which has failed.
        decided: Where it has decided for something that is no step since the last step of any task, and how
            many steps there were then. No log shows it decide there once more.
    """

    name: _Name
    at: int
    made: tuple[tuple[OperationKey, int], ...] = ()
    tasks: tuple[tuple[OperationKey, _Name], ...] = ()
    decided: tuple[int, tuple[int, ...]] = (0, ())
    fresh: bool = False
    waited: int | None = None
    pending: int = 0
    beside: int = 0
    either: tuple[int, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        decided, waits = (self.decided, self.fresh), (self.waited, self.pending, self.beside, self.either)
        key = (self.name, self.at, self.made, self.tasks, decided, waits)
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:
        return self._hash

    def step_of(self, operation: OperationKey) -> int | None:
        """Return which step an operation was; None if it is not known."""
        return next((step for key, step in reversed(self.made) if key == operation), None)

    def task(self, operation: OperationKey) -> _Name:
        """Return the task that an operation has started last."""
        return next(name for key, name in reversed(self.tasks) if key == operation)


_Threads: TypeAlias = tuple[_Thread, ...]


@dataclass(frozen=True, slots=True)
class _Event:
    """Something a thread came by.

    Attributes:
        thread: Which.
        instruction: What it came by.
        task: The one that started or was waited for; where the first of several was enough, each of these,
            or what has begun them.
    """

    thread: _Name
    instruction: _Instruction
    task: _Name = MAIN


_Trace: TypeAlias = "tuple[_Event, _Trace] | None"
_Position: TypeAlias = tuple[_Threads, int, _Trace]
"""Threads, steps done, and everything on the way."""
_Turn: TypeAlias = tuple[int, tuple[_Instruction, ...]]
"""An instruction that may come next, and those that lead to it."""


def interleaved(
    number: int,
    code: Sequence[_Instruction],
    tokens: Sequence[_Token],
    over: Sequence[Waits],
    reaching: Reaching,
    effort: Effort,
    *,
    whole: bool,
) -> tuple[tuple[Shape, tuple[int, ...]] | None, int]:
    """Return the shape of the steps of a path with tasks, and how far they fit.

    Args:
        number: Of the path.
        code: The path as a program.
        tokens: The steps.
        over: For each step the waits that were over; empty where that is not needed.
        reaching: Of the program.
        effort: What may be.
        whole: Only look whether they are the whole path, which takes less time than how far they fit.

    Returns:
        The shape, with for each step the step of the log (or -1 - the awaited one); None if they do not fit.
    """
    left = reaching.left(tokens)
    furthest = 0
    # The whole path; else how far its beginning is that of the steps; else how far they fit by themselves.
    known = [] if left is None else [_Prospects(reaching, left, must=must) for must in (True, False)]
    for prospects in known[:1] if whole else (*known, None):
        search = _Search(code, tokens, over, prospects, effort, MOST_STATES if whole else MAX_STATES)
        trace = search.run()
        furthest = max(furthest, search.furthest)
        if trace is not None:
            return _shape(number, trace), furthest
        if prospects is not None and not prospects.must and furthest == len(tokens):
            break
    return None, furthest


@dataclass(frozen=True, slots=True)
class _Prospects:
    """Tells which threads cannot do the steps that are left.

    Attributes:
        reaching: Of the program.
        left: See ``Reaching.left``.
        must: Whether what must be done has to be among the steps that are left; else each of these only has
            to be one that some thread may do.
    """

    reaching: Reaching
    left: Sequence[Labels]
    must: bool

    def none(self, threads: _Threads, step: int) -> bool:
        """Return whether the threads cannot come to the end of the path with the steps from here on."""
        reaching, left = self.reaching, self.left[step]
        may = 0
        for thread in threads:
            may |= reaching.may[thread.at]
        if reaching.shown(left) & ~may:
            return True
        if not self.must:
            return False
        flow = threads[0]
        must = reaching.must[flow.at]
        waited = {flow.task(key) for key, _ in flow.tasks if reaching.joins.get(key, 0) & must}
        for thread in threads[1:]:
            must |= reaching.must[thread.at] if thread.name in waited else 0
        return bool(must & ~left)


class _Search:
    """Finds out which thread does each step, depth first."""

    # Invariants of a state (threads, step): the flow is `threads[0]`, for it is never joined; names are
    # distinct; a task stays among the threads until it is joined, so that a join finds it at its end. How a
    # state was reached (its trace) is no part of it: what has failed once fails again, so `seen` may leave it
    # out.

    def __init__(
        self,
        code: Sequence[_Instruction],
        tokens: Sequence[_Token],
        over: Sequence[Waits],
        prospects: _Prospects | None,
        effort: Effort,
        most: int,
    ) -> None:
        self._code = code
        self._tokens = tokens
        self._over = over
        self._prospects = prospects
        self._hasty = effort >= Effort.HASTY
        self._alone = effort >= Effort.ALONE
        self._turns: dict[int, tuple[_Turn, ...]] = {}
        self._most = most
        self._awaited = {
            n - back for n, (op, _, back) in enumerate(tokens) if op == "get" and type(back) is int
        }
        self.furthest = 0

    def run(self) -> list[_Event] | None:
        """Return everything that happens on the way, in order; None if there is no way."""
        seen: set[tuple[int, _Threads]] = set()
        stack: list[_Position] = [((_Thread(MAIN, 0),), 0, None)]
        while stack and len(seen) < self._most:
            threads, step, trace = self._advanced(*stack.pop())
            threads = self._forgetting(threads, step)
            if (step, threads) in seen or (self._prospects and self._prospects.none(threads, step)):
                continue
            seen.add((step, threads))
            self.furthest = max(self.furthest, step)
            if step == len(self._tokens) and threads[0].at == len(self._code):
                return _listed(trace)
            following = [
                *self._copies_joined(threads, step, trace, begun=True),
                *self._steps(threads, step, trace),
                *self._others(threads, step, trace),
                *self._copies_joined(threads, step, trace, begun=False),
                *self._copies_joined(threads, step, trace, begun=True, early=True),
            ]
            stack += reversed(following)
        return None

    def _forgetting(self, threads: _Threads, step: int) -> _Threads:
        """Return threads that know only what makes a difference from a step on: so few differ."""
        if step >= len(self._over):
            return threads
        return tuple(self._at_step(thread, step) for thread in threads)

    def _at_step(self, thread: _Thread, step: int) -> _Thread:
        if thread.waited is None and not (thread.pending or thread.beside or thread.either):
            return thread
        before, by = self._over[step]
        waited = thread.waited
        if waited is not None and waited >= 0 and before >> waited & 1:
            waited = OVER
        either = tuple(one for one in thread.either if not one & by)
        return replace(thread, waited=waited, pending=thread.pending & ~by, either=either)

    def _steps(self, threads: _Threads, step: int, trace: _Trace) -> Iterator[_Position]:
        """Yield what follows if one of the threads does the next step."""
        if step == len(self._tokens):
            return
        token = self._tokens[step]
        tried: set[tuple[object, ...]] = set()
        fresh = any(thread.fresh for thread in threads)
        for index, thread in enumerate(threads):
            if fresh and not thread.fresh:
                continue
            waits = token[0] == "get"
            if self._over and not self._may_go_on(thread, self._over[step][1], waits=waits):
                continue
            waits_of = (thread.waited, thread.pending, thread.beside)
            outline = (thread.at, thread.made, thread.tasks, waits_of)
            if outline in tried:
                continue
            tried.add(outline)
            for at, passed in self._ahead(thread.at):
                take = self._code[at] if at < len(self._code) else None
                if isinstance(take, _Take) and self._fits(take, thread, token, step):
                    made = thread.made
                    if take.op in ("call", "query"):
                        made = (*_without(made, take.key), (take.key, step))
                    elif take.awaited is not None:
                        made = _without(made, take.awaited)
                    waited = step if waits and thread.waited == -1 else thread.waited
                    moved = replace(thread, at=at + 1, made=made, waited=waited, either=())
                    moved = self._waiting(moved, token, step)
                    after = _changed(threads, index, moved)
                    after = tuple(replace(t, fresh=False) if t.fresh else t for t in after)
                    yield after, step + 1, _noted(trace, thread, (*passed, take))

    def _fits(self, take: _Take, thread: _Thread, token: _Token, step: int) -> bool:
        """Return whether a step may be this operation of a thread."""
        told = take.is_awaited
        return _fits(take, thread, token, step) and (told is None or told == (step in self._awaited))

    def _waiting(self, thread: _Thread, token: _Token, step: int) -> _Thread:
        """Return a thread with the waits that have to be over before its next step, having done this one."""
        if not self._over or token[0] != "get":
            return replace(thread, pending=0, beside=0) if thread.pending or thread.beside else thread
        if token[1] is None:
            return replace(thread, beside=thread.beside | 1 << step)
        return replace(thread, pending=thread.pending | 1 << step)

    @staticmethod
    def _may_go_on(thread: _Thread, over: int, *, waits: bool) -> bool:
        """Return whether a thread may do its next step once these waits are over; ``waits``: it is one."""
        return (waits or not thread.pending & ~over) and all(one & over for one in thread.either)

    def _others(self, threads: _Threads, step: int, trace: _Trace) -> Iterator[_Position]:
        """Yield what follows if a thread decides for something that is no step, or a task ends early."""
        fresh = any(thread.fresh for thread in threads)
        for index, thread in enumerate(threads):
            instruction = self._at(thread)
            if fresh and not thread.fresh:
                continue
            if isinstance(instruction, _Split):
                if instruction.until and self._is_over(instruction, thread, threads, step):
                    continue
                before = thread.decided[1] if thread.decided[0] == step else ()
                if thread.at in before:
                    continue
                for at, passed in self._ahead(thread.at):
                    if at == len(self._code) or not isinstance(self._code[at], _Take):
                        moved = replace(thread, at=at, decided=(step, (*before, thread.at)))
                        yield _changed(threads, index, moved), step, _noted(trace, thread, passed)
            elif isinstance(instruction, _Join) and instruction.early and not instruction.copies:
                yield self._joined(threads, index, instruction, step, trace, early=True)

    def _copies_joined(
        self, threads: _Threads, step: int, trace: _Trace, *, begun: bool, early: bool = False
    ) -> Iterator[_Position]:
        """Yield what follows if a flow goes on behind a fan-out of which copies have begun, or none.

        With ``early`` it does not wait for all of them. That is the last resort: where it has waited, all of
        that would count as a delay of its own, beside the wait of the model.
        """
        if any(thread.fresh for thread in threads):
            return
        for index, thread in enumerate(threads):
            join = self._at(thread)
            if isinstance(join, _Join) and join.copies:
                waited = _waited(join, thread, threads)
                copies = [t for t in threads if t.name in waited and self._begin(t) is None]
                ended = [isinstance(self._at(t), _Stop) for t in copies]
                if early:
                    enough = (
                        join.early and not join.first and (self._hasty or not self._is_new(waited, threads))
                    )
                elif join.first:
                    # One that has failed has not come to its end: the last resort.
                    enough = any(ended) if begun else bool(copies) and not any(ended)
                else:
                    enough = bool(copies) is begun and all(ended)
                if enough and (self._alone or not self._is_alone(waited, threads)):
                    yield self._joined(threads, index, join, step, trace, early=early or join.first)

    def _ends(self, thread: _Thread, join: _Join, *, early: bool) -> bool:
        """Return whether a thread that copies are waited for with does nothing behind that."""
        begins = self._until(thread) if early else self._begin(thread)
        return isinstance(self._at(thread), _Stop) or (not join.first and begins is not None)

    def _is_new(self, waited: set[_Name], threads: _Threads) -> bool:
        """Return whether the flow has begun copies, and none of them has waited for anything yet."""
        sources = [t for t in threads if t.name in waited and self._until(t)]
        copies = [t for source in sources for t in _copies_of(source, threads)]
        return bool(copies) and all(t.waited == -1 for t in copies)

    def _is_alone(self, waited: set[_Name], threads: _Threads) -> bool:
        """Return whether a fan-out has one copy, which may be what other code does, too."""
        for source in threads:
            begin = self._begin(source)
            if source.name in waited and begin and begin.several:
                return sum(copy.name[:-2] == source.name for copy in threads) == 1
        return False

    def _begin(self, thread: _Thread) -> _Split | None:
        """Return what a thread does that only begins the copies of a fan-out; None of any other."""
        instruction = self._at(thread)
        return instruction if isinstance(instruction, _Split) and instruction.copies else None

    def _until(self, thread: _Thread) -> Literal["begun", "over"] | None:
        """Return which wait says that a thread begins no more copies; None if nothing does."""
        begin = self._begin(thread)
        return None if begin is None else begin.until

    def _is_over(self, begin: _Split, source: _Thread, threads: _Threads, step: int) -> bool:
        """Return whether no copy of a fan-out does the next step as its first, for one has waited before."""
        waits = {t.waited for t in _copies_of(source, threads)} - {None, -1}
        return bool(waits) if begin.until == "begun" else OVER in waits and step < len(self._over)

    def _ahead(self, at: int) -> tuple[_Turn, ...]:
        """Return the steps, tasks, joins and ends that may come next, each with what comes before it."""
        if at not in self._turns:
            self._turns[at] = tuple(self._found_ahead(at))
        return self._turns[at]

    def _found_ahead(self, start: int) -> Iterator[_Turn]:
        seen: set[int] = set()
        stack: list[_Turn] = [(start, ())]
        while stack:
            at, passed = stack.pop()
            while at not in seen:
                seen.add(at)
                instruction = self._code[at] if at < len(self._code) else None
                if instruction is None or isinstance(instruction, _Take | _Spawn | _Join | _Stop):
                    yield at, passed
                elif isinstance(instruction, _Split):
                    stack += [(target, passed) for target in reversed(instruction.targets)]
                else:
                    at, passed = at + 1, (*passed, instruction)

    def _advanced(self, threads: _Threads, step: int, trace: _Trace) -> _Position:
        """Return the threads where they have to do a step, decide something, or wait for a task."""
        index, again = 0, False
        while index < len(threads) or again:
            if index >= len(threads):
                # A task that has ended meanwhile may be waited for.
                index, again = 0, False
            moved = self._moved(index, threads, step, trace)
            if moved is None:
                index += 1
            else:
                (threads, step, trace), again = moved, True
        return threads, step, trace

    def _moved(self, index: int, threads: _Threads, step: int, trace: _Trace) -> _Position | None:
        """Return what follows if a thread goes on with the only thing it can do, which is no step."""
        thread = threads[index]
        instruction = self._at(thread)
        if instruction is None or isinstance(instruction, _Take | _Stop | _Split):
            return None
        if isinstance(instruction, _Join) and instruction.copies:
            return None
        if isinstance(instruction, _Join):
            waited = _waited(instruction, thread, threads)
            ended = [isinstance(self._at(t), _Stop) for t in threads if t.name in waited]
            enough = any(ended) if instruction.first else all(ended)
            return self._joined(threads, index, instruction, step, trace) if enough else None
        if isinstance(instruction, _Spawn):
            names = {one.name for one in threads}
            name = next(n for i in count() if (n := (*thread.name, thread.at, i)) not in names)
            begun = thread.fresh or (instruction.copy and not instruction.source)
            task = _Thread(name, thread.at + 1, fresh=begun, pending=thread.pending, either=thread.either)
            if not instruction.copy:
                task = replace(task, made=thread.made, tasks=thread.tasks)
            if thread.waited is not None or (instruction.counted and (instruction.flow or self._over)):
                task = replace(task, waited=-1)
            tasks = (*thread.tasks, (instruction.task, name))
            moved = replace(thread, at=instruction.behind, tasks=tasks)
            event = _Event(thread.name, instruction, name)
            return (*_changed(threads, index, moved), task), step, (event, trace)
        moved = replace(thread, at=thread.at + 1)
        return _changed(threads, index, moved), step, _noted(trace, thread, (instruction,))

    def _joined(
        self,
        threads: _Threads,
        index: int,
        join: _Join,
        step: int,
        trace: _Trace,
        *,
        early: bool = False,
    ) -> _Position:
        """Return what follows if a thread waits no more; ``early``: what it waits for may go on, or begin."""
        thread = threads[index]
        ended = _waited(join, thread, threads)
        own = early and any(self._until(t) == "begun" for t in threads if t.name in ended)
        if (join.copies or join.first) and not own:
            # Those that are not waited for go on, but for what would begin more copies.
            ended = {t.name for t in threads if t.name in ended and self._ends(t, join, early=early)}
        waited = thread.waited
        if waited == -1:
            waits = {t.waited for t in threads if t.name in ended} - {None, -1}
            waited = OVER if OVER in waits else min((one for one in waits if one is not None), default=-1)
        pending = thread.pending
        for copy in () if early or join.first else threads:
            pending |= copy.pending if copy.name in ended else 0
        either = thread.either
        if early and join.copies and not join.first and not self._hasty:
            begun = thread.beside
            copies = [t for t in threads if t.name in _waited(join, thread, threads)]
            for copy in copies:
                begun |= (copy.pending | copy.beside) & ~thread.pending
            if begun and all(copy.waited != OVER for copy in copies):
                either = (*either, begun)
        tasks = tuple(pair for pair in thread.tasks if pair[0] not in join.tasks)
        after = replace(thread, at=thread.at + 1, tasks=tasks, waited=waited, pending=pending, either=either)
        moved = _changed(threads, index, after)
        left = tuple(t for t in moved if t.name not in ended)
        names = [thread.task(task) for task in join.tasks] if join.first else sorted(ended)
        for name in names:
            trace = (_Event(thread.name, join, name), trace)
        return left, step, trace

    def _at(self, thread: _Thread) -> _Instruction | None:
        return self._code[thread.at] if thread.at < len(self._code) else None


def _waited(join: _Join, thread: _Thread, threads: _Threads) -> set[_Name]:
    """Return the tasks that a join waits for; those of a fan-out are named after what begins them."""
    tasks = {thread.task(task) for task in join.tasks}
    if not join.copies:
        return tasks
    return {t.name for t in threads if any(t.name[: len(task)] == task for task in tasks)}


def _copies_of(source: _Thread, threads: _Threads) -> Iterator[_Thread]:
    """Yield the copies that a thread has begun, and their tasks."""
    size = len(source.name)
    return (t for t in threads if len(t.name) > size and t.name[:size] == source.name)


def _changed(threads: _Threads, index: int, thread: _Thread) -> _Threads:
    return (*threads[:index], thread, *threads[index + 1 :])


def _noted(trace: _Trace, thread: _Thread, instructions: Iterable[_Instruction]) -> _Trace:
    for instruction in instructions:
        trace = (_Event(thread.name, instruction), trace)
    return trace


def _without(
    made: tuple[tuple[OperationKey, int], ...], operation: OperationKey
) -> tuple[tuple[OperationKey, int], ...]:
    return tuple(pair for pair in made if pair[0] != operation)


def _fits(take: _Take, thread: _Thread, token: _Token, step: int) -> bool:
    if not take.is_a(token):
        return False
    detail = token[2]
    if take.op != "get" or take.awaited is None or detail == 0:
        return True
    made = thread.step_of(take.awaited)
    return made is None or step - made == detail


def _listed(trace: _Trace) -> list[_Event]:
    found: list[_Event] = []
    while trace is not None:
        event, trace = trace
        found.append(event)
    found.reverse()
    return found


@dataclass(slots=True)
class _Cell:
    """A segment of local work until the step of a task tells when it was over."""

    key: SegmentKey
    seen: bool = False


@dataclass(slots=True)
class _Course:
    """What is known of one thread on the way.

    Attributes:
        work: Its local work since its last step.
        after: The steps the latest of which its work began after; None if that is not known.
        follows: Where that is not known, the last steps of the flow that has begun it.
        unseen: It has waited for a task that did no step.
        flow: What it does is done by the flow that has begun it, after whatever that has done before.
        source: It does nothing but begin the copies of a fan-out.
        raced: The tasks of which it has waited for the first, or what has begun them. A log tells which that
            was by the times of their waits alone: its work began after the latest step of any that was over.
    """

    work: list[_Cell]
    after: tuple[int, ...] | None
    follows: tuple[int, ...] = ()
    unseen: bool = False
    flow: bool = False
    source: bool = False
    raced: list[_Name] = field(default_factory=list)

    def began_after(self, courses: Mapping[_Name, _Course]) -> tuple[int, ...] | None:
        """Return the steps the latest of which its work began after; None if that is not known."""
        if self.after is None:
            return None
        raced = [
            course for name, course in courses.items() if any(name[: len(one)] == one for one in self.raced)
        ]
        return (*self.after, *(step for course in raced for step in course.after or ()))

    def seen(self) -> tuple[SegmentKey, ...]:
        """Return the work that no other task's step has shown; it is over now."""
        keys = []
        for cell in self.work:
            if not cell.seen:
                cell.seen = True
                keys.append(cell.key)
        self.work = []
        return tuple(keys)


def _shape(number: int, events: Sequence[_Event]) -> tuple[Shape, tuple[int, ...]]:
    """Return the shape that the events describe, and the origin of each step."""
    courses = {MAIN: _Course([], ())}
    steps: list[OperationKey] = []
    origins: list[int] = []
    gaps: list[tuple[SegmentKey, ...]] = []
    spans: list[Span] = []
    following: list[tuple[int, ...]] = []
    unseen: list[int] = []
    entries: list[tuple[OperationKey, list[int]]] = []
    decisions: list[Decision] = []
    open_: dict[tuple[_Name, OperationKey], list[int]] = {}
    latest: dict[OperationKey, int] = {}
    taken = 0
    for event in events:
        course, instruction = courses[event.thread], event.instruction
        if isinstance(instruction, _Work):
            course.work.append(_Cell(instruction.key))
        elif isinstance(instruction, _Spawn):
            after = () if instruction.source else None
            if event.task in courses:  # another has had its name, and is over
                courses[*event.task, -len(courses)] = courses[event.task]
            follows = course.follows if course.source or course.after is None else course.after
            courses[event.task] = _Course(
                list(course.work), after, follows, flow=instruction.flow, source=instruction.source
            )
        elif isinstance(instruction, _Join):
            ended = courses[event.task]
            if instruction.first:
                course.raced.append(event.task)
            else:
                course.work += ended.work
                ended.work = []
                course.unseen |= ended.unseen or ended.after is None
                course.after = (*(course.after or ()), *(ended.after or ()))
        elif isinstance(instruction, _Enter):
            open_[event.thread, instruction.loop] = []
            entries.append((instruction.loop, open_[event.thread, instruction.loop]))
        elif isinstance(instruction, _Iterate):
            open_[event.thread, instruction.loop].append(instruction.body)
        elif isinstance(instruction, _Decide):
            decisions.append(instruction.decision)
        elif isinstance(instruction, _Take | _Wait):
            if isinstance(instruction, _Wait):
                origins.append(-1 - latest[instruction.of])
            else:
                origins.append(taken)
                taken += 1
            step = len(steps)
            latest[instruction.key] = step
            steps.append(instruction.key)
            gaps.append(course.seen())
            spans.append((None if course.flow else course.began_after(courses), step))
            following.append(course.follows)
            if course.unseen:
                unseen.append(step)
            course.after, course.follows, course.unseen, course.raced = (step,), (), False, []
    # What tasks did last that were not waited for shows in no step of theirs.
    main = courses[MAIN]
    tasks = [course for other, course in courses.items() if other != MAIN and not course.source]
    main.work += [cell for course in tasks for cell in course.work]
    if any(course.unseen or (course.work and not course.after) for course in (main, *tasks)):
        unseen.append(len(steps))
    gaps.append(main.seen())
    spans.append((main.began_after(courses) or (), len(steps)))
    following.append(())
    # Invariant: every segment that a thread came by is in exactly one gap.
    assert sum(map(len, gaps)) == sum(isinstance(e.instruction, _Work) for e in events)  # noqa: S101
    loops = tuple(LoopEntry(loop, tuple(bodies)) for loop, bodies in entries)
    shape = Shape(
        number,
        tuple(steps),
        tuple(gaps),
        loops,
        tuple(decisions),
        tuple(spans),
        tuple(unseen),
        tuple(following),
    )
    return shape, tuple(origins)
