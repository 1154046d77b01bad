"""How much processor time does mup itself use per request, outside what the event log sees?

The log charges the endpoint's own thread between ``begin`` and ``done``. Everything else a process
does for a request (parsing HTTP, dispatching, reading frames, the database server's work) shows only
in the total processor time of the process. Total minus what it uses when idle, minus what was logged,
divided by the requests, is the framework work per request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from analyzer.calibration.executions import Execution
from analyzer.calibration.rundir import RunInfo

__all__ = ["FrameworkWork", "framework_work", "logged_cpu", "query_cpu"]


@dataclass(frozen=True, slots=True)
class FrameworkWork:
    """Seconds of processor time per request (or cycle, or query), by where it is spent.

    Attributes:
        front: Per service: the replica's front.
        worker: Per service: the worker, outside ``begin``..``done``.
        client: Per client class: the load generator, outside its cycles.
        database: Per database: the server, over all its queries.
    """

    front: dict[str, float] = field(default_factory=dict)
    worker: dict[str, float] = field(default_factory=dict)
    client: dict[str, float] = field(default_factory=dict)
    database: dict[str, float] = field(default_factory=dict)


def logged_cpu(execution: Execution) -> float | None:
    """Return the seconds of processor time the log saw of one execution; None without a CPU clock."""
    if execution.done is None or execution.begin.cpu < 0:
        return None
    return (execution.done.cpu - execution.begin.cpu) / 1e9 + query_cpu(execution)


def query_cpu(execution: Execution) -> float:
    """Return the seconds the auxiliary threads of one execution spent in database drivers."""
    total = 0
    for operation in execution.operations.values():
        if operation.is_query and operation.contact and operation.finish and operation.contact.cpu >= 0:
            total += operation.finish.cpu - operation.contact.cpu
    return total / 1e9


def framework_work(info: RunInfo, executions: Sequence[Execution]) -> FrameworkWork:
    """Split the processor time of every process of a run over what caused it.

    Args:
        info: The run's processes with their processor time inside the windows.
        executions: All executions inside the windows, failed ones included.
    """
    used: dict[tuple[str, str], float] = defaultdict(float)
    servers: dict[int, list[str]] = defaultdict(list)
    for process in info.processes:
        busy = max(0.0, process.cpu - process.idle_rate * info.observed_seconds)
        if process.role == "database":
            # Several databases may live in one server: its time is counted once, and shared.
            servers[process.pid].append(process.service)
            used[process.role, str(process.pid)] = busy
        elif process.service not in info.replaced:
            used[process.role, process.service] += busy
    count: dict[str, int] = defaultdict(int)
    seen: dict[str, float] = defaultdict(float)
    queries: dict[str, int] = defaultdict(int)
    for execution in executions:
        count[execution.service] += 1
        seen[execution.service] += logged_cpu(execution) or 0.0
        for operation in execution.operations.values():
            if operation.is_query:
                queries[operation.dest.split(".", 1)[0]] += 1
    work = FrameworkWork()
    for (role, service), seconds in used.items():
        if role == "database":
            names = servers[int(service)]
            total = sum(queries[name] for name in names)
            work.database.update({name: seconds / total for name in names if queries[name]})
            continue
        n = count[service]
        if n == 0:
            continue
        if role == "front":
            work.front[service] = seconds / n
        elif role == "worker":
            work.worker[service] = max(0.0, seconds - seen[service]) / n
        elif role == "client":
            work.client[service] = max(0.0, seconds - seen[service]) / n
    return work


def dispatch_latency(executions: Iterable[Execution]) -> dict[str, float]:
    """Return, per service, the mean seconds from ``arrive`` to ``begin`` of requests that did not queue."""
    waits: dict[str, list[int]] = defaultdict(list)
    for execution in executions:
        if execution.arrive is not None and not execution.queued:
            waits[execution.service].append(execution.begin.time - execution.arrive)
    return {service: sum(w) / len(w) / 1e9 for service, w in waits.items()}
