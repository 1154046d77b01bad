"""What does a whole grid of scenarios answer? Results, differences to the baseline, and limits, in one go.

``grid`` in ``simulator.studies.whatif`` says which scenarios there are; this runs them side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, Final, TypeVar

from mup.errors import LimitError, MupError, SimulationError
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.model import Model
from simulator.api import DEFAULT_PRECISION, Progress, compiled, simulate
from simulator.figures.result import Result
from simulator.machine.budget import Budget, Reached, limit_error
from simulator.studies.advice import Suspect, suspects
from simulator.studies.calibration_spread import (
    Alternatives,
    SpeedEffect,
    Spread,
    speed_effect,
    speed_jobs,
    spread,
    spread_jobs,
)
from simulator.studies.differences import (
    Difference,
    Lengths,
    difference,
    replication_seconds,
    replication_seeds,
)
from simulator.studies.parallel import Job, run_jobs
from simulator.studies.prediction import Prediction, RealRun, predict_interval
from simulator.studies.saturation import Saturation, saturation
from simulator.studies.whatif import Scenario

__all__ = ["MAX_SECONDS", "Outcome", "run_scenarios"]

MAX_SECONDS: Final = 3600.0
"""Wall time of a grid of scenarios unless it says otherwise."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known about one scenario.

    Attributes:
        scenario: The model and what was changed.
        result: Its figures.
        difference: To the baseline; None for the baseline, or if it was not asked for.
        saturation: What is full first if there is more load; None if it was not asked for, or if the model
            cannot run under more load.
        prediction: Where a real run would land; None if it was not asked for.
        limits: Those of events or wall time that left something out, or less certain. The first outcome has
            those of scenarios of which there is nothing at all.
    """

    scenario: Scenario
    result: Result
    difference: Difference | None = None
    saturation: Saturation | None = None
    prediction: Prediction | None = None
    limits: tuple[Reached, ...] = ()

    def result_json(self) -> dict[str, Any]:
        """Return the result as ``mup simulate --json`` prints it."""
        data = self.result.to_json()
        data["saturation"] = None if self.saturation is None else self.saturation.to_json()
        return data


def run_scenarios(
    scenarios: Sequence[Scenario],
    *,
    precision: float = DEFAULT_PRECISION,
    seed: int = 0,
    workers: int | None = None,
    differences: bool = True,
    limits: bool = True,
    run: RealRun | None = None,
    machine: MachineSpeed | None = None,
    max_seconds: float = MAX_SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Simulate scenarios with the same seed; the first one is the baseline.

    Results do not depend on the number of workers, unless the limit of wall time is reached.

    Args:
        scenarios: The baseline and its changes.
        precision: Relative half-width of cycle response time and throughput to reach.
        seed: Of every scenario.
        workers: Simulations at once; default: as many as cores.
        differences: Also estimate every scenario's difference to the baseline, by paired replications, with a
            half-width of ``precision`` times the baseline's figure if that takes no more than a few times as
            long as the scenario itself.
        limits: Also find what saturates first in each model.
        run: Also say where this real run of each scenario would land, with the uncertainty of the first one's
            model.
        machine: How fast its machine may be during the real run; None if nothing is known about that.
        max_seconds: Wall time of everything together. What is finished then is returned; scenarios of which
            there is nothing are left out.
        progress: Called with (finished, all so far) simulations; equal models are one.

    Raises:
        UsageError, UncalibratedError, SimulationError: As ``simulate``; the message names the scenario. The
            first one that fails ends the others.
        LimitError: There is not even a result of the first scenario.
    """
    budget = Budget("the grid of scenarios", seconds=max_seconds)
    for scenario in scenarios:
        _named(scenario, partial(compiled, scenario.model))
    # A grid often contains its own baseline: equal models have equal results.
    distinct: list[Scenario] = []
    for scenario in scenarios:
        if all(scenario.model != other.model for other in distinct):
            distinct.append(scenario)
    place = [next(i for i, d in enumerate(distinct) if d.model == s.model) for s in scenarios]
    jobs: list[Job[Any]] = [_run(s, precision=precision, seed=seed, budget=budget) for s in distinct]
    if limits:
        jobs += [_limit(s.model, seed, budget) for s in distinct]
    runner = _Runner(workers, progress)
    found = runner.run(jobs)
    if isinstance(found[0], LimitError):
        raise found[0]
    done = [i for i in range(len(distinct)) if not isinstance(found[i], LimitError)]
    cut: dict[int, list[Reached]] = {i: [] for i in done}
    for i in done:
        if found[i].limit is not None:
            cut[i].append(found[i].limit)
    for scenario, i in zip(scenarios, place, strict=True):
        if i not in cut:
            cut[0].append(replace(found[i].reached, study=f"the simulation of '{scenario}'"))
    results: dict[int, Result] = {i: found[i] for i in done}
    saturations: dict[int, Saturation | None] = dict.fromkeys(done)
    for i in done if limits else ():
        saturations[i] = _kept(found[len(distinct) + i], cut[i])
        if (known := saturations[i]) is not None and known.cut is not None:
            cut[i].append(known.cut)
    left = [distinct[i] for i in done]
    compared: dict[int, Difference | None] = dict.fromkeys(done)
    if differences:
        pairs = _differences(left, list(results.values()), precision, seed, runner, budget)
        for i, difference_of in zip(done[1:], pairs, strict=True):
            compared[i] = _kept(difference_of, cut[i])
    predictions: dict[int, Prediction | None] = dict.fromkeys(done)
    if run is not None:
        predictions.update(
            zip(
                done,
                _predictions(left, list(results.values()), run, machine, seed, runner, budget),
                strict=True,
            )
        )
    over = budget.reached()
    if over is not None and not any(cut.values()):
        cut[0].append(over)
    return [
        Outcome(s, results[i], compared[i], saturations[i], predictions[i], tuple(cut[i]))
        for s, i in zip(scenarios, place, strict=True)
        if i in cut
    ]


