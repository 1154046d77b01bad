"""Table of a grid printed by ``mup whatif``: one row per scenario, the baseline first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from mup.cli.output.display import say
from mup.cli.output.figures import interval
from mup.cli.output.tables import print_table
from mup.cli.predictions.scenario_predictions import print_predictions, scenario_names

if TYPE_CHECKING:
    from rich.console import Console

    from mup.lqn.model import Model
    from simulator.figures.result import Figure, Result
    from simulator.studies.grids import Outcome
    from simulator.studies.saturation import Saturation
    from simulator.studies.whatif import Scenario

__all__ = ["print_scenarios", "relative_text", "same_limit", "say_result"]

MAX_COLUMNS = 6
NOISE = 0.03
"""Relative difference up to which two limits are the same: they come from short simulations."""
SMALL = 5e-4
"""Relative changes below this are not written as a percentage: it would be 0.0."""
LARGE = 10.0
"""Relative changes from this on are written as a factor."""


def say_result(out: Console, scenario: Scenario, result: Result) -> None:
    """Say in a line that a scenario has been simulated, and what came out."""
    cycle = result.cycle
    say(
        out,
        f"simulated: {scenario}: response {interval(cycle.response_time, 1e3)} ms, "
        f"throughput {interval(cycle.throughput)} 1/s",
    )


def print_scenarios(out: Console, outcomes: Sequence[Outcome]) -> None:
    """Print a grid.

    Args:
        out: Where.
        outcomes: At least the baseline.
    """
    from simulator.studies.whatif import bottleneck, utilizations

    shares = [utilizations(o.result) for o in outcomes]
    # The fullest servers somewhere in the grid are the interesting ones.
    peaks = {ref: max(s[ref].mean for s in shares if ref in s) for share in shares for ref in share}
    columns = sorted(sorted(peaks, key=lambda ref: -peaks[ref])[:MAX_COLUMNS], key=list(peaks).index)
    rows = []
    for outcome, share in zip(outcomes, shares, strict=True):
        cycle, most = outcome.result.cycle, bottleneck(outcome.scenario.model, outcome.result)
        rows.append(
            [
                str(outcome.scenario),
                "-" if most is None else f"{most[0]} {100 * most[1].mean:.0f} %",
                interval(cycle.response_time, 1e3),
                interval(cycle.response_time.p95, 1e3),
                interval(cycle.throughput),
                *(f"{100 * share[ref].mean:.1f}" if ref in share else "-" for ref in columns),
            ]
        )
    used = {f"{ref.label} %": peaks[ref] for ref in columns}
    headings = ["scenario", "bottleneck", "response ms", "p95 ms", "throughput 1/s", *used]
    # The bottleneck says which server matters most: the others go first, the least used before all.
    spare = sorted(used, key=lambda heading: used[heading])
    print_table(out, "", headings, rows, texts=2, spare=spare, more="--json and --csv")
    _print_limits(out, outcomes)
    say(
        out,
        "Response times exclude think time; +- is the half-width of the simulation's 95 % interval; % is"
        " utilization.",
    )
    if text := _falling(outcomes):
        say(out, text)
    if any(o.difference for o in outcomes):
        _print_changes(out, outcomes)
    print_predictions(out, outcomes)
    for outcome in outcomes:
        for warning in outcome.result.warnings:
            say(out, f"warning: {outcome.scenario}: {warning}")


def _print_changes(out: Console, outcomes: Sequence[Outcome]) -> None:
    """Print what differs from the baseline."""
    compared = [o for o in outcomes if o.difference is not None]
    rows = [
        [str(o.scenario), *_change(o, "response_time", 1e3), *_change(o, "throughput", 1.0)] for o in compared
    ]
    pairs = max(o.difference.replications for o in compared if o.difference)
    out.print()
    print_table(
        out,
        "Change against the model as it is",
        ["scenario", "response ms", "that is", "throughput 1/s", "in all"],
        rows,
    )
    text = "A change is what the results of both say"
    if pairs:
        text += f", and where that is little, {pairs} paired runs with common random numbers, too"
    say(out, f"{text}; +- is the half-width of its 95 % interval.")


def _change(outcome: Outcome, name: str, factor: float) -> tuple[str, str]:
    """Return the difference to the baseline, and what part of it that is."""
    if outcome.difference is None:
        return "", ""
    figure: Figure = outcome.difference.figures["cycle", name]
    part = outcome.difference.relative("cycle", name)
    if figure.mean == 0 and not figure.ci95:
        return "none", ""
    if abs(figure.mean) <= figure.ci95:
        return f"none seen, +- {figure.ci95 * factor:.2g}", ""
    return interval(figure, factor, signed=True), "" if part is None else relative_text(part.mean)


def relative_text(part: float) -> str:
    """Return a relative change in words that are as short as its size allows."""
    if part >= LARGE:
        return f"{part + 1:.3g} times"
    if abs(part) < SMALL:
        return "under 0.1 %"
    return f"{100 * part:+.1f} %"


def _print_limits(out: Console, outcomes: Sequence[Outcome]) -> None:
    """Print what saturates first; one line for all scenarios that agree."""
    groups: list[tuple[Saturation, list[str]]] = []
    for outcome in outcomes:
        limit = outcome.saturation
        if limit is None:
            continue
        same = next((names for first, names in groups if same_limit(first, limit)), None)
        if same is None:
            groups.append((limit, [str(outcome.scenario)]))
        else:
            same.append(str(outcome.scenario))
    for limit, names in groups:
        say(out, limit.limit + (f" ({scenario_names(names)})" if len(groups) > 1 else ""))


def same_limit(one: Saturation, other: Saturation) -> bool:
    """Tell whether two limits are the same but for the noise of the simulations that found them."""

    def near(a: float | None, b: float | None) -> bool:
        return math.isclose(a or 0.0, b or 0.0, rel_tol=NOISE)

    return (
        one.resource == other.resource
        and near(one.throughput, other.throughput)
        and one.load.keys() == other.load.keys()
        and all(near(value, other.load[name]) for name, value in one.load.items())
    )


def _falling(outcomes: Sequence[Outcome]) -> str:
    """Say why more clients are served faster, where that is so and the model knows why."""
    if not any(_costs_more_idle(o.scenario.model) for o in outcomes):
        return ""
    alike: dict[frozenset[object], list[Outcome]] = {}
    for outcome in outcomes:
        alike.setdefault(_others(outcome), []).append(outcome)
    found = []
    for group in alike.values():
        for few, many in combinations(sorted(group, key=lambda o: _clients(o.scenario.model)), 2):
            before, after = few.result.cycle.response_time, many.result.cycle.response_time
            more = _clients(few.scenario.model) < _clients(many.scenario.model)
            if more and after.mean + after.ci95 < before.mean - before.ci95:
                found.append((before.mean - after.mean, few, many))
    if not found:
        return ""
    _, few, many = max(found, key=lambda item: item[0])
    times = [f"{1e3 * o.result.cycle.response_time.mean:.4g} ms" for o in (few, many)]
    return (
        f"More clients are served faster ({few.scenario}: {times[0]}, {many.scenario}: {times[1]}): on a"
        " machine that is mostly idle a request costs more processor time, because caches are cold and cores"
        " have to wake up."
    )


def _costs_more_idle(model: Model) -> bool:
    colder = any(t.load_dependence is not None or t.setup is not None for t in model.tasks)
    return colder or any(p.idling for p in model.processors)


def _clients(model: Model) -> float:
    return sum(t.threads for t in model.tasks if t.is_reference and not t.is_open)


def _others(outcome: Outcome) -> frozenset[object]:
    return frozenset(c for c in outcome.scenario.changes if c.kind != "clients")
