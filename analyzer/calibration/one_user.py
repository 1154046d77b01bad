"""Compare the model of one user, and of the few of a burst, with the log, each kind of rounds with its own.

Rounds back to back (hot) have no think times: what they took is compared with the model of one client that
does not think. Rounds with think times (cold) are compared with the model of a client that thinks as long as
the one of these rounds did. The machine is as fast in the simulation as it was in the rounds. Compared are
the mean and the percentiles of a cycle, and what each caller sees of each endpoint and query it asks: the
time from when its request had been sent until the reply was there.

A burst has several clients that do not think, and the model as many. Compared is how long a cycle takes, from
how many ended: in a short burst those that began and ended in it are the quick ones. That is what the busiest
process, or the machine, allows; a model that is off there is off wherever it is full.

How sure is such a difference? Log and model were seen through the same rounds: if these took longer than
usual by chance, so does the model that was made of them. So rounds are drawn again (``bootstrap``), each draw
gives a figure of the log and, through its replicate of the model, one of the simulation, and what the
logarithms of both have in common cancels out. Every replicate is simulated twice, with other random numbers:
the covariance of both series is the variance of the difference without the luck of these short simulations.
Without replicates the two figures are taken as independent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from analyzer.calibration.executions import Execution, Operation, held_up
from analyzer.calibration.observed import FloatArray, Observed, Sample, idling_of
from analyzer.calibration.samples import answered
from mup.errors import SimulationError, UncalibratedError
from mup.lqn import ActivityRef, Model, Names, Processor, Replicate
from mup.lqn.edits import with_clients, with_faster_machines, with_think
from mup.lqn.refs import entry_label
from mup.lqn.uncertainty import OneUser, apply
from mup.lqn.visits import activity_visits
from mup.statistics.groups import half_width_of_sums
from mup.statistics.repeats import quantile_half_width
from mup.statistics.student import t_quantile
from simulator import Result, simulate
from simulator.figures.output import merged
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.recording import Layout
from simulator.preparing import Load, at_load
from simulator.program import Program, compile_model
from simulator.studies.calibration_spread import load_of
from simulator.studies.differences import replication_seeds

__all__ = [
    "ALONE",
    "KINDS",
    "PERCENTILES",
    "Compared",
    "Logged",
    "OfOneUser",
    "Place",
    "compared",
    "response_of",
    "waited_for",
]

ALONE: Final = ("hot", "cold")
"""Phases of rounds with one client."""
KINDS: Final = (*ALONE, "burst")
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
PRECISION: Final = 0.01
ROUGHLY: Final = 0.03
"""Of the simulation that tells the load."""
MOST_EVENTS: Final = 3_000_000
"""Of one simulation: times that vary much would take millions of cycles to be known to one percent."""
CYCLES: Final = 1500
"""Of each simulation of a replicate; many together tell a variance."""
SERIES: Final = 2
WARMUP: Final = 20
"""A short simulation leaves out the first of so many parts."""
FEWEST_CYCLES: Final = 30
"""Cycles, or requests of a caller, below which nothing is compared."""
LATE: Final = 0.05
"""Part of the replies picked up late up to which the others stand for all."""
NOTABLE: Final = 0.05
"""Relative difference of what a caller sees up to which there is no warning, however sure it is."""

_NS = 1e-9
_NEITHER = (UncalibratedError, SimulationError)


class Place(NamedTuple):
    """What is compared: a cycle (both texts empty), or an endpoint or query as one caller sees it."""

    caller: str = ""
    callee: str = ""

    def __str__(self) -> str:
        return f"{self.callee} as {self.caller} sees it" if self.callee else "a cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure of one user, in the log and in the model; seconds, half-widths of 95 % intervals.

    Attributes:
        kind: Of the rounds, one of ``KINDS``.
        place: Whose figure it is.
        figure: ``mean`` or one of ``PERCENTILES``.
        logged, logged_half: In the log; the half-width from the rounds as batches, None with too few of them.
        simulated, simulated_half: In the model.
        sd: Standard deviation of the difference as a part of the logged figure; None if not known.
        freedom: Degrees of freedom of that.
        count: Cycles or requests in the log.
        clients: Of the rounds.
        tests: How many figures of the kind were compared with it.
    """

    kind: str
    place: Place
    figure: str
    logged: float
    logged_half: float | None
    simulated: float
    simulated_half: float
    sd: float | None
    freedom: int
    count: int
    clients: int = 1
    tests: int = 1

    @property
    def difference(self) -> float:
        """By which part of the logged figure the model's is longer."""
        return self.simulated / self.logged - 1

    @property
    def half_width(self) -> float | None:
        """Half-width of the 95 % interval of ``difference``."""
        return None if self.sd is None else t_quantile(self.freedom) * self.sd

    @property
    def differs(self) -> bool:
        """Whether it differs by more than chance explains, where so many others were compared."""
        if self.sd is None:
            return False
        return abs(self.difference) > t_quantile(self.freedom, 1 - 0.05 / self.tests) * self.sd

    @property
    def excess(self) -> float:
        """By how much it differs beyond what chance explains; 0 if that explains it."""
        return math.sqrt(self.difference**2 - (self.sd or 0.0) ** 2) if self.differs else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the object in ``single_user.figures``."""
        return {
            "rounds": self.kind,
            "clients": self.clients,
            "caller": self.place.caller,
            "callee": self.place.callee,
            "figure": self.figure,
            "count": self.count,
            "observed": self.logged,
            "observed_ci95": self.logged_half,
            "simulated": self.simulated,
            "simulated_ci95": self.simulated_half,
            "difference": self.difference,
            "difference_ci95": self.half_width,
            "differs": self.differs,
        }


@dataclass(frozen=True, slots=True)
class OfOneUser:
    """What was compared.

    Attributes:
        figures: Cycles first, then callers; hot rounds before cold ones.
        logs: What the log shows of each kind and place.
        problem: Why nothing could be compared, or "".
    """

    figures: tuple[Compared, ...] = ()
    logs: Mapping[tuple[str, Place], Logged] = field(default_factory=dict)
    problem: str = ""

    def of_cycle(self, figure: str = "mean") -> list[Compared]:
        """Return one figure of a cycle, of each kind of rounds that shows it."""
        return [c for c in self.figures if c.place == Place() and c.figure == figure]

    def warned(self) -> list[Compared]:
        """Return what differs by more than chance explains: means, and the 95th percentile of a cycle."""
        found = [c for c in (*self.of_cycle(), *self.of_cycle("p95")) if c.differs]
        callers = [c for c in self.figures if c.place.callee and c.differs and abs(c.difference) > NOTABLE]
        return found + sorted(callers, key=lambda c: -abs(c.simulated - c.logged) * c.count)

    def uncertainty(self) -> OneUser | None:
        """Return what prediction intervals have to contain of it; None if nothing was compared."""
        means, tails = self.of_cycle(), self.of_cycle("p95")
        if not means:
            return None
        shape = next((c for c in tails if c.sd is not None), None)
        return OneUser(
            response_time=_short(max(c.excess for c in means)),
            p95=_short(max((c.excess for c in tails), default=0.0)),
            p95_shape=_short(shape.sd or 0.0) if shape is not None else 0.0,
            p95_seconds=_short(max((c.logged for c in tails), default=0.0)),
        )


def _short(value: float) -> float:
    return float(f"{value:.4g}")


@dataclass(slots=True)
class Logged:
    """What the log shows of one kind of rounds at one place.

    Attributes:
        times: Seconds, each with its window.
        late: Replies that were picked up late, so that it is unknown when they arrived.
        beside: Requests during which the same caller waited for another one, too.
    """

    times: Sample = field(default_factory=Sample)
    late: int = 0
    beside: int = 0


def compared(
    model: Model,
    observed: Observed,
    draws: Sequence[FloatArray],
    replicates: Sequence[Replicate],
    *,
    host: Processor | None = None,
) -> OfOneUser:
    """Compare a calibrated model with the log it was made of.

    Args:
        model: On the machine of the run.
        observed: The run.
        draws: Weights of the windows each replicate was made of.
        replicates: Of the model; none if its uncertainty is unknown.
        host: The machine, as for ``observe``.
    """
    if [task.is_open for task in model.reference_tasks] != [False]:
        return OfOneUser(problem="its clients do not come in cycles")
    logs = _logged(observed) | _logged_bursts(observed)
    figures: list[Compared] = []
    for kind in KINDS:
        clients = _clients(observed, kind)
        weights = observed.phase(kind) * np.array([w.clients == clients for w in observed.windows])
        own = {place: log for (of, place), log in logs.items() if of == kind}
        cycles = own.get(Place())
        if cycles is None or cycles.times.count(weights) < FEWEST_CYCLES:
            continue
        rounds = _Rounds(kind, clients, weights)
        as_then = _as_then(model, observed, cycles.times, rounds, host)
        try:
            figures += _compare(rounds, as_then, own, draws, replicates)
        except _NEITHER as error:
            return OfOneUser(problem=error.message)
    ordered = sorted(figures, key=lambda c: bool(c.place.callee))
    return OfOneUser(tuple(ordered), logs, "" if figures else "too few cycles of one user")


class _Rounds(NamedTuple):
    """Rounds of one kind that are compared: how many clients they have, and the weights of all windows."""

    kind: str
    clients: int
    weights: FloatArray


def _clients(observed: Observed, kind: str) -> int:
    """Return how many clients the rounds of a kind have; of several numbers the one most cycles are from."""
    cycles: Counter[int] = Counter()
    for window in observed.windows:
        if window.phase == kind:
            cycles[window.clients] += window.cycles
    return max(cycles, key=lambda clients: (cycles[clients], clients), default=1)


# The log.


def _logged(observed: Observed) -> dict[tuple[str, Place], Logged]:
    """Return what rounds with one client show, by kind and place."""
    found: dict[tuple[str, Place], Logged] = {}
    for execution in observed.executions:
        at = observed.window_of[execution.request]
        window = observed.windows[at]
        if window.phase not in ALONE or execution.failed or execution.end is None:
            continue
        part = observed.parts[at]
        if execution.endpoint in part.outdated:
            continue
        if execution.role == "client":
            log = found.setdefault((window.phase, Place()), Logged())
            log.times.add(response_of(execution), at)
        for operation in execution.operations.values():
            place = Place(execution.endpoint, operation.dest)
            log = found.setdefault((window.phase, place), Logged())
            _add_call(log, execution, operation, observed, at)
    return found


def _logged_bursts(observed: Observed) -> dict[tuple[str, Place], Logged]:
    """Return how long a cycle of bursts took in the mean, by Little's law."""
    log = Logged()
    for index, window in enumerate(observed.windows):
        if window.phase == "burst":
            for _ in range(window.cycles):
                log.times.add(window.clients * window.seconds / window.cycles, index)
    return {("burst", Place()): log}


