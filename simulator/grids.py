"""What does a whole grid of scenarios answer? Results, differences to the baseline, and limits, in one go.

``grid`` in ``simulator.whatif`` says which scenarios there are; this runs them side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from mup.errors import MupError, SimulationError
from mup.lqn.model import Model
from simulator.api import DEFAULT_PRECISION, Progress, simulate
from simulator.differences import Difference, difference, replication_seconds, replication_seeds
from simulator.limits import check_size
from simulator.parallel import Job, run_jobs
from simulator.program import compile_model
from simulator.result import Result
from simulator.saturation import Saturation, saturation
from simulator.whatif import Scenario

__all__ = ["Outcome", "run_scenarios"]


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
    """

    scenario: Scenario
    result: Result
    difference: Difference | None = None
    saturation: Saturation | None = None

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
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Simulate scenarios with the same seed; the first one is the baseline.

    Results do not depend on the number of workers.

    Args:
        scenarios: The baseline and its changes.
        precision: Relative half-width of cycle response time and throughput to reach.
        seed: Of every scenario.
        workers: Simulations at once; default: as many as cores.
        differences: Also estimate every scenario's difference to the baseline, by paired replications; takes
            two to three times as long.
        limits: Also find what saturates first in each model.
        progress: Called with (finished, all) simulations; equal models are one.

    Raises:
        UsageError, UncalibratedError, SimulationError: As ``simulate``; the message names the scenario. The
            first one that fails ends the others.
    """
    for scenario in scenarios:
        _named(scenario, partial(check_size, scenario.model))
        _named(scenario, partial(compile_model, scenario.model))
    # A grid often contains its own baseline: equal models have equal results.
    distinct: list[Scenario] = []
    for scenario in scenarios:
        if all(scenario.model != other.model for other in distinct):
            distinct.append(scenario)
    place = [next(i for i, d in enumerate(distinct) if d.model == s.model) for s in scenarios]
    pairs = len(distinct) - 1 if differences else 0
    total = len(distinct) * (2 if limits else 1)

    def report(finished: int) -> None:
        if progress is not None:
            progress(finished, total)

    jobs: list[Job[Any]] = [_run(s, precision=precision, seed=seed) for s in distinct]
    if limits:
        jobs += [_limit(s.model, seed) for s in distinct]
    if pairs:
        total += 2 * pairs * len(replication_seeds(seed))
    found = run_jobs(jobs, workers=workers, progress=report)
    results: list[Result] = found[: len(distinct)]
    saturations: list[Saturation | None] = found[len(distinct) :] if limits else [None] * len(distinct)
    compared: list[Difference | None] = [None] * len(distinct)
    if pairs:
        compared[1:] = _differences(distinct, results, seed, workers, lambda n: report(len(jobs) + n))
    return [
        Outcome(s, results[i], compared[i], saturations[i]) for s, i in zip(scenarios, place, strict=True)
    ]


def _differences(
    distinct: Sequence[Scenario],
    results: Sequence[Result],
    seed: int,
    workers: int | None,
    report: Callable[[int], None],
) -> list[Difference]:
    """Compare every scenario but the first with the first."""
    seeds = replication_seeds(seed)
    seconds = [replication_seconds((results[0], result)) for result in results]
    wanted = [(0, length) for length in sorted(set(seconds[1:]))]
    wanted += [(index, seconds[index]) for index in range(1, len(distinct))]
    jobs = [
        _run(distinct[index], horizon=length, seed=number) for index, length in wanted for number in seeds
    ]
    runs = run_jobs(jobs, workers=workers, progress=report)
    replications = {key: runs[at * len(seeds) : (at + 1) * len(seeds)] for at, key in enumerate(wanted)}
    return [
        difference(replications[0, seconds[index]], replications[index, seconds[index]])
        for index in range(1, len(distinct))
    ]


def _run(
    scenario: Scenario, *, seed: int, precision: float | None = None, horizon: float | None = None
) -> Job[Result]:
    def job(progress: Callable[[Progress], None]) -> Result:
        return _named(
            scenario,
            lambda: simulate(
                scenario.model, precision=precision, horizon=horizon, seed=seed, progress=progress
            ),
        )

    return job


def _limit(model: Model, seed: int) -> Job[Saturation | None]:
    def job(progress: Callable[[Progress], None]) -> Saturation | None:
        try:
            return saturation(model, seed=seed, progress=progress)
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
