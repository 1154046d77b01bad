"""How does ``mup plan`` print its answers?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mup.cli.output.display import say
from mup.cli.output.figures import interval, plain
from mup.cli.output.tables import print_table

if TYPE_CHECKING:
    from rich.console import Console

    from simulator.figures.result import Figure
    from simulator.studies.planning.chance import Outlook
    from simulator.studies.planning.levers import Lever, Levers
    from simulator.studies.planning.load import LargestLoad
    from simulator.studies.planning.plan import Option, Plan
    from simulator.studies.planning.slo import Slo

__all__ = ["print_levers", "print_load", "print_plan"]

MOST_LEVERS = 20
MOST_NAMED = 3
BELOW = 0.001
"""Probabilities nearer to 0 or 1 than this are not written as such."""


def print_plan(out: Console, found: Plan, ahead: Outlook) -> None:
    """Print the cheapest deployment, what lies around it, and how it was found."""
    slos, unit = found.slos, found.space.prices.unit
    say(out, f"cheapest deployment: {found.best}: costs {_cost(found.best.cost, unit)}")
    _print_outlook(out, slos, ahead)
    if not found.proven:
        say(out, "A cheaper one may exist: the search ended before all others were ruled out.")
    for option in found.close[:MOST_NAMED]:
        costs = f"costs {_cost(option.cost, unit)}, {_figures(option, slos)}"
        say(out, f"cheaper, and too close to call: {option}: {costs}")
    if len(found.close) > MOST_NAMED:
        say(out, f"... and {len(found.close) - MOST_NAMED} more that are too close to call (--json)")
    if found.next_cheaper is not None:
        option = found.next_cheaper
        why = option.seen.why or _figures(option, option.failing(slos) and slos)
        failing = ", ".join(slo.label for slo in option.failing(slos))
        say(out, f"next cheaper: {option}: costs {_cost(option.cost, unit)}; fails {failing}: {why}")
    else:
        say(out, "There is no cheaper deployment among those to choose from.")
    rows = [
        [
            str(option),
            plain(option.cost),
            *(interval(figure, slo.factor) for slo, figure in _pairs(option, slos)),
            "meets" if not option.failing(slos) else "fails",
        ]
        for option in found.front
    ]
    out.print()
    print_table(
        out,
        "No simulated deployment is both cheaper and better than these",
        ["deployment", f"cost {unit}".strip(), *(f"{slo.label} {slo.unit}" for slo in slos), "objectives"],
        rows,
        texts=1,
        words=("objectives",),
    )
    effort = found.effort
    counts = [f"{effort.simulated:,} were simulated"]
    if effort.estimated:
        counts.append(f"{effort.estimated:,} estimated")
    say(
        out,
        f"Of {found.space.size:,} deployments {', '.join(counts)}; the others have no more of anything than"
        " one that fails, or cost more. +- is the half-width of the simulation's 95 % interval.",
    )
    if found.limit is not None:
        say(out, f"warning: {found.limit}; the list may lack some")


def print_load(out: Console, found: LargestLoad, ahead: Outlook) -> None:
    """Print the largest load, and what fails beyond it."""
    say(out, f"largest load: {found.change}")
    _print_outlook(out, found.slos, ahead)
    if found.beyond is None or found.beyond_seen is None:
        say(out, "More load was not tried.")
        return
    why = found.beyond_seen.why or "; ".join(
        _figure(slo, figure)
        for slo, figure in zip(found.slos, found.beyond_seen.figures, strict=True)
        if slo in found.failing
    )
    say(out, f"{found.beyond} fails {', '.join(slo.label for slo in found.failing)}: {why}")


def print_levers(out: Console, found: Levers) -> None:
    """Print what helps most."""
    slos = found.slos
    rows = [
        [
            f"{lever.kind} {lever.name}{f' (line {lever.line})' if lever.line else ''}",
            lever.change,
            *(_effect(lever, slos, i) for i in range(len(slos))),
            _relative(lever, found),
        ]
        for lever in found.found[:MOST_LEVERS]
    ]
    out.print()
    ranked = slos[found.ranked_by]
    now = interval(found.figures[found.ranked_by], ranked.factor)
    print_table(
        out,
        f"What moves {ranked.label} (now {now} {ranked.unit})",
        ["what", "change", *(f"{slo.label} {slo.unit}" for slo in slos), f"{ranked.label} %"],
        rows,
        texts=2,
        spare=[f"{slo.label} {slo.unit}" for slo in slos if slo is not ranked],
    )
    say(
        out,
        "Each change alone, simulated in pairs with common random numbers; +- is the half-width of a 95 %"
        " interval of chance, calibration and machine. ~ is the share of a line in the effect of its"
        " endpoint.",
    )
    if len(found.found) > MOST_LEVERS:
        say(out, f"{len(found.found) - MOST_LEVERS} more are in --json.")
    if found.machine_left_out:
        say(
            out,
            "warning: the intervals are without the machine's speed, for at the lowest it may have the model"
            f" cannot run: {found.machine_left_out}",
        )
    if found.limit is not None:
        say(out, f"warning: {found.limit}; not simulated: {len(found.left_out)} others")


def _effect(lever: Lever, slos: Sequence[Slo], which: int) -> str:
    text = interval(lever.effects[which], slos[which].factor, signed=True)
    return text if lever.simulated else f"~ {text}"


def _relative(lever: Lever, found: Levers) -> str:
    now = found.figures[found.ranked_by].mean
    return f"{100 * lever.effects[found.ranked_by].mean / now:+.1f}" if now else "-"


def _print_outlook(out: Console, slos: Sequence[Slo], ahead: Outlook) -> None:
    run = ahead.prediction.run
    rows = [
        [
            f"{slo.label} {slo.unit}",
            interval(figure, slo.factor),
            ("at least " if slo.at_least else "at most ") + plain(slo.limit * slo.factor),
            _probability(probability),
        ]
        for slo, figure, probability in zip(slos, ahead.figures, ahead.probabilities, strict=True)
    ]
    print_table(
        out,
        "",
        ["objective", "predicted", "limit", "met by a real run with probability"],
        rows,
        texts=1,
    )
    what = f"A real run of {run.total:g} s"
    if len(slos) > 1:
        say(
            out, f"{what} meets all of them with a probability of at least {_probability(ahead.probability)}."
        )
    missing = "; ".join(map(str, ahead.prediction.missing))
    covered = "calibration, chance, the model's own error and the machine"
    say(
        out,
        f"{what}: {covered} together{f'; not covered, as not known: {missing}' if missing else ''}.",
    )


def _probability(value: float) -> str:
    if value >= 1 - BELOW:
        return f"over {100 * (1 - BELOW):g} %"
    if value <= BELOW:
        return f"under {100 * BELOW:g} %"
    return f"{100 * value:.1f} %" if value > 0.99 or value < 0.01 else f"{100 * value:.0f} %"


def _cost(value: float, unit: str) -> str:
    return f"{plain(value)} {unit}".strip()


def _pairs(option: Option, slos: Sequence[Slo]) -> list[tuple[Slo, Figure | None]]:
    return list(zip(slos, option.seen.figures or (None,) * len(slos), strict=True))


def _figures(option: Option, slos: Sequence[Slo]) -> str:
    return "; ".join(
        _figure(slo, figure) for slo, figure in _pairs(option, slos) if slo in option.failing(slos)
    )


def _figure(slo: Slo, figure: Figure | None) -> str:
    limit = plain(slo.limit * slo.factor)
    return f"{interval(figure, slo.factor)} {slo.unit} instead of {limit}"
