"""``mup learn traces``: queue lengths over time from logs of visits."""

from __future__ import annotations

import click

from mup.cli.vocabulary import examples, option


@click.command(epilog=examples("mup learn traces visits.csv --servers W=inf --servers C1=4 -o traces.npz"))
@click.argument("runs", type=click.Path())
@option("--dt", default=0.01)
@option("--duration", "seconds", old=("--seconds",), default=10.0, help="Length in seconds of every trace.")
@option(
    "--servers",
    multiple=True,
    metavar="STATION=N",
    help="Clients a station serves at once, 'inf' for a pure delay; every station is named once."
    " 'mup learn lqn' needs none: its model knows.",
)
@option("--entries")
@option(
    "--rest",
    help="Station where clients are that no log has; it needs their number. Not where stations "
    "call each other.",
)
@option("--leave-out")
@option("--output", required=True, metavar="TRACES.npz")
@option("--json")
def command(
    runs: str,
    dt: float,
    seconds: float,
    servers: tuple[str, ...],
    entries: bool,
    rest: str | None,
    leave_out: tuple[str, ...],
    output: str,
    as_json: bool,
) -> None:
    """Make traces of queue lengths from RUNS, a table (.csv) of visits or of event logs.

    Visits, as access logs have them: columns trace, run, station, start, duration. Event logs of mup: columns
    trace, folder, and begin (seconds of their clock) where several runs are in the same logs. Runs of the
    same trace began in the same state. The column clients is for --rest.
    """
    import json

    from analyzer.learning.trace_files import write_traces
    from analyzer.learning.visits import read_runs, traces_of_runs
    from mup.cli.options import check_output, named_texts
    from mup.errors import UsageError, did_you_mean

    check_output(output, starts=("PK",))
    counts: dict[str, float] = {}
    for name, text in named_texts(servers, "--servers", "C1=4").items():
        try:
            counts[name] = float(text)
        except ValueError:
            raise UsageError(f"--servers: must be a whole number or inf, got {text!r} for {name!r}") from None
    read = read_runs(runs, by_entry=entries)
    visited = sorted({name for run in read for name in run.visits})
    for name in leave_out:
        if name not in visited:
            raise UsageError(
                f"--leave-out: no request visits {name!r}; {did_you_mean(name, visited)}", where=runs
            )
    read = [run.without(leave_out) for run in read]
    try:
        traces = traces_of_runs(read, dt=dt, seconds=seconds, servers=counts or None, rest=rest)
    except UsageError as error:
        raise UsageError(error.message, where=error.where or runs, hint=error.hint) from error
    write_traces(output, traces)
    many, samples, stations = traces.x.shape
    if as_json:
        about = {"file": output, "traces": many, "runs": len(read), "samples": samples, "stations": stations}
        click.echo(json.dumps(about, indent=1))
        return
    click.echo(f"wrote {output}: {many} traces of {len(read)} runs, {samples} samples, {stations} stations")
