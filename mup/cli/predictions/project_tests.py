"""What the pytest plugin asks of a project: does its model keep objectives, what did a change do?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mup.errors import UsageError

if TYPE_CHECKING:
    from analyzer.static.project_version import Difference
    from simulator.figures.result import Figure
    from simulator.studies.planning.slo import Slo

__all__ = ["broken", "changes_since", "missed"]

TAIL = 0.025
"""Probability on each side of a 95 % prediction interval."""
MAX_SECONDS = 600.0
BELOW = 0.001
"""Probabilities below this are not written as such."""


def missed(
    project: Path,
    *objectives: str,
    clients: int | None = None,
    arrivals: float | None = None,
    end: Literal["near", "far"] = "near",
    seconds: float = 60.0,
    seed: int = 0,
) -> list[str]:
    """Return what the calibrated model of a project says about the objectives that it misses.

    Args:
        project: A project that has a model, or a model file.
        objectives: As ``mup plan --slo`` takes them.
        clients: The load; that of the model if there are no arrivals either.
        arrivals: The load instead of clients: cycles begun per second.
        end: Which end of the 95 % prediction interval of a real run decides. ``near``: an objective is missed
            only if the whole interval is beyond its limit; ``far``: already if a part of it is.
        seconds: Length of the real run.
        seed: Of the simulation.

    Returns:
        One line for each that is missed.

    Raises:
        UsageError: There is no model, or an argument is wrong.
        ModelError, SimulationError: It cannot be simulated under this load.
    """
    from analyzer.host.machine_speed import machine_speed
    from mup.cli.predictions.plan_options import loads
    from mup.cli.predictions.plan_options import objectives as parsed
    from mup.cli.predictions.scenario_options import axes
    from mup.cli.sources import read_model_of
    from simulator.studies.planning.chance import outlook
    from simulator.studies.prediction import RealRun
    from simulator.studies.whatif import Scenario

    if not objectives:
        raise UsageError("no objective", hint="for example 'p95<=250ms'")
    if end not in ("near", "far"):
        raise UsageError(f"end must be 'near' or 'far', got {end!r}")
    if clients is not None and arrivals is not None:
        raise UsageError("clients and arrivals exclude each other")
    run = RealRun(seconds)
    model = read_model_of(project)
    given = {"clients": clients, "arrivals": arrivals}
    changes = loads(axes({name: (str(value),) for name, value in given.items() if value is not None}))
    for change in changes:
        model = change.apply(model)
    slos = parsed(model, objectives)
    known = machine_speed(model, seconds=run.total)
    ahead = outlook(
        Scenario(tuple(changes), model),
        slos,
        run,
        machine=known.machine,
        seed=seed,
        workers=1,
        max_seconds=MAX_SECONDS,
    )
    # An end of the interval is beyond the limit if that much probability or less is left on the other side.
    least = TAIL if end == "near" else 1 - TAIL
    rows = zip(slos, ahead.figures, ahead.probabilities, strict=True)
    return [_sentence(*row, seconds=seconds) for row in rows if row[2] < least]


def _sentence(slo: Slo, figure: Figure | None, probability: float, *, seconds: float) -> str:
    predicted = "nothing" if figure is None else f"{figure.mean * slo.factor:.4g} {slo.unit}"
    chance = f"less than {BELOW:.1%}" if probability < BELOW else f"{probability:.1%}"
    return (
        f"{slo}: predicted {predicted}; a real run of {seconds:g} s meets it with a probability of {chance}"
    )


def changes_since(base: str, project: Path, head: str | None = None) -> Sequence[Difference]:
    """Return what changed in meaning, as ``mup compare``.

    Args:
        base: A commit or a folder.
        project: The project's folder.
        head: The same; None = the folder as it is now.

    Raises:
        UsageError: One of the versions is not there, or cannot be analysed.
    """
    from mup.cli.models.compare import compared

    if head is None:
        return compared(base, str(project), "")
    return compared(base, head, str(project))


def broken(
    base: str,
    project: Path,
    head: str | None,
    *conditions: str,
    measure: bool = False,
    clients: int | None = None,
    arrivals: float | None = None,
    budget: float = 180.0,
    seed: int = 0,
) -> tuple[Sequence[Difference], list[str]]:
    """Return what changed in meaning, and the conditions that fail, each as a line.

    Args:
        base: A commit or a folder.
        project: The project's folder.
        head: The same as the base; None = the folder as it is now.
        conditions: As ``mup compare --fail-if`` takes them.
        measure: Whether both versions are started and measured; else the numbers are those of the base's
            model.
        clients: The load; that of the project if there are no arrivals either.
        arrivals: The load instead of clients: cycles begun per second.
        budget: Seconds of measuring.
        seed: Of clients and simulations.

    Raises:
        UsageError: An argument is wrong, or one of the versions is not there, cannot be analysed or does not
            start.
        ModelError, SimulationError: It cannot be simulated under this load.
    """
    from mup.cli.models.compare import effect_of_versions
    from mup.cli.models.effect_formats import condition_lines
    from mup.cli.models.effect_of_change import Question

    question = Question.of(
        measure=measure,
        budget=budget,
        fail_if=conditions,
        clients=None if clients is None else str(clients),
        arrivals=None if arrivals is None else str(arrivals),
        model=None,
        seed=seed,
    )
    if question is None:
        return changes_since(base, project, head), []
    sides = (base, str(project), "") if head is None else (base, head, str(project))
    found, effect = effect_of_versions(*sides, question)
    lines = zip(effect.judged, condition_lines(effect), strict=True)
    return found, [line for one, line in lines if one.fails]
