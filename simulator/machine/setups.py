"""Tables of set-ups after sleep, and the arithmetic that all engines share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt

from mup.native.binding import compiled
from mup.native.shapes import ANY
from simulator.program import Program

__all__ = ["SleepTables", "share_after", "sleep_tables", "with_setup"]

LIKELY: Final = 0.5
"""A thread that finds its core busy is taken to move to an idle one if it does so at least as often."""

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

# Columns of knots.
K_GAP: Final = 0
K_LOG: Final = 1
"""The logarithm of the gap, in which shares are linear."""
K_WORKER: Final = 2
K_CORE: Final = 3
KNOT_FLOATS: Final = 4

# Columns of set-ups: seconds of a worker fully cold, and of a core fully cold; which sleep they depend on,
# and whether it is that of the front.
X_WORKER: Final = 0
X_CORE: Final = 1
X_SLEEP: Final = 0
X_BY_FRONT: Final = 1

Knots = Annotated[Floats, (ANY, KNOT_FLOATS)]
Bounds = Annotated[Longs, (ANY, 2)]
Seconds = Annotated[Floats, (ANY, 2)]
SetupKinds = Annotated[Longs, (ANY, 2)]


@dataclass(frozen=True, slots=True)
class SleepTables:
    """What sleep costs, as arrays.

    Attributes:
        knots: Gaps with their shares, one sleep behind the other.
        bounds: The first knot of every sleep, and the one behind its last.
        seconds, kinds: Those of every set-up, and what it depends on.
    """

    knots: Floats
    bounds: Longs
    seconds: Floats
    kinds: Longs


def sleep_tables(program: Program) -> SleepTables:
    """Return the tables of a program; one row of zeros where it has none."""
    rows = [
        (gap, math.log(gap), worker, core)
        for sleep in program.sleeps
        for gap, worker, core in zip(sleep.gaps, sleep.worker, sleep.core, strict=True)
    ]
    ends = np.cumsum([0] + [len(sleep.gaps) for sleep in program.sleeps])
    bounds = np.stack([ends[:-1], ends[1:]], axis=1) if program.sleeps else np.zeros((1, 2))
    seconds = [(setup.worker, setup.core) for setup in program.setups]
    return SleepTables(
        np.array(rows or [(0.0,) * KNOT_FLOATS], dtype=np.float64),
        np.ascontiguousarray(bounds, dtype=np.int64),
        np.array(seconds or [(0.0, 0.0)], dtype=np.float64),
        np.array([(s.sleep, int(s.by_front)) for s in program.setups] or [(0, 0)], dtype=np.int64),
    )


@compiled
def share_after(knots: Knots, bounds: Bounds, sleep: int, column: int, gap: float) -> float:
    """Return the share of a set-up after a gap in seconds, as ``mup.lqn.Setup.share`` does."""
    first, last = bounds[sleep, 0], bounds[sleep, 1] - 1
    if gap <= 0.0:
        return 0.0
    if gap <= knots[first, K_GAP]:
        return float(knots[first, column])
    if gap >= knots[last, K_GAP]:
        return float(knots[last, column])
    right = first + 1
    while gap >= knots[right, K_GAP]:
        right += 1
    left = right - 1
    part = (math.log(gap) - knots[left, K_LOG]) / (knots[right, K_LOG] - knots[left, K_LOG])
    return float(knots[left, column] + part * (knots[right, column] - knots[left, column]))


@compiled
def with_setup(seconds: Seconds, setup: int, worker: float, core: float) -> float:
    """Return the seconds that a set-up adds at some shares."""
    return float(seconds[setup, X_WORKER] * worker + seconds[setup, X_CORE] * core)
