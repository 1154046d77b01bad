"""What do two versions of an entry do differently, in words about calls, queries and replies?

Paths are matched first (``mup.lqn.matching``). Of every pair that is not equal it is told, in this order:

1. what is called another number of times, or in another kind of loop;
2. which calls overlapped and do not any more, or the other way round;
3. if neither says it, what comes in another order.

A path that only one of the versions has is told as such, with what it calls more or less often than the
most similar path of the other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final, Literal, Protocol, TypeAlias

from mup.lqn.matching import content_of, distance, match_routes, signature
from mup.lqn.model import Entry
from mup.lqn.path_steps import Route, Step, routes

__all__ = ["NO_SOURCE", "OperationChange", "SourceText", "operation_changes"]

Kind = Literal["calls", "parallelism", "order", "paths"]


class SourceText(Protocol):
    """What the source says at a place, for words that are nearer to it."""

    def loop_name(self, file: str, line: int) -> str:
        """Return what a loop goes through one by one, as in ``for word in words``; "" if that has no name."""

    def statement(self, file: str, line: int) -> str:
        """Return the text of a line without layout; "" if it is not known."""


class _NoSource:
    def loop_name(self, file: str, line: int) -> str:  # noqa: ARG002
        return ""

    def statement(self, file: str, line: int) -> str:  # noqa: ARG002
        return ""


NO_SOURCE: Final[SourceText] = _NoSource()


@dataclass(frozen=True, slots=True)
class OperationChange:
    """One difference in what an entry does.

    Attributes:
        kind: What it is about: how often something is called, what overlaps, what comes first, whole paths.
        text: A phrase that goes on after the name of the entry and a colon.
        file, line: Where it is in the new source; "" and 0 if nothing of it is there.
        function: Qualified name of the function there.
    """

    kind: Kind
    text: str
    file: str = ""
    line: int = 0
    function: str = ""


Around: TypeAlias = tuple[str, ...]
"""The kinds of the loops and choices around a call, outer ones first."""


@dataclass(frozen=True, slots=True)
class _Use:
    """A step that calls, asks or thinks, and what is around it."""

    step: Step
    loops: tuple[Step, ...]
    around: Around

    @property
    def what(self) -> tuple[str, str]:
        return self.step.op, self.step.target


@dataclass(frozen=True, slots=True)
class _Version:
    """One of the two paths that are compared.

    Attributes:
        uses: What it calls, asks and thinks, in order.
        numbered: The same by what is used and how many times before, with its position among ``uses``.
    """

    route: Route
    source: SourceText
    uses: tuple[_Use, ...]
    numbered: dict[tuple[str, str, int], int]


def operation_changes(
    old: Entry, new: Entry, sources: tuple[SourceText, SourceText] = (NO_SOURCE, NO_SOURCE)
) -> list[OperationChange]:
    """Return what an entry does differently, in the order of its paths; [] if it does the same.

    Args:
        old: As it was; with records of its paths, as ``new`` (`mup.lqn.path_steps.routes`).
        new: As it is.
        sources: Of the old and of the new version.
    """
    before, after = routes(old), routes(new)
    pairs, gone, come = match_routes(before, after)
    found: list[list[OperationChange]] = []
    for one, other in pairs:
        if signature(one) != signature(other):
            found.append(_between(_version(one, sources[0]), _version(other, sources[1])))
    counts = Counter(change for changes in found for change in dict.fromkeys(changes))
    several = len(after) > 1
    result = [
        replace(change, text=f"{change.text} (on {count} of {len(after)} paths)")
        if several and count < len(after)
        else change
        for change, count in counts.items()
    ]
    result += [_path_more(route, before, sources) for route in come]
    result += [_path_less(route, after, sources) for route in gone]
    return list(dict.fromkeys(result))


def _version(route: Route, source: SourceText) -> _Version:
    uses = tuple(
        _Use(
            step,
            tuple(s for s in around if s.op in ("loop", "fan-out")),
            tuple(s.op for s in around if s.op in ("loop", "choice")),
        )
        for step, around in route.walk()
        if step.op in _WORDS
    )
    seen: Counter[tuple[str, str]] = Counter()
    numbered: dict[tuple[str, str, int], int] = {}
    for position, use in enumerate(uses):
        seen[use.what] += 1
        numbered[(*use.what, seen[use.what])] = position
    return _Version(route, source, uses, numbered)


def _between(old: _Version, new: _Version) -> list[OperationChange]:
    changes = [*_counts(old, new), *_overlaps(old, new)]
    return changes or [_order(old, new)]


# How often.

_WORDS: Final = {
    "call": ("was called", "was not called", "is called", "is not called any more"),
    "query": ("was asked", "was not asked", "is asked", "is not asked any more"),
    "think": ("was spent", "was not spent", "is spent", "is not spent any more"),
}


def _counts(old: _Version, new: _Version) -> Iterator[OperationChange]:
    before, after = _often(old), _often(new)
    for what in dict.fromkeys((*after, *before)):
        if before.get(what) != after.get(what):
            op, target = what
            was, was_not, is_now, is_not = _WORDS[op]
            then = f"{was} {_times(old, what)}" if what in before else was_not
            now = f"{is_now} {_times(new, what)}" if what in after else is_not
            text = f"{target or 'a think time'} {then}, {now}"
            yield _at("calls", text, _culprit(old, new, what))


def _often(version: _Version) -> dict[tuple[str, str], Counter[Around]]:
    """Return how often everything is used, inside of which loops and choices."""
    found: dict[tuple[str, str], Counter[Around]] = {}
    for use in version.uses:
        found.setdefault(use.what, Counter())[use.around] += 1
    return found


def _times(version: _Version, what: tuple[str, str]) -> str:
    """Return ``once``, ``once per word``, ``twice and once per iteration`` ..."""
    parts: dict[tuple[str, str], int] = {}
    for use in version.uses:
        if use.what == what:
            names = (version.source.loop_name(s.file, s.line) or "iteration" for s in reversed(use.loops))
            manner = "".join(f" per {name}" for name in names)
            sometimes = " in one of the branches" if "choice" in use.around else ""
            parts[manner, sometimes] = parts.get((manner, sometimes), 0) + 1
    return " and ".join(
        {1: "once", 2: "twice"}.get(count, f"{count} times") + manner + sometimes
        for (manner, sometimes), count in sorted(parts.items(), key=lambda part: part[0])
    )


def _culprit(old: _Version, new: _Version, what: tuple[str, str]) -> Step | None:
    """Return the step of the new version that makes the difference; of what is gone, what follows it now."""
    mine = [use for use in new.uses if use.what == what]
    before = [(u.around, old.source.statement(u.step.file, u.step.line)) for u in old.uses if u.what == what]
    after = [(u.around, new.source.statement(u.step.file, u.step.line)) for u in mine]
    more = [use for use, left in zip(mine, _left(after, before), strict=True) if left]
    if mine and len(more) != max(len(mine) - len(before), 0):
        # Lines were rewritten: then those in other loops, or else the last ones, are new.
        plain = _left([around for around, _ in after], [around for around, _ in before])
        more = [use for use, left in zip(mine, plain, strict=True) if left]
    if more:
        return more[0].step
    for tag, first, last, position, _ in _codes(old, new):
        if tag in ("delete", "replace") and any(use.what == what for use in old.uses[first:last]):
            return new.uses[min(position, len(new.uses) - 1)].step if new.uses else None
    return mine[-1].step if mine else None


def _left(items: Sequence[object], known: Sequence[object]) -> list[bool]:
    """Return which of some things are more than there were before, counted from the front."""
    rest = Counter(known)
    left = []
    for item in items:
        left.append(rest[item] <= 0)
        rest[item] -= 1
    return left


def _codes(old: _Version, new: _Version) -> list[tuple[str, int, int, int, int]]:
    before, after = ([(use.what, use.around) for use in version.uses] for version in (old, new))
    return [*SequenceMatcher(None, before, after, autojunk=False).get_opcodes()]


# What overlaps.


def _overlaps(old: _Version, new: _Version) -> Iterator[OperationChange]:
    """Yield which calls that both versions make ran at the same time, or do now."""
    common = [key for key in new.numbered if key in old.numbered and key[0] != "think"]
    before, after = _Overlap(old.route), _Overlap(new.route)
    said: set[str] = set()
    for place, late in enumerate(common):
        for early in common[:place]:
            pairs = [
                [version.uses[version.numbered[key]].step for key in (early, late)] for version in (old, new)
            ]
            was, now = before.together(*pairs[0]), after.together(*pairs[1])
            if was == now:
                continue
            first, second = sorted(pairs[1], key=lambda step: step.index)
            what = (
                f"two calls of {early[1]}"
                if early[:2] == late[:2]
                else f"{_named(first)} and {_named(second)}"
            )
            text = f"{what} were parallel, are sequential" if was else f"{what} were sequential, are parallel"
            if text not in said:
                said.add(text)
                yield _at("parallelism", text, after.end(first, second) if was else second)


def _named(step: Step) -> str:
    return f"the query {step.target}" if step.op == "query" else f"the call of {step.target}"


class _Overlap:
    """Tells what may go on at the same time on a path."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._waits: dict[int, Step] = {}
        for step, _ in route.walk():
            if step.of is not None:
                self._waits.setdefault(step.of, step)

    def together(self, one: Step, other: Step) -> bool:
        """Return whether the later of two calls starts before the earlier one has been waited for."""
        first, second = sorted((one, other), key=lambda step: step.index)
        steps, begin, after = self._elements(first, second)
        if begin == after:
            return steps[begin].op == "race"
        return self._ends(steps, begin) > after

    def end(self, first: Step, second: Step) -> Step:
        """Return where the first of two calls is waited for that the second one comes after."""
        steps, begin, _ = self._elements(first, second)
        element = steps[begin]
        return self._waits.get(element.index, self._waits.get(first.index, first))

    def _elements(self, first: Step, second: Step) -> tuple[tuple[Step, ...], int, int]:
        """Return the steps of the innermost route that both are in, and the positions of what they are in."""
        steps = self._route.steps
        while True:
            begin, after = (_holding(steps, step.index) for step in (first, second))
            if begin != after:
                return steps, begin, after
            inside = [
                body.steps
                for body in steps[begin].bodies
                if body.steps and body.steps[0].index <= first.index <= body.steps[-1].last
            ]
            if not inside:
                return steps, begin, after
            if not any(s[0].index <= second.index <= s[-1].last for s in inside):
                return steps, begin, begin  # two branches of a choice, of which one is taken
            (steps,) = inside

    def _ends(self, steps: tuple[Step, ...], begin: int) -> int:
        """Return the position behind which an element is over."""
        element = steps[begin]
        if element.op not in ("call", "query", "task", "fan-out"):
            return begin
        wait = self._waits.get(element.index)
        if wait is None:
            return len(steps)
        return _holding(steps, wait.index) if wait.index <= steps[-1].last else len(steps)


