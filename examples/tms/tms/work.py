"""Local computation of a known size: on a core, or as a wait.

The environment variable ``MUP_WORK`` says which:

- ``cpu`` (the default): a fixed number of steps, so that a faster machine needs less time, as for any real
  code. A millisecond stands for `STEPS` of them: one millisecond of a core of a cloud machine (Intel Xeon of
  2023, CPython 3.11).
- ``wait``: a pause. It needs no core, so pools and replicas can grow beyond the cores of one machine.
"""

from __future__ import annotations

import os
import time

STEPS = 11_000

MODE = os.environ.get("MUP_WORK", "cpu")
if MODE not in {"cpu", "wait"}:
    raise ValueError(f"MUP_WORK must be cpu or wait, got {MODE!r}")


def milliseconds(name: str, default: float) -> float:
    """Return how much work something is, from the environment."""
    return float(os.environ.get(name, default))


def compute(milliseconds: float) -> None:
    """Do as much as takes this long on the reference machine; or wait so long."""
    if MODE == "wait":
        time.sleep(milliseconds / 1000)
        return
    total = 0
    for step in range(round(milliseconds * STEPS)):
        total += step * step
