"""Difference between scenario and baseline, with its interval.

The results of both models tell a large change well enough, and nothing else is simulated then. They tell
little about a small one: their intervals add up. So both models are simulated several times more for equally
long, the k-th time both with the k-th seed. With common random numbers the k-th
client of either model thinks, branches and asks for work as the k-th client of the other does, so chance
moves both the same way and their difference varies much less than each of them. The replications are
independent of each other, so the mean of their differences has a Student-t interval whatever the
dependence within a pair; see Law, "Simulation modeling and analysis", sections 10.2 (paired-t intervals) and
11.2 (common random numbers).

(Batches of one long run of each model are no pairs: once a request has waited longer in one of them, equal
batches hold different requests.)

Both answers are put together, each counting by its variance (Graybill and Deal, "Combining unbiased
estimators", 1959; the interval allows for the variances being estimates, as in Meier, "Variance of a weighted
mean", 1953). The pairs get longer until it is known what one asks of a change: whether there is one, and
about how large it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mup.statistics.batches import independent_mean
from simulator.figures.result import Figure, Result

__all__ = [
    "REPLICATIONS",
    "Comparison",
    "Difference",
    "Lengths",
    "Values",
    "difference",
    "replication_seconds",
    "replication_seeds",
    "values_of",
]

Values = Mapping[tuple[str, ...], float]
"""Means of one run, keyed by where results have them."""

REPLICATIONS: Final = 10
MIN_WARMUPS: Final = 2
MIN_CYCLES: Final = 100
FIRST: Final = 0.2
"""Length of all replications together to begin with, as a part of the run that gave a scenario its own
interval. Common random numbers usually need much less than that run."""
LAST: Final = 1.0
"""Timed steps of all pairs together at most, as a part of those of both models' own runs. Equally long runs
of one client and of fifty are not equally dear."""
KNOWN: Final = 0.05
"""Half-width, as a part of the difference itself, that is small enough."""
SURE: Final = 2.0
"""A difference is so many half-widths from 0 where its sign is beyond doubt."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Simulated seconds of each replication: in the first round, and at most."""

    first: float
    last: float

    def longer(self, lacking: float) -> Lengths | None:
        """Return the lengths of another round.

        Args:
            lacking: So many times too wide is the interval. It shrinks with the root of the length.

        Returns:
            None if it would take too long.
        """
        factor = 2.0 ** max(1, round(math.log2(lacking**2)))
        while factor * self.first > self.last:
            factor /= 2
        return Lengths(factor * self.first, self.last) if factor > 1 else None


@dataclass(frozen=True, slots=True)
class Difference:
    """A scenario minus the baseline.

    Attributes:
        replications: Pairs of runs behind every figure; 0 if the two results alone say it.
        simulated_seconds: Length of each run of the pairs, warm-up included; 0 if there are none.
        figures: Keyed by where results have them, ``("cycle", "throughput")``,
            ``("tasks", "A", "utilization")``; only what exists in every run of both.
        baseline: The baseline's mean of each figure in the same runs.
    """

    replications: int
    simulated_seconds: float
    figures: Mapping[tuple[str, ...], Figure]
    baseline: Values

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
    both = (baseline, scenario)
    steps_per_second = math.fsum(result.events / result.simulated_seconds for result in both)
    return Lengths(first, LAST * sum(result.events for result in both) / steps_per_second / count)


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
    before, after = ([values_of(result) for result in results] for results in (baseline, scenario))
    return _paired(before, after, baseline[0].simulated_seconds)


def _paired(before: Sequence[Values], after: Sequence[Values], seconds: float) -> Difference:
    keys = [key for key in before[0] if all(key in values for values in (*before, *after))]
    figures = {
        key: Figure(*independent_mean([a[key] - b[key] for a, b in zip(after, before, strict=True)]))
        for key in keys
    }
    means = {key: math.fsum(values[key] for values in before) / len(before) for key in keys}
    return Difference(len(before), seconds, figures, means)