def response_of(execution: Execution) -> float:
    """Return the seconds of a cycle without its think times."""
    last = execution.done or execution.end or execution.begin
    thinking = sum(s.resume.time - s.start.time for s in execution.steps if s.op == "think")
    return (last.time - execution.begin.time - thinking) * _NS


def waited_for(operation: Operation) -> float:
    """Return the seconds from when a request had been sent until its reply was there; 0 if unknown."""
    sent, finish = operation.first_contact, operation.finish
    return 0.0 if sent is None or finish is None else (finish.time - sent.time) * _NS


def _add_call(
    log: Logged, execution: Execution, operation: Operation, observed: Observed, window: int
) -> None:
    sent, contact, finish = operation.first_contact, operation.contact, operation.finish
    if sent is None or contact is None or finish is None or operation.failed:
        return
    if operation.censored:
        log.late += 1
        return
    seconds = waited_for(operation)
    if operation.is_query:
        if operation.on_loop and contact.cpu >= 0:
            # What the loop did meanwhile is in the segment behind the wait, in the model too.
            seconds -= (finish.cpu - contact.cpu) * _NS
    else:
        get = next((s for s in execution.steps if s.op == "get" and s.seq == operation.seq), None)
        if get is not None and finish.time >= get.start.time and get.start.cpu >= 0 and finish.cpu >= 0:
            # So is reading the reply.
            seconds -= (finish.cpu - get.start.cpu) * _NS
        callee = answered(execution, operation, operation.attempt, observed)
        if callee is not None:
            # In the model a reply does not wait for the caller's own work: a join does.
            seconds -= held_up(execution, operation, callee.at) * _NS
    log.times.add(max(0.0, seconds), window)
    log.beside += any(
        other is not operation
        and other.contact is not None
        and other.finish is not None
        and other.contact.time < finish.time
        and sent.time < other.finish.time
        for other in execution.operations.values()
    )


