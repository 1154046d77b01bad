"""What does a whole grid of scenarios answer? Results, differences to the baseline, and limits, in one go.

``grid`` in ``simulator.whatif`` says which scenarios there are; this runs them side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, TypeVar

from mup.errors import MupError, SimulationError
from mup.lqn.model import Model
from simulator.advice import Suspect, suspects
from simulator.api import DEFAULT_PRECISION, Progress, simulate
from simulator.calibration_spread import Alternatives, Spread, spread, spread_jobs
from simulator.differences import Difference, difference, replication_seconds, replication_seeds
from simulator.parallel import Job, run_jobs
from simulator.prediction import Prediction, RealRun, predict_interval
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
        prediction: Where a real run would land; None if it was not asked for.
    """

    scenario: Scenario
    result: Result
    difference: Difference | None = None
    saturation: Saturation | None = None
    prediction: Prediction | None = None

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
    progress: Callable[[int, int], None] | None = None,
) -> list[Outcome]:
    """Simulate scenarios with the same seed; the first one is the baseline.

    Results do not depend on the number of workers.

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
        progress: Called with (finished, all so far) simulations; equal models are one.

    Raises:
        UsageError, UncalibratedError, SimulationError: As ``simulate``; the message names the scenario. The
            first one that fails ends the others.
    """
    for scenario in scenarios:
        _named(scenario, partial(compile_model, scenario.model))
    # A grid often contains its own baseline: equal models have equal results.
    distinct: list[Scenario] = []
    for scenario in scenarios:
        if all(scenario.model != other.model for other in distinct):
            distinct.append(scenario)
    place = [next(i for i, d in enumerate(distinct) if d.model == s.model) for s in scenarios]
    jobs: list[Job[Any]] = [_run(s, precision=precision, seed=seed) for s in distinct]
    if limits:
        jobs += [_limit(s.model, seed) for s in distinct]
    runner = _Runner(workers, progress)
    found = runner.run(jobs)
    results: list[Result] = found[: len(distinct)]
    saturations: list[Saturation | None] = found[len(distinct) :] if limits else [None] * len(distinct)
    compared: list[Difference | None] = [None] * len(distinct)
    if differences:
        compared[1:] = _differences(distinct, results, precision, seed, runner)
    predictions: list[Prediction | None] = [None] * len(distinct)
    if run is not None:
        predictions[:] = _predictions(distinct, results, run, seed, runner)
    return [
        Outcome(s, results[i], compared[i], saturations[i], predictions[i])
        for s, i in zip(scenarios, place, strict=True)
    ]


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
    distinct: Sequence[Scenario], results: Sequence[Result], precision: float, seed: int, runner: _Runner
) -> list[Difference]:
    """Compare every scenario but the first with the first, with longer and longer replications."""
    seeds = replication_seeds(seed)
    lengths = [replication_seconds(results[0], result) for result in results]
    runs: dict[tuple[int, float], list[Result]] = {}
    found: dict[int, Difference] = {}
    open_ones = list(range(1, len(distinct)))
    while open_ones:
        # Lengths are powers of two times the same one: scenarios share the replications of the baseline.
        wanted = [key for i in open_ones for key in ((0, lengths[i].first), (i, lengths[i].first))]
        wanted = [key for key in dict.fromkeys(wanted) if key not in runs]
        jobs = [_run(distinct[i], horizon=length, seed=number) for i, length in wanted for number in seeds]
        fresh = runner.run(jobs)
        for at, key in enumerate(wanted):
            runs[key] = fresh[at * len(seeds) : (at + 1) * len(seeds)]
        for i in open_ones:
            found[i] = difference(runs[0, lengths[i].first], runs[i, lengths[i].first])
        longer = {i: lengths[i].longer(found[i].precision, precision) for i in open_ones}
        open_ones = []
        for i, length in longer.items():
            if length is not None:
                lengths[i] = length
                open_ones.append(i)
    return [found[i] for i in range(1, len(distinct))]


def _predictions(
    distinct: Sequence[Scenario], results: Sequence[Result], run: RealRun, seed: int, runner: _Runner
) -> list[Prediction]:
    """Simulate every scenario with every replicate of its model, and say where a real run would land."""
    spreads: list[Spread | None] = [None] * len(distinct)
    known: list[Suspect] = []
    uncertainty = distinct[0].model.uncertainty
    if uncertainty is not None and uncertainty.replicates:
        alternatives = Alternatives(uncertainty.replicates)
        jobs = [spread_jobs(s, r, alternatives, seed) for s, r in zip(distinct, results, strict=True)]
        bounds = [0, *accumulate(map(len, jobs))]
        found = runner.run(list(chain.from_iterable(jobs)))
        spreads = [spread(found[a:b]) for a, b in pairwise(bounds)]
        # To first order the same numbers are to blame in every scenario: what differs is how much.
        known = suspects(distinct[0].model)
    return [
        predict_interval(scenario, result, run, varied, known)
        for scenario, result, varied in zip(distinct, results, spreads, strict=True)
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
