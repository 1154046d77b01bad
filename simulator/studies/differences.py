"""How much does a change really change, and how sure is that?

Two long runs tell little about a small difference: their intervals add up. Here both models are simulated
several times for equally long, the k-th time both with the k-th seed. With common random numbers the k-th
client of either model thinks, branches and asks for work as the k-th client of the other does, so chance
moves both the same way and their difference varies much less than each of them. The replications are
independent of each other, so the mean of their differences has a Student-t interval whatever the
dependence within a pair; see Law, "Simulation modeling and analysis", sections 10.2 (paired-t intervals) and
11.2 (common random numbers).

(Batches of one long run of each model are no pairs: once a request has waited longer in one of them, equal
batches hold different requests.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mup.statistics.batches import independent_mean
from simulator.figures.result import Figure, Result

__all__ = [
    "REPLICATIONS",
    "Difference",
    "Lengths",
    "difference",
    "replication_seconds",
    "replication_seeds",
]

REPLICATIONS: Final = 10
MIN_WARMUPS: Final = 2
MIN_CYCLES: Final = 100
FIRST: Final = 0.2
LAST: Final = 2.0
"""Length of all replications together, as a part of the run that gave a scenario its own interval: to begin
with, and at most. Common random numbers usually need much less than that run."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Simulated seconds of each replication: in the first round, and at most."""

    first: float
    last: float

    def longer(self, reached: float, wanted: float) -> Lengths | None:
        """Return the lengths of another round, if a half-width that was reached is not the one wanted.

        Half-widths shrink with the root of the length. None if they are fine, or if it would take too long.
        """
        if reached <= wanted:
            return None
        factor = 2.0 ** max(1, round(math.log2((reached / wanted) ** 2)))
        while factor * self.first > self.last:
            factor /= 2
        return Lengths(factor * self.first, self.last) if factor > 1 else None


@dataclass(frozen=True, slots=True)
class Difference:
    """A scenario minus the baseline.

    Attributes:
        replications: Pairs of runs behind every figure.
        simulated_seconds: Length of each run, warm-up included.
        figures: Keyed by where results have them, ``("cycle", "throughput")``,
            ``("tasks", "A", "utilization")``; only what exists in every run of both.
        baseline: The baseline's mean of each figure in the same runs.
    """

    replications: int
    simulated_seconds: float
    figures: Mapping[tuple[str, ...], Figure]
    baseline: Mapping[tuple[str, ...], float]

    @property
    def precision(self) -> float:
        """Half-width as a fraction of the baseline: the larger one of cycle throughput and response time."""
        found = (self.relative("cycle", name) for name in ("throughput", "response_time"))
        return max((figure.ci95 for figure in found if figure is not None), default=0.0)

    @property
    def throughput(self) -> Figure:
        """Of the cycle, per second."""
        return self.figures["cycle", "throughput"]

    @property
    def response_time(self) -> Figure:
        """Of the cycle, seconds."""
        return self.figures["cycle", "response_time"]

    def relative(self, *key: str) -> Figure | None:
        """Return a difference as a fraction of the baseline; None if that is 0 or does not exist."""
        base = self.baseline.get(key, 0.0)
        if base == 0:
            return None
        figure = self.figures[key]
        return Figure(figure.mean / base, figure.ci95 / abs(base))

    def to_json(self) -> dict[str, Any]:
        """Return the object under ``difference``: nested as a result, with ``relative`` for the cycle."""
        data: dict[str, Any] = {
            "replications": self.replications,
            "simulated_seconds": self.simulated_seconds,
        }
        for key, figure in self.figures.items():
            place = data
            for name in key[:-1]:
                place = place.setdefault(name, {})
            place[key[-1]] = figure.to_json()
            relative = self.relative(*key) if key[0] == "cycle" else None
            if relative is not None:
                place[key[-1]]["relative"] = relative.to_json()
        return data


def replication_seeds(seed: int, count: int = REPLICATIONS) -> list[int]:
    """Return the seeds of the replications, which no main run with a usual seed has used."""
    return [1_000_003 * (seed + 1) + number for number in range(1, count + 1)]


def replication_seconds(baseline: Result, scenario: Result, count: int = REPLICATIONS) -> Lengths:
    """Return how long replications of two models should be, given a run of each.

    At least a few times the warm-up and a number of cycles; a power of two times what the baseline alone
    needs, so that scenarios can share the replications of their baseline.
    """
    unit, need = _seconds(baseline, count), _seconds(scenario, count)
    first = unit * 2.0 ** max(0, math.ceil(math.log2(need / unit)))
    longest = max(baseline.simulated_seconds, scenario.simulated_seconds)
    return Lengths(first, LAST * longest / count)


def _seconds(result: Result, count: int) -> float:
    return max(
        FIRST * result.simulated_seconds / count,
        min(MIN_WARMUPS * result.warmup_seconds, result.simulated_seconds),
        MIN_CYCLES / result.cycle.throughput.mean if result.cycle.throughput.mean > 0 else 0.0,
    )


def difference(baseline: Sequence[Result], scenario: Sequence[Result]) -> Difference:
    """Compare runs of equal length, the k-th of either with the same seed.

    Args:
        baseline: At least two results with different seeds.
        scenario: As many, with the same seeds.
    """
    before = [_values(result) for result in baseline]
    after = [_values(result) for result in scenario]
    keys = [key for key in before[0] if all(key in values for values in (*before, *after))]
    figures = {
        key: Figure(*independent_mean([a[key] - b[key] for a, b in zip(after, before, strict=True)]))
        for key in keys
    }
    means = {key: math.fsum(values[key] for values in before) / len(before) for key in keys}
    return Difference(len(baseline), baseline[0].simulated_seconds, figures, means)


def _values(result: Result) -> dict[tuple[str, ...], float]:
    """Return the means a difference is made of."""
    time = result.cycle.response_time
    found: dict[tuple[str, ...], float] = {
        ("cycle", "throughput"): result.cycle.throughput.mean,
        ("cycle", "response_time"): time.mean,
        ("cycle", "p50"): time.p50.mean,
        ("cycle", "p90"): time.p90.mean,
        ("cycle", "p95"): time.p95.mean,
        ("cycle", "p99"): time.p99.mean,
    }
    for name, task in result.tasks.items():
        if task.utilization is not None:
            found["tasks", name, "utilization"] = task.utilization.mean
    for name, entry in result.entries.items():
        if entry.response_time is not None:
            found["entries", name, "response_time"] = entry.response_time.mean
    for name, processor in result.processors.items():
        found["processors", name, "utilization"] = processor.utilization.mean
    return found
