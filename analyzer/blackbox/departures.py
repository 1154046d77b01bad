"""When requests leave servers that work first come first served, or cores that all of them share."""

from __future__ import annotations

import math

import numpy as np

from analyzer.blackbox.inversion import FloatArray
from mup.native.binding import compiled
from mup.native.shapes import Floats1, Floats2, Longs1

__all__ = ["served", "shared"]


def served(ready: FloatArray, service: FloatArray, servers: int) -> FloatArray:
    """Return when each request leaves a station that was empty; shape (..., n).

    Args:
        ready: When it comes to the station, seconds, in any order; shape (n,) or as ``service``.
        service: Seconds; shape (..., n).
        servers: Requests served at once, first come first served.
    """
    n = service.shape[-1]
    work = service.reshape(-1, n)
    at = np.broadcast_to(ready, service.shape).reshape(-1, n)
    order = np.argsort(at, axis=1, kind="stable") if np.any(np.diff(at) < 0) else None
    if order is not None:
        at, work = np.take_along_axis(at, order, 1), np.take_along_axis(work, order, 1)
    leave = np.empty(work.shape)
    _serve(np.ascontiguousarray(at), np.ascontiguousarray(work), np.empty(servers), leave)
    if order is not None:
        found = np.empty_like(leave)
        np.put_along_axis(found, order, leave, 1)
        leave = found
    return leave.reshape(service.shape)


def shared(arrivals: FloatArray, work: FloatArray, cores: int) -> FloatArray:
    """Return when each request leaves cores that all share, none of them using more than one; shape (..., n).

    Args:
        arrivals: Seconds, ascending; shape (n,).
        work: Seconds; shape (..., n).
        cores: How many.
    """
    n = work.shape[-1]
    leave = np.empty((work.size // n, n))
    rows = np.ascontiguousarray(work.reshape(-1, n))
    _share(arrivals, rows, float(cores), np.empty(n), np.empty(n, dtype=np.int64), leave)
    return leave.reshape(work.shape)


@compiled
def _serve(ready: Floats2, service: Floats2, free: Floats1, leave: Floats2) -> None:
    """Write departures; ``ready`` ascends. Work space: when each server is free."""
    many, n = ready.shape
    for row in range(many):
        for k in range(len(free)):
            free[k] = -math.inf
        for i in range(n):
            first = 0
            for k in range(1, len(free)):
                if free[k] < free[first]:
                    first = k
            free[first] = max(ready[row, i], free[first]) + service[row, i]
            leave[row, i] = free[first]


@compiled
def _share(
    arrivals: Floats1, work: Floats2, cores: float, sums: Floats1, places: Longs1, leave: Floats2
) -> None:
    """Write departures.

    All requests get the same rate, so those that are there leave in the order of the work each has been given
    since the start when it leaves: what all were given until it came, plus its own. Work space: these sums,
    the least one last, and whose they are.
    """
    many, n = work.shape
    for row in range(many):
        size = 0
        now = 0.0
        given = 0.0
        for i in range(n):
            while size > 0:
                rate = min(1.0, cores / size)
                end = now + (sums[size - 1] - given) / rate
                if end > arrivals[i]:
                    given += (arrivals[i] - now) * rate
                    break
                size -= 1
                given = sums[size]
                now = end
                leave[row, places[size]] = now
            now = arrivals[i]
            at = size
            while at > 0 and sums[at - 1] < given + work[row, i]:
                sums[at] = sums[at - 1]
                places[at] = places[at - 1]
                at -= 1
            sums[at] = given + work[row, i]
            places[at] = i
            size += 1
        while size > 0:
            size -= 1
            now += (sums[size] - given) / min(1.0, cores / (size + 1))
            given = sums[size]
            leave[row, places[size]] = now
