"""Fit a processor of the model to the behaviour of the ring on this machine.

The ring (`analyzer.host.ring`) is small enough to be modelled completely, with nothing but the processor
unknown. So its own simulation says how good a processor of the model is, and where the scheduler cannot be
traced, which migration explains what the processes saw: the mean time of a round at every load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, pvariance
from typing import Any

from analyzer.host.names import HOST
from analyzer.host.ring import RingReport
from mup.lqn.distributions import Constant, Exponential, with_scv
from mup.lqn.model import Activity, Call, Entry, Migration, Model, Precedence, Processor, Task, Turns

__all__ = ["Fit", "fit_migration", "predict_rounds", "ring_model"]

HORIZON = 40.0
"""Simulated seconds of the ring; the fit itself takes half of it."""
WAKES = (0.0, 0.1, 0.25, 0.5, 1.0)
STEALS = (0.0, 0.1, 0.25, 0.5, 1.0)
BALANCES = (0.0, 30.0, 80.0, 200.0)


def ring_model(report: RingReport, phase: int, processor: Processor) -> Model:
    """Return the model of one phase of a ring on a processor."""
    part = report.phases[phase]
    rounds = max(1, len(part.rounds))
    names = [f"P{number}" for number in range(len(report.processes))]
    tasks = [_task("hub", with_scv(part.hub_cpu / rounds, 0.25))]
    for name, process in zip(names, report.processes, strict=True):
        bursts = [burst.cpu for burst in process.within(part)]
        mean = fmean(bursts)
        tasks.append(_task(name, with_scv(mean, pvariance(bursts) / mean**2)))
    steps = tuple(
        Activity(
            name=task.name,
            kind="communication",
            demand=Constant(0),
            delay=Constant(0),
            calls=(Call(task=task.name, entry="turn"),),
        )
        for task in tasks
    )
    arcs = tuple(Precedence(pre=(before.name,), post=(after.name,)) for before, after in pairwise(steps))
    tokens = Task(
        name="tokens",
        role="reference",
        threads=report.tokens,
        think=Exponential(part.rest + part.lateness),
        entries=(Entry(name="round", start="hub", activities=steps, precedences=arcs),),
    )
    return Model(name="ring", processors=(processor,), tasks=(tokens, *tasks))


def _task(name: str, demand: Any) -> Task:
    work = Activity(name="work", demand=demand, delay=Constant(0), replies=True)
    return Task(name=name, processor=HOST, entries=(Entry(name="turn", start="work", activities=(work,)),))


def predict_rounds(report: RingReport, processor: Processor, horizon: float = HORIZON) -> tuple[float, ...]:
    """Return the simulated mean seconds per round, one per phase."""
    from simulator import simulate  # noqa: PLC0415  (the compiled engine takes a second to load)

    return tuple(
        simulate(ring_model(report, phase, processor), horizon=horizon, seed=7).cycle.response_time.mean
        for phase in range(len(report.phases))
    )


@dataclass(frozen=True, slots=True)
class Fit:
    """The migration that explains a ring best.

    Attributes:
        migration: Of a ``cores`` processor.
        error: Root of the mean square of the relative errors of the mean time of a round, over the phases.
    """

    migration: Migration
    error: float


def fit_migration(
    report: RingReport,
    progress: Callable[[str], None] = lambda _: None,
    *,
    turns: Turns | None = None,
) -> Fit:
    """Find the migration whose simulation takes as long per round as the ring did, in every phase.

    One figure per phase does not determine three numbers: of migrations that fit equally well, the one
    nearest to the middle of what kernels do is taken by looking along one number at a time, from there.

    Args:
        report: What the ring saw.
        progress: Told what is tried.
        turns: How threads take turns on a core; None = they share it.
    """
    measured = report.mean_rounds

    def error(migration: Migration) -> float:
        processor = Processor(
            name=HOST, cores=len(report.cores), discipline="cores", migration=migration, turns=turns
        )
        return rms_error(predict_rounds(report, processor, HORIZON / 2), measured)

    best = Fit(Migration(wake=0.25, steal=0.25, balance=80.0), math.inf)
    known: dict[Migration, float] = {}
    grids: tuple[tuple[str, tuple[float, ...]], ...] = (
        ("wake", WAKES),
        ("steal", STEALS),
        ("balance", BALANCES),
    )
    for turn in range(2):
        for name, values in grids:
            progress(f"fitting {name}, turn {turn + 1} of 2")
            for value in values:
                tried = _changed(best.migration, name, value)
                if tried not in known:
                    known[tried] = error(tried)
                # Another number must explain clearly more, or noise would choose.
                if known[tried] < best.error * 0.95:
                    best = Fit(tried, known[tried])
    return best


def _changed(migration: Migration, name: str, value: float) -> Migration:
    number: dict[str, Any] = {name: value}
    return replace(migration, **number)


def rms_error(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return the root of the mean square of the relative errors."""
    return math.sqrt(fmean((p / m - 1) ** 2 for p, m in zip(predicted, measured, strict=True)))
