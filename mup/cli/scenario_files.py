"""Where do the figures of a grid go besides the terminal? A CSV file, and a chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mup.whole_file import write_whole

if TYPE_CHECKING:
    from mup.cli.chart import Mark
    from simulator.figures.result import Figure
    from simulator.studies.grids import Outcome
    from simulator.studies.saturation import Saturation
    from simulator.studies.whatif import Axis, Change

__all__ = ["MAX_CURVES", "draw_scenarios", "write_csv"]

MAX_CURVES = 8
"""More curves than that cannot be told apart."""


def write_csv(path: str, outcomes: Sequence[Outcome]) -> None:
    """Write one line per scenario; times in seconds, throughput per second, utilization as a fraction.

    Raises:
        UsageError: The file cannot be written.
    """
    import csv
    import io

    from simulator.studies.whatif import utilizations

    keys = list(dict.fromkeys(_key(c) for o in outcomes for c in o.scenario.changes))
    servers = list(dict.fromkeys(ref for o in outcomes for ref in utilizations(o.result)))
    figures = ("throughput", "response_time", "p50", "p90", "p95", "p99")
    compared = any(o.difference for o in outcomes)
    predicted = any(o.prediction for o in outcomes)
    heading = [*keys, *(f"{f}{suffix}" for f in figures for suffix in ("", "_ci95"))]
    if compared:
        heading += [f"{f}_change{suffix}" for f in figures for suffix in ("", "_ci95")]
    heading += [f"utilization {ref.label}{suffix}" for ref in servers for suffix in ("", " ci95")]
    tasks = list(dict.fromkeys(t for o in outcomes if o.prediction for t in o.prediction.utilization))
    if predicted:
        names = ["throughput", "response_time", "p95", *(f"utilization task {t}" for t in tasks)]
        heading += [f"{name}_run_{end}" for name in names for end in ("low", "high")]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
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
        for ref in servers:
            row += _cells(share.get(ref))
        found = outcome.prediction
        if found is not None:
            for each in (
                found.throughput,
                found.response_time,
                found.p95,
                *(found.utilization.get(task) for task in tasks),
            ):
                row += ["", ""] if each is None else [each.low, each.high]
        writer.writerow(row)
    write_whole(path, text.getvalue(), what="the table")


def _key(change: Change) -> str:
    return f"{change.kind} {change.name}".strip()


def _cells(figure: Figure | None) -> list[object]:
    return ["", ""] if figure is None else [figure.mean, figure.ci95]


def _bounds(outcome: Outcome, figure: str) -> tuple[float, float]:
    """Return the ends of the band: where real runs would land, or else the simulation's interval."""
    if outcome.prediction is not None:
        found = getattr(outcome.prediction, figure)
        return found.low, found.high
    simulated = getattr(outcome.result.cycle, figure)
    return simulated.mean - simulated.ci95, simulated.mean + simulated.ci95


def draw_scenarios(path: str, title: str, axes: Sequence[Axis], outcomes: Sequence[Outcome]) -> None:
    """Draw response time and throughput over the axis with most values; the other axes make curves.

    Args:
        path: An SVG file.
        title: Of the chart.
        axes: The axes of the grid.
        outcomes: The baseline, then the grid in the order of ``simulator.studies.whatif.grid``.

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
    for label, figure, factor in (("ms", "response_time", 1e3), ("1/s", "throughput", 1.0)):
        drawn = {}
        for name, points in curves.items():
            means = [getattr(o.result.cycle, figure).mean * factor for o in points]
            bounds = [_bounds(o, figure) for o in points]
            drawn[name] = Curve(
                [position(o) for o in points],
                means,
                [low * factor for low, _ in bounds],
                [high * factor for _, high in bounds],
            )
        panels.append(Panel(f"{figure.replace('_', ' ')}, {label}", drawn))
    run = next((o.prediction.run for o in outcomes if o.prediction is not None), None)
    band = "simulation, 95 %" if run is None else f"real runs of {run.total:g} s, 95 %"
    names = [c.value if isinstance(c.value, str) else f"{c.value:g}" for c in across]
    numbers = [c.value for c in across if not isinstance(c.value, str) and math.isfinite(c.value)]
    text = draw_panels(
        f"{title} (bands: {band})",
        _axis_label(across[0]),
        names,
        panels,
        values=numbers if len(numbers) == len(across) else None,
        marks=_saturations(across[0], curves),
    )
    write_whole(path, text, what="the picture")


def _axis_label(change: Change) -> str:
    """Return what is changed, with its unit."""
    units = {
        "arrivals": "arrivals per second",
        "think": "think time, seconds",
        "pool": "threads per replica",
        "replicas": "replicas",
        "cores": "cores",
        "speed": "speed, 1 = as measured",
        "probability": "probability",
        "calls": "calls",
    }
    what = units.get(change.kind, change.kind)
    return f"{what} ({change.name})" if change.name else what


def _saturations(change: Change, curves: Mapping[str, Sequence[Outcome]]) -> list[Mark]:
    """Return the load at which something is full first, per curve, where the axis is that load."""
    from mup.cli.chart import Mark
    from mup.cli.scenario_tables import same_limit

    found: list[tuple[Saturation, list[str]]] = []
    for name, points in curves.items():
        limit = next((o.saturation for o in points if o.saturation is not None), None)
        if limit is None or limit.resource is None or len(limit.load) != 1:
            continue
        if change.kind != ("arrivals" if limit.is_open else "clients"):
            continue
        same = next((names for first, names in found if same_limit(first, limit)), None)
        if same is None:
            found.append((limit, [name]))
        else:
            same.append(name)
    marks = []
    for limit, names in found:
        (load,) = limit.load.values()
        about = "" if len(names) == len(curves) else f" ({'; '.join(names)})"
        one = names[0] if len(names) == 1 and len(curves) > 1 else ""
        marks.append(Mark(load, f"{limit.resource} saturates at {load:.3g}{about}", one))
    return marks
