"""``mup whatif``: what would change under another load, deployment, routing or machine?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from rich.console import Console

    from mup.lqn.model import Model
    from simulator.studies.whatif import Axis


@click.command(
    epilog=examples(
        "mup whatif shop --clients 1,8,64",
        "mup whatif model.json --clients 16,32 --pool Stock=1,2,4",
        "mup whatif model.json --arrivals 40 --cores host=2,4 --csv grid.csv",
        "mup whatif model.json --clients 16 --machine-speed now",
        "mup whatif model.json --clients 16 --demand A/epA/=0.5x",
        "mup whatif model.json --clients 8,16,32 --engine analytic",
    )
)
@click.argument("model", default=".", type=click.Path())
@option(
    "--clients",
    multiple=True,
    metavar="N[,N..]",
    help="Number of concurrent clients; NAME=N[,N..] if there are several kinds.",
)
@option(
    "--arrivals",
    multiple=True,
    metavar="R[,R..]",
    help="Rate of arrivals: cycles begun, or requests from outside, per second; NAME=R[,R..] if there are "
    "several sources.",
)
@option("--think", multiple=True)
@option("--pool", multiple=True, metavar="TASK=N[,N..]")
@option(
    "--admission",
    metavar="TASK=ORDER[,..]",
    help="Which waiting request is served next: fifo, random or hol (priority); repeatable.",
)
@option("--replicas", metavar="TASK=N[,N..]")
@option("--cores", multiple=True, metavar="PROCESSOR=N[,N..]", help="Number of cores; repeatable.")
@option("--speed")
@option(
    "--machine-speed",
    show_default="any speed its history makes likely",
)
@option("--place")
@option("--probability")
@option("--calls")
@option("--fan-out")
@option("--demand")
@option(
    "--engine",
    default="compiled",
    metavar="compiled|analytic|fluid",
    help="What computes the figures: 'compiled' simulates; 'analytic' and 'fluid' estimate means within "
    "milliseconds, without intervals.",
)
@option(
    "--precision",
    default=0.01,
    help="Relative 95 % half-width of predicted cycle response time and throughput, e.g. 0.01 for 1 %.",
)
@option("--seed")
@option("--difference/--no-difference")
@option("--saturation/--no-saturation")
@option("--interval/--no-interval")
@option(
    "--duration",
    "run_seconds",
    old=("--run-seconds",),
    default=60.0,
)
@option(
    "--repeats",
    "run_repeats",
    old=("--run-repeats",),
    default=1,
)
@option(
    "--host-profile",
    "host",
    old=("--host",),
    help="Predict on the machine of this profile ('mup host') instead of that of the calibration.",
)
@option(
    "--max-seconds",
    show_default="3600",
)
@option("--jobs", "workers", old=("--workers",))
@option("--dask")
@option("--yes", help="Do not ask before more than 1000 scenarios are simulated.")
@option("--json")
@option("--csv", "csv_file")
@option("--plot")
def command(
    model: str,
    clients: tuple[str, ...],
    arrivals: tuple[str, ...],
    think: tuple[str, ...],
    pool: tuple[str, ...],
    admission: tuple[str, ...],
    replicas: tuple[str, ...],
    cores: tuple[str, ...],
    speed: tuple[str, ...],
    machine_speed: str | None,
    place: tuple[str, ...],
    probability: tuple[str, ...],
    calls: tuple[str, ...],
    fan_out: tuple[str, ...],
    demand: tuple[str, ...],
    engine: str,
    precision: float,
    seed: int,
    difference: bool,
    saturation: bool,
    interval: bool,
    run_seconds: float,
    run_repeats: int,
    host: str | None,
    max_seconds: float | None,
    workers: int | None,
    dask: str | None,
    yes: bool,
    as_json: bool,
    csv_file: str | None,
    plot: str | None,
) -> None:
    """Predict the calibrated MODEL under other loads and deployments.

    Every combination of the given values is one scenario, compared with the model as it is; the file is not
    changed. All scenarios see the same random numbers. Each figure also has a prediction interval: where a
    real run of --duration would land, 19 times of 20.

    An estimate is printed at once, and every simulation as it ends; the tables follow.
    """
    import json
    from contextlib import nullcontext

    from mup.cli.measurements.profiling import report_host_warning
    from mup.cli.models.whole_endpoints import whole_endpoints
    from mup.cli.options import check_output, check_picture
    from mup.cli.output.display import console, say
    from mup.cli.predictions.scenario_cost import announce_grid
    from mup.cli.predictions.scenario_estimates import ESTIMATES, FEW, print_first_look
    from mup.cli.predictions.scenario_files import (
        bands_of,
        check_curves,
        draw_scenarios,
        points_of,
        write_csv,
    )
    from mup.cli.predictions.scenario_options import axes, check_engine
    from mup.cli.predictions.scenario_tables import print_scenarios, say_result
    from mup.cli.sources import read_model_of
    from mup.errors import UsageError

    check_engine(engine)
    if workers is not None and workers < 1:
        raise UsageError(f"--jobs: must be a whole number >= 1, got {workers}")
    check_output(csv_file)
    check_picture(plot)
    loaded = read_model_of(model)
    if host is not None:
        from analyzer.host.placement import on_host
        from analyzer.host.profile import load_profile

        loaded = on_host(loaded, load_profile(host))
    options = {"clients": clients, "arrivals": arrivals, "think": think, "pool": pool, "replicas": replicas}
    options |= {
        "admission": admission,
        "cores": cores,
        "speed": speed,
        "place": place,
        "probability": probability,
        "calls": calls,
        "fan-out": fan_out,
        "demand": demand,
    }
    varied = axes(options)
    if not varied:
        raise UsageError("nothing to change", hint="for example --clients 1,2,4,8 or --pool B=4")
    if plot is not None:
        check_curves(varied)
    if engine in ESTIMATES:
        _estimate(loaded, varied, engine, yes=yes, as_json=as_json, csv_file=csv_file, plot=plot)
        return
    from simulator.studies.prediction import RealRun

    run = RealRun(run_seconds, run_repeats)
    assumed = None
    if interval or machine_speed is not None:
        from mup.cli.predictions.machine_speeds import assumed_speed

        assumed = assumed_speed(loaded, machine_speed, changed=varied, seconds=run.total)
        loaded = assumed.model

    from mup.cli.first_run import announce_compilation
    from simulator.studies.grids import MAX_SECONDS, UnfinishedError, run_scenarios
    from simulator.studies.whatif import Scenario, grid

    if dask is None:
        announce_compilation()
    announce_grid(
        loaded,
        varied,
        precision=precision,
        seed=seed,
        workers=workers,
        elsewhere=dask is not None,
        extras=(saturation, interval),
        difference=difference,
        yes=yes,
        as_json=as_json,
    )
    scenarios = [Scenario((), loaded), *grid(loaded, varied)]
    out = console(stderr=True)
    few = len(scenarios) <= FEW and not as_json
    if few:
        print_first_look(out, scenarios)
    if dask is None:
        cluster: Any = nullcontext()
    else:
        from simulator.studies.grids.dask_cluster import dask_cluster

        cluster = dask_cluster(dask)
    failed: UnfinishedError | None = None
    with cluster as executor, _progress(out, "simulations" if dask is None else "scenarios") as progress:
        try:
            outcomes = run_scenarios(
                scenarios,
                precision=precision,
                seed=seed,
                workers=workers,
                executor=executor,
                differences=difference,
                limits=saturation,
                run=run if interval else None,
                machine=None if assumed is None else assumed.machine,
                max_seconds=MAX_SECONDS if max_seconds is None else max_seconds,
                progress=progress,
                on_result=(lambda scenario, result: say_result(out, scenario, result)) if few else None,
            )
        except UnfinishedError as error:
            if not error.outcomes or error.outcomes[0].scenario.changes:
                raise  # nothing can be told without the baseline
            outcomes, failed = list(error.outcomes), error
    report_host_warning(out, loaded)
    for text in whole_endpoints(loaded):
        say(out, f"note: {text}")
    for note in () if assumed is None else assumed.notes:
        say(out, f"note: {note}")
    if csv_file is not None:
        write_csv(csv_file, outcomes)
    if plot is not None:
        title = f"{loaded.name} (bands: {bands_of(outcomes)})"
        draw_scenarios(plot, title, varied, points_of(outcomes[1:]))
    if as_json:
        document = {
            "baseline": {
                **outcomes[0].result_json(),
                **({} if (own := outcomes[0].prediction) is None else {"prediction": own.to_json()}),
            },
            "scenarios": [
                {
                    "change": o.scenario.to_json(),
                    "result": o.result_json(),
                    **({} if o.difference is None else {"difference": o.difference.to_json()}),
                    **({} if o.prediction is None else {"prediction": o.prediction.to_json()}),
                }
                for o in outcomes[1:]
            ],
            "limits": [limit.to_json() for o in outcomes for limit in o.limits],
        }
        if assumed is not None and (speed_json := assumed.to_json()) is not None:
            document["machine_speed"] = speed_json
        if failed is not None:
            document["error"] = {"message": failed.message, "hint": failed.hint}
        click.echo(json.dumps(document, indent=1))
        if failed is not None:
            raise click.exceptions.Exit(2)  # one document, not another one for the error
    else:
        print_scenarios(console(), outcomes)
        for limit in dict.fromkeys(limit for o in outcomes for limit in o.limits):
            console().print(f"warning: {limit}", markup=False)
    if failed is not None:
        raise failed


def _estimate(
    model: Model,
    varied: Sequence[Axis],
    engine: str,
    *,
    yes: bool,
    as_json: bool,
    csv_file: str | None,
    plot: str | None,
) -> None:
    """Estimate a grid instead of simulating it."""
    import json

    from mup.cli.output.display import console
    from mup.cli.predictions.scenario_cost import announce_estimates
    from mup.cli.predictions.scenario_estimates import (
        METHODS,
        estimated_points,
        estimates_of,
        print_estimates,
        write_estimates,
    )
    from mup.cli.predictions.scenario_files import draw_scenarios
    from simulator.studies.whatif import Scenario, grid

    announce_estimates(model, varied, engine, yes=yes, as_json=as_json)
    scenarios = [Scenario((), model), *grid(model, varied)]
    with _progress(console(stderr=True), "estimates") as progress:

        def done(count: int) -> bool:
            progress(count, len(scenarios))
            return True

        found = estimates_of(scenarios, engine, done)
    if csv_file is not None:
        write_estimates(csv_file, found.scenarios, found.documents)
    if plot is not None:
        title = f"{model.name} (estimates: {METHODS[engine]})"
        draw_scenarios(plot, title, varied, estimated_points(found.scenarios[1:], found.documents[1:]))
    if as_json:
        pairs = zip(found.scenarios[1:], found.documents[1:], strict=True)
        document: dict[str, Any] = {
            "baseline": found.documents[0],
            "scenarios": [{"change": scenario.to_json(), "result": result} for scenario, result in pairs],
            "limits": [],
        }
        if found.failed is not None:
            document["error"] = {"message": found.failed.message, "hint": found.failed.hint}
        click.echo(json.dumps(document, indent=1))
        if found.failed is not None:
            raise click.exceptions.Exit(2)  # one document, not another one for the error
        return
    print_estimates(console(), found.scenarios, found.documents, engine)
    if found.failed is not None:
        raise found.failed


@contextmanager
def _progress(out: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of how many are done, on a terminal."""
    if not out.is_terminal:
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=out, transient=True) as bars:
        bar = bars.add_task("whatif", total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)
