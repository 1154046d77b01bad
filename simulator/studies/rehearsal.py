"""Rehearsal of a real load run, which starts as real ones do and has their length.

Where users think for equally long times, those who once queued behind each other meet again in every cycle:
convoys form, and grow for hours. The state of rest that ``simulate`` looks for is then not what a run of a
minute shows. A *rehearsal* repeats the run itself: clients come spread over the warm-up, a window opens, and
the figures are those of ``mup load``: response times of the cycles begun in the window, throughput of those
completed in it, utilization during it. Repeats differ in their seed alone and are independent, so their
spread says how much such runs differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from mup.errors import LimitError, SimulationError, UsageError
from mup.lqn.model import Model
from simulator.api import Progress, compiled
from simulator.figures.operational_laws import check_identities
from simulator.figures.output import Window, ratio
from simulator.figures.result import Figure, ResponseTime
from simulator.figures.runs.repeat import MAX_EVENTS, Repeat, repeat_run, settled
from simulator.figures.runs.replicated import RUN_SECONDS
from simulator.machine.budget import MAX_SECONDS, Budget, Reached
from simulator.machine.recording import AREA, Layout, Samples
from simulator.program import Population, Program
from simulator.studies.parallel import run_jobs

__all__ = ["RUN_SECONDS", "Rehearsal", "cycle_seconds", "rehearse", "transient_seconds"]

FIRST_REPEATS: Final = 8
MAX_REPEATS: Final = 128
UNFINISHED: Final = 4
"""So many times as many steps as end the repeats may those take that are under way then."""
RESPONSE_SHARE: Final = 0.2
"""The response time need not be known better than this share of the precision of the cycle it is part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What runs of one scenario show on average; every interval is that of this average.

    Attributes:
        repeats: Runs.
        warmup, seconds: Of each of them.
        throughput: Cycles per second.
        response_time: Of a cycle without its think time.
        cycle_time: With it.
        utilization: Of every task whose threads are finite, busy threads / (threads x replicas).
        processors: Utilization of every finite processor.
        precision: The one asked for.
        reached: The one there is.
        limit: Of events or wall time, that kept it from being the one asked for.
    """

    repeats: int
    warmup: float
    seconds: float
    throughput: Figure
    response_time: ResponseTime
    cycle_time: Figure
    utilization: Mapping[str, Figure]
    processors: Mapping[str, Figure]
    precision: float
    reached: float
    limit: Reached | None = None

    def of_one_run(self, figure: Figure) -> Figure:
        """Return where a single run lands, 19 times of 20: the mean, with the half-width of one repeat."""
        return Figure(figure.mean, figure.ci95 * math.sqrt(self.repeats + 1))

    def to_json(self) -> dict[str, Any]:
        """Return all figures as ``{"mean", "ci95"}``, and what they are from."""
        return {
            "repeats": self.repeats,
            "warmup": self.warmup,
            "seconds": self.seconds,
            "throughput": self.throughput.to_json(),
            "response_time": self.response_time.to_json(),
            "cycle_time": self.cycle_time.to_json(),
            "utilization": {name: figure.to_json() for name, figure in self.utilization.items()},
            "processors": {name: figure.to_json() for name, figure in self.processors.items()},
            "precision": {"requested": self.precision, "reached": self.reached},
            "limit": None if self.limit is None else self.limit.to_json(),
        }


def cycle_seconds(model: Model) -> float:
    """Return how long a cycle takes without any waiting, think time included.

    Raises:
        UsageError: The load of the model is not one kind of clients.
        UncalibratedError: The model lacks numbers.
    """
    return _clients(compiled(model)).nominal.total


def transient_seconds(model: Model, *, seed: int = 0, budget: Budget | None = None) -> float:
    """Return about how long a cycle takes when all clients came spread over one; a sensible warm-up.

    Clients that come spread over it begin their cycles at the rate at which a full system completes them.
    With a shorter one all may have begun before the window, and none begins in it.

    Raises:
        UsageError: The load of the model is not one kind of clients.
        UncalibratedError: The model lacks numbers.
        LimitError: The budget is used up before a cycle is over.
        SimulationError: The scenario deadlocks, or a cycle takes no time.
    """
    shortest = cycle_seconds(model)
    found = settled(lambda within: compiled(model, arrive_within=within), shortest, seed=seed, budget=budget)
    return found.cycle_seconds


def rehearse(
    model: Model,
    *,
    seconds: float = RUN_SECONDS,
    warmup: float | None = None,
    precision: float = 0.01,
    seed: int = 0,
    workers: int | None = None,
    max_seconds: float = MAX_SECONDS,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> Rehearsal:
    """Predict what load runs of a stated length show.

    Args:
        model: Calibrated at least where clients can get to; its load is one kind of clients.
        seconds: Length of the window.
        warmup: Seconds before it, in which clients come one by one. Default: `transient_seconds`.
        precision: There are enough repeats when the 95 % half-widths of the cycle time (as a fraction) and of
            all utilizations (absolute) are within it.
        seed: Of the first repeat; the k-th has ``seed + k``, as with ``mup load --repeats``.
        workers: Repeats at once; default: one per core.
        max_seconds: Wall time after which no more repeats are waited for.
        budget: Of the study this is part of.
        progress: Called with the number of repeats so far.

    Raises:
        UsageError: An argument is out of range, or the load is not one kind of clients.
        UncalibratedError: The model lacks numbers.
        LimitError: A limit was reached before a first round of repeats was over.
        SimulationError: The scenario deadlocks, or no cycle began in the window.
    """
    if not 0 < seconds < math.inf:
        raise UsageError(f"the window must be a number of seconds > 0, got {seconds!r}")
    if not 0 < precision < 1:
        raise UsageError(f"precision must be a fraction between 0 and 1, got {precision!r}")
    own = Budget("the rehearsal of a run", events=UNFINISHED * MAX_EVENTS, seconds=max_seconds, outer=budget)
    if warmup is None:
        warmup = transient_seconds(model, budget=own)
    if not 0 <= warmup < math.inf:
        raise UsageError(f"the warm-up must be a number of seconds >= 0, got {warmup!r}")
    program = compiled(model, arrive_within=warmup)
    _clients(program)
    repeats: list[Repeat] = []
    found: Rehearsal | None = None
    while True:
        more = range(len(repeats), max(FIRST_REPEATS, 2 * len(repeats)))
        jobs = [partial(_repeated, program, seed + k, warmup, seconds, own) for k in more]
        try:
            repeats += run_jobs(jobs, workers=workers)
        except LimitError as error:
            if found is None:
                raise
            return replace(found, limit=error.reached)
        if progress is not None:
            progress(len(repeats))
        full = sum(repeat.events for repeat in repeats) >= MAX_EVENTS
        last = len(repeats) >= MAX_REPEATS or full
        # Where cycles are longer than the window, few clients begin one in a few of the repeats only.
        if last or any(len(repeat.starts[0]) for repeat in repeats):
            found = _averaged(program, repeats, warmup, seconds, precision)
            if found.reached <= precision:
                return found
            if last:
                return replace(found, limit=Reached(own.study, "events", MAX_EVENTS) if full else None)


def _clients(program: Program) -> Population:
    """Return the only source of load, which must be clients.

    Raises:
        UsageError: It is something else.
    """
    if len(program.populations) != 1 or program.populations[0].is_open:
        sources = ", ".join(p.name for p in program.populations)
        raise UsageError(
            f"only the load of one kind of clients can be rehearsed; this model has: {sources}",
            hint="'mup simulate' and 'mup whatif' know the others",
        )
    return program.populations[0]


def _repeated(
    program: Program,
    seed: int,
    warmup: float,
    seconds: float,
    budget: Budget,
    progress: Callable[[Progress], None],
) -> Repeat:
    """Execute one repeat; tell how far it is."""
    return repeat_run(
        program,
        seed,
        warmup,
        seconds,
        on_part=lambda now, events: progress(Progress(now, events, math.inf)),
        budget=budget,
    )


def _averaged(
    program: Program, repeats: Sequence[Repeat], warmup: float, seconds: float, precision: float
) -> Rehearsal:
    """Return the figures of some repeats: each of them is a batch."""
    layout = Layout(program)
    sums = np.array([repeat.sums for repeat in repeats])
    window = Window(program, layout, 0.0, seconds * len(repeats), sums, True, True)
    check_identities(window)
    counts = np.array([float(len(repeat.starts[0])) for repeat in repeats])
    times = np.array([float(repeat.seconds[0].sum()) for repeat in repeats])
    # One repeat after the other, as if they were batches of one long run.
    moments = np.concatenate([repeat.starts[0] + k * seconds for k, repeat in enumerate(repeats)])
    values = np.concatenate([repeat.seconds[0] for repeat in repeats])
    response = window.response(times, counts, [Samples.of(moments, values, 0)])
    if response is None:
        raise SimulationError(
            f"no cycle began in a window of {seconds:g} s after a warm-up of {warmup:.3g} s",
            where=program.name,
            hint="make the warm-up, or the window, longer",
        )
    cycle = Figure(response.mean + program.populations[0].nominal.think, response.ci95)
    exact = min(response.relative, response.ci95 / (RESPONSE_SHARE * cycle.mean))
    processors = {name: found.utilization for name, found in window.processors().items()}
    utilization = {}
    for index, task in enumerate(program.tasks):
        threads = task.threads * task.replicas
        if index != program.populations[0].task and threads < math.inf:
            busy = [layout.busy(place) + AREA for place in layout.places_of[index]]
            utilization[task.name] = window.rate(*busy, divisor=threads)
    return Rehearsal(
        repeats=len(repeats),
        warmup=warmup,
        seconds=seconds,
        throughput=ratio(window.cycle_sums(0), window.batch_seconds),
        response_time=response,
        cycle_time=cycle,
        utilization=utilization,
        processors=processors,
        precision=precision,
        reached=max([exact, *(share.ci95 for share in (*utilization.values(), *processors.values()))]),
    )
