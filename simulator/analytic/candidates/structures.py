"""What do models that differ in numbers have in common: all of them, and those with the same stations?"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.lqn.lowered import is_limited, requests_of, slices_of, wholes
from mup.lqn.model import Model, Processor, Task
from mup.lqn.visits import entry_rates
from mup.native.binding import held
from simulator.analytic.approximations.many_customers import FEW
from simulator.analytic.candidates.changes import Candidate
from simulator.analytic.candidates.layouts import layout_of, numbers_of, point_for
from simulator.analytic.compiled.records import Point
from simulator.analytic.layers import MOST_VARIABLE, Layers, Populations
from simulator.analytic.operating_point import VISITS, WORK
from simulator.analytic.reports.report import Reporter, Solution, TaskEstimate, ThinkTime
from simulator.preparing import Load
from simulator.preparing.times import Times, TimesAtLoad

__all__ = ["Family", "Structure"]

FloatArray = npt.NDArray[np.float64]


class Family:
    """Models whose requests flow alike.

    Attributes:
        times: Of the models.

    Args:
        model: One of them.
    """

    def __init__(self, model: Model) -> None:
        self.times = TimesAtLoad(model.tasks)
        self._often: dict[str, dict[str, float]] = {}
        for (source, _), requests in entry_rates(model).items():
            often = self._often.setdefault(source, {})
            for (task, _), times in requests.items():
                often[task] = often.get(task, 0.0) + times
        self._populations: dict[Hashable, Populations] = {}

    def load(
        self,
        tasks: Sequence[Task],
        figures: Mapping[str, TaskEstimate],
        utilization: Mapping[str, float | None],
    ) -> Load:
        """Return the load of an estimated model, as ``simulator.preparing`` finds it.

        Args:
            tasks: Of the model.
            figures: Of the tasks.
            utilization: Of the processors.
        """
        total = dict.fromkeys((task.name for task in tasks), 0.0)
        clients = 0.0
        for task in tasks:
            often = self._often.get(task.name)
            if often is None:
                continue
            if task.is_reference and not task.is_open:
                cycles = figures[task.name].throughput
                clients += task.threads * task.replicas
            else:
                cycles = sum(1 / e.arrivals.mean for e in task.entries if e.arrivals is not None)
                clients = math.inf
            for name, times in often.items():
                total[name] += cycles * times
        return Load(
            {task.name: total[task.name] / task.replicas for task in tasks},
            {name: share for name, share in utilization.items() if share is not None},
            {task.name: figures[task.name].busy / task.replicas for task in tasks},
            clients,
        )

    def form(self, candidate: Candidate, times: Times) -> Hashable:
        """Return on what the pools that can run out depend, beside numbers of threads."""
        is_open = tuple(e.arrivals is not None for task in candidate.tasks for e in task.entries)
        return times.pattern(), is_open

    def key(self, candidate: Candidate, times: Times) -> Hashable | None:
        """Return what the stations of a candidate depend on; None if that is not known yet."""
        form = self.form(candidate, times)
        populations = self._populations.get(form)
        if populations is None:
            return None
        by_name = {p.name: p for p in candidate.processors}
        return (
            form,
            tuple(populations.limited(candidate.tasks)),
            tuple((task.processor, task.admission == "hol") for task in candidate.tasks),
            tuple(_kind(p, by_name) for p in candidate.processors),
        )

    def learn(self, candidate: Candidate, times: Times, layers: Layers) -> Hashable | None:
        """Note what is to be known from the layers of a candidate; return its key."""
        self._populations[self.form(candidate, times)] = Populations(layers.plans, layers.order)
        return self.key(candidate, times)


def _kind(processor: Processor, by_name: dict[str, Processor]) -> tuple[Hashable, ...]:
    """Return what is no number of a processor; the numbers that say to which core it is pinned are none."""
    pinned: tuple[float, ...] = ()
    if processor.parent is not None and processor.core is not None:
        pinned = processor.core, processor.cores, by_name[processor.parent].cores
    migrates = processor.migration is not None
    return processor.discipline, is_limited(processor), migrates, processor.parent, pinned


class Structure:
    """Models of a family that have the same stations.

    Attributes:
        layout, numbers: For compiled code; the numbers are those of the candidate taken last.
        reporter: Makes figures.

    Args:
        layers: Of one of them.
        model: The same one.
        times: Of the family.
    """

    def __init__(self, layers: Layers, model: Model, times: TimesAtLoad) -> None:
        self._layers = layers
        layout, numbers = layout_of(layers), numbers_of(layers)
        self._layout, self._numbers = layout, numbers
        self.layout, self.numbers = held(layout), held(numbers)
        self.reporter = Reporter(layers)
        self._point: tuple[FloatArray, Point, Any] | None = None
        tasks = model.tasks
        chains: dict[tuple[str, ...], int] = {}
        self._source = np.zeros(len(layout.visits), dtype=np.intp)
        self._cut = np.ones(len(layout.visits))
        self._chain = np.zeros(len(layout.visits), dtype=np.intp)
        row = 0
        for plan in layers.plans:
            task = tasks[plan.task]
            home = model.front_processor(task) if plan.is_front else task.processor
            names = tuple(p.name for p in _within(model, home))
            chain = chains.setdefault(names, len(chains))
            entry = None if plan.is_front else task.entry(plan.entry)
            for step in plan.steps:
                self._chain[row] = chain
                if entry is None:
                    self._source[row] = times.fronts[task.name] + (plan.entry == "reply")
                else:
                    activity = entry.activity(step.name)
                    cut = slices_of(activity, requests_of(activity))
                    self._cut[row] = 1.0 if cut is None else cut.number
                    self._source[row] = times.places[task.name, entry.name, step.name]
                row += 1
        self._chains = list(chains)
        parts = wholes(model)
        self._per_core = [
            station.processor is not None
            and (p := model.processor(station.processor)).discipline == "cores"
            and p.migration is None
            and p.name not in parts
            for station in layers.stations
        ]
        firsts = layout.step_first.tolist()
        self._thinks = [
            [firsts[root] + k for k, step in enumerate(layers.plans[root].steps) if step.think]
            for root in layers.roots
        ]

    def take(self, tasks: Sequence[Task], processors: Sequence[Processor], times: Times) -> bool:
        """Take the numbers of a candidate; False if compiled code cannot.

        Args:
            tasks: Of the candidate.
            processors: The same, with their speeds at its load.
            times: At its load.
        """
        layers, numbers = self._layers, self._numbers
        by_name = {p.name: p for p in processors}
        speeds = np.array(
            [math.prod(by_name[n].speed * by_name[n].available for n in names) for names in self._chains]
        )[self._chain]
        source, cut = self._source, self._cut
        demand = times.demand[source]
        most = MOST_VARIABLE * demand**2
        numbers.slices[:] = np.where(demand > 0, cut, 0.0)
        numbers.demand[:] = demand / speeds / cut
        numbers.demand_variance[:] = np.minimum(times.demand_variance[source], most) / (speeds * cut) ** 2
        delay = times.delay[source]
        numbers.delay[:] = delay
        numbers.delay_variance[:] = np.minimum(times.delay_variance[source], MOST_VARIABLE * delay**2)
        for at, station in enumerate(layers.stations):
            servers, replicas = 1.0, 1
            if station.processor is not None:
                servers = by_name[station.processor].cores
                if self._per_core[at]:
                    servers, replicas = 1.0, int(servers)
            elif station.task is not None:
                task = tasks[station.task]
                servers, replicas = 1.0 if station.is_front else task.threads, task.replicas
            if servers < 1:
                return False
            numbers.servers[at], numbers.replicas[at] = servers, replicas
        numbers.arrivals[:] = 0.0
        for number, root in enumerate(layers.roots):
            task = tasks[layers.plans[root].task]
            if task.is_open:
                continue
            if task.threads > FEW:
                return False
            numbers.population[number] = int(task.threads)
            numbers.think[number] = 0.0 if task.think is None else task.think.mean
        for index, plan in enumerate(layers.plans):
            if plan.arrivals and not plan.is_front:
                arrivals = tasks[plan.task].entry(plan.entry).arrivals
                numbers.arrivals[index] = plan.arrivals = 0.0 if arrivals is None else 1 / arrivals.mean
        return True

    def point(self, area: FloatArray) -> tuple[Point, Any]:
        """Return room for an operating point, and the same as compiled code takes it."""
        if self._point is None or self._point[0] is not area:
            point = point_for(self._layout, area)
            self._point = area, point, held(point)
        return self._point[1:]

    def solution(self, tasks: Sequence[Task], point: Point, *, converged: bool) -> Solution:
        """Return what was found for the candidate taken last."""
        layers, numbers = self._layers, self._numbers
        thinks: list[list[ThinkTime]] = []
        for root, steps in zip(layers.roots, self._thinks, strict=True):
            found = [
                (float(self._layout.visits[s]), float(numbers.delay[s]), float(numbers.delay_variance[s]))
                for s in steps
            ]
            own = tasks[layers.plans[root].task].think
            thinks.append(found if own is None else [*found, (1.0, own.mean, own.variance)])
        stations = len(layers.stations)
        return Solution(
            clients=point.rate[: len(layers.roots)].tolist(),
            thinks=thinks,
            rates=point.rates.tolist(),
            holds=point.hold[:, 0].tolist(),
            called=point.called[:, 0].tolist(),
            visits=point.total[VISITS, :stations].tolist(),
            work=point.total[WORK, :stations].tolist(),
            waits=point.wait.tolist(),
            iterations=int(point.counts[0]),
            converged=converged,
        )


def _within(model: Model, name: str | None) -> list[Processor]:
    """Return a processor and those it is a part of."""
    found = []
    while name is not None:
        processor = model.processor(name)
        found.append(processor)
        name = processor.parent
    return found
