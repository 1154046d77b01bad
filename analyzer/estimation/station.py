"""Turn a station with estimated demands into a layered queueing network of one task."""

from __future__ import annotations

import math

import numpy as np

from analyzer.estimation.methods import Estimate
from mup.errors import UsageError
from mup.lqn import (
    Activity,
    Constant,
    Entry,
    Exponential,
    Model,
    Processor,
    Replicate,
    Task,
    Uncertainty,
    with_scv,
)
from mup.lqn.refs import ActivityRef, Names

__all__ = ["REPLICATES", "station_model"]

REPLICATES = 40
"""Resamples kept in the model, for prediction intervals."""

ACTIVITY = "work"


def station_model(estimate: Estimate, name: str) -> Model:
    """Return a model of one task on one processor, with the measured rates as open arrivals.

    Classes become entries; a prefix that all of them have and that is the name of the task is left out (the
    endpoints ``A/epA/`` of task ``A``). Demands are exponential unless their variation was observed.

    Args:
        estimate: Of all classes.
        name: Of the task.

    Raises:
        UsageError: The demand of a class is not known.
    """
    if np.any(unknown := ~np.isfinite(estimate.demand)):
        missing = estimate.classes[int(np.argmax(unknown))]
        raise UsageError(f"the demand of class {missing!r} is not known: there are no samples of it")
    prefix = f"{name}/"
    own = all(c.startswith(prefix) for c in estimate.classes)
    names = [c[len(name) :] if own else c for c in estimate.classes]
    entries = []
    for r, entry in enumerate(names):
        mean, rate = float(estimate.demand[r]), float(estimate.rates[r])
        scv = 1.0 if estimate.scv is None or not math.isfinite(estimate.scv[r]) else float(estimate.scv[r])
        work = Activity(name=ACTIVITY, demand=with_scv(mean, scv), delay=Constant(0.0))
        arrivals = Exponential(1 / rate) if math.isfinite(rate) and rate > 0 else None
        entries.append(Entry(name=entry, start=ACTIVITY, activities=(work,), arrivals=arrivals))
    works = [ActivityRef(name, entry.name, ACTIVITY) for entry in entries]
    processor = Processor(name=f"{name}-cores", cores=estimate.cores)
    task = Task(name=name, threads=estimate.threads, processor=processor.name, entries=tuple(entries))
    return Model(
        name=name,
        processors=(processor,),
        tasks=(task,),
        provenance={"estimation": estimate.to_json()},
        uncertainty=_uncertainty(estimate, list(map(Names((task,)).activity, works))),
    )


def _uncertainty(estimate: Estimate, labels: list[str]) -> Uncertainty | None:
    factors = estimate.draws[:REPLICATES] / estimate.demand
    factors = factors[np.all(np.isfinite(factors) & (factors > 0), axis=1)]
    replicates = tuple(Replicate(demands=dict(zip(labels, row, strict=True))) for row in factors.tolist())
    return Uncertainty(replicates=replicates) if replicates else None
