"""What does a model predict, roughly, within milliseconds? A layered mean-value estimate.

Every place where requests queue becomes a *station*: the threads of a task, its front, a processor.
Whoever holds a server of one station while he visits others (clients, threads) is a *customer* of a closed
network of those. Networks are solved from the bottom up for every number of customers; the throughput
they reach with 1, 2, ... threads is the speed of the pool's station in the network above (aggregation).
What stations have in common (a processor under several tasks, a task with several callers) is settled
by iteration: in each network the others appear as sources of a known throughput. See
docs/explanation/analytic.md for the approximations and for how wrong they are.

Sources: Chandy, Herzog and Woo, "Parametric analysis of queueing networks", 1975; Rolia and Sevcik, "The
method of layers", 1995; Franks et al., "Enhanced modeling and solution of layered queueing networks", 2009.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mup.errors import SimulationError
from mup.lqn.lowered import passed_on
from mup.lqn.model import Model
from mup.lqn.refs import EntryRef, Names
from simulator.analytic.doubts import doubts, meetings
from simulator.analytic.entry_times import EntryTimes, Moments
from simulator.analytic.layers import Layers, Plan, targets
from simulator.analytic.loads import APART, BESIDE, MEETING, ROWS, SQUARES, TIME, VISITS, WORK, Rows
from simulator.analytic.mva import Chain, Crowd, FloatArray, Queue, SharedView, extended, rising
from simulator.analytic.returns import Return, Returns
from simulator.preparing import Observed, prepared

__all__ = ["CycleEstimate", "Estimate", "TaskEstimate", "estimate", "observed"]

MAX_ITERATIONS = 40
ROUGHLY = 0.003
"""Relative change of cycle times from which on the estimate of a load goes on."""
ADAPTING = 15
"""Rounds after which stations keep the speeds they were given for the variability of their services."""
TOLERANCE = 1e-4
LOOSE = 1e-6
SAME = 1e-7
"""Relative change of a time that is none."""
FEW = 600
LARGEST = 2000
LONGEST = 600
"""Requests at a station beyond which its speed is taken as constant."""

SOON = 1.0
"""Seconds: whoever comes back to a station later than that does so at a random moment."""

ALIKE = 0.1
"""Squared coefficient of variation of think times up to which they are taken as always equally long."""

UNBOUNDED = 20.0
"""Sources, and as many times the jobs they have there, that stand for requests nothing bounds."""

SIBLINGS = 6
"""Parallel branches at one station beyond which more of them make no difference."""


@dataclass(frozen=True, slots=True)
class CycleEstimate:
    """Cycles per second; seconds per cycle without and with the think time."""

    throughput: float
    response_time: float
    cycle_time: float


@dataclass(frozen=True, slots=True)
class TaskEstimate:
    """One task, as in a simulation's result; figures that do not exist are None."""

    throughput: float
    utilization: float | None
    busy: float
    queue: float | None
    response_time: float | None = None
    cycle_time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One estimated scenario: means without intervals. An approximation, not a measurement.

    Attributes:
        cycle: Client cycles, all reference tasks together.
        tasks, entries, processors: Keyed by name; entries as (throughput, response time or None).
        iterations, converged: How the fixed point was reached.
        wall_seconds: How long that took.
        warnings: What is doubtful about the estimate.
    """

    cycle: CycleEstimate
    tasks: Mapping[str, TaskEstimate]
    entries: Mapping[str, tuple[float, float | None]]
    processors: Mapping[str, float | None]
    iterations: int
    converged: bool
    wall_seconds: float = field(compare=False)
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a document of the shape of a simulation's, ``ci95`` null."""
        data: dict[str, Any] = {
            "engine": "analytic",
            "estimate": True,
            "iterations": self.iterations,
            "converged": self.converged,
            "wall_seconds": self.wall_seconds,
            "cycle": {name: _figure(getattr(self.cycle, name)) for name in CycleEstimate.__slots__},
            "tasks": {},
            "entries": {
                name: {"throughput": _figure(rate), "response_time": _figure(mean)}
                for name, (rate, mean) in self.entries.items()
            },
            "processors": {name: {"utilization": _figure(u)} for name, u in self.processors.items()},
            "warnings": list(self.warnings),
        }
        for name, task in self.tasks.items():
            figures = {f: _figure(getattr(task, f)) for f in ("throughput", "utilization", "busy", "queue")}
            if task.response_time is not None:
                figures["response_time"] = _figure(task.response_time)
                figures["cycle_time"] = _figure(task.cycle_time)
            data["tasks"][name] = figures
        return data


def _figure(mean: float | None) -> dict[str, float | None] | None:
    return None if mean is None else {"mean": mean, "ci95": None}


def observed(model: Model) -> Observed:
    """Return the load of a prepared model; it raises what `estimate` does."""
    found = estimate(model, tolerance=ROUGHLY, rates_only=True)
    return Observed(
        {t.name: found.tasks[t.name].throughput for t in model.reference_tasks if not t.is_open},
        {name: share for name, share in found.processors.items() if share is not None},
        {name: task.busy for name, task in found.tasks.items()},
    )


def estimate(model: Model, *, tolerance: float = TOLERANCE, rates_only: bool = False) -> Estimate:
    """Estimate one scenario.

    Args:
        model: Calibrated at least where clients can get to.
        tolerance: Relative change of times from one iteration to the next that counts as none.
        rates_only: Stop as soon as cycle times, and with them all rates, no longer change; single waiting
            times need more iterations.

    Returns:
        Means of all figures. Always an estimate: see its documentation for errors to expect.

    Raises:
        UncalibratedError: The model lacks numbers.
        ModelError: An element has no analytic estimate; the message names it.
        SimulationError: Nothing would happen, a cycle takes no time, open arrivals exceed the capacity, or
            the iteration breaks down.
    """
    started = time.perf_counter()
    layers = Layers.of(prepared(model, observed).model)
    try:
        # What is no number anywhere would be one nowhere in the end.
        with np.errstate(invalid="raise"):
            solver = _Solver(layers)
            converged = solver.solve(tolerance, rates_only=rates_only)
            return _Report(solver).estimate(converged, started)
    except ArithmeticError as error:
        raise SimulationError(
            "the iteration behind the analytic estimate breaks down for this model",
            where=model.name,
            hint="simulate it: 'mup simulate' without --engine analytic",
        ) from error


