"""Slow-down of work while the machine is mostly idle.

Load processes, one per core, keep the cores busy for a given share of the time, in bursts of milliseconds as
services do; a monitor (``mup.workload.speed_monitor``) times a little work meanwhile. While the machine
dozes, some of its samples take nearly twice as long; the mean over the usual ones is what idling costs.
"""

from __future__ import annotations

import os
import random
import time
from typing import Final

from analyzer.host.forks import fork
from mup.workload.speed_monitor import SpeedMonitor

__all__ = ["LEVELS", "idling"]

LEVELS: Final = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
"""Utilizations at which it is measured."""
BURST: Final = 0.002
"""Mean seconds of a burst of the load; exponential."""
PERIOD: Final = 0.05
BATCHES: Final = 4
"""Of a level; the test needs their variance."""


def idling(seconds: float) -> dict[str, list[float]]:
    """Return, per level of utilization, factors on processor time: one per batch of samples.

    Args:
        seconds: For all levels together.
    """
    found: dict[str, list[float]] = {}
    cores = sorted(os.sched_getaffinity(0))
    for level in LEVELS:
        length = seconds / len(LEVELS)
        end = time.monotonic() + length
        # Forked before the monitor's thread exists.
        loads = [fork(_load, core, level, end) for core in cores]
        begin = time.monotonic_ns()
        with SpeedMonitor(PERIOD) as monitor:
            time.sleep(max(0.0, end - time.monotonic()))
            whole = monitor.speed(begin, time.monotonic_ns())
            step = int(length * 1e9 / BATCHES)
            batches = [monitor.speed(begin + k * step, begin + (k + 1) * step) for k in range(BATCHES)]
        for load in loads:
            load.result()
        if whole is not None:
            found[f"{level:g}"] = [whole.usual / batch.speed for batch in batches if batch is not None]
    return found


def _load(core: int, level: float, end: float) -> float:
    """Keep a core busy for a share of the time; return the share."""
    os.sched_setaffinity(0, {core})
    draw = random.Random(core)
    began, before = time.monotonic(), time.process_time()
    while time.monotonic() < end:
        burst = draw.expovariate(1 / BURST)
        stop = time.thread_time() + burst
        total = 0
        while time.thread_time() < stop:
            for number in range(200):
                total += number & 3
        time.sleep(min(burst * (1 - level) / level, max(0.0, end - time.monotonic())))
    return (time.process_time() - before) / (time.monotonic() - began)
