"""Match an execution with a path, and its steps with the operations of that path.

A path with loops and choices is a regular expression over steps. Each distinct sequence of steps is matched
once, by backtracking that visits every pair of (place in the path, step) at most once, so the time is linear.
Loops take as many iterations as they can, and choices rather something than nothing; where that is not the
only way (a loop inside a loop that does nothing else, one helper with a branch called twice in a row), the
model made of the result still produces the sequences that were seen.

Between two steps there can be several segments of local work: what ends one iteration and what begins the
next cannot be told apart in a log. ``spread`` divides such gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, TypeAlias

from analyzer.calibration.executions import Execution, SiteKey, Step
from analyzer.static.application import LEFT, Operation, Path
from analyzer.static.rounds_in_logs import also_one_by_one, needs_times
from analyzer.static.translate import PathPlan, Place
from mup.events.sites import Site
from mup.lqn import Constant, Distribution, Empirical

if TYPE_CHECKING:
    from analyzer.calibration.reaching import Reaching

__all__ = [
    "Decision",
    "Effort",
    "LoopEntry",
    "Match",
    "Matched",
    "OperationKey",
    "Recognizer",
    "SegmentKey",
    "SegmentSamples",
    "Shape",
    "Span",
    "Unmatched",
    "Waits",
    "body_counts",
    "count_distribution",
    "loop_counts",
    "match",
    "spread",
]

OperationKey = tuple[Place, int]
"""Part of a plan (see ``PathPlan.parts``) and index of the operation in it."""

SegmentKey = tuple[Place, int]
"""Part of a plan and index of the segment in it: segment ``i`` is the work before operation ``i``."""


Span: TypeAlias = tuple[tuple[int, ...] | None, int]
"""The steps the latest of which a gap begins after (None: all before it), and the step it ends before."""


@dataclass(frozen=True, slots=True)
class LoopEntry:
    """One time an execution came to a loop or fan-out.

    Attributes:
        loop: Which operation it is.
        bodies: Number of the body of each iteration or copy, in order; those that did nothing are not seen.
    """

    loop: OperationKey
    bodies: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One time an execution came to a choice.

    Attributes:
        choice: Which operation the choice is.
        body: Number of the body it took.
    """

    choice: OperationKey
    body: int


@dataclass(frozen=True, slots=True)
class Shape:
    """How one sequence of steps runs through a path; shared by all executions that have it.

    Attributes:
        plan: Number of the path.
        steps: Per step the operation it is.
        gaps: Per gap (before the first step, between two, after the last) the segments of local work in
            it, in order; without loops and choices there is exactly one.
        loops: Every entry into a loop.
        choices: Every decision.
        spans: With concurrent tasks, where each gap lies. Empty: gaps lie between neighbours.
        unseen: Gaps that hold the work of tasks that did no step of their own.
        follows: Per gap the last steps of the flow that has begun its task, if it is the first of that: what
            followed them, and showed in no step, is work of this gap. Empty without concurrent tasks.

    Every segment that the execution came by is in exactly one gap, once per visit: so the times of the
    segments add up to those of the execution.
    """

    plan: int
    steps: tuple[OperationKey, ...]
    gaps: tuple[tuple[SegmentKey, ...], ...]
    loops: tuple[LoopEntry, ...]
    choices: tuple[Decision, ...] = ()
    spans: tuple[Span, ...] = ()
    unseen: tuple[int, ...] = ()
    follows: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        # One object per distinct sequence of steps, so this costs nothing.
        assert len(self.gaps) == len(self.steps) + 1  # noqa: S101 - invariant
        assert len(self.spans) in (0, len(self.gaps))  # noqa: S101 - invariant
        assert len(self.follows) == len(self.spans)  # noqa: S101 - invariant


