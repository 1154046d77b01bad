"""Random models over every element of the schema, for property tests."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from mup.lqn import (
    Activity,
    Call,
    Constant,
    Distribution,
    Empirical,
    Entry,
    Erlang,
    Exponential,
    Forward,
    Front,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Migration,
    Model,
    Pareto,
    Precedence,
    Processor,
    Task,
    TruncatedNormal,
    Turns,
    Uniform,
    Weibull,
)
from mup.lqn.model import LOCK, SEMAPHORE

means = st.one_of(st.just(0), st.floats(1e-6, 1e3), st.integers(1, 9))
positive = st.floats(1e-3, 50)
probabilities = st.one_of(st.just(0.0), st.floats(1e-9, 1))


def _halves(low: float, high: float) -> Uniform:
    return Uniform(min(low, high), max(low, high))


families: dict[str, st.SearchStrategy[Distribution]] = {
    "constant": st.builds(Constant, means),
    "exponential": st.builds(Exponential, means),
    "erlang": st.builds(Erlang, means, st.integers(1, 9)),
    "uniform": st.builds(_halves, means, means),
    "gamma": st.builds(Gamma, means, positive),
    "lognormal": st.builds(Lognormal, means, positive),
    "weibull": st.builds(Weibull, means, st.floats(0.1, 9)),
    "pareto": st.builds(Pareto, means, st.floats(1.1, 9)),
    "truncated_normal": st.builds(TruncatedNormal, st.floats(-1, 5), st.floats(0.5, 3)),
    "hyperexponential": st.builds(
        lambda p, a, b: Hyperexponential((p, 1 - p), (a, b)), probabilities, means, means
    ),
    "empirical": st.lists(means, min_size=1, max_size=4).map(lambda v: Empirical(tuple(sorted(v)))),
}
times = st.none() | st.one_of(list(families.values()))
numbers = st.integers(0, 5)
constant_counts = st.builds(Constant, numbers)
geometric_counts = st.builds(Geometric, st.one_of(st.just(0.0), st.floats(1e-9, 9)))
counts: st.SearchStrategy[Distribution | None] = st.one_of(
    st.none(),
    constant_counts,
    geometric_counts,
    st.lists(numbers, min_size=1, max_size=3).map(lambda v: Empirical(tuple(sorted(v)))),
)
names = st.text(
    st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=5
)
kinds = st.sampled_from(["local", "registry", "communication", "think", "after", "choice"])


class Graph:
    """An activity graph that grows block by block."""

    def __init__(self, draw: Any, targets: list[tuple[str, str]], replying: bool, releasing: bool) -> None:
        self.draw, self.targets, self.replying, self.releasing = draw, targets, replying, releasing
        self.activities: list[Activity] = []
        self.precedences: list[Precedence] = []

    def activity(self, *, main: bool, looped: bool) -> str:
        draw = self.draw
        ways = ["synchronous", "send"] + (["releasing"] if main and self.releasing else [])
        interleaved = draw(st.booleans())
        number = draw(st.sampled_from([constant_counts, geometric_counts])) if interleaved else counts
        calls = []
        for task, entry in draw(st.lists(st.sampled_from(self.targets), max_size=2)) if self.targets else []:
            calls.append(Call(task=task, entry=entry, count=draw(number), kind=draw(st.sampled_from(ways))))
        name = f"a{len(self.activities)}"
        replies = self.replying and main and not looped and draw(st.booleans())
        self.replying = self.replying and not replies
        self.activities.append(
            Activity(
                name=name,
                kind=draw(kinds),
                demand=draw(times),
                delay=draw(times),
                calls=tuple(calls),
                interleaved=interleaved,
                replies=replies,
                detached=draw(st.booleans()),
                line=draw(st.integers(0, 99)),
            )
        )
        return name

    def block(self, depth: int, *, main: bool, looped: bool = False) -> tuple[str, str]:
        """Add a block; return its first and its last activity."""
        draw = self.draw
        first = last = self.activity(main=main, looped=looped)
        for _ in range(draw(st.integers(0, 2)) if depth else 0):
            shape = draw(st.sampled_from(["sequence", "and", "open", "or", "loop", "quorum", "fan-out"]))
            if shape == "quorum" and looped:
                continue
            if shape == "sequence":
                below, end = self.block(depth - 1, main=main, looped=looped)
                self.arc((last,), (below,))
                last = end
            elif shape == "loop":
                bodies = [
                    self.block(depth - 1, main=main, looped=True)[0] for _ in range(draw(st.integers(1, 2)))
                ]
                behind = self.activity(main=main, looped=looped)
                number = tuple(draw(counts) for _ in bodies)
                self.arc((last,), (*bodies, behind), fork="loop", counts=number)
                last = behind
            elif shape == "fan-out":
                last = self.fan_out(last, main=main, looped=looped)
            else:
                size = draw(st.integers(2, 3))
                ands = shape != "or"
                before = self.replying
                self.replying = before and not ands
                ends = [
                    self.block(depth - 1, main=main and (i == 0 or not ands), looped=looped)
                    for i in range(size)
                ]
                self.replying = before
                if ands:
                    self.arc((last,), tuple(a for a, _ in ends), fork="and")
                else:
                    odds = (0.25, 0.75) if size == 2 else (0.5, 0.125, 0.375)
                    known = draw(st.sampled_from([None, odds]))
                    self.arc((last,), tuple(a for a, _ in ends), fork="or", probabilities=known)
                    # A branch may have replied.
                    self.replying = False
                if shape == "open":
                    last = ends[0][1]
                    continue
                last = self.activity(main=main, looped=looped)
                quorum = draw(st.integers(1, size - 1)) if shape == "quorum" else None
                self.arc(tuple(b for _, b in ends), (last,), join="and" if ands else "or", quorum=quorum)
        return first, last

    def fan_out(self, before: str, *, main: bool, looped: bool) -> str:
        """Add a fan-out of one activity; return the one behind it."""
        draw = self.draw
        branch = self.activity(main=False, looped=True)
        if self.activities[-1].kind == "think":
            self.activities[-1] = replace(self.activities[-1], kind="local")
        behind = self.activity(main=main, looped=looped)
        how = draw(st.sampled_from([{}, {"limit": 2}] + ([] if looped else [{"first": 0}, {"first": 2}])))
        self.arc((before,), (branch, behind), fork="fan-out", counts=(draw(counts),), **how)
        return behind

    def arc(self, pre: tuple[str, ...], post: tuple[str, ...], **fields: Any) -> None:
        self.precedences.append(Precedence(pre=pre, post=post, **fields))


@st.composite
def entries(
    draw: Any, name: str, targets: list[tuple[str, str]], *, client: bool = False, token: str = ""
) -> Entry:
    releasing = not client and token in ("", "acquire")
    graph = Graph(draw, targets, replying=not client, releasing=releasing)
    start, _ = graph.block(2, main=True)
    forwards = []
    if targets and not client:
        for task, entry in draw(st.lists(st.sampled_from(targets), max_size=2)):
            forwards.append(
                Forward(task=task, entry=entry, probability=draw(st.sampled_from([0.5, 0.25, 0.125])))
            )
    return Entry(
        name=name,
        start=start,
        activities=tuple(graph.activities),
        precedences=tuple(graph.precedences),
        forwards=tuple(forwards),
        arrivals=draw(st.none() | st.builds(Gamma, positive, positive)),
        priority=draw(st.integers(-3, 3)),
        token=token,  # type: ignore[arg-type]
        waits=draw(st.booleans()),
        paths=draw(st.sampled_from([(), ({"operations": [], "first": "a0", "ends": "return"},)])),
        fingerprint=draw(st.sampled_from(["", "ab12"])),
    )


@st.composite
def processors(draw: Any) -> tuple[Processor, ...]:
    speed = draw(positive)
    wake, steal = draw(probabilities), draw(probabilities)
    turns = draw(
        st.none()
        | st.builds(Turns, quantum=st.sampled_from((0.002, 0.1)), preempt=st.sampled_from((0.0, 0.8)))
    )
    moves = draw(st.none() | st.builds(Migration, wake=st.just(wake), steal=st.just(steal), balance=means))
    return (
        Processor(name="host", cores=draw(st.integers(1, 8)), speed=speed),
        Processor(name="gil", cores=1, discipline=draw(st.sampled_from(["ps", "fcfs"])), parent="host"),
        Processor(name="queue", cores=2, discipline=draw(st.sampled_from(["fcfs", "hol", "pp"]))),
        Processor(name="many", cores=4, discipline="cores", migration=moves, turns=turns),
        Processor(name="cloud", cores=math.inf, discipline="infinite"),
    )


@st.composite
def models(draw: Any) -> Model:
    """A valid model of up to four tasks, any element of the schema in it."""
    known = draw(processors())
    places = st.none() | st.sampled_from([p.name for p in known])
    tasks: list[Task] = []
    targets: list[tuple[str, str]] = []
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        semaphore = draw(st.booleans())
        lock = semaphore and draw(st.booleans())
        tokens = (LOCK if lock else SEMAPHORE) if semaphore else ("",) * draw(st.integers(1, 2))
        found = [
            draw(entries(f"e{i}" if draw(st.booleans()) else f"/e{i}/", targets, token=token))
            for i, token in enumerate(tokens)
        ]
        tasks.append(
            Task(
                name=name,
                role=draw(st.sampled_from(["service", "network", "database", "other"])),
                threads=draw(st.integers(1, 9) if semaphore else st.integers(1, 9) | st.just(math.inf)),
                replicas=1 if semaphore else draw(st.integers(1, 3)),
                processor=draw(places),
                entries=tuple(found),
                admission="fifo" if lock else draw(st.sampled_from(["fifo", "random", "hol"])),
                priority=draw(st.integers(-2, 2)),
                front=draw(st.none() | st.builds(Front, request=times, reply=times, holds=st.booleans())),
            )
        )
        targets += [(name, e.name) for e in found]
    cycle = draw(entries("cycle", targets, client=True))
    clients = Task(
        name="the clients",
        role="reference",
        threads=draw(st.integers(1, 10**6)) if cycle.arrivals is None else math.inf,
        processor=draw(places),
        entries=(cycle,),
        think=draw(times) if cycle.arrivals is None else None,
    )
    return Model(name="m", processors=known, tasks=(clients, *tasks), provenance={"seed": 1})
