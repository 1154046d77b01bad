"""Sleep of the threads that work on a request, before it.

Work costs more processor time behind a pause. A log says how long each was, by who slept:

- a *worker* between its last request and this one; not at all if the request had been waiting for it. Workers
  that are threads of one process sleep only while none of them has a request, an event loop while none of its
  requests is at work;
- a *front* between the last thing it did (a request admitted, a reply passed on) and the next one;
- a *database* between the end of the last query and the begin of the next one;
- a *load generator* while all of its clients think.

All of it is by request id, in seconds. The first request of a log follows a pause of unknown length and is
in none of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analyzer.calibration.executions import Execution
from mup.lqn.refs import QueryRef

__all__ = ["Sleeps", "sleeps"]

_NS = 1e-9

WAITS = ("get", "think")
"""Operations during which an execution is not at work."""


@dataclass(frozen=True, slots=True)
class Sleeps:
    """Seconds of sleep before requests.

    Attributes:
        workers: Before the begin of an execution; of a cycle of a client, before it went on from thinking.
        fronts: Of the front, before it admitted the request and before it passed the reply on.
        databases: Before each query, per database: request that asked, seconds.
    """

    workers: Mapping[int, float] = field(default_factory=dict)
    fronts: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    databases: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)


def sleeps(
    parts: Iterable[Sequence[Execution]], sharing: Collection[str], loops: Collection[str] = ()
) -> Sleeps:
    """Return how long each sleep of a run was.

    Args:
        parts: The executions of each part of the run: those of two parts have no common clock.
        sharing: Services whose workers share a process.
        loops: Those of them with an event loop.
    """
    workers: dict[int, float] = {}
    fronts: dict[int, tuple[float, float]] = {}
    databases: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for executions in parts:
        pools: dict[tuple[str, int, int], list[Execution]] = defaultdict(list)
        replicas: dict[tuple[str, int], list[Execution]] = defaultdict(list)
        clients: dict[str, list[Execution]] = defaultdict(list)
        for execution in executions:
            if execution.role == "client":
                clients[execution.service].append(execution)
                continue
            number = 0 if execution.service in sharing else execution.worker
            pools[execution.service, execution.replica, number].append(execution)
            replicas[execution.service, execution.replica].append(execution)
        for (service, _, _), several in pools.items():
            workers.update(_of_loop(several) if service in loops else _of_worker(several))
        for several in replicas.values():
            fronts.update(_of_front(several))
        for several in clients.values():
            workers.update(_of_clients(several))
        for name, found in _of_databases(executions).items():
            databases[name] += found
    return Sleeps(workers, fronts, databases)


def _of_worker(executions: Sequence[Execution]) -> dict[int, float]:
    found: dict[int, float] = {}
    free: int | None = None
    for execution in sorted(executions, key=lambda e: e.begin.time):
        if free is not None:
            waited = execution.queued or execution.begin.time <= free
            found[execution.request] = 0.0 if waited else (execution.begin.time - free) * _NS
        free = max(free or 0, _end(execution))
    return found


def _of_loop(executions: Sequence[Execution]) -> dict[int, float]:
    """Return how long nothing had worked on an event loop when each of its requests began."""
    pieces = sorted(piece for execution in executions for piece in _pieces(execution))
    found: dict[int, float] = {}
    free: int | None = None
    at = 0
    for execution in sorted(executions, key=lambda e: e.begin.time):
        begin = execution.begin.time
        while at < len(pieces) and pieces[at][0] < begin:
            free = max(free or 0, pieces[at][1])
            at += 1
        if free is not None:
            waited = execution.queued or begin <= free
            found[execution.request] = 0.0 if waited else (begin - free) * _NS
    return found


def _pieces(execution: Execution) -> Iterator[tuple[int, int]]:
    """Yield from when to when an execution was at work."""
    since = execution.begin.time
    for step in execution.steps:
        if step.op in WAITS and step.resume.time > step.start.time >= since:
            yield since, step.start.time
            since = step.resume.time
    yield since, max(since, _end(execution))


def _of_front(executions: Sequence[Execution]) -> dict[int, tuple[float, float]]:
    moments: list[tuple[int, int, int]] = []
    for execution in executions:
        if execution.arrive is not None and execution.end is not None:
            moments.append((execution.arrive, execution.request, 0))
            moments.append((execution.end.time, execution.request, 1))
    found: dict[int, list[float]] = {}
    before: int | None = None
    for moment, request, half in sorted(moments):
        if before is not None:
            found.setdefault(request, [0.0, 0.0])[half] = (moment - before) * _NS
        before = moment
    first = min(moments, default=(0, 0, 0))[1]
    return {request: (both[0], both[1]) for request, both in found.items() if request != first}


def _of_clients(executions: Sequence[Execution]) -> dict[int, float]:
    """Return how long all clients had thought when each went on; cycles without a think time are left out."""
    changes: list[tuple[int, int, int]] = []
    for execution in executions:
        changes.append((execution.begin.time, 1, 0))
        changes.append((_end(execution), -1, 0))
        for step in execution.steps:
            if step.op == "think":
                changes.append((step.start.time, -1, 0))
                changes.append((step.resume.time, 1, execution.request))
    found: dict[int, float] = {}
    active, since = 0, None
    # What ends at a moment ends before anything begins there: a client goes from cycle to cycle at once.
    for moment, change, request in sorted(changes):
        if change > 0 and request and (active > 0 or since is not None):
            slept = 0.0 if active > 0 or since is None else (moment - since) * _NS
            found[request] = max(slept, found.get(request, 0.0))
        active += change
        if active == 0 and (change < 0):
            # From thought to the next cycle takes no time worth the name of a sleep.
            since = moment
    return found


def _of_databases(executions: Iterable[Execution]) -> dict[str, list[tuple[int, float]]]:
    queries_to: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for execution in executions:
        for operation in execution.operations.values():
            to = operation.to
            if isinstance(to, QueryRef) and operation.contact is not None and operation.finish is not None:
                times = operation.contact.time, operation.finish.time
                queries_to[to.database].append((*times, execution.request))
    found: dict[str, list[tuple[int, float]]] = {}
    for name, queries in queries_to.items():
        free: int | None = None
        several = found.setdefault(name, [])
        for begin, end, request in sorted(queries):
            if free is not None:
                several.append((request, max(0, begin - free) * _NS))
            free = max(free or 0, end)
    return found


def _end(execution: Execution) -> int:
    return (execution.done or execution.end or execution.begin).time
