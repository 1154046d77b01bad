"""Write the HTML report of a comparison: one file, nothing to fetch, readable in any browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mup.cli.chart import Curve, draw_chart
from mup.errors import UsageError

__all__ = ["Report", "comparison_chart", "write_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything the report shows, as texts and ready-made drawings."""

    title: str
    subtitle: str
    summary: str
    chart: str
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


def comparison_chart(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Draw the response time over the clients of the scenarios of ``validate --json``."""
    clients = [float(s["change"]["clients"]) for s in scenarios]

    def curve(side: str) -> Curve:
        figures = [s[side]["response_time"] for s in scenarios]
        means = [f["mean"] * 1e3 for f in figures]
        halves = [None if f.get("ci95") is None else f["ci95"] * 1e3 for f in figures]
        ends = [
            [None if h is None else m + sign * h for m, h in zip(means, halves, strict=True)]
            for sign in (-1, 1)
        ]
        return Curve(clients, means, *ends)

    return draw_chart(
        "Mean response time of a cycle",
        "clients",
        "milliseconds, think time excluded",
        curve("predicted"),
        curve("measured"),
    )


def write_report(report: Report, path: Path) -> None:
    """Render the report into a file.

    Raises:
        UsageError: The file cannot be written.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mup.cli"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    fields = {name: getattr(report, name) for name in Report.__slots__}
    text = environment.get_template("report.html.j2").render(fields)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write the report: {error.strerror}", where=str(path)) from error
