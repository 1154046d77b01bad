"""How are simulated figures printed? Tables with intervals, wide enough to be read in a pipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.result import Figure

ROUNDING = 1e-9
"""Relative half-widths below this are rounding errors of a figure without any."""


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
    sign = "+" if signed else ""
    if half is None or not math.isfinite(half) or half * factor <= ROUNDING * abs(mean):
        return f"{mean:{sign}.5g}"
    half *= factor
    digits = min(9, max(0, 1 - math.floor(math.log10(half))))
    return f"{mean:{sign}.{digits}f} +- {half:.{digits}f}"


def number(value: float, half_width: float) -> str:
    """Return a number with as many digits as a half-width leaves meaningful: two of it."""
    if half_width <= ROUNDING * abs(value) or not math.isfinite(half_width):
        return f"{value:.5g}"
    digits = min(9, max(0, 1 - math.floor(math.log10(half_width))))
    return f"{value:.{digits}f}"


def span(low: float, high: float) -> str:
    """Return ``11.2 .. 13.9``, with two digits of half the length."""
    half = (high - low) / 2
    return f"{number(low, half)} .. {number(high, half)}"


def print_table(
    out: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1
) -> None:
    """Print a table; the first ``texts`` columns are names, the others numbers."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE, title_justify="left", title_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    out.print(table)
