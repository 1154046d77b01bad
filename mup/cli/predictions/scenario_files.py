"""Files with the figures of a grid: CSV, and a chart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mup.errors import UsageError
from mup.whole_file import write_whole

if TYPE_CHECKING:
    from mup.cli.output.chart import Mark
    from simulator.figures.result import Figure
    from simulator.studies.grids import Outcome
    from simulator.studies.saturation import Saturation
    from simulator.studies.whatif import Axis, Change

__all__ = [
    "DRAWN",
    "MAX_CURVES",
    "Point",
    "bands_of",
    "check_curves",
    "draw_scenarios",
    "key_of",
    "points_of",
    "write_csv",
]

DRAWN = {"response_time": ("ms", 1e3), "throughput": ("1/s", 1.0)}
"""What a chart shows: unit, and factor on seconds or on what is per second."""

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

    keys = list(dict.fromkeys(key_of(c) for o in outcomes for c in o.scenario.changes))
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
        values = {key_of(c): c.value for c in outcome.scenario.changes}
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


def key_of(change: Change) -> str:
    """Return the heading of what a change sets."""
    return f"{change.kind} {change.name}".strip()


def _cells(figure: Figure | None) -> list[object]:
    return ["", ""] if figure is None else [figure.mean, figure.ci95]


@dataclass(frozen=True, slots=True)
class Point:
    """What is drawn of one scenario.

    Attributes:
        changes: Of the scenario.
        figures: Of response time (seconds) and throughput: the value, and the ends of its band if it has one.
        saturation: What is full first in it, if that is known.
    """

    changes: tuple[Change, ...]
    figures: Mapping[str, tuple[float, float | None, float | None]]
    saturation: Saturation | None = None


def points_of(outcomes: Sequence[Outcome]) -> list[Point]:
    """Return what is drawn of simulated scenarios, and bands: where real runs land, or else intervals."""
    found = []
    for outcome in outcomes:
        figures = {}
        for name in DRAWN:
            simulated: Figure = getattr(outcome.result.cycle, name)
            low, high = simulated.mean - simulated.ci95, simulated.mean + simulated.ci95
            if outcome.prediction is not None:
                predicted = getattr(outcome.prediction, name)
                low, high = predicted.low, predicted.high
            figures[name] = simulated.mean, low, high
        found.append(Point(outcome.scenario.changes, figures, outcome.saturation))
    return found


def bands_of(outcomes: Sequence[Outcome]) -> str:
    """Return what the bands of simulated scenarios are, for the title of a chart."""
    run = next((o.prediction.run for o in outcomes if o.prediction is not None), None)
    return "simulation, 95 %" if run is None else f"real runs of {run.total:g} s, 95 %"


def check_curves(axes: Sequence[Axis]) -> None:
    """Refuse to draw more curves than can be told apart.

    Raises:
        UsageError: They are too many.
    """
    curves = math.prod(map(len, axes)) // max(map(len, axes))
    if curves > MAX_CURVES:
        raise UsageError(
            f"--plot: {curves} curves cannot be told apart; at most {MAX_CURVES} fit",
            hint="fewer values, or one chart for each of some of them",
        )


def draw_scenarios(path: str, title: str, axes: Sequence[Axis], points: Sequence[Point]) -> None:
    """Draw response time and throughput over the axis with most values; the other axes make curves.

    Args:
        path: An SVG file.
        title: Of the chart.
        axes: The axes of the grid.
        points: The grid, in the order of ``simulator.studies.whatif.grid``.

    Raises:
        UsageError: The file cannot be written.
    """
    from mup.cli.output.chart import Curve, Panel, draw_panels

    across = max(axes, key=len)
    at = {change: position for position, change in enumerate(across)}
    curves: dict[str, list[Point]] = {}
    for point in points:
        others = [str(c) for c in point.changes if c not in at]
        curves.setdefault(", ".join(others), []).append(point)

    def position(point: Point) -> int:
        return next(at[c] for c in point.changes if c in at)

    def scaled(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    panels = []
    for figure, (label, factor) in DRAWN.items():
        drawn = {
            name: Curve(
                [position(p) for p in those],
                [p.figures[figure][0] * factor for p in those],
                [scaled(p.figures[figure][1], factor) for p in those],
                [scaled(p.figures[figure][2], factor) for p in those],
            )
            for name, those in curves.items()
        }
        panels.append(Panel(f"{figure.replace('_', ' ')}, {label}", drawn))
    names = [c.value if isinstance(c.value, str) else f"{c.value:g}" for c in across]
    numbers = [c.value for c in across if not isinstance(c.value, str) and math.isfinite(c.value)]
    text = draw_panels(
        title,
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
        "fan-out": "width",
    }
    what = units.get(change.kind, change.kind)
    return f"{what} ({change.name})" if change.name else what


def _saturations(change: Change, curves: Mapping[str, Sequence[Point]]) -> list[Mark]:
    """Return the load at which something is full first, per curve, where the axis is that load."""
    from mup.cli.output.chart import Mark
    from mup.cli.predictions.scenario_tables import same_limit

    found: list[tuple[Saturation, list[str]]] = []
    for name, points in curves.items():
        limit = next((p.saturation for p in points if p.saturation is not None), None)
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