def _holding(steps: tuple[Step, ...], index: int) -> int:
    """Return the position of the step that has a number, or has it inside."""
    return next(position for position, step in enumerate(steps) if step.index <= index <= step.last)


# What comes first, and what ends how.


def _order(old: _Version, new: _Version) -> OperationChange:
    before, after = ([step for step, _ in version.route.walk()] for version in (old, new))
    keys = [_key(step) for step in before], [_key(step) for step in after]
    for tag, first, _, position, _ in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        step = after[min(position, len(after) - 1)] if after else None
        then = _phrase(before[first]) if first < len(before) else "its end"
        now = _phrase(after[position]) if position < len(after) else "its end"
        if then != now:
            return _at("order", f"comes to {now} where it came to {then}", step)
        return _at("order", "does the same in another order", step)
    if old.route.ends != new.route.ends:
        how = "with an exception" if new.route.ends == "raise" else "without an exception"
        return _at("order", f"a path ends {how} now", after[-1] if after else None)
    return _at("order", "waits for other operations than before", after[-1] if after else None)


def _key(step: Step) -> tuple[str, str, int]:
    return step.op, step.target, 0 if step.of is None else step.of - step.index


def _phrase(step: Step) -> str:
    words = {
        "call": f"the call of {step.target}",
        "query": f"the query {step.target}",
        "get": "a wait",
        "join": "a wait for a task",
        "respond": "the reply",
        "think": "a think time",
        "race": "a wait for the first of several tasks",
    }
    return words.get(step.op, f"a {step.op}")


