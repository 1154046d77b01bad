"""Study of one scenario: rounds of jobs, and the outcome of their results.

Who runs the jobs does not matter: they are deterministic, and those that several scenarios need (runs of the
baseline) have a key, so that each is run once wherever their results can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from mup.errors import LimitError, MupError, SimulationError
from mup.lqn.lowered import sources_of
from mup.lqn.machine_speed import MachineSpeed
from mup.lqn.model import Model
from simulator.api import Progress, simulate
from simulator.figures.result import Result
from simulator.machine.budget import Budget, Reached, limit_error
from simulator.studies.advice import Suspect, suspects
from simulator.studies.calibration_spread import (
    SHARES,
    Alternatives,
    Pair,
    SpeedEffect,
    Spread,
    speed_effect,
    speed_jobs,
    spread,
    spread_jobs,
)
from simulator.studies.differences import Comparison, Difference, Values, replication_seeds, values_of
from simulator.studies.parallel import Job
from simulator.studies.prediction import Prediction, RealRun, predict_interval, sure_enough
from simulator.studies.saturation import Saturation, saturation
from simulator.studies.whatif import Change, Scenario

__all__ = ["Found", "OnResult", "Rounds", "ScenarioStudy", "Step", "Wanted", "named"]

T = TypeVar("T")

LOADS = ("clients", "arrivals")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is asked about every scenario; as for ``run_scenarios``."""

    precision: float
    seed: int
    differences: bool
    limits: bool
    run: RealRun | None
    machine: MachineSpeed | None


@dataclass(frozen=True, slots=True)
class Step:
    """A job; equal keys stand for the same job, which need not be run twice."""

    job: Job[Any]
    key: Hashable = None


@dataclass(frozen=True, slots=True)
class Found:
    """What is known about a scenario; of one without a result nothing else is.

    Attributes:
        result: Its figures, or what left none: a limit, or that it cannot be simulated.
        difference, saturation, prediction: As in an outcome.
        limits: Those that left something out, or less certain.
    """

    result: Result | SimulationError
    difference: Difference | None = None
    saturation: Saturation | None = None
    prediction: Prediction | None = None
    limits: tuple[Reached, ...] = ()


Rounds = Generator[list[Step], list[Any], Found]
"""Yields jobs to be run side by side, is sent their results in the same order, and returns what is known."""

OnResult = Callable[[Scenario, Result], None]
"""Called with every scenario that has its figures, before what else is asked about it is known."""


