"""``mup validate``: predict, run for real, compare."""

from __future__ import annotations

import click

from mup.cli.stopping import stop_cleanly
from mup.cli.vocabulary import examples, option


@click.command(
    epilog=examples(
        "mup validate shop --clients 1,8", "mup validate shop --clients 8 --pool Stock=2 --report report.html"
    )
)
@click.argument("project", default=".", type=click.Path())
@option("--model", "model_file", show_default="PROJECT/model.json")
@option("--clients", default="1,2,4,8", metavar="N[,N..]")
@option("--pool", multiple=True)
@option("--replicas")
@option("--duration", default=20.0)
@option("--warmup", default=3.0)
@option("--repeats", default=3)
@option("--void-retries", "retries", old=("--retries",), default=1)
@option(
    "--measured-precision",
    "until_width",
    old=("--until-width",),
    help="Repeat until the 95 % half-width of the measured mean response time is this fraction of it.",
)
@option(
    "--max-seconds",
    default=60.0,
    help="With --measured-precision: budget in measured seconds per load.",
)
@option("--tolerance", default=0.25, help="Exit with 1 if the error of a mean response time is larger.")
@option("--speed-correction/--no-speed-correction")
@option(
    "--precision",
    default=0.01,
    help="Relative 95 % half-width of predicted cycle response time and throughput, e.g. 0.01 for 1 %.",
)
@option("--seed")
@option("--prediction", show_default="PROJECT/.mup/predictions/DATE.json")
@option("--report")
@option("--json")
def command(
    project: str,
    model_file: str | None,
    clients: str,
    pool: tuple[str, ...],
    replicas: tuple[str, ...],
    duration: float,
    warmup: float,
    repeats: int,
    retries: int,
    until_width: float | None,
    max_seconds: float,
    tolerance: float,
    speed_correction: bool,
    precision: float,
    seed: int,
    prediction: str | None,
    report: str | None,
    as_json: bool,
) -> None:
    """Compare PROJECT's model with reality at several loads.

    All predictions are made, and written to a file, before the first measurement.
    """
    stop_cleanly()
    import json
    import math
    from pathlib import Path

    from analyzer.calibration.rundir import stale_in_model
    from analyzer.static import analyse_project
    from analyzer.validation import (
        MeasureSettings,
        default_prediction_file,
        judged_error,
        speed_until,
        watched,
    )
    from mup.cli.measurements.profiling import report_host_warning
    from mup.cli.options import assignments, check_output, check_share, whole_numbers
    from mup.cli.output.display import console, reject_errors, say
    from mup.cli.predictions.comparing import (
        comparison_document,
        comparison_warnings,
        print_comparison,
        report_comparison,
        run_comparison,
    )
    from mup.cli.sources import read_model_of
    from mup.errors import ModelError, UsageError
    from mup.project import load_project
    from simulator.studies.whatif import Change, grid

    loaded = load_project(project)
    check_output(report)
    check_output(prediction, starts=("{",))
    if not 0 < duration < math.inf or not 0 <= warmup < math.inf or repeats < 1 or retries < 0:
        raise UsageError("--duration must be > 0, --warmup >= 0, --repeats >= 1 and --void-retries >= 0")
    check_share(until_width, "--measured-precision")
    if not tolerance >= 0:
        raise UsageError(f"--tolerance must be a fraction >= 0, got {tolerance!r}")
    axes = [tuple(Change("clients", "", n) for n in whole_numbers(clients, "--clients"))]
    axes += [(Change("pool", name, n),) for name, n in assignments(pool, "--pool").items()]
    axes += [(Change("replicas", name, n),) for name, n in assignments(replicas, "--replicas").items()]
    model = read_model_of(model_file or project)
    application = analyse_project(loaded)
    reject_errors(application)
    if stale := stale_in_model(model, application):
        raise ModelError(
            "the source has changed since the model was calibrated: "
            + "; ".join(f"{label} {why}" for label, why in sorted(stale.items())),
            where=str(model_file or loaded.root / "model.json"),
            hint="run 'mup explore' and 'mup model' again",
        )
    model = watched(model)
    settings = MeasureSettings(
        duration=duration,
        warmup=warmup,
        repeats=repeats,
        retries=retries,
        until_width=until_width,
        max_seconds=max_seconds,
        seed=seed,
    )
    scenarios = grid(model, axes)
    known = speed_until(model, settings, len(scenarios))
    prediction_file = Path(prediction) if prediction else default_prediction_file(loaded)
    comparisons = run_comparison(
        loaded,
        model,
        scenarios,
        settings,
        precision=precision,
        seed=seed,
        prediction_file=prediction_file,
        speed_correction=speed_correction,
        machine=known.machine,
    )
    worst = judged_error(comparisons)
    if report:
        report_comparison(
            Path(report),
            title=f"{loaded.name}: predicted and measured",
            subtitle=f"{duration:g} s per load, {repeats} run{'s' * (repeats > 1)} each",
            model=model,
            comparisons=comparisons,
        )
    if as_json:
        document = comparison_document(comparisons, prediction_file)
        click.echo(json.dumps({**document, "judged_error": worst, "tolerance": tolerance}, indent=1))
    else:
        out = console()
        print_comparison(out, comparisons)
        for note in known.notes:
            say(out, f"note: {note}")
        for warning in comparison_warnings(comparisons):
            say(out, f"note: {warning}")
        report_host_warning(out, model)
        verdict = "within" if worst <= tolerance else "beyond"
        kind = "corrected error" if any(c.corrected for c in comparisons) else "error"
        say(out, f"The largest {kind}, {worst:.1%}, is {verdict} the tolerance of {tolerance:.0%}.")
        say(out, f"predictions, as written before the first run: {prediction_file}")
    if worst > tolerance:
        raise SystemExit(1)
