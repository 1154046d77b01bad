"""Measurements of a simulated system: figures of consecutive batches of one run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.fitting.data import Data, Trial
from analyzer.fitting.forward import Settings, with_settings
from analyzer.fitting.measures import long_name
from mup.lqn import Model
from simulator.api import compiled
from simulator.machine.compiled.engine import CompiledEngine
from simulator.machine.recording import AREA, COMPLETED_TIME, LEFT, Layout
from simulator.program import Program

FloatArray = npt.NDArray[np.float64]


def measure(
    model: Model,
    trials: Sequence[Settings],
    measures: Sequence[str],
    *,
    seconds: float,
    batches: int,
    warmup: float,
    seed: int,
) -> Data:
    """Run every trial once and measure it in batches.

    Args:
        model: The system.
        trials: Configurations.
        measures: Names of the figures: of the cycle, response times of entries, utilizations of tasks.
        seconds: Measured time of a trial.
        batches: Rows per trial.
        warmup: Seconds before that.
        seed: Trials have independent seeds derived from it.
    """
    seeds = np.random.SeedSequence(seed).generate_state(len(trials))
    found = []
    for trial, own in zip(trials, seeds, strict=True):
        rows, weights = _rows(
            with_settings(model, trial), measures, seconds / batches, batches, warmup, int(own)
        )
        found.append(Trial(trial, rows, np.full_like(rows, math.nan), weights))
    return Data(tuple(measures), tuple(found))


def _rows(
    model: Model, measures: Sequence[str], seconds: float, batches: int, warmup: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    program = compiled(model)
    layout, engine = Layout(program), CompiledEngine(program, seed)
    engine.run_until(warmup)
    before = np.asarray(engine.snapshot(), dtype=np.float64)
    figures = []
    for batch in range(1, batches + 1):
        engine.run_until(warmup + batch * seconds)
        now = np.asarray(engine.snapshot(), dtype=np.float64)
        figures.append([_figure(program, layout, now - before, long_name(m), seconds) for m in measures])
        before = now
    found = np.array(figures)
    return found[..., 0], found[..., 1]


def _figure(
    program: Program, layout: Layout, grown: FloatArray, measure: str, seconds: float
) -> tuple[float, float]:
    """Return a figure of a batch and its weight: requests of a time, seconds of everything else."""
    group, _, rest = measure.partition(".")
    if group == "cycle":
        at = layout.cycles(0)
        cycles = float(grown[at])
        return (
            (cycles / seconds, seconds) if rest == "throughput" else (float(grown[at + 1]) / cycles, cycles)
        )
    name, _, figure = rest.rpartition(".")
    if group == "entries":
        at = layout.inside([e.label for e in program.entries].index(name))
        requests = float(grown[at + LEFT])
        return float(grown[at + COMPLETED_TIME]) / requests, requests
    if figure != "utilization":
        raise ValueError(measure)
    index = [t.name for t in program.tasks].index(name)
    places = layout.places_of[index]
    busy = sum(float(grown[layout.busy(place) + AREA]) for place in places)
    return busy / seconds / (program.tasks[index].threads * program.tasks[index].replicas), seconds
