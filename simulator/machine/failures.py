"""Errors of a simulation; the messages all engines share."""

from __future__ import annotations

from collections.abc import Sequence

from mup.errors import SimulationError
from simulator.machine.recording import Layout
from simulator.program import MAX_EMPTY_CYCLES, MAX_STANDSTILL, Program

__all__ = [
    "MAX_INSIDE",
    "deadlock",
    "endless_instant",
    "impossible_join",
    "spinning_client",
    "token_overflow",
    "too_many",
]

MAX_INSIDE = 5_000_000
"""Requests at work at once, beyond the clients, before open load is declared to be unstable."""


def impossible_join(where: str) -> SimulationError:
    """Return the error of a join that waits for a branch that never comes."""
    return SimulationError(
        "this join can never complete: no branch that could still arrive is left",
        where=where,
        hint="every branch it names must be started by a fork of the same request, on every path",
    )


def spinning_client(task: str, now: float) -> SimulationError:
    """Return the error of a client whose cycles take no time."""
    return SimulationError(
        f"{MAX_EMPTY_CYCLES} cycles of a client took no time at all at {now:g} s",
        where=f"tasks[{task!r}]",
        hint="give it a think time, or some demand or delay on the way",
    )


def endless_instant(program: Program, now: float) -> SimulationError:
    """Return the error of steps that never let time go on."""
    return SimulationError(
        f"{MAX_STANDSTILL} steps took no time at all at {now:g} s: something goes round in circles",
        where=program.name,
        hint="messages that cause each other, or a loop, need some demand or delay on the way",
    )


def token_overflow(task: str, now: float) -> SimulationError:
    """Return the error of a semaphore or lock that is given back more often than it was taken."""
    return SimulationError(
        f"a thread was given back at {now:g} s although none was taken",
        where=f"tasks[{task!r}]",
        hint="every request to an entry that releases or unlocks must follow one to an entry that "
        "acquires, or locks in the same way",
    )


def too_many(program: Program, now: float) -> SimulationError:
    """Return the error of open load that piles up."""
    return SimulationError(
        f"more than {MAX_INSIDE} requests are at work at {now:g} s: more come in than can be served",
        where=program.name,
        hint="lower the arrival rate, or add threads, replicas or cores",
    )


def deadlock(program: Program, layout: Layout, now: float, stations: Sequence[int]) -> SimulationError:
    """Return the error of a state in which every request waits for another one.

    Args:
        program: What was executed.
        layout: Its stations.
        now: Simulated seconds.
        stations: Those whose threads are waited for.
    """
    stuck = [
        spec.name
        for index, spec in enumerate(program.tasks)
        if any(layout.first_station[index] <= s < layout.first_station[index + 1] for s in stations)
    ]
    if not stuck:
        return SimulationError(
            f"standstill at {now:g} s: nothing can happen any more, and no request waits for a thread",
            where=program.name,
            hint="a reply that no branch sends, or a branch that never ends, keeps its caller waiting",
        )
    return SimulationError(
        f"deadlock at {now:g} s: every client waits, and all threads of "
        f"{', '.join(map(repr, stuck))} are held by requests that wait for one of them",
        where=f"tasks[{stuck[0]!r}]" if stuck else program.name,
        hint="a service that is called back while its caller's thread is held needs more threads",
    )
