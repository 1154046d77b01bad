"""Short ways to write the models that the simulator's tests need."""

from __future__ import annotations

import itertools
import math

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Front,
    Model,
    Precedence,
    Processor,
    Task,
)
from simulator import Figure

ZERO = Constant(0.0)


def exp(mean: float) -> Exponential:
    return Exponential(mean)


def act(
    name: str,
    demand: Distribution | None = ZERO,
    *,
    delay: Distribution | None = ZERO,
    calls: str = "",
    replies: bool = False,
    kind: str = "local",
    detached: bool = False,
) -> Activity:
    """An activity; ``calls`` lists ``TASK.entry`` names separated by spaces."""
    targets = tuple(Call(task=c.split(".")[0], entry=c.split(".")[1]) for c in calls.split())
    return Activity(
        name=name,
        demand=demand,
        delay=delay,
        calls=targets,
        replies=replies,
        kind=kind,  # type: ignore[arg-type]
        detached=detached,
    )


def seq(*names: str) -> tuple[Precedence, ...]:
    return tuple(Precedence(pre=(a,), post=(b,)) for a, b in itertools.pairwise(names))


def fork(pre: str, *post: str) -> Precedence:
    return Precedence(pre=(pre,), post=post, fork="and")


def join(post: str, *pre: str) -> Precedence:
    return Precedence(pre=pre, post=(post,), join="and")


def choice(pre: str, probabilities: tuple[float, ...] | None, *post: str) -> Precedence:
    return Precedence(pre=(pre,), post=post, fork="or", probabilities=probabilities)


def merge(post: str, *pre: str) -> Precedence:
    return Precedence(pre=pre, post=(post,), join="or")


def fan_out(
    pre: str,
    branch: str,
    behind: str | None,
    width: Distribution | None,
    *,
    first: int | None = None,
    limit: int | None = None,
) -> Precedence:
    post = (branch,) if behind is None else (branch, behind)
    return Precedence(pre=(pre,), post=post, fork="fan-out", counts=(width,), first=first, limit=limit)


def entry(name: str, *activities: Activity, arcs: tuple[Precedence, ...] | None = None) -> Entry:
    """An entry that starts with its first activity; a plain sequence if no arcs are given."""
    return Entry(
        name=name,
        start=activities[0].name,
        activities=activities,
        precedences=seq(*(a.name for a in activities)) if arcs is None else arcs,
    )


def service(
    name: str,
    *entries: Entry,
    threads: float = math.inf,
    replicas: int = 1,
    processor: str | None = None,
    front: Front | None = None,
) -> Task:
    return Task(
        name=name, threads=threads, replicas=replicas, processor=processor, entries=entries, front=front
    )


def clients(
    count: int, think: Distribution | None, calls: str = "", *, name: str = "U", body: Entry | None = None
) -> Task:
    return Task(
        name=name,
        role="reference",
        threads=count,
        think=think,
        entries=(body or entry("cycle", act("go", calls=calls)),),
    )


def model(*tasks: Task, processors: tuple[Processor, ...] = ()) -> Model:
    return Model(name="test", tasks=tasks, processors=processors)


def ps(name: str = "cpu", cores: float = 1, speed: float = 1.0) -> Processor:
    return Processor(name=name, cores=cores, speed=speed)


def agrees(figure: Figure | None, exact: float, *, within: float = 0.03) -> bool:
    """Within 4 standard errors of theory, by an interval that is small enough to mean something."""
    assert figure is not None
    assert figure.ci95 < within * exact, f"too few events for this test to mean anything: {figure}"
    standard_error = figure.ci95 / 2.0
    assert abs(figure.mean - exact) <= 4 * standard_error + 1e-9 * exact, f"{figure}, exact {exact}"
    return True


def machine_repair(count: int, servers: int, think: float, service_time: float) -> tuple[float, float]:
    """Return throughput and mean response time of M/M/c//N, from its birth-death chain."""
    weights = [1.0]
    for n in range(1, count + 1):
        weights.append(weights[-1] * (count - n + 1) / think / (min(n, servers) / service_time))
    total = sum(weights)
    throughput = sum(w / total * min(n, servers) / service_time for n, w in enumerate(weights))
    return throughput, count / throughput - think


def mva(count: int, think: float, demands: list[float]) -> tuple[float, list[float]]:
    """Return throughput and residence times of a closed product-form network of single servers."""
    queue = [0.0] * len(demands)
    throughput, residence = 0.0, list(demands)
    for n in range(1, count + 1):
        residence = [d * (1 + q) for d, q in zip(demands, queue, strict=True)]
        throughput = n / (think + sum(residence))
        queue = [throughput * r for r in residence]
    return throughput, residence
