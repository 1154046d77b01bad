"""Parameters of a model: the number that a path names, and the values it can have.

A path is ``KIND`` or ``KIND.NAME``: the kinds of change ``mup whatif`` knows that are numbers, and the mean
times of activities and entries. docs/reference/fit-data.md lists them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from mup.errors import UsageError, did_you_mean
from mup.lqn.edits import with_think
from mup.lqn.model import Model
from mup.lqn.refs import EntryRef, Names, ParameterRef
from mup.lqn.routing_edits import probability_of
from mup.lqn.time_edits import TimeKind, mean_time, with_time
from mup.lqn.visits import activity_visits
from simulator.studies.whatif import Change

__all__ = ["KINDS", "WHOLE", "Parameter", "parameter"]

LOADS: Final = ("clients", "arrivals", "think")
"""Kinds whose name may be left out."""
WHOLE: Final = ("clients", "pool", "replicas", "cores")
"""Kinds whose values are whole numbers >= 1."""
TIMES: Final = ("demand", "delay")
KINDS: Final = (*TIMES, "think", "probability", "calls", "speed", "arrivals", *WHOLE)

SMALLEST: Final = 1e-9
"""Of what has to be positive: speeds and rates."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number of a model that can be set.

    Attributes:
        kind, name: What it is; see ``KINDS``.
        low, high: The values it can have, or is allowed to have.
    """

    kind: str
    name: str
    low: float
    high: float

    @property
    def path(self) -> str:
        """How it is spelt."""
        return f"{self.kind}.{self.name}" if self.name else self.kind

    @property
    def whole(self) -> bool:
        """True if it is a whole number."""
        return self.kind in WHOLE

    @property
    def linear(self) -> bool:
        """True if all mean times of a model are linear in it and nothing else depends on it."""
        return self.kind in (*TIMES, "think")

    def apply(self, model: Model, value: float) -> Model:
        """Return the model with this value.

        Raises:
            UsageError: The model has no such parameter, or the value is out of range.
        """
        if self.kind in TIMES:
            return with_time(model, cast("TimeKind", self.kind), self.name, value)
        if self.kind == "think":
            return with_think(model, value)
        return Change(self.kind, self.name, int(value) if self.whole else value).apply(model)

    def owner(self, model: Model) -> str:
        """Return the task, or processor, of a model that it belongs to.

        Raises:
            UsageError: The model has no such parameter.
        """
        names = Names(model.tasks)
        if self.kind == "calls":
            return names.spoken_call(self.name).caller.task
        if self.kind in (*TIMES, "arrivals") and (entry := names.spoken_entry(self.name)) is not None:
            return entry.task
        if self.kind in (*TIMES, "probability"):
            return names.spoken_activity(self.name).task
        return self.name

    def read(self, model: Model) -> float | None:
        """Return its value in a model; None if it was never measured.

        Raises:
            UsageError: The model has no such parameter.
        """
        return READERS[self.kind](model, self.name)


def parameter(path: str) -> Parameter:
    """Return what a path names; whether a model has it shows when it is read or applied.

    Raises:
        UsageError: No such kind, or a name is missing or given where there is none.
    """
    kind, name = ParameterRef.parse(path)
    if kind not in KINDS:
        raise UsageError(f"no parameter {path!r}; {did_you_mean(kind, list(KINDS))}")
    if not name and kind not in LOADS:
        raise UsageError(f"{kind} of what? A path is {kind}.NAME, got {path!r}")
    if name and kind == "think":
        raise UsageError(f"think has no name: it is the think time of all clients, got {path!r}")
    low, high = 0.0, math.inf
    if kind in WHOLE:
        low = 1
    elif kind in ("speed", "arrivals"):
        low = SMALLEST
    elif kind == "probability":
        high = 1.0
    return Parameter(kind, name, low, high)


def _clients(model: Model, name: str) -> float:
    return model.task(name).threads if name else sum(t.threads for t in model.reference_tasks)


def _think(model: Model, _: str) -> float | None:
    """Return the mean think time of the first clients; None if some part of it was never measured."""
    clients = [task for task in model.reference_tasks if not task.is_open]
    if not clients:
        raise UsageError("no client thinks: the model has no clients")
    task, entry = clients[0], clients[0].entries[0]
    visits = activity_visits(entry)
    total = task.think.mean if task.think is not None else 0.0
    for step in entry.activities:
        if step.kind == "think" and visits[step.name] > 0:
            if step.delay is None:
                return None
            total += visits[step.name] * step.delay.mean
    return total


def _arrivals(model: Model, name: str) -> float | None:
    names = Names(model.tasks)
    found, places = {}, {}
    for task in model.tasks:
        for entry in task.entries:
            if entry.arrivals is not None:
                ref = EntryRef(task.name, entry.name)
                rate = 1 / entry.arrivals.mean
                if task.is_reference:
                    found[task.name] = rate
                else:
                    found[names.source(ref)] = places[ref] = rate
    if name in found or not name:
        return found.get(name, next(iter(found.values()), None))
    there = names.spoken_entry(name)
    return next(iter(found.values()), None) if there is None else places.get(there)


def _calls(model: Model, name: str) -> float | None:
    ref = Names(model.tasks).spoken_call(name)
    calls = model.task(ref.caller.task).entry(ref.caller.entry).activity(ref.caller.activity).calls
    count = next(call.count for call in calls if (call.task, call.entry) == ref.target)
    return None if count is None else count.mean


READERS: Final[dict[str, Callable[[Model, str], float | None]]] = {
    "demand": lambda model, name: mean_time(model, "demand", name),
    "delay": lambda model, name: mean_time(model, "delay", name),
    "think": _think,
    "probability": probability_of,
    "calls": _calls,
    "speed": lambda model, name: model.processor(name).speed,
    "arrivals": _arrivals,
    "clients": _clients,
    "pool": lambda model, name: model.task(name).threads,
    "replicas": lambda model, name: model.task(name).replicas,
    "cores": lambda model, name: model.processor(name).cores,
}
