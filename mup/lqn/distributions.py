"""Distributions of demands, delays and think times: pure data, in seconds.

A distribution is what the JSON of a model says about one random time. Sampling lives with the
engines (``simulator.variates``), so that every engine draws the same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from mup.errors import ModelError

__all__ = ["FAMILIES", "Constant", "Distribution", "Empirical", "Erlang", "Exponential", "Uniform"]


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
        """Return the distribution of ``factor`` times this time; the shape stays."""
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

    def __post_init__(self) -> None:
        _require(len(self.values) > 0, "values", "must hold at least one value")
        for index, value in enumerate(self.values):
            _require(_positive(value), f"values[{index}]", f"must be a number of seconds >= 0, got {value!r}")
        _require(
            all(a <= b for a, b in zip(self.values, self.values[1:], strict=False)),
            "values",
            "must be in ascending order",
        )

    @property
    def mean(self) -> float:  # noqa: D102
        return math.fsum(self.values) / len(self.values)

    @property
    def variance(self) -> float:  # noqa: D102
        mean = self.mean
        return math.fsum((v - mean) ** 2 for v in self.values) / len(self.values)

    def scaled(self, factor: float) -> Empirical:  # noqa: D102
        return Empirical(tuple(v * factor for v in self.values))

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"family": self.family, "mean": self.mean, "values": list(self.values)}


FAMILIES: dict[str, tuple[str, ...]] = {
    "constant": ("mean",),
    "exponential": ("mean",),
    "erlang": ("mean", "stages"),
    "uniform": ("low", "high"),
    "empirical": ("values",),
}
"""The families a model file may name, each with its required parameters."""


def distribution_from_json(data: Any) -> Distribution | None:
    """Build a distribution from its JSON object; null means uncalibrated.

    Raises:
        ModelError: The family is unknown or a parameter is missing or out of range; ``where`` is the
            field inside the object.
    """
    if data is None:
        return None
    if not isinstance(data, dict):
        raise ModelError(f"must be an object with a 'family', or null if uncalibrated, got {data!r}")
    family = data.get("family")
    if family not in FAMILIES:
        raise ModelError(f"unknown family {family!r}; known: {', '.join(FAMILIES)}", where="family")
    missing = [p for p in FAMILIES[family] if p not in data]
    if missing:
        raise ModelError(f"family {family!r} needs {', '.join(missing)}", where=missing[0])
    extra = set(data) - set(FAMILIES[family]) - {"family", "mean"}
    if extra:
        raise ModelError(f"family {family!r} has no parameter {min(extra)!r}", where=min(extra))
    if family == "constant":
        return Constant(data["mean"])
    if family == "exponential":
        return Exponential(data["mean"])
    if family == "erlang":
        return Erlang(data["mean"], data["stages"])
    if family == "uniform":
        return Uniform(data["low"], data["high"])
    if not isinstance(data["values"], list):
        raise ModelError(f"must be a list of seconds, got {data['values']!r}", where="values")
    found = Empirical(tuple(data["values"]))
    stated = data.get("mean", found.mean)
    if not _positive(stated) or not math.isclose(stated, found.mean, rel_tol=1e-6):
        raise ModelError(
            f"{stated!r} is not the mean of the values, which is {found.mean!r}",
            where="mean",
            hint="the values count: change them, or use another family such as 'exponential'",
        )
    return found