# Whole paths.


def _path_more(
    route: Route, others: Sequence[Route], sources: tuple[SourceText, SourceText]
) -> OperationChange:
    new = _version(route, sources[1])
    old = _version(_nearest(route, others), sources[0])
    changes = _between(old, new) if signature(old.route) != signature(route) else []
    place = next((change for change in changes if change.line), None)
    counts = [change for change in changes if change.kind == "calls"]
    text = f"a path is new: {_summary(route)}"
    if counts:
        calls = "; ".join(_only_now(what, new) for what in _differing(old, new))
        text = f"a path is new, on which {calls}"
    if place is None:
        return _at("paths", text, route.steps[0] if route.steps else None)
    return OperationChange("paths", text, place.file, place.line, place.function)


def _path_less(
    route: Route, others: Sequence[Route], sources: tuple[SourceText, SourceText]
) -> OperationChange:
    old = _version(route, sources[0])
    new = _version(_nearest(route, others), sources[1])
    counts = _differing(old, new)
    text = f"a path is gone: {_summary(route)}"
    if counts:
        text = f"a path is gone, on which {'; '.join(_only_then(what, old) for what in counts)}"
    return OperationChange("paths", text)


def _nearest(route: Route, others: Sequence[Route]) -> Route:
    """Return the most similar of some paths."""
    content = content_of(route)
    return min(others, key=lambda other: distance(content, content_of(other)))


def _differing(old: _Version, new: _Version) -> list[tuple[str, str]]:
    before, after = _often(old), _often(new)
    return [what for what in dict.fromkeys((*after, *before)) if before.get(what) != after.get(what)]


def _only_now(what: tuple[str, str], new: _Version) -> str:
    op, target = what
    times = _times(new, what)
    return f"{target or 'a think time'} {_WORDS[op][2]} {times or 'never'}"


def _only_then(what: tuple[str, str], old: _Version) -> str:
    op, target = what
    times = _times(old, what)
    return f"{target or 'a think time'} {_WORDS[op][0]} {times or 'never'}"


SHOWN: Final = 4
"""Steps of a path that a summary lists."""


def _summary(route: Route) -> str:
    steps = [_phrase(step) for step, _ in route.walk() if step.op not in ("get", "join")]
    listed = ", ".join(steps[:SHOWN]) + (", ..." if len(steps) > SHOWN else "")
    ending = ", then an exception" if route.ends == "raise" else ""
    return (listed or "no operation") + ending


def _at(kind: Kind, text: str, step: Step | None) -> OperationChange:
    if step is None:
        return OperationChange(kind, text)
    return OperationChange(kind, text, step.file, step.line, step.function)
