"""Run a comparison with progress, print its table, and write its report: for ``validate`` and ``demo``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mup.cli.output.display import console, percent, say
from mup.cli.output.figures import interval, number, plain, span
from mup.cli.output.tables import print_table
from mup.cli.predictions.machine_speeds import mostly_the_machine
from mup.cli.predictions.report import Report, comparison_charts, write_report

if TYPE_CHECKING:
    from rich.console import Console

    from analyzer.validation import Comparison, Judgement, MeasureSettings
    from mup.lqn import Model
    from mup.lqn.machine_speed import MachineSpeed
    from mup.project import Project
    from simulator.studies.grids import Outcome
    from simulator.studies.prediction import Interval
    from simulator.studies.whatif import Scenario

__all__ = [
    "comparison_document",
    "comparison_warnings",
    "headline",
    "print_comparison",
    "report_comparison",
    "run_comparison",
    "speed_text",
]

BETWEEN, INSIDE = "95 % interval", "inside"
AGAIN, AGAIN_BETWEEN = "corrected", "its 95 % interval"
"""Headings."""

TABLE_NOTE = (
    "Response times in milliseconds per client cycle, think time excluded. +- is the 95 % half-width of the"
    " measurement itself. Error = (predicted - measured) / measured; of busy workers, predicted - measured."
    " Inside: whether the measured figure lies in the 95 % prediction interval."
)
CORRECTED_NOTE = (
    " Corrected: predicted again for the speed the machine had while it was measured; what is inside then"
    " stands in brackets if it is something else. The first interval allows for any speed of the machine,"
    " that of the corrected prediction for how well its speed was measured."
)


def run_comparison(
    project: Project,
    model: Model,
    scenarios: Sequence[Scenario],
    settings: MeasureSettings,
    *,
    precision: float,
    seed: int,
    prediction_file: Path,
    speed_correction: bool = True,
    machine: MachineSpeed | None = None,
) -> list[Comparison]:
    """Predict all scenarios, write that down, then measure each, showing progress on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from analyzer.validation import compare, correct, measure, predict, save_predictions

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    out = console(stderr=True)
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bars:
        bar = bars.add_task("predicting", total=None)

        def predicted(done: int, total: int) -> None:
            bars.update(bar, completed=done, total=total)

        outcomes = predict(
            scenarios,
            settings.real_run,
            precision=precision,
            seed=seed,
            machine=machine,
            progress=predicted,
        )
        save_predictions(prediction_file, project, model, outcomes)
        bar = bars.add_task("measuring", total=len(scenarios))
        comparisons = []
        for scenario, outcome in zip(scenarios, outcomes, strict=True):

            def say(text: str, scenario: Scenario = scenario) -> None:
                bars.update(bar, description=f"measuring {scenario}: {text}")

            comparisons.append(compare(outcome, measure(project, scenario, settings, say)))
            bars.advance(bar)
        if not speed_correction:
            return comparisons
        bar = bars.add_task("correcting for the machine's speed", total=None)
        return correct(comparisons, settings.real_run, precision=precision, seed=seed, progress=predicted)


def comparison_document(comparisons: Sequence[Comparison], prediction_file: Path) -> dict[str, Any]:
    """Return the document of ``validate --json`` and ``demo --json``."""
    from analyzer.validation import max_abs_error

    corrected = any(c.corrected for c in comparisons)
    return {
        "scenarios": [c.to_json() for c in comparisons],
        "max_abs_error": max_abs_error(comparisons),
        "corrected_max_abs_error": max_abs_error(comparisons, corrected=True) if corrected else None,
        "prediction_file": str(prediction_file),
    }


def _columns(comparisons: Sequence[Comparison]) -> list[str]:
    corrected = [AGAIN, AGAIN_BETWEEN] if any(c.corrected for c in comparisons) else []
    return ["scenario", "figure", "predicted", BETWEEN, "measured", "error", *corrected, INSIDE]


