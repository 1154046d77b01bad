"""``mup learn qn``: a closed queueing network that moves clients as traces show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from analyzer.learning.network_learning import LearnedNetwork


@click.command(epilog=examples("mup learn qn traces.npz -o model.json"))
@click.argument("traces", type=click.Path())
@option(
    "--servers",
    help="Clients each station serves at once, in the order of the file; 'inf' is a pure delay.",
    show_default="as the file says",
)
@option("--without")
@option(
    "--busy-time",
    "correction",
    old=("--correction",),
    type=click.Choice(["auto", "busy", "simulation", "none"]),
    default="auto",
)
@option(
    "--method",
    type=click.Choice(["second-order", "worst-moment", "adam"]),
    default="second-order",
    metavar="second-order|worst-moment|adam",
    help="Method the fluid is fitted with: least squares over time, or fewest clients misplaced at the worst "
    "moment; 'adam' trains as the papers do.",
)
@option("--starts", type=click.IntRange(1, 100), default=1)
@option("--seed", type=click.IntRange(0))
@option("--reference", show_default="the first pure delay, or the first station")
@option(
    "--clients",
    type=click.IntRange(1),
    show_default="the most a trace has",
)
@option("--output", metavar="MODEL.json")
@option("--plot", help="Also draw the held-back trace predicted worst into this file.")
@option("--json")
def command(
    traces: str,
    servers: str | None,
    without: tuple[str, ...],
    correction: str,
    method: str,
    starts: int,
    seed: int,
    reference: str | None,
    clients: int | None,
    output: str | None,
    plot: str | None,
    as_json: bool,
) -> int:
    """Learn service rates and routing from TRACES (.npz or .csv) of mean queue lengths.

    Half of the traces are held back to judge the result. Services are exponential if that explains the
    traces, else their variation is learned with their rates; the exit code is 1 if the network does not
    explain the traces. The model answers 'mup simulate' and 'mup whatif': --clients, --pool STATION=N
    (servers), --speed STATION=F (service), --probability or --calls (routing).
    """
    import json
    from typing import Any, cast

    from analyzer.learning.network_learning import learn_network
    from analyzer.learning.trace_files import read_traces
    from mup.cli.first_run import announce_compilation
    from mup.cli.options import check_picture, check_result, shown
    from mup.cli.output.trace_chart import draw_worst_trace
    from mup.errors import UsageError
    from mup.lqn.files import write_model
    from simulator.networks.model import default_reference, network_model

    check_result(output, starts=("{", "<"), as_json=as_json)
    check_picture(plot)
    read = read_traces(traces, servers=None if servers is None else _servers(servers))
    pairs = [_ends(text, read.names) for text in without]
    announce_compilation()
    try:
        learned = learn_network(
            read,
            without=pairs,
            method=cast("Any", method),
            correction=cast("Any", correction),
            starts=starts,
            seed=seed,
        )
        network = learned.network
        model = network_model(
            network,
            clients=clients or round(float(read.populations.max())),
            reference=reference or default_reference(network),
            name=f"learned from {traces}",
            provenance={"learned_from": traces, "traces": len(read.x), "seed": seed},
        )
    except UsageError as error:
        raise UsageError(error.message, where=error.where or traces, hint=error.hint) from error
    if output is not None:
        write_model(model, output)
    if plot is not None:
        draw_worst_trace(plot, learned)
    if as_json:
        click.echo(json.dumps({"model": output} | learned.to_json(), indent=1))
    else:
        from mup.cli.output.display import console

        _show(console(), learned)
        if output is not None:
            click.echo(
                f"wrote {shown(output)}: {len(model.tasks)} tasks, {model.reference_tasks[0].threads} clients"
            )
    if learned.alarm is None:
        return 0
    click.echo(f"alarm: {learned.alarm}", err=True)
    return 1


def _servers(text: str) -> list[float]:
    from mup.errors import UsageError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--servers: must be whole numbers or inf, separated by commas, got {text!r}",
            hint="for example --servers inf,30,25",
        ) from None


def _ends(text: str, stations: Sequence[str]) -> tuple[str, str]:
    from mup.errors import UsageError
    from mup.lqn.refs import halves

    found = [ends for ends in halves(text, "->") if all(ends)]
    if not found:
        raise UsageError(f"--without: must be FROM->TO, got {text!r}", hint='for example --without "M2->M3"')
    return next((ends for ends in found if set(ends) <= set(stations)), found[0])


def _show(out: Console, learned: LearnedNetwork) -> None:
    from mup.cli.output.display import say
    from mup.cli.output.tables import print_table

    network = learned.network
    half, spread = learned.rates_half, learned.routing_half
    rows = []
    for i, name in enumerate(network.names):
        targets = [
            f"{network.names[j]} {network.routing[i, j]:.3f}"
            + ("" if spread is None else f" +- {spread[i, j]:.3f}")
            for j in range(len(network.names))
            if network.routing[i, j] > 5e-4
        ]
        rate_half = "-" if half is None else f"{half[i]:.2g}"
        rows.append(
            [name, f"{network.servers[i]:g}", f"{network.rates[i]:.4g}", rate_half, ", ".join(targets)]
        )
    headings = ["station", "servers", "services/s", "+-", "goes to"]
    if not network.exponential:
        scv_half = learned.scv_half
        for i, row in enumerate(rows):
            spread_of_scv = "-" if scv_half is None else f"{scv_half[i]:.2g}"
            row[4:4] = [f"{network.shapes[i].family} {network.scv[i]:.3g}", spread_of_scv]
        headings[4:4] = ["scv of services", "+-"]
    print_table(out, "", headings, rows, words=("goes to",))
    say(out, "+- is the half-width of the 95 % interval, from leaving out groups of traces.")
    out.print()
    errors = {"fluid, learned from": learned.err_train, "fluid, held back": learned.err_validation}
    errors |= {f"simulated, held back, {name}": error for name, error in learned.held_back.items()}
    print_table(
        out,
        "",
        ["clients at the wrong station, at worst", "traces", "mean", "worst"],
        [
            [name, str(error.traces), f"{error.mean:.2f} %", f"{error.worst:.2f} %"]
            for name, error in errors.items()
        ],
    )
    good = learned.goodness
    if good is None:
        say(
            out,
            "not tested whether services are exponential: that needs a correction, and runs from one state",
        )
    else:
        about = "" if good.runs_known else "about "
        say(
            out,
            f"{good.misplaced:.2f} % misplaced on {good.traces} traces held back; {good.expected:.2f} %, at"
            f" most {good.limit:.2f} %, if the network is right (means of {about}{good.runs:.0f} runs)",
        )
    for sentence in learned.unknown:
        say(out, f"not known: {sentence}")
    say(out, f"correction: {learned.correction}; {sum(learned.seconds.values()):.1f} s of processor time")
