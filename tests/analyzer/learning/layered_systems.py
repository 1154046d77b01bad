"""Two small layered systems, and traces of them by exact simulation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from analyzer.learning.lqn_columns import column_names
from analyzer.learning.traces import Traces
from mup.lqn import Activity, Call, Constant, Entry, Exponential, Model, Precedence, Processor, Task
from simulator.networks.inlined import inline
from simulator.networks.inlined_process import InlinedProcess

ZERO = Constant(0.0)


def act(name: str, mean: float, *calls: str, kind: str = "synchronous") -> Activity:
    """An activity; ``calls`` are TASK.entry."""
    targets = tuple(Call(task=t, entry=e, kind=kind) for t, e in (c.split(".") for c in calls))  # type: ignore[arg-type]
    return Activity(name=name, demand=Exponential(mean) if mean else ZERO, delay=ZERO, calls=targets)


def chain(name: str, *activities: Activity) -> Entry:
    names = [a.name for a in activities]
    arcs = tuple(Precedence(pre=(a,), post=(b,)) for a, b in itertools.pairwise(names))
    return Entry(name=name, start=names[0], activities=activities, precedences=arcs)


def running_example() -> Model:
    """The thesis's figure 17: clients call B, think, call D; B and D share a processor."""
    cycle = chain("cycle", act("think1", 0.1, "B.serve"), act("think2", 0.1, "D.query"))
    return Model(
        name="running-example",
        processors=(Processor(name="PBD", cores=2),),
        tasks=(
            Task(name="A", role="reference", threads=30, entries=(cycle,)),
            Task(
                name="B",
                threads=4,
                processor="PBD",
                admission="random",
                entries=(chain("serve", act("comp", 0.05)),),
            ),
            Task(
                name="D",
                threads=5,
                processor="PBD",
                admission="random",
                entries=(chain("query", act("select", 0.04)),),
            ),
        ),
    )


def forked(kind: str = "synchronous", scale: int = 1) -> Model:
    """Clients call A, which forks; one branch calls B while A's thread is held (or, releasing, is not)."""
    fork = Entry(
        name="a",
        start="x",
        activities=(act("x", 0.1), act("l", 0.2), act("r", 0.3, "B.b"), act("z", 0.1, "B.b", kind=kind)),
        precedences=(
            Precedence(pre=("x",), post=("l", "r"), fork="and"),
            Precedence(pre=("l", "r"), post=("z",), join="and"),
        ),
    )
    return Model(
        name="forked",
        processors=(Processor(name="cpu", cores=2 * scale),),
        tasks=(
            Task(
                name="U",
                role="reference",
                threads=4 * scale,
                think=Exponential(1.0),
                entries=(chain("cycle", act("go", 0, "A.a")),),
            ),
            Task(name="A", threads=2 * scale, processor="cpu", admission="random", entries=(fork,)),
            Task(name="B", threads=scale, admission="random", entries=(chain("b", act("w", 0.15)),)),
        ),
    )


def without_times(model: Model, *tasks: str) -> Model:
    """Return the model with the demands of some tasks unknown."""

    def forget(entry: Entry) -> Entry:
        activities = tuple(
            replace(a, demand=None) if a.demand is not None and a.demand.mean else a for a in entry.activities
        )
        return replace(entry, activities=activities)

    for name in tasks:
        task = model.task(name)
        model = model.with_task(replace(task, entries=tuple(map(forget, task.entries))))
    return model


def traces_of(
    model: Model, *, count: int = 24, replications: int = 60, dt: float = 0.1, samples: int = 21
) -> Traces:
    """Simulate averaged traces with the finest columns."""
    lqn = inline(model)
    process = InlinedProcess(lqn)
    starts = np.vstack([process.extreme_starts(), process.random_starts(count, seed=1)])[:count]
    found = process.simulate(lqn.means, starts, dt=dt, samples=samples, replications=replications, seed=2)
    return Traces(x=found.x @ lqn.counts.T, dt=dt, names=column_names(lqn))


def log_error(learned: float, true: float) -> float:
    return abs(math.log(learned / true))
