"""``mup explore``: one user against the real services, logging what happens."""

from __future__ import annotations

import click

from mup.cli.profiling import ensure_profile, host_option


@click.command()
@click.argument("project", default=".", type=click.Path())
@click.option(
    "--width", default=0.01, show_default=True, help="Relative 95 % half-width to reach per endpoint."
)
@click.option("--full-width", is_flag=True, help="Read --width as the full width of the interval.")
@click.option("--max-seconds", default=90.0, show_default=True, help="Stop after this much time under load.")
@click.option("--round-seconds", default=3.0, show_default=True, help="Length of one round (one batch).")
@click.option("--warmup", default=2.0, show_default=True, help="Seconds of load that are not observed.")
@click.option(
    "--think-scale",
    type=float,
    help="Factor on the client's think times in rounds that have some (default: 1, or less if a cycle would"
    " take over a second).",
)
@click.option("--burst", default=0, metavar="CLIENTS", help="Add rounds with several clients at the end.")
@click.option("--seed", default=0, show_default=True, help="Of the client's choices.")
@click.option("-o", "--output", type=click.Path(), help="Run directory to create (default: .mup/runs/...).")
@click.option("--resume", type=click.Path(), metavar="RUN", help="Continue this run directory instead.")
@host_option
@click.option(
    "--changed", is_flag=True, help="Only what has changed since the latest run has to be known well."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    project: str,
    width: float,
    full_width: bool,
    max_seconds: float,
    round_seconds: float,
    warmup: float,
    think_scale: float | None,
    burst: int,
    seed: int,
    output: str | None,
    resume: str | None,
    profile_first: bool,
    changed: bool,
    as_json: bool,
) -> None:
    """Start PROJECT's services and let a single user exercise them.

    Rounds without think times and rounds with them alternate. Stops when the mean execution time of every
    endpoint and path is known to --width (95 % batch-means interval), or after --max-seconds. Writes a run
    directory that 'mup model' reads; after --changed together with the runs before it.
    """
    import json
    from pathlib import Path

    from analyzer.calibration.explore import ExploreSettings, explore
    from analyzer.calibration.rundir import latest_runs, load_info
    from analyzer.static import analyse_project
    from mup.cli.display import console, reject_errors
    from mup.cli.exploring import exploration_document, exploring, print_exploration
    from mup.errors import UsageError
    from mup.project import load_project

    if output and resume:
        raise UsageError(
            "--output and --resume exclude each other: a resumed run stays in its directory",
            hint="leave one of them out",
        )
    if changed and resume:
        raise UsageError(
            "--changed and --resume exclude each other: a resumed run goes on as it was started",
            hint="leave one of them out",
        )
    loaded = load_project(project)
    application = analyse_project(loaded, remember=True)
    reject_errors(application)
    earlier = latest_runs(loaded.state / "runs") if changed else []
    ensure_profile(console(stderr=True), wanted=profile_first)
    settings = ExploreSettings(
        width=width,
        full_width=full_width,
        max_seconds=max_seconds,
        round_seconds=round_seconds,
        warmup_seconds=warmup,
        think_scale=think_scale,
        burst=burst,
        seed=seed,
    )
    with exploring(settings) as progress:
        directory = explore(
            loaded,
            application,
            settings,
            directory=Path(output) if output else None,
            resume=Path(resume) if resume else None,
            changed_since=earlier,
            progress=progress,
        )
    info = load_info(directory)
    if as_json:
        click.echo(json.dumps({"run": str(directory), **exploration_document(info)}, indent=1))
        return
    print_exploration(info)
    console().print(f"run directory: {directory}", soft_wrap=True)
