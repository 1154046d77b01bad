"""Distributions of demands, delays and think times: pure data, in seconds.

A distribution is what the JSON of a model says about one random time. Sampling lives with the
engines (``simulator.machine.variates``), so that every engine draws the same numbers.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from mup.errors import ModelError

__all__ = [
    "FAMILIES",
    "LARGEST",
    "LEAST",
    "Constant",
    "Distribution",
    "Empirical",
    "Erlang",
    "Exponential",
    "Gamma",
    "Geometric",
    "Hyperexponential",
    "Lognormal",
    "Pareto",
    "TruncatedNormal",
    "Uniform",
    "Weibull",
    "rescaled",
    "with_scv",
]


LEAST: Final = 1e-50
LARGEST: Final = 1e50
"""Of means in a file: squares of such numbers, and their ratios, are numbers, too."""


def _require(condition: bool, field: str, message: str) -> None:
    if not condition:
        raise ModelError(message, where=field)


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


@dataclass(frozen=True, slots=True)
class Distribution:
    """Base of all families. ``mean`` and ``variance`` are exact, in seconds and seconds squared."""

    family: ClassVar[str] = ""

    @property
    def mean(self) -> float:
        """Mean in seconds."""
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """Variance in seconds squared."""
        raise NotImplementedError

    @property
    def scv(self) -> float:
        """Squared coefficient of variation; 0 for a time that is always 0."""
        return self.variance / self.mean**2 if self.mean > 0 else 0.0

    def scaled(self, factor: float) -> Distribution:
        """Return the distribution of ``factor`` > 0 times this time; the shape stays.

        ``rescaled`` takes a factor of 0, too.
        """
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the model file."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Constant(Distribution):
    """Always ``value`` seconds."""

    family: ClassVar[str] = "constant"
    value: float

    def __post_init__(self) -> None:
        _require(_positive(self.value), "mean", f"must be a number of seconds >= 0, got {self.value!r}")

    @property
    def mean(self) -> float:  # noqa: D102
        return self.value

    @property
    def variance(self) -> float:  # noqa: D102
        return 0.0

    def scaled(self, factor: float) -> Constant:  # noqa: D102
        return Constant(self.value * factor)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.value}


@dataclass(frozen=True, slots=True)
class Exponential(Distribution):
    """Exponential with the given mean in seconds."""

    family: ClassVar[str] = "exponential"
    mean_value: float

    def __post_init__(self) -> None:
        _require(
            _positive(self.mean_value), "mean", f"must be a number of seconds >= 0, got {self.mean_value!r}"
        )

    @property
    def mean(self) -> float:  # noqa: D102
        return self.mean_value

    @property
    def variance(self) -> float:  # noqa: D102
        return self.mean_value**2

    def scaled(self, factor: float) -> Exponential:  # noqa: D102
        return Exponential(self.mean_value * factor)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.mean_value}


@dataclass(frozen=True, slots=True)
class Erlang(Distribution):
    """Sum of ``stages`` equal exponential stages; mean in seconds."""

    family: ClassVar[str] = "erlang"
    mean_value: float
    stages: int

    def __post_init__(self) -> None:
        _require(
            _positive(self.mean_value), "mean", f"must be a number of seconds >= 0, got {self.mean_value!r}"
        )
        _require(
            isinstance(self.stages, int) and not isinstance(self.stages, bool) and self.stages >= 1,
            "stages",
            f"must be a whole number >= 1, got {self.stages!r}",
        )

    @property
    def mean(self) -> float:  # noqa: D102
        return self.mean_value

    @property
    def variance(self) -> float:  # noqa: D102
        return self.mean_value**2 / self.stages

    def scaled(self, factor: float) -> Erlang:  # noqa: D102
        return Erlang(self.mean_value * factor, self.stages)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.mean_value, "stages": self.stages}


@dataclass(frozen=True, slots=True)
class Uniform(Distribution):
    """Uniform between ``low`` and ``high`` seconds."""

    family: ClassVar[str] = "uniform"
    low: float
    high: float

    def __post_init__(self) -> None:
        _require(_positive(self.low), "low", f"must be a number of seconds >= 0, got {self.low!r}")
        _require(
            _positive(self.high) and self.high >= self.low,
            "high",
            f"must be a number of seconds >= low, got {self.high!r}",
        )

    @property
    def mean(self) -> float:  # noqa: D102
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:  # noqa: D102
        return (self.high - self.low) ** 2 / 12

    def scaled(self, factor: float) -> Uniform:  # noqa: D102
        return Uniform(self.low * factor, self.high * factor)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Empirical(Distribution):
    """Equally likely values in seconds, ascending: what the log showed, condensed."""

    family: ClassVar[str] = "empirical"
    values: tuple[float, ...]
    _moments: tuple[float, float] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _require(len(self.values) > 0, "values", "must hold at least one value")
        # Thousands of values, and thousands of times where demands are drawn anew.
        if not all(map(_positive, self.values)):
            index, value = next((i, v) for i, v in enumerate(self.values) if not _positive(v))
            raise ModelError(f"must be a number of seconds >= 0, got {value!r}", where=f"values[{index}]")
        _require(all(map(operator.le, self.values, self.values[1:])), "values", "must be in ascending order")

    @property
    def mean(self) -> float:  # noqa: D102
        return self._known_moments()[0]

    @property
    def variance(self) -> float:  # noqa: D102
        return self._known_moments()[1]

    def _known_moments(self) -> tuple[float, float]:
        """Return mean and variance; computed once, because an estimate asks for them many times."""
        if self._moments is None:
            mean = math.fsum(self.values) / len(self.values)
            variance = math.fsum((v - mean) ** 2 for v in self.values) / len(self.values)
            object.__setattr__(self, "_moments", (mean, variance))
            return mean, variance
        return self._moments

    def scaled(self, factor: float) -> Empirical:  # noqa: D102
        values = tuple([v * factor for v in self.values])
        if not (0 < factor < math.inf and values[-1] < math.inf):
            return Empirical(values)
        # Valid and ascending like those of this one; to check thousands takes longer than to scale them.
        made = object.__new__(Empirical)
        object.__setattr__(made, "values", values)
        moments = self._moments
        if moments is not None:
            moments = moments[0] * factor, moments[1] * factor**2
        object.__setattr__(made, "_moments", moments)
        return made

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.mean, "values": list(self.values)}


def _check_shape(mean: object, name: str, value: object) -> None:
    _require(_positive(mean), "mean", f"must be a number of seconds >= 0, got {mean!r}")
    _require(_positive(value) and value != 0, name, f"must be a number > 0, got {value!r}")


@dataclass(frozen=True, slots=True)
class _Shaped(Distribution):
    """Families given by their mean in seconds and squared coefficient of variation."""

    mean_value: float
    scv_value: float

    def __post_init__(self) -> None:
        _check_shape(self.mean_value, "scv", self.scv_value)

    @property
    def mean(self) -> float:
        return self.mean_value

    @property
    def variance(self) -> float:
        return self.scv_value * self.mean_value**2

    def scaled(self, factor: float) -> Distribution:
        return type(self)(self.mean_value * factor, self.scv_value)

    def to_json(self) -> dict[str, Any]:
        return {"family": self.family, "mean": self.mean_value, "scv": self.scv_value}


@dataclass(frozen=True, slots=True)
class Gamma(_Shaped):
    """Gamma with the given mean in seconds and squared coefficient of variation."""

    family: ClassVar[str] = "gamma"


@dataclass(frozen=True, slots=True)
class Lognormal(_Shaped):
    """Lognormal with the given mean in seconds and squared coefficient of variation."""

    family: ClassVar[str] = "lognormal"


@dataclass(frozen=True, slots=True)
class Weibull(Distribution):
    """Weibull with the given mean in seconds; ``shape`` 1 is exponential, above it is less variable."""

    family: ClassVar[str] = "weibull"
    mean_value: float
    shape: float

    def __post_init__(self) -> None:
        _check_shape(self.mean_value, "shape", self.shape)
        _require(
            self.shape >= MIN_WEIBULL_SHAPE, "shape", f"must be >= {MIN_WEIBULL_SHAPE}, got {self.shape!r}"
        )

    @property
    def mean(self) -> float:  # noqa: D102
        return self.mean_value

    @property
    def variance(self) -> float:  # noqa: D102
        first, second = math.lgamma(1 + 1 / self.shape), math.lgamma(1 + 2 / self.shape)
        return self.mean_value**2 * (math.exp(second - 2 * first) - 1)

    def scaled(self, factor: float) -> Weibull:  # noqa: D102
        return Weibull(self.mean_value * factor, self.shape)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.mean_value, "shape": self.shape}


MIN_WEIBULL_SHAPE = 0.05
"""Below it the variance exceeds any number a float holds."""


@dataclass(frozen=True, slots=True)
class Pareto(Distribution):
    """Pareto with the given mean in seconds; ``shape`` > 1, and > 2 if its variance is to be finite."""

    family: ClassVar[str] = "pareto"
    mean_value: float
    shape: float

    def __post_init__(self) -> None:
        _check_shape(self.mean_value, "shape", self.shape)
        _require(self.shape > 1, "shape", f"must be > 1, or there is no mean, got {self.shape!r}")

    @property
    def mean(self) -> float:  # noqa: D102
        return self.mean_value

    @property
    def variance(self) -> float:  # noqa: D102
        a = self.shape
        return self.mean_value**2 / (a * (a - 2)) if a > 2 else math.inf

    def scaled(self, factor: float) -> Pareto:  # noqa: D102
        return Pareto(self.mean_value * factor, self.shape)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.mean_value, "shape": self.shape}


@dataclass(frozen=True, slots=True)
class TruncatedNormal(Distribution):
    """A normal around ``location`` with deviation ``scale`` (both in seconds), given that it is >= 0."""

    family: ClassVar[str] = "truncated_normal"
    location: float
    scale: float

    def __post_init__(self) -> None:
        known = isinstance(self.location, int | float) and math.isfinite(self.location)
        _require(known, "location", f"must be a number of seconds, got {self.location!r}")
        _require(
            _positive(self.scale) and self.scale > 0, "scale", f"must be a number > 0, got {self.scale!r}"
        )
        _require(
            self.location >= -6 * self.scale,
            "location",
            f"must be at least -6 scales, or nothing is left of the normal, got {self.location!r}",
        )

    def _hazard(self) -> tuple[float, float]:
        """Return the truncation point in standard deviations and the hazard rate of the normal there."""
        alpha = -self.location / self.scale
        above = math.erfc(alpha / math.sqrt(2)) / 2
        return alpha, math.exp(-(alpha**2) / 2) / math.sqrt(2 * math.pi) / above

    @property
    def mean(self) -> float:  # noqa: D102
        return self.location + self.scale * self._hazard()[1]

    @property
    def variance(self) -> float:  # noqa: D102
        alpha, hazard = self._hazard()
        return self.scale**2 * (1 + alpha * hazard - hazard**2)

    def scaled(self, factor: float) -> TruncatedNormal:  # noqa: D102
        return TruncatedNormal(self.location * factor, self.scale * factor)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "location": self.location, "scale": self.scale}


@dataclass(frozen=True, slots=True)
class Hyperexponential(Distribution):
    """With ``probabilities[i]`` exponential with mean ``means[i]`` seconds."""

    family: ClassVar[str] = "hyperexponential"
    probabilities: tuple[float, ...]
    means: tuple[float, ...]

    def __post_init__(self) -> None:
        _require(len(self.means) > 0, "means", "must hold at least one mean")
        for index, value in enumerate(self.means):
            _require(_positive(value), f"means[{index}]", f"must be a number of seconds >= 0, got {value!r}")
        for index, value in enumerate(self.probabilities):
            _require(
                _positive(value) and value <= 1,
                f"probabilities[{index}]",
                f"must be between 0 and 1, got {value!r}",
            )
        _require(
            len(self.probabilities) == len(self.means) and abs(math.fsum(self.probabilities) - 1) < 1e-9,
            "probabilities",
            f"must be one per mean and sum to 1, got {list(self.probabilities)}",
        )

    @property
    def mean(self) -> float:  # noqa: D102
        return math.fsum(p * m for p, m in zip(self.probabilities, self.means, strict=True))

    @property
    def variance(self) -> float:  # noqa: D102
        second = math.fsum(2 * p * m**2 for p, m in zip(self.probabilities, self.means, strict=True))
        return second - self.mean**2

    def scaled(self, factor: float) -> Hyperexponential:  # noqa: D102
        return Hyperexponential(self.probabilities, tuple(m * factor for m in self.means))

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "probabilities": list(self.probabilities), "means": list(self.means)}


@dataclass(frozen=True, slots=True)
class Geometric(Distribution):
    """A number of times 0, 1, 2, ... with P(n) proportional to (mean / (1 + mean))^n: counts only."""

    family: ClassVar[str] = "geometric"
    mean_value: float

    def __post_init__(self) -> None:
        _require(_positive(self.mean_value), "mean", f"must be a number >= 0, got {self.mean_value!r}")

    @property
    def mean(self) -> float:  # noqa: D102
        return self.mean_value

    @property
    def variance(self) -> float:  # noqa: D102
        return self.mean_value * (1 + self.mean_value)

    def scaled(self, factor: float) -> Geometric:
        """Return the geometric count whose mean is ``factor`` times this one's."""
        return Geometric(self.mean_value * factor)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.mean_value}


