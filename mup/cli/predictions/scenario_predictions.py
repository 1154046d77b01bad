"""Prediction intervals printed by ``mup whatif``, their parts, and what narrows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mup.cli.output.display import say
from mup.cli.output.figures import number, span
from mup.cli.output.tables import print_table
from mup.cli.predictions.machine_speeds import mostly_the_machine

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.studies.grids import Outcome
    from simulator.studies.prediction import Interval, Prediction

__all__ = ["print_predictions", "scenario_names"]

MAX_DETAILED = 8
"""Scenarios of which every figure is printed; of more, the response time alone."""
MAX_NAMED = 3
"""Scenarios that are named one by one where something is true of several."""

NAMES = {
    "measurement": "noise of the run",
    "discrepancy": "model error",
    "machine_speed": "machine speed",
}
REMEDIES = {
    "calibration": "'mup model' on an exploratory run finds it",
    "simulation": "a figure of 0 has no relative error",
    "measurement": "a figure of 0 has no relative error",
    "discrepancy": "'mup validate' shows it for this system",
    "machine_speed": "a model of 'mup model' knows its machine and how fast that was",
}


def print_predictions(out: Console, outcomes: Sequence[Outcome]) -> None:
    """Print the prediction intervals of a grid; nothing if there are none.

    Args:
        out: Where.
        outcomes: At least the baseline.
    """
    found = [(str(o.scenario), o.prediction) for o in outcomes if o.prediction is not None]
    if not found:
        return
    run = found[0][1].run
    rows = []
    for name, prediction in found:
        figures = _figures(prediction) if len(found) <= MAX_DETAILED else _figures(prediction)[:1]
        for index, (label, interval, factor) in enumerate(figures):
            part, share = max(interval.parts.items(), key=lambda item: item[1], default=("", 0.0))
            cause = f"{NAMES.get(part, part)} {100 * share:.0f} %" if part else "-"
            value = number(interval.mean * factor, interval.half_width * factor)
            between = span(interval.low * factor, interval.high * factor)
            rows.append(["" if index else name, label, value, between, cause])
    times = "a real run" if run.repeats == 1 else f"{run.repeats} real runs"
    out.print()
    title = f"Where {times} of {run.seconds:g} s would land, 19 times of 20"
    print_table(
        out,
        title,
        ["scenario", "figure", "predicted", "95 % interval", "mostly from"],
        rows,
        texts=2,
        words=("mostly from",),
    )
    say(
        out,
        "Mostly from: the largest part of the interval's variance: calibration, simulation, noise of the real"
        " run, the model's own error, or the speed of the machine. --json has every part.",
    )
    if text := mostly_the_machine(p for _, p in found):
        say(out, text)
    if len(found) > MAX_DETAILED:
        say(out, "More figures are in --json and --csv.")
    for text, names in _grouped((_missing(p), name) for name, p in found):
        say(out, f"not covered{_about(names, found)}: {text}")
    # What narrows the widest interval is said; others whose largest part is the same need the same thing.
    widest = sorted(found, key=lambda item: -_relative(item[1].response_time))
    texts = {p.advice.part: p.advice.text for _, p in reversed(widest)}
    for part, names in _grouped((p.advice.part, name) for name, p in widest):
        about = _about(names, found)
        say(out, f"to narrow the response time{about}: {texts[part]}")


def _figures(prediction: Prediction) -> list[tuple[str, Interval, float]]:
    """Return name, interval and factor to the printed unit of the figures of a scenario."""
    figures = [
        ("response ms", prediction.response_time, 1e3),
        ("p95 ms", prediction.p95, 1e3),
        ("per second", prediction.throughput, 1.0),
    ]
    busiest = max(prediction.utilization.items(), key=lambda item: item[1].mean, default=None)
    if busiest is not None:
        figures.append((f"{busiest[0]} busy %", busiest[1], 100.0))
    return figures


def _missing(prediction: Prediction) -> str:
    """Return what the intervals do not cover, and what would help."""
    return "; ".join(
        f"{replace(missing, part=NAMES.get(missing.part, missing.part))} ({REMEDIES[missing.part]})"
        for missing in prediction.missing
    )


def _relative(interval: Interval) -> float:
    """Return the half-width as a fraction of the figure; 0 of a figure that is 0."""
    return interval.half_width / interval.mean if interval.mean else 0.0


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return each text that is not empty once, with the scenarios it is about."""
    groups: dict[str, list[str]] = {}
    for text, name in pairs:
        if text:
            groups.setdefault(text, []).append(name)
    return list(groups.items())


def _about(names: Sequence[str], scenarios: Sequence[object]) -> str:
    """Say which scenarios something is about, unless it is all of them."""
    return "" if len(names) == len(scenarios) else f" ({scenario_names(names)})"


def scenario_names(names: Sequence[str]) -> str:
    """Name scenarios; of many, say how many there are besides the first."""
    if len(names) <= MAX_NAMED:
        return "; ".join(names)
    return f"{names[0]}; and {len(names) - 1} other scenarios"
