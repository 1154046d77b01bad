"""How long does a request of each plan take, and what does it ask of the stations, given what it meets there?

Callees come before their callers. Times are moments: how steps of an entry make up its time is in
``simulator.analytic.entries.entry_times``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.analytic.approximations.convolution import FloatArray
from simulator.analytic.approximations.parallel_branches import ParallelBranches
from simulator.analytic.approximations.second_phases import SecondPhases
from simulator.analytic.entries.entry_times import EntryTimes, Moments
from simulator.analytic.entries.loads import Columns, Load, Places, Rows
from simulator.analytic.layers import Plan, targets
from simulator.analytic.operating_point import (
    BRANCH_DELAY,
    OWN_ROWS,
    ROWS,
    SQUARES,
    TIME,
    WORK,
    OperatingPoint,
)

__all__ = ["Evaluation", "reached_stations"]

SAME: Final = 1e-7
"""Relative change of a time that is none: what follows from it is not evaluated again."""


class Evaluation:
    """Evaluates all plans at an operating point.

    Attributes:
        rows: Per plan, what does not change about its steps.
        releases: Per plan, how often a request gives up its thread on the way.
    """

    def __init__(self, point: OperatingPoint, branches: ParallelBranches, second: SecondPhases) -> None:
        self._point = point
        self._branches = branches
        self._second = second
        self.rows = [Rows(plan) for plan in point.plans]
        self.releases = [sum(times for _, times in rows.releasing) for rows in self.rows]
        self._reaches = _reaches(point, self.rows)
        for index, reach in enumerate(self._reaches):
            # What leads back to its own beginning asks nothing at first.
            point.as_called[index] = Load(reach.called, np.zeros((ROWS, len(reach.called))))
        self._inputs: list[tuple[dict[str, Moments], int]] = [({}, -1)] * len(point.plans)
        self._versions = [0] * len(point.plans)

    def evaluate(self) -> None:
        """Evaluate times and loads of all plans, callees first."""
        point = self._point
        for index in reversed(point.layers.order):
            plan = point.plans[index]
            moments = self._step_moments(index, plan, releasing=True)
            if not self._unchanged(index, plan, moments):
                times = own = plan.graph.times(moments)
                if self.releases[index]:
                    moments = self._step_moments(index, plan, releasing=False)
                    own = plan.graph.times(moments)
                    times = EntryTimes(times.reply, own.hold)
                point.times[index] = times
                self._loads(index, plan, moments, own)
                self._versions[index] += 1
            times = point.times[index]
            mean, variance = times.reply
            if plan.station is not None:
                waited = float(self._branches.plain_wait[plan.station])
                mean, variance = mean + waited * (1 + self.releases[index]), variance + waited**2
            for front in (plan.before, plan.behind):
                if front is not None:
                    mean += point.called[front][0]
                    variance += point.called[front][1]
            for target, chance in plan.forwards:
                once, noise = point.called[target]
                mean += chance * once
                variance += chance * noise + chance * (1 - chance) * once**2
            point.called[index] = mean, variance

    def _step_moments(self, index: int, plan: Plan, *, releasing: bool) -> dict[str, Moments]:
        found = {}
        for step in plan.steps:
            mean, variance = step.delay
            if step.slices:
                one, spread = step.demand
                more, noise = self._on_processor(plan, one, spread)
                mean += step.slices * more
                variance += step.slices * noise
            for call in step.calls:
                if call.kind == "synchronous" or (releasing and call.kind == "releasing"):
                    once, noise = self._point.called[call.target]
                    mean += call.count[0] * once
                    variance += call.count[0] * noise + call.count[1] * once**2
            extra = self._branches.delays[index].get(step.name, 0.0)
            found[step.name] = (mean + extra, variance)
        for back in self._second.overtaking[index]:
            mean, variance = found[back.step]
            found[back.step] = mean + self._second.wait(back) / plan.graph.visits[back.step], variance
        return found

    def _on_processor(self, plan: Plan, one: float, spread: float) -> Moments:
        """Return the moments of a slice of work, its wait for the processor included."""
        if plan.processor is None:
            return one, spread
        if self._point.stations[plan.processor].shared:
            stretch = float(self._branches.plain_stretch[plan.processor])
            return one * stretch, spread * stretch**2
        waited = float(self._branches.plain_wait[plan.processor])
        return one + waited, spread + waited**2

    def _unchanged(self, index: int, plan: Plan, moments: dict[str, Moments]) -> bool:
        """Tell whether a plan was evaluated with these times before; if not, take note of them."""
        below = sum(self._versions[t] for t in targets(plan))
        if plan.graph.width > 1:
            below += self._branches.shifts
        before, version = self._inputs[index]
        if version == below and len(before) == len(moments):
            pairs = zip(before.values(), moments.values(), strict=True)
            if all(abs(a[0] - b[0]) <= SAME * a[0] and abs(a[1] - b[1]) <= SAME * a[1] for a, b in pairs):
                return True
        self._inputs[index] = moments, below
        return False

    def _loads(self, index: int, plan: Plan, moments: dict[str, Moments], own: EntryTimes) -> None:
        """Add up what a request asks of the stations: while the thread is held, for the caller, at all."""
        point, rows, reach = self._point, self.rows[index], self._reaches[index]
        load = np.zeros((len(plan.steps), ROWS, len(reach.own)))
        local, released = np.zeros((ROWS, len(reach.local))), np.zeros((ROWS, len(reach.called)))
        at = -1 if plan.processor is None else plan.processor
        load[:, :OWN_ROWS, reach.own.where[at]] = rows.work
        local[:OWN_ROWS, reach.local.where[at]] = rows.work.sum(axis=0)
        load[:, TIME, -1] += rows.delay
        for (row, target, times), places in zip(rows.calls, reach.calls, strict=True):
            load[row][:, places] += times * point.as_called[target].values
        for (target, times), places in zip(rows.releasing, reach.releasing, strict=True):
            released[:, places] += times * point.as_called[target].values
        for back in self._second.overtaking[index]:
            load[rows.of[back.step], TIME, -1] += self._second.wait(back)
        if own.overlaps:
            self._branches.meet(index, rows, own, reach.own, load)
        share = np.array([own.shares.get(name, 1.0) for name in rows.of])
        spent = share * rows.visits * np.array([moments[name][0] for name in rows.of])
        load[:, TIME] *= share[:, None]
        local[BRANCH_DELAY, reach.own_in_local] += load[:, BRANCH_DELAY].sum(axis=0)
        flat, shape = load.reshape(len(load), -1), (ROWS, len(reach.own))
        held, awaited = (rows.held @ flat).reshape(shape), (rows.awaited @ flat).reshape(shape)
        thread_time, caller_time = float(rows.held @ spent), float(rows.awaited @ spent)
        if thread_time > 0:
            held[TIME] *= own.hold[0] / thread_time
        if caller_time > 0:
            awaited[TIME] *= own.reply[0] / caller_time
        point.held[index] = Load(reach.own, held)
        called = np.zeros((ROWS, len(reach.called)))
        if plan.station is None:
            called[:, reach.own_in_called] = awaited
        else:
            self._at_pool(index, plan.station, own, local, called)
        called = called + released
        for front in (plan.before, plan.behind):
            if front is not None:
                called[:, reach.others[front]] += point.as_called[front].values
        for target, chance in plan.forwards:
            called[:, reach.others[target]] += chance * point.as_called[target].values
        point.as_called[index] = Load(reach.called, called)
        point.local[index] = Load(reach.local, local)

    def _at_pool(
        self, index: int, station: int, own: EntryTimes, local: FloatArray, called: FloatArray
    ) -> None:
        """Add what a request asks of its pool: to ``called`` while its caller waits, all to ``local``."""
        (mean, variance), visits = own.reply, 1 + self.releases[index]
        reach = self._reaches[index]
        there, here = reach.called.where[station], reach.local.where[station]
        called[:OWN_ROWS, there] = visits, mean, (mean**2 + variance) / visits, mean
        local[:, here] += called[:, there]
        hold, noise = own.hold
        local[WORK, here] += hold - mean
        local[SQUARES, here] += (hold**2 + noise - mean**2 - variance) / visits
        self._second.length[index] = max(hold - mean, 0.0)


@dataclass(frozen=True, slots=True)
class _Reach:
    """The stations that the requests of a plan can get to.

    Attributes:
        own: By its steps, what they wait for included.
        local: Those, and the one whose server it holds.
        called: While its caller waits.
        own_in_local, own_in_called: Where the first are among the others; the latter if it holds no server.
        calls, releasing: Where what is called is among ``own`` and ``called``, for each of ``Rows``.
        others: Where what fronts and those that take over ask is among ``called``, by their plans.
    """

    own: Columns
    local: Columns
    called: Columns
    own_in_local: Places
    own_in_called: Places
    calls: tuple[Places, ...]
    releasing: tuple[Places, ...]
    others: Mapping[int, Places]


def reached_stations(plans: Sequence[Plan], order: Sequence[int]) -> tuple[list[set[int]], list[set[int]]]:
    """Return the stations the requests of every plan can get to: by its steps, and while its caller waits.

    Args:
        plans: Of a model.
        order: Their indices, callers before what they call.
    """
    own: list[set[int]] = [set() if plan.processor is None else {plan.processor} for plan in plans]
    called: list[set[int]] = [set() for _ in plans]
    targets = [[(call.kind, call.target) for step in plan.steps for call in step.calls] for plan in plans]
    growing = True
    while growing:  # a second time if messages lead back to their senders, else all is known after the first
        growing = False
        for index in reversed(order):
            plan = plans[index]
            size = len(own[index]) + len(called[index])
            own[index].update(*(called[target] for kind, target in targets[index] if kind == "synchronous"))
            called[index].update(own[index] if plan.station is None else (plan.station,))
            called[index].update(*(called[target] for kind, target in targets[index] if kind == "releasing"))
            called[index].update(*(called[target] for target in _behind(plan)))
            growing = growing or len(own[index]) + len(called[index]) > size
    return own, called


def _behind(plan: Plan) -> list[int]:
    """Return the plans of its fronts, and those that take over."""
    found = (plan.before, plan.behind, *(target for target, _ in plan.forwards))
    return [number for number in found if number is not None]


def _reaches(point: OperatingPoint, every: list[Rows]) -> list[_Reach]:
    """Return what the requests of every plan can get to."""
    plans, delays = point.plans, len(point.stations)
    own, called = reached_stations(plans, point.layers.order)
    of_called = [Columns(found, delays) for found in called]
    reaches = []
    for index, (rows, plan) in enumerate(zip(every, plans, strict=True)):
        mine, of_callees = Columns(own[index], delays), of_called[index]
        local = mine if plan.station is None else Columns((*own[index], plan.station), delays)
        reaches.append(
            _Reach(
                own=mine,
                local=local,
                called=of_callees,
                own_in_local=local.places(mine),
                own_in_called=of_callees.places(mine if plan.station is None else Columns((), delays)),
                calls=tuple(mine.places(of_called[target]) for _, target, _ in rows.calls),
                releasing=tuple(of_callees.places(of_called[target]) for target, _ in rows.releasing),
                others={target: of_callees.places(of_called[target]) for target in _behind(plan)},
            )
        )
    return reaches
