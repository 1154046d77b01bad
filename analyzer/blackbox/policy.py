"""Choice of the next load to inject, and its duration.

The ramp goes up by fractions of the largest load the current model can bear, ``K / mean service time``: in
large steps far from it, in small ones near it, and once beyond it, for only a station that does not keep up
shows that it has no further servers (Harbaoui et al., RR-7027, sections 3.2 and 4.5). When K rises, so does
the goal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mup.errors import UsageError

__all__ = ["LEVELS", "Limits", "next_rate", "sample_size"]

LEVELS = (0.3, 0.5, 0.65, 0.8, 0.9, 1.1)
"""Fractions of the estimated maximum; the last one is meant to saturate."""
GROWTH = 1.1
"""A step is at least by this factor higher than the one before."""
STEEPEST = 4.0
"""And at most by this one: the estimate it aims at may be wrong."""
FEWEST, MOST = 600, 20_000
"""Requests of all steps together, whatever precision would need."""
NORMAL = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an experiment may do to its target.

    Attributes:
        rate: Most requests per second.
        seconds: Longest duration of all load together.
        response: Seconds; load is not raised any more when the 95th percentile is above it.
        failures: Failed requests after which the experiment ends at once.
        lateness: Mean seconds by which the generator may be late in any case.

    Raises:
        UsageError: A value is out of range.
    """

    rate: float = 200.0
    seconds: float = 180.0
    response: float = 5.0
    failures: int = 3
    lateness: float = 0.005

    def __post_init__(self) -> None:
        for name in ("rate", "seconds", "response"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise UsageError(f"the limit of {name} must be > 0, got {value!r}")
        if self.failures < 0:
            raise UsageError(f"the limit of failures must be >= 0, got {self.failures!r}")


def next_rate(current: float, capacity: float, limit: float) -> float | None:
    """Return the arrivals per second of the next step; None if there is no further one.

    Args:
        current: Of the step before.
        capacity: The largest load the current model can bear.
        limit: The largest that is allowed.
    """
    wanted = [level * capacity for level in LEVELS if level * capacity >= GROWTH * current]
    if current >= limit:
        return None
    # An estimate that was overtaken says nothing about how far to go.
    goal = wanted[0] if wanted else GROWTH * current
    return min(goal, STEEPEST * current, limit)


def sample_size(cv: float, precision: float) -> int:
    """Return how many service times give their mean with a relative 95 % half-width.

    ``(z cv / precision)^2`` (Jain, "The art of computer systems performance analysis", 1991), within limits.

    Args:
        cv: Coefficient of variation.
        precision: Half-width as a fraction of the mean.
    """
    return int(min(max(math.ceil((NORMAL * cv / precision) ** 2), FEWEST), MOST))
