"""Small models with known parameters, and measurements of them: exact means with drawn errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.fitting.data import Data, Trial
from analyzer.fitting.forward import Settings, forward_of
from analyzer.fitting.parameters import parameter
from mup.lqn import Activity, Call, Constant, Distribution, Entry, Exponential, Model, Processor, Task

NOTHING = Constant(0.0)
TRUE = (2.0, 3.0, 4.0)
NAMES = ("web", "disk", "app")
PATHS = tuple(f"demand.{name}.serve" for name in NAMES)
MEASURES = (*(f"entries.{name}.serve.response_time" for name in NAMES), "throughput")


def clients(calls: Sequence[str], number: int, think: float = 0.0) -> Task:
    """Return clients that call entries ``serve`` of some tasks, one after the other."""
    go = Activity(
        name="go",
        demand=NOTHING,
        delay=NOTHING,
        calls=tuple(Call(task=name, entry="serve") for name in calls),
    )
    return Task(
        name="Users",
        role="reference",
        threads=number,
        think=Exponential(think) if think else None,
        entries=(Entry(name="cycle", start="go", activities=(go,)),),
    )


def server(
    name: str,
    demand: Distribution,
    *,
    threads: float = 1,
    processor: str | None = None,
    calls: Sequence[str] = (),
) -> Task:
    """Return a task of one entry ``serve`` that works, then calls."""
    work = Activity(
        name="work",
        demand=demand,
        delay=NOTHING,
        calls=tuple(Call(task=callee, entry="serve") for callee in calls),
    )
    entry = Entry(name="serve", start="work", activities=(work,))
    return Task(name=name, threads=threads, processor=processor, entries=(entry,))


def three_queues(demands: Sequence[float] = TRUE, *, number: int = 4, think: float = 0.0) -> Model:
    """Return the queueing network of Woodside's section 3."""
    queues = (server(name, Exponential(d)) for name, d in zip(NAMES, demands, strict=True))
    return Model(name="three queues", tasks=(clients(NAMES, number, think), *queues))


def two_layers(front: float = 0.02, back: float = 0.05, *, threads: int = 3, number: int = 8) -> Model:
    """Return a pool in front of a pool: no product form."""
    return Model(
        name="two layers",
        processors=(Processor(name="host", cores=2),),
        tasks=(
            clients(["front"], number, 0.2),
            server("front", Exponential(front), threads=threads, processor="host", calls=["back"]),
            server("back", Exponential(back), threads=1),
        ),
    )


def loads(numbers: Sequence[int]) -> list[Settings]:
    """Return configurations that differ in the number of clients."""
    return [((parameter("clients"), float(n)),) for n in numbers]


def true_means(model: Model, trials: Sequence[Settings], measures: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return what the fastest solver predicts."""
    return forward_of(model, [], np.zeros(0), trials, measures).means(np.zeros(0))


def measured(
    model: Model,
    trials: Sequence[Settings],
    measures: Sequence[str],
    *,
    rows: int,
    error: float,
    random: np.random.Generator,
) -> Data:
    """Return measurements with independent relative errors of a standard deviation."""
    found = []
    for trial, means in zip(trials, true_means(model, trials, measures), strict=True):
        values = means * (1 + error * random.standard_normal((rows, len(means))))
        found.append(Trial(trial, values, np.full_like(values, math.nan), np.ones_like(values)))
    return Data(tuple(measures), tuple(found))
