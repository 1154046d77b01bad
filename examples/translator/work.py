"""Work of a known size: what makes the example's services worth modelling."""

from __future__ import annotations

import random
import time

ROUNDS = 20_000
"""Of the loop below, in one millisecond of a processor of about 2023."""


def burn(milliseconds: float) -> None:
    """Use a core for about this long.

    It is an amount of work, as that of real code: a slower machine takes longer, and so does a crowded one.
    """
    state = 1
    for _ in range(int(milliseconds * ROUNDS)):
        state = (state * 5 + 1) & 0xFFFF


def wait(milliseconds: float) -> None:
    """Wait without using a core, as for a slow foreign service; up to a fifth more or less than this."""
    if milliseconds > 0:
        time.sleep(milliseconds / 1000 * random.uniform(0.8, 1.2))
