"""Service time of each request, from its arrival and its response time alone.

A first-come-first-served station of K servers starts request i when it has arrived and all but K - 1 of those
before it have left. So with requests in order of arrival at ``a[i]``, answered after ``r[i]``, and departures
``d[i] = a[i] + r[i]``::

    start[i]   = max(a[i] + latency, K-th largest of d[0] .. d[i - 1])
    service[i] = d[i] - start[i]

For K = 1 this is Lindley's recursion solved for the service time (Harbaoui et al., "Automatic performance
modelling of black boxes targetting self-sizing", INRIA RR-7027, section 4.2). It is exact from an empty
station on, whatever the load does, and needs no steady state.

``latency`` is time that requests spend outside of the servers (network, parsing): those who wait do not
notice it.
"""

from __future__ import annotations

import bisect
import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from mup.errors import UsageError

__all__ = ["FloatArray", "Trace", "overtakings", "service_times"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """Requests to a station that was empty before the first of them.

    Attributes:
        arrivals: Seconds, shape (n,), ascending.
        responses: Seconds from arrival to answer, shape (n,), > 0.

    Raises:
        UsageError: Shapes differ, or a value is out of range.
    """

    arrivals: FloatArray
    responses: FloatArray

    @classmethod
    def of(cls, arrivals: ArrayLike, responses: ArrayLike) -> Trace:
        """Return the trace of requests in any order."""
        at = np.asarray(arrivals, dtype=np.float64)
        took = np.asarray(responses, dtype=np.float64)
        if at.ndim != 1 or at.shape != took.shape:
            raise UsageError(f"arrivals and response times must be pairs, got {at.shape} and {took.shape}")
        if not (np.isfinite(at).all() and np.isfinite(took).all() and (took > 0).all()):
            raise UsageError("arrivals must be finite and response times > 0 seconds")
        order = np.argsort(at, kind="stable")
        return cls(at[order], took[order])

    @property
    def size(self) -> int:
        """Number of requests."""
        return int(self.arrivals.size)

    @property
    def departures(self) -> FloatArray:
        """When each request was answered, in order of arrival; seconds, shape (n,)."""
        leave: FloatArray = self.arrivals + self.responses
        return leave


def service_times(trace: Trace, servers: int, latency: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return service and waiting times under the assumption of so many servers.

    Args:
        trace: From an empty station on.
        servers: K >= 1.
        latency: Seconds of every response that are spent outside of the servers.

    Returns:
        Seconds, both of shape (n,), in order of arrival. Service times are negative where the
        assumption is wrong: a request left before it could have started.
    """
    ready = trace.arrivals + latency
    leave = trace.departures.tolist()
    latest: list[float] = leave[:servers]
    heapq.heapify(latest)
    freed = [-np.inf] * min(servers, trace.size)
    for end in leave[servers:]:
        # Invariant: the K latest departures of all requests before; the first of them frees a server.
        freed.append(latest[0])
        heapq.heappushpop(latest, end)
    start = np.maximum(ready, freed)
    service: FloatArray = trace.departures - start
    waiting: FloatArray = start - ready
    return service, waiting


def overtakings(trace: Trace, tolerance: float = 0.0) -> npt.NDArray[np.int64]:
    """Return how many earlier requests were still there when each one left, shape (n,).

    Who leaves before n earlier ones was served beside them, by one of at least n + 1 servers: with K servers
    the service time is negative exactly where this is K or more.

    Args:
        trace: Any.
        tolerance: Seconds by which departures may be seen in the wrong order.
    """
    count = np.empty(trace.size, dtype=np.int64)
    earlier: list[float] = []
    for i, end in enumerate(trace.departures.tolist()):
        count[i] = len(earlier) - bisect.bisect_right(earlier, end + tolerance)
        bisect.insort(earlier, end)
    return count
