"""``mup model``: source and log in, calibrated model out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from analyzer.calibration.calibrate import Calibration
    from analyzer.calibration.one_user import Compared
    from mup.lqn import Model
    from mup.lqn.composition import Composition

MODEL_FILES = (".json", ".lqnx", ".xml")


@click.command(epilog=examples("mup model shop", "mup model shop --static -o sketch.json"))
@click.argument("project", default=".", type=click.Path())
@option(
    "--run",
    "logs",
    old=("--log",),
    show_default="the latest of the project",
    help="Run directory of 'mup explore' to read; several are merged, and each counts for what has not "
    "changed since; repeatable.",
)
@option("--static", "static_only")
@option("--partial")
@option("--client", show_default="the one that ran")
@option(
    "--host-profile",
    "host_file",
    old=("--host",),
    help="Profile of the machine of the run.",
    show_default="that of this machine",
)
@option(
    "--with",
    "stations",
    help="Put a station (a model with one task that serves) into the model, in place of a task, or at an"
    " activity such as A/epA/:comp_8 whose delay stood for it; repeatable.",
)
@option(
    "--output",
    show_default="PROJECT/model.json",
)
@option("--json")
def command(
    project: str,
    logs: tuple[str, ...],
    static_only: bool,
    partial: bool,
    client: str | None,
    host_file: str | None,
    stations: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> None:
    """Derive the layered queueing network of PROJECT.

    The structure comes from the source, the numbers from the log of 'mup explore'. Prints what the log
    covers; paths it never saw stay in the model with probability 0. With --static no log is needed, and
    PROJECT can be any folder of Python source, or one file. With --with it can also be a model file, which is
    not changed: name the composed model with --output.
    """
    import json

    from mup.cli.models.whole_endpoints import whole_endpoints
    from mup.cli.options import check_result, shown
    from mup.cli.output.display import console, say
    from mup.cli.sources import uncalibrated
    from mup.lqn import save_model
    from mup.lqn.statistics import statistics

    path = Path(output) if output else _beside(Path(project))
    base = _base(project, output, logs, static_only=static_only) if stations else None
    check_result(path, starts=("{",), as_json=as_json)
    parts = _stations(stations)
    calibration: Calibration | None = None
    if base is not None:
        model = base
    elif static_only:
        model = uncalibrated(Path(project), client)
    else:
        calibration = _calibrated(project, logs, partial=partial, client=client, host=host_file)
        model = calibration.model
    model, composed = _compose(model, parts)
    save_model(model, path)
    sizes = statistics(model).to_json()
    warnings = [
        *whole_endpoints(model),
        *(() if calibration is None else calibration.warnings),
        *_warnings(model, composed),
    ]
    if as_json:
        document: dict[str, Any] = {"model": str(path), "statistics": sizes}
        if composed:
            document["stations"] = [
                {"task": c.task, "served": dict(c.served), "dropped": list(c.dropped)} for c in composed
            ]
        if calibration is not None or warnings:
            document["warnings"] = warnings
        if calibration is not None:
            document["coverage"] = {
                c.label: {"paths": c.paths, "observed": c.observed, "executions": c.executions}
                for c in calibration.coverage
            }
            document["single_user"] = single_user(calibration)
            document["uncovered"] = list(calibration.uncovered)
        click.echo(json.dumps(document, indent=1))
        return
    out = console()
    if calibration is not None:
        out.print(f"covered {calibration.observed} of {calibration.paths} paths")
        for line in _one_user_lines(calibration):
            say(out, line)
        for text in calibration.uncovered:
            say(out, f"never seen: {text}", indent="  ")
    for text in warnings:
        say(out, f"warning: {text}", indent="  ")
    for each in composed:
        gone = (
            f"; removed with it, not being called any more: {', '.join(each.dropped)}" if each.dropped else ""
        )
        say(out, f"station: {each.task}{gone}")
    table3 = sizes["table3"]
    out.print(", ".join(f"{count} {what.replace('_', '-')}" for what, count in table3.items()))
    say(out, f"model: {shown(path)}")


def single_user(calibration: Calibration) -> dict[str, Any]:
    """Return what a cycle of one user took in the log and takes in the model, and what both were made of.

    The first two are means in seconds, of rounds with think times if there were any; None = unknown.
    """
    found = calibration.one_user
    cycles = [one for one in found.of_cycle() if one.clients == 1]
    return {
        "observed": cycles[-1].logged if cycles else None,
        "simulated": cycles[-1].simulated if cycles else None,
        "problem": found.problem,
        "figures": [one.to_json() for one in found.figures],
    }


def _one_user_lines(calibration: Calibration) -> list[str]:
    """Return one line per kind of rounds, or why there is none."""
    from analyzer.calibration.likely_reasons import ROUNDS, users

    found = calibration.one_user
    if found.problem:
        return [f"one user: not compared with the log ({found.problem})"]
    return [
        f"{users(mean)}, {ROUNDS[mean.kind]}: ms per cycle: {_both(mean)}"
        + "".join(f"; 95th percentile: {_both(c)}" for c in found.of_cycle("p95") if c.kind == mean.kind)
        for mean in found.of_cycle()
    ]


def _both(one: Compared) -> str:
    return (
        f"{_with_half(one.logged, one.logged_half)} in the log,"
        f" {_with_half(one.simulated, one.simulated_half)} in the model"
        f" ({_with_sign(one.difference, one.half_width)})"
    )


def _with_half(seconds: float, half: float | None) -> str:
    known = "" if half is None else f" +- {half * 1e3:.2g}"
    return f"{seconds * 1e3:.4g}{known}"


def _with_sign(part: float, half: float | None) -> str:
    known = "" if half is None else f" +- {half:.1%}"
    return f"{part:+.1%}{known}"


def _base(project: str, output: str | None, logs: tuple[str, ...], *, static_only: bool) -> Model | None:
    """Return the model file that stands in the place of a project; None if it is a project.

    Raises:
        UsageError: Options do not fit a model file.
        ModelError: The file is no model.
    """
    from mup.errors import UsageError
    from mup.lqn.files import read_model

    if Path(project).suffix.lower() not in MODEL_FILES:
        return None
    if logs or static_only:
        raise UsageError("a model file has its numbers: leave out --run and --static", where=project)
    if output is None:
        raise UsageError("which file is the composed model written to?", hint="name it with --output")
    return read_model(project)


def _stations(options: tuple[str, ...]) -> list[tuple[str, str, Model]]:
    """Return place, file and model of every station, read before anything takes time.

    Raises:
        UsageError: An option is not PLACE=FILE.
        ModelError: A file is no model.
    """
    from mup.errors import UsageError
    from mup.lqn.files import read_model

    found = []
    for text in options:
        # A place may be an activity, whose name can be anything; a file hardly has this sign in its name.
        place, _, file = text.rpartition("=")
        if not place or not file:
            raise UsageError(
                f"--with: must be PLACE=FILE, got {text!r}", hint="for example --with db=db.json"
            )
        found.append((place, file, read_model(file)))
    return found


def _compose(model: Model, parts: list[tuple[str, str, Model]]) -> tuple[Model, list[Composition]]:
    """Return the model with all stations in it, and what happened with each."""
    from mup.lqn.composition import compose

    composed = []
    for place, file, station in parts:
        composed.append(compose(model, place, station, file))
        model = composed[-1].model
    return model, composed


def _warnings(model: Model, composed: list[Composition]) -> list[str]:
    """Return what prediction intervals of a composed model will not contain."""
    from mup.lqn.composition import certain_tasks

    certain = certain_tasks(model) if composed else ()
    if not certain:
        return []
    text = (
        f"the uncertainty of the numbers of {', '.join(certain)} is unknown (no replicates): prediction"
        " intervals of 'mup whatif' take them as certain"
    )
    return [text]


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
    from mup.cli.output.display import reject_errors
    from mup.project import load_project

    loaded = load_project(project)
    application = analyse_project(loaded, remember=True)
    reject_errors(application)
    run = merge_runs(logs or latest_runs(loaded.state / "runs"), fingerprints(application))
    return calibrate_project(loaded, run, application, client=client, partial=partial, host=host)
