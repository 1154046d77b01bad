"""Check that other programs left the machine alone during a measurement, or name them.

The test is the one that rounds of load have to pass (`mup.workload.cpu.disturbance`): others may use 2 % of
the machine, and its hypervisor may withhold 2 %.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from mup.workload.cpu import HostCpu, disturbance, process_cpu_seconds

__all__ = ["busiest", "process_clocks", "watched"]

Result = TypeVar("Result")

WORTH_NAMING = 0.01
"""Share of the machine from which on a process is named."""


def watched(measurement: Callable[[], Result]) -> tuple[Result, str]:
    """Carry out a measurement whose processes have all ended when it returns.

    Returns:
        Its result, and why it says nothing: what others used, and the process that used most; or "".
    """
    clocks, host, ours = process_clocks(), HostCpu(), _ours()
    host.start()
    result = measurement()
    host.stop()
    reason = disturbance(host, _ours() - ours)
    named = busiest(clocks, process_clocks(), host.capacity_seconds) if reason else ""
    return result, f"{reason}; {named}" if named else reason


def process_clocks() -> dict[int, float]:
    """Return the processor seconds of every other process that can be seen."""
    clocks = {}
    for folder in Path("/proc").glob("[0-9]*"):
        # It may end at any time.
        with suppress(OSError, ValueError):
            clocks[int(folder.name)] = process_cpu_seconds(int(folder.name))
    clocks.pop(os.getpid(), None)
    return clocks


def busiest(before: Mapping[int, float], after: Mapping[int, float], capacity: float) -> str:
    """Return which process has used most between two readings, if it matters; else ""."""
    used = {pid: seconds - before.get(pid, 0.0) for pid, seconds in after.items()}
    pid = max(used, key=used.__getitem__, default=0)
    share = used.get(pid, 0.0) / capacity if capacity else 0.0
    if share < WORTH_NAMING:
        return ""
    # Not its arguments: they may hold secrets.
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return f"most of it {''.join(c if c.isprintable() else '?' for c in name)!r}, process {pid}: {share:.1%}"


def _ours() -> float:
    """Return the processor seconds of this process and of all it has started that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
