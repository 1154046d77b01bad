"""How does ``mup whatif`` print a grid? One row per scenario, the baseline first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mup.cli.figures import interval, print_table
from mup.cli.scenario_predictions import print_predictions

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.grids import Outcome
    from simulator.result import Figure

__all__ = ["print_scenarios"]

MAX_COLUMNS = 6
WIDE = 120
"""Columns of a terminal from which on p95 fits, and utilizations if there are no differences."""


def print_scenarios(out: Console, outcomes: Sequence[Outcome]) -> None:
    """Print a grid.

    Args:
        out: Where.
        outcomes: At least the baseline.
    """
    from simulator.whatif import bottleneck, utilizations

    wide = out.width >= WIDE
    compared = any(o.difference for o in outcomes)
    shares = [utilizations(o.result) for o in outcomes]
    # The fullest servers somewhere in the grid are the interesting ones.
    peaks = {name: max(s[name].mean for s in shares if name in s) for share in shares for name in share}
    names = sorted(sorted(peaks, key=lambda n: -peaks[n])[:MAX_COLUMNS], key=list(peaks).index)
    if not wide or compared:
        names = []  # the bottleneck says which server matters; --json and --csv have all of them
    rows = []
    for outcome, share in zip(outcomes, shares, strict=True):
        cycle, most = outcome.result.cycle, bottleneck(outcome.scenario.model, outcome.result)
        rows.append(
            [
                str(outcome.scenario),
                "-" if most is None else f"{most[0]} {100 * most[1].mean:.0f} %",
                interval(cycle.response_time, 1e3),
                *([_change(outcome, "response_time", 1e3)] if compared else []),
                *([interval(cycle.response_time.p95, 1e3)] if wide else []),
                interval(cycle.throughput),
                *([_change(outcome, "throughput", 1.0)] if compared else []),
                *(f"{100 * share[n].mean:.1f}" if n in share else "-" for n in names),
            ]
        )
    headings = [
        "scenario",
        "bottleneck",
        "response ms",
        *(["change ms"] if compared else []),
        *(["p95 ms"] if wide else []),
        "throughput 1/s",
        *(["change 1/s"] if compared else []),
        *(f"{name} %" for name in names),
    ]
    print_table(out, "", headings, rows, texts=2)
    _print_limits(out, outcomes)
    out.print(
        "Response times exclude think time; +- is the half-width of the simulation's 95 % interval;"
        " % is utilization."
    )
    if compared:
        pairs = next(o.difference.replications for o in outcomes if o.difference)
        out.print(f"A change is the mean of {pairs} paired runs with common random numbers.")
    print_predictions(out, outcomes)
    for outcome in outcomes:
        for warning in outcome.result.warnings:
            out.print(f"warning: {outcome.scenario}: {warning}", markup=False)


def _change(outcome: Outcome, name: str, factor: float) -> str:
    """Return the difference to the baseline, and what part of it that is."""
    if outcome.difference is None:
        return ""
    figure: Figure = outcome.difference.figures["cycle", name]
    part = outcome.difference.relative("cycle", name)
    relative = "" if part is None else f" ({100 * part.mean:+.1f} %)"
    return f"{interval(figure, factor, signed=True)}{relative}"


def _print_limits(out: Console, outcomes: Sequence[Outcome]) -> None:
    """Print what saturates first; one line for all scenarios that agree."""
    groups: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.saturation is not None:
            groups.setdefault(outcome.saturation.limit, []).append(str(outcome.scenario))
    for text, scenarios in groups.items():
        who = scenarios[0] if len(scenarios) == 1 else f"{scenarios[0]} and {len(scenarios) - 1} more"
        prefix = "" if len(groups) == 1 else f"{who}: "
        out.print(f"{prefix}{text}", markup=False)
