"""Times inside of one measured repeat, per endpoint: waiting, service and computing.

From the event logs, which are not kept. Times are differences of the monotonic clock all processes of a
machine share.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mup.events.reader import log_files, read_log
from mup.workload.occupancy import arrivals, executions

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
        ``cpu`` (s of the worker's thread from begin to done), all means; ``service_cv``, ``cpu_cv``.
    """
    logs = [read_log(paths) for paths in log_files(folder)]
    arrived = arrivals(log for log in logs if log.header.get("role") == "front")
    found: dict[str, list[FloatArray]] = defaultdict(list)
    for log in logs:
        if log.header.get("role") != "worker":
            continue
        for label in set(log.names.values()):
            runs = executions(log, arrived, label)
            inside = (start <= runs.done) & (runs.done < end)
            if inside.any():
                rows = (runs.done - runs.taken, runs.taken - runs.arrived, runs.cpu)
                found[label].append(np.stack(rows, axis=1)[inside].astype(np.float64))
    return {label: _means(np.concatenate(rows) * 1e-9) for label, rows in sorted(found.items())}


def _means(rows: FloatArray) -> dict[str, float]:
    service, queued, cpu = rows.mean(axis=0).tolist()
    deviations = rows.std(axis=0).tolist()
    return {
        "count": len(rows),
        "service": service,
        "queued": queued,
        "cpu": cpu,
        "service_cv": deviations[0] / service if service else 0.0,
        "cpu_cv": deviations[2] / cpu if cpu else 0.0,
    }