@dataclass(slots=True)
class _Member:
    """Customers who share a network: the clients of a root, the threads of a pool, the cores of a part.

    Attributes:
        population: How many there are at most.
        is_open: They come from outside and leave again: what they ask for is nobody's who waits here.
        profile: Load per cycle.
        rate: Cycles per second.
        busy: Probability of 0, 1, ... customers.
    """

    population: int
    profile: FloatArray
    rate: float = 0.0
    is_open: bool = False
    chain: Chain | None = None
    stations: list[int] = field(default_factory=list)
    views: list[SharedView] = field(default_factory=list)
    thetas: list[float] = field(default_factory=list)
    capacity: float = math.inf
    surplus: int = 0
    slowest: int = 0
    busy: FloatArray = field(default_factory=lambda: np.zeros(1))


class _Solver:
    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.plans = layers.plans
        self.stations = layers.stations
        count = len(self.stations)
        self.width = count + 1
        self.rates = [0.0] * len(self.plans)
        self.times: list[EntryTimes] = [EntryTimes((0.0, 0.0), (0.0, 0.0))] * len(self.plans)
        self.inputs: list[tuple[dict[str, Moments], int]] = [({}, -1)] * len(self.plans)
        self.versions = [0] * len(self.plans)
        self.called: list[Moments] = [(0.0, 0.0)] * len(self.plans)
        self.rows = [Rows(plan) for plan in self.plans]
        self.releases = [sum(times for _, times in rows.releasing) for rows in self.rows]
        empty = np.zeros((ROWS, self.width))
        self.as_called = [empty] * len(self.plans)
        self.held = [empty] * len(self.plans)
        self.local = [empty] * len(self.plans)
        self.returning = Returns(layers, SOON).visits()
        # Those that may meet a second phase of the request before.
        self.relapses = [
            [b for b in found if b.gap == 0 and self._has_second_phase(b)] for found in self.returning
        ]
        self.wait = [0.0] * count
        self.stretch = [1.0] * count
        # The same without what parallel branches of a request do to each other.
        self.plain_wait = np.zeros(count + 1)
        self.plain_stretch = np.ones(count + 1)
        # The part of its time there that a job loses to 0, 1, ... branches of the same request.
        self.lost = np.zeros((SIBLINGS + 1, count + 1))
        self.scale = np.ones(count + 1)
        self.shifts = 0
        self.extra: list[dict[str, float]] = [{}] * len(self.plans)
        self.jobs = [0.0] * count
        self.second = [0.0] * len(self.plans)
        # Arrivals from outside and messages: requests whose number no client bounds.
        calls = (call for plan in self.plans for step in plan.steps for call in step.calls)
        self.unbounded = any(call.kind == "send" for call in calls) or any(p.arrivals for p in self.plans)
        self.after = [0.0] * count
        self.loose_visits = [0.0] * count
        self.loose_work = [0.0] * count
        self.after_work = [0.0] * count
        self.total = empty
        self.queues: list[Queue] = []
        self.members: dict[int, _Member] = {}
        self.roots: list[_Member] = []
        self.order: list[int] = []
        self.iterations = 0

    # ------------------------------------------------------------------ from times to loads

    def _step_moments(self, index: int, plan: Plan, *, releasing: bool) -> dict[str, Moments]:
        found = {}
        for step in plan.steps:
            mean, variance = step.delay
            if step.slices:
                one, spread = step.demand
                if plan.processor is None:
                    more, noise = one, spread
                elif self.stations[plan.processor].shared:
                    more = one * float(self.plain_stretch[plan.processor])
                    noise = spread * float(self.plain_stretch[plan.processor]) ** 2
                else:
                    waited = float(self.plain_wait[plan.processor])
                    more, noise = one + waited, spread + waited**2
                mean += step.slices * more
                variance += step.slices * noise
            for call in step.calls:
                if call.kind == "synchronous" or (releasing and call.kind == "releasing"):
                    once, noise = self.called[call.target]
                    mean += call.count[0] * once
                    variance += call.count[0] * noise + call.count[1] * once**2
            extra = self.extra[index].get(step.name, 0.0)
            found[step.name] = (mean + extra, variance)
        for back in self.relapses[index]:
            mean, variance = found[back.step]
            found[back.step] = mean + self._behind_oneself(back) / plan.graph.visits[back.step], variance
        return found

    def _has_second_phase(self, back: Return) -> bool:
        if back.plan < 0 or self.plans[back.plan].station != back.station:
            return False
        graph = self.plans[back.plan].graph
        return graph.awaited != graph.held and self.stations[back.station].servers == 1

    def _behind_oneself(self, back: Return) -> float:
        """Return how long one waits on coming straight back to a server that is in its second phase."""
        station, places = self.stations[back.station], self._places(back.station)
        idle = max(1 - self.after_work[back.station] / places, 0.0)
        return back.times * self.second[back.plan] * idle / station.replicas

    def evaluate(self) -> None:
        """Evaluate times and loads of all plans, callees first."""
        for index in reversed(self.layers.order):
            plan = self.plans[index]
            moments = self._step_moments(index, plan, releasing=True)
            if not self._unchanged(index, plan, moments):
                times = own = plan.graph.times(moments)
                if self.releases[index]:
                    moments = self._step_moments(index, plan, releasing=False)
                    own = plan.graph.times(moments)
                    times = EntryTimes(times.reply, own.hold)
                self.times[index] = times
                self._loads(index, plan, moments, own)
                self.versions[index] += 1
            times = self.times[index]
            mean, variance = times.reply
            if plan.station is not None:
                waited = float(self.plain_wait[plan.station])
                mean, variance = mean + waited * (1 + self.releases[index]), variance + waited**2
            for front in (plan.before, plan.behind):
                if front is not None:
                    mean += self.called[front][0]
                    variance += self.called[front][1]
            for target, chance in plan.forwards:
                once, noise = self.called[target]
                mean += chance * once
                variance += chance * noise + chance * (1 - chance) * once**2
            self.called[index] = mean, variance

    def _unchanged(self, index: int, plan: Plan, moments: dict[str, Moments]) -> bool:
        """Tell whether a plan was evaluated with these times before; if not, take note of them."""
        below = sum(self.versions[t] for t in targets(plan))
        if plan.graph.width > 1:
            below += self.shifts
        before, version = self.inputs[index]
        if version == below and len(before) == len(moments):
            pairs = zip(before.values(), moments.values(), strict=True)
            if all(abs(a[0] - b[0]) <= SAME * a[0] and abs(a[1] - b[1]) <= SAME * a[1] for a, b in pairs):
                return True
        self.inputs[index] = moments, below
        return False

    def _loads(self, index: int, plan: Plan, moments: dict[str, Moments], own: EntryTimes) -> None:
        """Add up what a request asks of the stations: while the thread is held, for the caller, at all."""
        rows = self.rows[index]
        load = np.zeros((len(plan.steps), ROWS, self.width))
        local, released = np.zeros((ROWS, self.width)), np.zeros((ROWS, self.width))
        at = self.width - 1 if plan.processor is None else plan.processor
        load[:, :BESIDE, at] = rows.work
        local[:BESIDE, at] = rows.work.sum(axis=0)
        load[:, TIME, -1] += rows.delay
        for row, target, times in rows.calls:
            load[row] += times * self.as_called[target]
        for target, times in rows.releasing:
            released += times * self.as_called[target]
        for back in self.relapses[index]:
            load[rows.of[back.step], TIME, -1] += self._behind_oneself(back)
        if own.overlaps:
            self._meet(index, own, load)
        share = np.array([own.shares.get(name, 1.0) for name in rows.of])
        spent = share * rows.visits * np.array([moments[name][0] for name in rows.of])
        load[:, TIME] *= share[:, None]
        local[MEETING] += load[:, MEETING].sum(axis=0)
        flat, shape = load.reshape(len(load), -1), (ROWS, self.width)
        held, awaited = (rows.held @ flat).reshape(shape), (rows.awaited @ flat).reshape(shape)
        thread_time, caller_time = float(rows.held @ spent), float(rows.awaited @ spent)
        if thread_time > 0:
            held[TIME] *= own.hold[0] / thread_time
        if caller_time > 0:
            awaited[TIME] *= own.reply[0] / caller_time
        self.held[index] = held
        if plan.station is None:
            called = awaited
        else:
            called = np.zeros((ROWS, self.width))
            (mean, variance), visits = own.reply, 1 + self.releases[index]
            called[:BESIDE, plan.station] = visits, mean, (mean**2 + variance) / visits, mean
            local[:, plan.station] += called[:, plan.station]
            hold, noise = own.hold
            local[WORK, plan.station] += hold - mean
            local[SQUARES, plan.station] += (hold**2 + noise - mean**2 - variance) / visits
            self.second[index] = max(hold - mean, 0.0)
        called = called + released
        for front in (plan.before, plan.behind):
            if front is not None:
                called = called + self.as_called[front]
        for target, chance in plan.forwards:
            called = called + chance * self.as_called[target]
        self.as_called[index] = called
        self.local[index] = local

    def _meet(self, index: int, own: EntryTimes, load: FloatArray) -> None:
        """Find out how long parallel branches delay each other where they meet.

        Args:
            index: The plan.
            own: Its times.
            load: Of every step, shape (steps, ROWS, stations and delays); what is found is added to it.
        """
        rows = self.rows[index]
        one, other = rows.sides(own.overlaps)

        def beside(rows_of: FloatArray, scale: FloatArray | float = 1.0) -> FloatArray:
            """Return the sum over everything that runs in parallel branches, for every step."""
            return np.asarray(one.T @ (scale * (other @ rows_of)) + other.T @ (scale * (one @ rows_of)))

        plain = load[:, VISITS] * self.plain_wait + load[:, WORK] * self.plain_stretch
        total = plain.sum(axis=1)
        extra = np.array([self.extra[index].get(name, 0.0) for name in rows.of]) * rows.visits
        there = plain * (1 + np.divide(extra, total, out=np.zeros_like(total), where=total > 0))[:, None]
        there[:, -1] = 0.0
        often = np.array([o.together / (o.forks * o.times[0] * o.times[1]) for o in own.overlaps])
        company = np.minimum(beside(there, often[:, None]), SIBLINGS - 1e-9)
        near = beside(load[:, TIME])
        load[:, BESIDE] += load[:, WORK] * near
        load[:, APART] += load[:, WORK] * near.sum(axis=1)[:, None]
        low, columns = company.astype(int), np.arange(self.width)
        part = self.lost[low, columns] * (1 - company + low) + self.lost[low + 1, columns] * (company - low)
        met = self.scale * plain * part / (1 - part)
        met[:, -1] = 0.0
        load[:, MEETING] += met
        found = np.where((one + other).any(axis=0), load[:, MEETING].sum(axis=1), 0.0)
        self.extra[index] = {
            name: more / visits
            for name, more, visits in zip(rows.of, found.tolist(), rows.visits.tolist(), strict=True)
            if more > 0
        }

    def flow(self) -> None:
        """Propagate the rates of the roots to everything they call, and add up the loads."""
        layers = self.layers
        arriving = [plan.arrivals for plan in self.plans]
        for member, root in zip(self.roots, layers.roots, strict=True):
            arriving[root] = member.rate
        self.rates = rates = passed_on(layers.order, layers.caused, layers.handed, arriving)
        total = np.zeros((ROWS, self.width))
        for rate, load in zip(rates, self.local, strict=True):
            total += rate * load
        for at in range(len(self.stations) - 1, -1, -1):
            # Parts are listed behind what they are a part of.
            parent = self.stations[at].parent
            if parent is not None:
                total[:, parent] += total[:, at]
        self.total = total
        self.after = [0.0] * len(self.stations)
        self.after_work = [0.0] * len(self.stations)
        for plan, rate, second in zip(self.plans, rates, self.second, strict=True):
            if plan.station is not None and second > 1e-9:
                self.after[plan.station] += rate
                self.after_work[plan.station] += rate * second

    # ------------------------------------------------------------------ networks

    def profiles(self) -> None:
        """Give every member its load per cycle."""
        for member, root in zip(self.roots, self.layers.roots, strict=True):
            if not member.is_open:
                member.profile = self._with_think(root)
        sums: dict[int, tuple[float, FloatArray]] = {}
        for index, plan in enumerate(self.plans):
            if plan.station is not None and self.rates[index] > 0:
                rate, load = sums.get(plan.station, (0.0, np.zeros((ROWS, self.width))))
                cycles = self.rates[index] * (1 + self.releases[index])
                sums[plan.station] = rate + cycles, load + self.rates[index] * self.held[index]
        for at, station in enumerate(self.stations):
            if station.parent is not None and self.total[VISITS, at] > 0:
                load = np.zeros((ROWS, self.width))
                load[:, station.parent] = self.total[:, at]
                sums[at] = self.total[VISITS, at], load
        for at, (rate, load) in sums.items():
            servers = self.stations[at].servers * self.stations[at].replicas
            if at not in self.members:
                self.members[at] = _Member(int(min(servers, LONGEST)), load)
            member = self.members[at]
            member.rate, member.profile = rate, load / rate
        members = (*self.roots, *self.members.values())
        for at in range(len(self.stations)):
            visits = float(self.total[VISITS, at]) - sum(
                m.rate * float(m.profile[VISITS, at]) for m in members
            )
            work = float(self.total[WORK, at]) - sum(m.rate * float(m.profile[WORK, at]) for m in members)
            work -= self.after_work[at]
            some = visits > LOOSE * self.total[VISITS, at] and work > LOOSE * self.total[WORK, at]
            self.loose_visits[at], self.loose_work[at] = (visits, work) if some else (0.0, 0.0)

    def _with_think(self, root: int) -> FloatArray:
        task = self.layers.model.tasks[self.plans[root].task]
        profile = self.held[root].copy()
        if task.think is not None:
            profile[TIME, -1] += task.think.mean
        return profile

    def think(self, root: int) -> float:
        """Return the think time of a cycle."""
        plan = self.plans[root]
        task = self.layers.model.tasks[plan.task]
        inside = sum(plan.graph.visits[s.name] * s.delay[0] for s in plan.steps if s.think)
        return inside + (task.think.mean if task.think is not None else 0.0)

    def thinks_alike(self, root: int) -> bool:
        """Tell whether clients think, and hardly ever longer or shorter than usual."""
        plan = self.plans[root]
        own = self.layers.model.tasks[plan.task].think
        times = [(plan.graph.visits[s.name], *s.delay) for s in plan.steps if s.think]
        if own is not None:
            times.append((1.0, own.mean, own.variance))
        squares = sum(n * mean**2 for n, mean, _ in times)
        return squares > 0 and sum(n * variance for n, _, variance in times) <= ALIKE * squares

    def solve(self, tolerance: float, *, rates_only: bool = False) -> bool:
        """Iterate to the fixed point; tell whether it was reached."""
        self._begin()
        before: list[float] = []
        for iteration in range(1, MAX_ITERATIONS + 1):
            self.iterations = iteration
            for at in reversed(self.order):
                self._network(self.members[at], at)
            for root in self.roots:
                if not root.is_open:
                    self._network(root, None)
            self._operate(1.0 if iteration <= 8 else 0.5 if iteration <= 20 else 0.25)
            self.evaluate()
            self.flow()
            self.profiles()
            lengths = [self._cycle_time(m, r) for m, r in zip(self.roots, self.layers.roots, strict=True)]
            now = lengths if rates_only and lengths else [*lengths, *self.wait, *self.stretch]
            scale = min(lengths, default=0.0)
            if before and all(
                abs(a - b) <= tolerance * max(abs(a), 0.01 * scale) for a, b in zip(now, before, strict=True)
            ):
                self._bound()
                return True
            before = now
        self._bound()
        return False

    def _cycle_time(self, member: _Member, root: int) -> float:
        if member.is_open:
            return self.times[root].hold[0]
        return member.population / member.rate

    def _bound(self) -> None:
        """Keep to what processors can do at most, which approximations may miss by a little."""
        full = [
            float(self.total[WORK, i]) / self._places(i)
            for i in range(len(self.stations))
            if i not in self.members or self.stations[i].parent is not None
        ]
        if full and max(full) > 1:
            for member in self.roots:
                if not member.is_open:
                    member.rate /= max(full)
            self.flow()

    def _places(self, at: int) -> float:
        return self.stations[at].servers * self.stations[at].replicas

    def _check_open(self) -> None:
        """Refuse arrivals from outside beyond what a station can do."""
        self.flow()
        for at, station in enumerate(self.stations):
            load = float(self.total[WORK, at]) / self._places(at)
            if load >= 1 - 1e-6:
                raise SimulationError(
                    f"requests arrive that keep {load:.3g} times its servers busy: its queue grows for ever",
                    where=station.name,
                    hint="lower the rate of arrivals, or add servers",
                )

    def _begin(self) -> None:
        """Start from an empty system, as fast as its slowest station allows."""
        model = self.layers.model
        self.evaluate()
        for root in self.layers.roots:
            task = model.tasks[self.plans[root].task]
            profile = self._with_think(root)
            lightest = float(profile[TIME].sum())
            if task.is_open:
                member = _Member(1, np.zeros_like(profile), self.plans[root].arrivals, is_open=True)
            else:
                if lightest <= 0:
                    raise SimulationError(
                        "a cycle takes no time at all, so it would repeat for ever at time 0",
                        where=f"tasks[{task.name!r}]",
                        hint="give it a think time, or some demand or delay on the way",
                    )
                member = _Member(int(task.threads), profile)
            self.roots.append(member)
        self._check_open()
        for member in self.roots:
            if not member.is_open:
                member.rate = member.population / float(member.profile[TIME].sum())
        self.flow()
        full = max(
            (float(self.total[WORK, i]) / self._places(i) for i in range(len(self.stations))), default=0.0
        )
        if full > 0.95:
            for member in self.roots:
                if not member.is_open:
                    member.rate *= 0.95 / full
            self.flow()
        self.profiles()
        self._arrange()
        for at, station in enumerate(self.stations):
            users = sum(
                m.population * (1 + 3 * (m.profile[TIME, at] < 0.999 * m.profile[WORK, at]))
                for m in (*self.roots, *self.members.values())
                if m.profile[VISITS, at] > 0
            )
            if self.after[at]:
                users += station.servers * station.replicas
            loose = self.loose_visits[at] > 0
            most = max(users + 300 * loose, 1)
            length = int(min(most, LONGEST))
            self.queues.append(Queue(station.servers, station.replicas, length, cut=most > LONGEST))
            self.jobs[at] = float(self.total[WORK, at])

    def _arrange(self) -> None:
        """Order members such that each comes before those it visits."""
        done: set[int] = set()
        order: list[int] = []

        def visit(member: _Member) -> None:
            for at in np.flatnonzero(member.profile[VISITS, :-1]):
                number = int(at)
                if number in self.members and number not in done:
                    done.add(number)
                    visit(self.members[number])
                    order.append(number)

        for root in self.roots:
            visit(root)
        for number, member in self.members.items():
            if number not in done:
                done.add(number)
                visit(member)
                order.append(number)
        self.order = order[::-1]

    def _job_rates(self, at: int, pace: FloatArray) -> FloatArray:
        """Return the jobs per second that a station completes with 1, 2, ... jobs there."""
        mean = self.total[WORK, at] / self.total[VISITS, at]
        member = self.members.get(at)
        if member is None or member.chain is None:
            return np.asarray(pace / mean)
        hold = self._hold(at)
        # More threads never do less, though it may look like it at numbers that hardly ever occur.
        weights = member.busy[1:] if len(member.busy) == len(member.chain.throughput) + 1 else None
        reached = rising(member.chain.throughput, weights)
        speeds = np.concatenate(((0.0,), reached)) * hold
        top = len(speeds) - 1
        found = np.interp(pace, np.arange(top + 1.0), speeds)
        return np.asarray(np.where(pace > top, speeds[-1] * pace / top, found) / mean)

    def _hold(self, at: int) -> float:
        """Return the mean time a server of a composite station is held, per visit."""
        parent = self.stations[at].parent
        if parent is not None:
            return float(self.total[WORK, at] / self.total[VISITS, at])
        time = cycles = 0.0
        for index, plan in enumerate(self.plans):
            if plan.station == at:
                time += self.rates[index] * self.times[index].hold[0]
                cycles += self.rates[index] * (1 + self.releases[index])
        return time / cycles

    def _network(self, member: _Member, own: int | None) -> None:
        """Solve the network of one member for every number of its customers."""
        profile = member.profile
        member.stations = [int(i) for i in np.flatnonzero(profile[VISITS, :-1] > 0)]
        member.views, member.thetas = [], []
        visits, rates = [], []
        for at in member.stations:
            count, work = float(profile[VISITS, at]), float(profile[WORK, at])
            theta = min(float(profile[TIME, at]) / work, 1.0) if work > 0 else 1.0
            theta = max(theta, 0.02)
            view, ease = self._view(
                at, member.rate * count, member.rate * work, member.population, theta, own, member
            )
            member.views.append(view)
            member.thetas.append(theta)
            visits.append(count * theta * ease)
            rates.append(self._parallel(view, member, at, theta))
        delay = float(profile[TIME, -1])
        size = member.population
        member.capacity = min([math.inf, *(float(r[-1]) / v for v, r in zip(visits, rates, strict=True))])
        if own is None:
            size = self._needed(member, delay, visits, rates)
            member.surplus = member.population - size
        # Scaled by what the slowest station can do at its best, not by what it does: where speeds fall with
        # the length, weights of hundreds of customers would else leave the range of numbers.
        guess = min((float(r.max()) / v for v, r in zip(visits, rates, strict=True)), default=member.rate)
        if size > LARGEST:
            # With that many clients the numbers at the stations must come out right at once.
            lightest = delay + sum(v / float(r[0]) for v, r in zip(visits, rates, strict=True))
            guess = min(size / lightest, member.capacity)
        if own is not None and member.chain is not None:
            guess = float(member.chain.throughput[-1])
        elif own is not None:
            guess = size / (delay + sum(v / r[0] for v, r in zip(visits, rates, strict=True)))
            guess = min([guess, *(r[-1] / v for v, r in zip(visits, rates, strict=True))])
        member.chain = Chain(size, delay, visits, rates, guess)

    def _needed(self, member: _Member, delay: float, visits: list[float], rates: list[FloatArray]) -> int:
        """Return how many customers keep the slowest station busy; the surplus only queues there."""
        size = member.population
        if not rates or size <= FEW:
            return size
        capacities = [float(r[-1]) / v for v, r in zip(visits, rates, strict=True)]
        slowest = int(np.argmin(capacities))
        most = capacities[slowest]
        elsewhere = delay * most
        for k, (v, r) in enumerate(zip(visits, rates, strict=True)):
            if k != slowest:
                weights = np.exp(np.cumsum(np.log(v * most / extended(r, FEW))))
                elsewhere += float(weights @ np.arange(1.0, FEW + 1)) / (1 + float(weights.sum()))
        needed = math.ceil(elsewhere + 6 * math.sqrt(elsewhere)) + len(rates[slowest]) + 50
        if delay <= 0:
            needed = min(needed, LARGEST)
        if needed >= size:
            return size
        member.slowest = slowest
        return needed

    def _parallel(self, view: SharedView, member: _Member, at: int, theta: float) -> FloatArray:
        """Return the rates of a station whose jobs come from branches that run side by side."""
        profile = member.profile
        if theta > 0.999:
            return view.rates
        apart = float(profile[APART, at])
        beside = float(profile[BESIDE, at]) / apart if apart > 0 else 0.0
        customers = np.arange(1.0, min(member.population, LONGEST) + 1)
        at_once = np.arange(len(view.rates) + 1.0)
        speeds = np.concatenate(((0.0,), view.rates))
        real = theta * np.interp(customers / theta, at_once, speeds)
        company = 1 + (1 / theta - 1) * beside
        alone = float(np.interp(company, at_once, speeds)) / company
        return np.asarray(real * (1 + (alone / real[0] - 1) / customers))

    def _view(
        self,
        at: int,
        rate: float,
        work: float,
        population: int,
        theta: float,
        own: int | None,
        user: _Member | None,
    ) -> tuple[SharedView, float]:
        """Return a station as one of its users sees it, and the user's work relative to the average.

        Args:
            at: The station.
            rate: Visits per second of the user.
            work: Seconds of service per second of the user.
            population: Customers of the user at most.
            theta: Customers per job of the user.
            own: The station whose servers the customers are; None if they are clients.
            user: The customers, if they are of a network.
        """
        station, queue = self.stations[at], self.queues[at]
        everything, all_work = float(self.total[VISITS, at]), float(self.total[WORK, at])
        mean = all_work / everything
        others, other_work = max(everything - rate, 0.0), max(all_work - work, 0.0)
        waited = 0.0 if station.shared else self.wait[at]
        ease = (waited + work / rate) / (waited + mean) if rate > 0 and waited + mean > 0 else 1.0
        crowd = None
        behind = self.after[at]
        if others + behind > 1e-7 * everything and other_work > 0:
            stretch = self.stretch[at] if station.shared else 1.0
            inside = others * waited + other_work * stretch
            mine = rate * waited + work * stretch
            usual, sources, limit, closed, callees = self._sources(at, rate, inside, own, user)
            bound = self._clients() if closed else math.inf
            queued = 0.0 if own is None else max(self.jobs[own] - 1, 0.0)
            most = max(min(usual, bound - queued - mine), 0.0)
            pause = max(most - inside, 0.02 * inside) / (others + behind)
            bound -= max(self._beneath(own) - 1, 0.0)
            per_job = inside / (others + behind)
            patience = others / inside * (waited + work / rate) if rate > 0 else 1.0
            ease_of_theirs = per_job / (stretch * (waited + mean))
            callers = population / theta
            crowd = Crowd(sources, limit, pause, ease_of_theirs, bound, patience, callees, callers)
        customers = population if theta > 0.999 else math.ceil(population / theta)
        waiting = np.arange(1.0, queue.length + 1) - queue.busy
        rates = self._job_rates(at, queue.pace)
        return SharedView(rates, waiting, crowd, min(customers, queue.length)), ease

    def _clients(self) -> float:
        """Return how many flows all clients have at most, on average over their parallel sections.

        Messages and arrivals have no bound.
        """
        if self.unbounded:
            return math.inf
        flows = 0.0
        for member in self.roots:
            if member.is_open:
                return math.inf
            work, spent = float(member.profile[WORK, :-1].sum()), float(member.profile[TIME, :-1].sum())
            flows += member.population * (max(work / spent, 1.0) if spent > 0 else 1.0)
        return flows

    def _beneath(self, own: int | None) -> float:
        """Return how many requests are at a pool while it is not empty."""
        if own is None:
            return 0.0
        busy = float(self.members[own].busy[1:].sum())
        return self.jobs[own] / busy if busy > 1e-9 else 0.0

    def _sources(
        self, at: int, rate: float, inside: float, own: int | None, user: _Member | None
    ) -> tuple[float, float, float, bool, float]:
        """Return how many sources the others at a station are like, and how many jobs of theirs it can hold.

        While a pool is full its threads are all there is; while it is not, arrivals depend on the clients.
        Whoever has called the pool ``own``, directly or not, waits there with a thread that cannot be at the
        station as well: the first result is on average over all times, the second while the pool is busy.
        The fourth result tells whether clients bound their number, the last how many of the sources work for
        ``own``: as many of its threads wait for them.
        """
        usual = sources = limit = callees = 0.0
        skipped = False
        everyone = min(self._clients(), UNBOUNDED + UNBOUNDED * inside)
        beneath = self._beneath(own)
        for number, member in (*((None, r) for r in self.roots), *self.members.items()):
            flow = float(member.rate * member.profile[VISITS, at])
            if flow <= 0:
                continue
            if not skipped and math.isclose(flow, rate, rel_tol=1e-9):
                skipped = True
                continue
            beside = member.profile[TIME, at] < 0.999 * member.profile[WORK, at]
            most = member.population * (2 if beside else 1)
            full = float(member.busy[-1])
            share = 0.0 if own is None else self._share(member, own)
            away = share * self.jobs[own] if own is not None else 0.0
            for left, all_left in ((away, True), (share * beneath, False)):
                free = max(most - left, 0.05 * min(most, 1))
                count = 1 / (full / free + (1 - full) / max(everyone - left, free))
                if all_left:
                    usual += count
                else:
                    sources += count
                    if user is not None and number is not None:
                        awaited = 1 - self.after_work[number] / float(self.total[WORK, number])
                        callees += count * awaited * self._share(user, number)
                    limit += max(math.ceil(free), 1)
        more = 0.0
        if self.loose_visits[at] > 0:
            more = UNBOUNDED + UNBOUNDED * inside
        elif self.after[at] > 0:
            more = self._places(at)
        return usual + more, sources + more, limit + more, more == 0, min(callees, sources)

    def _share(self, member: _Member, at: int) -> float:
        """Return which part of the requests to a pool comes from customers of a network, directly or not."""
        visits = float(member.profile[VISITS, at])
        for number, other in self.members.items():
            through = float(member.profile[VISITS, number])
            if number != at and through > 0 and other is not member:
                visits += through * float(other.profile[VISITS, at])
        return min(member.rate * visits / max(float(self.total[VISITS, at]), 1e-300), 1.0)

    # ------------------------------------------------------------------ operating point

    def _operate(self, gain: float) -> None:
        """Find out how full everything is, from the clients down."""
        count = len(self.stations)
        served, waiting, jobs, worked = ([0.0] * count for _ in range(4))
        crowds = [np.zeros(q.length + 1) for q in self.queues]
        for member in self.roots:
            if member.chain is not None:
                member.rate += gain * (float(member.chain.throughput[-1]) - member.rate)
                member.busy = np.zeros(len(member.chain.throughput) + 1)
                member.busy[-1] = 1.0
        for at in (None, *self.order):
            for member in self.roots if at is None else [self.members[at]]:
                if at is not None:
                    # Messages and arrivals hold threads, too: whatever these visit sees them.
                    self._loose(at, served, worked, jobs, waiting, crowds)
                    self._occupy(member, crowds[at], at)
                chain = member.chain
                if chain is None:
                    continue
                cycles = float(member.busy[1:] @ chain.throughput)
                for k, number in enumerate(member.stations):
                    theta = member.thetas[k]
                    there = chain.marginal(k, member.busy)
                    visited = cycles * float(member.profile[VISITS, number])
                    present = float(there @ np.arange(len(there))) / theta
                    view = member.views[k]
                    surplus = member.surplus / theta if member.surplus and k == member.slowest else 0.0
                    present += surplus
                    waiting[number] += surplus
                    served[number] += visited
                    worked[number] += cycles * float(member.profile[WORK, number])
                    jobs[number] += present
                    waiting[number] += view.waiting_of(there, theta)
                    view.add_total(there, theta, crowds[number], visited)
        for at, station in enumerate(self.stations):
            if at not in self.members:
                self._loose(at, served, worked, jobs, waiting, crowds)
            if served[at] <= 0:
                continue
            crowd = crowds[at] / crowds[at].sum()
            if station.shared:
                self.stretch[at] += gain * (max(float(jobs[at] / worked[at]), 1.0) - self.stretch[at])
            else:
                self.wait[at] += gain * (max(float(waiting[at] / served[at]), 0.0) - self.wait[at])
                mean = self.total[WORK, at] / self.total[VISITS, at]
                scv = self.total[SQUARES, at] / self.total[VISITS, at] / mean**2 - 1 if mean > 0 else 1.0
                if self.iterations <= ADAPTING:
                    self.queues[at].adapt(self._variability(at, max(scv, 0.0), mean), crowd)
            self.jobs[at] = jobs[at]
            self._split(at, crowd)

    def _split(self, at: int, crowd: FloatArray) -> None:
        """Tell what parallel branches of a request do to each other from what all others do."""
        meeting = float(self.total[MEETING, at])
        if meeting <= 0 and self.iterations > 1:
            self.plain_wait[at], self.plain_stretch[at] = self.wait[at], self.stretch[at]
            return
        if self.stations[at].shared:
            most = 0.95 * (self.stretch[at] - 1) * float(self.total[WORK, at])
        else:
            most = 0.95 * self.wait[at] * float(self.total[VISITS, at])
        if meeting > 0 and self.iterations <= ADAPTING:
            self.scale[at] = min(self.scale[at] * max(most / meeting, 0.2), 1.0)
        if self.stations[at].shared:
            self.plain_stretch[at] = max(self.stretch[at] - meeting / float(self.total[WORK, at]), 1.0)
        else:
            self.plain_wait[at] = max(self.wait[at] - meeting / float(self.total[VISITS, at]), 0.0)
        if self.iterations > ADAPTING:
            return
        # What one more job takes from another with so many others there, be they waiting or slowed down.
        pace = self._job_rates(at, self.queues[at].busy)
        pace = np.concatenate((pace, np.full(SIBLINGS, pace[-1])))
        each = pace / np.arange(1.0, len(pace) + 1)
        population = sum(math.inf if m.is_open else m.population for m in self.roots) or math.inf
        length = len(each) - SIBLINGS
        before = self.lost[:, at] * self.scale[at]
        for more in range(1, SIBLINGS + 1):
            lost = 1 - each[more : more + length] / each[:length]
            usual = float(crowd[:length] @ lost[: len(crowd)])
            self.lost[more, at] = lost[0] / population + (1 - 1 / population) * usual
        self.shifts += int(np.abs(self.lost[:, at] * self.scale[at] - before).max() > 10 * TOLERANCE)

    def _variability(self, at: int, scv: float, mean: float) -> float:
        """Return the variability of services as the queue feels it.

        Whoever comes straight back finds a service at its beginning, however variable it is, and before
        him those only who came during his last visit, which may have been shorter than most. The longer he
        was elsewhere, compared with a service, the less that matters.
        """
        returning = before = 0.0
        for rate, returns in zip(self.rates, self.returning, strict=True):
            for back in returns:
                if back.station == at and back.gap < mean:
                    last = self.times[back.plan].reply[0] if back.service is None else back.service
                    soon = rate * back.times * (1 - back.gap / mean)
                    returning += soon
                    before += soon * last
        share = min(returning / float(self.total[VISITS, at]) / self.stations[at].replicas, 1.0)
        meeting = float(self.total[MEETING, at] / self.total[VISITS, at])
        alone = max(1 - meeting / self.wait[at], 0.0) if self.wait[at] > 0 else 1.0
        felt = 1 + (1 - share) * alone * self._strain(at) * (scv - 1)
        if share <= 0:
            return felt
        waited = self.wait[at]
        less = (waited + before / returning) / (waited + mean)
        return (1 + felt) * (1 - share + share * less) - 1

    def _strain(self, at: int) -> float:
        """Return how far the servers themselves limit a station, 0 to 1: not if what they use is full."""
        member = self.members.get(at)
        if member is None or member.chain is None or member.population == 1:
            return 1.0
        # Where a request waits, its own replica is full and the others are as busy as usual.
        station = self.stations[at]
        busy = station.servers + (station.replicas - 1) * float(self.total[WORK, at]) / station.replicas
        reached = np.concatenate(((0.0,), member.chain.throughput))
        growth = np.diff(reached) / reached[1:] * np.arange(1.0, len(reached))
        elasticity = float(np.interp(busy, np.arange(1.0, len(reached)), growth))
        return min(max(elasticity, 0.0), 1.0)

    def _loose(self, at: int, served: list[float], worked: list[float], jobs: list[float],
               waiting: list[float], crowds: list[FloatArray]) -> None:  # fmt: skip
        """Account for the jobs of a station that nobody waits for (and open arrivals)."""
        rate, work = self.loose_visits[at], self.loose_work[at]
        if rate <= 0:
            return
        view, ease = self._view(at, rate, work, self.queues[at].length, 1.0, None, None)
        logs = np.cumsum(np.log(rate * ease / view.rates))
        there = np.exp(np.concatenate(((0.0,), logs)) - max(0.0, float(logs.max())))
        there /= there.sum()
        served[at] += rate
        worked[at] += work
        jobs[at] += float(there @ np.arange(len(there)))
        waiting[at] += view.waiting_of(there, 1.0)
        view.add_total(there, 1.0, crowds[at], rate)

    def _occupy(self, member: _Member, crowd: FloatArray, at: int) -> None:
        """Set how many servers of a composite station are busy, from how many requests are there."""
        queue = self.queues[at]
        member.busy = np.zeros(member.population + 1)
        if crowd.sum() <= 0:
            member.busy[0] = 1.0
            return
        crowd = crowd / crowd.sum()
        member.busy[0] = crowd[0]
        busy = np.minimum(queue.busy, member.population)
        low = np.floor(busy).astype(int)
        above = busy - low
        np.add.at(member.busy, low, crowd[1:] * (1 - above))
        np.add.at(member.busy, np.minimum(low + 1, member.population), crowd[1:] * above)