@dataclass(frozen=True, slots=True)
class Match:
    """An execution and the way it took.

    Attributes:
        execution: With a step for every operation; waits that the log does not show have been inserted.
        shape: The way it took.
    """

    execution: Execution
    shape: Shape


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An execution that took no path of the source."""

    execution: Execution
    reason: str


@dataclass(frozen=True, slots=True)
class Matched:
    """The executions of one entry, sorted by path.

    Attributes:
        plans: The paths.
        taken: Per path the executions that took it, in their order.
        unmatched: Those that fit none.
    """

    plans: tuple[PathPlan, ...]
    taken: tuple[list[Match], ...]
    unmatched: list[Unmatched] = field(default_factory=list)

    @property
    def matched(self) -> int:
        """How many executions took a path."""
        return sum(len(found) for found in self.taken)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many executions took each path."""
        return tuple(len(found) for found in self.taken)

    def only(self, wanted: Callable[[Execution], bool]) -> Matched:
        """Return it with those executions alone; what fits no path stays."""
        taken = tuple([one for one in found if wanted(one.execution)] for found in self.taken)
        return Matched(self.plans, taken, self.unmatched)


def match(
    plans: Sequence[PathPlan], executions: Sequence[Execution], *, waits: bool | None = None
) -> Matched:
    """Assign every execution to the path it took.

    Where several paths fit, the one with the fewest loops gets it, then the first.

    Args:
        plans: The paths of one entry.
        executions: Executions of this entry that did not fail.
        waits: Whether the log shows waits; None = it does if it has a CPU clock. (Only foreign logs have
            neither; their waits are taken to begin where the operation before let the flow go on, so that
            waiting is never charged as local work.)
    """
    if waits is None:
        waits = any(e.begin.cpu >= 0 for e in executions)
    programs = _programs([plan.path for plan in plans], waits=waits)
    matched = Matched(tuple(plans), tuple([] for _ in plans))
    alphabet = _Alphabet()
    overlaps = needs_times(plan.path for plan in plans)
    known: dict[str, tuple[Shape | None, tuple[int, ...], str]] = {}
    for execution in executions:
        over = _waits_over(execution) if overlaps else ()
        word = alphabet.word([*_identity(execution), *over])
        found = known.get(word)
        if found is None:
            found = known[word] = _match_sequence(programs, _tokens(execution), over)
        shape, origins, reason = found
        if shape is None:
            matched.unmatched.append(Unmatched(execution, reason))
            continue
        whole = execution if waits else replace(execution, steps=_with_waits(execution, origins))
        matched.taken[shape.plan].append(Match(whole, shape))
    return matched


