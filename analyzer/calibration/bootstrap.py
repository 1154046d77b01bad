"""Bootstrap: the numbers of a model on other draws of whole windows.

Windows are the batches: what follows each other within seconds is too alike to count as independent
(Efron, "Bootstrap methods", 1979, on batches as in Kuensch, "The jackknife and the bootstrap for general
stationary observations", 1989). Every phase is resampled by itself, so that each replicate has as many hot
and cold windows as the run.

Which phase leaves how much open takes another resampling: some windows in turn weigh more than the others,
and what a figure moves by then is their influence on it (Jaeckel, "The infinitesimal jackknife", 1972).
Nothing is drawn there, so that a rule which stops on it does not stop for a lucky draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from analyzer.calibration.callsites import Variant, variant_name
from analyzer.calibration.observed import FloatArray, Observed
from analyzer.calibration.rundir import Phase, Window
from analyzer.calibration.sleep_costs import SleepCosts
from analyzer.calibration.terms import Term, Terms
from mup.lqn import ActivityRef, EntryRef, Model, Names, Replicate

__all__ = [
    "REPLICATES",
    "Emphasis",
    "batches",
    "drawn",
    "emphases",
    "emphasized",
    "replicates",
    "with_variants",
]

REPLICATES = 20
"""Enough for a standard deviation known to 16 %."""

FEWEST_WINDOWS = 3
LEAST_CV = 0.05
"""Times that vary less are as good as constant."""

PHASES: tuple[Phase, ...] = ("hot", "cold", "burst")

MOST_GROUPS = 10
"""Windows of a phase are taken together beyond this: a variance from ten is known well enough."""

T = TypeVar("T")


def drawn(observed: Observed, *, count: int = REPLICATES, seed: int = 0) -> tuple[FloatArray, ...]:
    """Return how often each window was drawn, one array per replicate.

    Args:
        observed: The run.
        count: How many replicates.
        seed: Of the resampling.

    Returns:
        Nothing if the run has fewer than three windows: then nothing is known about the sureness.
    """
    if len(observed.windows) < FEWEST_WINDOWS:
        return ()
    generator = np.random.default_rng(seed)
    return tuple(_resampled(observed, generator) for _ in range(count))


def replicates(
    terms: Terms,
    observed: Observed,
    model: Model,
    draws: Sequence[FloatArray],
    costs: SleepCosts | None = None,
) -> tuple[Replicate, ...]:
    """Return replicates of a calibrated model.

    Args:
        terms: Of the model.
        observed: The run.
        model: Calibrated from the terms.
        draws: Of its windows, one per replicate.
        costs: What sleep explains of the terms.
    """
    return tuple(_replicate(terms, observed, model, weights, costs) for weights in draws)


def batches(observed: Observed) -> int:
    """Return how many windows replicates are drawn from.

    Where there are hot windows, times come from them alone.
    """
    return max(2, int(observed.phase("hot").sum()) or len(observed.windows))


@dataclass(frozen=True, slots=True)
class Emphasis:
    """Windows of one phase that weigh more than its others.

    Attributes:
        phase: Theirs.
        windows: Their numbers in the run.
        groups: Such groups of windows in the phase.
    """

    phase: Phase
    windows: tuple[int, ...]
    groups: int

    @property
    def weight(self) -> float:
        """How often the windows count: as far from once as a resample of all groups is, all in all."""
        return 1 + math.sqrt(self.groups)

    def variance(self, product: float) -> float:
        """Return what an effect adds to the variance of a mean.

        Args:
            product: Square of the effect; or the product of two measurements of it, whose errors then cancel.
        """
        # A mean of n values moves by (value - mean) d / (n + d) if one of them counts 1 + d times.
        extra = self.weight - 1
        return product * ((self.groups + extra) / extra) ** 2 / (self.groups * max(1, self.groups - 1))


def emphases(windows: Iterable[Window]) -> list[Emphasis]:
    """Return groups of neighbouring windows of one phase, all about equally long."""
    every = list(windows)
    found = []
    for phase in PHASES:
        mine = [number for number, window in enumerate(every) if window.phase == phase]
        groups = min(len(mine), MOST_GROUPS)
        parts = [mine[len(mine) * k // groups : len(mine) * (k + 1) // groups] for k in range(groups)]
        found += [Emphasis(phase, tuple(part), groups) for part in parts]
    return found


def emphasized(observed: Observed) -> tuple[FloatArray, ...]:
    """Return the weights of the windows for each of the ``emphases`` of a run, in their order."""
    found = []
    for emphasis in emphases(observed.windows):
        weights = np.ones(len(observed.windows))
        weights[list(emphasis.windows)] = emphasis.weight
        found.append(weights)
    return tuple(found)


def _resampled(observed: Observed, generator: np.random.Generator) -> FloatArray:
    """Return how often each window was drawn.

    A resample of n batches varies less than n batches do, by (n - 1) / n; with few windows that matters, so
    the deviations from one draw each are stretched accordingly.
    """
    weights = np.zeros(len(observed.windows))
    for phase in PHASES:
        mine = np.flatnonzero(observed.phase(phase))
        if len(mine) == 0:
            continue
        drawn = generator.multinomial(len(mine), np.full(len(mine), 1 / len(mine))).astype(float)
        stretch = np.sqrt(len(mine) / (len(mine) - 1)) if len(mine) > 1 else 1.0
        weights[mine] = np.maximum(0.0, 1.0 + stretch * (drawn - 1.0))
    return weights


def _replicate(
    terms: Terms, observed: Observed, model: Model, drawn: FloatArray, costs: SleepCosts | None
) -> Replicate:
    factors: dict[str, dict[str, float]] = {"demand": {}, "delay": {}}
    spreads: dict[str, dict[str, float]] = {"demand": {}, "delay": {}}
    fronts: dict[str, float] = {}
    single, every = observed.single, np.ones(len(observed.windows))
    hot = observed.phase("hot")
    known = {task.name for task in model.tasks}
    names = Names(model.tasks)
    for (kind, (task, entry, activity)), term in terms.times.items():
        if task not in known:
            continue
        now, then = term.mean(hot, single), term.mean(hot * drawn, single * drawn)
        if costs is not None and (base := costs.base(kind, (task, entry, activity))) is not None:
            now, then = base, costs.base(kind, (task, entry, activity), drawn)
        if now is None or then is None or now <= 0:
            continue
        if activity == "front" and not entry:
            fronts[task] = then / now
        else:
            key = names.activity(ActivityRef(task, entry, activity))
            factors[kind][key] = then / now
            apart = _apart(term, hot, single, drawn)
            if apart is not None:
                spreads[kind][key] = apart
    odds = {}
    for place, choice in terms.choices.items():
        found = choice.odds((every if choice.pooled else single) * drawn)
        if found is not None:
            odds[names.activity(ActivityRef(*place))] = found
    counts = {}
    for place, repetition in terms.repetitions.items():
        weights = every if repetition.pooled else single
        now, then = repetition.counts.mean(weights), repetition.counts.mean(weights * drawn)
        if now and then is not None:
            counts[names.activity(ActivityRef(*place))] = then / now
    return Replicate(
        demands=factors["demand"],
        delays=factors["delay"],
        demand_spreads=spreads["demand"],
        delay_spreads=spreads["delay"],
        fronts=fronts,
        probabilities=odds,
        counts=counts,
        setups={
            task.name: (costs.factor(task.name, drawn), 1.0)
            for task in model.tasks
            if costs is not None and task.setup is not None
        },
    )


def _apart(term: Term, hot: FloatArray, single: FloatArray, drawn: FloatArray) -> float | None:
    """Return the factor on the coefficient of variation of a time; None if it has none to speak of."""
    weights = hot if term.phased and hot.any() else single
    shift = (term.shift(weights) or 0.0) if term.shift is not None else 0.0
    now, then = term.cv(hot, single, shift), term.cv(hot * drawn, single * drawn, shift)
    if not now or not then or now < LEAST_CV:
        return None
    return then / now


def with_variants(
    draws: Sequence[Replicate], found: Mapping[str, Sequence[Variant]], whole: Model, divided: Model
) -> tuple[Replicate, ...]:
    """Return replicates of a model whose entries were split into variants.

    Variants share the times of their entry, and how sure these are. How sure the probabilities and
    loop counts of a single variant are is not known.

    Args:
        draws: Replicates of the model before it was split.
        found: Variants by label of their entry.
        whole: The model before it was split.
        divided: The model since.
    """
    if not found:
        return tuple(draws)
    before, after = Names(whole.tasks), Names(divided.tasks)

    def variants(entry: EntryRef) -> Sequence[Variant]:
        return found.get(entry.label, ())

    def spread(values: Mapping[str, float]) -> dict[str, float]:
        result = {}
        for key, value in values.items():
            ref = before.by_key[key]
            for number in [variant.number for variant in variants(ref.owner)] or [1]:
                own = ActivityRef(ref.task, variant_name(ref.entry, number), ref.activity)
                result[after.activity(own)] = value
        return result

    def kept(values: Mapping[str, T]) -> dict[str, T]:
        refs = {before.by_key[key]: value for key, value in values.items()}
        return {after.activity(ref): value for ref, value in refs.items() if not variants(ref.owner)}

    return tuple(
        Replicate(
            demands=spread(draw.demands),
            delays=spread(draw.delays),
            demand_spreads=spread(draw.demand_spreads),
            delay_spreads=spread(draw.delay_spreads),
            fronts=draw.fronts,
            probabilities=kept(draw.probabilities),
            counts=kept(draw.counts),
            setups=draw.setups,
        )
        for draw in draws
    )
