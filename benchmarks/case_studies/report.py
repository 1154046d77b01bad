"""What came out? Tables in Markdown beside the papers' figures, and pictures like Figs. 26 and 27."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from case_studies.applications import FAMILIES
from case_studies.judge import Judged, judge
from case_studies.store import FamilyFolder, StudyFolder, read_json, studies
from mup.cli.step_chart import StepPanel, draw_steps
from mup.errors import UsageError

__all__ = ["write_report"]


def write_report(results: Path, *, only: tuple[str, str] | None = None, output: Path | None = None) -> str:
    """Return all tables, as Markdown.

    Args:
        results: Folder of all studies.
        only: One study and family.
        output: Folder for ``results.md`` and a picture per study and family; None: none are written.

    Raises:
        UsageError: Nothing was measured yet, or the folder cannot be written.
    """
    parts: list[str] = []
    summary = [_row(*_SUMMARY), "|" + "---|" * len(_SUMMARY)]
    pictures: dict[str, str] = {}
    for study in studies(results):
        for name in FAMILIES:
            if only is not None and only != (study.path.name, name):
                continue
            found = _judged(study.family(name))
            if found:
                summary.append(_summary(study, name, found))
                parts.append(_table(study, name, found))
                pictures[f"{study.path.name}-{name}.svg"] = _picture(study, name, found)
    if not parts:
        raise UsageError(
            "nothing was measured yet", where=str(results), hint="'run' measures one family of an application"
        )
    text = "\n".join([*summary, "", _NOTES, "", *parts])
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
            (output / "results.md").write_text(text + "\n", encoding="utf-8")
            for file, drawn in pictures.items():
                (output / file).write_text(drawn, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write: {error.strerror}", where=str(output)) from error
    return text


_SUMMARY = (
    "study",
    "steps run",
    "cycle, max",
    "papers",
    "response, max",
    "utilization, max",
    "papers",
    "bottleneck right",
    "goals missed",
    "void",
)

_NOTES = """\
Errors are (predicted - measured) / measured; of utilization predicted - measured. *cycle*: with think time,
the papers' response time; *response*: without. *papers*: their largest error over all four applications
(cycle), or of the bottleneck's utilization in this one. A bottleneck is right if the service predicted to
be the most utilized was, or was within 0.03 of it. *goals*: cycle within 5 %, and within 1 % where every
service is below 0.5; response within 10 %, or 2 % of the cycle; utilization within 0.05; bottleneck right.
*void*: runs the machine disturbed, by the rules of `mup load`; their figures are counted, and each step
says how much of the machine others used (foreign) and withheld (stolen)."""


def _judged(folder: FamilyFolder) -> list[Judged]:
    if not folder.steps.exists():
        return []
    steps = read_json(folder.steps)["steps"]
    files = {step["step"]: folder.measured(step["step"]) for step in steps}
    return judge(steps, {number: read_json(file) for number, file in files.items() if file.exists()})


def _summary(study: StudyFolder, name: str, found: Sequence[Judged]) -> str:
    family = FAMILIES[name]
    application = study.path.name.rpartition("-")[0]
    steps = len(read_json(study.family(name).steps)["steps"])
    missed = sum(bool(judged.missed) for judged in found)
    busy = max(abs(error) for judged in found for error in judged.utilization.values())
    papers = family.papers_utilization
    cells = [
        f"{study.path.name} {name}",
        f"{len(found)} of {steps}",
        f"{max(abs(j.cycle) for j in found):.1%}",
        f"{family.papers_cycle:.1%}",
        f"{max(abs(j.response) for j in found):.1%}",
        f"{busy:.3f}",
        "-" if papers is None else f"{papers[application]:.2f}",
        f"{sum(j.bottleneck for j in found)} of {len(found)}",
        f"at {missed} steps",
        f"{sum(j.measured['disturbance']['void'] is not None for j in found)}",
    ]
    return _row(*cells)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _table(study: StudyFolder, name: str, found: Sequence[Judged]) -> str:
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
        "response s: predicted, measured",
        "error",
        *(f"{service}: predicted, measured" for service in services),
        "host",
        "stolen",
        "foreign",
        "missed",
    ]
    where = found[0].measured["circumstances"]
    warmups = [judged.step["warmup"] for judged in found]
    run = (
        f"{settings['settings']['database']}; windows of {stored['seconds']:g} s after {min(warmups):.1f} to"
        f" {max(warmups):.1f} s{think}; revision {where['revision']}, {where['cores']} cores;"
        f" run from {found[0].measured['created']} to {found[-1].measured['created']}."
    )
    return "\n".join(
        [
            f"## {settings['application']}, {name} ({FAMILIES[name].title}), mode `{settings['mode']}`",
            "",
            run,
            "",
            _row(*headings),
            "|" + "---|" * len(headings),
            *(_row(*_cells(judged, services)) for judged in found),
            "",
        ]
    )


def _cells(judged: Judged, services: Sequence[str]) -> Iterator[str]:
    step, seen = judged.step, judged.measured
    expected, measured, think = step["response_time"]["mean"], seen["response_time"]["mean"], seen["think"]
    yield f"{step['clients']}"
    yield " ".join(_threads(step["pools"][s], step["replicas"][s]) for s in services)
    yield f"{step['bottleneck']}{' (new)' if step['shifted'] else ''}"
    yield f"{expected + think:.3f}, {measured + think:.3f}"
    yield f"{judged.cycle:+.1%}"
    yield f"{expected:.3f}, {measured:.3f}"
    yield f"{judged.response:+.1%}"
    for service in services:
        share = seen["utilization"].get(service)
        yield f"{step['utilization'][service]['mean']:.2f}, {'?' if share is None else f'{share:.2f}'}"
    disturbance = seen["disturbance"]
    yield f"{seen['host']:.0%}"
    yield f"{disturbance['stolen']:.1%}"
    yield f"{disturbance['foreign']:.1%}"
    yield ", ".join(judged.missed) or "-"


def _threads(pool: int, replicas: int) -> str:
    return f"{pool}" if replicas == 1 else f"{pool}x{replicas}"


def _picture(study: StudyFolder, name: str, found: Sequence[Judged]) -> str:
    """Draw response times and errors over clients (W1), or the bottleneck's utilization over steps."""
    think = [judged.measured["think"] for judged in found]
    expected = [j.step["response_time"]["mean"] for j in found]
    measured = [j.measured["response_time"]["mean"] for j in found]
    cycle = StepPanel(
        "cycle, s",
        {
            "predicted": [r + z for r, z in zip(expected, think, strict=True)],
            "measured": [r + z for r, z in zip(measured, think, strict=True)],
        },
    )
    response = StepPanel("response, s", {"predicted": expected, "measured": measured})
    error = StepPanel("error of the cycle, %", {"error": [100 * j.cycle for j in found]})
    busy = StepPanel(
        "utilization of the bottleneck",
        {
            "predicted": [j.step["utilization"][j.step["bottleneck"]]["mean"] for j in found],
            "measured": [j.measured["utilization"][j.step["bottleneck"]] for j in found],
        },
        lines=(0.85,),
    )
    if name == "W1":
        names, x_label = [f"{j.step['clients']}" for j in found], "clients"
        panels = [cycle, response, error]
    else:
        names = [
            f"{j.step['clients']}-{j.step['pools'][b] * j.step['replicas'][b]}-{b}"
            for j in found
            for b in (j.step["bottleneck"],)
        ]
        x_label = "clients - threads of the bottleneck - bottleneck (grey: a new one)"
        panels = [busy, error, response]
    title = f"{study.path.name}: {FAMILIES[name].title} ({name})"
    return draw_steps(title, x_label, names, [j.step["shifted"] for j in found], panels)
