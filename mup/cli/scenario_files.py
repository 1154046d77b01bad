"""Where do the figures of a grid go besides the terminal? A CSV file, and a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mup.errors import UsageError

if TYPE_CHECKING:
    from simulator.grids import Outcome
    from simulator.result import Figure
    from simulator.whatif import Axis, Change

__all__ = ["MAX_CURVES", "draw_scenarios", "write_csv"]

MAX_CURVES = 8
"""More curves than that cannot be told apart."""


def write_csv(path: str, outcomes: Sequence[Outcome]) -> None:
    """Write one line per scenario; times in seconds, throughput per second, utilization as a fraction.

    Raises:
        UsageError: The file cannot be written.
    """
    import csv

    from simulator.whatif import utilizations

    keys = list(dict.fromkeys(_key(c) for o in outcomes for c in o.scenario.changes))
    servers = list(dict.fromkeys(name for o in outcomes for name in utilizations(o.result)))
    figures = ("throughput", "response_time", "p50", "p90", "p95", "p99")
    compared = any(o.difference for o in outcomes)
    heading = [*keys, *(f"{f}{suffix}" for f in figures for suffix in ("", "_ci95"))]
    if compared:
        heading += [f"{f}_change{suffix}" for f in figures for suffix in ("", "_ci95")]
    heading += [f"utilization {name}{suffix}" for name in servers for suffix in ("", " ci95")]
    try:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(heading)
            for outcome in outcomes:
                values = {_key(c): c.value for c in outcome.scenario.changes}
                time, share = outcome.result.cycle.response_time, utilizations(outcome.result)
                row: list[object] = [values.get(k, "") for k in keys]
                for figure in (outcome.result.cycle.throughput, time, time.p50, time.p90, time.p95, time.p99):
                    row += _cells(figure)
                if compared:
                    change = outcome.difference
                    for name in figures:
                        row += _cells(None if change is None else change.figures["cycle", name])
                for name in servers:
                    row += _cells(share.get(name))
                writer.writerow(row)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _key(change: Change) -> str:
    return f"{change.kind} {change.name}".strip()


def _cells(figure: Figure | None) -> list[object]:
    return ["", ""] if figure is None else [figure.mean, figure.ci95]


def draw_scenarios(path: str, title: str, axes: Sequence[Axis], outcomes: Sequence[Outcome]) -> None:
    """Draw response time and throughput over the axis with most values; the other axes make curves.

    Args:
        path: An SVG file.
        title: Of the chart.
        axes: The axes of the grid.
        outcomes: The baseline, then the grid in the order of ``simulator.whatif.grid``.

    Raises:
        UsageError: The file cannot be written.
    """
    from mup.cli.chart import Curve, Panel, draw_panels

    across = max(axes, key=len)
    at = {change: position for position, change in enumerate(across)}
    curves: dict[str, list[Outcome]] = {}
    for outcome in outcomes[1:]:
        others = [str(c) for c in outcome.scenario.changes if c not in at]
        curves.setdefault(", ".join(others), []).append(outcome)

    def position(outcome: Outcome) -> int:
        return next(at[c] for c in outcome.scenario.changes if c in at)

    panels = []
    for label, factor in (("response time, ms", 1e3), ("throughput, 1/s", 1.0)):
        drawn = {}
        for name, points in curves.items():
            cycles = [o.result.cycle for o in points]
            figures = [c.response_time if factor > 1 else c.throughput for c in cycles]
            drawn[name] = Curve(
                [position(o) for o in points],
                [f.mean * factor for f in figures],
                [f.ci95 * factor for f in figures],
            )
        panels.append(Panel(label, drawn))
    names = [c.value if isinstance(c.value, str) else f"{c.value:g}" for c in across]
    text = draw_panels(title, _key(across[0]), names, panels)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
