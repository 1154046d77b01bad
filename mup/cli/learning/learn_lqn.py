"""``mup learn lqn``: durations of the activities of a known structure, from queue lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from rich.console import Console

    from analyzer.learning.lqn import LearnedLqn
    from mup.lqn.model import Model


@click.command(epilog=examples("mup learn lqn model.json traces.npz -o calibrated.json"))
@click.argument("model", type=click.Path())
@click.argument("traces", type=click.Path(), required=False)
@option("--output", metavar="MODEL.json")
@option("--columns")
@option(
    "--clients",
    type=click.IntRange(1),
    show_default="as in the model",
)
@option(
    "--correction/--no-correction",
)
@option("--seed", type=click.IntRange(0))
@option("--json")
def command(
    model: str,
    traces: str | None,
    output: str | None,
    columns: bool,
    clients: int | None,
    correction: bool,
    seed: int,
    as_json: bool,
) -> int:
    """Learn the unknown times of MODEL from TRACES (.npz or .csv) of mean queue lengths.

    Unknown times are null in MODEL, as 'mup model --static' writes them; if none is, all positive times are
    learned. A column of TRACES is named after what it counts: a task (B), an entry (B.serve, B/path/), an
    activity (B.serve:work), or requests that wait for a thread ('B.serve:(waiting)'). Where exponential times
    do not explain the traces, a variation of those of each task is learned, too. A fifth of the traces is
    held back to judge the result; the exit code is 1 if they say that services are not as MODEL has them.
    """
    import json

    from mup.cli.options import check_result, shown
    from mup.cli.sources import read_model_of
    from mup.errors import UsageError
    from mup.lqn.edits import with_clients
    from mup.lqn.files import write_model

    check_result(output, starts=("{", "<"), as_json=as_json)
    loaded = read_model_of(model)
    if clients is not None:
        loaded = with_clients(loaded, clients)
    if columns:
        _list_columns(loaded, as_json=as_json)
        return 0
    if traces is None:
        raise UsageError(
            "TRACES is missing", hint="name a file of queue lengths, or list possible columns with --columns"
        )
    from analyzer.learning.lqn import learn_lqn
    from analyzer.learning.trace_files import read_traces
    from mup.cli.first_run import announce_compilation
    from mup.cli.output.display import console

    read = read_traces(traces)
    announce_compilation()
    try:
        with _progress(console(stderr=True)) as show:
            learned = learn_lqn(loaded, read, seed=seed, correction=correction, on_progress=show)
    except UsageError as error:
        raise UsageError(error.message, where=error.where or traces, hint=error.hint) from error
    if output is not None:
        write_model(learned.model, output)
    if as_json:
        click.echo(json.dumps({"model": output} | learned.to_json(), indent=1))
    else:
        _show(console(), learned)
        if output is not None:
            click.echo(f"wrote {shown(output)}")
    if learned.alarm is None:
        return 0
    click.echo(f"alarm: {learned.alarm}", err=True)
    return 1


@contextmanager
def _progress(out: Console) -> Iterator[Callable[[str], None] | None]:
    """Show what is being done, on a terminal."""
    if not out.is_terminal:
        yield None
        return
    with out.status("learning times") as status:
        yield status.update


def _list_columns(model: Model, *, as_json: bool) -> None:
    import json

    from analyzer.learning.lqn_columns import column_names
    from analyzer.learning.lqn_unknowns import find_unknowns
    from simulator.networks.inlined import inline

    names = column_names(inline(find_unknowns(model).model))
    click.echo(json.dumps({"columns": names}, indent=1) if as_json else "\n".join(names))


def _show(out: Console, learned: LearnedLqn) -> None:
    from mup.cli.output.display import say
    from mup.cli.output.tables import print_table
    from mup.lqn.refs import Names

    rows = []
    names = Names(learned.model.tasks)
    for key, time in learned.times.items():
        half = "-" if time.ci95 is None else f"{1e3 * time.ci95:.3g}"
        known = "" if time.known else "  (not known)"
        rows.append(
            [f"{key.text(names)}{known}", f"{1e3 * time.mean:.4g}", half, f"{1e3 * time.uncorrected:.4g}"]
        )
    headings = ["time", "mean ms", "+- ms", "fluid alone ms"]
    if not learned.exponential:
        for row, time in zip(rows, learned.times.values(), strict=True):
            row += [f"{time.scv:.3g}", "-" if time.scv_ci95 is None else f"{time.scv_ci95:.2g}"]
        headings += ["scv", "+-"]
    print_table(out, "", headings, rows)
    say(out, "+- is the half-width of the 95 % interval, from leaving out one trace at a time.")
    out.print()
    errors = {
        "fluid, learned from": learned.err_train,
        "fluid, held back": learned.err_validation,
        "simulated, held back": learned.simulated_validation,
        "simulated and corrected, held back": learned.corrected_validation,
    }
    for name, error in errors.items():
        if error is not None:
            say(out, f"{100 * error:.2f} % of the requests in the wrong place ({name})")
    good = learned.goodness
    if good is not None:
        about = "" if good.runs_known else "about "
        say(
            out,
            f"{good.misplaced:.2f} % of the requests in the wrong place on {good.traces} traces held back;"
            f" {good.expected:.2f} %, at most {good.limit:.2f} %, if the model is right"
            f" (means of {about}{good.runs:.0f} runs)",
        )
    for sentence in learned.warnings:
        say(out, f"warning: {sentence}")
    say(
        out,
        f"{learned.seconds:.1f} s of processor time to learn, {learned.correction_seconds:.1f} s to correct",
    )
