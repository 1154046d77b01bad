"""``mup fit``: parameter values that explain measurements, with their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mup.cli.learning.prometheus import RangeQueries, prometheus_options, write_measurements
from mup.cli.vocabulary import examples, option

if TYPE_CHECKING:
    from analyzer.fitting.fit import Fit
    from analyzer.fitting.forward import Settings


@click.command(epilog=examples("mup fit model.json data.csv --estimate demand.B/epB/,think"))
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@option(
    "--estimate",
    help="Parameters to fit, for example demand.B/epB/ or pool.B; start from START instead of the model's "
    "value; repeatable.",
)
@option("--bounds")
@option("--expert")
@option(
    "--predict",
    help="Also predict another configuration, for example clients=50,pool.B=4; repeatable.",
)
@option(
    "--simplify",
    help="Also fit a smaller model in which this task, and all that only it needs, is a pure delay; -o then "
    "writes that one.",
)
@option(
    "--versus",
    help="Also fit another structure; an F test tells whether the one with more parameters is better.",
)
@option(
    "--versus-estimate",
    help="Parameters of the other structure (of MODEL without --versus).",
    show_default="as --estimate",
)
@option("--candidate")
@option("--track")
@option(
    "--drift",
    default="auto",
    metavar="auto|FRACTION",
)
@option(
    "--learning-periods",
    "learn",
    old=("--learn",),
    default=20,
)
@option("--plot", help="With --track: also draw the parameters into this file.")
@prometheus_options
@option("--level", default=0.95)
@option(
    "--interval-method",
    "intervals",
    old=("--intervals",),
    default="auto",
    help="Method intervals are found with; 'auto' takes the profile of the sum of squares where "
    "linearisation fails.",
)
@option(
    "--correction/--no-correction",
    "correct",
    old=("--correct", "--no-correct"),
)
@option("--seed")
@option("--output", metavar="MODEL.json")
@option("--json")
def command(
    model: str,
    data: str,
    estimate: tuple[str, ...],
    bounds: tuple[str, ...],
    expert: tuple[str, ...],
    predict: tuple[str, ...],
    simplify: str | None,
    versus: str | None,
    versus_estimate: tuple[str, ...],
    candidate: tuple[str, ...],
    track: bool,
    drift: str,
    learn: int,
    plot: str | None,
    server: RangeQueries | None,
    level: float,
    intervals: str,
    correct: bool,
    seed: int,
    output: str | None,
    as_json: bool,
) -> int:
    """Fit parameters of MODEL to the measurements in DATA (.csv).

    DATA has one row per trial, or several of the same configuration: columns that set something (clients,
    think, pool.B, demand.B/epB/) and columns of measured means (response_time, throughput,
    tasks.B.utilization, entries.B/epB/.response_time), optionally with their 95 % half-widths
    (response_time.ci95). With --track, every row is a period, or the rows of equal 'period' are one; the exit
    code is 1 if the model stops explaining them. With --prometheus, DATA has a period per step.
    """
    import json

    from mup.cli.learning.fit_options import settings, wanted
    from mup.cli.options import check_picture, check_result, shown
    from mup.cli.sources import read_model_of
    from mup.errors import UsageError, did_you_mean
    from mup.lqn.files import format_of_output, write_model

    if output is not None:
        starts = ("{",) if format_of_output(output) == "json" else ("<",)
        check_result(output, starts, as_json=as_json)
    if not 0 < level < 1:
        raise UsageError(f"--level: must be between 0 and 1, got {level:g}")

    from analyzer.fitting.confidence import METHODS
    from analyzer.fitting.data import read_data
    from analyzer.fitting.design import experiments
    from analyzer.fitting.fit import Options, fit
    from analyzer.fitting.predictions import predict as predicted
    from analyzer.fitting.report import comparison, document, fitted_model, ranking
    from analyzer.fitting.structures import check_called, compare, kept, simplified

    if intervals not in METHODS:
        raise UsageError(f"--interval-method: no {intervals!r}; {did_you_mean(intervals, list(METHODS))}")
    if simplify is not None and (versus is not None or versus_estimate):
        raise UsageError(
            "--simplify and --versus exclude each other", hint="ask for one comparison at a time"
        )
    parameters = wanted(estimate, bounds, expert)
    if track:
        once = {
            "--predict": predict, "--simplify": simplify, "--versus": versus, "--candidate": candidate,
            "--versus-estimate": versus_estimate, "--interval-method": intervals != "auto",
        }  # fmt: skip
        for option, given in once.items():
            if given:
                raise UsageError(
                    f"--track takes no {option}: it follows parameters over time",
                    hint="write the model of the last period with -o, and go on with that",
                )
        check_picture(plot)
    elif drift != "auto" or learn != 20 or plot is not None:
        raise UsageError(
            "--drift, --learning-periods and --plot are about parameters over time", hint="say --track"
        )
    if server is not None:
        from analyzer.prometheus.tables import trial_role, trials
        from mup.cli.options import check_output

        check_output(data, starts=("period,",))
        write_measurements(data, trials(*server.answers(trial_role, None)))
    if track:
        from mup.cli.learning.fit_track import drift_of, follow

        per_period = drift_of(drift)
        return follow(
            read_model_of(model), data, parameters, drift=per_period, learn=learn, level=level,
            correct=correct, seed=seed, plot=plot, output=output, as_json=as_json,
        )  # fmt: skip
    second = wanted(versus_estimate, (), expert) if versus_estimate else parameters
    others = [settings(text, "--predict") for text in predict]
    further = [settings(text, "--candidate") for text in candidate]
    loaded = read_model_of(model)
    rival = read_model_of(versus) if versus is not None else loaded
    if simplify is not None:
        check_called(loaded, simplify)  # now, and not after a fit that may take minutes
    measured = read_data(data)
    if simplify is not None and (column := f"tasks.{simplify}.utilization") in measured.measures:
        raise UsageError(
            f"{column!r} is measured, and a delay has no utilization",
            where=data,
            hint="leave the column out, or begin its name with '#'",
        )
    options = Options(level=level, method=intervals, correct=correct, seed=seed)  # type: ignore[arg-type]
    found = fit(loaded, measured, parameters, options)
    figures = predicted(found, others, measured.measures, correct=correct, seed=seed) if others else []
    content = document(found, measured, list(zip(others, figures, strict=True)))
    content["experiments"] = ranking(found, experiments(found, further))
    written = found
    if simplify is not None:
        # Of the fitted model, for the one in the file may lack the very numbers that are fitted.
        rival, delays = simplified(found.model, simplify)
        second = [*kept(parameters, rival, simplify), *delays]
    if simplify is not None or versus is not None or versus_estimate:
        other = fit(rival, measured, second, options)
        content["versus"] = comparison(other, compare(found, other))
        written = other if simplify is not None else found
    if output is not None:
        write_model(fitted_model(written, data, seed), output)
    if as_json:
        click.echo(json.dumps(content, indent=1))
        return 0
    _show(found, others, content)
    if output is not None:
        click.echo(f"wrote {shown(output)}")
    return 0


def _show(found: Fit, others: list[Settings], content: dict[str, Any]) -> None:
    from mup.cli.output.display import console, say
    from mup.cli.output.figures import number, span
    from mup.cli.output.tables import print_table

    out = console()
    percent = f"{100 * content['level']:g} %"
    rows = []
    for path, p in content["parameters"].items():
        half = (p["high"] - p["low"]) / 2
        joint = span(*p["joint"])
        rows.append([path, number(p["value"], half), span(p["low"], p["high"]), joint, p["method"]])
    headings = ["parameter", "value", f"{percent} interval", "all at once", "found by"]
    print_table(out, "Fitted parameters", headings, rows, words=("found by",))
    for setting, prediction in zip(others, content["predictions"], strict=True):
        rows = [
            [
                name,
                number(p["mean"], (p["high"] - p["low"]) / 2),
                span(p["low"], p["high"]),
                span(*p["joint"]),
            ]
            for name, p in prediction["figures"].items()
        ]
        title = "Predicted with " + ", ".join(f"{s.path}={v:g}" for s, v in setting)
        print_table(out, title, ["figure", "mean", f"{percent} interval", "all at once"], rows)
    goodness = (
        ""
        if content["p_value"] is None
        else f"; residuals this large have probability {content['p_value']:.2g}"
    )
    say(
        out,
        f"E = {content['squares']:.4g} with {content['freedom']} degrees of freedom{goodness}; errors of "
        f"measurements: {SOURCES[content['errors']]}; {_solver(found)}",
    )
    if content["experiments"]:
        rows = [
            [", ".join(f"{k}={v:g}" for k, v in e["settings"].items()), f"{e['shrinkage']:.3f}"]
            + [f"{e['half_widths'][path]:.3g}" for path in e["half_widths"]]
            for e in content["experiments"]
        ]
        widths = [f"+- {path}" for path in content["experiments"][0]["half_widths"]]
        title = "Further trials, the most telling first (volume of the joint region relative to now)"
        print_table(out, title, ["trial", "volume", *widths], rows)
    if "versus" in content:
        _show_comparison(content["versus"])
    for warning in content["warnings"]:
        say(out, f"warning: {warning}")


def _show_comparison(versus: dict[str, Any]) -> None:
    from mup.cli.output.display import console, say
    from mup.cli.output.figures import number, span
    from mup.cli.output.tables import print_table

    out = console()
    rows = [
        [path, number(p["value"], (p["high"] - p["low"]) / 2), span(p["low"], p["high"]), p["method"]]
        for path, p in versus["parameters"].items()
    ]
    print_table(
        out, "The other structure", ["parameter", "value", "interval", "found by"], rows, words=("found by",)
    )
    test = versus["test"]
    if test["statistic"] is None:
        say(
            out,
            f"both structures have {test['parameters'][0]} parameters, so there is nothing to test: with the "
            f"same weights E is {test['squares'][0]:.4g} for the model and {test['squares'][1]:.4g} for the "
            "other; the smaller one explains more",
        )
    else:
        _show_test(test)
    for warning in versus["warnings"]:
        say(out, f"warning: of the other structure: {warning}")


def _show_test(test: dict[str, Any]) -> None:
    from mup.cli.output.display import console, say

    verdict = "explain more than chance would" if test["significant"] else "explain no more than chance would"
    statistic = test["statistic"] if isinstance(test["statistic"], str) else f"{test['statistic']:.3g}"
    say(
        console(),
        f"{test['parameters'][1]} parameters {verdict} compared with {test['parameters'][0]}: "
        f"E {test['squares'][1]:.4g} and {test['squares'][0]:.4g}, "
        f"F({test['freedom'][0]}, {test['freedom'][1]}) = {statistic}, p = {test['p_value']:.2g}"
        + (f"; of a mixture, for {', '.join(test['at_bound'])} at a bound" if test["at_bound"] else ""),
    )


SOURCES = {
    "rows": "from the scatter of rows of equal configuration",
    "stated": "as stated",
    "residuals": "taken from the residuals",
}


def _solver(found: Fit) -> str:
    if found.exact:
        return "exact solution"
    if found.corrections:
        return f"layered estimate, corrected by simulation ({found.corrections} rounds)"
    return "layered estimate, not corrected"
