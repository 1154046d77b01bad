"""``mup explore``: one user against the real services, logging what happens."""

from __future__ import annotations

import click


@click.command()
@click.argument("project", default=".", type=click.Path())
@click.option(
    "--width", default=0.01, show_default=True, help="Relative 95 % half-width to reach per endpoint."
)
@click.option("--full-width", is_flag=True, help="Read --width as the full width of the interval.")
@click.option("--max-seconds", default=300.0, show_default=True, help="Stop after this much observed time.")
@click.option("--round-seconds", default=5.0, show_default=True, help="Length of one round (one batch).")
@click.option("--warmup", default=2.0, show_default=True, help="Seconds of load that are not observed.")
@click.option(
    "--think-scale",
    default=0.1,
    show_default=True,
    help="Factor on the client's think times while exploring.",
)
@click.option("--seed", default=0, show_default=True, help="Of the client's choices.")
@click.option("-o", "--output", type=click.Path(), help="Run directory to create (default: .mup/runs/...).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    project: str,
    width: float,
    full_width: bool,
    max_seconds: float,
    round_seconds: float,
    warmup: float,
    think_scale: float,
    seed: int,
    output: str | None,
    as_json: bool,
) -> None:
    """Start PROJECT's services and let a single user exercise them.

    Stops when the mean execution time of every endpoint is known to --width (95 % batch-means
    interval), or after --max-seconds. Writes a run directory that 'mup model' reads.
    """
    import json
    from pathlib import Path

    from analyzer.calibration.explore import ExploreSettings, explore
    from analyzer.calibration.rundir import load_run
    from analyzer.static import analyse_project
    from mup.cli.display import console, explore_progress, reject_errors
    from mup.project import load_project

    loaded = load_project(project)
    application = analyse_project(loaded)
    reject_errors(application)
    settings = ExploreSettings(
        width=width,
        full_width=full_width,
        max_seconds=max_seconds,
        round_seconds=round_seconds,
        warmup_seconds=warmup,
        think_scale=think_scale,
        seed=seed,
    )
    with explore_progress(settings) as progress:
        directory = explore(
            loaded,
            application,
            settings,
            directory=Path(output) if output else None,
            progress=progress,
        )
    info = load_run(directory).info
    if as_json:
        endpoints = {
            label: {
                "mean": w.mean,
                "ci95": w.half_width,
                "executions": w.executions,
                "batches": w.batches,
            }
            for label, w in info.widths.items()
        }
        document = {
            "run": str(directory),
            "observed_seconds": info.observed_seconds,
            "stop": info.stop,
            "endpoints": endpoints,
        }
        click.echo(json.dumps(document, indent=1))
        return
    out = console()
    out.print(f"explored for {info.observed_seconds:.0f} s; stopped because {info.stop}")
    for label, w in sorted(info.widths.items()):
        half = "?" if w.half_width is None else f"{w.half_width / w.mean:.2%}"
        out.print(f"  {label}  {w.mean * 1e3:.3f} ms +- {half} (95 %), {w.executions} executions")
    out.print(f"run directory: {directory}", soft_wrap=True)