# The model.


def _as_then(
    model: Model, observed: Observed, cycles: Sample, rounds: _Rounds, host: Processor | None
) -> Model:
    """Return the model with the clients of some rounds, who think as then, on a machine as fast as then."""
    windows = np.asarray(cycles.windows, dtype=np.int64)
    counts = np.bincount(windows, minlength=len(observed.windows)) * rounds.weights
    slowness = observed.slowness / idling_of(observed.windows, host)
    slower = float(counts @ slowness / counts.sum())
    scale = float(counts @ np.array([w.think_scale for w in observed.windows]) / counts.sum())
    as_then = with_faster_machines(with_clients(model, rounds.clients), 1 / slower)
    if scale == 1:
        return as_then
    return with_think(as_then, scale * _think(as_then))


def _think(model: Model) -> float:
    """Return the mean seconds a client thinks per cycle."""
    (task,) = model.reference_tasks
    entry = task.entries[0]
    visits = activity_visits(entry)
    found = task.think.mean if task.think is not None else 0.0
    return found + sum(
        visits[a.name] * a.delay.mean for a in entry.activities if a.kind == "think" and a.delay
    )


def _compare(
    rounds: _Rounds,
    as_then: Model,
    own: Mapping[Place, Logged],
    draws: Sequence[FloatArray],
    replicates: Sequence[Replicate],
) -> Iterator[Compared]:
    weights = rounds.weights
    # Estimated loads are rough without think times; demands have to be those of the load there was.
    load = load_of(as_then, simulate(as_then, precision=ROUGHLY, max_events=MOST_EVENTS))
    result = simulate(at_load(as_then, load), precision=PRECISION, max_events=MOST_EVENTS, activities=True)
    places = _callers(as_then)
    base = _figures(result, places)
    wanted = {
        place: log
        for place, log in own.items()
        if len(log.times) >= FEWEST_CYCLES
        and log.late <= LATE * (log.late + len(log.times))
        and (place, "mean") in base
        and base[place, "mean"][0] > 0
        and (log.times.mean(weights) or 0.0) > 0
    }
    again = _again(as_then, load, result.cycle.cycle_time.mean / rounds.clients, places, replicates)
    # Of the cycles of bursts only the mean is known.
    shown = ("mean", *PERCENTILES) if rounds.kind in ALONE else ("mean",)
    keys = [(place, figure) for place, figure in base if place in wanted and figure in shown]
    number = int(weights.sum())
    for place, figure in keys:
        log = wanted[place]
        simulated, half = base[place, figure]
        logged = _of_log(log.times, figure, weights)
        logged_half = _half_of_log(log.times, figure, weights)
        varied = _deviation(log.times, (place, figure), weights, draws, again)
        chance = half / simulated / t_quantile(result.freedom)
        if rounds.kind not in ALONE:
            # All rounds may hold as many cycles, but each is known to one of them only.
            grain = number / log.times.count(weights)
            logged_half = None if logged_half is None else max(logged_half, grain * logged)
            chance = math.hypot(chance, grain / math.sqrt(3))  # uniform, up to one cycle more or less
        freedom = max(1, number - 1)
        if varied is not None:
            sd: float | None = math.hypot(varied, chance)
            freedom = max(1, min(freedom, len(again) - 1))
        elif logged_half is not None:
            sd = math.hypot(logged_half / logged / t_quantile(freedom), chance)
        else:
            sd = None
        yield Compared(
            kind=rounds.kind,
            place=place,
            figure=figure,
            logged=logged,
            logged_half=logged_half,
            simulated=simulated,
            simulated_half=half,
            sd=sd,
            freedom=freedom,
            count=round(log.times.count(weights)),
            clients=rounds.clients,
            tests=max(1, len(wanted) - 1) if place.callee else 1,
        )


