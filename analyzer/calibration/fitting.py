"""Fit a distribution to a sample of times, with its uncertainty.

In:  seconds that an event log showed: demands, delays, think times; from a microsecond upwards, with
     zeros and with the steps of a coarse clock.
Out: a distribution of the model with the sample's mean and coefficient of variation (cv), or the sample
     itself, condensed, where no family resembles it.

Three steps, each with a reason:

1. Every family is fitted by maximum likelihood and ranked by Schwarz's criterion, ``parameters x ln(n) -
   2 x ln(likelihood)`` (BIC: "Estimating the dimension of a model", 1978). The logarithm makes it
   consistent: with growing samples the simplest right family wins, while AIC would go on giving
   exponential times a second phase every few samples.
2. In the order of the ranking, parameters are set so that mean and cv are the sample's: queueing depends
   on these two first, and likelihood would trade them for the shape of the body. A family that cannot have
   them is out.
3. What comes out must resemble the sample: its Kolmogorov-Smirnov distance is at most ``KS_LIMIT``, or what
   a sample of this size shows by chance. Else the next family gets its turn, and in the end the sample is
   kept as it is (several modes, many exact zeros, a few values that repeat).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import digamma, gammainc, ndtr, polygamma

from mup.errors import ModelError, UncalibratedError, UsageError, did_you_mean
from mup.lqn.distributions import (
    MIN_WEIBULL_SHAPE,
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Hyperexponential,
    Lognormal,
    TruncatedNormal,
    Uniform,
    Weibull,
)

__all__ = ["CANDIDATES", "KS_LIMIT", "MAX_RANKED", "MIN_SIZE", "Fit", "fit", "member"]

FloatArray = npt.NDArray[np.float64]

KS_LIMIT = 0.05
"""Largest Kolmogorov-Smirnov distance of a family that stands for a large sample."""

MIN_SIZE = 10
"""Below this many values no family can be told from another."""

MIN_DISTINCT = 8
"""Below this many different values a sample has no shape that a density could describe."""

MAX_RANKED = 5000
"""Likelihoods and distances are taken on at most so many quantiles of the sample: enough for every
difference of shape that matters, and neighbouring executions are too alike to count as more evidence."""

NOISE_CV = 0.05
"""A family without a free shape stands for a cv that is off by at most this part, and two standard errors."""

_EQUAL = 1e-7
_ROUNDING = 1e-9
_EXACT = 1e-9
"""Differences, relative to the mean, that count as rounding."""
_SIGNIFICANT = 10
"""Digits of a value in a file."""
_MAX_STAGES = 10
"""Of an Erlang distribution: its cv is then 0.32, and a normal one resembles it."""
_NARROW = 1e-4
"""Coefficient of variation below which times are constant."""
_LITTLE_SHORTER = 0.9
"""Points that keep nine tenths of their length when the variance is restored: more points would gain
little."""
_MUCH_SHORTER = 0.5
"""Where they would keep less than half, one or two executions make up the variation."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A distribution and why it was chosen.

    Attributes:
        distribution: Its mean is the sample's. So is its cv, but for families without a free shape
            (exponential, Erlang, uniform from 0), whose cv is the sample's within ``NOISE_CV`` and two
            standard errors, and for an empirical one that ``reason`` says so of.
        size: Values in the sample.
        mean: Of the sample, in seconds.
        cv: Coefficient of variation of the sample: the root of its mean squared deviation, over the mean.
        log_likelihood: Natural logarithm of the largest likelihood of each family that was tried, of times in
            seconds, over the values (at most ``MAX_RANKED``) that took part in the ranking.
        ks: Kolmogorov-Smirnov distance between the sample and ``distribution``.
        reason: One sentence for people.
    """

    distribution: Distribution
    size: int
    mean: float
    cv: float
    log_likelihood: Mapping[str, float]
    ks: float
    reason: str

    @property
    def family(self) -> str:
        """Name of the chosen family, as in the model file."""
        return self.distribution.family


@dataclass(frozen=True)
class _Sample:
    """A sample in units of its own mean, so that every step is independent of units.

    Attributes:
        size, cv: Of the whole sample.
        points: At most ``MAX_RANKED`` of its values, ascending, evenly spread over its ranks.
        positive: The points with zeros replaced by a quarter of a clock step: what a clock shows as 0 lies
            between 0 and half a step.
        logs: Logarithms of ``positive``.
        distinct: Different values among the points.
        step: Smallest difference between them: the clock's step, if the clock is coarse.
        slack: By what part the cv of a family without a free shape may be off, at most.
    """

    size: int
    cv: float
    points: FloatArray
    positive: FloatArray
    logs: FloatArray
    distinct: int
    step: float
    slack: float = NOISE_CV

    @classmethod
    def of(cls, values: FloatArray, cv: float, slack: float = NOISE_CV) -> _Sample:
        """Prepare ascending values of mean 1."""
        points = values
        if values.size > MAX_RANKED:
            ranks = (np.arange(MAX_RANKED) + 0.5) * (values.size / MAX_RANKED)
            points = values[ranks.astype(np.int64)]
        # Differences of clock readings in seconds carry rounding noise that is no step of a clock.
        gaps = np.diff(points)
        gaps = gaps[gaps > _ROUNDING]
        step = float(gaps.min()) if gaps.size else 0.0
        positive = np.where(points > 0, points, max(step, _ROUNDING) / 4)
        return cls(values.size, cv, points, positive, np.log(positive), gaps.size + 1, step, slack)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return self.cv**2

    def near(self, cv: float, relative_variance: float) -> bool:
        """Tell whether this cv is the sample's but for sampling noise.

        Args:
            cv: Of a family without a free shape.
            relative_variance: Of the cv of samples of that family: variance times size over squared cv.
        """
        return abs(self.cv / cv - 1) <= min(self.slack, 2 * math.sqrt(relative_variance / self.size))

    def matched(self, distribution: Distribution) -> Distribution | None:
        """Return the distribution if it has mean 1 and the sample's cv to rounding, else None."""
        cv = math.sqrt(max(distribution.scv, 0.0))
        exact = abs(distribution.mean - 1) <= _EXACT and abs(cv / self.cv - 1) <= _EXACT
        return distribution if exact else None


