"""Times inside of one measured repeat, per endpoint: waiting, service and computing.

From the event logs, which are not kept. Times are differences of the monotonic clock all processes of a
machine share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analyzer.calibration.executions import collect
from analyzer.calibration.overlapping import give_own_clocks
from mup.events.reader import Log, log_files, read_log
from mup.workload.occupancy import arrivals
from mup.workload.occupancy import executions as executed

__all__ = ["entry_figures"]

FloatArray = npt.NDArray[np.float64]


def entry_figures(folder: Path, start: int, end: int) -> dict[str, dict[str, float]]:
    """Return figures of every endpoint, of the executions that ended within a window.

    Args:
        folder: With the logs.
        start: Of the window, monotonic ns.
        end: Of the window.

    Returns:
        By ``A/epA/``: ``count``; ``service`` (s for which it had a worker), ``queued`` (s before that) and
        ``cpu`` (s of the worker's thread from begin to done; on event loops without what these did for
        others), all means; ``service_cv``, ``cpu_cv``.
    """
    logs = [read_log(paths) for paths in log_files(folder)]
    on_loops = _own_times(logs, start, end)
    arrived = arrivals(log for log in logs if log.header.get("role") == "front")
    found: dict[str, list[FloatArray]] = defaultdict(list)
    for log in logs:
        if log.header.get("role") != "worker":
            continue
        for label in set(log.names.values()):
            runs = executed(log, arrived, label)
            inside = (start <= runs.done) & (runs.done < end)
            if inside.any():
                rows = (runs.done - runs.taken, runs.taken - runs.arrived, runs.cpu)
                found[label].append(np.stack(rows, axis=1)[inside].astype(np.float64))
    return {
        label: _means(np.concatenate(rows) * 1e-9, on_loops.get(label))
        for label, rows in sorted(found.items())
    }


def _own_times(logs: Sequence[Log], start: int, end: int) -> dict[str, FloatArray]:
    """Return the seconds of processor time of executions on event loops, by endpoint."""
    loops = {str(log.header["service"]) for log in logs if log.header.get("runtime") == "async"}
    if not loops:
        return {}
    executions = collect(logs)
    give_own_clocks(executions, loops)
    found: dict[str, list[float]] = defaultdict(list)
    for one in executions:
        inside = one.done is not None and start <= one.done.time < end
        if one.done is not None and inside and one.service in loops and one.role == "worker":
            found[one.endpoint].append((one.done.cpu - one.begin.cpu) * 1e-9)
    return {label: np.array(times) for label, times in found.items()}


def _means(rows: FloatArray, own: FloatArray | None) -> dict[str, float]:
    if own is None:
        own = rows[:, 2]
    service, queued, _ = rows.mean(axis=0).tolist()
    deviations = (*rows.std(axis=0)[:2].tolist(), float(own.std()))
    cpu = float(own.mean())
    return {
        "count": len(rows),
        "service": service,
        "queued": queued,
        "cpu": cpu,
        "service_cv": deviations[0] / service if service else 0.0,
        "cpu_cv": deviations[2] / cpu if cpu else 0.0,
    }
