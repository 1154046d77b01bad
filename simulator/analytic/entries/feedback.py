"""Immediate feedback: requests that come back to a station they have left only just now.

Such a visit differs from one at a random moment (Takacs, "A single-server queue with feedback", 1963). It
does not find a service that is partly over, but one that is just beginning; and before it are only those
who came during the last visit. Between the two there may be a moment: work elsewhere, the network, the
client's own time. How long it takes when no request waits is the *gap* of the return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from simulator.analytic.layers import Layers, Plan, Step

__all__ = ["Feedback", "FeedbackSearch"]

SOON: Final = 10
"""A request that comes back after so many of the longest services does so at a random moment.

Only a service as long as the gap could tell."""
AHEAD: Final = 20
"""Steps to look ahead at most: in loops that take no time, stations come again without an end."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """Returns to a station.

    Attributes:
        station: Which one.
        times: How often per request.
        service: Mean service time of the visit before, in seconds; None: how long ``plan`` holds it.
        plan: The plan that held it.
        step: The activity that returns.
        gap: Seconds between the two, without waiting.
    """

    station: int
    times: float
    service: float | None
    plan: int
    step: str = ""
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class _Reach:
    """That a station is reached: how likely, after how many seconds, by which activity."""

    chance: float
    gap: float
    step: str


@dataclass(frozen=True, slots=True)
class _Part:
    """A demand, a delay or the calls of one kind of an activity.

    Attributes:
        time: Mean seconds without waiting.
        often: How likely it happens.
        reached: Stations it gets to.
        left: Stations it leaves.
        repeats: How often it follows itself.
    """

    time: float
    often: float = 1.0
    reached: Mapping[int, _Reach] | None = None
    left: Mapping[int, Feedback] | None = None
    repeats: float = 0.0


class FeedbackSearch:
    """Follows the flows of all plans from step to step.

    Args:
        layers: The model.
    """

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        # Seconds from which on a return is not of interest; those without a gap always are.
        self._horizon = SOON * _longest_service(layers)
        self._first: dict[int, dict[int, _Reach]] = {}
        self._last: dict[int, dict[int, Feedback]] = {}
        self._time: dict[int, float] = {}

    def visits(self) -> list[list[Feedback]]:
        """Return, per plan, the returns that one request adds."""
        layers = self._layers
        found: list[list[Feedback]] = [[] for _ in layers.plans]
        for index in reversed(layers.order):
            plan = layers.plans[index]
            walk = _Walk(plan, {s.name: list(self._parts(plan, s)) for s in plan.steps}, self._horizon)
            self._first[index], self._last[index] = walk.first(), walk.last(index)
            self._time[index] = walk.time
            found[index] = list(walk.feedback())
        return found

    def _parts(self, plan: Plan, step: Step) -> Iterator[_Part]:
        """Yield what a step does, in order."""
        if step.slices:
            at, demand = plan.processor, step.demand[0]
            if at is None:
                yield _Part(step.slices * demand)
            else:
                reached = {at: _Reach(1.0, 0.0, step.name)}
                yield _Part(step.slices * demand, 1.0, reached, {at: Feedback(at, 1.0, demand, -1)})
        if step.delay[0] > 0:
            yield _Part(step.delay[0])
        for call in step.calls:
            if call.awaited:
                count, once = call.count[0], self._time.get(call.target, 0.0)
                often = min(count, 1.0)
                first = self._first.get(call.target, {})
                reached = {at: _Reach(often * r.chance, r.gap, step.name) for at, r in first.items()}
                yield _Part(count * once, often, reached, self._last.get(call.target), max(count - 1, 0.0))


def _longest_service(layers: Layers) -> float:
    """Return the mean seconds of the longest use of a station, waiting excluded.

    Parallel branches count as if one came after the other, so it is not too short.
    """
    longest = 0.0
    work: dict[int, float] = {}
    for index in reversed(layers.order):
        plan = layers.plans[index]
        total = 0.0
        for step in plan.steps:
            own = step.slices * step.demand[0] + step.delay[0]
            in_callees = sum(c.count[0] * work.get(c.target, 0.0) for c in step.calls if c.awaited)
            total += plan.graph.visits[step.name] * (own + in_callees)
            if plan.processor is not None:
                longest = max(longest, step.demand[0])
        work[index] = total
        if plan.station is not None:
            longest = max(longest, total)
    return longest


class _Walk:
    """One plan, step by step."""

    def __init__(self, plan: Plan, parts: dict[str, list[_Part]], horizon: float) -> None:
        self._plan, self._parts, self._horizon = plan, parts, horizon
        graph = plan.graph
        times = {name: sum(part.time for part in found) for name, found in parts.items()}
        self.time = graph.times({name: (time, 0.0) for name, time in times.items()}).reply[0]
        self._next: dict[str, list[tuple[str, float, float]]] = {}
        for before, after, often, beside in graph.links():
            late = max([times[name] - times[before] for name in beside], default=0.0)
            link = after, often / graph.visits[before], max(late, 0.0)
            self._next.setdefault(before, []).append(link)
        self._known: dict[tuple[str, int], dict[int, _Reach]] = {}

    def first(self) -> dict[int, _Reach]:
        """Return which stations a request gets to."""
        found = dict(self._from(self._plan.graph.start, AHEAD))
        if self._plan.station is not None:
            found[self._plan.station] = _Reach(1.0, 0.0, "")
        return found

    def last(self, index: int) -> dict[int, Feedback]:
        """Return which stations a request leaves at its end, whichever way it took."""
        ends = [self._left(name) for name in sorted(self._plan.graph.ends) if name in self._parts]
        found = {at: last for at, last in ends[0].items() if all(at in end for end in ends)} if ends else {}
        if self._plan.station is not None:
            found[self._plan.station] = Feedback(self._plan.station, 1.0, None, index)
        return found

    def feedback(self) -> Iterator[Feedback]:
        """Yield all returns within the plan but those within what it calls."""
        for name, parts in self._parts.items():
            visits = self._plan.graph.visits[name]
            for k, part in enumerate(parts):
                if part.left:
                    yield from self._met(part, visits * part.often, self._behind(name, k, AHEAD))
                    if part.repeats > 0 and part.reached:
                        yield from self._met(part, visits * part.repeats, part.reached)

    def _met(self, part: _Part, times: float, ahead: Mapping[int, _Reach]) -> Iterator[Feedback]:
        for at, last in (part.left or {}).items():
            if at in ahead:
                then = ahead[at]
                gap = last.gap + then.gap
                if gap == 0 or gap < self._horizon:
                    yield replace(last, times=times * then.chance, step=then.step, gap=gap)

    def _from(self, name: str, left: int) -> dict[int, _Reach]:
        """Return which stations a flow gets to from the beginning of a step on."""
        if (name, left) not in self._known:
            self._known[name, left] = self._behind(name, -1, left)
        return self._known[name, left]

    def _behind(self, name: str, part: int, left: int) -> dict[int, _Reach]:
        """Return which stations a flow gets to after a part of a step."""
        found: dict[int, _Reach] = {}
        gap = 0.0
        for following in self._parts[name][part + 1 :]:
            _continue(found, following.reached or {}, gap)
            gap += following.time
            if gap > 0 and gap >= self._horizon:
                return found
        routes: dict[int, list[_Reach]] = {}
        for after, chance, late in self._next.get(name, ()) if left > 0 else ():
            for at, reach in self._from(after, left - 1).items():
                route = _Reach(chance * reach.chance, late + reach.gap, reach.step)
                routes.setdefault(at, []).append(route)
        _continue(found, {at: _mixed(reaches) for at, reaches in routes.items()}, gap)
        return found

    def _left(self, name: str) -> dict[int, Feedback]:
        """Return which stations a step leaves, and how long before its end."""
        found: dict[int, Feedback] = {}
        gap = 0.0
        for part in reversed(self._parts[name]):
            for at, last in (part.left or {}).items():
                found.setdefault(at, replace(last, gap=last.gap + gap))
            gap += part.time
            if gap > 0 and gap >= self._horizon:
                break
        return found


def _mixed(routes: list[_Reach]) -> _Reach:
    """Return what exclusive ways to a station are together."""
    chance = sum(route.chance for route in routes)
    gap = sum(route.chance * route.gap for route in routes) / chance if chance > 0 else 0.0
    return _Reach(min(chance, 1.0), gap, routes[0].step)


def _continue(found: dict[int, _Reach], then: Mapping[int, _Reach], gap: float) -> None:
    """Add what is reached so many seconds later, by those who have not been there yet."""
    for at, reach in then.items():
        later = _Reach(reach.chance, reach.gap + gap, reach.step)
        if at in found:
            before = found[at]
            rest = _Reach((1 - before.chance) * reach.chance, later.gap, later.step)
            later = _mixed([before, rest])
        found[at] = later