class ScenarioStudy:
    """The scenarios of one grid.

    Args:
        baseline: What they are compared with.
        wanted: What is asked.
        budget: Of all of them together.
    """

    def __init__(self, baseline: Scenario, wanted: Wanted, budget: Budget) -> None:
        self._baseline = baseline
        self._wanted = wanted
        self._budget = budget
        known = baseline.model.uncertainty
        replicates = known.replicates if known is not None and wanted.run is not None else ()
        self._alternatives = Alternatives(replicates) if replicates else None

    def rounds(self, scenario: Scenario, *, own: bool, on_result: OnResult | None = None) -> Rounds:
        """Yield the rounds of one scenario.

        Args:
            scenario: Which one.
            own: It is the baseline.
            on_result: Called with it and its figures.
        """
        wanted = self._wanted
        compared = wanted.differences and not own
        steps = [self._figures(scenario, key="baseline" if own else None)]
        if compared:
            steps.append(self._figures(self._baseline, key="baseline"))
        if wanted.limits:
            steps.append(self._saturation(scenario))
        answers = yield steps
        result = answers[0]
        if isinstance(result, SimulationError):
            return Found(result)
        if on_result is not None:
            on_result(scenario, result)
        cut: list[Reached] = [] if result.limit is None else [result.limit]
        full: Saturation | None = None
        if wanted.limits:
            full = _kept(answers[-1], cut)
            if full is not None:
                full = _of_load(full, scenario.model)
                if full.cut is not None:
                    cut.append(full.cut)
        comparison = None
        if compared and isinstance(answers[1], Result):
            comparison = Comparison(answers[1], result, wanted.precision)
        looks = None if wanted.run is None else self._looks(scenario, result)
        while True:
            intervals = [] if looks is None else looks.steps()
            pairs = self._pairs(scenario, comparison)
            if not intervals and not pairs:
                break
            answers = yield [*intervals, *pairs]
            failed = next(
                (a for a in answers if isinstance(a, SimulationError) and not isinstance(a, LimitError)), None
            )
            if failed is not None:
                return Found(failed)
            if looks is not None and intervals:
                looks.note(answers[: len(intervals)])
            if comparison is not None and pairs:
                _note_pairs(comparison, answers[len(intervals) :])
        prediction = None
        if looks is not None and wanted.run is not None:
            prediction = predict_interval(
                scenario, result, wanted.run, looks.spread, self._suspects, looks.speed
            )
        compared_with = None if comparison is None else comparison.found
        return Found(result, compared_with, full, prediction, tuple(cut))

    def _figures(self, scenario: Scenario, *, key: str | None) -> Step:
        """Return the simulation that gives a scenario its figures."""

        def job(progress: Callable[[Progress], None]) -> Result | SimulationError:
            try:
                return named(
                    scenario,
                    lambda: simulate(
                        scenario.model,
                        precision=self._wanted.precision,
                        seed=self._wanted.seed,
                        budget=self._budget,
                        progress=progress,
                    ),
                )
            except SimulationError as error:
                return self._failure(scenario, error)

        return Step(job, key)

    def _failure(self, scenario: Scenario, error: SimulationError) -> SimulationError:
        """Return why a scenario has no figures; without those of the baseline there is no grid.

        Raises:
            SimulationError: The baseline cannot be simulated.
        """
        if scenario is self._baseline and not isinstance(error, LimitError):
            raise error
        return error

    def _pairs(self, scenario: Scenario, comparison: Comparison | None) -> list[Step]:
        """Return the replications to be run next, those of the baseline before those of the scenario."""
        if comparison is None or comparison.wanted is None:
            return []
        seconds, seeds = comparison.wanted, replication_seeds(self._wanted.seed)
        return [
            *(self._replication(self._baseline, seconds, seed, ("pair", seconds, seed)) for seed in seeds),
            *(self._replication(scenario, seconds, seed, None) for seed in seeds),
        ]

    def _replication(self, scenario: Scenario, seconds: float, seed: int, key: Hashable) -> Step:
        def job(progress: Callable[[Progress], None]) -> Values | SimulationError:
            try:
                result = named(
                    scenario,
                    lambda: simulate(
                        scenario.model,
                        horizon=seconds,
                        seed=seed,
                        many_beginnings=True,
                        budget=self._budget,
                        progress=progress,
                    ),
                )
            except SimulationError as error:
                return self._failure(scenario, error)
            # Pairs of replications are equally long.
            return values_of(result) if result.limit is None else limit_error(result.limit)

        return Step(job, key)

    # What saturates first does not depend on how much load there is, if it comes from one source.

    def _saturation(self, scenario: Scenario) -> Step:
        shared = self._without_load(scenario)
        model = scenario.model if shared is None else shared[1]

        def job(progress: Callable[[Progress], None]) -> Saturation | LimitError | None:
            try:
                return saturation(model, seed=self._wanted.seed, budget=self._budget, progress=progress)
            except LimitError as error:
                return error
            except SimulationError:
                # It cannot run alone or under more load (a deadlock). Whether it runs as it is, others see.
                return None

        return Step(job, None if shared is None else ("saturation", shared[0]))

    def _without_load(self, scenario: Scenario) -> tuple[tuple[Change, ...], Model] | None:
        """Return a scenario with the load of the baseline; None if it is not the baseline but for changes."""
        sources = list(sources_of(self._baseline.model))
        if len(sources) != 1:
            return None
        load = LOADS[sources[0].is_open]
        changes = tuple(change for change in scenario.changes if change.kind != load)
        model = self._baseline.model
        try:
            for change in changes:
                model = change.apply(model)
            again = model
            for change in scenario.changes:
                if change.kind == load:
                    again = change.apply(again)
        except MupError:
            return None
        return (changes, model) if again == scenario.model else None

    # Where a real run would land.

    def _looks(self, scenario: Scenario, result: Result) -> _Looks:
        run, machine, alternatives = self._wanted.run, self._wanted.machine, self._alternatives
        seed, budget = self._wanted.seed, self._budget
        assert run is not None  # noqa: S101 - only asked where there is a run
        return _Looks(
            lambda spread_of, speed_of: sure_enough(scenario, result, run, spread_of, speed_of),
            None
            if alternatives is None
            else lambda share: spread_jobs(scenario, result, alternatives, seed, budget, share),
            None
            if machine is None
            else lambda share: speed_jobs(scenario, result, machine, seed, budget, share),
            machine,
        )

    @cached_property
    def _suspects(self) -> list[Suspect]:
        """What could be calibrated better: to first order the same in every scenario, only more or less."""
        return [] if self._alternatives is None else suspects(self._baseline.model)


