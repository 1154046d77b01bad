"""Local computation of a known size: on a core, or as a wait.

The environment variable ``MUP_WORK`` says which:

- ``cpu`` (default): a fixed number of steps, so that a faster machine needs less time, as for any real code.
  A millisecond stands for `STEPS` steps: one millisecond of one core of a cloud machine (Intel Xeon of 2023,
  CPython 3.11).
- ``wait``: a sleep. It needs no core, so pools and replicas can grow beyond the cores of one machine.
"""

from __future__ import annotations

import os
import time

STEPS = 11
"""Thousands of steps that stand for a millisecond."""

MODE = os.environ.get("MUP_WORK", "cpu")
if MODE not in ("cpu", "wait"):
    raise ValueError(f"MUP_WORK must be cpu or wait, got {MODE!r}")


def work(milliseconds: float) -> None:
    """Do as much as takes this long on the reference machine; or wait so long."""
    if MODE == "wait":
        time.sleep(milliseconds / 1000)
        return
    total = 0
    for _ in range(round(milliseconds * STEPS)):
        for step in range(1000):
            total += step * step
