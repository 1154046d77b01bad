"""Effect of calibration error, and of another machine speed, on a prediction.

Every scenario is simulated with every replicate, and at the ends of the speeds its machine may have.

Replicates are simulated with common random numbers and for a short time, twice, with two seeds. How the
results of the replicates vary together in both series is calibration error; what varies in one alone is
chance. So the covariance of the two series is an estimate of the variance due to calibration that short runs
do not inflate.

Speeds are simulated with the same numbers, and compared with the same runs at the speed of the model. Near
saturation a slower machine does more than a faster one undoes, so both ends are kept apart.

How much chance is left in either answer is known from the two series, too: very short runs are tried first,
and longer ones only where that chance could be seen in the interval (``simulator.studies.prediction``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from mup.errors import SimulationError
from mup.lqn.machine_speed import MachineSpeed, on_machine_of_speed
from mup.lqn.model import Model, Task
from mup.lqn.uncertainty import Replicate, apply
from simulator.api import Progress, compiled
from simulator.figures.output import merged
from simulator.figures.result import Figure, Result
from simulator.figures.runs.replicated import run_seeds
from simulator.machine.budget import Budget
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.recording import AREA, Layout
from simulator.preparing import Load, at_load, clients_of
from simulator.program import Program, compile_model
from simulator.studies.differences import REPLICATIONS, replication_seeds
from simulator.studies.parallel import Job
from simulator.studies.whatif import Scenario

__all__ = [
    "FIGURES",
    "SHARES",
    "Alternatives",
    "Key",
    "Pair",
    "SpeedEffect",
    "Spread",
    "figures",
    "load_of",
    "speed_effect",
    "speed_jobs",
    "spread",
    "spread_jobs",
]

FIGURES: Final = ("response_time", "p95", "throughput", "utilization")
"""What has a prediction interval."""

Key = tuple[str, str]
"""One of ``FIGURES``, and the task of a utilization (else "")."""

FloatArray = npt.NDArray[np.float64]

SERIES: Final = 2
AIM: Final = 0.06
"""Relative half-width that each run would reach alone. With it 20 replicates show a calibration error of 1 %
as 0.7 to 1.3 %."""
MIN_CYCLES: Final = 1000
MIN_CYCLES_EACH: Final = 10
"""Per client: what a changed demand does to the queues has to show."""
MIN_REPLICATES: Final = 3
SHARES: Final = (1 / 64, 1 / 16, 1 / 4, 1.0)
"""Lengths to try, as parts of the one that is always enough."""
FEWEST_CYCLES: Final = 10
"""Of all clients, in the shortest of these runs."""
MOST_CHANGED: Final = 2000
"""Changed tasks that are kept for other scenarios, per replicate."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How the figures of one scenario vary over the replicates of its model.

    Attributes:
        replicates: How many could be simulated.
        variances: Of the logarithm of each figure (of utilizations, of the figure itself); what chance adds
            is not in them.
        kept: Their numbers in the model's uncertainty.
        response_times: Logarithm of each replicate's mean response time.
        noise: Standard error of each variance that is due to chance in the simulations.
    """

    replicates: int
    variances: Mapping[Key, float]
    kept: tuple[int, ...]
    response_times: tuple[float, ...]
    noise: Mapping[Key, float] = field(default_factory=dict)


def figures(result: Result) -> dict[Key, Figure]:
    """Return the figures that get a prediction interval."""
    cycle = result.cycle
    found: dict[Key, Figure] = {
        ("response_time", ""): cycle.response_time,
        ("p95", ""): cycle.response_time.p95,
        ("throughput", ""): cycle.throughput,
    }
    for name, task in result.tasks.items():
        if task.utilization is not None:
            found["utilization", name] = task.utilization
    return found


class Alternatives:
    """The replicates of a model, applied to scenarios of it.

    Scenarios share the tasks that they leave alone, so those are changed once per replicate only.
    """

    def __init__(self, replicates: Sequence[Replicate]) -> None:
        self.replicates = replicates
        self._changed: list[dict[int, tuple[Task, Task]]] = [{} for _ in replicates]

    def model(self, scenario: Scenario, number: int) -> Model:
        """Return the model of a scenario as the replicate of this number has it.

        The scenario's changes are made again after the replicate's, so that what they set stays set; what
        they scale is scaled already.
        """
        changed = self._changed[number]
        if len(changed) > MOST_CHANGED:
            changed.clear()
        model = apply(scenario.model, self.replicates[number], changed)
        for change in scenario.changes:
            if not change.is_factor:
                model = change.apply(model)
        return model


Pair = tuple[Mapping[Key, float], ...]
"""What one replicate's runs of all series found."""


