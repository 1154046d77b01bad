"""Print figures with as many digits as their interval leaves meaningful."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulator.figures.result import Figure

ROUNDING = 1e-9
"""Relative half-widths below this are rounding errors of a figure without any."""


NOTHING = 1e-6
"""What is less than this, in the unit it is printed in, is what a solver left over: printed as 0."""
DIGITS = 4
"""Of a figure that has no interval."""


def plain(value: float) -> str:
    """Return a number without interval: four digits, never an exponent."""
    if not math.isfinite(value):
        return f"{value:g}"
    if abs(value) < NOTHING:
        return "0"
    places = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def interval(figure: Figure | Mapping[str, Any] | None, factor: float = 1.0, *, signed: bool = False) -> str:
    """Return ``12.35 +- 0.12``, with two digits of the interval; ``-`` if the figure does not exist.

    Args:
        figure: A figure or its JSON; a ``ci95`` of None stands for a figure without interval.
        factor: To print another unit.
        signed: Write a plus before what is not negative.
    """
    if figure is None:
        return "-"
    if isinstance(figure, Mapping):
        mean, half = figure["mean"], figure["ci95"]
    else:
        mean, half = figure.mean, figure.ci95
    mean *= factor
    if half is None or not math.isfinite(half) or half * factor <= ROUNDING * abs(mean):
        return ("+" if signed and mean >= 0 else "") + plain(mean)
    half *= factor
    digits = min(9, max(0, 1 - math.floor(math.log10(half))))
    sign = "+" if signed else ""
    return f"{mean:{sign}.{digits}f} +- {half:.{digits}f}"


def number(value: float, half_width: float) -> str:
    """Return a number with as many digits as a half-width leaves meaningful: two of it."""
    if half_width <= ROUNDING * abs(value) or not math.isfinite(half_width):
        return plain(value)
    digits = min(9, max(0, 1 - math.floor(math.log10(half_width))))
    return f"{value:.{digits}f}"


def span(low: float, high: float) -> str:
    """Return ``11.2 .. 13.9``, with two digits of half the length."""
    half = (high - low) / 2
    return f"{number(low, half)} .. {number(high, half)}"
