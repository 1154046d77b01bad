"""Precision of a run's answer to a question by now, and what limits it.

The run is calibrated as far as it has got, with a replicate for every few rounds in which these weigh more.
Predicting the scenarios of the question with all replicates tells what each kind of rounds leaves open in
each figure, and which numbers of the model do. Predictions are analytic estimates, within milliseconds; where
a model has none, short simulations with common random numbers.

Only means are looked at. A 95th percentile moves as the mean response time does when demands change, and
takes a simulation each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from analyzer.calibration.bootstrap import Emphasis, emphases, emphasized
from analyzer.calibration.components import ALL
from analyzer.calibration.of_project import calibrate_project
from analyzer.calibration.question import Question
from analyzer.calibration.rundir import Phase, Run
from analyzer.calibration.thinning import thinned
from analyzer.static.application import Application
from mup.errors import LimitError, LogError, ModelError, SimulationError, UncalibratedError, UsageError
from mup.lqn import Distribution, Empirical, Entry, Model, with_scv
from mup.project import Project
from mup.statistics.student import t_quantile
from simulator import simulate
from simulator.analytic import Estimate, estimate
from simulator.machine.budget import Budget
from simulator.preparing import Load, at_load, clients_of
from simulator.studies.advice import KINDS, Suspect, suspects
from simulator.studies.calibration_spread import Alternatives, spread_jobs
from simulator.studies.whatif import Scenario, utilizations

__all__ = ["Answer", "Look", "look"]

FIGURES: Final = ("response_time", "throughput")
COMPONENTS = replace(ALL, contention=False, variants=False)
"""What is left out takes a simulation, or makes a model several times as large, and moves a figure rather
than its width. Without variants, names are those of the source."""
RECORDS, USUAL_WIDTH = 200_000, 0.05
"""Records of each kind of rounds that are read: two or three seconds of processor time, and cycles enough for
this width; more for a narrower one."""
# Of a simulation where there is no estimate.
PRECISION = 0.03
EVENTS = 300_000
SECONDS = 10.0
"""Of all simulations of one scenario together."""
NEARBY = 1.5
"""A load within this factor of an explored one needs no rounds of its own (as ``load_dependence.APART``)."""

Pairs = tuple[tuple[float, float], ...]
"""Of each replicate, a figure's logarithm beyond the model's; twice, with independent errors."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How well a figure of a scenario is known.

    Attributes:
        scenario, figure: Which.
        mean: As predicted, roughly.
        variances: Of its logarithm, what the rounds of each kind leave open.
        freedom: Degrees of freedom of their sum.
        rest: Relative half-width of the prediction interval from what exploring cannot narrow: how far off
            predictions of the system would be at this load however well it were calibrated; 0 if unknown.
        decides: What most of the variance comes from: entries and kinds of numbers; "" if nothing does.
    """

    scenario: str
    figure: str
    mean: float
    variances: Mapping[Phase, float]
    freedom: float
    rest: float
    decides: str = ""

    @property
    def half_width(self) -> float:
        """Relative 95 % half-width, as far as it comes from exploring."""
        return t_quantile(self.freedom) * math.sqrt(math.fsum(self.variances.values()))

    def goal(self, width: float) -> float:
        """Return the half-width to explore to: all together within a width, or as much as the rest is.

        Where the rest leaves less room than it takes, exploring to less than that would hardly be seen: then
        the width itself or the rest, if that is less, is enough.
        """
        return max(math.sqrt(max(0.0, width**2 - self.rest**2)), min(width, self.rest))

    def known(self, width: float) -> bool:
        """Return whether exploring has done its part."""
        return self.half_width <= self.goal(width)


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a run shows.

    Attributes:
        answers: One per scenario and figure.
        refused: Why exploring tells nothing about a scenario, by its name.
        beyond: The highest rate of requests of a service in a scenario, relative to that in the rounds.
        seconds: How long the look took.
    """

    answers: tuple[Answer, ...]
    refused: Mapping[str, str]
    beyond: float
    seconds: float


