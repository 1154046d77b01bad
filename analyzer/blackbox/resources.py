"""Processor time of the target: a process with its descendants, or a Prometheus endpoint."""

from __future__ import annotations

import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from mup.errors import UsageError
from mup.workload.cpu import process_cpu_seconds

__all__ = ["CpuWatch", "prometheus_seconds", "tree_seconds"]

COUNTERS = ("mup_cpu_seconds_total", "process_cpu_seconds_total")
"""Names of processor time in seconds, the first that is there counts."""
TIMEOUT = 2.0
LARGEST = 1 << 22

_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})?\s+([-+.\deE]+|NaN|[-+]?Inf)")


def tree_seconds(pid: int) -> float:
    """Return the processor time of a process and its living descendants, in seconds.

    Raises:
        UsageError: There is no such process.
    """
    try:
        total = process_cpu_seconds(pid)
    except (ProcessLookupError, OverflowError) as error:  # what no process id can be overflows
        raise UsageError(
            f"there is no process {pid}", hint="--pid names the process that serves the URL"
        ) from error
    for child in _children(pid):
        try:
            total += tree_seconds(child)
        except UsageError:
            continue  # it ended just now
    return total


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text(encoding="ascii").split())
        except OSError:
            continue
    return found


def prometheus_seconds(url: str, name: str = "") -> float:
    """Return the processor time a Prometheus endpoint tells, summed over its labels, in seconds.

    Args:
        url: Of the metrics.
        name: Of the counter; "" = one of the usual ones.

    Raises:
        UsageError: The endpoint does not answer, or has no such counter.
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 - always http
            text = answer.read(LARGEST).decode("utf-8", "replace")
    except (OSError, urllib.error.URLError, ValueError) as error:
        raise UsageError(f"cannot read metrics: {error}", where=url) from error
    totals: dict[str, float] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            totals[match[1]] = totals.get(match[1], 0.0) + float(match[2])
    for wanted in (name,) if name else COUNTERS:
        if wanted in totals:
            return totals[wanted]
    known = ", ".join(sorted(n for n in totals if "cpu" in n)) or "none with 'cpu' in its name"
    raise UsageError(
        f"there is no counter {name or ' or '.join(COUNTERS)}; there is {known}",
        where=url,
        hint="name the one that counts processor seconds with --metric",
    )


class CpuWatch:
    """A stop watch of processor time.

    Args:
        read: Returns processor time so far, in seconds.
        cores: How many the target may use.
    """

    def __init__(self, read: Callable[[], float], cores: int | None = None) -> None:
        self._read = read
        self._cores = cores or os.cpu_count() or 1
        self._mark = (0.0, 0.0)

    def start(self) -> None:
        """Begin an interval."""
        self._mark = (time.monotonic(), self._read())

    def stop(self) -> tuple[float, float]:
        """Return utilization of the cores (0 to 1) and processor seconds since the start."""
        began, before = self._mark
        used = max(self._read() - before, 0.0)
        elapsed = max(time.monotonic() - began, 1e-9)
        return used / elapsed / self._cores, used
