"""Options of commands that read their measurements from a Prometheus server first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import option

if TYPE_CHECKING:
    from analyzer.prometheus.api import Answer, Range
    from analyzer.prometheus.tables import Table

__all__ = ["RangeQueries", "prometheus_options", "write_measurements"]

STEP = 60.0


def prometheus_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add --prometheus, --query, --start, --end, --step and --header to a command.

    The command gets what they say as ``server``: None without --prometheus.
    """

    @wraps(command)
    def with_server(
        *,
        prometheus: str | None,
        query: tuple[str, ...],
        start: str,
        end: str,
        step: float | None,
        header: tuple[str, ...],
        **others: Any,
    ) -> int:
        found = _checked(prometheus, RangeQueries(prometheus or "", query, start, end, step, header))
        return command(server=found, **others)

    decorated: Callable[..., int] = with_server
    for name, more in (
        ("--header", {}),
        ("--step", {"show_default": f"as --period, or {STEP:g}"}),
        ("--end", {"default": NONE.end}),
        ("--start", {"default": NONE.start}),
        ("--query", {}),
        ("--prometheus", {}),
    ):
        decorated = option(name, **more)(decorated)
    return decorated


def _checked(url: str | None, given: RangeQueries) -> RangeQueries | None:
    """Return what is asked of a server, if there is one.

    Raises:
        UsageError: That is nothing, or there is no server.
    """
    from mup.errors import UsageError
    from mup.project import is_http_url

    if url is None:
        if given != NONE:
            raise UsageError("--query, --start, --end, --step and --header go with --prometheus URL")
        return None
    if not is_http_url(url):
        raise UsageError(f"--prometheus: must be a URL such as http://127.0.0.1:9090, got {url!r}")
    if not given.query:
        raise UsageError(
            "--prometheus: nothing is asked for", hint="add --query throughput=EXPRESSION and so on"
        )
    return given


@dataclass(frozen=True, slots=True)
class RangeQueries:
    """Queries to a Prometheus server over one range of time, as the options give them."""

    url: str
    query: tuple[str, ...]
    start: str
    end: str
    step: float | None
    header: tuple[str, ...]

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
        from mup.cli.options import header_lines, named_texts
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
        headers = header_lines(self.header)
        return {
            name: query_range(self.url, text, span, headers=headers) for name, text in wanted.items()
        }, span


NONE = RangeQueries("", (), "1h", "now", None, ())
"""What the options say where nothing is given."""


def write_measurements(path: str | Path, table: Table) -> None:
    """Write what was read from a server where a command reads it from, and say so."""
    from mup.whole_file import write_whole

    write_whole(path, table.text, what="the measurements")
    click.echo(f"wrote {path}: {table.rows} rows", err=True)
    for note in table.notes:
        click.echo(f"note: {note}", err=True)
