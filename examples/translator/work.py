"""Work of a known size: what makes the example's services worth modelling."""

from __future__ import annotations

import random
import time


def burn(milliseconds: float) -> None:
    """Use this much CPU time.

    The clock is the thread's own: waiting for a core does not count as work, so a crowded machine takes
    longer, as it does for real work.
    """
    end = time.thread_time_ns() + int(milliseconds * 1e6)
    while time.thread_time_ns() < end:
        pass


def wait(milliseconds: float) -> None:
    """Wait without using a core, as for a slow foreign service; up to a fifth more or less than this."""
    if milliseconds > 0:
        time.sleep(milliseconds / 1000 * random.uniform(0.8, 1.2))
