"""Processor of the model that each task of a deployment runs on.

The exploratory run had everything on one machine. A deployment may put services, databases and clients on
machines of their own (``[hosts.NAME]`` in ``mup.toml``), and a container may let a replica use a few cores
only. A machine with a profile has its own scheduler and speed; one without is like that of the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from analyzer.host.names import HOST
from analyzer.host.placement import relative_speed
from analyzer.host.profile import load_profile
from mup.lqn import Model, Processor, Task
from mup.project import Project

__all__ = ["Machine", "Placement", "placed", "placement_of"]


class Machine(Protocol):
    """What placement wants of the profile of a machine."""

    @property
    def mean_speed(self) -> float | None:
        """Units of reference work per second and core; None if unknown."""

    def processor(self, name: str) -> Processor:
        """Return the machine as a processor of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the tasks of a model are deployed, if not where they were explored.

    Attributes:
        machines: By name; None = like the machine of the run.
        tasks: Name of the machine, per task that is not on ``HOST``.
        limits: Cores a container lets each replica of a task use.
    """

    machines: Mapping[str, Machine | None] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)


def placement_of(project: Project) -> Placement:
    """Return where the tasks of a project are deployed.

    Raises:
        ProjectError, LogError: The profile of a machine cannot be read.
    """
    machines = {name: None if file is None else load_profile(file) for name, file in project.hosts.items()}
    tasks = {service.name: service.host for service in project.services if service.host}
    tasks.update({database.name: database.host for database in project.databases if database.host})
    if project.client_host:
        tasks[project.client_class] = project.client_host
    limits = {service.name: service.cpus for service in project.services if service.cpus is not None}
    return Placement(machines=machines, tasks=tasks, limits=limits)


def placed(model: Model, placement: Placement) -> Model:
    """Return a calibrated model with its tasks where they are deployed.

    A service with a limit gets a processor of its own with that many cores for each of its replicas (a
    part of a core is a slower core). It no longer competes with its neighbours: that is what a limit below
    its share of the machine means.

    Args:
        model: All on ``HOST``, or on no processor at all.
        placement: What is elsewhere.
    """
    if not placement.tasks and not placement.limits:
        return model
    home = next((p for p in model.processors if p.name == HOST), None)
    if home is None:
        return model
    processors = {p.name: p for p in model.processors}
    tasks = []
    for task in model.tasks:
        if task.processor is None:
            tasks.append(task)
            continue
        own = processors[task.processor]
        machine = home
        if task.name in placement.tasks:
            name = placement.tasks[task.name]
            machine = processors.setdefault(name, _machine(model, home, name, placement.machines.get(name)))
        if task.name in placement.limits:
            machine = _limited(machine, task, placement.limits[task.name])
            processors[machine.name] = machine
        if own.parent is not None:
            # The core its threads share goes where they go.
            if machine is not home:
                core = own.core if machine.discipline == "cores" else None
                processors[own.name] = replace(own, parent=machine.name, core=core)
            tasks.append(task)
        else:
            tasks.append(replace(task, processor=machine.name))
    used: set[str | None] = set()
    for task in tasks:
        place = task.processor
        while place is not None:
            used.add(place)
            place = processors[place].parent
    kept = tuple(p for p in processors.values() if p.name in used)
    return replace(model, processors=kept, tasks=tuple(tasks))


def _machine(model: Model, home: Processor, name: str, profile: Machine | None) -> Processor:
    if profile is None:
        return replace(home, name=name, background=0.0)
    speed = relative_speed(model.provenance, profile.mean_speed)
    return replace(profile.processor(name), speed=home.speed if speed is None else speed)


def _limited(machine: Processor, task: Task, cpus: float) -> Processor:
    cores = math.ceil(cpus)
    return Processor(
        name=f"{task.name}.cpus",
        cores=cores * task.replicas,
        discipline="ps",
        speed=machine.speed * cpus / cores,
    )
