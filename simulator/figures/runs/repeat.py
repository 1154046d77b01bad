"""One run as a real load run is: clients come spread over a warm-up, and a window opens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from mup.errors import SimulationError
from simulator.figures.runs.engines import DEFAULT_ENGINE, engine_of
from simulator.machine.budget import Budget
from simulator.machine.recording import FloatArray
from simulator.program import Program

__all__ = ["MAX_EVENTS", "Repeat", "Settled", "repeat_run", "settled", "stuck"]

MAX_EVENTS: Final = 30_000_000
"""Timed steps after which no more is tried."""
TRANSIENT_CYCLES: Final = 20
"""About so many cycles of all clients together, or more, show how long one takes."""
LONG_ENOUGH: Final = 1.1
"""A warm-up is long enough if the cycles begun after it take at most so many times as long."""
STUCK: Final = 10
"""So many times as long as all clients need one after the other."""
PATIENCE: Final = 2.0
"""Cycles begun in the window are waited for so many times as long as the longest one so far took."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """What one run showed.

    Attributes:
        sums: By how much each column of a snapshot grew in the window.
        starts: When the cycles that began in the window did so, seconds since it opened; per population.
        seconds: Their response times.
        events: Timed steps it took.
        simulated_seconds: In all.
    """

    sums: FloatArray
    starts: tuple[FloatArray, ...]
    seconds: tuple[FloatArray, ...]
    events: int
    simulated_seconds: float


def repeat_run(
    program: Program,
    seed: int,
    warmup: float,
    seconds: float,
    *,
    on_part: Callable[[float, int], None] | None = None,
    budget: Budget | None = None,
) -> Repeat:
    """Execute one run: warm-up, window, and on until the cycles of the window are over.

    Args:
        program: What to run; its populations are clients.
        seed: Same seed, same run.
        warmup: Seconds before the window, in which clients come.
        seconds: Length of the window.
        on_part: Called with the simulated seconds and events so far, now and then.
        budget: Of the study.
    """
    engine = engine_of(DEFAULT_ENGINE, program, seed)
    engine.run_until(warmup, budget)
    before = np.asarray(engine.snapshot())
    end = now = warmup + seconds
    engine.run_until(end, budget)
    sums = np.asarray(engine.snapshot()) - before
    thinking = [population.nominal.think for population in program.populations]
    longest = max(population.nominal.total for population in program.populations)
    while True:
        if on_part is not None:
            on_part(now, engine.events)
        times = [samples.unordered() for samples in engine.population_samples]
        for (_, values), think in zip(times, thinking, strict=True):
            longest = max(longest, float(values.max(initial=0.0)) + think)
        if now >= end + PATIENCE * longest:
            break
        now = end + PATIENCE * longest
        engine.run_until(now, budget)
    starts, found = [], []
    for (ends, values), think in zip(times, thinking, strict=True):
        # An engine tells the end and the response time of a cycle. Where users draw their think times, the
        # mean one moves a start by seconds within a window of a minute.
        begun = ends - values - think
        inside = (begun >= warmup) & (begun < end)
        starts.append(begun[inside] - warmup)
        found.append(values[inside])
    return Repeat(sums, tuple(starts), tuple(found), engine.events, now)


@dataclass(frozen=True, slots=True)
class Settled:
    """A system in which all clients have come.

    Attributes:
        cycle_seconds: About how long a cycle takes then; a sensible warm-up.
        events_per_second: Timed steps per simulated second.
    """

    cycle_seconds: float
    events_per_second: float


def settled(
    compiled_within: Callable[[float], Program],
    shortest: float,
    *,
    seed: int = 0,
    budget: Budget | None = None,
) -> Settled:
    """Return about how long a cycle takes when all clients came spread over one.

    How long cycles take depends on how clients came: those that come all at once go through a cycle of many
    calls side by side, and end it shortly after each other, however long it took. So warm-ups are tried,
    longer and longer, until cycles begun after one are as long as it is.

    Args:
        compiled_within: Returns the program of which all clients come within so many seconds.
        shortest: Seconds to begin with: a cycle without any waiting.
        seed: Of the runs.
        budget: Of the study.

    Raises:
        LimitError: The budget is used up before a cycle is over.
        SimulationError: The scenario deadlocks, or a cycle takes no time.
    """
    warmup = shortest
    events = 0
    while True:
        program = compiled_within(warmup)
        window = warmup * max(1.0, TRANSIENT_CYCLES / min(p.clients for p in program.populations))
        seen = repeat_run(program, seed, warmup, window, budget=budget)
        events += seen.events
        rate = seen.events / seen.simulated_seconds
        if all(map(len, seen.seconds)):
            cycle = shortest
            for population, seconds in zip(program.populations, seen.seconds, strict=True):
                cycle = max(cycle, float(seconds.mean()) + population.nominal.think)
            if cycle <= LONG_ENOUGH * warmup or events >= MAX_EVENTS:
                return Settled(cycle, rate)
            warmup = cycle
        elif events >= MAX_EVENTS:
            return Settled(warmup, rate)
        else:
            warmup *= 2
            # All other clients served first, one after the other, would still be faster than this.
            if warmup > STUCK * sum(p.clients * p.nominal.total for p in program.populations):
                raise stuck(program, list(map(len, seen.seconds)).index(0), window)


def stuck(program: Program, index: int, seconds: float) -> SimulationError:
    """Return the error of a population that stood still for so long while others went on."""
    name = program.tasks[program.populations[index].task].name
    return SimulationError(
        f"no client of {name!r} completed a cycle in the last {seconds:g} s of the "
        "run although others did: its requests wait for threads that they hold themselves",
        where=f"tasks[{name!r}]",
        hint="a service that is called back while its caller's thread is held needs more threads",
    )
