"""Run a comparison with progress, print its table, and write its report: for ``validate`` and ``demo``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mup.cli.display import console, milliseconds, percent
from mup.cli.report import Report, comparison_chart, write_report

if TYPE_CHECKING:
    from rich.console import Console

    from analyzer.validation import Comparison, MeasureSettings
    from mup.lqn import Model
    from mup.project import Project
    from simulator.result import Result
    from simulator.whatif import Scenario

__all__ = [
    "comparison_document",
    "comparison_warnings",
    "print_comparison",
    "report_comparison",
    "run_comparison",
]

ONE_TABLE = 104
"""Columns of a terminal from which on the whole comparison fits."""

TABLE_NOTE = (
    "Response times in milliseconds per client cycle, think time excluded, +- 95 % half-width"
    " (measured: batch means; predicted: simulation only). Error = (predicted - measured) / measured."
    " busy = workers in use / pool, predicted|measured."
)


def run_comparison(
    project: Project,
    scenarios: Sequence[Scenario],
    settings: MeasureSettings,
    *,
    precision: float,
    seed: int,
) -> list[Comparison]:
    """Predict all scenarios, then measure each, showing progress on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from analyzer.validation import compare, measure, predict

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        bar = bars.add_task("predicting", total=len(scenarios))
        results: list[Result] = predict(
            scenarios,
            precision=precision,
            seed=seed,
            progress=lambda done, _total: bars.update(bar, completed=done),
        )
        bars.update(bar, completed=len(scenarios))
        bar = bars.add_task("measuring", total=len(scenarios))
        comparisons = []
        for scenario, result in zip(scenarios, results, strict=True):
            bars.update(bar, description=f"measuring {scenario}")
            comparisons.append(compare(scenario, result, measure(project, scenario, settings)))
            bars.advance(bar)
    return comparisons


def comparison_document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return the document of ``validate --json`` and ``demo --json``."""
    from analyzer.validation import max_abs_error

    return {"scenarios": [c.to_json() for c in comparisons], "max_abs_error": max_abs_error(comparisons)}


def _columns(comparisons: Sequence[Comparison]) -> list[str]:
    services = list(comparisons[0].predicted.utilization)
    return [
        "scenario",
        "ms predicted",
        "ms measured",
        "error",
        "1/s pred.",
        "1/s meas.",
        "error",
        *(f"busy {name}" for name in services),
    ]


def _row(comparison: Comparison) -> list[str]:
    predicted, measured = comparison.predicted, comparison.measured
    cells = [
        str(comparison.scenario),
        milliseconds(predicted.response_time.to_json()),
        milliseconds(measured.response_time.to_json()),
        percent(comparison.response_time_error),
        f"{predicted.throughput.mean:.1f}",
        f"{measured.throughput.mean:.1f}",
        percent(comparison.throughput_error),
    ]
    for name in predicted.utilization:
        sides = (predicted.utilization[name], measured.utilization[name])
        cells.append("|".join("-" if f is None else f"{f.mean:.2f}" for f in sides))
    return cells


def print_comparison(out: Console, comparisons: Sequence[Comparison]) -> None:
    """Print the error table, in two parts where the terminal is too narrow for one."""
    from rich import box
    from rich.table import Table

    columns, rows = _columns(comparisons), [_row(c) for c in comparisons]
    everything = range(1, len(columns))
    parts = [everything] if out.width >= ONE_TABLE else [everything[:3], everything[3:]]
    for part in parts:
        table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
        table.add_column(columns[0], overflow="fold")
        for index in part:
            table.add_column(columns[index], justify="right", overflow="fold")
        for row in rows:
            table.add_row(row[0], *(row[i] for i in part))
        out.print(table)
    out.print(TABLE_NOTE, markup=False)


FOREIGN_LIMIT = 0.02


def comparison_warnings(comparisons: Sequence[Comparison]) -> list[str]:
    """Return what disturbed the measurements, one sentence each."""
    found = []
    disturbed = {str(c.scenario): c.foreign_cpu for c in comparisons if c.foreign_cpu > FOREIGN_LIMIT}
    if disturbed:
        found.append(
            f"other programs used up to {max(disturbed.values()):.0%} of the machine while it was measured"
            f" ({', '.join(disturbed)}): errors there say little about the model"
        )
    failed = sum(c.failed_cycles for c in comparisons)
    if failed:
        found.append(f"{failed} client cycles failed and are in no figure")
    return found


def report_comparison(
    path: Path,
    *,
    title: str,
    subtitle: str,
    model: Model,
    comparisons: Sequence[Comparison],
    whatif: Sequence[tuple[Scenario, Result]] = (),
) -> None:
    """Write the HTML report of a comparison, with the model's picture and where its numbers come from."""
    from analyzer.validation import max_abs_error
    from mup.lqn.drawing import draw

    worst = max_abs_error(comparisons)
    provenance = model.provenance
    coverage = provenance.get("coverage", {})
    paths = sum(c["paths"] for c in coverage.values())
    observed = sum(c["observed"] for c in coverage.values())
    processor = {p.name: f"{p.cores:g} cores, {p.discipline}" for p in model.processors}
    write_report(
        Report(
            title=title,
            subtitle=subtitle,
            summary=(
                f"Calibrated from one user, checked at {len(comparisons)} loads: the predicted mean response"
                f" time is off by at most {worst['response_time']:.1%}, the throughput by at most"
                f" {worst['throughput']:.1%}."
            ),
            chart=comparison_chart([c.to_json() for c in comparisons]),
            columns=_columns(comparisons),
            rows=[_row(c) for c in comparisons],
            table_note=TABLE_NOTE,
            coverage=f"The exploratory run covered {observed} of {paths} execution paths in the source.",
            uncovered=provenance.get("uncovered", ()),
            warnings=[*provenance.get("warnings", ()), *comparison_warnings(comparisons)],
            model_svg=draw(model),
            whatif_text=(
                "Nothing below was run: these are predictions of other deployments from the same model."
                if whatif
                else ""
            ),
            whatif_columns=("change", "response time ms", "throughput 1/s", "bottleneck"),
            whatif_rows=[_whatif_row(scenario, result) for scenario, result in whatif],
            facts=[
                ("machine", str(provenance.get("machine", "?"))),
                ("processors", "; ".join(f"{name}: {text}" for name, text in processor.items())),
                (
                    "calibrated from",
                    f"{provenance.get('run')}, {provenance.get('observed_seconds')} s observed",
                ),
                ("exploration stopped because", str(provenance.get("stop", "?"))),
                ("mup", str(provenance.get("mup", "?"))),
                ("Python", str(provenance.get("python", "?"))),
            ],
        ),
        path,
    )


def _whatif_row(scenario: Scenario, result: Result) -> list[str]:
    from simulator.whatif import bottleneck

    cycle, limit = result.cycle, bottleneck(scenario.model, result)
    return [
        str(scenario),
        milliseconds(cycle.response_time.to_json()),
        f"{cycle.throughput.mean:.1f}",
        "-" if limit is None else f"{limit[0]} {limit[1].mean:.0%}",
    ]
