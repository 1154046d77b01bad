"""Core that a replica of threads, or with an event loop, runs on.

Its threads share an interpreter and can use no more than one core, and moving about costs time: so the
process stays on one. Replicas of a service take one core after the other, and services begin at different
ones, in a way that the model of a deployment can compute, too: two that share a core slow each other down.
"""

from __future__ import annotations

import os
import zlib

__all__ = ["core_of", "pin", "place_of"]


def place_of(service: str, replica: int, cores: int) -> int:
    """Return which of the cores of a machine, counted from 0, a replica is pinned to."""
    return (zlib.crc32(service.encode()) + replica) % cores


def core_of(service: str, replica: int) -> int | None:
    """Return the system's number of that core here; None where processes cannot be pinned."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return cores[place_of(service, replica, len(cores))]


def pin(service: str, replica: int) -> None:
    """Bind this process to its core."""
    core = core_of(service, replica)
    if core is not None:
        os.sched_setaffinity(0, {core})
