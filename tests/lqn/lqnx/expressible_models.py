"""Random models that both formats can express, in the form in which lqnx is read.

Tasks stand in the order of their processors, calls lead to later tasks, times and counts have the shapes lqnx
has, and nothing is said twice (a reply at the end of the flow is not marked).
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import Final, Literal

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Entry,
    Exponential,
    Forward,
    Geometric,
    Model,
    Pareto,
    Precedence,
    Processor,
    Task,
    Uniform,
    with_scv,
)
from mup.lqn.model import LOCK, SEMAPHORE, Discipline, Token

DISCIPLINES: Final[tuple[Discipline, ...]] = ("ps", "fcfs", "hol", "pp", "infinite")


class _Graph:
    """Grows the activity graph of one entry."""

    def __init__(
        self, builder: ExpressibleModel, prefix: str, shape: str, targets: list[tuple[str, str]]
    ) -> None:
        self.builder = builder
        self.prefix = prefix
        self.shape = shape
        self.targets = targets
        self.activities: list[Activity] = []
        self.arcs: list[Precedence] = []
        self.waits = False

    def activity(self) -> str:
        name = f"{self.prefix}_{len(self.activities)}"
        self.activities.append(self.builder.activity(name, self.shape, self.targets))
        return name

    def block(self, depth: int, *, top: bool) -> tuple[str, str]:
        """Add a block; return its first and last activity."""
        rng = self.builder.rng
        kind = rng.choice(("one", "sequence", "or", "and", "loop")) if depth else "one"
        first = self.activity()
        if kind == "one":
            return first, first
        inside = [self.block(depth - 1, top=top and kind == "or") for _ in range(rng.randint(2, 3))]
        starts, ends = tuple(a for a, _ in inside), tuple(b for _, b in inside)
        if kind == "sequence":
            before = first
            for start, end in inside:
                self.arcs.append(Precedence(pre=(before,), post=(start,)))
                before = end
            return first, before
        last = self.activity()
        if kind == "loop":
            counts = tuple(Geometric(rng.choice((0.0, 0.5, 2.25))) for _ in starts)
            self.arcs.append(Precedence(pre=(first,), post=(*starts, last), fork="loop", counts=counts))
            return first, last
        odds = None
        if kind == "or":
            odds = (0.25, 0.75) if len(starts) == 2 else (0.1, 0.2, 0.7)
        fork: Literal["or", "and"] = "or" if kind == "or" else "and"
        self.arcs.append(Precedence(pre=(first,), post=starts, fork=fork, probabilities=odds))
        quorum = None
        if fork == "and" and top and rng.random() < 0.3:
            quorum, self.waits = 1, True
        self.arcs.append(Precedence(pre=ends, post=(last,), join=fork, quorum=quorum))
        return first, last


class ExpressibleModel:
    """Draws one model from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def number(self) -> float:
        return self.rng.choice((0.001, 0.1, 1 / 3, 1.0, 2.5, 1e6, self.rng.uniform(1e-6, 10)))

    def demand(self, shape: str) -> Distribution:
        if self.rng.random() < 0.2:
            return Constant(0.0)
        mean = self.number()
        if shape == "burst":
            return Pareto(mean, math.sqrt(1 / self.number() + 1) + 1)
        if shape == "uniform":
            return Uniform(0.0, 2 * mean)
        return with_scv(mean, self.rng.choice((0.0, 0.3, 1.0, 1.0, 2.0, self.number())))

    def activity(self, name: str, shape: str, targets: list[tuple[str, str]]) -> Activity:
        rng = self.rng
        demand = self.demand(shape)
        delay = Exponential(self.number()) if rng.random() < 0.2 else Constant(0.0)
        constant = rng.random() < 0.5
        calls = [
            Call(
                task=task,
                entry=entry,
                count=Constant(rng.randint(1, 3)) if constant else Geometric(self.number()),
                kind=rng.choice(("synchronous", "send")),
            )
            for task, entry in rng.sample(targets, min(len(targets), rng.randint(0, 3)))
        ]
        interleaved = bool(calls) and (demand.mean > 0 or (not constant and len(calls) > 1))
        return Activity(name=name, demand=demand, delay=delay, calls=tuple(calls), interleaved=interleaved)

    def entry(self, name: str, targets: list[tuple[str, str]], *, reference: bool, shape: str = "") -> Entry:
        rng = self.rng
        if rng.random() < 0.4:
            phases = [self.activity(f"{name}_{n}", shape, targets) for n in range(1, rng.randint(1, 3) + 1)]
            if len(phases) > 1 and not reference:
                phases[0] = replace(phases[0], replies=True)
            names = [a.name for a in phases]
            arcs = [Precedence(pre=(a,), post=(b,)) for a, b in pairwise(names)]
            return Entry(name=name, start=names[0], activities=tuple(phases), precedences=tuple(arcs))
        graph = _Graph(self, name, shape, targets)
        start, last = graph.block(rng.randint(0, 3), top=True)
        activities = graph.activities
        if not reference and (graph.waits or rng.random() < 0.3):
            mark = last if graph.waits else start
            if graph.waits or last != start:
                activities = [replace(a, replies=a.name == mark) for a in activities]
        return Entry(
            name=name,
            start=start,
            activities=tuple(activities),
            precedences=tuple(graph.arcs),
            waits=graph.waits,
        )

    def server(self, index: int, processor: str, targets: list[tuple[str, str]]) -> Task:
        rng = self.rng
        entries = []
        semaphore = rng.random() < 0.15
        tokens: tuple[Token, ...] = rng.choice((SEMAPHORE, LOCK)) if semaphore else ()
        for number in range(len(tokens) or rng.randint(1, 3)):
            entry = self.entry(f"s{index}e{number}", targets, reference=False)
            if semaphore:
                entry = replace(entry, token=tokens[number])
            elif rng.random() < 0.3:
                entry = replace(entry, arrivals=Exponential(1 / self.number()))
            if targets and rng.random() < 0.3:
                task, target = rng.choice(targets)
                entry = replace(entry, forwards=(Forward(task=task, entry=target, probability=0.3),))
            entries.append(replace(entry, priority=rng.choice((0, 0, 2, -1))))
        threads = rng.choice((1, 2, 5, math.inf)) if not semaphore else rng.choice((1, 3))
        fifo = semaphore or threads == math.inf
        return Task(
            name=f"s{index}",
            threads=threads,
            processor=processor,
            entries=tuple(entries),
            admission="fifo" if fifo else rng.choice(("fifo", "hol", "random")),
            priority=rng.choice((0, 3)),
        )

    def client(self, index: int, processor: str, targets: list[tuple[str, str]]) -> Task:
        rng = self.rng
        shape = rng.choice(("", "", "burst", "uniform"))
        entry = self.entry(f"c{index}", targets, reference=True, shape=shape)
        return Task(
            name=f"c{index}",
            role="reference",
            threads=rng.choice((1, 7, 1000)),
            processor=processor,
            entries=(entry,),
            priority=rng.choice((0, 3)),
            think=rng.choice((None, Exponential(self.number()))),
        )

    def processor(self, name: str) -> Processor:
        rng = self.rng
        discipline = rng.choice(DISCIPLINES)
        cores = math.inf if discipline == "infinite" else rng.choice((1, 2, 8))
        return Processor(
            name=name, discipline=discipline, cores=cores, speed=rng.choice((1.0, self.number()))
        )

    def model(self) -> Model:
        rng = self.rng
        targets: list[tuple[str, str]] = []
        tasks: list[Task] = []
        processors: list[Processor] = []
        for index in reversed(range(rng.randint(0, 4))):
            if not processors or rng.random() < 0.6:
                processors.insert(0, self.processor(f"p{index}"))
            task = self.server(index, processors[0].name, list(targets))
            tasks.insert(0, task)
            targets += [(task.name, e.name) for e in task.entries]
        for index in range(rng.randint(1, 2)):
            processors.insert(0, self.processor(f"pc{index}"))
            tasks.insert(0, self.client(index, processors[0].name, list(targets)))
        return Model(name="random", processors=tuple(processors), tasks=tuple(tasks))
