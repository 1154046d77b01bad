"""``mup model``: source and log in, calibrated model out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from analyzer.calibration.calibrate import Calibration


@click.command()
@click.argument("project", default=".", type=click.Path())
@click.option(
    "--log",
    "logs",
    multiple=True,
    type=click.Path(),
    help="Run directory (default: the latest of the project). Several are merged; each counts for what has"
    " not changed since.",
)
@click.option("--static", "static_only", is_flag=True, help="Uncalibrated: only what the source says.")
@click.option("--partial", is_flag=True, help="Leave endpoints that changed since the log uncalibrated.")
@click.option("--client", help="Client class that becomes the reference task (default: the one that ran).")
@click.option(
    "--host", "host_file", type=click.Path(), help="Profile of the machine of the log (default: of this one)."
)
@click.option("-o", "--output", type=click.Path(), help="Model file (default: PROJECT/model.json).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    project: str,
    logs: tuple[str, ...],
    static_only: bool,
    partial: bool,
    client: str | None,
    host_file: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Derive the layered queueing network of PROJECT.

    The structure comes from the source, the numbers from the log of 'mup explore'. Prints what the log
    covers; paths it never saw stay in the model with probability 0. With --static no log is needed, and
    PROJECT can be any folder of Python source, or one file.
    """
    import json

    from mup.cli.display import console
    from mup.cli.options import check_output
    from mup.cli.sources import uncalibrated
    from mup.lqn import save_model
    from mup.lqn.statistics import statistics

    path = Path(output) if output else _beside(Path(project))
    check_output(path, starts=("{",))
    calibration: Calibration | None = None
    if static_only:
        model = uncalibrated(Path(project), client)
    else:
        calibration = _calibrated(project, logs, partial=partial, client=client, host=host_file)
        model = calibration.model
    save_model(model, path)
    sizes = statistics(model).to_json()
    if as_json:
        document = {"model": str(path), "statistics": sizes}
        if calibration is not None:
            document["coverage"] = {
                c.label: {"paths": c.paths, "observed": c.observed, "executions": c.executions}
                for c in calibration.coverage
            }
            document["uncovered"] = list(calibration.uncovered)
            document["warnings"] = list(calibration.warnings)
        click.echo(json.dumps(document, indent=1))
        return
    out = console()
    if calibration is not None:
        out.print(f"covered {calibration.observed} of {calibration.paths} paths")
        for text in calibration.uncovered:
            out.print(f"  never seen: {text}", soft_wrap=True, highlight=False)
        for text in calibration.warnings:
            out.print(f"  warning: {text}", soft_wrap=True, highlight=False)
    table3 = sizes["table3"]
    out.print(", ".join(f"{count} {what.replace('_', '-')}" for what, count in table3.items()))
    out.print(f"model: {path}", soft_wrap=True)


def _beside(project: Path) -> Path:
    """Return where the model of a project, source folder or file goes."""
    if project.suffix == ".toml":
        return project.with_name("model.json")
    return project.with_suffix(".json") if project.suffix == ".py" else project / "model.json"


def _calibrated(
    project: str, logs: tuple[str, ...], *, partial: bool, client: str | None, host: str | None
) -> Calibration:
    from analyzer.calibration.of_project import calibrate_project
    from analyzer.calibration.rundir import fingerprints, latest_runs, merge_runs
    from analyzer.static import analyse_project
    from mup.cli.display import reject_errors
    from mup.project import load_project

    loaded = load_project(project)
    application = analyse_project(loaded, remember=True)
    reject_errors(application)
    run = merge_runs(logs or latest_runs(loaded.state / "runs"), fingerprints(application))
    return calibrate_project(loaded, run, application, client=client, partial=partial, host=host)