class Comparison:
    """The difference of a scenario to its baseline, as more and more becomes known.

    Attributes:
        found: The difference.

    Args:
        baseline: Result of the baseline.
        scenario: Result of the scenario.
        precision: Half-width, as a part of the baseline's figure, that is small enough for any difference.
    """

    def __init__(self, baseline: Result, scenario: Result, precision: float) -> None:
        self._results = self.found = _of_results(baseline, scenario)
        self._freedom = min(baseline.batches, scenario.batches) - 1
        self._precision = precision
        lengths = replication_seconds(baseline, scenario)
        # A change that is large is known already: the sign of one that is not deserves a look.
        resolved = self._lacking(by_sign=False) <= 1
        self._lengths = None if resolved or lengths.first > lengths.last else lengths

    @property
    def wanted(self) -> float | None:
        """Simulated seconds of the pairs to be run next; None if enough is known, or would take too long."""
        return None if self._lengths is None else self._lengths.first

    def add(self, baseline: Sequence[Values], scenario: Sequence[Values]) -> None:
        """Take note of the pairs that were wanted, the k-th runs of either with the same seed."""
        assert self._lengths is not None  # noqa: S101 - pairs are not wanted otherwise
        self.found = _together(_paired(baseline, scenario, self._lengths.first), self._results, self._freedom)
        lacking = self._lacking(by_sign=True)
        self._lengths = None if lacking <= 1 else self._lengths.longer(lacking)

    def end(self) -> None:
        """Ask for nothing more."""
        self._lengths = None

    def _lacking(self, *, by_sign: bool) -> float:
        """Return how many times too wide the widest interval of the cycle's figures is.

        Args:
            by_sign: It is enough to know beyond doubt whether a figure grows or falls.
        """
        worst = 0.0
        for name in ("throughput", "response_time"):
            figure = self.found.relative("cycle", name)
            if figure is not None:
                fine = max(self._precision, KNOWN * abs(figure.mean))
                if by_sign:
                    fine = max(fine, abs(figure.mean) / SURE)
                worst = max(worst, figure.ci95 / fine)
        return worst


def _of_results(baseline: Result, scenario: Result) -> Difference:
    """Return what the results of both models say by themselves, taken as independent."""
    before, after = _figures(baseline), _figures(scenario)
    keys = [key for key in before if key in after]
    figures = {
        key: Figure(after[key].mean - before[key].mean, math.hypot(after[key].ci95, before[key].ci95))
        for key in keys
    }
    return Difference(0, 0.0, figures, {key: before[key].mean for key in keys})


def _together(paired: Difference, single: Difference, freedom: int) -> Difference:
    """Return what pairs and the two results say together; they share no random number.

    Args:
        paired: Of the pairs.
        single: Of the results.
        freedom: Degrees of freedom of those.
    """
    figures = dict(paired.figures)
    for key, one in paired.figures.items():
        other = single.figures.get(key)
        if other is not None and one.ci95 > 0 and other.ci95 > 0:
            share = 1 / (1 + (one.ci95 / other.ci95) ** 2)
            inflation = 1 + 4 * share * (1 - share) * (1 / (paired.replications - 1) + 1 / freedom)
            half = one.ci95 * other.ci95 / math.hypot(one.ci95, other.ci95) * math.sqrt(inflation)
            figures[key] = Figure(share * one.mean + (1 - share) * other.mean, half)
    return replace(paired, figures=figures)


def values_of(result: Result) -> Values:
    """Return the means a difference is made of."""
    return {key: figure.mean for key, figure in _figures(result).items()}


def _figures(result: Result) -> dict[tuple[str, ...], Figure]:
    time = result.cycle.response_time
    found: dict[tuple[str, ...], Figure] = {
        ("cycle", "throughput"): result.cycle.throughput,
        ("cycle", "response_time"): time,
        ("cycle", "p50"): time.p50,
        ("cycle", "p90"): time.p90,
        ("cycle", "p95"): time.p95,
        ("cycle", "p99"): time.p99,
    }
    for name, task in result.tasks.items():
        if task.utilization is not None:
            found["tasks", name, "utilization"] = task.utilization
    for name, entry in result.entries.items():
        if entry.response_time is not None:
            found["entries", name, "response_time"] = entry.response_time
    for name, processor in result.processors.items():
        found["processors", name, "utilization"] = processor.utilization
    return found
