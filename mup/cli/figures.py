"""How are simulated figures printed? Tables with intervals, wide enough to be read in a pipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.result import Figure


def interval(figure: Figure | None, factor: float = 1.0) -> str:
    """Return ``12.35 +- 0.12``, with two digits of the interval; ``-`` if the figure does not exist."""
    if figure is None:
        return "-"
    mean, half = figure.mean * factor, figure.ci95 * factor
    if half == 0 or not math.isfinite(half):
        return f"{mean:.5g}"
    digits = min(9, max(0, 1 - math.floor(math.log10(half))))
    return f"{mean:.{digits}f} +- {half:.{digits}f}"


def change(value: float, baseline: float) -> str:
    """Return the signed relative change as a percentage; empty if there is nothing to compare with."""
    return f"{100 * (value / baseline - 1):+.1f} %" if baseline else ""


def print_table(
    out: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1
) -> None:
    """Print a table; the first ``texts`` columns are names, the others numbers."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE, title_justify="left", title_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < texts else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    out.print(table)