class _Report:
    """Turns the fixed point into figures."""

    def __init__(self, solver: _Solver) -> None:
        self.solver = solver
        self.layers = solver.layers
        self.model = solver.layers.model

    def estimate(self, converged: bool, started: float) -> Estimate:
        solver, model, names = self.solver, self.model, Names(self.model.tasks)
        tasks: dict[str, TaskEstimate] = {}
        entries: dict[str, tuple[float, float | None]] = {}
        cycles = responses = durations = 0.0
        for index, task in enumerate(model.tasks):
            plans = self.layers.of_task.get(index, [])
            if task.is_reference:
                member = solver.roots[[self.layers.plans[r].task for r in self.layers.roots].index(index)]
                root = plans[0]
                think = solver.think(root)
                if member.is_open:
                    duration = solver.times[root].hold[0] + (task.think.mean if task.think else 0.0)
                else:
                    duration = task.threads / member.rate
                response = max(duration - think, 0.0)
                cycles += member.rate
                responses += member.rate * response
                durations += member.rate * duration
                tasks[task.name] = TaskEstimate(
                    member.rate, None, member.rate * response, None, response, duration
                )
                entries[solver.plans[root].label] = member.rate, response
                continue
            for plan in plans:
                # Requests from outside are a load of their own, with a cycle each.
                arrivals = solver.plans[plan].arrivals
                cycles += arrivals
                responses += arrivals * solver.called[plan][0]
                durations += arrivals * solver.called[plan][0]
            rate = sum(solver.rates[p] for p in plans)
            busy = sum(solver.rates[p] * solver.times[p].hold[0] for p in plans)
            station = next((solver.plans[p].station for p in plans), None)
            if station is not None and busy > task.threads * task.replicas:
                busy = task.threads * task.replicas
            queue = 0.0 if station is None else float(solver.total[VISITS, station]) * solver.wait[station]
            utilization = None if task.threads == math.inf else busy / (task.threads * task.replicas)
            tasks[task.name] = TaskEstimate(rate, utilization, busy, queue)
            for plan in plans:
                seen = solver.rates[plan]
                entries[solver.plans[plan].label] = seen, solver.called[plan][0] if seen > 0 else None
            for entry in task.entries:
                entries.setdefault(names.entries[EntryRef(task.name, entry.name)], (0.0, None))
        processors: dict[str, float | None] = {}
        for processor in model.processors:
            name = f"processors[{processor.name!r}]"
            at = next((i for i, s in enumerate(solver.stations) if s.name == name), None)
            processors[processor.name] = (
                None
                if at is None
                else 1 - processor.available * (1 - float(solver.total[WORK, at]) / processor.cores)
            )
        warnings = list(self.layers.doubts)
        warnings += self._doubts(tasks, processors)
        warnings += self._meetings()
        if not converged:
            warnings.append(f"the iteration had not settled after {solver.iterations} rounds")
        return Estimate(
            cycle=CycleEstimate(cycles, responses / cycles, durations / cycles),
            tasks=tasks,
            entries=entries,
            processors=processors,
            iterations=solver.iterations,
            converged=converged,
            wall_seconds=time.perf_counter() - started,
            warnings=tuple(warnings),
        )

    def _meetings(self) -> Iterator[str]:
        """Yield where messages come at the same moments as other work, which is not estimated."""
        for station, senders in meetings(self.layers.plans).items():
            first, more = self.layers.plans[senders[0]].label, len(senders) - 1
            place = self.layers.stations[station].name
            others = f" and {more} other{'s' * (more > 1)}" if more else ""
            yield (
                f"messages sent by {first!r}{others} meet at {place} the work of"
                " their sender or of each other, and the estimate takes them to come at random moments:"
                " waiting times there can be several times as long; simulate it"
            )

    def _doubts(
        self, tasks: Mapping[str, TaskEstimate], processors: Mapping[str, float | None]
    ) -> Iterator[str]:
        """Yield what the approximations are known to miss here."""
        plans, names = self.layers.plans, [task.name for task in self.model.tasks]
        roots = zip(self.solver.roots, self.layers.roots, strict=True)
        return doubts(
            {name: share for name, task in tasks.items() if (share := task.utilization) is not None},
            {name: share for name, share in processors.items() if share is not None},
            [
                names[plans[root].task]
                for member, root in roots
                if not member.is_open and member.population > 1 and self.solver.thinks_alike(root)
            ],
            {
                (names[plan.task], names[plans[call.target].task])
                for plan in plans
                for step in plan.steps
                for call in step.calls
                if call.kind == "synchronous"
            },
        )
