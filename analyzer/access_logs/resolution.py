"""How fine the clock behind durations is, and whether that is fine enough.

A clock that moves in steps of q makes every duration wrong by up to q. That evens out in a mean if steps come
independently of requests; with durations below a step there is little left to even out, and servers that look
at the clock once per turn of their event loop (nginx) write 0 for whatever they do within one turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.access_logs.moments import FloatArray
from mup.errors import UsageError

__all__ = ["Resolution", "check_resolution", "resolution_of"]

LOOKED_AT = 100_000
"""Durations, evenly spread over all."""
FEWEST = 100
"""Durations from which on their steps say something about the clock."""
COARSE = 10.0
"""Steps a mean duration should have."""
STEPS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)
ROUNDING = 1e-8
"""Seconds by which a multiple of a step may be off: durations are differences of large numbers."""


@dataclass(frozen=True)
class Resolution:
    """What a clock can tell.

    Attributes:
        step: The largest power of ten of which all durations are multiples, s; None if they are of none down
            to a microsecond, or there are too few.
        mean: Mean duration, s.
        zeros: Part of the durations that are 0.
    """

    step: float | None
    mean: float
    zeros: float

    @property
    def too_coarse(self) -> bool:
        """Whether the durations say nothing: all are 0, or shorter than a step on average."""
        return self.mean == 0 or (self.step is not None and self.mean < self.step)

    @property
    def coarse(self) -> bool:
        """Whether a mean has few steps."""
        return self.step is not None and self.mean < COARSE * self.step


def resolution_of(durations: FloatArray) -> Resolution:
    """Return the resolution of durations in seconds, shape (I,), I >= 1."""
    every = max(1, len(durations) // LOOKED_AT)
    some = durations[::every]
    step = None
    if len(some) >= FEWEST and some.max() > 0:
        for candidate in STEPS:
            if np.abs(some - np.round(some / candidate) * candidate).max() <= ROUNDING:
                step = candidate
                break
    return Resolution(step, float(durations.mean()), float(np.mean(some < STEPS[-1] / 2)))


def check_resolution(found: Resolution, where: str) -> None:
    """Refuse durations that the clock cannot tell.

    Raises:
        UsageError: They are all 0, or shorter than a step on average.
    """
    if not found.too_coarse:
        return
    if found.mean == 0:
        what = "all durations are 0: they are below the resolution of the clock"
    else:
        what = (
            f"the mean duration, {found.mean * 1e3:.3g} ms, is below the resolution of the clock, "
            f"{(found.step or 0) * 1e3:g} ms ({found.zeros:.0%} are 0)"
        )
    raise UsageError(
        what,
        where=where,
        hint="log microseconds (Apache %D, Envoy %DURATION% with a finer unit), or at the application: nginx "
        "looks at its clock once per turn of its event loop",
    )