_Jobs = Callable[[float], list[Job[Pair | None]]]
"""Returns simulations of a share of their full length."""


class _Looks:
    """What else a figure depends on, looked at for longer and longer until chance no longer shows.

    Attributes:
        spread: What calibration error does; None if not known.
        speed: What the speed of the machine does; None if not known.

    Args:
        sure: Tells whether either is known well enough.
        spread_jobs: The simulations behind ``spread``; None if there are no replicates.
        speed_jobs: The simulations behind ``speed``; None if nothing is known about the machine.
        machine: Its speeds.
    """

    def __init__(
        self,
        sure: Callable[[Spread | None, SpeedEffect | None], tuple[bool, bool]],
        spread_jobs: _Jobs | None,
        speed_jobs: _Jobs | None,
        machine: MachineSpeed | None,
    ) -> None:
        self.spread: Spread | None = None
        self.speed: SpeedEffect | None = None
        self._sure, self._machine = sure, machine
        self._jobs = spread_jobs, speed_jobs
        self._shares = [[] if jobs is None else list(SHARES) for jobs in self._jobs]
        self._counts = (0, 0)

    def steps(self) -> list[Step]:
        """Return the simulations to be run next; none if enough is known."""
        both = [
            jobs(shares[0]) if jobs is not None and shares else []
            for jobs, shares in zip(self._jobs, self._shares, strict=True)
        ]
        self._counts = len(both[0]), len(both[1])
        return [Step(job) for jobs in both for job in jobs]

    def note(self, answers: Sequence[Pair | None]) -> None:
        """Take note of their results."""
        of_spread, of_speed = answers[: self._counts[0]], answers[self._counts[0] :]
        if of_spread:
            self.spread = spread(of_spread)
        if of_speed and self._machine is not None:
            self.speed = speed_effect(self._machine, of_speed)
        for shares, known in zip(self._shares, self._sure(self.spread, self.speed), strict=True):
            shares[:] = [] if known else shares[1:]


def named(scenario: Scenario, call: Callable[[], T]) -> T:
    """Call a function; the message of its error names the scenario."""
    try:
        return call()
    except MupError as error:
        if scenario.changes:
            error.message = f"{error.message} (scenario: {scenario})"
        raise


def _note_pairs(comparison: Comparison, answers: list[Values | LimitError]) -> None:
    """Tell a comparison of its pairs, those of the baseline first; if one was cut short, it ends."""
    values = [found for found in answers if not isinstance(found, LimitError)]
    if len(values) < len(answers):
        comparison.end()
    else:
        comparison.add(values[: len(values) // 2], values[len(values) // 2 :])


def _kept(found: T | LimitError, cut: list[Reached]) -> T | None:
    """Return what a study found; if it was cut short, nothing, and that is noted."""
    if isinstance(found, LimitError):
        cut.append(found.reached)
        return None
    return found


def _of_load(found: Saturation, model: Model) -> Saturation:
    """Return what saturates first in a model that differs from the one it was found with by its load only."""
    if len(found.present) != 1:
        return found
    (name,) = found.present
    (source,) = sources_of(model)
    return replace(found, present={name: source.rate if source.is_open else source.task.threads})
