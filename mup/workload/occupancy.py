"""Time for which the workers of a service were busy.

A worker is taken from the moment a request is handed to it, and that is a while before ``begin``: it has to
wake up and to read. Short requests keep workers twice as long as their code runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mup.events.reader import DTYPE, Log
from mup.events.record import QUEUED, Event
from mup.workload.figures import Window

__all__ = ["Executions", "arrivals", "busy_seconds", "executions", "worker_seconds"]

Times = npt.NDArray[np.int64]


class Executions(NamedTuple):
    """Moments of executions, in monotonic ns.

    Attributes:
        arrived: When their front had read the request.
        taken: When they got a worker.
        done: When they gave it back.
        cpu: Processor time of the worker's thread from begin to done; ns.
    """

    arrived: Times
    taken: Times
    done: Times
    cpu: Times


def arrivals(fronts: Iterable[Log]) -> npt.NDArray[np.void]:
    """Return the ``arrive`` records of a service, by request."""
    parts = [log.records[log.records["event"] == Event.ARRIVE] for log in fronts]
    found = np.concatenate(parts) if parts else np.zeros(0, dtype=DTYPE)
    return found[np.argsort(found["request"], kind="stable")]


def executions(log: Log, arrived: npt.NDArray[np.void], endpoint: str = "") -> Executions:
    """Return the executions of a log that were done.

    A request that need not wait gets a worker on arrival. One that waits gets it when that worker is done
    with the last one. Where executions overlap, on an event loop or in threads, each that is done makes room
    for the one that waits longest; until the loop comes to it, that one has its worker already.

    Args:
        log: Of a worker, or of all workers of an event loop or of threads.
        arrived: What `arrivals` found; executions it lacks count from ``begin``.
        endpoint: Only executions of this one; "" = all.
    """
    found, names = _all_executions(log, arrived)
    if not endpoint:
        return found
    wanted = np.isin(names, [number for number, name in log.names.items() if name == endpoint])
    return Executions(*(moments[wanted] for moments in found))


def _all_executions(
    log: Log, arrived: npt.NDArray[np.void]
) -> tuple[Executions, npt.NDArray[np.unsignedinteger]]:
    """Return the executions of a log, and the numbers of their endpoints' names."""
    begun = log.records[log.records["event"] == Event.BEGIN]
    ended = log.records[log.records["event"] == Event.DONE]
    # On an event loop, executions overlap. A begin without a done belongs to a worker that died.
    _, first, second = np.intersect1d(begun["request"], ended["request"], return_indices=True)
    begun, ended = begun[first], ended[second]
    begin, done = begun["time"], ended["time"]
    cpu = ended["cpu"] - begun["cpu"]
    if not len(arrived) or not len(begin):
        return Executions(begin, begin, done, cpu), begun["name"]
    at = np.minimum(np.searchsorted(arrived["request"], begun["request"]), len(arrived) - 1)
    known = arrived["request"][at] == begun["request"]
    came = np.where(known, np.minimum(arrived["time"][at], begin), begin)
    waited = known & ((arrived["flags"][at] & QUEUED) != 0)
    taken = came.copy()
    ends = np.sort(log.records["time"][log.records["event"] == Event.DONE])
    free = _first_freed(came[waited], ends) if _overlap(begin, done) else _last_freed(begin[waited], ends)
    taken[waited] = np.clip(free, came[waited], begin[waited])
    return Executions(came, taken, done, cpu), begun["name"]


def _overlap(begin: Times, done: Times) -> bool:
    order = np.argsort(begin)
    return bool(np.any(begin[order][1:] < done[order][:-1]))


def _last_freed(begin: Times, ends: Times) -> Times:
    """Return when the one worker was done last, before it began each of these; 0 is before everything."""
    return np.concatenate(([0], ends))[np.searchsorted(ends, begin, side="right")]


def _first_freed(came: Times, ends: Times) -> Times:
    """Return when each of these had room: one end makes room for one of them, first come first served."""
    order = np.argsort(came, kind="stable")
    numbers = np.arange(len(came))
    # The first end behind the arrival that is not another one's.
    first = np.searchsorted(ends, came[order], side="right")
    which = np.maximum.accumulate(first - numbers) + numbers
    free = np.empty_like(came)
    free[order] = np.concatenate((ends, [np.iinfo(np.int64).max]))[np.minimum(which, len(ends))]
    return free


def busy_seconds(
    log: Log, window: Window, arrived: npt.NDArray[np.void], endpoint: str = ""
) -> npt.NDArray[np.float64]:
    """Return how long workers had a request in each batch of a window, added up; see `executions`."""
    found = executions(log, arrived, endpoint)
    edges = np.linspace(window.start_ns, window.end_ns, window.batches + 1).astype(np.int64)
    until = [float(np.maximum(np.minimum(found.done, edge) - found.taken, 0).sum()) for edge in edges]
    return np.diff(until) * 1e-9


def worker_seconds(front: Log, window: Window) -> npt.NDArray[np.float64]:
    """Return how many seconds of workers one replica had in each batch of a window, whatever their number.

    Args:
        front: Log of its front, which says how many workers it began with and when that was changed.
        window: Its batches.
    """
    changes = front.records[front.records["event"] == Event.POOL]
    edges = np.linspace(window.start_ns, window.end_ns, window.batches + 1).astype(np.int64)
    sizes = np.concatenate(([front.header["pool_size"]], changes["seq"])).astype(np.float64)
    since = np.maximum(
        np.concatenate(([front.header["clock"]["monotonic_ns"]], changes["time"])), window.start_ns
    )
    # What a size contributes up to an edge: the time since it came, less that since the next one did.
    steps = np.diff(sizes, prepend=0.0)
    until = [float((steps * np.maximum(edge - since, 0)).sum()) for edge in edges]
    return np.diff(until) * 1e-9