def _callers(model: Model) -> dict[str, Place]:
    """Return which endpoint or query each activity asks, and who asks, by name of the activity."""
    names = Names(model.tasks)
    plain = {(t.name, e.name): entry_label(t.name, _unsplit(e.name)) for t in model.tasks for e in t.entries}
    network = {task.name for task in model.tasks if task.role == "network"}
    found = {}
    for task, entry, activity in model.walk():
        called = [call for call in activity.calls if call.task not in network]
        if activity.kind == "communication" and len(called) == 1:
            key = names.activity(ActivityRef(task.name, entry.name, activity.name))
            found[key] = Place(plain[task.name, entry.name], plain[called[0].task, called[0].entry])
    return found


def _unsplit(entry: str) -> str:
    """Return the name of the entry that a variant belongs to."""
    name, at, number = entry.rpartition("@")
    return name if at and number.isdecimal() else entry


def _figures(result: Result, places: Mapping[str, Place]) -> dict[tuple[Place, str], tuple[float, float]]:
    """Return mean and half-width by place and figure; several calls weigh by how often they are made."""
    times = result.cycle.response_time
    found = {(Place(), "mean"): (times.mean, times.ci95)}
    for name in PERCENTILES:
        figure = getattr(times, name)
        found[Place(), name] = (figure.mean, figure.ci95)
    sums: dict[Place, list[tuple[float, float, float]]] = {}
    for key, place in places.items():
        seen = result.activities.get(key)
        if seen is not None and seen.service_time is not None and seen.throughput.mean > 0:
            rate, time = seen.throughput.mean, seen.service_time
            sums.setdefault(place, []).append((rate, time.mean, time.ci95))
    for place, parts in sums.items():
        total = math.fsum(rate for rate, _, _ in parts)
        found[place, "mean"] = (
            math.fsum(rate * mean for rate, mean, _ in parts) / total,
            math.sqrt(math.fsum((rate * half) ** 2 for rate, _, half in parts)) / total,
        )
    return found


