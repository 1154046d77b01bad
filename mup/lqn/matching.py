"""Which path, call and activity of a model is which of another version of it?

Activities are named after lines of the source, so names say little: a comment inserted at the top moves all
of them. What stays is what a path does. Two paths are the same one if they do the same in the same order,
and among several such the first is the first. Of those that are left, the most similar ones are taken for
versions of each other, and their steps are aligned: the longest runs of equal operations stay what they
were.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TypeVar

from mup.lqn.model import Entry, LoadDependence, Model, Precedence, Setup, Task
from mup.lqn.path_steps import Route, Step, chooser, routes, stable_names
from mup.lqn.refs import WorkNames

__all__ = ["aligned", "content_of", "distance", "in_names_of", "match_routes", "signature"]

Signature = tuple[object, ...]
Works = TypeVar("Works", LoadDependence | None, Setup | None)


def signature(route: Route) -> Signature:
    """Return what a path does: operations, targets and what is waited for; not where they are."""
    steps = tuple(
        (s.op, s.target, None if s.of is None else s.of - s.index, tuple(map(signature, s.bodies)))
        for s in route.steps
    )
    return (steps, route.ends)


def match_routes(
    old: Sequence[Route], new: Sequence[Route]
) -> tuple[list[tuple[Route, Route]], list[Route], list[Route]]:
    """Return the pairs of routes that are versions of each other, what is only in the old, only in the new.

    Pairs are in the order of the new; equal ones before similar ones.
    """
    known: dict[Signature, deque[int]] = {}
    for index, route in enumerate(old):
        known.setdefault(signature(route), deque()).append(index)
    pairs: dict[int, int] = {}
    for index, route in enumerate(new):
        same = known.get(signature(route))
        if same:
            pairs[index] = same.popleft()
    taken = set(pairs.values())
    gone = [i for i in range(len(old)) if i not in taken]
    come = [i for i in range(len(new)) if i not in pairs]
    contents = {False: [content_of(r) for r in old], True: [content_of(r) for r in new]}
    distances = sorted(
        (distance(contents[False][i], contents[True][j]), abs(i - j), i, j) for i in gone for j in come
    )
    for *_, i, j in distances:
        if i not in taken and j not in pairs:
            taken.add(i)
            pairs[j] = i
    assert len(taken) == len(pairs)  # noqa: S101 - invariant: a route has one counterpart at most
    return (
        [(old[pairs[j]], new[j]) for j in sorted(pairs)],
        [old[i] for i in gone if i not in taken],
        [new[j] for j in come if j not in pairs],
    )


Content = Counter[tuple[str, str, int]]


def content_of(route: Route) -> Content:
    """Return how often a path does what, with how much around it; waits are for what they wait for."""
    targets = {step.index: step.target for step, _ in route.walk()}
    return Counter(
        (step.op, step.target if step.of is None else targets.get(step.of, ""), len(around))
        for step, around in route.walk()
    )


def distance(one: Content, other: Content) -> int:
    """Return how many operations only one of two paths has."""
    return (one - other).total() + (other - one).total()


def aligned(old: Sequence[Step], new: Sequence[Step]) -> Iterator[tuple[int, int]]:
    """Yield the positions of steps that are versions of each other, in order."""
    before, after = ([(s.op, s.target) for s in steps] for steps in (old, new))
    for i, j, length in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        yield from ((i + k, j + k) for k in range(length))


def in_names_of(old: Model, new: Model) -> tuple[Task, ...]:
    """Return the tasks of ``new`` with activities, and exchanges of the network, named as in ``old``.

    Only where both models know what their entries were translated from; all else keeps its name. What has
    no counterpart does, too, unless something of ``old`` has that name.
    """
    tasks = {task.name: {entry.name: entry for entry in task.entries} for task in old.tasks}
    renamed: dict[tuple[str, str], _Renaming] = {}
    exchanges: dict[str, str] = {}
    for task in new.tasks:
        for entry in task.entries:
            before = tasks.get(task.name, {}).get(entry.name)
            if before is not None and before.paths and entry.paths:
                made = _Renaming(before, entry)
                renamed[task.name, entry.name] = made
                exchanges |= made.exchanges
    networks = {task.name for task in new.tasks if task.role == "network"}
    known = {name for network in networks for name in tasks.get(network, {})}
    every = [entry.name for task in new.tasks if task.name in networks for entry in task.entries]
    used: set[str] = set().union(*(made.used for made in renamed.values()))
    exchanges |= {name: name for name in every if name in known - used and name not in exchanges}
    exchanges = _complete(exchanges, every, known) if renamed else {}
    if not any(made.changes for made in renamed.values()) and all(a == b for a, b in exchanges.items()):
        return new.tasks
    return tuple(_with_names(task, renamed, exchanges, networks) for task in new.tasks)


def _complete(names: Mapping[str, str], every: Sequence[str], known: set[str]) -> dict[str, str]:
    """Return a renaming with all names: what has no counterpart must not take the name of something old."""
    used = set(names.values())
    result = dict(names)
    for name in every:
        if name not in result:
            free = name
            while free in used or free in known:
                free += NEW
            used.add(free)
            result[name] = free
    return result


NEW = " (new)"


class _Renaming:
    """The names that the activities of an entry had before.

    Attributes:
        names: Old name, by today's.
        exchanges: The same for the entries of the network that it uses.
        used: These entries, with those that it did not use before.
        changes: Whether any of these differ.
    """

    def __init__(self, old: Entry, new: Entry) -> None:
        self._old, self._new = old, new
        self.exchanges: dict[str, str] = {}
        self.used = {step.exchange for route in routes(new) for step, _ in route.walk() if step.exchange}
        found: dict[str, str] = {}
        self._found = found
        self._used: set[str] = set()
        before, after = routes(old), routes(new)
        if not before or not after:
            self.names = {a.name: a.name for a in new.activities}
            self.changes = False
            return
        if len(before) > 1 and len(after) > 1:
            found[new.start] = old.start
        self._routes(before, after)
        known = {activity.name for activity in old.activities}
        # What no path tells of has a name that no line of the source decides about.
        others = {a.name for a in new.activities} - stable_names(new).keys()
        found.update((name, name) for name in others & known - stable_names(old).keys() - set(found.values()))
        self.names = _complete(found, [a.name for a in new.activities], known)
        self.changes = any(name != was for name, was in (*self.names.items(), *self.exchanges.items()))

    def _routes(self, old: Sequence[Route], new: Sequence[Route]) -> None:
        for before, after in match_routes(old, new)[0]:
            self._route(before, after)

    def _pair(self, old: str, new: str) -> None:
        if old and new:
            self._found.setdefault(new, old)
            self._used.add(old)

    def _route(self, old: Route, new: Route) -> None:
        self._pair(old.segments[0], new.segments[0])
        pairs = dict(aligned(old.steps, new.steps))
        for i, j in pairs.items():
            before, after = old.steps[i], new.steps[j]
            self._pair(before.registry, after.registry)
            self._pair(before.communication, after.communication)
            self._pair(before.think, after.think)
            if before.exchange and after.exchange:
                self.exchanges[after.exchange] = before.exchange
            if before.op in ("loop", "fan-out") and len(before.bodies) > 1 and len(after.bodies) > 1:
                self._pair(chooser(self._old, before), chooser(self._new, after))
            self._routes(before.bodies, after.bodies)
            self._pair(old.segments[i + 1], new.segments[j + 1])
        if old.segments[-1] not in self._used:
            self._pair(old.segments[-1], new.segments[-1])


def _with_names(
    task: Task,
    renamed: Mapping[tuple[str, str], _Renaming],
    exchanges: Mapping[str, str],
    networks: set[str],
) -> Task:
    if task.name in networks:
        entries = tuple(_exchange(entry, exchanges.get(entry.name, entry.name)) for entry in task.entries)
        return _with_works(replace(task, entries=entries), task)
    entries = tuple(
        _entry(entry, renamed[task.name, entry.name].names, exchanges, networks)
        if (task.name, entry.name) in renamed
        else entry
        for entry in task.entries
    )
    return _with_works(replace(task, entries=entries), task)


def _exchange(entry: Entry, name: str) -> Entry:
    if len(entry.activities) != 1:
        return replace(entry, name=name)
    (activity,) = entry.activities
    named = name if activity.name == entry.name else activity.name
    return replace(entry, name=name, start=named, activities=(replace(activity, name=named),))


def _entry(entry: Entry, names: Mapping[str, str], exchanges: Mapping[str, str], networks: set[str]) -> Entry:
    activities = tuple(
        replace(
            activity,
            name=names[activity.name],
            calls=tuple(
                replace(call, entry=exchanges.get(call.entry, call.entry)) if call.task in networks else call
                for call in activity.calls
            ),
        )
        for activity in entry.activities
    )
    precedences = tuple(_precedence(arc, names) for arc in entry.precedences)
    return replace(entry, start=names[entry.start], activities=activities, precedences=precedences)


def _precedence(arc: Precedence, names: Mapping[str, str]) -> Precedence:
    pre, post = (tuple(names[name] for name in side) for side in (arc.pre, arc.post))
    return replace(arc, pre=pre, post=post)


def _with_works(task: Task, like: Task) -> Task:
    """Return a task whose set-up and load dependence, by the names of works of ``like``, are by its own."""
    before, after = WorkNames(like.entries), WorkNames(task.entries)
    names = {
        before.texts[e.name, a.name]: after.texts[f.name, b.name]
        for e, f in zip(like.entries, task.entries, strict=True)
        for a, b in zip(e.activities, f.activities, strict=True)
    }

    def changed(times: Works) -> Works:
        if times is None:
            return times
        demands, delays = ({names.get(k, k): v for k, v in t.items()} for t in (times.demands, times.delays))
        return replace(times, demands=demands, delays=delays)

    return replace(task, setup=changed(task.setup), load_dependence=changed(task.load_dependence))