Tried = tuple[float, Distribution | None]
"""Largest log-likelihood of a family, and its member of mean 1 with the sample's cv (None: there is none)."""


def _exponential(sample: _Sample) -> Tried:
    return -float(sample.points.sum()), Exponential(1.0) if sample.near(1.0, 1.0) else None


def _gamma_shape(sample: _Sample) -> float:
    """Return the shape of largest likelihood: the root of ln(a) - digamma(a) = ln(mean) - mean(ln x)."""
    excess = math.log(float(sample.positive.mean())) - float(sample.logs.mean())
    excess = max(excess, 1e-12)
    shape = (3 - excess + math.sqrt((excess - 3) ** 2 + 24 * excess)) / (12 * excess)
    for _ in range(10):
        # Newton's method in 1/a (Minka, "Estimating a gamma distribution", 2002): it cannot leave a > 0.
        slope = 1 / shape - float(polygamma(1, shape))
        inverse = 1 / shape + (math.log(shape) - float(digamma(shape)) - excess) / (shape**2 * slope)
        change, shape = abs(inverse * shape - 1), 1 / inverse
        if change < 1e-9:
            break
    return shape


def _gamma_likelihood(sample: _Sample, shape: float) -> float:
    mean = float(sample.positive.mean())
    constant = shape * math.log(shape / mean) - math.lgamma(shape)
    per_value = constant + (shape - 1) * float(sample.logs.mean()) - shape
    return per_value * sample.points.size


def _gamma(sample: _Sample) -> Tried | None:
    if sample.cv < _NARROW:
        # It looks like a normal there, and its likelihood drowns in rounding errors.
        return None
    return _gamma_likelihood(sample, _gamma_shape(sample)), sample.matched(Gamma(1.0, sample.scv))


def _erlang(sample: _Sample) -> Tried | None:
    if sample.cv < _NARROW:
        return None
    around = math.floor(_gamma_shape(sample))
    stages = [k for k in (around, around + 1) if 2 <= k <= _MAX_STAGES]
    if not stages:
        return None
    likelihood, best = max((_gamma_likelihood(sample, k), k) for k in stages)
    fits = sample.near(1 / math.sqrt(best), 0.5 + 0.5 / best)
    return likelihood, Erlang(1.0, best) if fits else None


