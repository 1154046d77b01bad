"""Read executions of mup's services from event logs, as requests of one station.

The station is the machine the services run on, the classes are their endpoints. A request is in process
while its endpoint runs, but not while it waits in ``get`` for a reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from analyzer.calibration.executions import Execution, collect
from analyzer.estimation.samples import Trace
from mup.errors import LogError, UsageError, did_you_mean
from mup.events.reader import log_files, read_log

__all__ = ["executions_of", "read_event_logs", "trace_of_executions"]

_NS = 1e-9


def executions_of(path: Path, services: Sequence[str] = ()) -> list[Execution]:
    """Return the completed executions of endpoints in a log or a folder of logs.

    Args:
        path: A log, or a folder: all logs in it.
        services: Those that count; empty = all.

    Raises:
        LogError: There is no log, or one that cannot be read.
        UsageError: A service has not logged anything here.
    """
    files = log_files(path) if path.is_dir() else [[path]]
    if not files:
        raise LogError("no event logs in this folder", where=str(path))
    logs = [read_log(segments) for segments in files]
    if any(int(log.header.get("sample", 1)) > 1 for log in logs):
        raise LogError(
            "only a sample of the requests was logged: it is unknown what those in it shared the cores with",
            where=str(path),
            hint="log all of them: MUP_LOG_SAMPLE=1",
        )
    # Unfinished ones have no length, and clients use no core of the station.
    found = [e for e in collect(logs) if e.role != "client" and e.done is not None]
    known = sorted({e.service for e in found})
    for service in services:
        if service not in known:
            raise UsageError(
                f"no requests of a service {service!r}; {did_you_mean(service, known)}", where=str(path)
            )
    if services:
        found = [e for e in found if e.service in services]
    if not found:
        raise LogError("no completed requests in this log", where=str(path))
    return found


def read_event_logs(path: Path, services: Sequence[str] = ()) -> Trace:
    """Return the trace of the completed executions; arguments and errors as for ``executions_of``."""
    return trace_of_executions(executions_of(path, services))


def trace_of_executions(executions: Sequence[Execution]) -> Trace:
    """Return the trace of executions; all clocks must be those of one machine."""
    classes = tuple(sorted({e.endpoint for e in executions}))
    number = {name: r for r, name in enumerate(classes)}
    origin = min(e.begin.time for e in executions)
    owner: list[int] = []
    start: list[float] = []
    end: list[float] = []
    for i, execution in enumerate(executions):
        since = execution.begin.time
        for step in execution.steps:
            if step.op == "get" and step.resume.time > step.start.time:
                owner.append(i)
                start.append((since - origin) * _NS)
                end.append((step.start.time - origin) * _NS)
                since = step.resume.time
        until = since if execution.done is None else max(since, execution.done.time)
        owner.append(i)
        start.append((since - origin) * _NS)
        end.append((until - origin) * _NS)
    kind = np.array([number[e.endpoint] for e in executions], dtype=np.int64)
    return Trace(classes, kind, np.array(owner), np.array(start), np.maximum(np.array(end), np.array(start)))
