"""Table of predictions and measurements of a family, one row per step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.calibration.placement import HOST
from case_studies.applications import FAMILIES
from case_studies.judge import Judged, one_run
from case_studies.store import StudyFolder, read_json

__all__ = ["row", "steps_table"]


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def steps_table(study: StudyFolder, name: str, found: Sequence[Judged]) -> str:
    """Return the table of a family, with its heading.

    Args:
        study: What it is of.
        name: Of the family.
        found: Its steps that were run, at least one.
    """
    settings = read_json(study.study)
    services = list(found[0].step["pools"])
    stored = read_json(study.family(name).steps)["settings"]
    think = "" if stored["think_scale"] == 1 else f", think times x {stored['think_scale']:g}"
    headings = [
        "clients",
        "threads",
        "bottleneck",
        "cycle s: predicted, measured",
        "error",
        "chance",
        "response s: predicted, measured",
        "error",
        "chance",
        "cycles/s: predicted, measured",
        "error",
        *(f"{service}: predicted, measured" for service in services),
        "host: predicted, measured",
        "stolen",
        "foreign",
        "missed",
        "speed",
        "corrected: cycle, response, utilization",
        "still missed",
        "runs",
    ]
    revisions = dict.fromkeys(judged.measured["circumstances"]["revision"] for judged in found)
    cores = found[0].measured["circumstances"]["cores"]
    warmups = [judged.step["warmup"] for judged in found]
    windows = [judged.step["seconds"] for judged in found]
    created = sorted(judged.measured["created"] for judged in found)
    run = (
        f"{settings['settings']['database']}; windows of {min(windows):g} to {max(windows):g} s after"
        f" {min(warmups):.1f} to {max(warmups):.1f} s{think}; revision {', '.join(revisions)}, {cores} cores;"
        f" run from {created[0]} to {created[-1]}."
    )
    return "\n".join(
        [
            f"## {settings['application']}, {name} ({FAMILIES[name].title}), mode `{settings['mode']}`",
            "",
            run,
            "",
            row(*headings),
            "|" + "---|" * len(headings),
            *(row(*_cells(judged, services)) for judged in found),
            "",
        ]
    )


def _cells(judged: Judged, services: Sequence[str]) -> Iterator[str]:
    step, seen = judged.step, judged.measured
    expected, measured, think = step["response_time"]["mean"], seen["response_time"]["mean"], seen["think"]
    yield f"{step['clients']}"
    yield " ".join(_threads(step["pools"][s], step["replicas"][s]) for s in services)
    yield _bottleneck(judged)
    yield f"{expected + think:.3f}, {measured + think:.3f}"
    yield f"{judged.cycle:+.1%}"
    yield f"{one_run(step, 'cycle_time'):.1%}"
    yield f"{expected:.3f}, {measured:.3f}"
    yield f"{judged.response:+.1%}"
    yield f"{one_run(step, 'response_time'):.1%}"
    yield f"{step['throughput']['mean']:.3g}, {seen['throughput']['mean']:.3g}"
    yield "?" if judged.throughput is None else f"{judged.throughput:+.1%}"
    for service in services:
        share = seen["utilization"].get(service)
        yield f"{step['utilization'][service]['mean']:.2f}, {'?' if share is None else f'{share:.2f}'}"
    disturbance = seen["disturbance"]
    host = step.get("processors", {}).get(HOST)
    yield f"{'?' if host is None else format(host['mean'], '.0%')}, {seen['host']:.0%}"
    yield f"{disturbance['stolen']:.1%}"
    yield f"{disturbance['foreign']:.1%}"
    yield ", ".join(judged.missed) or "-"
    yield from _corrected(judged)
    yield ", ".join(_runs(judged))


def _threads(pool: int, replicas: int) -> str:
    return f"{pool}" if replicas == 1 else f"{pool}x{replicas}"


def _bottleneck(judged: Judged) -> str:
    """Return the predicted one, in bold where it is another than before, and the real one if that differs."""
    name = judged.step["bottleneck"]
    text = f"**{name}** (new)" if judged.step["shifted"] else str(name)
    return text if judged.bottleneck else f"{text}, measured {judged.most_utilized}"


def _corrected(judged: Judged) -> Iterator[str]:
    """Yield the speed of the machine, the errors of what is predicted for it, and the goals these miss."""
    again = judged.corrected
    if judged.speed is None or again is None:
        yield from ("?", "?", "?")
        return
    yield f"{judged.speed:.2f}"
    yield f"{again.cycle:+.1%}, {again.response:+.1%}, {max(map(abs, again.utilization.values())):.3f}"
    yield ", ".join(again.missed) or "-"


def _runs(judged: Judged) -> Iterator[str]:
    """Yield how many runs there were, and what is to be said about them."""
    shared = judged.measured.get("of")
    yield f"{judged.measured['runs']}{f' for {shared}' if shared else ''}"
    if judged.void:
        yield "void"
    if judged.measured["failed"]:
        yield f"{judged.measured['failed']} cycles failed"
