"""Options of commands that read their measurements from a Prometheus server first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mup.cli.vocabulary import option

if TYPE_CHECKING:
    from analyzer.prometheus.api import Answer, Range
    from analyzer.prometheus.tables import Table

__all__ = ["Asked", "prometheus_options", "write_measurements"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
STEP = 60.0


def prometheus_options(command: Decorated) -> Decorated:
    """Add --prometheus, --query, --start, --end, --step and --header to a command."""
    for name, more in (
        ("--header", {}),
        ("--step", {"show_default": "as --period, or 60"}),
        ("--end", {"default": "now"}),
        ("--start", {"default": "1h"}),
        ("--query", {}),
        ("--prometheus", {}),
    ):
        command = option(name, **more)(command)
    return command


class Asked:
    """What was asked of a Prometheus server."""

    def __init__(
        self,
        url: str | None,
        query: tuple[str, ...],
        start: str,
        end: str,
        step: float | None,
        header: tuple[str, ...],
    ) -> None:
        from mup.errors import UsageError
        from mup.project import is_http_url

        self.url, self.query, self.start, self.end, self.step, self.header = (
            url, query, start, end, step, header,
        )  # fmt: skip
        if url is None:
            if query or header or step is not None or (start, end) != ("1h", "now"):
                raise UsageError("--query, --start, --end, --step and --header go with --prometheus URL")
        elif not is_http_url(url):
            raise UsageError(
                f"--prometheus: must be a URL such as http://127.0.0.1:9090, got {url!r}",
            )
        elif not query:
            raise UsageError(
                "--prometheus: nothing is asked for", hint="add --query throughput=EXPRESSION and so on"
            )

    def answers(
        self, check: Callable[[str], object], period: float | None
    ) -> tuple[dict[str, Answer], Range]:
        """Return what the server says, by the names of the queries.

        Args:
            check: Refuses names that mean nothing, before anything is asked.
            period: The step, unless it is given.
        """
        import time

        from analyzer.prometheus.api import Range, query_range
        from analyzer.prometheus.moments import moment
        from mup.cli.identify import headers_of
        from mup.cli.options import named_texts
        from mup.errors import UsageError

        wanted = named_texts(self.query, "--query", "'throughput=sum(rate(http_requests_total[1m]))'")
        if len(wanted) < len(self.query):
            raise UsageError("--query: one name is asked for twice")
        for name in wanted:
            check(name)
        now = time.time()
        step = self.step or period or STEP
        # Whole steps, as dashboards ask: two reads of the same time see the same moments.
        begin, end = (
            step * (moment(text, now, name) // step)
            for text, name in ((self.start, "--start"), (self.end, "--end"))
        )
        span = Range(begin, end, step)
        headers = headers_of(self.header)
        url = str(self.url)
        return {name: query_range(url, text, span, headers=headers) for name, text in wanted.items()}, span


def write_measurements(path: str | Path, table: Table) -> None:
    """Write what was read from a server where a command reads it from, and say so."""
    from mup.whole_file import write_whole

    write_whole(path, table.text, what="the measurements")
    click.echo(f"wrote {path}: {table.rows} rows", err=True)
    for note in table.notes:
        click.echo(f"note: {note}", err=True)
