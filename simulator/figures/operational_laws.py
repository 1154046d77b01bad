"""Operational laws that every result must obey.

Identities of the measured window hold for every single run, whatever is random in it: a breach means
that the engine lost or invented something, and the run is an error. Laws with nominal means (what the
model says a client thinks and demands) hold up to noise: a breach beyond four standard errors is a
warning that names the figure. See Denning and Buzen, "The operational analysis of queueing network
models", 1978.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mup.errors import SimulationError
from mup.statistics.batches import batch_half_width
from simulator.figures.output import Window
from simulator.machine.recording import AREA, CONTENT, ENTERED, LEFT, RESIDENCE, FloatArray
from simulator.program import SEND, Program, processor_servers

__all__ = ["check_identities", "check_stability", "law_warnings"]

TOLERANCE = 1e-9
"""Relative difference of two sums of one quantity: what exceeds it is no rounding."""
STANDARD_ERRORS = 4
STANDARD_ERROR_OF_HALF_WIDTH = 2.0
"""A 95 % half-width is at least about two standard errors."""


def check_identities(window: Window) -> None:
    """Check what must hold exactly.

    Raises:
        SimulationError: An account of the engine does not add up; the message names it.
    """
    totals = window.sums.sum(axis=0)
    span = window.end - window.begin
    for name, at in _levels(window):
        if totals[at + ENTERED] - totals[at + LEFT] != totals[at + CONTENT]:
            raise _broken(f"{name}: arrivals - departures", totals[at + ENTERED] - totals[at + LEFT],
                          "the change of content", totals[at + CONTENT])  # fmt: skip
        area, residence = totals[at + AREA], totals[at + RESIDENCE]
        if abs(area - residence) > TOLERANCE * max(area, span):
            raise _broken(f"{name}: integral of the content", area, "the clipped residence times", residence)
    for index, server in enumerate(window.program.servers):
        column = window.layout.server(index)
        busy, given = totals[column], totals[column + 1]
        if abs(busy - given) > TOLERANCE * max(busy, span):
            raise _broken(f"processors[{server.name!r}]: busy time", busy, "the service given", given)


def _broken(what: str, left: float, other: str, right: float) -> SimulationError:
    return SimulationError(
        f"{what} is {left!r}, {other} {right!r}: the engine lost count",
        hint="this is a bug in mup; please report it with the model",
    )


def _levels(window: Window) -> Iterator[tuple[str, int]]:
    program, layout = window.program, window.layout
    for task, places in zip(program.tasks, layout.places_of, strict=True):
        for place in places:
            yield f"tasks[{task.name!r}] waiting", layout.waiting(place)
            yield f"tasks[{task.name!r}] busy", layout.busy(place)
    for index, entry in enumerate(program.entries):
        yield f"{entry.label} inside", layout.inside(index)
    for index, population in enumerate(program.populations):
        yield f"{population.name} thinking", layout.thinking(index)


MIN_ARRIVALS = 2000
STEADY_GROWTH = 0.98
"""Correlation of the requests inside with time: 1 for a queue that grows evenly."""
SERIOUS_GROWTH = 0.02
"""Part of the arrivals that must be left inside at the end: fewer may be a queue that wanders."""


def check_stability(window: Window) -> None:
    """Refuse load that piles up: the requests inside an entry grow in step with time.

    That can only happen to entries that get requests from outside, or messages that are not awaited.

    Raises:
        SimulationError: More comes in than can be served.
    """
    program = window.program
    clients = sum(p.clients for p in program.populations)
    unbounded = {program.sites[b].entry for operation, _, b, _ in program.code if operation == SEND}
    for index in sorted(unbounded):
        inside = window.layout.inside(index)
        arrivals = float(window.sums[:, inside + ENTERED].sum())
        growth = window.sums[:, inside + CONTENT].cumsum()
        if arrivals < MIN_ARRIVALS or growth[-1] < SERIOUS_GROWTH * arrivals + clients:
            continue
        trend = float(np.corrcoef(growth, np.arange(len(growth)))[0, 1])
        if trend > STEADY_GROWTH:
            span = window.end - window.begin
            raise SimulationError(
                f"unstable: of {arrivals / span:.6g} requests per second only "
                f"{(arrivals - float(growth[-1])) / span:.6g} are answered; the queue grows for ever",
                where=program.entries[index].label,
                hint="lower the rate of requests, or add threads, replicas or cores",
            )


def law_warnings(window: Window) -> list[str]:
    """Return a warning for every law with nominal means that the window breaches."""
    found = []
    program, layout, sums = window.program, window.layout, window.sums
    length = float(window.batch_seconds[0])
    for index, population in enumerate(program.populations):
        at = layout.cycles(index)
        cycles, responses, durations = sums[:, at], sums[:, at + 1], sums[:, at + 2]
        if population.is_open:
            continue
        think = population.nominal.think
        excess = population.clients * length - responses - cycles * think
        # Cycles that straddle the ends of the window count whole or not at all.
        edge = population.clients * (float(durations.sum()) / max(float(cycles.sum()), 1.0))
        if _breached(excess, edge):
            clients = float((responses + cycles * think).sum()) / (length * len(sums))
            found.append(
                f"Little's law: {program.tasks[population.task].name!r} has {population.clients} clients, "
                f"but throughput x (response time + nominal think time) is {clients:.6g}"
            )
    inside = [
        float(sums[:, layout.inside(p.entry) + AREA].sum() / (length * len(sums))) if p.is_open else p.clients
        for p in program.populations
    ]
    setups = _setups_on_servers(program)
    for server, indices in processor_servers(program):
        # Of its copies together: how many requests come to each is left to chance.
        copies = len(indices)
        nominal = np.full(len(sums), server.background / server.speed * length)
        edge = 0.0
        for number, population in enumerate(program.populations):
            demand = copies * population.nominal.demand[indices[0]] / server.speed
            if demand:
                nominal += sums[:, layout.cycles(number)] * demand
                edge += inside[number] * demand
        for at in setups.get(indices[0], ()):
            # What sleep has added is no part of the nominal demand; it is counted when a use begins.
            added = sums[:, layout.setup(at) + 1] / program.servers[program.setups[at].server].pace
            nominal += added
            edge += sum(inside) * float(added.sum()) / max(1.0, float(sums[:, layout.setup(at)].sum()))
        busy = sums[:, [layout.server(i) for i in indices]].sum(axis=1)
        if _breached(busy - nominal, edge):
            span = length * len(sums) * server.cores * copies
            found.append(
                f"utilization law: processor {server.name!r} is {busy.sum() / span:.6g} utilized, "
                f"but throughput x nominal demand is {nominal.sum() / span:.6g}"
            )
    return found


def _setups_on_servers(program: Program) -> dict[int, list[int]]:
    """Return, per server, the set-ups whose time is spent on it, or on a part of it."""
    found: dict[int, list[int]] = {}
    for at, setup in enumerate(program.setups):
        place = setup.server
        while place >= 0:
            found.setdefault(place, []).append(at)
            place = program.servers[place].parent
    return found


def _breached(excess: FloatArray, edge: float) -> bool:
    """Tell whether batches that should have mean 0 have another one."""
    mean = float(excess.mean())
    noise = batch_half_width(excess - mean) / STANDARD_ERROR_OF_HALF_WIDTH
    return abs(mean) > STANDARD_ERRORS * noise + edge / len(excess)
