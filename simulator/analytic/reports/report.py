"""What figures does an operating point come to, and what is doubtful about them?"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from mup.lqn.model import Processor, Task
from mup.lqn.refs import EntryRef, Names
from simulator.analytic.layers import Layers
from simulator.analytic.reports.estimate_warnings import estimate_warnings, meetings

__all__ = ["CycleEstimate", "Estimate", "Reporter", "Solution", "TaskEstimate", "ThinkTime"]

ALIKE: Final = 0.1
"""Squared coefficient of variation of think times up to which they are taken as always equally long."""

ThinkTime = tuple[float, float, float]
"""How often per cycle a client thinks, and the mean and variance of that time."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What the fixed point iteration has found.

    Attributes:
        clients: Per source of load, cycles per second.
        thinks: Per source of load, the think times of a cycle.
        rates, holds, called: Per plan: requests per second, seconds its thread is held, and until its reply.
        visits, work, waits: Per station: visits and seconds of service per second, seconds in the queue.
        iterations, converged: How it was reached.
    """

    clients: Sequence[float]
    thinks: Sequence[Sequence[ThinkTime]]
    rates: Sequence[float]
    holds: Sequence[float]
    called: Sequence[float]
    visits: Sequence[float]
    work: Sequence[float]
    waits: Sequence[float]
    iterations: int
    converged: bool


class Reporter:
    """Turns what was found into figures, for models of one structure.

    Args:
        layers: Of one of these models.
    """

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        names = Names(layers.model.tasks)
        self._labels = [
            [names.entries[EntryRef(task.name, entry.name)] for entry in task.entries]
            for task in layers.model.tasks
        ]
        self._meetings = list(self._met())
        count = len(layers.model.tasks)
        self._task_of = np.array([count if p.is_front else p.task for p in layers.plans], dtype=np.intp)
        self._from_outside = [
            number
            for number, plan in enumerate(layers.plans)
            if plan.arrivals and not layers.model.tasks[plan.task].is_reference
        ]
        tasks = [task.name for task in layers.model.tasks]
        plans = layers.plans
        self._waits = {
            (tasks[plan.task], tasks[plans[call.target].task])
            for plan in plans
            for step in plan.steps
            for call in step.calls
            if call.kind == "synchronous" and not plans[call.target].is_front
        }

    def estimate(
        self, found: Solution, tasks: Sequence[Task], processors: Sequence[Processor], started: float
    ) -> Estimate:
        """Return the figures.

        Args:
            found: The operating point.
            tasks: Of the model, in the order of the layers.
            processors: Of the model.
            started: When the estimate was begun, by ``time.perf_counter``.
        """
        layers = self._layers
        figures = self.tasks(found, tasks)
        cycles = responses = durations = 0.0
        for task in tasks:
            own = figures[task.name]
            if own.response_time is not None and own.cycle_time is not None:
                cycles += own.throughput
                responses += own.throughput * own.response_time
                durations += own.throughput * own.cycle_time
        for plan in self._from_outside:
            # Requests from outside are a load of their own, with a cycle each.
            arrivals = layers.plans[plan].arrivals
            cycles += arrivals
            responses += arrivals * found.called[plan]
            durations += arrivals * found.called[plan]
        entries: dict[str, tuple[float, float | None]] = {}
        for index, task in enumerate(tasks):
            plans = layers.of_task.get(index, [])
            if task.is_reference:
                own = figures[task.name]
                entries[layers.plans[plans[0]].label] = own.throughput, own.response_time
                continue
            for plan in plans:
                seen = found.rates[plan]
                entries[layers.plans[plan].label] = seen, found.called[plan] if seen > 0 else None
            for label in self._labels[index]:
                entries.setdefault(label, (0.0, None))
        shares = self.processors(found, processors)
        warnings = [*layers.warnings, *self._warnings(found, figures, shares, tasks), *self._meetings]
        if not found.converged:
            warnings.append(f"the iteration had not converged after {found.iterations} rounds")
        return Estimate(
            cycle=CycleEstimate(cycles, responses / cycles, durations / cycles),
            tasks=figures,
            entries=entries,
            processors=shares,
            iterations=found.iterations,
            converged=found.converged,
            wall_seconds=time.perf_counter() - started,
            warnings=tuple(warnings),
        )

    def tasks(self, found: Solution, tasks: Sequence[Task]) -> dict[str, TaskEstimate]:
        """Return the figures of all tasks."""
        layers = self._layers
        rates, holds = np.asarray(found.rates), np.asarray(found.holds)
        throughputs = np.bincount(self._task_of, rates, len(tasks) + 1).tolist()
        at_work = np.bincount(self._task_of, rates * holds, len(tasks) + 1).tolist()
        figures: dict[str, TaskEstimate] = {}
        for number, root in enumerate(layers.roots):
            task, rate = tasks[layers.plans[root].task], found.clients[number]
            think = sum(often * mean for often, mean, _ in found.thinks[number])
            if task.is_open:
                duration = found.holds[root] + (task.think.mean if task.think else 0.0)
            else:
                duration = task.threads / rate
            response = max(duration - think, 0.0)
            figures[task.name] = TaskEstimate(rate, None, rate * response, None, response, duration)
        for index, task in enumerate(tasks):
            if task.is_reference:
                continue
            rate, busy = throughputs[index], at_work[index]
            plans = layers.of_task.get(index)
            station = layers.plans[plans[0]].station if plans else None
            if station is not None and busy > task.threads * task.replicas:
                busy = task.threads * task.replicas
            queue = 0.0 if station is None else found.visits[station] * found.waits[station]
            utilization = None if task.threads == math.inf else busy / (task.threads * task.replicas)
            figures[task.name] = TaskEstimate(rate, utilization, busy, queue)
        return {task.name: figures[task.name] for task in tasks}

    def processors(self, found: Solution, processors: Sequence[Processor]) -> dict[str, float | None]:
        """Return the utilization of every processor; None of one that has a core for every thread."""
        stations = {station.name: at for at, station in enumerate(self._layers.stations)}
        shares: dict[str, float | None] = {}
        for processor in processors:
            at = stations.get(f"processors[{processor.name!r}]")
            shares[processor.name] = (
                None if at is None else 1 - processor.available * (1 - found.work[at] / processor.cores)
            )
        return shares

    def _met(self) -> Iterator[str]:
        """Yield where messages come at the same moments as other work, which is not estimated."""
        for station, senders in meetings(self._layers.plans).items():
            first, more = self._layers.plans[senders[0]].label, len(senders) - 1
            place = self._layers.stations[station].name
            others = f" and {more} other{'s' * (more > 1)}" if more else ""
            yield (
                f"messages sent by {first!r}{others} meet at {place} the work of"
                " their sender or of each other, and the estimate takes them to come at random moments:"
                " waiting times there can be several times as long; simulate it"
            )

    def _warnings(
        self,
        found: Solution,
        figures: Mapping[str, TaskEstimate],
        shares: Mapping[str, float | None],
        tasks: Sequence[Task],
    ) -> Iterator[str]:
        """Yield what the approximations are known to miss here."""
        sources = [tasks[self._layers.plans[root].task] for root in self._layers.roots]
        return estimate_warnings(
            {name: share for name, task in figures.items() if (share := task.utilization) is not None},
            {name: share for name, share in shares.items() if share is not None},
            [
                task.name
                for task, thinks in zip(sources, found.thinks, strict=True)
                if not task.is_open and int(task.threads) > 1 and _alike(thinks)
            ],
            self._waits,
        )


def _alike(thinks: Sequence[ThinkTime]) -> bool:
    """Tell whether clients think, and hardly ever longer or shorter than usual."""
    squares = sum(often * mean**2 for often, mean, _ in thinks)
    return squares > 0 and sum(often * variance for often, _, variance in thinks) <= ALIKE * squares