def rescaled(time: Distribution, factor: float) -> Distribution:
    """Return the distribution of ``factor`` >= 0 times this time; most families have no member of mean 0."""
    return time.scaled(factor) if factor > 0 else Constant(0.0)


def with_scv(mean: float, scv: float) -> Distribution:
    """Return a distribution by mean (seconds) and squared coefficient of variation.

    Constant at 0, gamma below 1, exponential at 1, above it a hyperexponential of two phases: with
    probability 0.5 / (scv - 0.5) of mean ``mean * scv``, else of ``mean / 2`` (Akyildiz and Sieber,
    "Approximate analysis of load dependent general queueing networks", 1988).

    Raises:
        ModelError: A number is negative or not finite.
    """
    _require(_positive(scv), "scv", f"must be a number >= 0, got {scv!r}")
    if scv == 0 or mean == 0:
        return Constant(mean)
    if scv < 1:
        return Gamma(mean, scv)
    if scv == 1:
        return Exponential(mean)
    rare = 0.5 / (scv - 0.5)
    return Hyperexponential((rare, 1 - rare), (mean * scv, mean / 2))


FAMILIES: dict[str, tuple[str, ...]] = {
    "constant": ("mean",),
    "exponential": ("mean",),
    "erlang": ("mean", "stages"),
    "uniform": ("low", "high"),
    "gamma": ("mean", "scv"),
    "lognormal": ("mean", "scv"),
    "weibull": ("mean", "shape"),
    "pareto": ("mean", "shape"),
    "truncated_normal": ("location", "scale"),
    "hyperexponential": ("probabilities", "means"),
    "geometric": ("mean",),
    "empirical": ("values",),
}
"""The families a model file may name, each with its required parameters."""
