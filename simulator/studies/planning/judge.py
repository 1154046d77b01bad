"""Does a deployment meet the objectives? Simulation decides, estimates and bounds save simulations.

Every deployment is simulated with the same seed (common random numbers), so that what is better comes out
better. A simulation gets more precise until each figure is far enough from its limit, or too close to
it to tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from mup.errors import LimitError, ModelError, SimulationError
from mup.lqn.model import Model
from simulator.analytic import Estimate, Estimator
from simulator.api import Progress, simulate
from simulator.figures.result import Figure, Result
from simulator.machine.budget import Budget
from simulator.preparing import Load, at_load
from simulator.studies.calibration_spread import load_of
from simulator.studies.parallel import run_jobs
from simulator.studies.planning.capacity import Capacity, needed_capacity
from simulator.studies.planning.slo import SURE, Slo, Verdict
from simulator.studies.planning.space import Point, Space

__all__ = ["FINEST", "MAX_EVENTS", "ROUGH", "Effort", "Judge", "Seen", "together"]

ROUGH: Final = 0.06
"""Relative half-width to begin with: most deployments are far from the limit."""
ROUGH_RUNS: Final = 0.15
"""The same where clients keep the rhythm in which they begin: eight beginnings, the fewest there are, tell
enough about most deployments."""
FINEST: Final = 0.004
"""Relative half-width from which on what cannot be told is too close to call."""
LEAST_GAIN, MOST_GAIN = 0.25, 0.7
"""Relative half-widths of the next simulation, as parts of that before."""
AIM: Final = 0.8
"""The next half-width, as a part of the one that would just do."""
MAX_EVENTS: Final = 30_000_000
"""Timed steps of one simulation."""
CHEAP: Final = 400_000
"""Timed steps of a rough simulation from which on an estimate is much faster."""
MARGIN: Final = 0.12
"""By so much a corrected estimate has to be beyond the limit to be believed."""
CLEAR: Final = 1.0
"""Half-widths that a rough simulation has to be beyond the limit to rule out what is smaller."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What simulation says about a deployment.

    Attributes:
        result: None if it cannot run under this load.
        why: The reason then.
        figures: Per objective; None where there was nothing to measure.
    """

    result: Result | None
    why: str = ""
    figures: tuple[Figure | None, ...] = ()

    def verdicts(self, slos: Sequence[Slo], scale: float = 1.0) -> list[Verdict]:
        """Return what it says about every objective."""
        if self.result is None:
            return [Verdict.FAILS for _ in slos]
        return [slo.verdict(self.result, scale=scale) for slo in slos]

    def verdict(self, slos: Sequence[Slo], scale: float = 1.0) -> Verdict:
        """Return what it says about all of them together."""
        return together(self.verdicts(slos, scale))

    def limit_ratio(self, slos: Sequence[Slo]) -> float:
        """Return how near the figures are to their limits: 1 at the limit of one of them, more beyond it."""
        if self.result is None:
            return math.inf
        pairs = zip(slos, self.figures, strict=True)
        return max((slo.limit_ratio(figure.mean) for slo, figure in pairs if figure is not None), default=0.0)


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return one verdict of several: one that fails is enough."""
    return next((v for v in (Verdict.FAILS, Verdict.CLOSE) if v in verdicts), Verdict.MEETS)


@dataclass(slots=True)
class Effort:
    """How many deployments were looked at, and how.

    Attributes:
        simulated: Deployments.
        simulations: Of them, more precise ones included.
        estimated: Deployments that an estimate was made of.
        bounded: Times that a bound alone ruled some out.
        events: Timed steps simulated.
    """

    simulated: int = 0
    simulations: int = 0
    estimated: int = 0
    bounded: int = 0
    events: int = 0


