"""Time since a customer's previous use of a machine or a worker, when its request begins.

Followed along the path of one customer that meets no other: mean times between its uses of the machine, or
its requests to the task. In front of a loop, a join or a choice the times of what leads there are mixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mup.lqn.distributions import Distribution
from mup.lqn.lowered import FanOut, Graph, Loop, Lowered, Source, has_front, is_awaited, machines, requests_of
from mup.lqn.model import Activity, Model, Task
from simulator.preparing.chains import Rested

__all__ = ["FOR_EVER", "Place", "machine_of", "own_rests"]

FOR_EVER = 1e12
"""Seconds since a customer was there that never is, or that comes only once."""

Key = tuple[str, str]
Place = tuple[str, str]
"""``machine`` and its name, or ``worker`` or ``front`` and the task."""
Point = tuple[str, str]
"""Where a gap is taken: ``worker``, ``request`` or ``reply`` of a task."""


class _Since(NamedTuple):
    """Mean and variance of the time since a customer was there, beginning with ``kept`` times what it was."""

    kept: float
    mean: float
    variance: float

    def later(self, time: Distribution | None, speed: float = 1.0) -> _Since:
        if time is None:
            return self
        return _Since(self.kept, self.mean + time.mean / speed, self.variance + time.variance / speed**2)

    def after(self, before: _Since) -> _Since:
        return _Since(
            self.kept * before.kept,
            self.mean + self.kept * before.mean,
            self.variance + self.kept * before.variance,
        )


JUST_NOW = _Since(0.0, 0.0, 0.0)
UNCHANGED = _Since(1.0, 0.0, 0.0)


def _mixed(parts: Sequence[tuple[float, _Since]]) -> _Since:
    total = math.fsum(weight for weight, _ in parts)
    if total <= 0:
        return UNCHANGED
    kept, mean = (math.fsum(w * s[i] for w, s in parts) / total for i in (0, 1))
    square = math.fsum(w * (s.variance + s.mean**2) for w, s in parts) / total
    return _Since(kept, mean, max(0.0, square - mean**2))


@dataclass
class _Passed:
    """What happens on the way through an entry: gaps that are taken, and requests to others."""

    end: _Since = UNCHANGED
    points: list[tuple[Point, float, _Since]] = field(default_factory=list)
    sent: list[tuple[Key, float, _Since]] = field(default_factory=list)


def machine_of(model: Model, processor: str | None) -> str | None:
    """Return the whole machine that a processor is, or is a part of."""
    found = list(machines(model, processor))
    return found[-1].name if found else None


def own_rests(lowered: Lowered, place: Place) -> dict[Point, list[tuple[float, Rested]]]:
    """Return, for every point where gaps are taken, how long ago the customer was at a place, with weights.

    Args:
        lowered: A calibrated model.
        place: The machine, worker or front.
    """
    walk = _Walk(lowered, place)
    found: dict[Point, list[tuple[float, Rested]]] = {}
    for source in lowered.sources:
        arriving: dict[Key, list[tuple[float, _Since]]] = {source.key: [(1.0, walk.first(source))]}
        for key in reversed(walk.order(source.key)):
            parts = arriving.get(key, [])
            weight = source.rate if source.is_open else 1.0
            often, come = math.fsum(w for w, _ in parts), _mixed(parts)
            passed = walk.passed[key]
            for point, times, since in passed.points:
                now = since.after(come)
                sd = min(now.mean, math.sqrt(now.variance))
                found.setdefault(point, []).append((weight * often * times, Rested(now.mean, sd)))
            for target, times, since in passed.sent:
                arriving.setdefault(target, []).append((often * times, since.after(come)))
    return found


class _Walk:
    """Goes through the entries for one place; callees first."""

    def __init__(self, lowered: Lowered, place: Place) -> None:
        self.lowered = lowered
        self.model = lowered.model
        self.kind, self.name = place
        self.passed: dict[Key, _Passed] = {}

    def first(self, source: Source) -> _Since:
        """Return how long ago a customer was there when its cycle begins."""
        end = self.entry(source.key).end
        if source.is_open or end.kept >= 1:
            return _Since(0.0, FOR_EVER, 0.0)
        return _Since(0.0, end.mean / (1 - end.kept), end.variance)

    def order(self, root: Key) -> list[Key]:
        """Return what a source gets to, callees first."""
        found: dict[Key, None] = {}

        def visit(key: Key) -> None:
            if key in found or key not in self.passed:
                return
            for target, _, _ in self.passed[key].sent:
                visit(target)
            found[key] = None

        visit(root)
        return list(found)

    def spent(self, since: _Since, processor: str | None, time: Distribution | None) -> _Since:
        """Return the time since after a use of a processor."""
        if time is None or time.mean <= 0:
            return since
        if self.kind == "machine" and machine_of(self.model, processor) == self.name:
            return JUST_NOW
        speed = math.prod(p.speed for p in machines(self.model, processor))
        return since.later(time, speed)

    def entry(self, key: Key) -> _Passed:
        """Go through an entry."""
        if key in self.passed:
            return self.passed[key]
        passed = self.passed[key] = _Passed()
        task, _ = self.lowered.target(*key)
        graph = self.lowered.graph(*key)
        client = task.is_reference and not task.is_open
        since = UNCHANGED
        front = task.front if has_front(task) else None
        home = self.model.front_processor(task)
        if front is not None:
            passed.points.append((("request", task.name), 1.0, since))
            since = self.spent(since, home, front.request)
            if (self.kind, self.name) == ("front", task.name):
                since = JUST_NOW
        if client:
            since = since.later(task.think)
        if not client or task.think is not None:
            passed.points.append((("worker", task.name), 1.0, since))
        ends = self.activities(task, graph, since, passed)
        if (self.kind, self.name) == ("worker", task.name):
            ends = JUST_NOW
        if front is not None:
            passed.points.append((("reply", task.name), 1.0, ends))
            ends = self.spent(ends, home, front.reply)
            if (self.kind, self.name) == ("front", task.name):
                ends = JUST_NOW
        passed.end = ends
        return passed

    def activities(self, task: Task, graph: Graph, since: _Since, passed: _Passed) -> _Since:
        """Go through the activities of an entry; return the time since at its reply."""
        known: dict[str, _Since] = {}

        def before(name: str) -> _Since:
            arc = graph.into.get(name)
            if name == graph.start or arc is None:
                return since
            if isinstance(arc.then, Loop) and name == arc.then.continuation and arc.then.bodies:
                return after(arc.then.bodies[-1].start)
            if isinstance(arc.then, FanOut) and name == arc.then.continuation:
                return after(arc.then.body.start)
            if arc.join is not None:
                return min((after(branch) for branch in arc.join.branches), key=lambda s: (s.kept, s.mean))
            return _mixed([(graph.visits.get(name, 0.0), after(name)) for name in arc.arriving])

        def after(name: str) -> _Since:
            if name not in known:
                known[name] = UNCHANGED  # a customer that comes back has been here before
                often = graph.visits.get(name, 0.0)
                known[name] = self.activity(task, graph.activities[name], before(name), often, passed)
            return known[name]

        for name in graph.reached:
            after(name)
        last = graph.replying or graph.ends & graph.carried or graph.ends
        return _mixed([(graph.visits.get(name, 0.0), after(name)) for name in last])

    def activity(
        self, task: Task, activity: Activity, since: _Since, often: float, passed: _Passed
    ) -> _Since:
        since = self.spent(since, task.processor, activity.demand)
        since = since.later(activity.delay)
        if activity.kind == "think" and task.is_reference:
            passed.points.append((("worker", task.name), often, since))
        for request in requests_of(activity):
            key, count = (request.call.task, request.call.entry), request.count.mean
            end = self.entry(key).end
            if not is_awaited(request.call.kind):
                passed.sent.append((key, often * count, since))
                continue
            passed.sent.append((key, often * min(1.0, count), since))
            back = end.after(since)
            if count > 1:
                passed.sent.append((key, often * (count - 1), back))
                back = end.after(back)
            since = _mixed([(min(1.0, count), back), (1 - min(1.0, count), since)])
        return since
