"""How does ``mup whatif`` print where real runs would land? Intervals, their parts, what narrows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mup.cli.figures import number, print_table, span

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.grids import Outcome
    from simulator.prediction import Interval, Prediction

__all__ = ["print_predictions"]

MAX_DETAILED = 8
"""Scenarios of which every figure is printed; of more, the response time alone."""

PARTS = ("calibration", "simulation", "measurement", "discrepancy")
NAMES = {"discrepancy": "model error"}
REMEDIES = {
    "calibration": "'mup model' on an exploratory run finds it",
    "discrepancy": "'mup validate' shows it for this system",
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
            shares = [f"{100 * interval.parts[p]:.0f}" if p in interval.parts else "?" for p in PARTS]
            parts = "/".join(shares)
            value = number(interval.mean * factor, interval.half_width * factor)
            between = span(interval.low * factor, interval.high * factor)
            rows.append(["" if index else name, label, value, between, parts])
    times = "a real run" if run.repeats == 1 else f"{run.repeats} real runs"
    title = f"Where {times} of {run.seconds:g} s would land, 19 times of 20"
    print_table(out, title, ["scenario", "figure", "predicted", "95 % interval", "c/s/m/e %"], rows, texts=2)
    out.print(
        "c/s/m/e: shares of calibration error, simulation, noise of the measured run, and the model's"
        " own error in the variance; ? = not known, not covered."
    )
    if len(found) > MAX_DETAILED:
        out.print("More figures are in --json and --csv.")
    for text, names in _grouped((_missing(p), name) for name, p in found):
        out.print(f"not covered{_about(names, found)}: {text}", markup=False, soft_wrap=True)
    # What narrows the widest interval is said; others whose largest part is the same need the same thing.
    widest = sorted(found, key=lambda item: -item[1].response_time.half_width / item[1].response_time.mean)
    texts = {p.advice.part: p.advice.text for _, p in reversed(widest)}
    for part, names in _grouped((p.advice.part, name) for name, p in widest):
        about = _about(names, found)
        out.print(f"to narrow the response time{about}: {texts[part]}", markup=False, soft_wrap=True)


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
    return "; ".join(
        f"{part.replace('discrepancy', NAMES['discrepancy'])} ({REMEDIES[part.split(' ')[0]]})"
        for part in prediction.missing
    )


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return each text that is not empty once, with the scenarios it is about."""
    groups: dict[str, list[str]] = {}
    for text, name in pairs:
        if text:
            groups.setdefault(text, []).append(name)
    return list(groups.items())


def _about(names: Sequence[str], everybody: Sequence[object]) -> str:
    """Say which scenarios something is about, unless it is all of them."""
    if len(names) == len(everybody):
        return ""
    return f" ({names[0]})" if len(names) == 1 else f" ({names[0]} and {len(names) - 1} more)"
