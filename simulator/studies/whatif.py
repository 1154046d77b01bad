"""Scenarios of a grid of changes, and what limits each of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from mup.errors import UsageError
from mup.lqn.edits import (
    with_admission,
    with_arrivals,
    with_clients,
    with_cores,
    with_placement,
    with_pool,
    with_replicas,
    with_speed,
    with_think,
)
from mup.lqn.lowered import machines, tasks_behind
from mup.lqn.model import Model
from mup.lqn.refs import ResourceRef
from mup.lqn.routing_edits import with_count, with_probability, with_width
from mup.lqn.time_edits import with_scaled_time, with_time
from simulator.figures.result import Figure, Result

__all__ = ["KINDS", "Axis", "Change", "Scenario", "bottleneck", "causes", "fullest", "grid", "utilizations"]

KINDS = (
    "clients",
    "arrivals",
    "think",
    "pool",
    "admission",
    "replicas",
    "cores",
    "speed",
    "place",
    "probability",
    "calls",
    "fan-out",
    "demand",
)
"""What can be changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One edit of the load (``clients``, ``arrivals``, ``think``) or of something that has a name.

    Attributes:
        kind: One of ``KINDS``.
        name: Task, processor, branch or fan-out (``TASK/entry:ACTIVITY``), call
            (``TASK/entry:ACTIVITY->TARGET``), or entry or activity (of a ``demand``); "" for think, and for
            the clients or arrivals of the only source of load.
        value: The new value: a number, the processor of a ``place``, an order of ``admission``, a factor on
            a ``demand``, as ``0.5x``, or the width of a ``fan-out``, as ``geometric(3)``.
    """

    kind: str
    name: str
    value: float | str

    @property
    def is_factor(self) -> bool:
        """Whether it scales what there is, so that it must not be made twice."""
        return self.kind == "demand" and isinstance(self.value, str)

    def apply(self, model: Model) -> Model:
        """Return the changed model.

        Raises:
            UsageError: The value is out of range or the name unknown.
        """
        value: Any = self.value
        if self.kind == "clients":
            return with_clients(model, value, self.name or None)
        if self.kind == "arrivals":
            return with_arrivals(model, value, self.name or None)
        if self.kind == "think":
            return with_think(model, value)
        if self.kind == "demand":
            if isinstance(value, str):
                return with_scaled_time(model, ("demand",), self.name, _factor(value))
            return with_time(model, "demand", self.name, value)
        edit: Any = {
            "pool": with_pool,
            "admission": with_admission,
            "replicas": with_replicas,
            "cores": with_cores,
            "speed": with_speed,
            "place": with_placement,
            "probability": with_probability,
            "calls": with_count,
            "fan-out": with_width,
        }[self.kind]
        changed: Model = edit(model, self.name, value)
        return changed

    def __str__(self) -> str:
        text = self.value if isinstance(self.value, str) else f"{self.value:g}"
        if self.kind == "think":
            return f"think {text} s"
        if self.kind == "clients" and not self.name:
            return f"{text} client{'s' * (self.value != 1)}"
        if self.kind == "arrivals" and not self.name:
            return f"{text} arrivals/s"
        return f"{self.kind} {self.name}={text}"


def _factor(text: str) -> float:
    """Return the factor that a text stands for, ``0.5x``.

    Raises:
        UsageError: It is none.
    """
    try:
        return float(text.rstrip("x"))
    except ValueError:
        raise UsageError(f"a factor is written as 0.5x, got {text!r}") from None


Axis = tuple[Change, ...]
"""The values one thing takes in a grid."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A model under some changes; the baseline has none."""

    changes: tuple[Change, ...]
    model: Model

    def to_json(self) -> dict[str, Any]:
        """Return the ``change`` object: ``{"clients": 4, "pool": {"B": 2}}``."""
        data: dict[str, Any] = {}
        for change in self.changes:
            value = "inf" if change.value == float("inf") else change.value
            if change.name:
                group = data.setdefault(change.kind, {})
                group[change.name] = value
            else:
                data[change.kind] = value
        return data

    def __str__(self) -> str:
        return ", ".join(map(str, self.changes)) or "baseline"


def grid(model: Model, axes: Sequence[Axis]) -> list[Scenario]:
    """Return the cross product of all axes, the last one varying fastest.

    Raises:
        UsageError: A value is out of range, a name unknown, or two axes change the same thing.
    """
    seen = set()
    for axis in axes:
        key = (axis[0].kind, axis[0].name)
        if key in seen:
            raise UsageError(f"{' '.join(key).strip()} is given twice", hint="list its values in one option")
        seen.add(key)
    scenarios = []
    for changes in itertools.product(*axes):
        changed = model
        for change in changes:
            changed = change.apply(changed)
        scenarios.append(Scenario(changes, changed))
    return scenarios


def utilizations(result: Result) -> dict[ResourceRef, Figure]:
    """Return the utilization of everything that can be full."""
    found = {ResourceRef("task", name): t.utilization for name, t in result.tasks.items()}
    found |= {ResourceRef("processor", name): p.utilization for name, p in result.processors.items()}
    return {ref: figure for ref, figure in found.items() if figure is not None}


NEARLY_FULL = 0.95
"""Share of the highest utilization from which on something counts as full too."""


def bottleneck(model: Model, result: Result) -> tuple[str, Figure] | None:
    """Return what limits a scenario: the task or processor that is full although nothing it uses is.

    A task whose threads wait for a full callee is full as well, but giving it more threads would not
    help. Among the most utilized items the cause is the one that neither calls nor runs on another of
    them.

    Args:
        model: The scenario's model.
        result: Its result.

    Returns:
        Name (``task B``, ``processor host``) and utilization; None if everything is infinite.
    """
    shares = utilizations(result)
    found = fullest(model, {ref: figure.mean for ref, figure in shares.items()})
    return None if found is None else (found.label, shares[found])


def fullest(model: Model, shares: Mapping[ResourceRef, float]) -> ResourceRef | None:
    """Return the same, given utilizations; None if there are none.

    Args:
        model: The scenario's model.
        shares: Utilization of everything that can be full.
    """
    if not shares:
        return None
    top = max(shares.values())
    full = {ref for ref, share in shares.items() if share >= NEARLY_FULL * top}
    # Several causes are equally guilty, the fullest is named.
    return max(causes(model, full), key=lambda ref: (shares[ref], ref.label))


def causes(model: Model, full: AbstractSet[ResourceRef]) -> list[ResourceRef]:
    """Return those of some full tasks and processors that neither call nor run on another of them.

    Args:
        model: What they belong to.
        full: At least one of them.
    """
    found = [ref for ref in full if not (_used_by(model, ref) & full)]
    # Only sends can go round in circles; then none is the cause alone.
    return sorted(found or full)


def _used_by(model: Model, ref: ResourceRef) -> set[ResourceRef]:
    """Return the tasks a task calls, directly or not, and the processors it runs on itself."""
    if ref.kind == "processor":
        return {
            ResourceRef("processor", outer.name)
            for outer in machines(model, model.processor(ref.name).parent)
        }
    placed = machines(model, model.task(ref.name).processor)
    behind = tasks_behind([ref.name], {task.name: task for task in model.tasks}) - {ref.name}
    return {ResourceRef("processor", outer.name) for outer in placed} | {
        ResourceRef("task", name) for name in behind
    }