def _lognormal(sample: _Sample) -> Tried:
    spread = float(sample.logs.std())
    per_value = -math.log(spread) - 0.5 * math.log(2 * math.pi) - float(sample.logs.mean()) - 0.5
    return per_value * sample.points.size, sample.matched(Lognormal(1.0, sample.scv))


def _weibull(sample: _Sample) -> Tried:
    logs = sample.logs
    mean_log, top = float(logs.mean()), float(logs[-1])
    shape = math.pi / math.sqrt(6) / float(logs.std())
    for _ in range(20):
        # Powers relative to the largest value, or a narrow sample with one long time would overflow.
        weights = np.exp(shape * (logs - top))
        total = float(weights.sum())
        first = float(weights @ logs) / total
        second = float(weights @ logs**2) / total - first**2
        move = (first - 1 / shape - mean_log) / (second + 1 / shape**2)
        before, shape = shape, max(shape - move, shape / 3)
        if abs(shape - before) < 1e-7 * shape:
            break
    log_power = math.log(float(np.exp(shape * (logs - top)).mean())) + shape * top
    per_value = math.log(shape) - log_power + (shape - 1) * mean_log - 1
    found = _weibull_of(sample.scv)
    return per_value * sample.points.size, None if found is None else sample.matched(found)


def _weibull_of(scv: float) -> Weibull | None:
    """Return the Weibull of mean 1 with this squared cv."""

    def spread(shape: float) -> float:
        return math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape)

    target = math.log1p(scv)
    low, high = MIN_WEIBULL_SHAPE, 1e7
    if not spread(high) < target < spread(low):
        return None
    return Weibull(1.0, _root(lambda shape: target - spread(shape), low, high))


def _truncated_normal(sample: _Sample) -> Tried | None:
    # The family is an exponential one in x and x^2: equal moments are largest likelihood.
    found = _truncated_normal_of(sample.cv)
    if found is None:
        return None
    deviations = (sample.points - found.location) / found.scale
    above = math.erfc(-found.location / found.scale / math.sqrt(2)) / 2
    constant = math.log(found.scale * math.sqrt(2 * math.pi) * above)
    return -0.5 * float(deviations @ deviations) - constant * sample.points.size, sample.matched(found)


def _truncated_normal_of(cv: float) -> TruncatedNormal | None:
    """Return the normal, given that it is not negative, of mean 1 with this cv (below about 0.97)."""

    def standard(ratio: float) -> TruncatedNormal:
        return TruncatedNormal(ratio, 1.0)

    def excess(ratio: float) -> float:
        return math.sqrt(max(standard(ratio).scv, 0.0)) - cv

    low, high = -6.0, 2 / cv + 10
    if not excess(high) < 0 < excess(low):
        return None
    ratio = _root(lambda r: -excess(r), low, high)
    mean = standard(ratio).mean
    return TruncatedNormal(ratio / mean, 1 / mean)


def _uniform(sample: _Sample) -> Tried:
    low, high = float(sample.points[0]), float(sample.points[-1])
    half = math.sqrt(3) * sample.cv
    distribution: Distribution | None = None
    if half <= 1:
        distribution = sample.matched(Uniform(1 - half, 1 + half))
    elif sample.near(1 / math.sqrt(3), 8 / 15):
        distribution = Uniform(0.0, 2.0)
    return -math.log(high - low) * sample.points.size, distribution


def _hyperexponential(sample: _Sample) -> Tried | None:
    if sample.cv <= 1:
        return None
    # Means of equally large groups stand for the sample while parameters are sought.
    groups = _group_means(sample.points, min(300, sample.points.size))
    matched = _matched_phases(groups, sample.scv)
    p, long, short = matched
    weight, rest = p / long, (1 - p) / short
    for _ in range(60):
        ratio = np.exp(groups * (1 / long - 1 / short)) * (rest / weight)
        belongs = 1 / (1 + ratio)
        p = float(belongs.mean())
        if not 1e-6 < p < 1 - 1e-6:
            break
        long = float(belongs @ groups) / (p * groups.size)
        short = max(float((1 - belongs) @ groups) / ((1 - p) * groups.size), 1e-9)
        weight, rest = p / long, (1 - p) / short
    likelihood = float(np.log(_density(sample.points, p, long, short)).sum())
    p, long, short = matched
    likelihood = max(likelihood, float(np.log(_density(sample.points, p, long, short)).sum()))
    return likelihood, sample.matched(Hyperexponential((p, 1 - p), (long, short)))


