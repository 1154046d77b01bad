"""How do predictions and real runs compare, step by step? An SVG per family, like Figs. 26 and 27."""

from __future__ import annotations

from collections.abc import Sequence

from case_studies.applications import FAMILIES
from case_studies.judge import CYCLE_GOAL, Judged
from case_studies.store import StudyFolder, read_json
from mup.cli.step_chart import StepPanel, draw_steps
from simulator.autoscale import BOTTLENECK

__all__ = ["picture"]


def picture(study: StudyFolder, name: str, found: Sequence[Judged]) -> str:
    """Draw response times and errors over clients (W1), or the bottleneck's utilization over steps.

    Args:
        study: What it is of.
        name: Of the family.
        found: Its steps that were run, at least one.
    """
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
    error = StepPanel(
        "error of the cycle, %",
        {"error": [100 * j.cycle for j in found]},
        lines=(-100 * CYCLE_GOAL, 100 * CYCLE_GOAL),
    )
    busy = StepPanel(
        "utilization of the bottleneck",
        {
            "predicted": [j.step["utilization"][j.step["bottleneck"]]["mean"] for j in found],
            "measured": [j.measured["utilization"][j.step["bottleneck"]] for j in found],
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
