"""``mup learn visits``: service rates, and routing or calls, from events instead of averages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from rich.console import Console

    from analyzer.learning.visit_learning import LearnedVisits


@click.command(
    epilog=examples(
        "mup learn visits visits.csv --servers C1=4 -o model.json",
        "mup learn visits front.log cart.log --log-format '$msec $request_time \"$request\" $request_id'",
    )
)
@click.argument("visits", type=click.Path(path_type=Path), nargs=-1, required=True)
@option(
    "--servers",
    multiple=True,
    metavar="STATION=N",
    help="Clients a station serves at once, 'inf' for a pure delay; repeatable.",
    show_default="found in the visits",
)
@option(
    "--rest",
    default="rest",
    help="Name of the place where clients are between two visits.",
)
@option(
    "--clients",
    type=click.IntRange(1),
    show_default="as many as there are",
)
@option("--reference", show_default="the rest, or a pure delay")
@option("--log-format")
@option("--field")
@option("--output", metavar="MODEL.json")
@option("--json")
def command(
    visits: tuple[Path, ...],
    servers: tuple[str, ...],
    rest: str,
    clients: int | None,
    reference: str | None,
    log_format: str,
    field: tuple[str, ...],
    output: str | None,
    *,
    as_json: bool,
) -> None:
    """Learn service rates, and routing or calls, from VISITS: a table (.csv), or access logs.

    A table has the columns station, start, duration (or end); client or trace, if there are ids; and run, if
    there are several. Visits of clients that follow each other give a closed queueing network, visits that
    lie within each other give who calls whom. In access logs the station is the name of the file, or what the
    format says.
    """
    import json

    from analyzer.access_logs.formats import wanted
    from analyzer.access_logs.reading import Source
    from analyzer.learning.visit_learning import learn_visits
    from analyzer.learning.visit_tables import read_visits
    from mup.cli.options import check_result, named_texts, shown
    from mup.errors import UsageError
    from mup.lqn.files import write_model

    check_result(output, starts=("{", "<"), as_json=as_json)
    counts = _servers(named_texts(servers, "--servers", "C1=4"))
    table = read_visits(visits, Source(log_format, wanted(field)))
    where = str(visits[0])
    try:
        learned = learn_visits(
            table,
            servers=counts,
            rest=rest,
            clients=clients,
            reference=reference,
            name=f"learned from {where}",
        )
    except UsageError as error:
        raise UsageError(error.message, where=error.where or where, hint=error.hint) from error
    if output is not None:
        if learned.model is None:
            raise UsageError(
                "visits say how long service takes, but not where clients go: there is no model to write",
                where=where,
                hint="give a column client or trace, and more visits if there is one",
            )
        write_model(learned.model, output)
    if as_json:
        click.echo(json.dumps({"model": output} | learned.to_json(), indent=1))
        return
    from mup.cli.output.display import console

    _show(console(), learned)
    if output is not None:
        click.echo(f"wrote {shown(output)}")


def _servers(texts: dict[str, str]) -> dict[str, float]:
    from mup.errors import UsageError

    found = {}
    for name, text in texts.items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = 0.0
        if not (
            found[name] >= 1 and (found[name] == int(found[name]) if found[name] < float("inf") else True)
        ):
            raise UsageError(f"--servers: must be a whole number >= 1, or inf, got {text!r} for {name!r}")
    return found


def _show(out: Console, learned: LearnedVisits) -> None:
    import math

    from mup.cli.output.display import say
    from mup.cli.output.figures import number, plain
    from mup.cli.output.tables import print_table

    rows = []
    for s in learned.stations:
        half = (s.high - s.low) / 2
        rows.append(
            (
                s.name,
                f"{s.servers:g}{' (counted)' if s.counted else ''}",
                number(s.rate, half) if math.isfinite(half) else plain(s.rate),
                f"{number(s.low, half)} .. {number(s.high, half)}" if math.isfinite(half) else "-",
                plain(1e3 / s.rate) if s.rate > 0 else "-",
                f"{s.scv:.2f}" if math.isfinite(s.scv) else "-",
                f"{s.utilization:.0%}" if math.isfinite(s.utilization) else "-",
                str(s.completions),
            )
        )
    headings = ["station", "servers", "services/s", "95 %", "mean ms", "scv", "busy", "visits"]
    print_table(out, "Service of one server", headings, rows, texts=2, spare=("busy", "scv"))
    out.print()
    if learned.routing is not None:
        odds, half_widths = learned.routing.probabilities, learned.routing.half_widths
        lines = [
            (
                name,
                ", ".join(
                    f"{other} {odds[i, j]:.3f} +- {half_widths[i, j]:.3f}"
                    for j, other in enumerate(learned.routing.names)
                    if odds[i, j] > 0
                ),
            )
            for i, name in enumerate(learned.routing.names)
        ]
        print_table(out, f"Routing of {learned.routing.clients:g} clients", ["from", "to"], lines, texts=2)
    elif learned.calls:
        made = [(c.caller or "(outside)", c.callee, f"{c.mean:.4g}") for c in learned.calls]
        print_table(out, "Calls", ["caller", "callee", "mean number per visit"], made, texts=2)
        own = ", ".join(f"{name} {plain(1e3 * value)}" for name, value in learned.own.items())
        say(out, f"own time of a visit, without what it calls, ms: {own}")
    for warning in learned.warnings:
        say(out, f"warning: {warning}")
