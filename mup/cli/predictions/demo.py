"""``mup demo``: the whole way from source to validated predictions, on real services, in a folder to keep."""

from __future__ import annotations

from pathlib import Path

import click

from mup.cli.measurements.profiling import ensure_profile
from mup.cli.services.example_copy import copy_example
from mup.cli.stopping import stop_cleanly
from mup.cli.vocabulary import examples, option
from mup.errors import UsageError

STEPS = 6
WHATIF_POOLS = (2, 4, 8)
PICTURE = "predictions.svg"
"""Of the response times, predicted and measured."""


@click.command(epilog=examples("mup demo", "mup demo --clients 1,8 --duration 5 -o /tmp/demo"))
@option(
    "--clients",
    default="1,2,4,8,16,32",
    metavar="N[,N..]",
)
@option("--duration", default=12.0)
@option(
    "--max-seconds",
    "explore_seconds",
    old=("--explore-seconds",),
    default=60.0,
    help="Budget of the exploration in seconds of load.",
)
@option(
    "--precision",
    default=0.01,
    help="Relative 95 % half-width of predicted cycle response time and throughput, e.g. 0.01 for 1 %.",
)
@option("--seed")
@option("--output", default="mup-demo", metavar="FOLDER", help="Folder to create.")
@option("--profile-host/--no-profile-host", "profile_first", old=("--host", "--no-host"))
@option("--json")
def command(
    clients: str,
    duration: float,
    explore_seconds: float,
    precision: float,
    seed: int,
    output: str,
    profile_first: bool,
    as_json: bool,
) -> None:
    """Show the whole idea on a small translation service.

    Source code becomes a model, one user calibrates it, the model predicts many users, and a real load run
    shows how far off it is. The folder it writes is a project of its own. It takes about three minutes, and
    one more where the machine has to be measured first.
    """
    stop_cleanly()
    import json

    from analyzer.calibration.explore import INTERRUPTED, ExploreSettings, explore
    from analyzer.calibration.of_project import calibrate_project
    from analyzer.calibration.rounds import usual_burst
    from analyzer.calibration.rundir import load_run
    from analyzer.static import analyse_project
    from analyzer.validation import MeasureSettings, default_prediction_file, predict, speed_until
    from mup.cli.measurements.exploring import exploring
    from mup.cli.options import whole_numbers
    from mup.cli.output.display import console, reject_errors, say
    from mup.cli.output.figures import span
    from mup.cli.predictions.comparing import (
        comparison_document,
        comparison_warnings,
        headline,
        print_comparison,
        report_comparison,
        run_comparison,
    )
    from mup.cli.predictions.report import comparison_charts
    from mup.lqn import save_model
    from mup.lqn.drawing import draw
    from mup.project import load_project
    from simulator.studies.whatif import Change, grid

    # In JSON mode stdout carries the document alone; the story goes to stderr.
    out = console(stderr=as_json)
    loads = whole_numbers(clients, "--clients")
    if not duration > 0 or not explore_seconds > 0:
        raise UsageError("--duration and --explore-seconds must be > 0")
    folder = Path(output)

    def step(number: int, text: str) -> None:
        out.print(f"\n[bold]{number} of {STEPS}[/bold]  {text}")

    step(1, "the project: two services, a registry, a database, a client")
    prepare(folder)
    project = load_project(folder)
    out.print(f"  copied to {folder}; its code is yours to change", soft_wrap=True)

    step(2, "static analysis: what the source says (nothing is imported or run)")
    application = analyse_project(project)
    reject_errors(application)
    for endpoint in application.endpoints():
        many = len(endpoint.paths)
        out.print(f"  {endpoint.label}  {many} path{'s' * (many != 1)}  ({endpoint.file}:{endpoint.line})")

    step(3, f"exploration: one user against the real services, at most {explore_seconds:g} s")
    ensure_profile(out, wanted=profile_first)
    settings = ExploreSettings(
        max_seconds=explore_seconds,
        round_seconds=min(5.0, explore_seconds / 3),
        burst=usual_burst(),
        seed=seed,
    )
    with exploring(settings) as progress:
        directory = explore(project, application, settings, progress=progress)
    run = load_run(directory)
    if run.info.stop == INTERRUPTED:
        raise KeyboardInterrupt
    for label, width in sorted(run.info.widths.items()):
        half = "?" if width.half_width is None else f"{width.half_width / width.mean:.1%}"
        out.print(f"  {label}  {width.mean * 1e3:.2f} ms +- {half}  ({width.executions} executions)")

    step(4, "calibration: the numbers of the model come from the log")
    calibration = calibrate_project(project, run, application)
    model = calibration.model
    save_model(model, folder / "model.json")
    (folder / "model.svg").write_text(draw(model), encoding="utf-8")
    out.print(f"  covered {calibration.observed} of {calibration.paths} paths")
    for text in calibration.uncovered:
        say(out, f"never seen: {text}", indent="  ")
    for text in calibration.warnings:
        say(out, f"note: {text}", indent="  ")

    step(5, f"prediction, then reality: {clients} clients, {duration:g} s each")
    measured = MeasureSettings(duration=duration, seed=seed)
    prediction_file = default_prediction_file(project)
    known = speed_until(model, measured, len(loads))
    comparisons = run_comparison(
        project,
        model,
        grid(model, [tuple(Change("clients", "", n) for n in loads)]),
        measured,
        precision=precision,
        seed=seed,
        prediction_file=prediction_file,
        machine=known.machine,
    )
    print_comparison(out, comparisons)
    for note in known.notes:
        say(out, f"note: {note}", indent="  ")
    for warning in comparison_warnings(comparisons):
        say(out, f"note: {warning}", indent="  ")

    step(6, "what if? (predictions only)")
    bigger = grid(
        model,
        [(Change("clients", "", max(loads)),), tuple(Change("pool", "B", n) for n in WHATIF_POOLS)],
    )
    whatif = predict(
        bigger, measured.real_run, precision=max(precision, 0.02), seed=seed, machine=known.machine
    )
    for outcome in whatif:
        found = outcome.prediction
        between = (
            ""
            if found is None
            else f" ({span(found.response_time.low * 1e3, found.response_time.high * 1e3)})"
        )
        cycle = outcome.result.cycle
        out.print(
            f"  {outcome.scenario}: {cycle.response_time.mean * 1e3:.1f} ms{between},"
            f" {cycle.throughput.mean:.1f} /s"
        )
    report = folder / "report.html"
    report_comparison(
        report,
        title="Translator: predicted and measured",
        subtitle="Two services, a registry, a database and the load generator on one machine",
        model=model,
        comparisons=comparisons,
        whatif=whatif,
    )
    (folder / PICTURE).write_text(comparison_charts([c.to_json() for c in comparisons])[0], encoding="utf-8")
    out.print()
    for line in headline(comparisons):
        say(out, line)
    for path in (report, folder / PICTURE, folder / "model.svg", folder / "model.json"):
        out.print(f"  {path}", soft_wrap=True)
    out.print(f"next: cd {folder} && mup whatif model.json --clients 8,64 --pool B=2,6", soft_wrap=True)
    if as_json:
        document = comparison_document(comparisons, prediction_file)
        document["coverage"] = {"paths": calibration.paths, "observed": calibration.observed}
        document["files"] = {"report": str(report), "model": str(folder / "model.json")}
        click.echo(json.dumps(document, indent=1))


MARKER = ".mup-demo"


def prepare(folder: Path) -> None:
    """Copy the example into a new folder, or into one that an earlier demo made.

    Raises:
        UsageError: The folder holds something else, or cannot be written.
    """
    if folder.exists() and not (folder / MARKER).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "exists and was not made by 'mup demo'",
            where=str(folder),
            hint="choose another folder with --output",
        )
    copy_example("translator", folder, {MARKER: "made by 'mup demo'; safe to delete\n"})
