"""Core that a replica of threads, or with an event loop, runs on.

Its threads share an interpreter and can use no more than one core, and moving about costs time: so the
process stays on one. Two that share a core slow each other down, so services begin at one core after the
other, in their order in the project, as do the replicas of each. The model of a deployment knows that
order, too.
"""

from __future__ import annotations

import os

__all__ = ["core_of", "pin", "place_of"]


def place_of(position: int, replica: int, cores: int) -> int:
    """Return which of the cores of a machine, counted from 0, a replica is pinned to.

    Args:
        position: Of its service among those of the project, from 0.
        replica: Its number.
        cores: Of the machine.
    """
    return (position + replica) % cores


def core_of(position: int, replica: int) -> int | None:
    """Return the system's number of that core here; None where processes cannot be pinned."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return cores[place_of(position, replica, len(cores))]


def pin(position: int, replica: int) -> None:
    """Bind this process to its core."""
    core = core_of(position, replica)
    if core is not None:
        os.sched_setaffinity(0, {core})
