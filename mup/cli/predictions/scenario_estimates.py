"""Estimates of a grid printed by ``mup whatif``, before it simulates or instead of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mup.cli.output.display import say
from mup.cli.output.figures import plain
from mup.cli.output.tables import print_table
from mup.cli.predictions.scenario_tables import MAX_COLUMNS, relative_text
from mup.errors import MupError, UnfinishedError

if TYPE_CHECKING:
    from rich.console import Console

    from mup.cli.predictions.scenario_files import Point
    from mup.lqn.model import Model
    from mup.lqn.refs import ResourceRef
    from simulator.studies.whatif import Scenario

__all__ = [
    "ESTIMATES",
    "FEW",
    "METHODS",
    "Estimated",
    "estimated_points",
    "estimates_of",
    "estimator",
    "print_estimates",
    "print_first_look",
    "write_estimates",
]

ESTIMATES = ("analytic", "fluid")
"""Engines that do not simulate."""
METHODS = {"analytic": "layered mean values", "fluid": "fluid approximation"}
FEW = 20
"""Scenarios of a grid whose estimates are printed while it is simulated, and whose results one by one."""

LARGE = 2000
"""Activities of a model that is not estimated before it is simulated: that could take minutes."""
LOOK_SECONDS = 3.0
"""Time for estimates before the simulation."""

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Estimated:
    """The estimates of a grid.

    Attributes:
        scenarios: Those that have one, the baseline first.
        documents: Of each, as ``mup simulate --json`` prints it.
        failed: What to raise in the end about the others; None if there are none.
    """

    scenarios: list[Scenario]
    documents: list[Document]
    failed: UnfinishedError | None


def estimator(model: Model, engine: str) -> Callable[[Model], Document]:
    """Return what estimates a model and those that differ from it in numbers.

    Args:
        model: The baseline.
        engine: One of ``ESTIMATES``.

    Raises:
        MupError: The model has no estimate.
    """
    if engine == "analytic":
        from simulator.analytic import Estimator

        candidates = Estimator(model, compiling=False)
        return lambda model: candidates.of(model).to_json()
    from simulator.fluid import fluid

    return lambda model: fluid(model).to_json()


def estimates_of(
    scenarios: Sequence[Scenario], engine: str, done: Callable[[int], bool] = lambda _: True
) -> Estimated:
    """Estimate the scenarios of a grid; those that have no estimate do not end it.

    Args:
        scenarios: The baseline first.
        engine: One of ``ESTIMATES``.
        done: Called with the number of scenarios so far; tells whether to go on.

    Raises:
        MupError: Of the baseline, or where none of its changes has an estimate; the
            message names the scenario.
    """
    solve = estimator(scenarios[0].model, engine)
    found: list[tuple[Scenario, Document]] = []
    errors: list[MupError] = []
    for number, scenario in enumerate(scenarios, start=1):
        try:
            found.append((scenario, solve(scenario.model)))
        except MupError as error:
            if number == 1:
                raise
            error.message = f"{error.message} (scenario: {scenario})"
            errors.append(error)
        if not done(number):
            break
    if errors and len(found) == 1:
        raise errors[0]
    return Estimated(
        [scenario for scenario, _ in found],
        [document for _, document in found],
        _unfinished(errors, len(scenarios)),
    )


def _unfinished(errors: Sequence[MupError], count: int) -> UnfinishedError | None:
    if not errors:
        return None
    first = errors[0]
    more = f"; {len(errors)} of {count} scenarios have no estimate" if len(errors) > 1 else ""
    return UnfinishedError(f"{first.message}{more}", where=first.where, hint=first.hint)


def print_first_look(out: Console, scenarios: Sequence[Scenario]) -> None:
    """Print estimates of a grid that is going to be simulated; a word on why where there are none.

    Simulations do not wait for estimates that take long: of a model that is too large there are none, and
    after some time those that are there are printed.
    """
    import time

    if sum(1 for _ in scenarios[0].model.walk()) > LARGE:
        return
    until = time.monotonic() + LOOK_SECONDS
    try:
        found = estimates_of(scenarios, "analytic", lambda _: time.monotonic() < until)
    except MupError as error:
        say(out, f"no estimate before the simulation: {error.message}")
        return
    out.print()
    _print_table(out, found.scenarios, found.documents, title="At once: an estimate; the simulations follow")
    if found.failed is not None:
        say(out, f"left out: {found.failed.message}")
    out.print()


def print_estimates(
    out: Console, scenarios: Sequence[Scenario], found: Sequence[Document], engine: str
) -> None:
    """Print the estimates of a grid, and their warnings.

    Args:
        out: Where.
        scenarios: The baseline first.
        found: Their estimates.
        engine: One of ``ESTIMATES``.
    """
    _print_table(out, scenarios, found, title="")
    milliseconds = 1e3 * sum(document["wall_seconds"] for document in found)
    say(
        out,
        f"ESTIMATES ({METHODS[engine]}) without intervals, in {milliseconds:.0f} ms; response times exclude"
        " think time; % is utilization; --engine compiled simulates.",
    )
    warned: dict[str, list[str]] = {}
    for scenario, document in zip(scenarios, found, strict=True):
        for warning in document["warnings"]:
            warned.setdefault(warning, []).append(str(scenario))
    for warning, names in warned.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        say(out, f"warning: {names[0]}{more}: {warning}")


def write_estimates(path: str, scenarios: Sequence[Scenario], found: Sequence[Document]) -> None:
    """Write one line per scenario; times in seconds, throughput per second, utilization as a fraction.

    Raises:
        UsageError: The file cannot be written.
    """
    import csv
    import io

    from mup.cli.predictions.scenario_files import key_of
    from mup.whole_file import write_whole

    keys = list(dict.fromkeys(key_of(c) for s in scenarios for c in s.changes))
    shares = [_shares(document) for document in found]
    servers = list(dict.fromkeys(ref for share in shares for ref in share))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*keys, "throughput", "response_time", *(f"utilization {ref.label}" for ref in servers)])
    for scenario, document, share in zip(scenarios, found, shares, strict=True):
        values = {key_of(change): change.value for change in scenario.changes}
        cycle = [_mean(document, name) for name in ("throughput", "response_time")]
        writer.writerow([*(values.get(k, "") for k in keys), *cycle, *(share.get(r, "") for r in servers)])
    write_whole(path, text.getvalue(), what="the table")


def estimated_points(scenarios: Sequence[Scenario], found: Sequence[Document]) -> list[Point]:
    """Return what is drawn of estimates: values without bands."""
    from mup.cli.predictions.scenario_files import DRAWN, Point

    return [
        Point(scenario.changes, {name: (_mean(document, name) or 0.0, None, None) for name in DRAWN})
        for scenario, document in zip(scenarios, found, strict=True)
    ]


def _print_table(
    out: Console, scenarios: Sequence[Scenario], found: Sequence[Document], *, title: str
) -> None:
    from simulator.studies.whatif import fullest

    shares = [_shares(document) for document in found]
    peaks = {ref: max(s[ref] for s in shares if ref in s) for share in shares for ref in share}
    columns = sorted(sorted(peaks, key=lambda ref: -peaks[ref])[:MAX_COLUMNS], key=list(peaks).index)
    rows = []
    for scenario, document, share in zip(scenarios, found, shares, strict=True):
        most = fullest(scenario.model, share)
        rows.append(
            [
                str(scenario),
                "-" if most is None else f"{most.label} {100 * share[most]:.0f} %",
                *_with_change(document, found[0], "response_time", 1e3),
                *_with_change(document, found[0], "throughput", 1.0),
                *(f"{100 * share[ref]:.1f}" if ref in share else "-" for ref in columns),
            ]
        )
    used = {f"{ref.label} %": peaks[ref] for ref in columns}
    headings = ["scenario", "bottleneck", "response ms", "change", "throughput 1/s", "in all", *used]
    print_table(
        out,
        title,
        headings,
        rows,
        texts=2,
        spare=sorted(used, key=lambda heading: used[heading]),
        more="--json and --csv",
    )


def _with_change(document: Document, baseline: Document, name: str, factor: float) -> tuple[str, str]:
    """Return a figure, and by which part it differs from the baseline's."""
    mean, before = _mean(document, name), _mean(baseline, name)
    if mean is None:
        return "-", ""
    if document is baseline or not before:
        return plain(mean * factor), ""
    return plain(mean * factor), relative_text(mean / before - 1) if mean != before else "none"


def _mean(document: Document, name: str) -> float | None:
    figure = document["cycle"][name]
    return None if figure is None else figure["mean"]


def _shares(document: Document) -> dict[ResourceRef, float]:
    """Return the utilization of everything that can be full."""
    from mup.lqn.refs import ResourceRef

    found = {ResourceRef("task", name): task["utilization"] for name, task in document["tasks"].items()}
    found |= {ResourceRef("processor", name): p["utilization"] for name, p in document["processors"].items()}
    return {ref: figure["mean"] for ref, figure in found.items() if figure is not None}
