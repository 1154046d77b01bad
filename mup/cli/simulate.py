"""``mup simulate``: what does the model predict for one scenario?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from simulator.result import Result


@click.command()
@click.argument("model", type=click.Path())
@click.option(
    "--precision",
    type=float,
    help="Stop when the 95 % half-widths of cycle response time and throughput are within this fraction of "
    "the mean.  [default: 0.01, or none with --horizon]",
)
@click.option("--horizon", type=float, metavar="SECONDS", help="Stop after this simulated time in any case.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same numbers.")
@click.option("--engine", default="reference", show_default=True, help="Simulation engine.")
@click.option("--clients", type=int, help="Number of clients (default: as in the model).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    model: str,
    precision: float | None,
    horizon: float | None,
    seed: int,
    engine: str,
    clients: int | None,
    as_json: bool,
) -> None:
    """Simulate the calibrated MODEL and print every figure with its 95 % interval.

    Response times exclude think time; intervals are half-widths.
    """
    import json

    from rich.progress import Progress as Bars
    from rich.progress import TextColumn, TimeElapsedColumn

    from mup.cli.display import console
    from mup.lqn import load_model
    from mup.lqn.edits import with_clients
    from simulator import Progress, simulate

    loaded = load_model(model)
    if clients is not None:
        loaded = with_clients(loaded, clients)
    columns = (TextColumn("simulating {task.fields[state]}"), TimeElapsedColumn())
    with Bars(*columns, console=console(stderr=True), transient=True) as bars:
        bar = bars.add_task("simulate", total=None, state="")

        def show(progress: Progress) -> None:
            state = f"{progress.simulated_seconds:.4g} s, interval +- {100 * progress.precision:.3g} %"
            bars.update(bar, state=state)

        result = simulate(
            loaded, precision=precision, horizon=horizon, seed=seed, engine=engine, progress=show
        )
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=1))
    else:
        _show(result)


def _show(result: Result) -> None:
    """Print the figures as tables."""
    from mup.cli.display import console
    from mup.cli.figures import interval, print_table

    out = console()
    cycle = result.cycle
    response = cycle.response_time
    percentiles = (response.p50, response.p90, response.p95, response.p99)
    print_table(
        out,
        "cycle of a client",
        ("throughput 1/s", "response time ms", "p50 ms", "p90 ms", "p95 ms", "p99 ms", "with think time ms"),
        [
            [
                interval(cycle.throughput),
                *(interval(f, 1e3) for f in (response, *percentiles, cycle.cycle_time)),
            ]
        ],
        texts=0,
    )
    print_table(
        out,
        "tasks",
        ("task", "throughput 1/s", "utilization %", "busy threads", "waiting requests"),
        [
            [name, interval(t.throughput), interval(t.utilization, 100), interval(t.busy), interval(t.queue)]
            for name, t in result.tasks.items()
        ],
    )
    rows = []
    for name, entry in result.entries.items():
        time = entry.response_time
        times = (None,) * 4 if time is None else (time, time.p50, time.p95, time.p99)
        rows.append([name, interval(entry.throughput), *(interval(f, 1e3) for f in times)])
    headings = ("entry", "throughput 1/s", "response time ms", "p50 ms", "p95 ms", "p99 ms")
    print_table(out, "entries", headings, rows)
    if result.processors:
        print_table(
            out,
            "processors",
            ("processor", "utilization %"),
            [[name, interval(p.utilization, 100)] for name, p in result.processors.items()],
        )
    out.print(
        f"{result.simulated_seconds:.4g} simulated s ({result.warmup_seconds:.3g} s warm-up deleted), "
        f"{result.events} events in {result.wall_seconds:.2f} s; +- is the half-width of the 95 % interval "
        f"from {result.batches} batches; seed {result.seed}"
    )
    for warning in result.warnings:
        out.print(f"warning: {warning}", markup=False)
