"""Figures of two versions of a model, and of their difference, each with its interval.

Both versions are simulated with the same random numbers, so chance moves both the same way (Law, "Simulation
modeling and analysis", section 11.2), and what is not different is exactly equal. How sure the numbers of the
models are is told by their replicates: the k-th of both were made of the same draw of the measurements, and
are simulated with the same random numbers as well. Figures are compared as factors, so variances are those of
logarithms: of the replicates (what calibration leaves open, with the chance of one pair of runs), plus that
of the mean of several pairs (what simulation leaves open). Of capacity, chance is taken out of the former:
under overload, runs with the same random numbers are hardly alike, so there it is most of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from mup.errors import LimitError, SimulationError
from mup.lqn.model import Model
from mup.lqn.refs import Names
from mup.lqn.uncertainty import apply
from mup.statistics.student import t_quantile
from simulator.api import Progress, simulate
from simulator.figures.result import ResponseTime, Result
from simulator.machine.budget import Budget
from simulator.studies.differences import replication_seeds
from simulator.studies.parallel import Job, run_jobs
from simulator.studies.saturation import saturation

__all__ = ["FIGURES", "Changed", "Effect", "FigureKey", "Range", "effect", "figures_of", "interval_of"]

TIMES: Final = ("mean", "p50", "p90", "p95", "p99")
FIGURES: Final = (*TIMES, "throughput", "capacity")
"""Response times of a cycle or an endpoint, seconds; cycles per second at this load, and at most."""

PAIRS: Final = 6
PILOT: Final = 0.02
"""Relative half-width of the run that says how long one run of a pair has to be."""
PILOT_EVENTS: Final = 2_000_000
CAPACITIES: Final = 6
"""Replicates whose capacity is looked for, as of all pairs; each takes as long as several short runs."""
MAX_SECONDS: Final = 600.0
"""Wall time of the simulations of one comparison."""

Values = Mapping["FigureKey", float]


class FigureKey(NamedTuple):
    """A figure: of the cycle, or of an endpoint by its label."""

    name: str
    figure: str

    @property
    def label(self) -> str:
        """The text for people."""
        return f"{self.name} {self.figure}".strip()


@dataclass(frozen=True, slots=True)
class Range:
    """A figure with its 95 % interval."""

    mean: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Return ``{"mean", "low", "high"}``."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Changed:
    """A figure before and after.

    Attributes:
        before, after: The figure.
        relative: (after - before) / before, as fractions.
    """

    before: Range
    after: Range
    relative: Range

    @property
    def sure(self) -> bool:
        """Whether the sign of the change is beyond doubt."""
        return self.relative.low > 0 or self.relative.high < 0

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``mup compare --json``."""
        return {name: getattr(self, name).to_json() for name in ("before", "after", "relative")}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does.

    Attributes:
        figures: By figure; those that exist in both versions.
        horizon: Simulated seconds of each run.
        seeds: Of the pairs.
    """

    figures: Mapping[FigureKey, Changed]
    horizon: float
    seeds: tuple[int, ...]


def effect(
    before: Model,
    after: Model,
    *,
    freedom: int | None = None,
    seed: int = 0,
    max_seconds: float = MAX_SECONDS,
    progress: Callable[[int], None] | None = None,
) -> Effect:
    """Return what a change of a model does.

    Args:
        before: Calibrated; with its load.
        after: The same, under the same load.
        freedom: Degrees of freedom of what the replicates say; None = as their number.
        seed: Of all simulations.
        max_seconds: Wall time.
        progress: Called with the number of finished runs now and then.

    Raises:
        UncalibratedError: A model lacks numbers.
        SimulationError: A version cannot be simulated under this load; the message names it.
    """
    budget = Budget("the comparison", seconds=max_seconds)
    pilot = _of("the old version", simulate, before, precision=PILOT, seed=seed, max_events=PILOT_EVENTS)
    horizon = pilot.simulated_seconds
    draws = list(
        zip(
            () if before.uncertainty is None else before.uncertainty.replicates,
            () if after.uncertainty is None else after.uncertainty.replicates,
            strict=False,
        )
    )
    seeds = replication_seeds(seed, PAIRS + len(draws))
    versions = {"the old version": before, "the new version": after}
    if before.tasks == after.tasks and before.processors == after.processors:
        del versions["the new version"]  # it does what the old one does
    jobs: list[Job[Values]] = []
    for number, each in enumerate(seeds):
        models = list(versions.values())
        if number >= PAIRS:
            models = [apply(*both) for both in zip(models, draws[number - PAIRS], strict=False)]
        jobs += [
            partial(_run, model, which, horizon, each, budget)
            for model, which in zip(models, versions, strict=True)
        ]
        if _has_capacity(number):
            jobs += [partial(_capacity, model, each, budget) for model in models]
    found = iter(run_jobs(jobs, progress=progress))
    pairs: list[tuple[Values, Values]] = []
    for number in range(len(seeds)):
        values = [next(found) for _ in versions]
        if _has_capacity(number):
            values = [{**known, **next(found)} for known in values]
        pairs.append((values[0], values[-1]))
    own, others = pairs[:PAIRS], pairs[PAIRS:]
    figures = {}
    for key in own[0][0]:
        if all(key in values and values[key] > 0 for values in own[0]):
            # A capacity is looked for in some of them only.
            known = sum(all(key in values for values in pair) for pair in others or own)
            most = max(1, known - 1)
            figures[key] = _changed(
                key, own, others, most if freedom is None or not others else min(freedom, most)
            )
    return Effect(figures, horizon, tuple(seeds[:PAIRS]))


def _has_capacity(number: int) -> bool:
    """Return whether the capacity of a pair is looked for: not of all replicates."""
    return number < PAIRS + CAPACITIES


def _of(which: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function; the message of its error says which version it is about."""
    try:
        return call(*arguments, **options)
    except SimulationError as error:
        error.message = f"{which} cannot be simulated under this load: {error.message}"
        raise


