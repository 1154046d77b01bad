"""Numbers of a model, the source of each, and their values on other data.

Calibration turns every number of a model into a *term*: how its mean follows from weighted windows, and what
shape its distribution has. The model itself is all terms at the weights of the hot windows; load dependence
is what they are at those of the cold ones, and a bootstrap replicate is all of them at resampled weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from analyzer.calibration.fitting import fit
from analyzer.calibration.observed import FloatArray, Sample
from mup.lqn import Constant, Distribution, Exponential

__all__ = [
    "Choice",
    "Key",
    "Kind",
    "Repetition",
    "Term",
    "Terms",
    "nothing",
    "of_sample",
    "same_in_all_phases",
    "shape_of",
]

Kind = Literal["demand", "delay"]
Key = tuple[str, str, str]
"""Task, entry, activity; the front of a task is ``(task, "", "front")``."""

Mean = Callable[[FloatArray], float | None]

SIGNIFICANT = 2.5
"""Standard errors by which hot and cold times must differ to count as different."""


FEWEST = 10
"""Values of a sample below which how much they vary says nothing about others."""


@dataclass(frozen=True, slots=True)
class Term:
    """One time of the model: a sample, or what is computed of several.

    Attributes:
        sample: What the shape of the distribution comes from, and its mean if nothing is computed; None = it
            has no spread.
        computed: Its mean in seconds at given weights of the windows; None where these saw nothing.
        plus: Seconds at given weights on top of the sample, without spread.
        shift: Seconds at given weights that something else accounts for: taken off every value of the
            sample before its shape is looked at.
        phased: Whether it depends on how warm the system is. (What is on top always does.)
        shared: While several requests were under way, its sample holds processor time of others: it begins
            with a wait on an event loop.
        like: Another sample that the shape comes from in its place; None = there is none.
    """

    sample: Sample | None = None
    computed: Mean | None = None
    plus: Callable[[FloatArray], float] | None = None
    shift: Mean | None = None
    phased: bool = True
    shared: bool = False
    like: Sample | None = None

    def mean(self, phase: FloatArray, steady: FloatArray) -> float | None:
        """Return the mean in seconds; None if nothing was seen.

        Args:
            phase: Weights of the windows of one phase.
            steady: Weights of all windows; used where the time does not depend on the phase, or the phase
                did not see it.
        """
        known = self.computed or (self.sample.mean if self.sample is not None else None)
        if known is None:
            return None
        found = known(phase) if self.phased else None
        if found is None:
            found = known(steady)
        if found is None or self.plus is None:
            return found
        return found + self.plus(phase)

    def cv(self, phase: FloatArray, steady: FloatArray, shift: float) -> float | None:
        """Return the coefficient of variation of the sample less ``shift``; None if it has no spread.

        Args:
            phase: As for `mean`.
            steady: As for `mean`.
            shift: Seconds that something else accounts for.
        """
        sample = self.like or self.sample
        if sample is None or len(sample) < FEWEST:
            return None
        weights = phase if self.phased and sample.count(phase) > 0 else steady
        return sample.cv(weights, shift)


@dataclass(frozen=True, slots=True)
class Choice:
    """The probabilities of an OR: how often each branch was taken.

    Attributes:
        taken: Executions per branch.
        pooled: Those of bursts count.
    """

    taken: tuple[Sample, ...]
    pooled: bool = False

    def odds(self, weights: FloatArray) -> tuple[float, ...] | None:
        """Return the shares of the branches; None if none was taken."""
        counts = [sample.count(weights) for sample in self.taken]
        total = sum(counts)
        return tuple(c / total for c in counts) if total > 0 else None


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often the body of a loop was run, per arrival at the loop; if ``pooled``, in bursts, too."""

    counts: Sample
    pooled: bool = False


@dataclass(slots=True)
class Terms:
    """All terms of a model.

    Attributes:
        times: By kind and place.
        choices: By (task, entry, activity the OR follows).
        repetitions: By (task, entry, activity the loop follows).
    """

    times: dict[tuple[Kind, Key], Term] = field(default_factory=dict)
    choices: dict[Key, Choice] = field(default_factory=dict)
    repetitions: dict[Key, Repetition] = field(default_factory=dict)

    def put(self, key: Key, demand: Term | None, delay: Term | None) -> None:
        """Note the times of an activity."""
        if demand is not None:
            self.times["demand", key] = demand
        if delay is not None:
            self.times["delay", key] = delay


def of_sample(sample: Sample, *, like: Sample | None = None, phased: bool = True) -> Term | None:
    """Return the term of a time that is the mean of a sample; None if that is empty."""
    return Term(sample, phased=phased, like=like) if len(sample) else None


def nothing() -> Term:
    """Return the term of a time that is 0."""
    return Term(computed=lambda _: 0.0, phased=False)


def same_in_all_phases(terms: Terms, hot: FloatArray, cold: FloatArray) -> None:
    """Pool what hot and cold windows saw of a time, unless it differs by more than chance would explain.

    A few hundred random times have a mean that is off by some percent, which is more than
    load dependence usually changes the work of an endpoint. Taking it for that would make predictions worse.
    """
    for place, term in terms.times.items():
        if not term.phased or term.sample is None or term.computed is not None:
            continue
        one, other = term.sample.mean(hot), term.sample.mean(cold)
        if one is None or other is None:
            continue
        error = (term.sample.error(hot) ** 2 + term.sample.error(cold) ** 2) ** 0.5
        if abs(one - other) < SIGNIFICANT * error:
            terms.times[place] = replace(term, phased=False)


def shape_of(
    term: Term, phase: FloatArray, steady: FloatArray, mean: float, *, fitted: bool = True
) -> Distribution:
    """Return the distribution of a term with a given mean.

    Args:
        term: Its sample gives the shape.
        phase: As for `Term.mean`.
        steady: As for `Term.mean`.
        mean: Seconds.
        fitted: Look for the family; else every time is exponential.
    """
    if mean <= 0:
        return Constant(0.0)
    sample = term.like or term.sample
    if sample is None:
        return Constant(mean)
    if not fitted:
        return Exponential(mean)
    weights = phase if term.phased and sample.count(phase) > 0 else steady
    values = sample.inside(weights)
    if not values.size:
        return Constant(mean)
    shift = term.shift(weights) if term.shift is not None else None
    values = (values - shift if shift else values).clip(min=0.0)
    shape = fit(values).distribution
    # What is added to every value (framework work that no log entry sees) has no spread of its own.
    return shape.scaled(mean / shape.mean) if shape.mean > 0 else Constant(mean)