def _again(
    as_then: Model, load: Load, each: float, places: Mapping[str, Place], replicates: Sequence[Replicate]
) -> list[list[dict[tuple[Place, str], float]] | None]:
    """Return what short simulations of every replicate find, two each; None where one cannot run.

    Args:
        as_then: The model of some rounds.
        load: At which demands are taken.
        each: Seconds from the end of one cycle to that of the next.
        places: As for ``_figures``.
        replicates: Of the model.
    """
    end = CYCLES * each
    found: list[list[dict[tuple[Place, str], float]] | None] = []
    for replicate in replicates:
        program = compile_model(at_load(apply(as_then, replicate), load), activities=True)
        try:
            found.append([_short_run(program, s, end, places) for s in replication_seeds(0, SERIES)])
        except SimulationError:
            found.append(None)
    return found


def _short_run(
    program: Program, seed: int, end: float, places: Mapping[str, Place]
) -> dict[tuple[Place, str], float]:
    """Return the figures of a run without intervals. A few clients have no warm-up to speak of."""
    engine, layout = CompiledEngine(program, seed), Layout(program)
    engine.run_until(end / WARMUP)
    before = engine.snapshot()
    engine.run_until(end)
    sums = engine.snapshot() - before
    cycles, times = (float(sums[layout.cycles(0) + i]) for i in (0, 1))
    ends, values = merged(engine.population_samples)
    values = values[ends >= end / WARMUP]
    if cycles == 0 or not len(values):
        raise SimulationError("no cycle was completed", where=program.name)
    found = {(Place(), "mean"): times / cycles}
    for name, share in PERCENTILES.items():
        found[Place(), name] = float(np.quantile(values, share))
    totals: dict[Place, tuple[float, float]] = {}
    for index, activity in enumerate(program.activities):
        place = places.get(activity.label)
        if place is not None:
            at, (number, seconds) = layout.activity(index), totals.get(place, (0.0, 0.0))
            totals[place] = (number + float(sums[at]), seconds + float(sums[at + 1]))
    found.update({(p, "mean"): s / n for p, (n, s) in totals.items() if n > 0})
    return found


# Both.


def _of_log(times: Sample, figure: str, weights: FloatArray) -> float:
    """Return a figure of the log, its windows weighed."""
    if figure == "mean":
        return times.mean(weights) or 0.0
    values, of_value = np.asarray(times.values), weights[np.asarray(times.windows, dtype=np.int64)]
    order = np.argsort(values)
    below = np.cumsum(of_value[order])
    at = int(np.searchsorted(below, PERCENTILES[figure] * below[-1]))
    return float(values[order][min(at, len(values) - 1)])


def _half_of_log(times: Sample, figure: str, weights: FloatArray) -> float | None:
    """Return the half-width of a figure of the log, with rounds as batches."""
    chosen = np.flatnonzero(weights > 0)
    values, windows = np.asarray(times.values), np.asarray(times.windows, dtype=np.int64)
    batch = np.searchsorted(chosen, windows)
    if figure != "mean":
        return quantile_half_width(values, PERCENTILES[figure], [(values, batch, len(chosen))])
    sums = np.bincount(batch, weights=values, minlength=len(chosen))
    return half_width_of_sums(sums.tolist(), np.bincount(batch, minlength=len(chosen)).tolist())


def _deviation(
    times: Sample,
    key: tuple[Place, str],
    weights: FloatArray,
    draws: Sequence[FloatArray],
    again: Sequence[Sequence[Mapping[tuple[Place, str], float]] | None],
) -> float | None:
    """Return the standard deviation of the logarithm of model over log; None with too few replicates."""
    rows = []
    for drawn, pair in zip(draws, again, strict=False):
        if pair is None or not (weights * drawn).any() or any(found.get(key, 0.0) <= 0 for found in pair):
            continue
        logged = _of_log(times, key[1], weights * drawn)
        if logged > 0:
            rows.append([math.log(found[key] / logged) for found in pair])
    if len(rows) < 3:
        return None
    table = np.array(rows)
    rest = table - table.mean(axis=0)
    return math.sqrt(max(0.0, float(rest[:, 0] @ rest[:, 1]) / (len(rows) - 1)))