def _density(points: FloatArray, p: float, long: float, short: float) -> FloatArray:
    density: FloatArray = p / long * np.exp(-points / long) + (1 - p) / short * np.exp(-points / short)
    return np.maximum(density, 1e-300)


def _matched_phases(points: FloatArray, scv: float) -> tuple[float, float, float]:
    """Return the likeliest (probability of the longer phase, its mean, the other) of this scv and mean 1.

    With ``long = 1 + (1 - p) t`` and ``short = 1 - p t`` the mean is 1 for every ``t``, and the squared cv
    sets ``t``; what is left to choose is ``p``, below ``2 / (scv + 1)``, or the shorter mean is negative.
    """
    largest = 2 / (scv + 1)
    low, high = 1e-4, 0.999
    for count in (32, 16):
        p = np.geomspace(low, high, count) * largest
        t = np.sqrt((scv - 1) / (2 * p * (1 - p)))
        long, short = 1 + (1 - p) * t, 1 - p * t
        density = (p / long)[:, None] * np.exp(-points / long[:, None])
        density += ((1 - p) / short)[:, None] * np.exp(-points / short[:, None])
        best = int(np.argmax(np.log(np.maximum(density, 1e-300)).sum(axis=1)))
        found = float(p[best]), float(long[best]), float(short[best])
        low, high = (float(p[i]) / largest for i in (max(best - 1, 0), min(best + 1, count - 1)))
    return found


_TRIALS: dict[str, tuple[Callable[[_Sample], Tried | None], int]] = {
    "exponential": (_exponential, 1),
    # A whole number is known exactly once a sample is large: it does not count as a parameter.
    "erlang": (_erlang, 1),
    "gamma": (_gamma, 2),
    "lognormal": (_lognormal, 2),
    "weibull": (_weibull, 2),
    "truncated_normal": (_truncated_normal, 2),
    "uniform": (_uniform, 2),
    "hyperexponential": (_hyperexponential, 3),
}

CANDIDATES = tuple(_TRIALS)
"""The families that are tried; constant and empirical are there for what none of them describes."""


def fit(sample: ArrayLike, *, families: Sequence[str] = CANDIDATES, max_points: int = 100) -> Fit:
    """Choose the distribution of a sample and set its parameters.

    Args:
        sample: Seconds, shape (n,), in any order; zeros are fine.
        families: Which of ``CANDIDATES`` to try.
        max_points: Values to keep where no family will do; up to five times as many where rare long times
            carry the variance.

    Raises:
        UncalibratedError: The sample is empty.
        ModelError: A value is negative or not finite.
        UsageError: A family is not one of ``CANDIDATES``, or ``max_points`` is below 1.
    """
    for name in families:
        if name not in _TRIALS:
            raise UsageError(f"no family {name!r} to fit", hint=did_you_mean(name, CANDIDATES))
    if max_points < 1:
        raise UsageError(f"max_points must be at least 1, got {max_points!r}")
    values = _checked(sample)
    mean = float(values.mean())
    if values[-1] == values[0] or mean == 0:
        return _constant(values.size, mean, 0.0)
    values = values / mean
    cv = float(values.std())
    if cv <= _EQUAL:
        return _constant(values.size, mean, cv)
    prepared = _Sample.of(values, cv)
    limit = max(KS_LIMIT, 1 / math.sqrt(values.size))
    likelihoods: dict[str, float] = {}
    if values.size < MIN_SIZE:
        why = f"{values.size} values are too few to tell families apart"
    elif prepared.distinct < MIN_DISTINCT:
        why = f"(nearly) all of it is one of {prepared.distinct} different values"
    else:
        ranking = _ranked(prepared, families, likelihoods, mean)
        nearest: tuple[float, str] | None = None
        for place, (score, name, distribution) in enumerate(ranking):
            if distribution is None:
                continue
            ks = _distance(prepared, distribution)
            if ks <= limit:
                reason = _why(ranking, place, score, ks, limit)
                return Fit(distribution.scaled(mean), values.size, mean, cv, likelihoods, ks, reason)
            nearest = min(nearest, (ks, name)) if nearest else (ks, name)
        why = (
            f"no family comes closer than a KS distance of {nearest[0]:.3f} ({nearest[1]}; limit {limit:.3f})"
            if nearest
            else "no family has its mean and cv"
        )
    points, kept = _condensed(values, cv, max_points)
    distribution = Empirical(tuple(float(f"{v * mean:.{_SIGNIFICANT}g}") for v in points))
    if not kept:
        lost = math.sqrt(distribution.scv)
        why += f"; its cv is {lost:.3g} instead of {cv:.3g}, for a few very long times are thinned out"
    ks = _distance(prepared, Empirical(tuple(points.tolist())))
    reason = f"empirical, {points.size} values: {why}"
    return Fit(distribution, values.size, mean, cv, likelihoods, ks, reason)


