"""Run a grid of scenarios: each model once, here or elsewhere, within a limit of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mup.errors import LimitError, SimulationError, UnfinishedError
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.model import Model, Task
from simulator.api import DEFAULT_PRECISION, compiled
from simulator.machine.budget import Budget, Reached
from simulator.studies.grids.here import run_here
from simulator.studies.grids.outcome import Outcome
from simulator.studies.grids.scenario_study import Found, OnResult, ScenarioStudy, Wanted, named
from simulator.studies.prediction import RealRun
from simulator.studies.whatif import Scenario

if TYPE_CHECKING:
    from simulator.studies.grids.elsewhere import Executor

__all__ = ["MAX_SECONDS", "run_scenarios"]

MAX_SECONDS: Final = 3600.0
"""Wall time of a grid of scenarios unless it says otherwise."""
CHECKED: Final = 64
"""Scenarios that are compiled before anything is simulated: a grid of which none can run is refused at once.
More than that take long, and would not be remembered until they are simulated."""


def run_scenarios(
    scenarios: Sequence[Scenario],
    *,
    precision: float = DEFAULT_PRECISION,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    differences: bool = True,
    limits: bool = True,
    run: RealRun | None = None,
    machine: MachineSpeed | None = None,
    max_seconds: float = MAX_SECONDS,
    progress: Callable[[int, int], None] | None = None,
    on_result: OnResult | None = None,
) -> list[Outcome]:
    """Simulate scenarios with the same seed; the first one is the baseline.

    Results depend neither on the number of workers nor on the executor, unless the limit of wall time is
    reached.

    Args:
        scenarios: The baseline and its changes.
        precision: Relative half-width of cycle response time and throughput to reach.
        seed: Of every scenario.
        workers: Simulations at once on this machine; default: as many as cores.
        executor: Where whole scenarios are simulated instead, with the interface of ``concurrent.futures``:
            processes, or other machines. mup has to be importable there, and the same.
        differences: Also estimate every scenario's difference to the baseline: by the two results where they
            know it to 5 %, else by paired replications too, until the sign of the change or 5 % of it is
            known, or the half-width is ``precision`` times the baseline's figure, or they have taken as long
            as the scenario itself.
        limits: Also find what saturates first in each model.
        run: Also say where this real run of each scenario would land, with the uncertainty of the first one's
            model.
        machine: How fast its machine may be during the real run; None if nothing is known about that.
        max_seconds: Wall time of everything together. What is finished then is returned; scenarios of which
            there is nothing are left out.
        progress: Called with (finished, all so far) simulations, with an executor scenarios; equal models are
            one.
        on_result: Called with every scenario and its result as soon as there is one.

    Raises:
        UsageError, UncalibratedError, SimulationError: As ``simulate``, of the baseline, or where none of its
            changes can be simulated; the message names the scenario.
        LimitError: There is not even a result of the first scenario.
        UnfinishedError: Some scenarios cannot be simulated, or the executor failed; it has the outcomes of
            the others, or those that were finished.
    """
    budget = Budget("the grid of scenarios", seconds=max_seconds)
    _refuse_at_once(scenarios)
    distinct, place = _distinct(scenarios)
    wanted = Wanted(
        precision=precision, seed=seed, differences=differences, limits=limits, run=run, machine=machine
    )
    failed: UnfinishedError | None = None
    if executor is None:
        study = ScenarioStudy(distinct[0], wanted, budget)
        every = (
            study.rounds(each, own=not number, on_result=on_result) for number, each in enumerate(distinct)
        )
        found = run_here(every, workers, progress)
    else:
        # Imported here: few grids need what it imports.
        from simulator.studies.grids.elsewhere import run_elsewhere  # noqa: PLC0415

        found, failed = run_elsewhere(executor, distinct, wanted, budget, max_seconds, progress, on_result)
    outcomes = _outcomes(scenarios, place, found, budget, complete=failed is None)
    failed = failed or _impossible(scenarios, place, found)
    if failed is not None:
        failed.outcomes = tuple(outcomes)
        raise failed
    return outcomes


def _outcomes(
    scenarios: Sequence[Scenario],
    place: Sequence[int],
    found: dict[int, Found],
    budget: Budget,
    *,
    complete: bool,
) -> list[Outcome]:
    """Return what is known about scenarios, in their order.

    Args:
        scenarios: All of them.
        place: Which of the distinct ones each is.
        found: What is known about these.
        budget: Of all of them.
        complete: Nothing has failed.
    """
    if complete and isinstance(found[0].result, LimitError):
        raise found[0].result
    lost: list[Reached] = []
    outcomes: list[Outcome] = []
    for scenario, number in zip(scenarios, place, strict=True):
        each = found.get(number)
        if each is None:
            continue
        if isinstance(each.result, LimitError):
            lost.append(replace(each.result.reached, study=f"the simulation of '{scenario}'"))
            continue
        if isinstance(each.result, SimulationError):
            continue
        outcomes.append(
            Outcome(scenario, each.result, each.difference, each.saturation, each.prediction, each.limits)
        )
    over = budget.reached()
    if complete and over is not None and not lost and not any(outcome.limits for outcome in outcomes):
        lost.append(over)
    if outcomes and lost:
        outcomes[0] = replace(outcomes[0], limits=(*outcomes[0].limits, *lost))
    return outcomes


def _refuse_at_once(scenarios: Sequence[Scenario]) -> None:
    """Refuse a grid whose baseline cannot be simulated, or none of its changes, before anything is.

    Raises:
        MupError: Of the first of them.
    """
    first: SimulationError | None = None
    possible = 0
    for number, scenario in enumerate(scenarios[:CHECKED]):
        try:
            named(scenario, partial(compiled, scenario.model))
        except SimulationError as error:
            first = first or error
            if number == 0:
                raise
        else:
            possible += number > 0
    if first is not None and not possible and len(scenarios) <= CHECKED:
        raise first


def _impossible(
    scenarios: Sequence[Scenario], place: Sequence[int], found: dict[int, Found]
) -> UnfinishedError | None:
    """Return the error about scenarios that cannot be simulated; None if there are none."""
    errors = [
        error
        for number in place
        if isinstance(error := found[number].result, SimulationError) and not isinstance(error, LimitError)
    ]
    if not errors:
        return None
    first = errors[0]
    more = f"; {len(errors)} of {len(scenarios)} scenarios cannot be simulated" if len(errors) > 1 else ""
    return UnfinishedError(f"{first.message}{more}", where=first.where, hint=first.hint)


def _distinct(scenarios: Sequence[Scenario]) -> tuple[list[Scenario], list[int]]:
    """Return the scenarios with different models, and which of them each one is.

    A grid often contains its own baseline: equal models have equal results.
    """
    distinct: list[Scenario] = []
    alike: dict[int, list[int]] = {}
    place = []
    hashes: dict[int, tuple[Task, int]] = {}
    for scenario in scenarios:
        same = alike.setdefault(_hash(scenario.model, hashes), [])
        at = next((number for number in same if distinct[number].model == scenario.model), None)
        if at is None:
            at = len(distinct)
            same.append(at)
            distinct.append(scenario)
        place.append(at)
    return distinct, place


def _hash(model: Model, hashes: dict[int, tuple[Task, int]]) -> int:
    """Return a number that equal models have in common, and of models of a grid hardly any others.

    Args:
        model: The model.
        hashes: Of tasks, by their identity: scenarios share those that they leave alone.
    """
    found: list[Any] = []
    for task in model.tasks:
        if id(task) not in hashes:
            work = tuple(replace(entry, paths=()) for entry in task.entries)  # those cannot be hashed
            own = (task.name, task.threads, task.replicas, task.processor, task.admission, task.think, work)
            hashes[id(task)] = task, hash(own)
        found.append(hashes[id(task)][1])
    return hash((tuple(found), model.processors))
