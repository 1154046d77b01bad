"""How long were the workers of a service taken?

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

    Whoever need not wait gets a worker on arrival, all others when somebody in the same process is done.

    Args:
        log: Of a worker, or of all workers of an event loop or of threads.
        arrived: What `arrivals` found; executions it lacks count from ``begin``.
        endpoint: Only executions of this one; "" = all.
    """
    begun = log.records[log.records["event"] == Event.BEGIN]
    if endpoint:
        wanted = [number for number, name in log.names.items() if name == endpoint]
        begun = begun[np.isin(begun["name"], wanted)]
    ended = log.records[log.records["event"] == Event.DONE]
    # On an event loop, executions overlap. A begin without a done belongs to a worker that died.
    _, first, second = np.intersect1d(begun["request"], ended["request"], return_indices=True)
    begun, ended = begun[first], ended[second]
    begin, done = begun["time"], ended["time"]
    cpu = ended["cpu"] - begun["cpu"]
    if not len(arrived) or not len(begin):
        return Executions(begin, begin, done, cpu)
    at = np.minimum(np.searchsorted(arrived["request"], begun["request"]), len(arrived) - 1)
    known = arrived["request"][at] == begun["request"]
    came = np.where(known, np.minimum(arrived["time"][at], begin), begin)
    # The last time anybody was done before they began; 0 is before everything.
    ends = np.concatenate(([0], np.sort(log.records["time"][log.records["event"] == Event.DONE])))
    freed = ends[np.searchsorted(ends, begin, side="right") - 1]
    waited = known & ((arrived["flags"][at] & QUEUED) != 0)
    return Executions(came, np.where(waited, np.maximum(came, freed), came), done, cpu)


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
