"""Which deployments are there? Values of pools, replicas and cores, each axis ascending.

A *point* says which value of every axis is taken, by its position. What it costs never falls when a position
rises, for prices are not negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from mup.errors import UsageError
from mup.lqn.distributions import Constant
from mup.lqn.model import Activity, Entry, Model, Task
from simulator.studies.planning.prices import Prices
from simulator.studies.whatif import Axis, Change, Scenario

__all__ = ["KINDS", "Point", "Space"]

KINDS: Final = ("pool", "replicas", "cores")
"""What can be varied: more of it helps, and costs."""

Point = tuple[int, ...]

NOTHING: Final = Activity(name="nothing", demand=Constant(0.0), delay=Constant(0.0))


@dataclass(frozen=True)
class Space:
    """The deployments of a model that are to be compared.

    Attributes:
        model: With the load to plan for.
        axes: One per pool, number of replicas or of cores that varies; values ascend.
        prices: What things cost.

    Raises:
        UsageError: There is no axis, one is given twice, or the model has no such thing.
    """

    model: Model
    axes: tuple[Axis, ...]
    prices: Prices

    def __post_init__(self) -> None:
        if not self.axes:
            raise UsageError(
                "nothing to vary", hint="for example --vary 'pool:*=1..16' or --vary replicas:B=1..4"
            )
        seen = set()
        for axis in self.axes:
            key = axis[0].kind, axis[0].name
            if key in seen:
                raise UsageError(f"--vary: {' of '.join(key)} is given twice", hint="list its values once")
            seen.add(key)
            for change in axis:
                change.apply(self._skeleton)  # what cannot be is refused at once
        self.prices.check(self.model)

    @property
    def size(self) -> int:
        """How many deployments there are."""
        return math.prod(map(len, self.axes))

    @property
    def smallest(self) -> Point:
        """The least of everything."""
        return (0,) * len(self.axes)

    @property
    def largest(self) -> Point:
        """The most of everything."""
        return tuple(len(axis) - 1 for axis in self.axes)

    def changes(self, point: Point) -> tuple[Change, ...]:
        """Return the changes that make a deployment of the model."""
        return tuple(axis[at] for axis, at in zip(self.axes, point, strict=True))

    def scenario(self, point: Point) -> Scenario:
        """Return a deployment."""
        changes = self.changes(point)
        bare = self.bare(point)
        changed = {t.name: t for t in bare.tasks}
        tasks = tuple(
            replace(t, threads=changed[t.name].threads, replicas=changed[t.name].replicas)
            for t in self.model.tasks
        )
        # One change of the whole model: it checks all its rules whenever it is made.
        return Scenario(changes, replace(self.model, tasks=tasks, processors=bare.processors))

    def bare(self, point: Point) -> Model:
        """Return the tasks and processors of a deployment, without what happens inside."""
        bare = self._skeleton
        for change in self.changes(point):
            bare = change.apply(bare)
        return bare

    def cost(self, point: Point) -> float:
        """Return what a deployment costs: all machines, replicas and threads of the model, varied or not."""
        values = {(c.kind, c.name): c.value for c in self.changes(point)}
        parts = []
        for processor in self.model.processors:
            if processor.parent is None:  # parts are paid with the machine they are a part of
                cores = float(values.get(("cores", processor.name), processor.cores))
                parts.append(self.prices.of_processor(processor.name, cores))
        for task in self.model.tasks:
            if not task.is_reference:
                replicas = int(values.get(("replicas", task.name), task.replicas))
                threads = float(values.get(("pool", task.name), task.threads))
                parts.append(self.prices.of_task(task.name, replicas, threads))
        return math.fsum(parts)

    def amount(self, point: Point) -> float:
        """Return how much a deployment has of everything: of equally dear ones the smaller is better."""
        return math.fsum(float(c.value) for c in self.changes(point))

    def rank(self, point: Point) -> tuple[float, float, Point]:
        """Return what decides which of two deployments is better: cost, amount, and a rule for ties."""
        return self.cost(point), self.amount(point), point

    @cached_property
    def _skeleton(self) -> Model:
        """The model without what happens inside: edits of a deployment read and write nothing else."""
        return Model(name=self.model.name, processors=self.model.processors, tasks=_bare(self.model.tasks))


def _bare(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Return tasks that do nothing, as many at a time as before."""
    found = []
    for task in tasks:
        arrivals = task.entries[0].arrivals if task.is_reference else None
        entry = Entry(name="/", start=NOTHING.name, activities=(NOTHING,), arrivals=arrivals)
        found.append(replace(task, entries=(entry,), front=None, load_dependence=None, setup=None))
    return tuple(found)
