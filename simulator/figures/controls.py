"""Sums of a run whose means follow from the model alone.

Each is what happened beyond what had to be expected of the cycles, or of the time, of the batch: think time,
service of a processor, requests to an entry, arrivals. In the long run each is 0 per second, whatever waits
for what, so it can be a control variate (`mup.statistics.controls`). What is not known exactly is left out:

- Where anything has a distribution of infinite variance there are no controls: least squares says nothing.
- Think time that a branch may have without its client is none of these sums; nor are there any where load may
  pile up (`simulator.api`). Whatever else shows another mean than 0 is left out by `choose_controls`.
- Time that sleep adds to processors is not known beforehand; it is counted, and taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from simulator.machine.recording import AREA, ENTERED, LEFT, FloatArray, Layout
from simulator.program import ACQUIRES, Program, processor_servers

__all__ = ["KnownSums", "known_sums", "service_beyond_demand"]

MOST: Final = 64
"""Sums of one kind; of more, those that vary most, and the total."""


@dataclass(frozen=True, slots=True)
class KnownSums:
    """Sums whose mean is 0.

    Attributes:
        names: For people.
        columns: Shape (batches, sums).
    """

    names: list[str]
    columns: FloatArray


def known_sums(program: Program, layout: Layout, sums: FloatArray, seconds: float) -> KnownSums:
    """Return the sums of mean 0 of a window.

    Args:
        program: What ran.
        layout: Of the columns.
        sums: Differences of the snapshot columns per batch.
        seconds: Length of a batch.
    """
    names: list[str] = []
    columns: list[FloatArray] = []
    if all(math.isfinite(d.variance) for d in program.distributions):
        for found in (
            _thinking(program, layout, sums),
            _arrivals(program, layout, sums, seconds),
            _services(program, layout, sums, seconds),
            _held(program, layout, sums),
            _visits(program, layout, sums),
        ):
            names += found
            columns += found.values()
    shape = np.column_stack(columns) if columns else np.empty((len(sums), 0))
    return KnownSums(names, shape)


def _thinking(program: Program, layout: Layout, sums: FloatArray) -> dict[str, FloatArray]:
    """Return how much longer clients thought than their cycles ask for: of each kind, and of all."""
    found = {}
    for index, population in enumerate(program.populations):
        nominal = population.nominal
        if population.is_open or nominal.branched or not 0 < nominal.think < math.inf:
            continue
        thought = sums[:, layout.thinking(index) + AREA]
        found[population.name] = thought - sums[:, layout.cycles(index)] * nominal.think
    if not found:
        return {}
    columns = np.column_stack(list(found.values()))
    return _most([f"think time of {name}" for name in found], columns) | _total("think time", columns)


def _arrivals(program: Program, layout: Layout, sums: FloatArray, seconds: float) -> dict[str, FloatArray]:
    """Return how many more came from outside than their rate says.

    Where an entry is asked by others, too, what came from outside is what was answered of it.
    """
    found = {}
    for index, population in enumerate(program.populations):
        if not population.is_open:
            continue
        per_cycle = sum(p.nominal.visits[population.entry] for p in program.populations)
        inside = layout.inside(population.entry) + ENTERED
        came = sums[:, inside if per_cycle == 1 else layout.cycles(index)]
        found[f"arrivals at {population.name}"] = came - population.rate * seconds
    return _most(list(found), np.column_stack(list(found.values()))) if found else {}


def _services(program: Program, layout: Layout, sums: FloatArray, seconds: float) -> dict[str, FloatArray]:
    """Return how much more service processors gave than the cycles demand: of some of them, and of all."""
    processors = processor_servers(program)
    if not processors:
        return {}
    beyond = service_beyond_demand(program, layout, sums, seconds)
    beyond = np.add.reduceat(beyond, [indices[0] for _, indices in processors], axis=1)
    whole = [at for at, (server, _) in enumerate(processors) if server.parent < 0]
    names = [f"service of {server.name}" for server, _ in processors]
    return _most(names, beyond) | _total("service", beyond[:, whole])


def service_beyond_demand(program: Program, layout: Layout, sums: FloatArray, seconds: float) -> FloatArray:
    """Return busy core-seconds beyond nominal demand, per batch and server.

    Args:
        program: What ran.
        layout: Of the columns.
        sums: Differences of the snapshot columns per batch.
        seconds: Length of a batch.
    """
    servers = program.servers
    speeds = np.array([server.speed for server in servers])
    background = np.array([server.background if server.copy == 0 else 0.0 for server in servers])
    demands = np.array([population.nominal.demand for population in program.populations])
    busy = sums[:, [layout.server(index) for index in range(len(servers))]]
    beyond: FloatArray = busy - (_cycles(program, layout, sums) @ demands + background * seconds) / speeds
    for at, setup in enumerate(program.setups):
        # What sleep has added is no part of the nominal demand; it is counted when a use begins.
        place = setup.server
        while place >= 0:
            beyond[:, place] -= sums[:, layout.setup(at) + 1] / servers[setup.server].pace
            place = servers[place].parent
    return beyond


def _held(program: Program, layout: Layout, sums: FloatArray) -> dict[str, FloatArray]:
    """Return how much longer threads were held than the cycles ask for, where none can wait meanwhile."""
    held = np.array([population.nominal.held for population in program.populations])
    plain = np.array([task.name not in _taken(program) for task in program.tasks])
    alone = np.flatnonzero(np.isfinite(held).all(axis=0) & held.any(axis=0) & plain)
    busy = [
        sums[:, [layout.busy(place) + AREA for place in layout.places_of[index]]].sum(axis=1)
        for index in alone.tolist()
    ]
    if not busy:
        return {}
    beyond = np.column_stack(busy) - _cycles(program, layout, sums) @ held[:, alone]
    return _most([f"work of {program.tasks[index].name}" for index in alone.tolist()], beyond)


def _taken(program: Program) -> set[str]:
    """Return the semaphores: how long they are held is no work of theirs."""
    return {program.tasks[entry.task].name for entry in program.entries if entry.token == ACQUIRES}


def _visits(program: Program, layout: Layout, sums: FloatArray) -> dict[str, FloatArray]:
    """Return how many more requests entries answered than the cycles make; of those that vary most."""
    visits = np.array([population.nominal.visits for population in program.populations])
    own = [population.entry for population in program.populations]
    called = np.setdiff1d(np.flatnonzero(visits.any(axis=0)), own)
    answered = sums[:, [layout.inside(index) + LEFT for index in called.tolist()]]
    beyond = answered - _cycles(program, layout, sums) @ visits[:, called]
    return _most([f"requests to {program.entries[index].label}" for index in called.tolist()], beyond)


def _cycles(program: Program, layout: Layout, sums: FloatArray) -> FloatArray:
    """Return the cycles of every population, per batch."""
    cycles: FloatArray = sums[:, [layout.cycles(number) for number in range(len(program.populations))]]
    return cycles


def _most(names: list[str], columns: FloatArray) -> dict[str, FloatArray]:
    """Return the sums that vary most, in their order, by their names."""
    most = np.argsort(-columns.var(axis=0), kind="stable")[:MOST]
    return {names[at]: columns[:, at] for at in np.sort(most).tolist()}


def _total(what: str, columns: FloatArray) -> dict[str, FloatArray]:
    """Return the total of some sums, if there are several."""
    return {f"all {what}": columns.sum(axis=1)} if columns.shape[1] > 1 else {}
