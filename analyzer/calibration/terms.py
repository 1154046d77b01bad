"""Which numbers does a model have, where does each come from, and what would it be on other data?

Calibration turns every number of a model into a *term*: how its mean follows from weighted windows, and what
shape its distribution has. The model itself is all terms at the weights of the hot windows; warmth is what
they are at those of the cold ones, and a bootstrap replicate is all of them at resampled weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from analyzer.calibration.fitting import fit
from analyzer.calibration.observed import FloatArray, Sample
from mup.lqn import Constant, Distribution, Exponential

__all__ = ["Choice", "Key", "Kind", "Repetition", "Term", "Terms", "of_sample", "shape_of"]

Kind = Literal["demand", "delay"]
Key = tuple[str, str, str]
"""Task, entry, activity; the front of a task is ``(task, "", "front")``."""

Mean = Callable[[FloatArray], float | None]


@dataclass(frozen=True, slots=True)
class Term:
    """One time of the model.

    Attributes:
        mean: Seconds at given weights of the windows; None where these saw nothing.
        sample: What the shape of the distribution comes from; None = it has no spread.
        shift: Seconds at given weights that something else accounts for: taken off every value of the
            sample before its shape is looked at.
        phased: Whether it depends on how warm the system is.
    """

    mean: Mean
    sample: Sample | None = None
    shift: Mean | None = None
    phased: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """The probabilities of an OR: how often each branch was taken."""

    taken: tuple[Sample, ...]

    def odds(self, weights: FloatArray) -> tuple[float, ...] | None:
        """Return the shares of the branches; None if none was taken."""
        counts = [sample.count(weights) for sample in self.taken]
        total = sum(counts)
        return tuple(c / total for c in counts) if total > 0 else None


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often the body of a loop was run, per arrival at the loop."""

    counts: Sample


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

    def value(self, kind: Kind, key: Key, weights: Sequence[FloatArray]) -> float | None:
        """Return a mean at the first of several weights under which anything was seen."""
        term = self.times.get((kind, key))
        if term is None:
            return None
        return next((found for w in weights if (found := term.mean(w)) is not None), None)


def of_sample(sample: Sample, *, phased: bool = True) -> Term | None:
    """Return the term of a time that is the mean of a sample; None if that is empty."""
    return Term(sample.mean, sample, phased=phased) if len(sample) else None


def shape_of(term: Term, weights: Sequence[FloatArray], mean: float, *, fitted: bool = True) -> Distribution:
    """Return the distribution of a term with a given mean.

    Args:
        term: Its sample gives the shape.
        weights: As for ``Terms.value``.
        mean: Seconds.
        fitted: Look for the family; else every time is exponential.
    """
    if mean <= 0:
        return Constant(0.0)
    if term.sample is None:
        return Constant(mean)
    if not fitted:
        return Exponential(mean)
    values = next((v for w in weights if (v := term.sample.inside(w)).size), None)
    if values is None:
        return Constant(mean)
    shift = None
    if term.shift is not None:
        shift = next((found for w in weights if (found := term.shift(w)) is not None), None)
    values = (values - shift if shift else values).clip(min=0.0)
    shape = fit(values).distribution
    # What is added to every value (framework work that no log entry sees) has no spread of its own.
    return shape.scaled(mean / shape.mean) if shape.mean > 0 else Constant(mean)
