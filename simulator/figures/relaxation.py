"""How long open load must be simulated before the intervals of a run can be believed.

A queue forgets where it began only after some time, and near saturation that time is long: of M/M/1 with
utilization u and mean service time s it is s / (1 - sqrt(u))^2, the time constant of its transient
solution (J. W. Cohen, The Single Server Queue, 1982). What precision ends after a few such times has
seen a part of one long queue, or none: its mean may be several times too large or too small by much more
than its half-width, and no test within the run shows what it has not seen. Clients that wait for answers
need no such rule: their number bounds the queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from simulator.program import Program, processor_servers

__all__ = ["RELAXATIONS", "least_seconds"]

RELAXATIONS: Final = 3000
"""So many relaxation times are simulated at least, warm-up included. Of 400 runs of M/M/1 at utilization 0.95
that were to end at 5 %, the intervals of 94.8 % held the mean response time; with 1800 times 91.8 %, without
a least time 87 % (``benchmarks/interval_coverage.py --only "M/M/1 "``)."""


def least_seconds(program: Program) -> float:
    """Return how long a run must last at least before its precision may end it, in simulated seconds.

    It is `RELAXATIONS` times the longest relaxation time of a processor or of a task's threads under its
    open load; 0 without open load, and where there is more of it than can be served. Several servers
    count as one that is as fast as all of them together, which near saturation they are. What closed
    load adds is not known beforehand and left out.
    """
    longest = 0.0
    for service, servers, utilization in _stations(program):
        if 0 < utilization < 1:
            longest = max(longest, service / servers / (1 - math.sqrt(utilization)) ** 2)
    return RELAXATIONS * longest


def _stations(program: Program) -> Iterator[tuple[float, float, float]]:
    """Yield mean service time (s) per cycle, number of servers and utilization, of what serves open load."""
    sources = [p for p in program.populations if p.is_open]
    for server, indices in processor_servers(program):
        works = [(p.rate, p.nominal.demand[indices[0]] / server.pace) for p in sources]
        yield _station(works, server.cores, server.background / server.pace / server.cores)
    for index, task in enumerate(program.tasks):
        held = [(p.rate / task.replicas, p.nominal.held[index]) for p in sources]
        # What waits elsewhere while it holds a thread has no known service time here.
        if all(math.isfinite(seconds) for _, seconds in held):
            yield _station(held, task.threads, 0.0)


def _station(
    works: list[tuple[float, float]], servers: float, background: float
) -> tuple[float, float, float]:
    """Return service time, servers and utilization under requests per second of so many seconds each."""
    requests = sum(rate for rate, seconds in works if seconds)
    busy = sum(rate * seconds for rate, seconds in works)
    if not requests or servers == math.inf:
        return 0.0, servers, 0.0
    return busy / requests, servers, busy / servers + background