class Judge:
    """Judges the deployments of a space.

    Attributes:
        space: Which ones there are.
        slos: The objectives.
        seen: What was simulated.
        effort: How much that was.

    Args:
        space: Which deployments there are.
        slos: The objectives.
        seed: Of every simulation.
        workers: Simulations at once; None = one per core.
        budget: Of all of them together.
    """

    def __init__(
        self,
        space: Space,
        slos: Sequence[Slo],
        *,
        seed: int = 0,
        workers: int | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.space = space
        self.slos = tuple(slos)
        self.seen: dict[Point, Seen] = {}
        self.effort = Effort()
        self._seed, self._workers, self._budget = seed, workers, budget
        self._capacity = Capacity({})
        self._reference: Result | None = None
        self._estimates: dict[Point, Estimate | None] = {}
        self._estimator: Estimator | None = None
        self._ratios: dict[Slo, dict[Point, float]] = {}

    def begin(self, single: Result | None) -> Seen:
        """Simulate the largest deployment, by which others are judged; return what it shows.

        Args:
            single: One client in it (``simulator.studies.planning.capacity.alone``), if that makes sense.

        Raises:
            LimitError: The budget is used up.
            UncalibratedError: The model lacks numbers.
        """
        largest = self.space.largest
        model = self.space.scenario(largest).model
        self._capacity = needed_capacity(model, self.slos, single)
        # Before there is a reference, processor times are those at the load of the very model.
        (found,) = self.simulate([largest])
        self._reference = found.result
        self._note_ratio(largest, found)
        return found

    # Simulation.

    def simulate(self, points: Sequence[Point], scale: float = 1.0) -> list[Seen]:
        """Simulate deployments side by side, until each verdict is known or too close to call.

        Args:
            points: Which ones; those that were simulated precisely enough are not simulated again.
            scale: Loosen all limits by this factor.

        Raises:
            LimitError: The budget is used up.
        """
        while True:
            wanted = {p: precision for p in points if (precision := self._finer(p, scale)) is not None}
            if not wanted:
                return [self.seen[p] for p in points]
            self._simulate(wanted)

    def _simulate(self, wanted: Mapping[Point, float]) -> None:
        """Simulate deployments once, each to its precision."""
        jobs = [partial(self._job, point, precision) for point, precision in wanted.items()]
        for point, found in zip(wanted, run_jobs(jobs, workers=self._workers), strict=True):
            self.effort.simulations += 1
            self.effort.simulated += point not in self.seen
            self.effort.events += 0 if found.result is None else found.result.events
            self.seen[point] = found
            self._note_ratio(point, found)

    def _job(self, point: Point, precision: float, progress: Callable[[Progress], None]) -> Seen:
        model = self.space.scenario(point).model
        if self._reference is not None:
            # Settling processor times takes longer than a rough simulation. Deployments near the limit have
            # about the same load; what is chosen in the end is prepared for its own.
            model = at_load(model, _load_like(self.space, model, self._reference))
        return self._look(model, precision, self._seed, progress)

    def _look(
        self, model: Model, precision: float, seed: int, progress: Callable[[Progress], None] | None = None
    ) -> Seen:
        try:
            result = simulate(
                model,
                precision=precision,
                seed=seed,
                max_events=MAX_EVENTS,
                budget=self._budget,
                progress=progress,
            )
        except LimitError:
            raise
        except SimulationError as error:
            # Load that grows for ever, or a deadlock: whatever the objective is, this does not meet it.
            return Seen(None, error.message)
        return Seen(result, "", tuple(slo.measured(result) for slo in self.slos))

    def _finer(self, point: Point, scale: float) -> float | None:
        """Return the precision of the next simulation of a deployment; None if there need not be one."""
        known = self.seen.get(point)
        if known is None:
            return self._rough
        if known.result is None or known.verdict(self.slos, scale) is not Verdict.CLOSE:
            return None
        requested_precision = known.result.precision.requested or FINEST
        if requested_precision <= FINEST or known.result.limit is not None:
            return None
        gains = [MOST_GAIN]
        for slo, figure in zip(self.slos, known.figures, strict=True):
            if figure is not None and figure.ci95 > 0:
                room = abs(figure.mean - slo.scaled(scale).limit)
                if room <= SURE * figure.ci95:
                    gains.append(AIM * room / (SURE * figure.ci95))
        return max(FINEST, requested_precision * max(LEAST_GAIN, min(gains)))

    def confirmed(self, point: Point) -> bool:
        """Tell whether simulations with other random numbers agree that a deployment meets the objectives.

        Of many deployments near the limit the one that looks best was lucky, too. Processor times are those
        of its very load.
        """
        known = self.seen[point].result
        precision = ROUGH if known is None else known.precision.requested or ROUGH
        model = self.space.scenario(point).model
        while True:
            again = self._look(model, precision, self._seed + 1)
            self.effort.simulations += 1
            self.effort.events += 0 if again.result is None else again.result.events
            verdict = again.verdict(self.slos)
            if verdict is not Verdict.CLOSE:
                return verdict is Verdict.MEETS
            if precision <= FINEST:
                return False
            precision = max(FINEST, precision / 2)

    # Without simulating the deployment.

    def lacks(self, point: Point) -> bool:
        """Tell whether a deployment fails because something in it would have to be more than busy."""
        return bool(self._capacity.busy) and bool(self._capacity.lacking(self.space.bare(point)))

    def clearly_fails(self, point: Point, scale: float = 1.0) -> bool:
        """Tell whether a deployment fails beyond doubt: by a bound, an estimate, or a rough simulation.

        Raises:
            LimitError: The budget is used up.
        """
        if scale <= 1 and self.lacks(point):
            self.effort.bounded += 1
            return True
        if point not in self.seen:
            guessed = self._estimated_to_fail(point, scale)
            if guessed is not None:
                return guessed
            self._simulate({point: self._rough})
        known = self.seen[point]
        if known.result is None:
            return True
        return any(slo.verdict(known.result, scale=scale, sure=CLEAR) is Verdict.FAILS for slo in self.slos)

    def look_ahead(self, points: Sequence[Point], scale: float = 1.0) -> None:
        """Simulate side by side what `clearly_fails` would simulate one after the other."""
        new = [p for p in points if p not in self.seen and not (scale <= 1 and self.lacks(p))]
        unknown = [p for p in new if self._estimated_to_fail(p, scale) is None]
        if unknown:
            self._simulate(dict.fromkeys(unknown, self._rough))

    @property
    def _rough(self) -> float:
        """The precision to begin with."""
        kept = self._reference is not None and self._reference.replications > 1
        return ROUGH_RUNS if kept else ROUGH

    @property
    def _estimates_pay(self) -> bool:
        """Whether an estimate is faster than a rough simulation, and there is one."""
        if self._reference is None or self._reference.events < CHEAP:
            return False
        return self._estimate(self.space.largest) is not None

    def _estimate(self, point: Point) -> Estimate | None:
        """Return the estimate of a deployment; None if there is none."""
        if point not in self._estimates:
            try:
                self.effort.estimated += 1
                if self._estimator is None:
                    self._estimator = Estimator(self.space.scenario(self.space.largest).model)
                # All that varies is set, so any deployment can be made of any other.
                self._estimates[point] = self._estimator.at(self.space.changes(point))
            except (ModelError, SimulationError):
                self._estimates[point] = None
        return self._estimates[point]

    def _note_ratio(self, point: Point, found: Seen) -> None:
        """Note how far the estimate of a simulated deployment is off, for each objective."""
        if found.result is None or not self._estimates_pay:
            return
        guess = self._estimate(point)
        if guess is None:
            return
        for slo, figure in zip(self.slos, found.figures, strict=True):
            guessed = slo.estimated(guess)
            if figure is not None and guessed and figure.mean > 0:
                self._ratios.setdefault(slo, {})[point] = figure.mean / guessed

    def _estimated_to_fail(self, point: Point, scale: float) -> bool | None:
        """Tell whether a deployment fails by its estimate; None if that does not tell.

        The estimate is corrected as that of the most similar deployment has to be that was simulated.
        """
        if not self._estimates_pay:
            return None
        guess = self._estimate(point)
        if guess is None:
            return None
        meets = True
        for slo in self.slos:
            guessed, ratios = slo.estimated(guess), self._ratios.get(slo)
            if not guessed or not ratios:
                meets = False
                continue
            nearest = min(ratios, key=lambda other: (_distance(point, other), other))
            limit_ratio = slo.scaled(scale).limit_ratio(guessed * ratios[nearest])
            if limit_ratio > 1 + MARGIN:
                return True
            meets = meets and limit_ratio < 1 - MARGIN
        return False if meets else None


def _distance(one: Point, other: Point) -> float:
    """Return how different two deployments are: a step counts for less where there is more."""
    return math.fsum(abs(math.log((a + 1) / (b + 1))) for a, b in zip(one, other, strict=True))


def _load_like(space: Space, model: Model, reference: Result) -> Load:
    """Return the load of a deployment that does the work of the largest one."""
    load = load_of(model, reference)
    largest = space.bare(space.largest)
    shares = {}
    for name, share in load.utilization.items():
        more, cores = largest.processor(name).cores, model.processor(name).cores
        shares[name] = share if more == cores else min(1.0, share * more / cores)
    return replace(load, utilization=shares)
