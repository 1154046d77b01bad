"""Read and write distributions as JSON objects of a model file."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mup.errors import ModelError
from mup.lqn.distributions import (
    FAMILIES,
    LARGEST,
    LEAST,
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Pareto,
    TruncatedNormal,
    Uniform,
    Weibull,
)

__all__ = ["count_from_json", "distribution_from_json"]

_CLASSES: dict[str, Callable[..., Distribution]] = {
    kind.family: kind
    for kind in (
        Constant,
        Exponential,
        Erlang,
        Uniform,
        Gamma,
        Lognormal,
        Weibull,
        Pareto,
        TruncatedNormal,
        Geometric,
    )
}
"""The families whose parameters in ``FAMILIES`` are the constructor's, in its order."""


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
    if not isinstance(family, str) or family not in FAMILIES:
        raise ModelError(f"unknown family {family!r}; known: {', '.join(FAMILIES)}", where="family")
    missing = [p for p in FAMILIES[family] if p not in data]
    if missing:
        raise ModelError(f"family {family!r} needs {', '.join(missing)}", where=missing[0])
    unknown = [p for p in FAMILIES[family] if data[p] is None]
    if unknown:
        raise ModelError(
            "null is no number; a time that was never measured is null as a whole, without 'family'",
            where=unknown[0],
        )
    extra = set(data) - set(FAMILIES[family]) - {"family", "mean"}
    if extra:
        raise ModelError(f"family {family!r} has no parameter {min(extra)!r}", where=min(extra))
    try:
        found = _build(family, data)
        mean, variance = found.mean, found.variance
    except OverflowError as error:
        raise ModelError("the numbers are too large to calculate with") from error
    if math.isnan(mean + variance):
        raise ModelError("the numbers are too large to calculate with")
    if 0 < mean < LEAST or LARGEST < mean < math.inf:
        raise ModelError(
            f"a mean other than 0 must be between {LEAST:g} and {LARGEST:g}, got {mean!r}", where="mean"
        )
    if "mean" in data and "mean" not in FAMILIES[family]:
        _check_mean(data["mean"], mean)
    return found


def _build(family: str, data: dict[str, Any]) -> Distribution:
    if family == "empirical":
        return Empirical(_numbers(data, "values"))
    if family == "hyperexponential":
        return Hyperexponential(_numbers(data, "probabilities"), _numbers(data, "means"))
    return _CLASSES[family](*(data[parameter] for parameter in FAMILIES[family]))


def _numbers(data: dict[str, Any], field: str) -> tuple[float, ...]:
    value = data[field]
    if not isinstance(value, list):
        raise ModelError(f"must be a list of numbers, got {value!r}", where=field)
    return tuple(value)


def _check_mean(given: object, mean: float) -> None:
    """Refuse a mean, given for readers beside the parameters that count, if it contradicts them."""
    known = isinstance(given, int | float) and not isinstance(given, bool)
    if not known or not math.isclose(float(given), mean, rel_tol=1e-6):  # type: ignore[arg-type]
        raise ModelError(
            f"{given!r} is not the mean of the values, which is {mean!r}",
            where="mean",
            hint="the values count: change them, or use another family such as 'exponential'",
        )


def count_from_json(data: Any) -> Distribution | None:
    """Build a number of times from its JSON: a distribution, or a number that is always the same.

    Raises:
        ModelError: As for ``distribution_from_json``.
    """
    if isinstance(data, int | float) and not isinstance(data, bool):
        return Constant(data)
    return distribution_from_json(data)
