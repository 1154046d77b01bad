"""Run several simulations at once, of one model or of many."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Final

from mup.errors import UsageError
from mup.lqn.model import Model
from mup.statistics.batches import independent_mean
from simulator.api import DEFAULT_ENGINE, DEFAULT_PRECISION, compiled, simulate
from simulator.figures.result import ControlVariates, Figure, Precision, Result
from simulator.studies.parallel.threads import run_jobs

__all__ = ["MIN_REPLICATIONS", "replicate", "simulate_many"]

MIN_REPLICATIONS: Final = 5
"""Fewer give an interval by Student's t that is too wide to be of use."""

MARGIN: Final = 1.15
"""How much longer replications are than a pilot run says, since each spends some of it on its own warm-up."""


def simulate_many(
    models: Sequence[Model],
    *,
    precision: float | None = None,
    horizon: float | None = None,
    seed: int = 0,
    engine: str = DEFAULT_ENGINE,
    activities: bool = False,
    max_events: int | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Predict several scenarios with the same seed, side by side.

    Results do not depend on the number of workers.

    Args:
        models: The scenarios.
        precision: As for ``simulate``, like the next five.
        horizon: Of every scenario.
        seed: Of every scenario.
        engine: Of every scenario.
        activities: Of every scenario.
        max_events: Of every scenario.
        workers: Simulations at once; default: as many as cores.
        progress: Called with (finished, all) after every scenario; equal models are one.

    Returns:
        One result per model, in the same order.

    Raises:
        UsageError, UncalibratedError, SimulationError: As ``simulate``; the first scenario that fails
            ends the others.
    """
    for model in models:
        compiled(model)  # what cannot run is refused before anything has run
    # A grid often contains its own baseline: equal models have equal results.
    distinct: list[Model] = []
    for model in models:
        if model not in distinct:
            distinct.append(model)
    jobs = [
        partial(
            _run, model, precision=precision, horizon=horizon, seed=seed, engine=engine,
            activities=activities, max_events=max_events,
        )
        for model in distinct
    ]  # fmt: skip
    results = run_jobs(jobs, workers=workers, progress=_counted(progress, len(jobs)))
    return [results[distinct.index(model)] for model in models]


def _counted(progress: Callable[[int, int], None] | None, total: int) -> Callable[[int], None] | None:
    if progress is None:
        return None
    return lambda finished: progress(finished, total)


def _run(model: Model, progress: Callable[[Any], None], **arguments: Any) -> Result:
    return simulate(model, progress=progress, **arguments)


def replicate(
    model: Model,
    replications: int = 10,
    *,
    precision: float | None = None,
    horizon: float | None = None,
    seed: int = 0,
    activities: bool = False,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Predict one scenario by independent replications on all cores.

    Every replication deletes its own warm-up; intervals are Student's t over the replications, so they
    depend on nothing that is correlated within a run. Replication k of two models has the same seed: their
    differences are those of common random numbers.

    Args:
        model: Calibrated at least where clients can get to.
        replications: How many, at least ``MIN_REPLICATIONS``.
        precision: Relative half-width to aim at if there is no ``horizon``: a pilot run says how long the
            replications have to be. Default: 0.01.
        horizon: Simulated seconds of every replication.
        seed: Replication k uses seed ``seed + k``.
        activities: Also measure every activity.
        workers: Simulations at once; default: as many as cores.
        progress: Called with (finished, all).

    Returns:
        Figures as of one run; ``batches`` is the number of replications. Each of them has its own control
        variates, which the result does not name.

    Raises:
        UsageError, UncalibratedError, SimulationError: As ``simulate``.
    """
    if replications < MIN_REPLICATIONS:
        raise UsageError(f"at least {MIN_REPLICATIONS} replications are needed, got {replications!r}")
    aim = None
    if horizon is None:
        aim = precision or DEFAULT_PRECISION
        pilot = simulate(model, precision=min(0.5, aim * math.sqrt(replications)), seed=seed)
        horizon = MARGIN * pilot.simulated_seconds
    jobs = [
        partial(_run, model, horizon=horizon, seed=seed + number, activities=activities)
        for number in range(replications)
    ]
    results = run_jobs(jobs, workers=workers, progress=_counted(progress, replications))
    merged: Result = _merged(results)
    reached = max(merged.cycle.response_time.relative, merged.cycle.throughput.relative)
    warnings = tuple(dict.fromkeys(w for result in results for w in result.warnings))
    return replace(
        merged,
        seed=seed,
        batches=replications,
        simulated_seconds=math.fsum(r.simulated_seconds for r in results),
        warmup_seconds=math.fsum(r.warmup_seconds for r in results),
        events=sum(r.events for r in results),
        wall_seconds=math.fsum(r.wall_seconds for r in results),
        precision=Precision(requested=aim, reached=reached),
        warnings=warnings,
        control_variates=ControlVariates(),
    )


def _merged(values: Sequence[Any]) -> Any:
    """Return what independent results say together: every figure the mean of theirs, with a t interval."""
    first = values[0]
    if isinstance(first, Figure):
        mean, half = independent_mean([v.mean for v in values])
        changes: dict[str, Any] = {"mean": mean, "ci95": half}
        if first.uncontrolled is not None:
            changes["uncontrolled"] = half * math.sqrt(
                math.fsum(v.variance_ratio for v in values) / len(values)
            )
        others = [f.name for f in fields(first) if f.name not in {*changes, "uncontrolled"}]
        changes |= {name: _merged([getattr(v, name) for v in values]) for name in others}
        return replace(first, **changes)
    if any(v is None for v in values):
        # Not seen in every run: a figure of those that have it would be biased.
        return None
    if isinstance(first, dict):
        return {key: _merged([v[key] for v in values]) for key in first if all(key in v for v in values)}
    if is_dataclass(first) and not isinstance(first, type | Precision):
        changes = {f.name: _merged([getattr(v, f.name) for v in values]) for f in fields(first)}
        return replace(first, **changes)
    if isinstance(first, tuple) and first and is_dataclass(first[0]):
        return tuple(_merged(group) for group in zip(*values, strict=True))
    return first
