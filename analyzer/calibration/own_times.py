"""Times of an endpoint's work that depend on its caller.

Some answer with three pictures or with twenty, depending on what they are asked for. If one page asks for
twenty and another one for three, and both calls took as long as the mean of all, each page would take equally
long, and what many users meet in a queue would be another one.
"""

from __future__ import annotations

from collections.abc import Sequence

from scipy.special import chdtrc

from analyzer.calibration.executions import Execution

__all__ = ["OwnTimes", "own_time", "times_differ"]

EFFECT = 0.2
"""Relative difference of a mean below which it is not worth a variant."""

LEAST = 1e-4
"""Difference in seconds below which it is not worth a variant."""

CLOCK = 1e-6
"""Seconds by which times may differ that are all the same."""


class OwnTimes:
    """Count, mean and variation of some times; can be added up without keeping them."""

    __slots__ = ("count", "mean", "squares")

    def __init__(self, count: int = 0, mean: float = 0.0, squares: float = 0.0) -> None:
        self.count = count
        self.mean = mean
        self.squares = squares

    def add(self, seconds: float) -> None:
        """Note a time."""
        self.count += 1
        before = seconds - self.mean
        self.mean += before / self.count
        self.squares += before * (seconds - self.mean)

    def joined(self, other: OwnTimes) -> OwnTimes:
        """Return both together."""
        count = self.count + other.count
        if not count:
            return OwnTimes()
        apart = other.mean - self.mean
        return OwnTimes(
            count,
            self.mean + apart * other.count / count,
            self.squares + other.squares + apart**2 * self.count * other.count / count,
        )

    @property
    def variance_of_mean(self) -> float:
        """Square of the standard error, seconds squared; at least what the clock allows for."""
        return (self.squares / (self.count - 1) + CLOCK**2) / self.count

    def distance(self, other: OwnTimes) -> float:
        """Return by how much the means differ, as a share of the larger one."""
        larger = max(self.mean, other.mean)
        return abs(self.mean - other.mean) / larger if larger > 0 else 0.0


def own_time(execution: Execution) -> float:
    """Return the seconds an execution took, without waiting for replies and without thinking."""
    last = execution.done or execution.end or execution.begin
    elsewhere = sum(s.resume.time - s.start.time for s in execution.steps if s.op in ("get", "think"))
    return max(0, last.time - execution.begin.time - elsewhere) * 1e-9


def times_differ(rows: Sequence[OwnTimes], *, chance: float) -> bool:
    """Return whether means differ, both beyond chance and by enough to matter.

    They do if a test says so (the weighted squares of their distances from a common mean: Welch, "On the
    comparison of several mean values", 1951, for many values), and if one of them is further than 20 % and
    0.1 ms from the mean of all.

    Args:
        rows: Per caller, of at least two executions.
        chance: How probable the answer yes may be if all means are the same.
    """
    if len(rows) < 2:
        return False
    everything = sum(row.count for row in rows)
    mean = sum(row.count * row.mean for row in rows) / everything
    if max(abs(row.mean - mean) for row in rows) < max(EFFECT * mean, LEAST):
        return False
    weights = [1 / row.variance_of_mean for row in rows]
    common = sum(w * row.mean for w, row in zip(weights, rows, strict=True)) / sum(weights)
    statistic = sum(w * (row.mean - common) ** 2 for w, row in zip(weights, rows, strict=True))
    return float(chdtrc(len(rows) - 1, statistic)) < chance
