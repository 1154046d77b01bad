"""Which of several explanations of traces cannot be told from the best one."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from analyzer.learning.traces import FloatArray

__all__ = ["CANNOT_TELL", "alike"]

SURE: Final = 2.0
"""Standard errors by which one explanation has to miss less than another to be the only one."""
CANNOT_TELL: Final = "these traces cannot tell, longer ones could (both are in the intervals)"


def alike(misses: FloatArray) -> list[int]:
    """Return the best of C explanations, and then those that traces cannot tell from it.

    Args:
        misses: What each misses of each of R independent traces; shape (C, R).
    """
    best = int(np.argmin(misses.mean(axis=1)))
    found = [best]
    for k, missed in enumerate(misses):
        more = missed - misses[best]
        if k != best and more.mean() < SURE * more.std(ddof=1) / math.sqrt(len(more)):
            found.append(k)
    return found