def member(sample: ArrayLike, family: str) -> tuple[Distribution, float] | None:
    """Return the member of a family that has a sample's mean and cv, and their Kolmogorov-Smirnov distance.

    For tests, not for models: the cv of a family without a free shape may be off by two standard errors,
    however much that is. A small sample of the very family must not be one without a member.

    Args:
        sample: Seconds, shape (n,), not all equal.
        family: One of ``CANDIDATES``.

    Returns:
        None if the family has no such member.
    """
    values = _checked(sample)
    mean = float(values.mean())
    values = values / mean
    prepared = _Sample.of(values, float(values.std()), slack=math.inf)
    tried = _TRIALS[family][0](prepared)
    if tried is None or tried[1] is None:
        return None
    return tried[1].scaled(mean), _distance(prepared, tried[1])


def _checked(sample: ArrayLike) -> FloatArray:
    """Return the sample in ascending order."""
    values = np.asarray(sample, dtype=np.float64).ravel()
    if values.size == 0:
        raise UncalibratedError("there is no measured time to fit a distribution to")
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if wrong.size:
        index = int(wrong[0])
        raise ModelError(
            f"a time must be finite and not negative, got {float(values[index])!r} s",
            where=f"sample[{index}]",
        )
    ordered: FloatArray = np.sort(values)
    return ordered


def _constant(size: int, mean: float, cv: float) -> Fit:
    equal = "are equal" if cv == 0 else "are equal to seven digits"
    reason = "a single value says nothing about its spread" if size == 1 else f"all {size} values {equal}"
    return Fit(Constant(mean), size, mean, cv, {}, 0.0, f"constant: {reason}")


def _ranked(
    sample: _Sample, families: Sequence[str], likelihoods: dict[str, float], mean: float
) -> list[tuple[float, str, Distribution | None]]:
    """Return (criterion, name, distribution of mean 1) of every family tried, the best first."""
    ranking: list[tuple[float, str, Distribution | None]] = []
    count = sample.points.size
    for name in dict.fromkeys(families):
        trial, parameters = _TRIALS[name]
        tried = trial(sample)
        if tried is None:
            continue
        likelihoods[name] = tried[0] - count * math.log(mean)
        ranking.append((parameters * math.log(count) - 2 * tried[0], name, tried[1]))
    return sorted(ranking, key=lambda entry: entry[0])


def _why(
    ranking: list[tuple[float, str, Distribution | None]], place: int, score: float, ks: float, limit: float
) -> str:
    name = ranking[place][1]
    text = f"{name}: KS distance {ks:.3f} (limit {limit:.3f}), "
    if place:
        before = ", ".join(entry[1] for entry in ranking[:place])
        return text + f"the likeliest family that has the sample's mean, cv and shape ({before} did not)"
    if len(ranking) == 1:
        return text + "the only family tried"
    return (
        text
        + f"the best BIC of {len(ranking)} families ({ranking[1][1]} is {ranking[1][0] - score:.1f} worse)"
    )


def _distance(sample: _Sample, distribution: Distribution) -> float:
    """Return the Kolmogorov-Smirnov distance, read between the steps of a coarse clock.

    A value stands for everything within half a clock step of it, so the distribution function is compared
    there; with a fine clock that is the usual distance.
    """
    points = sample.points
    last = np.flatnonzero(np.append(np.diff(points) > _ROUNDING, True))
    first = np.append(0, last[:-1] + 1)
    half = sample.step / 2
    above = np.abs(_cdf(distribution, points[last] + half) - (last + 1) / points.size)
    below = np.abs(_cdf_below(distribution, points[first] - half) - first / points.size)
    return float(max(above.max(), below.max()))