class Recognizer:
    """Tells which of a few paths executions take, one after the other, while a log grows.

    Args:
        paths: Shapes name them by their number.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._programs = _programs(paths, waits=True)
        self._overlaps = needs_times(paths)
        self._alphabet = _Alphabet()
        self._known: dict[str, tuple[int, tuple[Decision, ...]] | None] = {}

    def taken(self, execution: Execution) -> tuple[int, tuple[Decision, ...]] | None:
        """Return the number of the path an execution took, and its decisions; None if it took no path."""
        tokens = _tokens(execution)
        over = _waits_over(execution) if self._overlaps else ()
        word = self._alphabet.word([*tokens, *over])
        if word not in self._known:
            shape = _match_sequence(self._programs, tokens, over)[0]
            self._known[word] = None if shape is None else (shape.plan, shape.choices)
        return self._known[word]


def loop_counts(matches: Sequence[Match]) -> dict[OperationKey, list[int]]:
    """Return the number of iterations of every entry into each loop that was come to."""
    counts: dict[OperationKey, list[int]] = {}
    for one in matches:
        for entry in one.shape.loops:
            counts.setdefault(entry.loop, []).append(len(entry.bodies))
    return counts


MAX_COUNTS = 500
"""Values kept of the counts of one loop."""


def count_distribution(counts: Sequence[int]) -> Distribution:
    """Return the distribution of a loop's counts: constant, or the values seen with their frequencies."""
    if len(set(counts)) == 1:
        return Constant(float(counts[0]))
    ordered = sorted(counts)
    if len(ordered) > MAX_COUNTS:
        # Each kept value stands for as many of those seen, in order.
        ordered = [ordered[(2 * i + 1) * len(ordered) // (2 * MAX_COUNTS)] for i in range(MAX_COUNTS)]
    return Empirical(tuple(float(n) for n in ordered))


def body_counts(matches: Sequence[Match], plan: PathPlan) -> dict[OperationKey, list[int]]:
    """Return how often each body of each loop and choice of a path was taken, those never come to too."""
    counts: dict[OperationKey, list[int]] = {
        (place, index): [0] * len(inside.bodies)
        for place, part in plan.parts()
        for index, inside in part.inside.items()
    }
    for one in matches:
        for entry in one.shape.loops:
            found = counts[entry.loop]
            for body in entry.bodies:
                found[body] += 1
        for decision in one.shape.choices:
            counts[decision.choice][decision.body] += 1
    return counts


# Sequences of steps.

_Token = tuple[str, SiteKey | None, str | int]
"""Operation, site, and destination of a call or query, or how many steps ago the awaited one was made."""


class _Alphabet:
    """Writes sequences as words: where there are choices, there may be as many words as executions."""

    def __init__(self) -> None:
        self._letters: dict[object, str] = {}

    def word(self, parts: Sequence[object]) -> str:
        """Return the same word for the same parts, and for no others."""
        letters = self._letters
        return "".join([letters.setdefault(part, chr(len(letters))) for part in parts])


def _identity(execution: Execution) -> list[object]:
    """Return what two executions with the same sequence in one log share; cheap to compute."""
    made: dict[int, int] = {}
    parts: list[object] = []
    operations = execution.operations
    for number, step in enumerate(execution.steps):
        op, seq = step.op, step.seq
        # Logs keep one object per site, so its address will do.
        if op == "get":
            parts.append((op, id(step.site), number - made.get(seq, number)))
        elif op in ("call", "query"):
            made[seq] = number
            parts.append((op, id(step.site), operations[seq].dest))
        else:
            parts.append((op, id(step.site)))
    return parts


def _tokens(execution: Execution) -> list[_Token]:
    made: dict[int, int] = {}
    tokens: list[_Token] = []
    for number, step in enumerate(execution.steps):
        detail: str | int = ""
        if step.op == "get":
            detail = number - made.get(step.seq, number)
        elif step.op in ("call", "query"):
            made[step.seq] = number
            detail = execution.operations[step.seq].dest
        tokens.append((step.op, step.site, detail))
    return tokens


class Effort(IntEnum):
    """What is looked for, in this order, each only where nothing before it fits.

    ``ALONE``: a single copy may be what other code of the endpoint does, too. ``HASTY``: the flow may leave
    copies without having waited for any of them, for an exception between the two.
    """

    LEAST = 0
    ALONE = 1
    HASTY = 2


Waits: TypeAlias = tuple[int, int]
"""Which steps, as sets of bits, were waits that were over before a step began, and those over by then."""


def _waits_over(execution: Execution) -> tuple[Waits, ...]:
    """Return for each step of an execution which waits were over."""
    found: list[Waits] = []
    before = 0
    ends: list[tuple[int, int]] = []
    for number, step in enumerate(execution.steps):
        start = step.start.time
        # Invariant: steps are in the order of their starts.
        while ends and ends[0][0] < start:
            before |= 1 << heappop(ends)[1]
        found.append((before, before | sum(1 << wait for end, wait in ends if end == start)))
        # Of a wait that was over when the request was, a log may not show the end.
        if step.op == "get" and step.resume.time > start:
            heappush(ends, (step.resume.time, number))
    return tuple(found)


def _is_sequential(tokens: Sequence[_Token], over: Sequence[Waits]) -> bool:
    """Return whether each step began when the waits before it were over, but for those of ``gather``."""
    waits = 0
    for number, (op, site, _) in enumerate(tokens):
        if op != "get" and waits & ~over[number][1]:
            return False
        waits |= 1 << number if op == "get" and site is not None else 0
    return True


def _match_sequence(
    programs: Sequence[_Program], tokens: Sequence[_Token], over: Sequence[Waits]
) -> tuple[Shape | None, tuple[int, ...], str]:
    """Return the shape of a sequence, for each of its steps the step of the log (or -1 - the awaited one).

    Args:
        programs: Of the paths.
        tokens: The sequence.
        over: For each step the waits that were over; empty where that is not needed.
    """
    furthest = 0
    # How far a sequence fits is worth knowing only where it is the whole of no path.
    for whole in (True, False):
        for effort in Effort:
            for program in programs:
                if not program.gains(effort) or (furthest == len(tokens) and not whole):
                    continue
                found, reached = program.match(tokens, over, effort, whole=whole)
                furthest = max(furthest, reached)
                if found is not None:
                    # Invariant: every step of the log is one operation of the path, in the order of the log.
                    assert [o for o in found[1] if o >= 0] == [*range(len(tokens))]  # noqa: S101
                    return *found, ""
    if not programs:
        return None, (), "the entry has no path"
    if furthest == len(tokens):
        return None, (), f"it ends after {furthest} operations, where every path of the source goes on"
    op, site, detail = tokens[furthest]
    target = f" {detail}" if isinstance(detail, str) and detail else ""
    place = "an unknown place" if site is None else f"{site[0]}, {site[1]}, operation {site[2]}"
    return None, (), f"no path of the source has {op}{target} ({place}) as operation {furthest + 1}"


def _with_waits(execution: Execution, origins: Sequence[int]) -> list[Step]:
    steps: list[Step] = []
    for origin in origins:
        if origin >= 0:
            steps.append(execution.steps[origin])
            continue
        seq = steps[-1 - origin].seq
        start = steps[-1].resume if steps else execution.begin
        known = execution.operations.get(seq)
        finish = known.finish if known is not None else None
        steps.append(Step("get", None, seq, start, finish or start))
    return steps


# Paths as programs.


@dataclass(frozen=True, slots=True)
class _Take:
    """The next step must be this operation."""

    key: OperationKey
    op: str
    site: SiteKey
    target: str
    back: int | None
    """Of a get: how many steps ago the awaited operation was; None if a loop, choice or task lies between."""
    awaited: OperationKey | None = None
    """Of a get: the operation it waits for; None if it is not known."""
    is_awaited: bool | None = None
    """Of a call or query: whether a wait for it follows; None if that tells it from no other."""

    def fits(self, token: _Token) -> bool:
        return self.is_a(token) and (self.back is None or token[2] in (0, self.back))

    def is_a(self, token: _Token) -> bool:
        """Return whether a step is this operation, whatever it waits for."""
        op, site, detail = token
        if op != self.op:
            return False
        if op == "get":
            # Where asyncio waits on behalf of the source (gather), there is no site.
            return site is None or site == self.site
        return site == self.site and detail == self.target


@dataclass(frozen=True, slots=True)
class _Wait:
    """An operation the log does not show."""

    key: OperationKey
    of: OperationKey


@dataclass(frozen=True, slots=True)
class _Work:
    """A segment of local work lies here."""

    key: SegmentKey


@dataclass(frozen=True, slots=True)
class _Enter:
    """A loop begins."""

    loop: OperationKey


@dataclass(frozen=True, slots=True)
class _Iterate:
    """An iteration begins."""

    loop: OperationKey
    body: int


@dataclass(frozen=True, slots=True)
class _Decide:
    """A body of a choice begins."""

    decision: Decision


@dataclass(slots=True)
class _Spawn:
    """A task begins with the next instruction, while the flow goes on behind it.

    Attributes:
        copy: It is a copy of a fan-out, or what begins them.
        source: It is what begins the copies.
        flow: Its work is done by the flow that has begun it.
        counted: It is a copy whose first wait says that no more of them begin.
    """

    task: OperationKey
    behind: int = 0
    copy: bool = False
    source: bool = False
    flow: bool = False
    counted: bool = False


@dataclass(frozen=True, slots=True)
class _Stop:
    """A task has come to its end."""


@dataclass(frozen=True, slots=True)
class _Join:
    """A task, or all copies of a fan-out, must have ended, or (``early``) do nothing more.

    Attributes:
        tasks: What is waited for; several if it is the ``first`` of them.
        early: They need not have ended.
        copies: It is a fan-out, whose copies are waited for.
        first: One that has ended is enough.
    """

    tasks: tuple[OperationKey, ...]
    early: bool
    copies: bool = False
    first: bool = False


@dataclass(slots=True)
class _Split:
    """Go on at any of these, the first that fits.

    Attributes:
        copies: Each begins another copy of a fan-out; there may be none.
        until: Which wait of a copy says that no more of them begin: when it begins, where the flow waits for
            one after the other; when it is over, where each waits by itself; None if nothing says so.
        several: What one copy alone does, other code of the endpoint may have done, too.
    """

    targets: list[int] = field(default_factory=list)
    copies: bool = False
    until: Literal["begun", "over"] | None = None
    several: bool = False


_Instruction: TypeAlias = (
    _Take | _Wait | _Work | _Enter | _Iterate | _Decide | _Spawn | _Stop | _Join | _Split
)
_Trace: TypeAlias = "tuple[_Instruction, _Trace] | None"


def _programs(paths: Sequence[Path], *, waits: bool) -> list[_Program]:
    """Return the paths as programs, in the order in which they are tried."""
    shared = also_one_by_one(paths)
    programs = [_Program(number, path, shared, waits=waits) for number, path in enumerate(paths)]
    begins = {o.site for path in paths for o in path.walk() if o.op == "fan-out"}

    def failed(path: Path) -> int:
        # That a call cannot be made, so that a loop which begins copies leaves them behind, is rare.
        return sum(o.op == "loop" and o.site in begins for o in path.walk())

    return sorted(programs, key=lambda p: (failed(paths[p.number]), p.loops, p.number))


_UNTIL: Mapping[str, Literal["begun", "over"]] = {"flow": "begun", "at once": "over"}
"""By the target of a fan-out: what says that no more copies begin."""


class _Program:
    """One path as a small program that accepts sequences of steps."""

    # Invariant: every circle of the code passes a `_Split` (the head of its loop), and `run` comes to each
    # split at most once per step. So a loop that does nothing ends, and time is linear in places times steps.

    def __init__(self, number: int, path: Path, shared: Collection[Site], *, waits: bool) -> None:
        self.number = number
        self._shared = shared
        self.loops = 0
        self.tasks = 0
        self.hurries = False
        self.doubts = False
        self._waits = waits
        self._is_awaited: bool | None = None
        self._code: list[_Instruction] = []
        self._gaps: dict[tuple[SegmentKey, ...], tuple[SegmentKey, ...]] = {}
        self._reaching: Reaching | None = None
        self._part(path, ())

    def _part(self, path: Path, place: Place) -> None:
        """Add a path, or what is in a loop, choice, task or copy."""
        code = self._code
        code.append(_Work((place, 0)))
        for index, operation in enumerate(path.operations):
            key = (place, index)
            if operation.op == "loop":
                self.loops += 1
                code.append(_Enter(key))
                top = len(code)
                split = _Split()
                code.append(split)
                with self._awaiting(False if operation.target == LEFT else None):
                    for number, body in enumerate(operation.bodies):
                        split.targets.append(len(code))
                        code.append(_Iterate(key, number))
                        self._part(body, (*place, index, number))
                        code.append(_Split([top]))
                split.targets.append(len(code))
            elif operation.op == "choice":
                self._choice(key, operation.bodies)
            elif operation.op == "task":
                self._task(key, operation)
            elif operation.op == "fan-out":
                left = path.operations[index + 1].target == LEFT
                with self._awaiting(True if left else None):
                    self._fan_out(key, operation, raced=path.is_raced(index))
                self.hurries |= operation.target in _UNTIL
                self.doubts |= operation.site in self._shared
            elif operation.op == "race":
                self._race(key, operation)
            elif operation.op == "join" and operation.of is not None:
                copies = operation.of >= 0 and path.operations[operation.of].op == "fan-out"
                early = operation.target in ("early", "first")
                first = operation.target == "first"
                code.append(_Join((_inside(place, operation.of),), early=early, copies=copies, first=first))
            elif operation.op == "get" and not self._waits and operation.of is not None:
                code.append(_Wait(key, _inside(place, operation.of)))
            else:
                site = operation.site
                back = _steps_back(path.operations, index)
                where = (site.file, site.function, site.ordinal)
                awaited = None if operation.of is None else _inside(place, operation.of)
                told = self._is_awaited if operation.op in ("call", "query") else None
                code.append(_Take(key, operation.op, where, operation.target, back, awaited, told))
            code.append(_Work((place, index + 1)))

    @contextmanager
    def _awaiting(self, is_awaited: bool | None) -> Iterator[None]:
        """Add calls of which it is known whether a log shows a wait for them: True, False, or None."""
        outer = self._is_awaited
        # A log without waits does not tell them apart: then all are waited for that may be.
        self._is_awaited = is_awaited if self._waits else None
        yield
        self._is_awaited = outer

    def _choice(self, key: OperationKey, bodies: Sequence[Path]) -> None:
        code = self._code
        split, behind = _Split(), _Split()
        code.append(split)
        # An empty body is the last: where it would do as well, something happened rather than nothing.
        for number, body in enumerate(bodies):
            split.targets.append(len(code))
            code.append(_Decide(Decision(key, number)))
            self._part(body, (*key[0], key[1], number))
            code.append(behind)
        behind.targets.append(len(code))

    def _task(self, key: OperationKey, operation: Operation) -> None:
        self.tasks += 1
        spawn = _Spawn(key)
        self._code.append(spawn)
        self._part(operation.bodies[0], (*key[0], key[1], 0))
        self._code.append(_Stop())
        spawn.behind = len(self._code)

    def _race(self, key: OperationKey, operation: Operation) -> None:
        """Add the tasks of a race, each by its place, and the wait for the first; one that fails is early."""
        tasks = [((*key[0], key[1], number), 0) for number in range(len(operation.bodies))]
        for task, body in zip(tasks, operation.bodies, strict=True):
            self.tasks += 1
            spawn = _Spawn(task)
            self._code.append(spawn)
            self._raced(body, task[0])
            self._code.append(_Stop())
            spawn.behind = len(self._code)
        self._code.append(_Join(tuple(tasks), early=True, first=True))

    def _raced(self, path: Path, place: Place) -> None:
        """Add what one of several does the first of which is waited for, but for its last work.

        That of the first cannot be told from what the flow does next, and counts with it.
        """
        self._part(path, place)
        self._code.pop()

    def _fan_out(self, key: OperationKey, operation: Operation, *, raced: bool) -> None:
        """Add a task that begins the copies: no log shows when they begin, but only their first steps."""
        self.tasks += 1
        self.loops += 1
        code = self._code
        source = _Spawn(key, copy=True, source=True)
        code += [source, _Enter(key)]
        several = operation.site in self._shared
        top, split = len(code), _Split([], copies=True, until=_UNTIL.get(operation.target), several=several)
        code.append(split)
        for number, body in enumerate(operation.bodies):
            split.targets.append(len(code))
            code.append(_Iterate(key, number))
            flow = operation.target == "flow"
            code.append(_Spawn(key, top, copy=True, flow=flow, counted=split.until is not None))
            part = self._raced if raced else self._part
            part(body, (*key[0], key[1], number))
            code.append(_Stop())
        source.behind = len(code)

    def gains(self, effort: Effort) -> bool:
        """Return whether a path may fit with this effort that does not fit with less."""
        return {Effort.LEAST: True, Effort.ALONE: self.doubts, Effort.HASTY: self.hurries}[effort]

    def match(
        self, tokens: Sequence[_Token], over: Sequence[Waits], effort: Effort, *, whole: bool
    ) -> tuple[tuple[Shape, tuple[int, ...]] | None, int]:
        """Return the shape of the steps and the origin of each, or None, and how far they fit.

        Args:
            tokens: The steps.
            over: For each step the waits that were over; empty where that is not needed.
            effort: What may be.
            whole: Only look whether they are the whole path.
        """
        if self.tasks:
            # They need this module.
            from analyzer.calibration.interleaving import interleaved  # noqa: PLC0415
            from analyzer.calibration.reaching import Reaching  # noqa: PLC0415

            self._reaching = self._reaching or Reaching(self._code)
            return interleaved(self.number, self._code, tokens, over, self._reaching, effort, whole=whole)
        if over and not _is_sequential(tokens, over):
            return None, 0
        trace, reached = self.run(tokens)
        return None if trace is None else self.shape(trace), reached

    def run(self, tokens: Sequence[_Token]) -> tuple[list[_Instruction] | None, int]:
        """Return the instructions that accept the steps (None if none do), and how far they came."""
        code, end, size = self._code, len(self._code), len(tokens)
        seen: set[int] = set()
        furthest = 0
        stack: list[tuple[int, int, _Trace]] = [(0, 0, None)]
        while stack:
            at, step, trace = stack.pop()
            while at < end:
                instruction = code[at]
                if isinstance(instruction, _Take):
                    if step == size or not instruction.fits(tokens[step]):
                        break
                    step += 1
                    furthest = max(furthest, step)
                elif isinstance(instruction, _Split):
                    # Only here can ways meet again, so only here is it worth remembering.
                    state = at * (size + 1) + step
                    if state in seen:
                        break
                    seen.add(state)
                    stack += [(target, step, trace) for target in reversed(instruction.targets)]
                    break
                trace = (instruction, trace)
                at += 1
            else:
                if step == size:
                    return _listed(trace), furthest
        return None, furthest

    def shape(self, trace: Sequence[_Instruction]) -> tuple[Shape, tuple[int, ...]]:
        """Return the shape that a trace describes, and the origin of each step."""
        steps: list[OperationKey] = []
        origins: list[int] = []
        gaps: list[list[SegmentKey]] = [[]]
        entries: list[tuple[OperationKey, list[int]]] = []
        decisions: list[Decision] = []
        open_: dict[OperationKey, list[int]] = {}
        latest: dict[OperationKey, int] = {}
        taken = 0
        for instruction in trace:
            if isinstance(instruction, _Work):
                gaps[-1].append(instruction.key)
            elif isinstance(instruction, _Enter):
                open_[instruction.loop] = []
                entries.append((instruction.loop, open_[instruction.loop]))
            elif isinstance(instruction, _Iterate):
                open_[instruction.loop].append(instruction.body)
            elif isinstance(instruction, _Decide):
                decisions.append(instruction.decision)
            elif isinstance(instruction, _Take | _Wait):
                if isinstance(instruction, _Wait):
                    origins.append(-1 - latest[instruction.of])
                else:
                    origins.append(taken)
                    taken += 1
                latest[instruction.key] = len(steps)
                steps.append(instruction.key)
                gaps.append([])
        loops = tuple(LoopEntry(loop, tuple(bodies)) for loop, bodies in entries)
        # The same few gaps come again and again: one object each.
        segments = tuple(self._gaps.setdefault(tuple(g), tuple(g)) for g in gaps)
        return Shape(self.number, tuple(steps), segments, loops, tuple(decisions)), tuple(origins)


_UNEVEN = ("loop", "choice", "task", "fan-out", "join", "race")
"""What may be any number of steps, or none of the flow's own."""


def _steps_back(operations: Sequence[Operation], index: int) -> int | None:
    of = operations[index].of
    if of is None or of < 0 or any(o.op in _UNEVEN for o in operations[of:index]):
        return None
    return index - of


def _inside(place: Place, index: int) -> OperationKey:
    """Return an operation by its index in a part of a plan; < 0 if it is before the task that part is."""
    while index < 0:
        place, index = place[:-2], place[-2] + index
    return place, index


def _listed(trace: _Trace) -> list[_Instruction]:
    found: list[_Instruction] = []
    while trace is not None:
        instruction, trace = trace
        found.append(instruction)
    found.reverse()
    return found


# Gaps that hold several segments.

Measure: TypeAlias = Callable[[Match, int], tuple[float, float]]
"""Demand and delay, in seconds, of a gap (by its number) of a match."""


@dataclass(slots=True)
class SegmentSamples:
    """What the visits of one segment took, in seconds.

    Attributes:
        owner: Number of the match each visit belongs to.
    """

    owner: list[int] = field(default_factory=list)
    demand: list[float] = field(default_factory=list)
    delay: list[float] = field(default_factory=list)


_OWN, _NONE = 1e-7, 1e-4
"""How reluctantly a segment with and without a statement of its own takes a share that is open."""


def spread(matches: Sequence[Match], plan: PathPlan, measure: Measure) -> dict[SegmentKey, SegmentSamples]:
    """Sample every segment of a path, those of loop bodies over all iterations.

    A gap with one segment is a sample of it. Where a gap holds several (the end of one iteration and the
    begin of the next, and at the ends of a loop or choice what is around it), it is divided in proportion to
    the mean times that explain all gaps of the path best (least squares, none below 0); what the gaps leave
    open goes to segments that have statements of their own. The total of every gap is kept, and so is that of
    every execution.

    Args:
        matches: Executions that took the path.
        plan: The path.
        measure: Tells what a gap took.
    """
    gaps = [
        (owner, keys, measure(one, gap))
        for owner, one in enumerate(matches)
        for gap, keys in enumerate(one.shape.gaps)
    ]
    mixed = {keys for _, keys, _ in gaps if len(keys) > 1}
    shares: list[Mapping[tuple[SegmentKey, ...], tuple[float, ...]]] = []
    for which in (0, 1):
        sums: dict[tuple[SegmentKey, ...], tuple[int, float]] = {}
        for _, keys, times in gaps if mixed else ():
            number, total = sums.get(keys, (0, 0.0))
            sums[keys] = (number + 1, total + times[which])
        shares.append(_shares(sums, mixed, plan))
    samples: dict[SegmentKey, SegmentSamples] = {}
    for owner, keys, (demand, delay) in gaps:
        for position, key in enumerate(keys):
            found = samples.get(key)
            if found is None:
                found = samples[key] = SegmentSamples()
            found.owner.append(owner)
            alone = len(keys) == 1
            found.demand.append(demand if alone else demand * shares[0][keys][position])
            found.delay.append(delay if alone else delay * shares[1][keys][position])
    return samples


def _shares(
    sums: Mapping[tuple[SegmentKey, ...], tuple[int, float]],
    mixed: set[tuple[SegmentKey, ...]],
    plan: PathPlan,
) -> dict[tuple[SegmentKey, ...], tuple[float, ...]]:
    """Return the share of each segment in every kind of gap that holds several."""
    if not mixed:
        return {}
    import numpy as np  # noqa: PLC0415  (paths without loops need no numpy)
    from scipy.optimize import nnls  # noqa: PLC0415

    parts = dict(plan.parts())
    keys = sorted({key for gap in sums for key in gap})
    column = {key: number for number, key in enumerate(keys)}
    everything = sum(number for number, _ in sums.values())
    rows = np.zeros((len(sums) + len(keys), len(keys)))
    right = np.zeros(len(rows))
    for row, (gap, (number, total)) in enumerate(sums.items()):
        weight = (number / everything) ** 0.5
        right[row] = weight * total / number
        for key in gap:
            rows[row, column[key]] += weight
    for key, number in column.items():
        place, index = key
        own = parts[place].path.local_lines[index] > 0
        rows[len(sums) + number, number] = (_OWN if own else _NONE) ** 0.5
    means, _ = nnls(rows, right)
    shares = {}
    for gap in mixed:
        total = sum(means[column[key]] for key in gap)
        shares[gap] = tuple(float(means[column[key]] / total) if total > 0 else 1 / len(gap) for key in gap)
        assert abs(sum(shares[gap]) - 1) < 1e-9  # noqa: S101 - invariant: the total of a gap is kept
    return shares