def spread_jobs(
    scenario: Scenario,
    result: Result,
    alternatives: Alternatives,
    seed: int,
    budget: Budget | None = None,
    share: float = 1.0,
) -> list[Job[Pair | None]]:
    """Return the simulations that tell the spread of a scenario, one job per replicate.

    Args:
        scenario: What to simulate.
        result: Of the scenario itself: says how long a run has to be.
        alternatives: The replicates of the scenario's model.
        seed: Of the scenario.
        budget: Of the study; a replicate that it does not last for is left out.
        share: Length of the runs, as a part of the one that is always enough.
    """
    seeds = replication_seeds(seed, REPLICATIONS + SERIES)[REPLICATIONS:]
    lengths = _lengths(scenario.model, result, share)
    # What the load does to processor times is the same for all: the scenario's own run says what load it is.
    load = load_of(scenario.model, result)

    def job(number: int) -> Job[Pair | None]:
        def run(progress: Callable[[Progress], None]) -> Pair | None:
            model = at_load(alternatives.model(scenario, number), load)
            program = compile_model(model, arrive_within=lengths.arrive_within)
            try:
                found = []
                for each in seeds:
                    progress(Progress(0.0, 0, math.inf))
                    found.append(_short_runs(program, each, lengths, budget))
            except SimulationError:
                return None  # this alternative cannot run; what the scenario itself does, others see
            return tuple(found)

        return run

    return [job(number) for number in range(len(alternatives.replicates))]


def load_of(model: Model, result: Result) -> Load:
    """Return the load that a simulation of a model found, at which its processor times are to be taken."""
    return Load(
        {t.name: result.tasks[t.name].throughput.mean / t.replicas for t in model.tasks},
        {name: p.utilization.mean for name, p in result.processors.items()},
        {t.name: result.tasks[t.name].busy.mean / t.replicas for t in model.tasks},
        clients_of(model),
    )


@dataclass(frozen=True, slots=True)
class _Lengths:
    """How long, and how often, a scenario is run once more.

    Attributes:
        warmup, seconds: Simulated, of each run.
        runs: From beginnings of their own.
        arrive_within: Seconds in which clients come; None = a cycle without any waiting.
    """

    warmup: float
    seconds: float
    runs: int = 1
    arrive_within: float | None = None


def _lengths(model: Model, result: Result, share: float) -> _Lengths:
    """Return the lengths of runs of a share of the full length."""
    window = result.window_seconds
    length = window * min(1.0, (result.precision.reached / AIM) ** 2)
    clients = math.fsum(task.threads for task in model.reference_tasks if not task.is_open)
    cycles = max(MIN_CYCLES, MIN_CYCLES_EACH * clients)
    length = max(length, min(window, cycles / result.cycle.throughput.mean))
    fewest = max(FEWEST_CYCLES, clients) / result.cycle.throughput.mean
    length = min(length, max(share * length, fewest))
    if result.replications > 1:
        # Runs as those of the scenario, fewer of them; less than one of them is a shorter one.
        each, warmup = (seconds / result.replications for seconds in (window, result.warmup_seconds))
        return _Lengths(warmup, min(each, length), math.ceil(length / each), warmup)
    return _Lengths(min(max(result.warmup_seconds, length / 10), length / 2), length)


def _short_runs(program: Program, seed: int, lengths: _Lengths, budget: Budget | None) -> Mapping[Key, float]:
    """Return the figures of runs without intervals: the warm-up is the same in all of them."""
    layout = Layout(program)
    sums = np.zeros(layout.width)
    values = []
    for each in run_seeds(seed, 0, lengths.runs):
        engine = CompiledEngine(program, each)
        engine.run_until(lengths.warmup, budget)
        before = engine.snapshot()
        engine.run_until(lengths.warmup + lengths.seconds, budget)
        sums += engine.snapshot() - before
        ends, times = merged(engine.population_samples)
        values.append(times[ends >= lengths.warmup])
    seconds = lengths.runs * lengths.seconds
    columns = [layout.cycles(p) for p in range(len(program.populations))]
    cycles, response = (float(sums[[c + i for c in columns]].sum()) for i in (0, 1))
    every = np.concatenate(values)
    if cycles == 0 or not len(every):
        raise SimulationError("no cycle was completed", where=program.name)
    found: dict[Key, float] = {
        ("response_time", ""): response / cycles,
        ("p95", ""): float(np.quantile(every, 0.95)),
        ("throughput", ""): _rate(program, layout, sums, seconds),
    }
    clients = {p.task for p in program.populations}
    for index, task in enumerate(program.tasks):
        threads = task.threads * task.replicas
        if index not in clients and threads < math.inf:
            busy = float(sums[[layout.busy(place) + AREA for place in layout.places_of[index]]].sum())
            found["utilization", task.name] = busy / threads / seconds
    return found


def _rate(program: Program, layout: Layout, sums: FloatArray, seconds: float) -> float:
    """Return the cycles per second of all sources.

    Of clients, by how long their cycles took: a short run holds one cycle more or less by chance, and the few
    cycles that there are would make some percent of that.
    """
    rate = 0.0
    for index, population in enumerate(program.populations):
        count, durations = (float(sums[layout.cycles(index) + i]) for i in (0, 2))
        closed = not population.is_open and durations > 0
        rate += population.clients * count / durations if closed else count / seconds
    return rate