def _rows(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """Return one row per scenario and figure."""
    corrected = any(c.corrected for c in comparisons)
    rows = []
    for c in comparisons:
        raw = c.raw
        found = raw.prediction
        again = None if c.corrected is None else c.corrected.prediction
        names = [
            ("response_time", "response ms", 1e3),
            ("p95", "p95 ms", 1e3),
            ("throughput", "per second", 1.0),
        ]
        for name, label, factor in names:
            measured = getattr(raw.measured, name)
            between = None if found is None else getattr(found, name)
            rows.append(
                [
                    str(c.scenario) if name == "response_time" else "",
                    label,
                    _mean(getattr(raw.predicted, name).mean * factor, between, factor),
                    _between(between, factor),
                    interval(measured.to_json(), factor),
                    percent(raw.error(name)),
                    *(
                        [
                            percent(None if c.corrected is None else c.corrected.error(name)),
                            _between(None if again is None else getattr(again, name), factor),
                        ]
                        if corrected
                        else []
                    ),
                    _inside(raw.inside[name], c.corrected, name),
                ]
            )
        for task, error in raw.utilization_errors.items():
            measured = raw.measured.utilization[task]
            predicted = raw.predicted.utilization[task]
            if predicted is None or measured is None:
                continue
            between = None if found is None else found.utilization.get(task)
            error_again = "-" if c.corrected is None else _share_error(c.corrected.utilization_errors[task])
            busy_again = None if again is None else again.utilization.get(task)
            rows.append(
                [
                    "",
                    f"{task} busy",
                    f"{predicted.mean:.3f}",
                    _between(between, 1.0),
                    f"{measured.mean:.3f}" if not measured.ci95 else interval(measured.to_json()),
                    _share_error(error),
                    *([error_again, _between(busy_again, 1.0)] if corrected else []),
                    _inside(raw.inside["utilization"].get(task), None, task),
                ]
            )
    return rows


def _share_error(error: float) -> str:
    """Return the error of a utilization; no sign where nothing is left of it."""
    text = f"{error:+.3f}"
    return text if float(text) else "0.000"


def _mean(value: float, between: Interval | None, factor: float) -> str:
    return plain(value) if between is None else number(value, between.half_width * factor)


def _between(found: Interval | None, factor: float) -> str:
    return "-" if found is None else span(found.low * factor, found.high * factor)


def _inside(raw: bool | None, corrected: Judgement | None, name: str) -> str:
    """Return whether a measurement is inside, and what correction makes of that if it is something else."""
    if raw is None:
        return "-"
    text = "yes" if raw else "no"
    again = None if corrected is None else corrected.inside[name]
    return text if again is None or again == raw else f"{text} ({'yes' if again else 'no'})"


def print_comparison(out: Console, comparisons: Sequence[Comparison]) -> None:
    """Print the errors, one row per scenario and figure, and what they come to."""
    columns = _columns(comparisons)
    print_table(
        out,
        "",
        columns,
        _rows(comparisons),
        texts=2,
        words=(INSIDE,),
        spare=(AGAIN_BETWEEN, BETWEEN),
        more="--report",
    )
    say(out, _note(comparisons))
    out.print()
    for line in headline(comparisons):
        say(out, line)


def headline(comparisons: Sequence[Comparison]) -> list[str]:
    """Say how far off the mean response times are: as predicted, and corrected for the machine's speed.

    Void measurements are left out, unless all are void.
    """
    from analyzer.validation import max_abs_error

    valid = [c for c in comparisons if not c.void] or list(comparisons)
    left_out = len(comparisons) - len(valid)
    raw = max_abs_error(valid)
    lines = [f"Largest error of a mean response time, as predicted: {raw['response_time']:.1%}."]
    if any(c.corrected for c in valid):
        corrected = max_abs_error(valid, corrected=True)
        lines.append(
            f"Corrected for the machine's speed ({speed_text(valid)}): {corrected['response_time']:.1%}."
        )
    inside = _inside_text(valid)
    if inside:
        lines.append(inside)
    if text := mostly_the_machine(c.raw.prediction for c in valid):
        lines.append(text)
    if all(c.void for c in comparisons):
        lines.append("Every measurement is void: errors of a disturbed machine say little about the model.")
    if left_out:
        lines.append(f"{left_out} void measurement{'s are' if left_out > 1 else ' is'} left out of this.")
    return lines


def _inside_text(comparisons: Sequence[Comparison]) -> str:
    """Say how many measured mean response times lie in the interval that was predicted."""
    raw = [c.raw.inside["response_time"] for c in comparisons]
    known = [i for i in raw if i is not None]
    if not known:
        return ""
    text = f"{sum(known)} of {len(known)} measured mean response times lie in their 95 % prediction interval"
    again = [i for c in comparisons if (i := c.best.inside["response_time"]) is not None]
    if sum(again) != sum(known):
        text += f", and {sum(again)} in that of the corrected prediction"
    return text + "."


def speed_text(comparisons: Sequence[Comparison]) -> str:
    """Say how fast the machine was while it was measured, compared with the exploratory run."""
    changes = [c.speed - 1 for c in comparisons if c.speed is not None]
    low, high = min(changes), max(changes)
    if round(100 * low) == round(100 * high) == 0:
        return "the same as in the exploratory run"
    if low < 0 < high and round(100 * low) and round(100 * high):
        return f"between {-low:.0%} slower and {high:.0%} faster than in the exploratory run"
    which = "faster" if low + high > 0 else "slower"
    ends = sorted({round(100 * abs(low)), round(100 * abs(high))})
    return f"{' to '.join(map(str, ends))} % {which} than in the exploratory run"


def _note(comparisons: Sequence[Comparison]) -> str:
    return TABLE_NOTE + (CORRECTED_NOTE if any(c.corrected for c in comparisons) else "")


FOREIGN_LIMIT = 0.02
SPEED_LIMIT = 0.04
"""Difference of the machine's speed from the calibration that is worth a note."""


def comparison_warnings(comparisons: Sequence[Comparison]) -> list[str]:
    """Return what disturbed the measurements, one sentence each."""
    found = []
    disturbed = {str(c.scenario): c.foreign_cpu for c in comparisons if c.foreign_cpu > FOREIGN_LIMIT}
    if disturbed:
        found.append(
            f"other programs used up to {max(disturbed.values()):.0%} of the machine while it was measured"
            f" ({', '.join(disturbed)}): errors there say little about the model"
        )
    moved = {str(c.scenario): c.speed for c in comparisons if c.speed and abs(c.speed - 1) > SPEED_LIMIT}
    if moved:
        speeds = ", ".join(
            f"{name}: {abs(speed - 1):.0%} {'faster' if speed > 1 else 'slower'}"
            for name, speed in moved.items()
        )
        found.append(f"the machine had another speed than when the model was calibrated ({speeds})")
    for c in comparisons:
        found += [f"{c.scenario}: {text}" for text in c.warnings]
    return found


def report_comparison(
    path: Path,
    *,
    title: str,
    subtitle: str,
    model: Model,
    comparisons: Sequence[Comparison],
    whatif: Sequence[Outcome] = (),
) -> None:
    """Write the HTML report of a comparison, with the model's picture and where its numbers come from."""
    from mup.lqn.drawing import draw, is_drawable

    provenance = model.provenance
    coverage = provenance.get("coverage", {})
    paths = sum(c["paths"] for c in coverage.values())
    observed = sum(c["observed"] for c in coverage.values())
    processor = {p.name: f"{p.cores:g} cores, {p.discipline}" for p in model.processors}
    write_report(
        Report(
            title=title,
            subtitle=subtitle,
            summary=_summary(comparisons),
            charts=comparison_charts([c.to_json() for c in comparisons]),
            columns=_columns(comparisons),
            rows=_rows(comparisons),
            table_note=_note(comparisons),
            coverage=f"The exploratory run covered {observed} of {paths} execution paths in the source.",
            uncovered=provenance.get("uncovered", ()),
            warnings=[*provenance.get("warnings", ()), *comparison_warnings(comparisons)],
            model_svg=draw(model) if is_drawable(model) else "",
            whatif_text=(
                "Nothing below was run: these are predictions of other deployments from the same model."
                if whatif
                else ""
            ),
            whatif_columns=("change", "response time ms", "throughput 1/s", "bottleneck"),
            whatif_rows=[_whatif_row(outcome) for outcome in whatif],
            facts=[
                ("machine", str(provenance.get("machine", "?"))),
                ("processors", "; ".join(f"{name}: {text}" for name, text in processor.items())),
                (
                    "calibrated from",
                    f"{provenance.get('run')}, {provenance.get('observed_seconds')} s observed",
                ),
                ("exploration stopped because", str(provenance.get("stop", "?"))),
                ("mup", str(provenance.get("mup", "?"))),
                ("Python", str(provenance.get("python", "?"))),
            ],
        ),
        path,
    )


def _summary(comparisons: Sequence[Comparison]) -> str:
    """Say first what was predicted and how far off it was, then what explains part of that."""
    from analyzer.validation import max_abs_error

    loads = f"{len(comparisons)} load{'s' if len(comparisons) > 1 else ''}"
    best = max_abs_error([c for c in comparisons if not c.void] or comparisons, corrected=True)
    kind = " (corrected)" if any(c.corrected for c in comparisons) else ""
    others = (
        f"Throughput is off by at most {best['throughput']:.1%}, the utilization of a service by at most"
        f" {best['utilization']:.3f}{kind}."
    )
    return " ".join([f"Calibrated from one user, then checked at {loads}.", *headline(comparisons), others])


def _whatif_row(outcome: Outcome) -> list[str]:
    from simulator.studies.whatif import bottleneck

    cycle, limit = outcome.result.cycle, bottleneck(outcome.scenario.model, outcome.result)
    time, rate = f"{cycle.response_time.mean * 1e3:.4g}", f"{cycle.throughput.mean:.4g}"
    if outcome.prediction is not None:
        time += f" ({_between(outcome.prediction.response_time, 1e3)})"
        rate += f" ({_between(outcome.prediction.throughput, 1.0)})"
    return [str(outcome.scenario), time, rate, "-" if limit is None else f"{limit[0]} {limit[1].mean:.0%}"]