def _kept(found: T | LimitError, cut: list[Reached]) -> T | None:
    """Return what a study found; if it was cut short, nothing, and that is noted."""
    if isinstance(found, LimitError):
        cut.append(found.reached)
        return None
    return found


class _Runner:
    """Runs rounds of jobs, and reports progress over all of them."""

    def __init__(self, workers: int | None, progress: Callable[[int, int], None] | None) -> None:
        self._workers = workers
        self._progress = progress
        self._finished = 0

    def run(self, jobs: Sequence[Job[Any]]) -> list[Any]:
        """Run a round; return its results."""
        before, total = self._finished, self._finished + len(jobs)

        def report(finished: int) -> None:
            self._finished = before + finished
            if self._progress is not None:
                self._progress(self._finished, total)

        return run_jobs(jobs, workers=self._workers, progress=report)


def _differences(
    distinct: Sequence[Scenario],
    results: Sequence[Result],
    precision: float,
    seed: int,
    runner: _Runner,
    budget: Budget,
) -> list[Difference | LimitError]:
    """Compare every scenario but the first with the first, with longer and longer replications."""
    seeds = replication_seeds(seed)
    lengths = [replication_seconds(results[0], result) for result in results]
    runs: dict[tuple[int, float], list[Result | LimitError]] = {}
    found: dict[int, Difference | LimitError] = {}
    open_ones = list(range(1, len(distinct)))
    while open_ones:
        # Lengths are powers of two times the same one: scenarios share the replications of the baseline.
        wanted = [key for i in open_ones for key in ((0, lengths[i].first), (i, lengths[i].first))]
        wanted = [key for key in dict.fromkeys(wanted) if key not in runs]
        jobs = [
            _run(distinct[i], horizon=length, seed=number, budget=budget)
            for i, length in wanted
            for number in seeds
        ]
        fresh = runner.run(jobs)
        for at, key in enumerate(wanted):
            runs[key] = fresh[at * len(seeds) : (at + 1) * len(seeds)]
        longer: dict[int, Lengths] = {}
        for i in open_ones:
            both = (*runs[0, lengths[i].first], *runs[i, lengths[i].first])
            cut = next((run for run in both if isinstance(run, LimitError)), None)
            if cut is not None:
                found.setdefault(i, cut)  # what a round before has found stays
                continue
            whole = [run for run in both if isinstance(run, Result)]
            found[i] = seen = difference(whole[: len(seeds)], whole[len(seeds) :])
            more = lengths[i].longer(seen.precision, precision)
            if more is not None:
                longer[i] = more
        for i, length in longer.items():
            lengths[i] = length
        open_ones = list(longer)
    return [found[i] for i in range(1, len(distinct))]


