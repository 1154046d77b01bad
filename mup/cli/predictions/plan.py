"""``mup plan``: the cheapest deployment that meets objectives, the largest load, and what to make faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from simulator.studies.planning.levers import Levers


@click.command(
    epilog=examples(
        "mup plan shop --clients 64 --slo 'p95<=200ms' --vary 'pool:*=1..16' --vary cores:host=1..8",
        "mup plan model.json --arrivals 40 --slo 'A/epA/:p99<=80ms' --vary replicas:A=1..8 --cost p.toml",
        "mup plan model.json --slo 'p95<=200ms' --slo 'utilization<=70%' --max-load",
        "mup plan model.json --clients 64 --slo 'p95<=200ms' --explain",
    )
)
@click.argument("model", default=".", type=click.Path())
@click.argument("more", nargs=-1, metavar="")
@option("--slo")
@option("--vary")
@option("--cost")
@option("--max-load")
@option(
    "--explain",
    is_flag=True,
    help="Also rank what to make faster, by what that does to the objectives.",
)
@option("--clients", multiple=True, metavar="N")
@option("--arrivals", multiple=True, metavar="R")
@option("--front/--no-front")
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
    "--machine-speed",
    show_default="any speed its history makes likely",
)
@option("--seed")
@option("--max-seconds", default=3600.0, help="Budget in seconds of computation.")
@option("--jobs", "workers")
@option("--json")
def command(
    model: str,
    more: tuple[str, ...],
    slo: tuple[str, ...],
    vary: tuple[str, ...],
    cost: str | None,
    max_load: bool,
    explain: bool,
    clients: tuple[str, ...],
    arrivals: tuple[str, ...],
    front: bool,
    run_seconds: float,
    run_repeats: int,
    machine_speed: str | None,
    seed: int,
    max_seconds: float,
    workers: int | None,
    as_json: bool,
) -> None:
    """Find the cheapest deployment of the calibrated MODEL that meets objectives (--slo).

    --vary says which deployments there are, --cost what they cost; simulation decides. Also printed: what is
    a little cheaper and why it fails, and how probably a real run of --duration meets the objectives.
    """
    import json

    from mup.cli.first_run import announce_compilation
    from mup.cli.output.display import console, say
    from mup.cli.predictions.plan_options import loads, objectives, prices, varied
    from mup.cli.predictions.plan_tables import print_levers, print_load, print_plan
    from mup.cli.predictions.scenario_options import axes
    from mup.cli.sources import read_model_of
    from mup.errors import UsageError
    from simulator.studies.prediction import RealRun

    if workers is not None and workers < 1:
        raise UsageError(f"--jobs: must be a whole number >= 1, got {workers}")
    run = RealRun(run_seconds, run_repeats)
    loaded = read_model_of(model)
    wanted = [*vary, *more]
    if more and not vary:
        raise UsageError(f"{' '.join(more)!r}: only values of --vary may follow the model")
    if not slo:
        raise UsageError("no objective: nothing to plan for", hint="for example --slo 'p95<=200ms'")
    if max_load and (wanted or clients or arrivals or cost is not None):
        raise UsageError(
            "--max-load is about the deployment as it is, and looks for the load itself",
            hint="leave out --vary, --cost, --clients and --arrivals",
        )
    if not (wanted or max_load or explain):
        raise UsageError(
            "nothing to vary",
            hint="for example --vary 'pool:*=1..16'; --max-load and --explain take the deployment as it is",
        )
    changes = loads(axes({"clients": clients, "arrivals": arrivals}))
    for change in changes:
        loaded = change.apply(loaded)
    slos = objectives(loaded, slo)
    axes_varied = varied(loaded, wanted)
    priced = prices(cost, loaded)

    from mup.cli.predictions.machine_speeds import assumed_speed

    assumed = assumed_speed(loaded, machine_speed, seconds=run.total)
    loaded = assumed.model
    announce_compilation()
    err = console(stderr=True)

    def on_progress(text: str) -> None:
        if not as_json:
            say(err, text)

    from simulator.studies.planning.chance import outlook
    from simulator.studies.planning.load import largest_load
    from simulator.studies.planning.plan import plan
    from simulator.studies.planning.space import Space
    from simulator.studies.whatif import Scenario

    settings: dict[str, Any] = {"machine": assumed.machine, "seed": seed, "workers": workers}
    document: dict[str, Any] = {"model": loaded.name, "seed": seed}
    chosen = Scenario(tuple(changes), loaded)
    out = console()
    if max_load:
        most = largest_load(loaded, slos, seed=seed, max_seconds=max_seconds, on_progress=on_progress)
        chosen = most.scenario
        ahead = outlook(chosen, slos, run, max_seconds=max_seconds, **settings)
        document |= {**most.to_json(), "outlook": ahead.to_json(slos)}
        if not as_json:
            print_load(out, most, ahead)
    elif wanted:
        space = Space(loaded, tuple(axes_varied), priced)
        found = plan(
            space,
            slos,
            seed=seed,
            workers=workers,
            front=front,
            max_seconds=max_seconds,
            on_progress=on_progress,
        )
        chosen = Scenario(found.best.changes, space.model)
        for change in found.best.changes:
            chosen = Scenario(chosen.changes, change.apply(chosen.model))
        ahead = outlook(chosen, slos, run, max_seconds=max_seconds, **settings)
        document |= {**found.to_json(), "outlook": ahead.to_json(slos)}
        if not as_json:
            print_plan(out, found, ahead)
    if explain:
        from simulator.studies.planning.levers import levers

        ranked: Levers = levers(chosen.model, slos, max_seconds=max_seconds, **settings)
        document["explain"] = ranked.to_json()
        if not as_json:
            print_levers(out, ranked)
    for note in assumed.notes:
        on_progress(f"note: {note}")
    if assumed.to_json() is not None:
        document["machine_speed"] = assumed.to_json()
    if as_json:
        click.echo(json.dumps(document, indent=1))
