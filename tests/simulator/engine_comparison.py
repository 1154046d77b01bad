"""Run two engines on a model, list what differs, and shrink the model.

The reference engine runs first and decides where both stop to be looked at: after every mean cycle time, which
in models with constant times is often the very moment of an event. Bit for bit the same must be: moment and key
of the flow of every timed step, their number, single times, errors. Sums may be added up in another order, so
snapshots may differ by rounding.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pytest
from random_models import describe, shrink

from mup.errors import MupError, SimulationError
from mup.lqn import Model
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.recording import FloatArray
from simulator.machine.reference.engine import ReferenceEngine
from simulator.program import Program, compile_model

__all__ = [
    "SETTINGS",
    "Run",
    "assert_engines_agree",
    "differences",
    "run_compiled",
    "run_reference",
    "together",
]

SETTINGS: Final[tuple[dict[str, bool], ...]] = tuple(
    {"optimised": optimised, "look_ahead": look_ahead}
    for optimised in (True, False)
    for look_ahead in (True, False)
)
"""Every way to run the compiled engine."""

EVENTS: Final = 800
MAX_STOPS: Final = 60
ROUNDING: Final = 1e-9
SHRINK_SECONDS: Final = 60.0
SHRINK_CANDIDATES: Final = 1500
CANDIDATE_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Run:
    """What an engine did.

    Attributes:
        stops: Simulated seconds at which it was looked at; if there is an error, the run after the last
            of them failed.
        trace: Moment and key of the flow of every timed step, in the order of the moments.
        events: Number of timed steps.
        snapshots: All sums at every stop.
        samples: Ends and values of the single times of every population, then of every entry.
        error: Message of the error that ended the run; "" if none did.
    """

    stops: tuple[float, ...]
    trace: list[tuple[float, int]]
    events: int
    snapshots: tuple[FloatArray, ...]
    samples: list[tuple[FloatArray, FloatArray]]
    error: str


def _between_stops(program: Program) -> float:
    times = [1 / p.rate if p.is_open else p.nominal.total for p in program.populations]
    return sum(times) / len(times)


def run_reference(program: Program, seed: int, *, events: int = EVENTS, width: float | None = None) -> Run:
    """Run the reference engine until there have been that many timed steps (or many stops, ``width`` apart)."""
    engine = ReferenceEngine(program, seed)
    trace: list[tuple[float, int]] = []
    engine.trace = lambda moment, key, _address: trace.append((moment, key))
    width = width or _between_stops(program)
    stops: list[float] = []
    snapshots = []
    error = ""
    try:
        while engine.events < events and len(stops) < MAX_STOPS:
            engine.run_until((len(stops) + 1) * width)
            stops.append(engine.now)
            snapshots.append(np.array(engine.snapshot()))
    except SimulationError as failure:
        error = str(failure)
    samples = [s.arrays() for s in (*engine.population_samples, *engine.entry_samples)]
    return Run(tuple(stops), sorted(trace), engine.events, tuple(snapshots), samples, error)


def run_compiled(
    program: Program,
    seed: int,
    stops: tuple[float, ...],
    *,
    beyond: float = 0.0,
    optimised: bool = True,
    look_ahead: bool = True,
) -> Run:
    """Run the compiled engine to the ``stops`` of another, and ``beyond`` seconds further if that one failed."""
    engine = CompiledEngine(program, seed, optimised=optimised, look_ahead=look_ahead, traced=True)
    reached: list[float] = []
    snapshots = []
    error = ""
    try:
        for stop in stops:
            engine.run_until(stop)
            reached.append(stop)
            snapshots.append(engine.snapshot())
        if beyond:
            engine.run_until((stops[-1] if stops else 0.0) + beyond)
    except SimulationError as failure:
        error = str(failure)
    samples = [s.arrays() for s in (*engine.population_samples, *engine.entry_samples)]
    return Run(tuple(reached), engine.trace, engine.events, tuple(snapshots), samples, error)


def unequal(expected: Run, found: Run) -> list[str]:
    """Return how a run differs from the one it should equal, one line per kind of difference."""
    if (found.error, found.stops) != (expected.error, expected.stops):
        what = f"expected {expected.error!r} after stop {len(expected.stops)}"
        return [f"error {found.error!r} after stop {len(found.stops)}, {what}"]
    lines = []
    # After an error the rest is not compared: a flow may have been ahead of the one that found it.
    end = expected.stops[-1] if expected.stops else 0.0
    mine, theirs = ([s for s in run.trace if not run.error or s[0] < end] for run in (expected, found))
    if mine != theirs:
        step = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        step = min(len(mine), len(theirs)) if step is None else step
        lines.append(
            f"step {step} of {len(mine)}: {theirs[step : step + 2]}, expected {mine[step : step + 2]}"
        )
    for stop, a, b in zip(expected.stops, expected.snapshots, found.snapshots, strict=True):
        wrong = np.flatnonzero(np.abs(a - b) > ROUNDING * np.maximum(np.abs(a), max(1.0, stop)))
        if len(wrong):
            column = wrong[0]
            lines.append(
                f"snapshot at {stop:g} s, columns {wrong[:8].tolist()}: {b[column]!r}, expected {a[column]!r}"
            )
            break
    if expected.error:
        return lines
    if found.events != expected.events:
        lines.append(f"{found.events} timed steps, expected {expected.events}")
    for index, (a, b) in enumerate(zip(expected.samples, found.samples, strict=True)):
        if not all(np.array_equal(x, y) for x, y in zip(a, b, strict=True)):
            lines.append(f"single times of population or entry {index} (populations first)")
    return lines


def together(program: Program) -> Program:
    """Return the program with all clients coming at time 0: then most happens at the same moments."""
    populations = tuple(replace(p, first=p.start) for p in program.populations)
    return replace(program, populations=populations)


def differences(
    model: Model, *, seed: int = 1, events: int = EVENTS, width: float | None = None
) -> list[str]:
    """Return the first difference of the compiled engine under each of its settings; [] if there is none.

    Fork-joins are only executed inline where activities are not timed, hence both ways: once with all
    clients coming together, once with clients coming one by one.

    Args:
        model: What to run.
        seed: Of all runs.
        events: Timed steps of the reference run, at least.
        width: Simulated seconds between stops; None = a mean cycle time.

    Raises:
        MupError: The model cannot be compiled at all.
    """
    lines = []
    for activities in (True, False):
        program = compile_model(model, activities=activities)
        if not activities:
            program = together(program)
        expected = run_reference(program, seed, events=events, width=width)
        beyond = (width or _between_stops(program)) if expected.error else 0.0
        for setting in SETTINGS:
            found = run_compiled(program, seed, expected.stops, beyond=beyond, **setting)
            lines += [f"{setting}, activities {activities}: {d}" for d in unequal(expected, found)[:1]]
    return lines


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def assert_engines_agree(
    model: Model, *, seed: int = 1, events: int = EVENTS, width: float | None = None
) -> None:
    """Fail with a small model, and what differs on it, if the engines differ on this one (see ``differences``)."""
    found = differences(model, seed=seed, events=events, width=width)
    if not found:
        return
    deadline = time.process_time() + SHRINK_SECONDS

    def fails(candidate: Model) -> bool:
        if time.process_time() > deadline:
            return False
        try:
            with _at_most(CANDIDATE_SECONDS):
                return bool(differences(candidate, seed=seed, events=events, width=width))
        except (MupError, TimeoutError):
            return False  # it cannot be compiled any more, or a cycle of it takes millions of steps

    small = shrink(model, fails, limit=SHRINK_CANDIDATES)
    remains = differences(small, seed=seed, events=events, width=width)
    pytest.fail("\n".join([f"seed {seed}", *found, "shrunk:", *remains, describe(small)]), pytrace=False)