def _cdf_below(distribution: Distribution, x: FloatArray) -> FloatArray:
    """Return P(time < x)."""
    if isinstance(distribution, Empirical):
        values = np.asarray(distribution.values)
        counted: FloatArray = np.searchsorted(values, x, side="left") / values.size
        return counted
    return np.where(x > 0, _cdf(distribution, np.maximum(x, 0.0)), 0.0)


def _cdf(distribution: Distribution, x: FloatArray) -> FloatArray:
    """Return P(time <= x) for x >= 0."""
    result: FloatArray
    match distribution:
        case Exponential(mean):
            result = -np.expm1(-x / mean)
        case Erlang(mean, stages):
            result = gammainc(stages, x * (stages / mean))
        case Gamma(mean, scv):
            result = gammainc(1 / scv, x / (scv * mean))
        case Lognormal(mean, scv):
            spread = math.log1p(scv)
            with np.errstate(divide="ignore"):
                result = ndtr((np.log(x / mean) + spread / 2) / math.sqrt(spread))
        case Weibull(mean, shape):
            with np.errstate(over="ignore"):
                result = -np.expm1(-((x * (math.gamma(1 + 1 / shape) / mean)) ** shape))
        case TruncatedNormal(location, scale):
            # From above, where nothing cancels even if hardly anything is left of the normal.
            result = 1 - ndtr((location - x) / scale) / ndtr(location / scale)
        case Uniform(low, high):
            result = np.clip((x - low) / (high - low), 0.0, 1.0)
        case Hyperexponential(probabilities, means):
            parts = zip(probabilities, means, strict=True)
            result = 1 - np.sum([p * np.exp(-x / m) for p, m in parts], axis=0)
        case Empirical(values):
            result = np.searchsorted(np.asarray(values), x, side="right") / len(values)
        case _:
            raise TypeError(f"no distribution function of {distribution.family!r}")
    return result


def _condensed(values: FloatArray, cv: float, max_points: int) -> tuple[FloatArray, bool]:
    """Return equally likely values of mean 1 for ascending ones, and whether they have the same cv.

    Groups of neighbours are replaced by their means, which loses the variance within them, nearly all of
    it in the longest times. The largest value is raised until the cv is right, and all others are shortened
    by the little that keeps the mean. Where that exceeds a tenth, more values are kept; where it would exceed
    half even so, one or two executions make up the cv, and it is given up rather than all the others.
    """
    if values.size <= max_points:
        return values, True
    for factor in (1, 2, 5):
        count = min(values.size, max_points * factor)
        means = _group_means(values, count)
        if count == values.size:
            return values, True
        total, squares = float(means[:-1].sum()), float(means[:-1] @ means[:-1])
        # scale x total + longest = count and scale^2 x squares + longest^2 = count x (1 + cv^2)
        curve = squares + total**2
        root = (count * total) ** 2 - curve * (count**2 - count * (1 + cv**2))
        scale = (count * total - math.sqrt(max(root, 0.0))) / curve if curve > 0 else 0.0
        if scale >= _LITTLE_SHORTER:
            break
    if scale < _MUCH_SHORTER:
        return means, False
    # Where no variance was lost, rounding must not put the largest value below the one before it.
    scale = min(scale, 1.0)
    return np.append(means[:-1] * scale, max(count - scale * total, float(means[-1]))), True


def _group_means(values: FloatArray, count: int) -> FloatArray:
    """Return the means of ``count`` equally large groups of ascending values; neighbours share values."""
    if count == values.size:
        return values
    sums = np.append(0.0, np.cumsum(values))
    borders = np.interp(np.linspace(0, values.size, count + 1), np.arange(values.size + 1), sums)
    # Differences of sums may disorder equal values by a rounding error.
    means: FloatArray = np.maximum.accumulate(np.maximum(np.diff(borders), 0.0) * (count / values.size))
    return means


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a function that is below 0 at ``low`` and above it at ``high``, to the last bits.

    Bisection, on the logarithm while both ends are positive: the shapes sought span many magnitudes.
    """
    while True:
        middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
        if not low < middle < high:
            return middle if low <= middle <= high else low
        if function(middle) < 0:
            low = middle
        else:
            high = middle
