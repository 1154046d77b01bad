"""What does a model predict, roughly, within milliseconds? A layered mean-value estimate.

Every place where requests queue becomes a *station*: the threads of a task, its front, a processor.
Whoever holds a server of one station while he visits others (clients, threads) is a *customer* of a closed
network of those. Networks are solved from the bottom up for every number of customers; the throughput
they reach with 1, 2, ... threads is the speed of the pool's station in the network above (aggregation).
What stations have in common (a processor under several tasks, a task with several callers) is settled
by iteration: in each network the others appear as sources of a known throughput. See
docs/explanation/analytic.md for the approximations and for how wrong they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mup.errors import SimulationError
from mup.lqn.model import Model
from mup.lqn.refs import EntryRef, Names
from simulator.analytic.doubts import doubts, meetings
from simulator.analytic.fixed_point import TOLERANCE, FixedPoint
from simulator.analytic.layers import Layers
from simulator.analytic.operating_point import VISITS, WORK
from simulator.preparing import Observed, prepared

__all__ = ["CycleEstimate", "Estimate", "TaskEstimate", "estimate", "observed"]

ROUGHLY: Final = 0.003
"""Relative change of cycle times from which on the estimate of a load goes on."""
ALIKE: Final = 0.1
"""Squared coefficient of variation of think times up to which they are taken as always equally long."""


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
    layers = Layers.of(prepared(model, observed, awake=True).model)
    try:
        # What is no number anywhere would be one nowhere in the end.
        with np.errstate(invalid="raise"):
            fixed = FixedPoint(layers)
            fixed.solve(tolerance, rates_only=rates_only)
            return _Report(fixed).estimate(started)
    except ArithmeticError as error:
        raise SimulationError(
            "the iteration behind the analytic estimate breaks down for this model",
            where=model.name,
            hint="simulate it: 'mup simulate' without --engine analytic",
        ) from error


class _Report:
    """Turns the fixed point into figures."""

    def __init__(self, fixed: FixedPoint) -> None:
        self.point = fixed.point
        self.converged = fixed.converged
        self.layers = fixed.point.layers
        self.model = fixed.point.layers.model

    def estimate(self, started: float) -> Estimate:
        point, model, names = self.point, self.model, Names(self.model.tasks)
        tasks: dict[str, TaskEstimate] = {}
        entries: dict[str, tuple[float, float | None]] = {}
        cycles = responses = durations = 0.0
        roots = zip(self.layers.roots, point.clients, strict=True)
        clients = {self.layers.plans[root].task: customers for root, customers in roots}
        for index, task in enumerate(model.tasks):
            plans = self.layers.of_task.get(index, [])
            if task.is_reference:
                customers = clients[index]
                root = plans[0]
                think = point.think(root)
                if customers.is_open:
                    duration = point.times[root].hold[0] + (task.think.mean if task.think else 0.0)
                else:
                    duration = task.threads / customers.rate
                response = max(duration - think, 0.0)
                cycles += customers.rate
                responses += customers.rate * response
                durations += customers.rate * duration
                tasks[task.name] = TaskEstimate(
                    customers.rate, None, customers.rate * response, None, response, duration
                )
                entries[point.plans[root].label] = customers.rate, response
                continue
            for plan in plans:
                # Requests from outside are a load of their own, with a cycle each.
                arrivals = point.plans[plan].arrivals
                cycles += arrivals
                responses += arrivals * point.called[plan][0]
                durations += arrivals * point.called[plan][0]
            rate = sum(point.rates[p] for p in plans)
            busy = sum(point.rates[p] * point.times[p].hold[0] for p in plans)
            station = next((point.plans[p].station for p in plans), None)
            if station is not None and busy > task.threads * task.replicas:
                busy = task.threads * task.replicas
            queue = 0.0 if station is None else float(point.total[VISITS, station]) * point.wait[station]
            utilization = None if task.threads == math.inf else busy / (task.threads * task.replicas)
            tasks[task.name] = TaskEstimate(rate, utilization, busy, queue)
            for plan in plans:
                seen = point.rates[plan]
                entries[point.plans[plan].label] = seen, point.called[plan][0] if seen > 0 else None
            for entry in task.entries:
                entries.setdefault(names.entries[EntryRef(task.name, entry.name)], (0.0, None))
        processors: dict[str, float | None] = {}
        numbers = {station.name: at for at, station in enumerate(point.stations)}
        for processor in model.processors:
            at = numbers.get(f"processors[{processor.name!r}]")
            processors[processor.name] = (
                None
                if at is None
                else 1 - processor.available * (1 - float(point.total[WORK, at]) / processor.cores)
            )
        warnings = list(self.layers.doubts)
        warnings += self._doubts(tasks, processors)
        warnings += self._meetings()
        if not self.converged:
            warnings.append(f"the iteration had not settled after {point.iterations} rounds")
        return Estimate(
            cycle=CycleEstimate(cycles, responses / cycles, durations / cycles),
            tasks=tasks,
            entries=entries,
            processors=processors,
            iterations=point.iterations,
            converged=self.converged,
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
        roots = zip(self.point.clients, self.layers.roots, strict=True)
        return doubts(
            {name: share for name, task in tasks.items() if (share := task.utilization) is not None},
            {name: share for name, share in processors.items() if share is not None},
            [
                names[plans[root].task]
                for customers, root in roots
                if not customers.is_open and customers.population > 1 and self._thinks_alike(root)
            ],
            {
                (names[plan.task], names[plans[call.target].task])
                for plan in plans
                for step in plan.steps
                for call in step.calls
                if call.kind == "synchronous"
            },
        )

    def _thinks_alike(self, root: int) -> bool:
        """Tell whether clients think, and hardly ever longer or shorter than usual."""
        plan = self.layers.plans[root]
        own = self.model.tasks[plan.task].think
        times = [(plan.graph.visits[s.name], *s.delay) for s in plan.steps if s.think]
        if own is not None:
            times.append((1.0, own.mean, own.variance))
        squares = sum(n * mean**2 for n, mean, _ in times)
        return squares > 0 and sum(n * variance for n, _, variance in times) <= ALIKE * squares
