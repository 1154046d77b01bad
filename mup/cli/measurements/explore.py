"""``mup explore``: one user against the real services, logging what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mup.cli.measurements.profiling import ensure_profile
from mup.cli.stopping import code, stop_cleanly
from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from analyzer.static import Application


@click.command(
    epilog=examples(
        "mup explore shop",
        "mup explore shop --precision 0.02 --max-seconds 60",
        "mup explore shop --for clients=64 --for 'clients=32 pool:Stock=8' --width 5%",
        "mup explore shop --changed",
    )
)
@click.argument("project", default=".", type=click.Path())
@option(
    "--precision",
    show_default="0.01",
)
@option("--for", "scenarios")
@option(
    "--width",
    help="Relative 95 % half-width to know the predictions of --for to (or the project's own client): "
    "mean response time and throughput.",
    show_default="5%",
)
@option("--full-width")
@option("--max-seconds", default=90.0)
@option("--round-seconds", default=3.0)
@option("--warmup", default=2.0)
@option(
    "--think-scale",
    help="Factor on the client's think times in rounds that have some.",
    show_default="1, or less if a cycle would take over a second",
)
@option("--burst", show_default="4 per core; 0 with --for, which takes bursts where it needs them")
@option("--seed")
@option("--output", metavar="FOLDER", help="Run directory to create.", show_default=".mup/runs/...")
@option("--resume")
@option("--profile-host/--no-profile-host", "profile_first", old=("--host", "--no-host"))
@option("--changed", help="Measure only what has changed since the latest run until it is known well.")
@option("--json")
def command(
    project: str,
    precision: float | None,
    scenarios: tuple[str, ...],
    width: str | None,
    full_width: bool,
    max_seconds: float,
    round_seconds: float,
    warmup: float,
    think_scale: float | None,
    burst: int | None,
    seed: int,
    output: str | None,
    resume: str | None,
    profile_first: bool,
    changed: bool,
    as_json: bool,
) -> int:
    """Start PROJECT's services and let a single user exercise them.

    Rounds without and with think times alternate until the mean execution time of every endpoint and path is
    known to --precision (95 % batch-means interval), or for --max-seconds. Three rounds of several clients at
    once follow (--burst), which show how much processor time requests need on a busy machine. Writes a run
    directory that 'mup model' reads; after --changed together with the runs before it.

    With --for, or --width alone, those rounds are run that narrow these predictions most, until they are
    known to --width, as far as exploring can narrow them. The exit code is 1 if it can tell nothing about one
    of them.

    After Ctrl-C, what was observed is kept and shown, and --resume continues it.
    """
    stop_cleanly()
    import json
    from pathlib import Path

    from analyzer.calibration.explore import INTERRUPTED, ExploreSettings, explore
    from analyzer.calibration.question import check
    from analyzer.calibration.rounds import usual_burst
    from analyzer.calibration.rundir import latest_runs, load_info
    from analyzer.static import analyse_project
    from mup.cli.measurements.exploring import exploration_document, exploring, print_exploration
    from mup.cli.measurements.question_options import DEFAULT_WIDTH, question, share
    from mup.cli.options import check_share
    from mup.cli.output.display import console, reject_errors
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
    check_share(precision, "--precision")
    if precision is not None and (scenarios or width is not None):
        raise UsageError(
            "--precision and --for (or --width) exclude each other: one is about execution times, the other "
            "about predictions",
            hint="leave one of them out",
        )
    if full_width and (scenarios or width is not None):
        raise UsageError("--full-width belongs to --precision", hint="halve --width instead")
    wanted = None
    if scenarios or width is not None:
        wanted = question(scenarios, DEFAULT_WIDTH if width is None else share(width, "--width"))
    elif resume and precision is None and (before := load_info(Path(resume)).question) is not None:
        wanted = question(before.as_written, before.width)
    if burst is None:
        burst = usual_burst() if wanted is None else 0
    settings = ExploreSettings(
        width=0.01 if precision is None else precision,
        full_width=full_width,
        max_seconds=max_seconds,
        round_seconds=round_seconds,
        warmup_seconds=warmup,
        think_scale=think_scale,
        burst=burst,
        seed=seed,
    )
    loaded = load_project(project)
    application = analyse_project(loaded, remember=True)
    reject_errors(application)
    if wanted is not None:
        check(wanted, application, loaded)
    earlier = latest_runs(loaded.state / "runs") if changed else []
    ensure_profile(console(stderr=True), wanted=profile_first)
    with exploring(settings) as progress:
        directory = explore(
            loaded,
            application,
            settings,
            directory=Path(output) if output else None,
            resume=Path(resume) if resume else None,
            changed_since=earlier,
            question=wanted,
            progress=progress,
            serving=_compared(application),
        )
    info = load_info(directory)
    if as_json:
        click.echo(json.dumps({"run": str(directory), **exploration_document(info)}, indent=1))
    else:
        print_exploration(info)
        console().print(f"run directory: {directory}", soft_wrap=True)
    if info.stop == INTERRUPTED:
        return code()
    return 1 if info.question is not None and info.question.outcome == "refused" else 0


def _compared(application: Application) -> Callable[[Mapping[str, Collection[str]]], None]:
    """Return what says where services serve other endpoints than their source shows."""
    from mup.cli.services.serving import differences

    found = {one.name: [endpoint.path for endpoint in one.endpoints] for one in application.services}

    def compare(served: Mapping[str, Collection[str]]) -> None:
        for line in differences(found, served):
            click.echo(f"mup: {line}", err=True)

    return compare