def _predictions(
    distinct: Sequence[Scenario],
    results: Sequence[Result],
    run: RealRun,
    machine: MachineSpeed | None,
    seed: int,
    runner: _Runner,
    budget: Budget,
) -> list[Prediction]:
    """Simulate every scenario with every replicate, and speed of its machine; say where real runs land."""
    # All jobs of one round: threads that wait for the last replicate of a scenario have other work.
    jobs: list[list[Job[Any]]] = []
    known: list[Suspect] = []
    uncertainty = distinct[0].model.uncertainty
    alternatives = Alternatives(uncertainty.replicates) if uncertainty and uncertainty.replicates else None
    for scenario, result in zip(distinct, results, strict=True):
        jobs.append([] if alternatives is None else spread_jobs(scenario, result, alternatives, seed, budget))
        jobs.append([] if machine is None else speed_jobs(scenario, result, machine, seed, budget))
    bounds = [0, *accumulate(map(len, jobs))]
    found = runner.run(list(chain.from_iterable(jobs)))
    parts = [found[a:b] for a, b in pairwise(bounds)]
    if alternatives is not None:
        # To first order the same numbers are to blame in every scenario: what differs is how much.
        known = suspects(distinct[0].model)
    spreads: list[Spread | None] = [None if alternatives is None else spread(part) for part in parts[::2]]
    effects: list[SpeedEffect | None] = [
        None if machine is None else speed_effect(machine, part) for part in parts[1::2]
    ]
    return [
        predict_interval(scenario, result, run, varied, known, effect)
        for scenario, result, varied, effect in zip(distinct, results, spreads, effects, strict=True)
    ]


def _run(
    scenario: Scenario,
    *,
    seed: int,
    budget: Budget,
    precision: float | None = None,
    horizon: float | None = None,
) -> Job[Result | LimitError]:
    def job(progress: Callable[[Progress], None]) -> Result | LimitError:
        try:
            result = _named(
                scenario,
                lambda: simulate(
                    scenario.model,
                    precision=precision,
                    horizon=horizon,
                    seed=seed,
                    budget=budget,
                    progress=progress,
                ),
            )
        except LimitError as error:
            return error
        # Pairs of replications are equally long.
        return limit_error(result.limit) if horizon is not None and result.limit is not None else result

    return job


def _limit(model: Model, seed: int, budget: Budget) -> Job[Saturation | LimitError | None]:
    def job(progress: Callable[[Progress], None]) -> Saturation | LimitError | None:
        try:
            return saturation(model, seed=seed, budget=budget, progress=progress)
        except LimitError as error:
            return error
        except SimulationError:
            # It cannot run alone or under more load (a deadlock). Whether it runs as it is, others see.
            return None

    return job


def _named(scenario: Scenario, call: Callable[[], T]) -> T:
    """Call a function; the message of its error names the scenario."""
    try:
        return call()
    except MupError as error:
        if scenario.changes:
            error.message = f"{error.message} (scenario: {scenario})"
        raise