def look(run: Run, application: Application, project: Project, question: Question) -> Look | None:
    """Return how well a run answers a question; None if it has too little for a model yet.

    Args:
        run: May be going on.
        application: What was explored.
        project: The same.
        question: What is asked.
    """
    started = time.perf_counter()
    run = thinned(run, round(RECORDS * max(1.0, (USUAL_WIDTH / question.width) ** 2)))
    try:
        found = calibrate_project(
            project,
            run,
            application,
            client=run.info.client or None,
            partial=True,
            components=COMPONENTS,
            draw=emphasized,
        )
    except LogError:
        return None
    model = _light(found.model)
    try:
        own = estimate(model)
    except (ModelError, SimulationError):
        own = None
    of = emphases(run.windows)
    beyond = 0.0
    answers: list[tuple[Answer, Sequence[float]]] = []
    refused = {}
    try:
        scenarios = question.scenarios(model)
    except UsageError as error:
        # What only calibration knows, such as the processors of threads that share cores in turn.
        scenarios, refused = {}, {", ".join(question.as_written): error.message}
    for name, scenario in scenarios.items():
        try:
            spread = _estimated(scenario, of)
        except UncalibratedError as error:
            refused[name] = f"{error.message}: the client has not come there"
            continue
        except (ModelError, SimulationError):
            try:
                spread = _simulated(scenario)
            except (ModelError, SimulationError, LimitError) as error:
                refused[name] = error.message
                continue
        beyond = max(beyond, _beyond(model, own, spread.requests, run))
        answers += _answers(name, model, spread, of)
    if not all(answer.known(question.width) for answer, _ in answers):
        # Who decides matters where there is something left to decide.
        known = suspects(model)
        answers = [(replace(answer, decides=_decides(known, moves)), moves) for answer, moves in answers]
    return Look(tuple(a for a, _ in answers), refused, beyond, time.perf_counter() - started)


def _light(model: Model) -> Model:
    """Return the model without long lists of observed times: their first two moments do, and are quick."""

    def time(old: Distribution | None) -> Distribution | None:
        return with_scv(old.mean, old.scv) if isinstance(old, Empirical) else old

    def entry(old: Entry) -> Entry:
        activities = (replace(a, demand=time(a.demand), delay=time(a.delay)) for a in old.activities)
        return replace(old, activities=tuple(activities))

    tasks = (replace(task, entries=tuple(map(entry, task.entries))) for task in model.tasks)
    return replace(model, tasks=tuple(tasks))


@dataclass(frozen=True, slots=True)
class _Spread:
    """A predicted scenario, and how its figures differ in each replicate.

    Attributes:
        means: By figure.
        effects: By figure.
        load: Utilization of what is most utilized.
        requests: Per second and replica, by task.
    """

    means: Mapping[str, float]
    effects: Mapping[str, Pairs]
    load: float
    requests: Mapping[str, float]


def _estimated(scenario: Scenario, of: Sequence[Emphasis]) -> _Spread:
    """Return what the analytic estimate says.

    Raises:
        UncalibratedError: Numbers are missing.
        ModelError, SimulationError: There is no estimate.
    """
    model = scenario.model
    base = estimate(model)
    alternatives = _alternatives(model)
    # What the load does to processor times is the same in all replicates.
    load = Load(
        {t.name: base.tasks[t.name].throughput / t.replicas for t in model.tasks},
        {name: share for name, share in base.processors.items() if share is not None},
        {t.name: base.tasks[t.name].busy / t.replicas for t in model.tasks},
        clients_of(model),
    )
    at_base = _figures(estimate(at_load(model, load)))
    effects: dict[str, list[tuple[float, float]]] = {figure: [] for figure in FIGURES}
    for number in range(len(of)):
        found = _figures(estimate(at_load(alternatives.model(scenario, number), load)))
        for figure in FIGURES:
            effect = math.log(found[figure] / at_base[figure])
            effects[figure].append((effect, effect))
    shares = [*base.processors.values(), *(task.utilization for task in base.tasks.values())]
    return _Spread(
        _figures(base),
        {figure: tuple(pairs) for figure, pairs in effects.items()},
        max((share for share in shares if share is not None), default=0.0),
        load.rates,
    )


def _figures(found: Estimate) -> dict[str, float]:
    return {"response_time": found.cycle.response_time, "throughput": found.cycle.throughput}


def _alternatives(model: Model) -> Alternatives:
    return Alternatives(() if model.uncertainty is None else model.uncertainty.replicates)


