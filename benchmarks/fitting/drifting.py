"""Tracking of a network whose demands drift, and its alarm when the network is another one.

Every period is a simulation of its own, of demands that walk at random, with 3 to 8 clients in turns; one row
per period is measured, without half-widths. Compared are estimates after each period: tracked, fitted to this
period alone, and those of a fit to the first periods, which are not updated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from analyzer.fitting.data import Data, Series
from analyzer.fitting.fit import Options, Wanted, fit
from analyzer.fitting.parameters import parameter
from analyzer.fitting.tracking import Following, Tracked, track
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Task

from .measurements import measure
from .systems import NODES, TRUE_DEMANDS, queueing, users
from .tables import MEASURES, clients

FloatArray = npt.NDArray[np.float64]

THINK, WARMUP = 10.0, 200.0
SECONDS = 2000.0
"""Of a period: some 300 cycles."""
PERIODS, LEARNED, CHANGE = 100, 20, 60
WANTED = [Wanted(parameter(f"demand.{n}.serve")) for n in NODES]
SOON = 10
"""Periods within which a change is to be noticed."""


def drifting(repetitions: int, seed: int) -> None:
    """Print errors of estimates, coverage of intervals, and false and true alarms."""
    print(
        f"tracking of a queueing network, {PERIODS} periods of {SECONDS:g} s, {LEARNED} learned from, "
        f"{repetitions} repetitions:"
    )
    print("  drift   error: tracked  period alone   not updated   intervals hold   drift found  alarms/1000")
    for drift in (0.0, 0.01, 0.03):
        figures = []
        for repetition in range(repetitions):
            demands = _walk(drift, seed + repetition)
            figures.append(_followed(demands, seed + repetition))
        errors = np.sqrt(np.mean([f[:3] for f in figures], axis=0))
        held, found, alarms = np.mean([f[3:] for f in figures], axis=0)
        print(
            f"  {drift:5.2f}   " + "".join(f"{100 * e:14.2f}" for e in errors)
            + f" %{held:15.3f}{found:14.4f}{1000 * alarms / (PERIODS - LEARNED):14.2f}"
        )  # fmt: skip
    for name in ("app needs 30 % more", "app needs 60 % more", "a queue appears"):
        verdicts, delays, before = [], [], 0
        for repetition in range(repetitions):
            demands = _walk(0.01, seed + repetition)
            if name != "a queue appears":
                demands[CHANGE:, 2] *= 1.3 if "30" in name else 1.6
            tracked = _tracked(demands, seed + repetition, ghost=name == "a queue appears")
            before += sum(a.period < CHANGE for a in tracked.alarms)
            after = [a for a in tracked.alarms if CHANGE <= a.period < CHANGE + SOON]
            if after:
                delays.append(after[0].period - CHANGE + 1)
                verdicts.append(after[0].verdict)
        share = {v: verdicts.count(v) for v in sorted(set(verdicts))}
        median = f"{np.median(delays):g}" if delays else "-"
        print(
            f"  {name}: noticed within {SOON} periods {len(delays)} of {repetitions}, in period {median} "
            f"after it (median), as {share}; {before} alarms before it"
        )


def _walk(drift: float, seed: int) -> FloatArray:
    steps = drift * np.random.default_rng(seed).standard_normal((PERIODS, len(TRUE_DEMANDS)))
    steps[0] = 0.0
    found: FloatArray = np.array(TRUE_DEMANDS) * np.exp(np.cumsum(steps, axis=0))
    return found


def _with_ghost(model: Model) -> Model:
    """Return the network with a queue that is not measured, and that the tracked model lacks."""
    work = Activity(name="work", demand=Exponential(3.0), delay=Constant(0.0))
    ghost = Task(name="ghost", entries=(Entry(name="serve", start="work", activities=(work,)),))
    calls = [Call(task=name, entry="serve") for name in (*NODES, "ghost")]
    return replace(model, tasks=(users(calls, 4, THINK), *model.tasks[1:], ghost))


def _measured(demands: Sequence[Sequence[float]], seed: int, *, ghost: bool) -> Series:
    trials = []
    for index, row in enumerate(demands):
        model = queueing(row, think=THINK)
        if ghost and index >= CHANGE:
            model = _with_ghost(model)
        one = measure(
            model, clients([3 + index % 6]), MEASURES, seconds=SECONDS, batches=1, warmup=WARMUP,
            seed=1_000_000 + seed * PERIODS + index,
        )  # fmt: skip
        # What a monitor reports: means, all of the same weight.
        trials.append(replace(one.trials[0], weights=np.ones_like(one.trials[0].rows)))
    return Series(Data(MEASURES, tuple(trials)), tuple(str(n) for n in range(1, len(trials) + 1)))


def _tracked(demands: FloatArray, seed: int, *, ghost: bool = False) -> Tracked:
    series = _measured(demands.tolist(), seed, ghost=ghost)
    return track(queueing(think=THINK), series, WANTED, Following())


def _followed(demands: FloatArray, seed: int) -> tuple[float, float, float, float, float, float]:
    """Return three mean squared relative errors, the share of intervals that hold, drift, and alarms."""
    found = _tracked(demands, seed)
    later = slice(LEARNED, None)
    alone = []
    for trial in found.series.data.trials[later]:
        fitted = fit(queueing(think=THINK), Data(MEASURES, (trial,)), WANTED, Options(method="linear"))
        alone.append(fitted.values)
    first = fit(
        queueing(think=THINK),
        Data(MEASURES, found.series.data.trials[:LEARNED]),
        WANTED,
        Options(method="linear"),
    )
    truth = demands[later]
    errors = [float(np.mean((v / truth - 1) ** 2)) for v in (found.values[later], alone, first.values)]
    held = (found.low[later] <= truth) & (truth <= found.high[later])
    return errors[0], errors[1], errors[2], float(held.mean()), found.drift, float(len(found.alarms))