def _run(
    model: Model,
    which: str,
    horizon: float,
    seed: int,
    budget: Budget,
    progress: Callable[[Progress], None],
) -> Values:
    return _values(
        model,
        _of(
            which,
            simulate,
            model,
            horizon=horizon,
            seed=seed,
            many_beginnings=True,
            budget=budget,
            progress=progress,
        ),
    )


def _values(model: Model, result: Result) -> dict[FigureKey, float]:
    found = {FigureKey("", "throughput"): result.cycle.throughput.mean}
    times: dict[str, ResponseTime | None] = {"": result.cycle.response_time}
    labels = Names(model.tasks).entries
    services = {task.name for task in model.tasks if task.role == "service"}
    times |= {
        label: result.entries[label].response_time
        for ref, label in labels.items()
        if ref.task in services and label in result.entries
    }
    for name, time in times.items():
        if time is not None:
            found[FigureKey(name, "mean")] = time.mean
            found |= {FigureKey(name, figure): getattr(time, figure).mean for figure in TIMES[1:]}
    return found


def _capacity(
    model: Model, seed: int, budget: Budget, progress: Callable[[Progress], None]
) -> dict[FigureKey, float]:
    try:
        found = saturation(model, seed=seed, budget=budget, progress=progress)
    except LimitError:
        raise
    except SimulationError:
        return {}  # it cannot run under more load; whether it runs under its own, others see
    return {} if found.throughput is None else {FigureKey("", "capacity"): found.throughput}


def _changed(
    key: FigureKey,
    own: Sequence[tuple[Values, Values]],
    others: Sequence[tuple[Values, Values]],
    freedom: int,
) -> Changed:
    def logarithms(values: Sequence[float]) -> list[float]:
        return [math.log(value) for value in values if value > 0]

    def ranged(first: Sequence[float], more: Sequence[float]) -> tuple[float, float]:
        """Return the mean of logarithms and the half-width of its interval."""
        return interval_of(first, more, freedom, chance_apart=key.figure == "capacity")

    sides = [
        ranged(
            logarithms([pair[side][key] for pair in own if key in pair[side]]),
            logarithms([pair[side][key] for pair in others if key in pair[side]]),
        )
        for side in (0, 1)
    ]
    ratios = [
        [
            pair[1][key] / pair[0][key]
            for pair in pairs
            if key in pair[0] and key in pair[1] and pair[0][key] > 0
        ]
        for pairs in (own, others)
    ]
    centre, half = ranged(*map(logarithms, ratios))
    before, after = (Range(math.exp(c), math.exp(c - h), math.exp(c + h)) for c, h in sides)
    return Changed(before, after, Range(*(math.expm1(c) for c in (centre, centre - half, centre + half))))


def interval_of(
    own: Sequence[float], others: Sequence[float], freedom: int, *, chance_apart: bool = False
) -> tuple[float, float]:
    """Return a mean and the half-width of its 95 % interval.

    Args:
        own: From runs of the model as it is: what simulation leaves open.
        others: From a run of each of its replicates: what calibration leaves open, too.
        freedom: Degrees of freedom.
        chance_apart: Whether the variance of the replicates counts without that of one run.
    """
    calibration = _variance(others)
    if chance_apart:
        calibration = max(0.0, calibration - _variance(own))
    variance = _variance(own) / max(1, len(own)) + calibration
    return math.fsum(own) / len(own), t_quantile(freedom) * math.sqrt(variance)


def _variance(values: Sequence[float]) -> float:
    return statistics.variance(values) if len(values) > 1 else 0.0


def figures_of(
    runs: Sequence[tuple[Model, int]], horizon: float, *, max_seconds: float = MAX_SECONDS
) -> list[Values]:
    """Return the figures of runs.

    Args:
        runs: Model and seed of each; all models under the same load.
        horizon: Simulated seconds of each run.
        max_seconds: Wall time.

    Raises:
        SimulationError: A model cannot be simulated under this load.
    """
    budget = Budget("the attribution", seconds=max_seconds)
    jobs: list[Job[Values]] = [
        partial(_run, model, "a mixture of the versions", horizon, seed, budget) for model, seed in runs
    ]
    return list(run_jobs(jobs))