def spread(results: Sequence[Pair | None]) -> Spread | None:
    """Return what the results of ``spread_jobs`` say; None if too few replicates could be simulated."""
    pairs = {number: pair for number, pair in enumerate(results) if pair is not None}
    if len(pairs) < MIN_REPLICATES:
        return None
    keys = next(iter(pairs.values()))[0]
    variances, noise = {}, {}
    logarithms: dict[Key, FloatArray] = {}
    for key in keys:
        values = np.array([[found[key] for found in pair] for pair in pairs.values()])
        if key[0] != "utilization":
            if not (values > 0).all():
                continue
            values = logarithms[key] = np.log(values)
        rest = values - values.mean(axis=0)
        variances[key] = max(0.0, float(rest[:, 0] @ rest[:, 1]) / (len(pairs) - 1))
        # What one series alone shows, half of it from either; its products vary by as much over all pairs.
        own = float(np.square(rest[:, 0] - rest[:, 1]).sum()) / 2 / (len(pairs) - 1)
        noise[key] = math.sqrt((own**2 + 2 * own * variances[key]) / (len(pairs) - 1))
    times = logarithms.get(("response_time", ""), np.zeros((len(pairs), SERIES))).mean(axis=1)
    return Spread(len(pairs), variances, tuple(pairs), tuple(times.tolist()), noise)


# How the figures depend on the speed of the machine.


@dataclass(frozen=True, slots=True)
class SpeedEffect:
    """How the figures of one scenario change at the ends of the speeds of its machine.

    Attributes:
        machine: Which speeds.
        changes: By figure, the change of its logarithm (of utilizations, of the figure itself) on the slowest
            and on the fastest machine.
        noise: By figure, by how much chance may have moved the two.
    """

    machine: MachineSpeed
    changes: Mapping[Key, tuple[float, float]]
    noise: Mapping[Key, float] = field(default_factory=dict)

    def away(self, key: Key) -> tuple[float, float] | None:
        """Return how far a figure goes down and up at most, both >= 0; None if that is not known."""
        changes = self.changes.get(key)
        return None if changes is None else (max(0.0, -min(changes)), max(0.0, *changes))


def speed_jobs(
    scenario: Scenario,
    result: Result,
    machine: MachineSpeed,
    seed: int,
    budget: Budget | None = None,
    share: float = 1.0,
) -> list[Job[Pair | None]]:
    """Return the simulations that tell what the machine's speed does to a scenario.

    Unlike replicates, each speed has processor times of its own load: a slower machine is a busier one.

    Args:
        scenario: What to simulate.
        result: Of the scenario itself: says how long a run has to be.
        machine: The speeds it may have.
        seed: Of the scenario.
        budget: Of the study.
        share: Length of the runs, as a part of the one that is always enough.
    """
    seeds = replication_seeds(seed, REPLICATIONS + SERIES)[REPLICATIONS:]
    lengths = _lengths(scenario.model, result, share)

    def job(factor: float) -> Job[Pair | None]:
        def run(progress: Callable[[Progress], None]) -> Pair | None:
            try:
                faster = on_machine_of_speed(scenario.model, machine.processors, factor)
                program = compiled(faster, arrive_within=lengths.arrive_within)
                found = []
                for each in seeds:
                    progress(Progress(0.0, 0, math.inf))
                    found.append(_short_runs(program, each, lengths, budget))
            except SimulationError:
                return None
            return tuple(found)

        return run

    return [job(factor) for factor in (1.0, 1 / machine.factor, machine.factor)]


def speed_effect(machine: MachineSpeed, results: Sequence[Pair | None]) -> SpeedEffect | None:
    """Return what the results of ``speed_jobs`` say; None if one of the speeds could not be simulated."""
    pairs = [pair for pair in results if pair is not None]
    if len(pairs) < len(results):
        return None
    same, slow, fast = (_together(pair) for pair in pairs)
    changes, noise = {}, {}
    for key in same.keys() & slow.keys() & fast.keys():
        if key[0] != "utilization" and min(same[key], slow[key], fast[key]) <= 0:
            continue
        changes[key] = _changes(key, same, slow, fast)
        series = [_changes(key, *found) for found in zip(*pairs, strict=True)]
        # Of two series the mean is better than that, but their difference is all that is known.
        noise[key] = max(abs(one - other) for one, other in zip(*series, strict=True))
    return SpeedEffect(machine, changes, noise)


def _changes(
    key: Key, same: Mapping[Key, float], slow: Mapping[Key, float], fast: Mapping[Key, float]
) -> tuple[float, float]:
    if key[0] == "utilization":
        return slow[key] - same[key], fast[key] - same[key]
    if min(same[key], slow[key], fast[key]) <= 0:
        return math.inf, -math.inf  # one series shows nothing: the difference to the other is not known
    return math.log(slow[key] / same[key]), math.log(fast[key] / same[key])


def _together(pair: Pair) -> dict[Key, float]:
    """Return the means of several runs of the same."""
    return {key: math.fsum(found[key] for found in pair) / len(pair) for key in pair[0]}