def _simulated(scenario: Scenario) -> _Spread:
    """Return what short simulations say.

    Raises:
        ModelError, SimulationError, LimitError: The scenario cannot be simulated, or not in time.
    """
    model, budget = scenario.model, Budget("a look at the run", seconds=SECONDS)
    result = simulate(model, precision=PRECISION, max_events=EVENTS, budget=budget)
    pairs = [job(lambda _: None) for job in spread_jobs(scenario, result, _alternatives(model), 0, budget)]
    cycle = result.cycle
    means = {"response_time": cycle.response_time.mean, "throughput": cycle.throughput.mean}
    effects = {}
    for figure in FIGURES:
        logs = np.array(
            [[math.log(series[figure, ""]) for series in pair] if pair else [math.nan] * 2 for pair in pairs]
        )
        # A replicate that cannot run tells nothing; the same luck in all of a series is no effect.
        rest = np.nan_to_num(logs - np.nanmean(logs, axis=0))
        effects[figure] = tuple((float(one), float(other)) for one, other in rest)
    return _Spread(
        means,
        effects,
        max((share.mean for share in utilizations(result).values()), default=0.0),
        {t.name: result.tasks[t.name].throughput.mean / t.replicas for t in model.tasks},
    )


def _answers(
    name: str, model: Model, spread: _Spread, of: Sequence[Emphasis]
) -> list[tuple[Answer, Sequence[float]]]:
    """Return what is known about the figures of a scenario, and how each replicate moves them."""
    found: list[tuple[Answer, Sequence[float]]] = []
    for figure in FIGURES:
        pairs = spread.effects[figure]
        variances: dict[Phase, float] = {}
        for emphasis, (one, other) in zip(of, pairs, strict=True):
            added = emphasis.variance(one * other)
            variances[emphasis.phase] = variances.get(emphasis.phase, 0.0) + added
        variances = {phase: max(0.0, variance) for phase, variance in variances.items()}
        groups = {emphasis.phase: emphasis.groups for emphasis in of}
        answer = Answer(
            scenario=name,
            figure=figure,
            mean=spread.means[figure],
            variances=variances,
            freedom=_freedom(variances, groups),
            rest=_rest(model, figure, spread.load),
        )
        found.append((answer, [sum(pair) / 2 for pair in pairs]))
    return found


def _rest(model: Model, figure: str, load: float) -> float:
    """Return the half-width that the discrepancy of other systems gives a figure; 0 if it is not known."""
    discrepancy = None if model.uncertainty is None else model.uncertainty.discrepancy
    found = None if discrepancy is None else discrepancy.at(figure, load)
    if discrepancy is None or found is None:
        return 0.0
    sd, bias = found
    return t_quantile(max(1, discrepancy.systems - 1)) * math.sqrt(math.log1p((sd / (1 + bias)) ** 2))


def _freedom(variances: Mapping[Phase, float], groups: Mapping[Phase, int]) -> float:
    """Return Satterthwaite's degrees of freedom of the sum of variances; at least those of two batches."""
    total = math.fsum(variances.values())
    if total <= 0:
        return max(1, sum(groups.values()) - len(groups))
    parts = ((v / total) ** 2 / max(1, groups[phase] - 1) for phase, v in variances.items())
    return 1 / math.fsum(parts)


def _decides(known: Sequence[Suspect], effects: Sequence[float]) -> str:
    """Return which numbers of the model move together with a figure most."""
    moves = np.array(effects)
    sums = [abs(float(suspect.effects @ moves)) for suspect in known]
    if not sums or max(sums) <= 0:
        return ""
    most = known[sums.index(max(sums))]
    return f"{most.label} ({KINDS[most.kind]})"


def _beyond(model: Model, own: Estimate | None, requests: Mapping[str, float], run: Run) -> float:
    """Return how much more often a service is asked in a scenario than in the busiest kind of rounds."""
    if own is None or own.cycle.throughput <= 0:
        return 0.0
    explored = 0.0
    for phase in ("hot", "cold", "burst"):
        windows = [w for w in run.windows if w.phase == phase]
        seconds = sum(w.seconds for w in windows)
        explored = max(explored, sum(w.cycles for w in windows) / seconds if seconds else 0.0)
    shares = []
    for task in model.tasks:
        visits = own.tasks[task.name].throughput / own.cycle.throughput / task.replicas
        if task.role == "service" and visits > 0 and explored > 0:
            shares.append(requests[task.name] / (visits * explored))
    return max(shares, default=0.0)
