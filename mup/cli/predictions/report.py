"""Write the HTML report of a comparison: one file, nothing to fetch, readable in any browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mup.cli.output.chart import Curve, draw_chart
from mup.whole_file import write_whole

__all__ = ["Report", "comparison_charts", "write_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything the report shows, as texts and ready-made drawings."""

    title: str
    subtitle: str
    summary: str
    charts: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    table_note: str
    coverage: str
    uncovered: Sequence[str] = ()
    warnings: Sequence[str] = ()
    model_svg: str = ""
    whatif_text: str = ""
    whatif_columns: Sequence[str] = ()
    whatif_rows: Sequence[Sequence[str]] = ()
    facts: Sequence[tuple[str, str]] = field(default_factory=tuple)


def comparison_charts(scenarios: Sequence[Mapping[str, Any]]) -> list[str]:
    """Draw response time, p95 and throughput over the clients of the scenarios of ``validate --json``.

    The line is what was predicted, with its 95 % prediction interval as a band; where predictions were
    corrected for the machine's speed a dashed line shows them.
    """
    clients = [float(s["change"]["clients"]) for s in scenarios]

    def curve(name: str, factor: float, sides: Sequence[Mapping[str, Any]]) -> Curve:
        figures = [side[name] for side in sides]
        ends = [_ends(figure, factor) for figure in figures]
        means = [figure["mean"] * factor for figure in figures]
        return Curve(clients, means, [low for low, _ in ends], [high for _, high in ends])

    texts = (
        ("response_time", "Mean response time of a cycle", "milliseconds, think time excluded", 1e3),
        ("p95", "95th percentile of the response time", "milliseconds, think time excluded", 1e3),
        ("throughput", "Throughput", "cycles per second", 1.0),
    )
    charts = []
    for name, title, label, factor in texts:
        known = all(s["corrected"] for s in scenarios)
        corrected = [s["corrected"]["predicted"] for s in scenarios] if known else []
        charts.append(
            draw_chart(
                title,
                "clients",
                label,
                curve(name, factor, [s["prediction"] or s["predicted"] for s in scenarios]),
                curve(name, factor, [s["measured"] for s in scenarios]),
                [side[name]["mean"] * factor for side in corrected],
            )
        )
    return charts


def _ends(figure: Mapping[str, Any], factor: float) -> tuple[float | None, float | None]:
    """Return the ends of an interval, or of a mean with its half-width."""
    if "low" in figure:
        return figure["low"] * factor, figure["high"] * factor
    half = figure.get("ci95")
    if half is None:
        return None, None
    return (figure["mean"] - half) * factor, (figure["mean"] + half) * factor


def write_report(report: Report, path: Path) -> None:
    """Render the report into a file.

    Raises:
        UsageError: The file cannot be written.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mup.cli.predictions"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    fields = {name: getattr(report, name) for name in Report.__slots__}
    text = environment.get_template("report.html.j2").render(fields)
    write_whole(path, text, what="the report")
