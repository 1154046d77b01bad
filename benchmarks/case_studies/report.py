"""Report: tables in Markdown beside the papers' figures, and pictures like Figs. 26 and 27."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from case_studies.applications import FAMILIES
from case_studies.judge import GOALS, Judged, judge, one_run
from case_studies.picture import picture
from case_studies.steps_table import row, steps_table
from case_studies.store import FamilyFolder, StudyFolder, read_json, studies
from mup.errors import UsageError

__all__ = ["write_report"]

TITLE = "# The case studies: what was measured"
"""Of the page that is written."""


def write_report(results: Path, *, only: tuple[str, str] | None = None, output: Path | None = None) -> str:
    """Return all tables, as Markdown.

    Args:
        results: Folder of all studies.
        only: One study and family.
        output: Folder for ``results.md``, a picture per study and family, and the figures behind them, in a
            folder of results of its own, ``measured``; None: nothing is written.

    Raises:
        UsageError: Nothing was measured yet, or the folder cannot be written.
    """
    parts: list[str] = []
    errors = [row(*_ERRORS), "|" + "---|" * len(_ERRORS)]
    goals = [row(*_GOALS), "|" + "---|" * len(_GOALS)]
    pictures: dict[str, str] = {}
    for study in studies(results):
        for name in FAMILIES:
            if only is not None and only != (study.path.name, name):
                continue
            found = _judged(study.family(name))
            if found:
                settings = read_json(study.study)
                what = f"{settings['application']} {name}, `{settings['mode']}`"
                steps = len(read_json(study.family(name).steps)["steps"])
                for kind, those in _kinds(found):
                    errors.append(row(what + kind, *_errors(settings["application"], name, those)))
                    goals.append(row(what + kind, f"{len(those)} of {steps}", *_met(those)))
                parts.append(steps_table(study, name, found))
                pictures[f"{study.path.name}-{name}.svg"] = picture(study, name, found)
    if not parts:
        raise UsageError(
            "nothing was measured yet", where=str(results), hint="'run' measures one family of an application"
        )
    text = "\n".join([*errors, "", *goals, "", _NOTES, "", *parts])
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
            (output / "results.md").write_text(f"{TITLE}\n\n{text}\n", encoding="utf-8")
            for file, drawn in pictures.items():
                (output / file).write_text(drawn, encoding="utf-8")
            for study in studies(results):
                _publish(study, StudyFolder(output / "measured" / study.path.name))
        except OSError as error:
            raise UsageError(f"cannot write: {error.strerror}", where=str(output)) from error
    return text


def _publish(study: StudyFolder, to: StudyFolder) -> None:
    """Copy what a report is made of: settings, predictions and what was seen, without logs and models."""
    if study.path.resolve() == to.path.resolve():
        return
    # Of another calibration.
    shutil.rmtree(to.path, ignore_errors=True)
    files = {study.study: to.study}
    for name in FAMILIES:
        family, copy = study.family(name), to.family(name)
        if family.steps.exists():
            files[family.steps] = copy.steps
            numbers = [step["step"] for step in read_json(family.steps)["steps"]]
            files |= {family.measured(number): copy.measured(number) for number in numbers}
            files |= {family.corrected(number): copy.corrected(number) for number in numbers}
    for file, copied in files.items():
        if file.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copied)


COUNTED = 0.1
"""Where chance moves the cycles per second of one run by more, too few were counted to compare them."""

_ERRORS = (
    "largest errors",
    "cycle",
    "papers",
    "response",
    "throughput",
    "utilization",
    "papers",
)

_GOALS = (
    "steps within the goals",
    "run",
    "cycle",
    "of these light",
    "response",
    "utilization",
    "bottleneck",
    "all goals",
    "all goals, without void steps",
    "all goals but for chance",
    "void",
    "failed cycles",
)

_NOTES = """\
Errors are (predicted - measured) / measured; of utilization predicted - measured. *cycle*: with think time,
the papers' response time; *response*: without; *throughput*: of steps at which chance moves it by at most
10 %. *papers*: their largest error over all four applications (cycle), or of the bottleneck's utilization in
this one. *chance*: how far a single run lands from the mean of all such runs, 19 times of 20, according to
the rehearsals that are the prediction; *but for chance*: no goal is missed by an error that is larger than
that, too. *Goals*: cycle within 5 %, and within 1 % at *light* steps, where
every service is predicted below 0.5; response within 10 %, or 2 % of the cycle; utilization within 0.05; the
service predicted to be the most utilized is, or is within 0.03 of it. *void*: steps all runs of which the
machine disturbed, by the rules of `mup load`; the same command runs them again, until one run is valid or
there were as many as its option "--void" says. Their figures are counted, and each step says how much of the
machine others used (foreign) and withheld (stolen). *runs*: steps that families have in common are run once,
for the family that is named. *failed cycles*: of those begun in windows; they are in no other figure. `wait`
and `cpu` are modes: the local work of services is a pause, or keeps a core busy. *corrected*: the step
predicted again for the *speed* the machine had in its run, relative to the exploration, by the monitor that
runs beside both; nothing else of the run is used, and `mup validate` corrects alike."""


def _judged(folder: FamilyFolder) -> list[Judged]:
    if not folder.steps.exists():
        return []
    steps = read_json(folder.steps)["steps"]
    numbers = [step["step"] for step in steps]
    measured, corrected = (
        {number: read_json(file(number)) for number in numbers if file(number).exists()}
        for file in (folder.measured, folder.corrected)
    )
    return judge(steps, measured, corrected)


def _kinds(found: Sequence[Judged]) -> Iterator[tuple[str, Sequence[Judged]]]:
    """Yield the steps as predicted, and as corrected if the speed is known of all."""
    yield "", found
    corrected = [judged.corrected for judged in found if judged.corrected is not None]
    if len(corrected) == len(found):
        yield ", corrected", corrected


def _errors(application: str, name: str, found: Sequence[Judged]) -> Iterator[str]:
    family = FAMILIES[name]
    papers = family.papers_utilization
    yield f"{max(abs(j.cycle) for j in found):.1%}"
    yield f"{family.papers_cycle:.1%}"
    yield f"{max(abs(j.response) for j in found):.1%}"
    counted = [j for j in found if one_run(j.step, "throughput") <= COUNTED]
    rates = [abs(j.throughput) for j in counted if j.throughput is not None]
    yield f"{max(rates):.1%}" if rates else "?"
    yield f"{max(abs(error) for j in found for error in j.utilization.values()):.3f}"
    yield "-" if papers is None else f"{papers[application]:.2f}"


def _met(found: Sequence[Judged]) -> Iterator[str]:
    """Yield at how many steps each goal is met, in the order of `_GOALS`."""

    def within(steps: Sequence[Judged], *goals: str) -> str:
        return f"{sum(not set(goals) & set(j.missed) for j in steps)} of {len(steps)}"

    for goal in GOALS:
        yield within(found, goal)
        if goal == "cycle":
            yield within([j for j in found if j.light], goal)
    yield within(found, *GOALS)
    yield within([j for j in found if not j.void], *GOALS)
    yield f"{sum(not j.missed_beyond_chance for j in found)} of {len(found)}"
    yield f"{sum(bool(j.void) for j in found)}"
    failed = sum(j.measured["failed"] for j in found)
    yield f"{failed} of {failed + sum(j.measured['cycles'] for j in found)}"
