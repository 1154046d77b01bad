"""Figures that columns of measurements hold, named as in the JSON of ``mup simulate``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mup.errors import UsageError, did_you_mean
from mup.lqn.refs import FigureRef

__all__ = ["is_measure", "known_measures", "long_name", "value_of"]

SHORT: Final = {"throughput": "cycle.throughput", "response_time": "cycle.response_time"}
GROUPS: Final = ("cycle", "tasks", "entries", "processors")


def long_name(name: str) -> str:
    """Return ``cycle.throughput`` for ``throughput``, and everything else as it is."""
    return SHORT.get(name, name)


def is_measure(name: str) -> bool:
    """Tell whether a name has the form of a measured figure."""
    return FigureRef.parse(long_name(name)).group in GROUPS


def known_measures(document: Mapping[str, Any]) -> list[str]:
    """Return the names of all figures a result or estimate has."""
    found = [f"cycle.{figure}" for figure in document["cycle"]]
    for group in GROUPS[1:]:
        for name, figures in document[group].items():
            found += [f"{group}.{name}.{f}" for f, value in figures.items() if isinstance(value, Mapping)]
    return found


def value_of(document: Mapping[str, Any], measure: str) -> float:
    """Return the mean of a figure.

    Args:
        document: As ``Estimate.to_json`` and ``Result.to_json`` make it.
        measure: ``cycle.response_time``, ``tasks.B.utilization``, ``entries.B/epB/.response_time``, ...

    Raises:
        UsageError: The model has no such figure; the closest names are suggested.
    """
    ref = FigureRef.parse(long_name(measure))
    figures = document.get(ref.group, {})
    if ref.group != "cycle":
        figures = figures.get(ref.name, {})
    value = figures.get(ref.figure)
    if not isinstance(value, Mapping):
        known = [*SHORT, *known_measures(document)]
        raise UsageError(f"the model has no figure {measure!r}; {did_you_mean(measure, known)}")
    return float(value["mean"])
