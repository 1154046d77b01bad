"""``mup simulate``: the prediction of a model for one scenario."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from mup.lqn import Model
    from simulator import Progress

ESTIMATES = ("analytic", "fluid")
SIMULATORS = ("compiled", "reference")


@click.command(
    epilog=examples(
        "mup simulate shop",
        "mup simulate model.json --clients 16 --precision 0.02",
        "mup simulate model.json --engine analytic",
    )
)
@click.argument("model", default=".", type=click.Path())
@option(
    "--engine",
    default="compiled",
    metavar="|".join((*SIMULATORS, *ESTIMATES)),
    help="What computes the figures: 'compiled' simulates; 'reference' gives the same numbers a hundred "
    "times slower; 'analytic' and 'fluid' estimate means within milliseconds, without intervals.",
)
@option(
    "--precision",
    help="Relative 95 % half-width of predicted cycle response time and throughput, e.g. 0.01 for 1 %.",
    show_default="0.01, or none with --horizon",
)
@option(
    "--horizon",
    help="Simulated time after which to stop in any case. With --engine fluid: follow the means from an "
    "empty system for so long, instead of the state of rest.",
)
@option("--seed", default=None, show_default="0")
@option("--clients", type=int, show_default="as in the model")
@option("--arrivals", type=float)
@option(
    "--max-seconds",
    help="Budget in seconds of computation, for the simulation and again for what saturates first; what is "
    "known then is printed.",
    show_default="600, and 120",
)
@option("--details")
@option("--activities", help="Print the details, and the figures of every activity.")
@option(
    "--saturation/--no-saturation",
)
@option("--all", "everything", help="Print the details, long tables whole.")
@option("--json")
def command(
    model: str,
    engine: str,
    precision: float | None,
    horizon: float | None,
    seed: int | None,
    clients: int | None,
    arrivals: float | None,
    max_seconds: float | None,
    details: bool,
    activities: bool,
    saturation: bool,
    everything: bool,
    as_json: bool,
) -> None:
    """Simulate the calibrated MODEL and print what matters, with 95 % intervals (half-widths).

    That is response time without think time, throughput, the bottleneck, and what saturates first; --details
    prints every figure.
    """
    import json

    from mup.cli.sources import read_model_of
    from mup.errors import UsageError, did_you_mean
    from mup.lqn.edits import with_arrivals, with_clients

    if engine not in (*SIMULATORS, *ESTIMATES):
        raise UsageError(f"--engine: no {engine!r}; {did_you_mean(engine, [*SIMULATORS, *ESTIMATES])}")
    if clients is not None and arrivals is not None:
        raise UsageError("--clients and --arrivals exclude each other")
    loaded = read_model_of(model)
    if clients is not None:
        loaded = with_clients(loaded, clients)
    if arrivals is not None:
        loaded = with_arrivals(loaded, arrivals)
    limit = ""
    if engine in ESTIMATES:
        given = {"--precision": precision, "--seed": seed, "--activities": activities or None}
        given["--max-seconds"] = max_seconds
        if engine == "analytic":
            given["--horizon"] = horizon
        for option, value in given.items():
            if value is not None:
                raise UsageError(f"{option} means nothing to --engine {engine}, which does not simulate")
        document = _estimate(loaded, engine, horizon)
    else:
        document = _simulate(
            loaded, engine, precision, horizon, seed or 0, activities=activities, max_seconds=max_seconds
        )
        if saturation:
            document["saturation"], limit = _saturation(loaded, seed or 0, max_seconds)
    if as_json:
        click.echo(json.dumps(document, indent=1))
        return
    _show(loaded, document, limit, details=details or activities or everything, everything=everything)


def _estimate(model: Model, engine: str, horizon: float | None) -> dict[str, Any]:
    if engine == "analytic":
        from simulator.analytic import estimate

        return estimate(model).to_json()
    from simulator.fluid import fluid

    return fluid(model, until=horizon).to_json()


def _simulate(
    model: Model,
    engine: str,
    precision: float | None,
    horizon: float | None,
    seed: int,
    *,
    activities: bool,
    max_seconds: float | None,
) -> dict[str, Any]:
    """Simulate, with a display of progress on a terminal."""
    from mup.cli.first_run import announce_compilation
    from mup.cli.output.display import console
    from mup.cli.predictions.scenario_cost import announce_clients
    from simulator import simulate
    from simulator.machine.budget import MAX_SECONDS
    from simulator.program.limits import check_size

    check_size(model)
    if engine == "compiled":
        announce_compilation()
        announce_clients(model, precision=precision, horizon=horizon, seed=seed)
    with _progress(console(stderr=True)) as show:
        return simulate(
            model,
            precision=precision,
            horizon=horizon,
            seed=seed,
            engine=engine,
            activities=activities,
            max_seconds=MAX_SECONDS if max_seconds is None else max_seconds,
            control_variates=True,
            progress=show,
        ).to_json()


@contextmanager
def _progress(out: Console) -> Iterator[Callable[[Progress], None] | None]:
    """Show how far the simulation is, on a terminal."""
    if not out.is_terminal:
        yield None
        return
    from rich.progress import Progress as Bars
    from rich.progress import TextColumn, TimeElapsedColumn

    columns = (TextColumn("simulating {task.fields[state]}"), TimeElapsedColumn())
    with Bars(*columns, console=out, transient=True) as bars:
        bar = bars.add_task("simulate", total=None, state="")

        def show(progress: Progress) -> None:
            state = f"{progress.simulated_seconds:.4g} s, interval +- {100 * progress.precision:.3g} %"
            bars.update(bar, state=state)

        yield show


def _saturation(model: Model, seed: int, max_seconds: float | None) -> tuple[dict[str, Any] | None, str]:
    """Return what saturates first, as JSON and as a sentence."""
    from mup.errors import LimitError, SimulationError
    from simulator.studies.saturation import ALL_SECONDS, saturation

    try:
        found = saturation(model, seed=seed, max_seconds=ALL_SECONDS if max_seconds is None else max_seconds)
    except LimitError as error:
        return None, f"what saturates first is unknown: {error.message}"
    except SimulationError as error:
        # The scenario itself has been simulated; this is about another load.
        return None, f"what saturates first is unknown: under another load, {error}"
    return found.to_json(), str(found)


def _show(model: Model, document: dict[str, Any], limit: str, *, details: bool, everything: bool) -> None:
    """Print the summary, or all figures as tables, and what they are."""
    from mup.cli.output.display import console, say
    from mup.cli.predictions.result_summary import print_summary
    from mup.cli.predictions.result_tables import print_result

    out = console()
    if details:
        print_result(out, document, everything=everything)
    else:
        print_summary(out, model, document, limit)
    if document["engine"] in ESTIMATES:
        method = "layered mean values" if document["engine"] == "analytic" else "fluid approximation"
        moment = document.get("time")
        say(
            out,
            f"An ESTIMATE ({method}) without intervals, in {1e3 * document['wall_seconds']:.0f} ms"
            + ("" if moment is None else f"; means {moment:g} s after all clients began a cycle")
            + "; --engine compiled simulates",
        )
    else:
        say(
            out,
            f"{document['simulated_seconds']:.4g} simulated s ({document['warmup_seconds']:.3g} s warm-up "
            f"deleted), {document['events']} events in {document['wall_seconds']:.2f} s; +- is the "
            f"half-width of the 95 % interval from {_behind(document)}; seed {document['seed']}",
        )
        gained = document["control_variates"]
        if gained["names"]:
            longer = gained["variance_ratio"]
            say(
                out,
                f"control variates: {', '.join(gained['names'])}; without them, intervals as narrow would "
                f"take {longer['throughput']:.2g} times as long for throughput, and "
                f"{longer['response_time']:.2g} times for response time",
            )
    for warning in document["warnings"]:
        say(out, f"warning: {warning}")
    if details and limit:
        say(out, limit)
    if not details:
        say(out, "--details prints every task, entry, call and processor.")


def _behind(document: dict[str, Any]) -> str:
    """Return what the intervals come from."""
    runs = document["replications"]
    if runs == 1:
        return f"{document['batches']} batches"
    window = (document["simulated_seconds"] - document["warmup_seconds"]) / runs
    return f"{runs} runs of {window:.3g} s (clients keep the rhythm in which they begin, so many begin anew)"
