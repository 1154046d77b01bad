"""Chart of predictions and real runs per family, like Figs. 26 and 27."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from case_studies.applications import FAMILIES
from case_studies.judge import CYCLE_GOAL, Judged
from case_studies.store import StudyFolder, read_json
from mup.cli.output.step_chart import StepPanel, draw_steps
from simulator.studies.autoscale import BOTTLENECK

__all__ = ["picture"]


def picture(study: StudyFolder, name: str, found: Sequence[Judged]) -> str:
    """Draw response times and errors over clients (W1), or the bottleneck's utilization over steps.

    Args:
        study: What it is of.
        name: Of the family.
        found: Its steps that were run, at least one.
    """
    think = [judged.measured["think"] for judged in found]
    sides = {"predicted": [judged.step for judged in found], "measured": [j.measured for j in found]}
    if all(judged.corrected is not None for judged in found):
        sides["corrected"] = [j.corrected.step for j in found if j.corrected is not None]
    times = {kind: [s["response_time"]["mean"] for s in steps] for kind, steps in sides.items()}
    cycle = StepPanel(
        "cycle, s",
        {kind: [r + z for r, z in zip(values, think, strict=True)] for kind, values in times.items()},
    )
    response = StepPanel("response, s", times)
    error = StepPanel(
        "error of the cycle, %",
        {"error": [100 * j.cycle for j in found]}
        | (
            {"corrected": [100 * j.corrected.cycle for j in found if j.corrected is not None]}
            if "corrected" in sides
            else {}
        ),
        lines=(-100 * CYCLE_GOAL, 100 * CYCLE_GOAL),
    )
    bottlenecks = [judged.step["bottleneck"] for judged in found]
    busy = StepPanel(
        "utilization of the bottleneck",
        {
            kind: [
                _mean(step["utilization"][service]) for step, service in zip(steps, bottlenecks, strict=True)
            ]
            for kind, steps in sides.items()
        },
        lines=(BOTTLENECK,),
    )
    if name == "W1":
        names, x_label = [f"{j.step['clients']}" for j in found], "clients (grey: a new bottleneck)"
        panels = [cycle, response, error]
    else:
        names = [
            f"{j.step['clients']}-{j.step['pools'][b] * j.step['replicas'][b]}-{b}"
            for j in found
            for b in (j.step["bottleneck"],)
        ]
        x_label = "clients - threads of the bottleneck - bottleneck (grey: a new one)"
        panels = [busy, error, response]
    settings = read_json(study.study)
    title = f"{settings['application']}, mode {settings['mode']}: {FAMILIES[name].title} ({name})"
    names = [f"{text}{' (void)' if j.void else ''}" for text, j in zip(names, found, strict=True)]
    return draw_steps(title, x_label, names, [j.step["shifted"] for j in found], panels)


def _mean(figure: Any) -> float | None:
    """Return a measured figure, if there is one, or the mean of a predicted one."""
    return figure["mean"] if isinstance(figure, Mapping) else figure
