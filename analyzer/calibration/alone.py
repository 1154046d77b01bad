"""Executions that have the event loop of their replica to themselves.

Where executions overlap, as copies of a fan-out do even with one user, their delays hold what they waited for
the loop, and of a segment with an ``await`` in it (a pause, a lock) only the mean processor time is known
(``analyzer.calibration.overlapping``). Those that no other one overlaps tell delays and distributions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from analyzer.calibration.executions import Execution

__all__ = ["alone", "timed"]

ENOUGH = 20
"""Executions of a path that tell delays and distributions without those that overlap others."""


def alone(executions: Iterable[Execution], service: str) -> frozenset[int]:
    """Return the requests of a service that no other request of their replica overlaps."""
    replicas: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for one in executions:
        last = one.done or one.end
        if one.service == service and one.role == "worker" and last is not None:
            replicas[one.replica].append((one.begin.time, last.time, one.request))
    found = []
    for several in replicas.values():
        several.sort()
        latest = -1
        for at, (begin, end, request) in enumerate(several):
            following = several[at + 1][0] if at + 1 < len(several) else end
            if latest <= begin and end <= following:
                found.append(request)
            latest = max(latest, end)
    return frozenset(found)


def timed(requests: Sequence[int], alone: Collection[int]) -> frozenset[int] | None:
    """Return the requests that are alone; None (all count) if they are too few to tell, or all."""
    found = frozenset(request for request in requests if request in alone)
    return found if len(found) >= ENOUGH and len(found) < len(requests) else None
