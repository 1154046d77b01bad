"""What happened inside, in one measured repeat? Per endpoint: how long it waited, was served and computed.

From the event logs, which are not kept. Times are differences of the monotonic clock all processes of a
machine share.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mup.events.reader import log_files, read_log
from mup.events.record import Event

__all__ = ["entry_figures"]

FloatArray = npt.NDArray[np.float64]


def entry_figures(folder: Path, start: int, end: int) -> dict[str, dict[str, float]]:
    """Return figures of every endpoint, of the executions that ended within a window.

    Args:
        folder: With the logs.
        start: Of the window, monotonic ns.
        end: Of the window.

    Returns:
        By ``A/epA/``: ``count``; ``service`` (s from begin to done), ``queued`` (s from arrive to begin) and
        ``cpu`` (s of the worker's thread from begin to done), all means; ``service_cv``, ``cpu_cv``.
    """
    arrived: dict[int, int] = {}
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    logs = [read_log(paths) for paths in log_files(folder)]
    for log in logs:
        if log.header.get("role") == "front":
            records = log.records[log.records["event"] == Event.ARRIVE]
            arrived.update(zip(records["request"].tolist(), records["time"].tolist(), strict=True))
    for log in logs:
        if log.header.get("role") != "worker":
            continue
        records = log.records[np.isin(log.records["event"], (Event.BEGIN, Event.DONE))]
        # One request at a time: a done right behind a begin belongs to it.
        at = np.flatnonzero((records["event"][:-1] == Event.BEGIN) & (records["event"][1:] == Event.DONE))
        for begin, done in zip(records[at], records[at + 1], strict=True):
            if start <= done["time"] < end:
                queued = begin["time"] - arrived.get(int(begin["request"]), int(begin["time"]))
                row = (done["time"] - begin["time"], queued, done["cpu"] - begin["cpu"])
                found[log.names.get(int(begin["name"]), "")].append((int(row[0]), int(row[1]), int(row[2])))
    return {label: _means(np.array(rows, dtype=np.float64) * 1e-9) for label, rows in sorted(found.items())}


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
