"""``mup fit --track``: follow parameters, and say when the model no longer explains what is measured."""

from __future__ import annotations

import json
import math
from itertools import groupby
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyzer.fitting.fit import Wanted
    from analyzer.fitting.tracking import Alarm, Tracked
    from mup.lqn.model import Model

__all__ = ["drift_of", "follow"]

UNITS: Final = {"demand": ("ms", 1e3), "delay": ("ms", 1e3), "think": ("s", 1.0), "arrivals": ("1/s", 1.0)}
"""Of what is printed, and the factor on what the model has."""
NAMED: Final = 10
"""Periods whose name is written below a plot, about."""
ADVICE: Final = {
    "jump": "other values of the parameters explain it; the filter starts over",
    "structure": "no values of the parameters explain it: the structure has changed, or a number that is not "
    "tracked; find which (mup fit --versus, --estimate)",
    "unknown": "too few figures are measured to tell whether other values explain it; the filter starts over",
    "drift": "the parameters drift faster than they were taken to (--drift), or depend on the load; the "
    "filter starts over",
    "overload": "the model predicts overload that was not there: with the tracked values it has no steady "
    "state; refit the last periods",
}


def drift_of(text: str) -> float | None:
    """Return what ``--drift`` says; None = to be estimated.

    Raises:
        UsageError: It is neither ``auto`` nor a number between 0 and 1.
    """
    from mup.errors import UsageError

    if text == "auto":
        return None
    try:
        drift = float(text)
    except ValueError:
        drift = math.nan
    if not 0 < drift <= 1:
        raise UsageError(f"--drift: must be 'auto', or > 0 and <= 1, got {text!r}")
    return drift


def follow(
    model: Model,
    data: str,
    parameters: Sequence[Wanted],
    *,
    drift: float | None,
    learn: int,
    level: float,
    correct: bool,
    seed: int,
    plot: str | None,
    output: str | None,
    as_json: bool,
) -> int:
    """Track, write and print; return 1 if there was an alarm."""
    from analyzer.fitting.data import read_series
    from analyzer.fitting.track_report import tracked_document, tracked_model
    from analyzer.fitting.tracking import Following, track
    from mup.cli.options import shown
    from mup.lqn.files import write_model

    how = Following(drift=drift, learning=learn, level=level, correct=correct, seed=seed)
    tracked = track(model, read_series(data), parameters, how)
    if output is not None:
        write_model(tracked_model(tracked, data, seed), output)
    if plot is not None:
        _draw(tracked, plot)
    if as_json:
        click.echo(json.dumps(tracked_document(tracked), indent=1))
    else:
        _show(tracked)
        for path in (output, plot):
            if path is not None:
                click.echo(f"wrote {shown(path)}")
    return 1 if tracked.alarms else 0


def _show(tracked: Tracked) -> None:
    from mup.cli.output.display import console, say
    from mup.cli.output.figures import number
    from mup.cli.output.tables import print_table

    alarmed = {alarm.period: alarm.verdict for alarm in tracked.alarms}
    scales = [UNITS.get(p.kind, ("", 1.0)) for p in tracked.parameters]
    rows = []
    for t, name in enumerate(tracked.series.names):
        cells = []
        for k, (_, factor) in enumerate(scales):
            value, deviation = factor * tracked.values[t, k], factor * tracked.deviations[t, k]
            cells.append(f"{number(value, deviation)} +- {number(deviation, deviation)}")
        size = f"{tracked.size[t]:.2f}" if math.isfinite(tracked.size[t]) else "-"
        rows.append((name, *cells, size, alarmed.get(t, "")))
    headings = [f"{p.path} {unit}".strip() for p, (unit, _) in zip(tracked.parameters, scales, strict=True)]
    out = console()
    print_table(
        out,
        "Parameters over time, with their standard deviations",
        ["period", *headings, "size of innovation (1 = expected)", "alarm"],
        rows,
        words=("alarm",),
    )
    say(
        out,
        f"drift {tracked.drift:.2g} per period; errors of measurements: {ERRORS[tracked.noise]}; the first "
        f"{tracked.learning} periods are learned from",
    )
    for warning in tracked.warnings:
        say(out, f"warning: {warning}")
    for (verdict, _), alarms in groupby(tracked.alarms, key=lambda a: (a.verdict, a.measure)):
        same = list(alarms)
        say(out, f"alarm in period {_alarm(tracked, same[0])}")
        if len(same) > 1:
            last = tracked.series.names[same[-1].period]
            say(out, f"  and {len(same) - 1} times more, until period {last}")
        say(out, f"  {ADVICE[verdict]}")
    if not tracked.alarms:
        say(out, "no alarm: the model explains what was measured")


ERRORS: Final = {
    "rows": "from the scatter of the rows of a period",
    "stated": "as stated",
    "learned": "learned",
}


def _alarm(tracked: Tracked, alarm: Alarm) -> str:
    name = tracked.series.names[alarm.period]
    if not alarm.measure:
        return name
    best = "at best " if alarm.verdict == "structure" else ""
    return (
        f"{name}: {alarm.measure} is {alarm.measured:.4g}, {best}expected {alarm.expected:.4g} "
        f"({alarm.deviation:+.1f} standard deviations; {alarm.test} {alarm.statistic:.3g}, "
        f"limit {alarm.limit:.3g})"
    )


def _draw(tracked: Tracked, path: str) -> None:
    from mup.cli.output.chart import Curve, Panel, draw_panels
    from mup.whole_file import write_whole

    count = len(tracked.series.names)
    every = max(1, round(count / NAMED))
    names = [name if t % every == 0 else "" for t, name in enumerate(tracked.series.names)]
    at = [float(t) for t in range(count)]
    panels = []
    for kind in dict.fromkeys(p.kind for p in tracked.parameters):
        unit, factor = UNITS.get(kind, ("", 1.0))
        curves = {
            p.path: Curve(
                at,
                (factor * tracked.values[:, k]).tolist(),
                (factor * tracked.low[:, k]).tolist(),
                (factor * tracked.high[:, k]).tolist(),
            )
            for k, p in enumerate(tracked.parameters)
            if p.kind == kind
        }
        panels.append(Panel(f"{kind}, {unit}" if unit else kind, curves))
    # A gap would end the line: a period without innovation, which is an alarm, is drawn at 0.
    size = [value if math.isfinite(value) else 0.0 for value in tracked.size.tolist()]
    panels.append(
        Panel("innovation, 1 = as expected", {"innovation": Curve(at, size, [None] * count, [None] * count)})
    )
    write_whole(path, draw_panels("Parameters over time", "period", names, panels), what="the picture")
