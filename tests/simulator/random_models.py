"""Random models over every element, to break engines, and small ones that still fail.

``random_model(seed)`` depends on nothing but its arguments. The models are valid, free of deadlock (calls
only lead to tasks further down; a semaphore belongs to one task, which never gives its thread back in
between) and stable: where work is started that is not awaited, or something queues by priority, think times
and arrivals are such that a conservative bound keeps every resource below ``MAX_LOAD``.

Times are multiples of 1/8 s wherever the family allows it, so that models with constant times are full of
simultaneous events. ``shrink`` turns a failing model into a small one, ``describe`` prints it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from mup.errors import ModelError
from mup.lqn.distributions import (
    Constant,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    Hyperexponential,
    Lognormal,
    Pareto,
    TruncatedNormal,
    Uniform,
    Weibull,
)
from mup.lqn.model import (
    LOCK,
    SEMAPHORE,
    Activity,
    Call,
    CallKind,
    Entry,
    Forward,
    Front,
    Migration,
    Model,
    Precedence,
    Processor,
    Setup,
    Task,
    Token,
)
from mup.lqn.refs import WorkNames

__all__ = ["ELEMENTS", "describe", "elements_used", "random_model", "shrink", "with_setups"]

FAMILIES: Final = {
    "constant", "erlang", "uniform", "gamma", "lognormal", "weibull", "pareto", "truncated_normal",
    "hyperexponential", "empirical",
}  # fmt: skip
ELEMENTS: Final[frozenset[str]] = frozenset(
    FAMILIES
    | {"ps", "fcfs", "hol", "pp", "cores", "infinite", "migration", "parent", "grandparent", "speed", "multicore"}
    | {"front", "replicas", "pool", "admission-random", "admission-hol", "priority"}
    | {"or", "and", "quorum", "unjoined", "detached", "waits", "overlap"}
    | {"loop-constant", "loop-geometric", "loop-empirical", "loop-bodies"}
    | {"count-constant", "count-geometric", "count-empirical", "send", "releasing", "interleaved"}
    | {"second-phase", "forward", "semaphore", "open-entry", "open-reference", "several-clients"}
    | {"think", "think-activity", "delay"}
)  # fmt: skip
"""Everything a model may contain beyond exponential demands, sequences and synchronous calls."""

MAX_LOAD: Final = 0.6
INFLATION: Final = 2.0
"""How much longer than without queueing a time is taken to be when loads are bounded, per resource."""

MAX_STEPS: Final = 60.0
"""Mean number of timed steps and calls of one cycle."""

ZERO: Final = Constant(0.0)
ONCE: Final = Constant(1)
GRID: Final = (0.125, 0.25, 0.5, 1.0)


def random_model(
    seed: int,
    *,
    elements: set[str] | frozenset[str] | None = None,
    small: bool = False,
    lock: bool = False,
) -> Model:
    """Return a valid, stable model; the same one for the same arguments.

    Args:
        seed: Any whole number.
        elements: Those of ``ELEMENTS`` that may occur; None = all.
        small: At most two services, two threads and three clients.
        lock: Where a semaphore would be there is a reader-writer lock; there is one.

    Raises:
        ValueError: An element is unknown.
    """
    allowed = ELEMENTS if elements is None else frozenset(elements)
    if not allowed <= ELEMENTS:
        raise ValueError(f"unknown elements: {sorted(allowed - ELEMENTS)}")
    for attempt in range(1000):
        rng = random.Random(f"{seed}/{attempt}")
        # Each model uses only some of the elements: they meet in more combinations, undisturbed by others.
        share = rng.choice((0.2, 0.5, 0.8))
        chosen = {e for e in sorted(allowed) if rng.random() < share}
        if lock:
            chosen.add("semaphore")
        built = _Builder(rng, chosen, small=small, lock=lock).model()
        if built is not None:
            return built
    raise AssertionError(f"no model for seed {seed}")


def with_setups(model: Model, seed: int) -> Model:
    """Return a model in which some tasks have a set-up after sleep, the same for the same arguments.

    Knots and seconds are multiples of 1/16 s in some of them, so that there still are simultaneous events. It is
    no element of ``ELEMENTS``: models of the same seed stay what they were.
    """
    rng = random.Random(f"setup/{seed}")
    tasks = []
    for task in model.tasks:
        locks = any(entry.token for entry in task.entries)
        tasks.append(task if locks or rng.random() < 0.3 else replace(task, setup=_setup(task, rng)))
    return replace(model, tasks=tuple(tasks))


def _setup(task: Task, rng: random.Random) -> Setup:
    grid = 0.0625 if rng.random() < 0.5 else rng.random() / 16
    count = rng.choice((1, 2, 4))
    gaps = sorted(rng.sample(range(1, 40), count))

    def shares() -> tuple[float, ...]:
        return tuple(sorted(rng.choice((0.0, 0.5, 1.0, rng.random())) for _ in range(count)))

    def seconds() -> tuple[float, float]:
        return (grid * rng.randint(0, 3), grid * rng.randint(0, 3))

    keys = list(WorkNames(task.entries).pairs)
    demands = {key: seconds() for key in keys if rng.random() < 0.7}
    if task.front is not None:
        demands["front"] = seconds()
    return Setup(
        gaps=tuple(grid * gap for gap in gaps),
        worker=shares(),
        core=shares(),
        by_thread=rng.random() < 0.5,
        demands=demands,
        delays={key: seconds() for key in keys if rng.random() < 0.3},
    )


@dataclass
class _Ends:
    """What must end before the next activity of a body starts."""

    pre: tuple[str, ...]
    join: str = "sequence"
    quorum: int | None = None
    carried: bool = True  # surely the flow that holds the thread


@dataclass
class _Body:
    """An entry's graph under construction."""

    calls_left: int
    prefix: str
    reference: bool
    user: bool  # of the semaphore
    task: str
    activities: list[Activity] = field(default_factory=list)
    precedences: list[Precedence] = field(default_factory=list)
    visits: dict[str, float] = field(default_factory=dict)
    replied: bool = False

    def connect(self, ends: _Ends, post: tuple[str, ...], fork: str = "sequence", **more: object) -> None:
        self.precedences.append(
            Precedence(
                pre=ends.pre, post=post, join=ends.join, fork=fork, quorum=ends.quorum, **more  # type: ignore[arg-type]
            )
        )  # fmt: skip


class _Builder:
    """Draws one model."""

    def __init__(self, rng: random.Random, elements: set[str], *, small: bool, lock: bool) -> None:
        self.rng = rng
        self.on = elements
        self.small = small
        self.lock = lock
        self.families = sorted(FAMILIES & elements)
        self.targets: list[tuple[str, str]] = []
        self.visits: dict[tuple[str, str], dict[str, float]] = {}
        self.asynchronous = False
        self.semaphore_user = ""
        self.sections: set[str] = set()

    def chance(self, element: str, probability: float = 0.5) -> bool:
        return element in self.on and self.rng.random() < probability

    # times and counts

    def mean(self) -> float:
        return self.rng.choice(GRID)

    def time(self, mean: float, families: list[str] | None = None) -> Distribution:
        """Return a distribution of this mean (a truncated normal comes close)."""
        families = self.families if families is None else families
        family = self.rng.choice([*families, "exponential"])
        shapes: dict[str, Callable[[], Distribution]] = {
            "exponential": lambda: Exponential(mean),
            "constant": lambda: Constant(mean),
            "erlang": lambda: Erlang(mean, self.rng.choice((2, 3))),
            "uniform": lambda: Uniform(mean / 2, mean * 3 / 2),
            "gamma": lambda: Gamma(mean, self.rng.choice((0.3, 0.5, 2.0))),
            "lognormal": lambda: Lognormal(mean, self.rng.choice((0.5, 2.0))),
            "weibull": lambda: Weibull(mean, self.rng.choice((0.8, 2.0))),
            "pareto": lambda: Pareto(mean, self.rng.choice((2.5, 4.0))),
            "truncated_normal": lambda: TruncatedNormal(mean, mean / 4),
            "hyperexponential": lambda: Hyperexponential((0.25, 0.75), (mean * 2.5, mean * 0.5)),
            "empirical": lambda: Empirical((0.0, mean / 2, mean, mean * 5 / 2)),
        }
        return shapes[family]()

    def count(self, kind: str) -> Distribution:
        if kind == "geometric":
            return Geometric(self.rng.choice((0.5, 1.0, 1.5)))
        if kind == "empirical":
            return Empirical(self.rng.choice(((0, 1, 1, 2), (1, 3), (0, 2))))
        return Constant(self.rng.choice((0, 2, 2, 3)))

    # the model

    def model(self) -> Model | None:
        rng = self.rng
        processors = self.processors()
        places = [p.name for p in processors if p.name != "host" or rng.random() < 0.5]
        names = "ABCD"[: rng.randint(1, 2 if self.small else 4)]
        references = ["U", "V"][: 2 if self.chance("several-clients", 0.7) else 1]
        semaphore = "semaphore" in self.on
        if semaphore:
            self.semaphore_user = rng.choice([*names, *references])
        tasks: list[Task] = []
        if semaphore:
            tasks.append(self.semaphore(places))
        for name in reversed(names):
            task = self.service(name, places)
            tasks.insert(0, task)
            self.targets += [(name, e.name) for e in task.entries]
        closed = [self.reference(name, places) for name in reversed(references)]
        called = {
            (c.task, c.entry)
            for t in [*tasks, *closed]
            for e in t.entries
            for a in e.activities
            for c in a.calls
        }
        called |= {(f.task, f.entry) for t in tasks for e in t.entries for f in e.forwards}
        forgotten = [t for t in self.targets if t not in called]
        closed[-1] = self.also_call(closed[-1], forgotten)
        return self.bounded([*reversed(closed), *tasks], processors)

    def processors(self) -> list[Processor]:
        rng = self.rng
        kinds = sorted({"ps", "fcfs", "hol", "pp", "cores", "infinite"} & self.on) or ["ps"]
        found = []
        for index in range(rng.randint(1, 2 if self.small else 3)):
            kind = rng.choice(kinds)
            cores: float = rng.choice((1, 2, 3)) if "multicore" in self.on and kind != "infinite" else 1
            migration = None
            if kind == "cores":
                cores = rng.choice((1, 2, 3))
                if self.chance("migration", 0.7):
                    options = (0.0, 0.5, 1.0)
                    migration = Migration(
                        wake=rng.choice(options), steal=rng.choice(options), balance=rng.choice((0.0, 4.0))
                    )
            if kind == "infinite" and rng.random() < 0.3:
                cores = math.inf
            speed = rng.choice((0.5, 2.0)) if self.chance("speed") else 1.0
            found.append(
                Processor(
                    name=f"{kind}{index}", cores=cores, discipline=kind, speed=speed, migration=migration  # type: ignore[arg-type]
                )
            )  # fmt: skip
        if "parent" in self.on and any(p.discipline in ("ps", "fcfs") for p in found):
            infinite = "infinite" in self.on and rng.random() < 0.2
            cores = rng.choice((1, 2)) if "multicore" in self.on else 1
            host = Processor(name="host", cores=cores, discipline="infinite" if infinite else "ps")
            if "speed" in self.on:
                host = replace(host, speed=rng.choice((1.0, 2.0)))
            inner = "host"
            if self.chance("grandparent"):
                found.append(Processor(name="part", cores=rng.choice((1, 2)), parent="host"))
                inner = "part"
            found = [
                replace(p, parent=rng.choice(("host", inner)))
                if p.discipline in ("ps", "fcfs") and p.name != "part" and rng.random() < 0.8
                else p
                for p in found
            ]
            found.append(host)
        return found

    def place(self, places: list[str]) -> str | None:
        return self.rng.choice(places) if places and self.rng.random() < 0.8 else None

    def service(self, name: str, places: list[str]) -> Task:
        rng = self.rng
        threads: float = math.inf
        if "pool" in self.on and rng.random() < 0.7:
            threads = rng.choice((1, 1, 2) if self.small else (1, 1, 2, 3, 5))
        admissions = ["fifo", *(a for a in ("random", "hol") if f"admission-{a}" in self.on)]
        admission = rng.choice(admissions) if threads < math.inf else "fifo"
        front = None
        if self.chance("front", 0.4):
            front = Front(request=self.time(0.125), reply=self.time(0.125) if rng.random() < 0.7 else ZERO)
        return Task(
            name=name,
            threads=threads,
            replicas=rng.choice((2, 3)) if self.chance("replicas", 0.3) else 1,
            processor=self.place(places),
            admission=admission,  # type: ignore[arg-type]
            priority=self.priority(),
            front=front,
            entries=tuple(self.entry(name, f"{name.lower()}{i}", i) for i in range(rng.choice((1, 1, 2)))),
        )

    def priority(self) -> int:
        return self.rng.choice((-1, 0, 1, 2)) if self.chance("priority") else 0

    def semaphore(self, places: list[str]) -> Task:
        entries = []
        tokens: tuple[Token, ...] = LOCK if self.lock else SEMAPHORE
        for token in tokens:
            demand = self.time(0.125) if self.rng.random() < 0.5 else ZERO
            only = Activity(name=f"{token[0]}0", demand=demand, delay=ZERO)
            self.visits["S", token] = {only.name: 1.0}
            entries.append(Entry(name=token, start=only.name, activities=(only,), token=token))
        return Task(
            name="S",
            threads=self.rng.choice((1, 1, 2)),
            processor=self.place(places),
            entries=tuple(entries),
            admission="random" if self.chance("admission-random") and not self.lock else "fifo",
        )

    def entry(self, task: str, name: str, number: int) -> Entry:
        body = _Body(self.rng.randint(0, 3), name, False, task == self.semaphore_user, task)
        ends = self.steps(body, 1.0, 2, carried=True, joined=False, loop=False)
        if body.user and number == 0:
            ends = self.section(body, self.closed(body, ends, 1.0), 1.0)
        if self.chance("second-phase") and not body.replied:
            # Behind the reply, the thread goes on working.
            ends = self.closed(body, ends, 1.0)
            body.activities[-1] = replace(body.activities[-1], replies=True)
            if ends.carried:
                after = self.activity(body, 1.0, carried=True)
                body.connect(ends, (after,))
                ends = _Ends((after,))
        self.closed(body, ends, 1.0)
        forwards = []
        if self.chance("forward", 0.4) and self.targets and not body.user:
            odds = self.rng.choice(((1.0,), (0.5,), (0.25, 0.5)))
            forwards = [
                Forward(task=t, entry=e, probability=p)
                for p in odds
                for t, e in [self.rng.choice(self.targets)]
            ]
        self.visits[task, name] = body.visits
        return Entry(
            name=name,
            start=body.activities[0].name,
            activities=tuple(body.activities),
            precedences=tuple(body.precedences),
            forwards=tuple(forwards),
            priority=self.priority(),
            waits=self.chance("waits"),
        )

    def reference(self, name: str, places: list[str]) -> Task:
        body = _Body(self.rng.randint(1, 4), name.lower(), True, name == self.semaphore_user, name)
        ends = self.steps(body, 1.0, 1, carried=True, joined=False, loop=False)
        if body.user:
            ends = self.section(body, self.closed(body, ends, 1.0), 1.0)
        self.closed(body, ends, 1.0)
        # A cycle must take time.
        body.activities[0] = replace(body.activities[0], delay=Exponential(0.125))
        self.visits[name, "cycle"] = body.visits
        entry = Entry(
            name="cycle",
            start=body.activities[0].name,
            activities=tuple(body.activities),
            precedences=tuple(body.precedences),
            priority=self.priority(),
        )
        clients = self.rng.choice((1, 2, 3) if self.small else (1, 2, 3, 5, 8))
        return Task(
            name=name,
            role="reference",
            threads=clients,
            processor=self.place(places) if self.rng.random() < 0.3 else None,
            entries=(entry,),
            priority=self.priority(),
        )

    def also_call(self, task: Task, targets: list[tuple[str, str]]) -> Task:
        """Let the scenario call the entries without a caller, first of all."""
        entry = task.entries[0]
        first, *rest = entry.activities
        calls = tuple(Call(task=t, entry=e) for t, e in targets)
        first = replace(first, calls=(*first.calls, *calls)) if not first.interleaved else replace(
            first, calls=(*(replace(c, count=ONCE) for c in first.calls), *calls)
        )  # fmt: skip
        return replace(task, entries=(replace(entry, activities=(first, *rest)),))

    # bodies

    def activity(self, body: _Body, visits: float, *, carried: bool) -> str:
        rng = self.rng
        name = f"{body.prefix}_{len(body.activities)}"
        demand = self.time(self.mean()) if rng.random() < 0.6 else ZERO
        delay: Distribution = ZERO
        kind = "local"
        if body.reference and self.chance("think-activity", 0.3):
            kind, delay = "think", self.time(self.mean())
        elif self.chance("delay", 0.4):
            delay = self.time(self.mean())
        calls: list[Call] = []
        counts = [k for k in ("constant", "geometric", "empirical") if f"count-{k}" in self.on]
        interleaved = self.chance("interleaved", 0.4)
        if interleaved:
            counts = [rng.choice([k for k in counts if k != "empirical"] or ["once"])]
        while self.targets and body.calls_left > 0 and len(calls) < 3 and rng.random() < 0.5:
            body.calls_left -= 1
            target, entry = rng.choice(self.targets)
            how: CallKind = "synchronous"
            if self.chance("send", 0.3):
                how = "send"
                self.asynchronous = True
            elif carried and not body.reference and not body.user and self.chance("releasing", 0.4):
                how = "releasing"
            count: Distribution = ONCE
            if counts and counts != ["once"] and (interleaved or rng.random() < 0.5):
                count = self.count(rng.choice(counts))
            calls.append(Call(task=target, entry=entry, count=count, kind=how))
        body.activities.append(
            Activity(
                name=name, kind=kind, demand=demand, delay=delay, calls=tuple(calls),  # type: ignore[arg-type]
                interleaved=interleaved and bool(calls),
            )
        )  # fmt: skip
        body.visits[name] = visits
        return name

    def closed(self, body: _Body, ends: _Ends, visits: float) -> _Ends:
        """Join what is still open with one more activity."""
        if len(ends.pre) == 1:
            return ends
        name = self.activity(body, visits, carried=ends.carried)
        body.connect(ends, (name,))
        return _Ends((name,), carried=ends.carried)

    def section(self, body: _Body, ends: _Ends, visits: float) -> _Ends:
        """Acquire the semaphore or lock, work, release it."""
        take, give = self.rng.choice((LOCK[:2], LOCK[2:])) if self.lock else SEMAPHORE
        for step in (take, "", give):
            if step:
                name = f"{body.prefix}_{len(body.activities)}"
                kind: CallKind = "send" if step == give and self.chance("send", 0.5) else "synchronous"
                call = Call(task="S", entry=step, kind=kind)
                body.activities.append(Activity(name=name, demand=ZERO, delay=ZERO, calls=(call,)))
                body.visits[name] = visits
            else:
                name = self.activity(body, visits, carried=ends.carried)
                self.sections.add(name)
            body.connect(ends, (name,))
            ends = _Ends((name,), carried=ends.carried)
        return ends

    def steps(
        self,
        body: _Body,
        visits: float,
        depth: int,
        *,
        carried: bool,
        joined: bool,
        loop: bool,
        count: int = 0,
    ) -> _Ends:
        """Append a chain of steps; ``joined``: its end is waited for, ``loop``: inside a body."""
        rng = self.rng
        ends = _Ends((self.activity(body, visits, carried=carried),), carried=carried)
        for _ in range(count or rng.choice((0, 1, 1, 2, 3) if not self.small else (0, 1, 1, 2))):
            options = ["activity"]
            if depth > 0:
                options += [k for k in ("or", "and", "overlap") if k in self.on] * 2
                options += ["loop"] * (
                    2 * any(k in self.on for k in ("loop-constant", "loop-geometric", "loop-empirical"))
                )
            if body.user and rng.random() < 0.2:
                options = ["section"]
            step = rng.choice(options)
            if step == "activity":
                name = self.activity(body, visits, carried=ends.carried)
                body.connect(ends, (name,))
                ends = _Ends((name,), carried=ends.carried)
            elif step == "section":
                ends = self.section(body, self.closed(body, ends, visits), visits)
            elif step == "or":
                ends = self.choice(body, ends, visits, depth, joined=joined, loop=loop)
            elif step == "and":
                ends = self.fork(body, ends, visits, depth, loop=loop)
            elif step == "overlap":
                ends = self.overlap(body, ends, visits)
            else:
                ends = self.loop(body, ends, visits, depth)
        if len(ends.pre) > 1 and (joined or loop or ends.quorum or rng.random() < 0.7):
            ends = self.closed(body, ends, visits)
        return ends

    def choice(
        self, body: _Body, ends: _Ends, visits: float, depth: int, *, joined: bool, loop: bool
    ) -> _Ends:
        odds = self.rng.choice(((0.5, 0.5), (0.25, 0.75), (0.25, 0.25, 0.5), (0.0, 1.0)))
        firsts, lasts = [], []
        for index, chance in enumerate(odds):
            firsts.append(f"{body.prefix}_{len(body.activities)}")
            branch = self.steps(
                body, visits * chance, depth - 1, carried=ends.carried, joined=True, loop=loop
            )
            branch = self.closed(body, branch, visits * chance)
            ends = replace(ends, carried=ends.carried and branch.carried)
            # Some branches end there and then instead of being merged.
            if joined or loop or index == 0 or self.rng.random() < 0.8:
                lasts.append(branch.pre[0])
        body.connect(ends, tuple(firsts), "or", probabilities=odds)
        if len(lasts) == 1:
            return _Ends((lasts[0],), carried=ends.carried)
        return _Ends(tuple(lasts), "or", carried=ends.carried)

    def fork(self, body: _Body, ends: _Ends, visits: float, depth: int, *, loop: bool) -> _Ends:
        rng = self.rng
        width = rng.choice((2, 2, 3))
        # Draw who is joined first: what follows a branch that is never joined belongs to an auxiliary flow.
        members = list(range(width))
        if self.chance("unjoined"):
            members = sorted(rng.sample(members, rng.randint(1, width - 1)))
            self.asynchronous = True
        quorum = None
        if not loop and len(members) > 1 and self.chance("quorum"):
            quorum = rng.randint(1, len(members) - 1)
            self.asynchronous = True
        firsts, lasts = [], []
        carried = False
        for index in range(width):
            firsts.append(f"{body.prefix}_{len(body.activities)}")
            mine = ends.carried and index == 0
            branch = self.steps(body, visits, depth - 1, carried=mine, joined=True, loop=loop)
            branch = self.closed(body, branch, visits)
            if index in members:
                lasts.append(branch.pre[0])
                carried = carried or branch.carried
            elif self.chance("detached"):
                at = next(i for i, a in enumerate(body.activities) if a.name == firsts[-1])
                body.activities[at] = replace(body.activities[at], detached=True)
            late = not body.reference and not loop and not body.replied and depth == 2
            if index > 0 and late and self.chance("second-phase", 0.15):
                # The reply leaves from beside the flow that holds the thread.
                at = next(i for i, a in enumerate(body.activities) if a.name == branch.pre[0])
                body.activities[at] = replace(body.activities[at], replies=True)
                body.replied = True
        body.connect(ends, tuple(firsts), "and")
        if len(lasts) == 1:
            return _Ends((lasts[0],), carried=carried)
        return _Ends(tuple(lasts), "and", quorum, carried=carried and quorum is None)

    def overlap(self, body: _Body, ends: _Ends, visits: float) -> _Ends:
        """Two calls under way at once, as source code makes them: fork, fork, join, join."""
        carried = ends.carried
        main, side = self.activity(body, visits, carried=carried), self.activity(body, visits, carried=False)
        body.connect(ends, (main, side), "and")
        second, other = (
            self.activity(body, visits, carried=carried),
            self.activity(body, visits, carried=False),
        )
        body.connect(_Ends((main,)), (second, other), "and")
        third = self.activity(body, visits, carried=carried)
        body.connect(_Ends((second, side), "and"), (third,))
        return _Ends((third, other), "and", carried=carried)

    def loop(self, body: _Body, ends: _Ends, visits: float, depth: int) -> _Ends:
        kinds = [k for k in ("constant", "geometric", "empirical") if f"loop-{k}" in self.on]
        width = 2 if self.chance("loop-bodies") else 1
        same = self.rng.choice(kinds)
        mixed = self.rng.random() < 0.5
        counts = [self.count(same if mixed else self.rng.choice(kinds)) for _ in range(width)]
        posts = []
        for count in counts:
            posts.append(f"{body.prefix}_{len(body.activities)}")
            times = visits * count.mean
            inner = self.steps(body, times, depth - 1, carried=ends.carried, joined=True, loop=True)
            self.closed(body, inner, times)
        posts.append(self.activity(body, visits, carried=ends.carried))
        body.connect(ends, tuple(posts), "loop", counts=tuple(counts))
        return _Ends((posts[-1],), carried=ends.carried)

    # load

    def bounded(self, tasks: list[Task], processors: list[Processor]) -> Model | None:
        """Set think times and arrivals; None if a cycle is too long to be of use."""
        rng = self.rng
        load = _Load(tasks, processors, self.visits, (self.semaphore_user, self.sections))
        opened: tuple[str, str] | None = None
        if self.chance("open-entry", 0.7) and self.targets:
            opened = rng.choice(self.targets)
        references = [t for t in tasks if t.is_reference]
        sources = [(t.name, "cycle") for t in references] + ([opened] if opened else [])
        if any(load.steps(source) > MAX_STEPS for source in sources):
            return None
        open_references = {t.name for t in references if self.chance("open-reference")}
        prioritised = {p.discipline for p in processors} & {"hol", "pp"} or any(
            t.admission == "hol" for t in tasks
        )
        bound = bool(opened or open_references or self.asynchronous or prioritised) or rng.random() < 0.4
        shares = [rng.choice((1, 2, 3)) for _ in sources]
        rates = {
            source: MAX_LOAD * share / sum(shares) / max((0.1, *load.per_request(source).values()))
            for source, share in zip(sources, shares, strict=True)
        }
        changed = []
        for task in tasks:
            entry = task.entries[0]
            if task.name in open_references:
                arrivals = self.time(_eighths(1 / rates[task.name, "cycle"]))
                task = replace(task, threads=math.inf, entries=(replace(entry, arrivals=arrivals),))  # noqa: PLW2901
            elif task.is_reference and bound:
                task = replace(task, think=self.time(_eighths(task.threads / rates[task.name, "cycle"])))  # noqa: PLW2901
            elif task.is_reference and self.chance("think", 0.7):
                task = replace(task, think=self.time(rng.choice((0.25, 1.0, 4.0))))  # noqa: PLW2901
            elif opened and task.name == opened[0]:
                arrivals = self.time(_eighths(1 / rates[opened]))
                task = replace(  # noqa: PLW2901
                    task,
                    entries=tuple(
                        replace(e, arrivals=arrivals) if e.name == opened[1] else e for e in task.entries
                    ),
                )
            changed.append(task)
        return _pruned(_Draft(tuple(processors), tuple(changed)), "random")


def _eighths(seconds: float) -> float:
    return math.ceil(seconds * 8) / 8


class _Load:
    """A conservative account of what one request brings about: seconds of every resource, per unit of it."""

    def __init__(
        self,
        tasks: list[Task],
        processors: list[Processor],
        visits: dict[tuple[str, str], dict[str, float]],
        sections: tuple[str, set[str]],
    ) -> None:
        self.tasks = {t.name: t for t in tasks}
        self.processors = {p.name: p for p in processors}
        self.visits = visits
        self.user, self.sections = sections
        self.held: dict[tuple[str, str], float] = {}

    def speed(self, name: str | None) -> float:
        factor = 1.0
        while name is not None:
            factor *= min(1.0, self.processors[name].speed)
            name = self.processors[name].parent
        return factor

    def hold(self, task: str, entry: str) -> float:
        """Return a pessimistic time of one execution, with everything it waits for."""
        if (task, entry) not in self.held:
            self.held[task, entry] = sum(
                self.visits[task, entry][a.name] * self.hold_of(a, task)
                for a in self.tasks[task].entry(entry).activities
            )
        return self.held[task, entry]

    def hold_of(self, activity: Activity, task: str) -> float:
        speed = self.speed(self.tasks[task].processor)
        calls = sum(
            _mean(c.count) * self.response(c.task, c.entry) for c in activity.calls if c.kind != "send"
        )
        return INFLATION * _mean(activity.demand) / speed + _mean(activity.delay) + calls

    def response(self, task: str, entry: str) -> float:
        found = self.tasks[task]
        front = 0.0
        if found.front is not None:
            front = (
                INFLATION**2
                * (_mean(found.front.request) + _mean(found.front.reply))
                / self.speed(found.processor)
            )
        forwarded = sum(f.probability * self.response(f.task, f.entry) for f in found.entry(entry).forwards)
        return INFLATION * self.hold(task, entry) + front + forwarded

    def requests(self, source: tuple[str, str]) -> dict[tuple[str, str], float]:
        """Return how many requests to every entry one request to ``source`` causes, itself included."""
        flow = {source: 1.0}
        waiting = [(source, 1.0)]
        while waiting:
            (name, entry_name), rate = waiting.pop()
            entry = self.tasks[name].entry(entry_name)
            onward = [((f.task, f.entry), f.probability) for f in entry.forwards]
            for activity in entry.activities:
                times = self.visits[name, entry_name][activity.name]
                onward += [((c.task, c.entry), times * _mean(c.count)) for c in activity.calls]
            for target, times in onward:
                flow[target] = flow.get(target, 0.0) + rate * times
                waiting.append((target, rate * times))
        return flow

    def steps(self, source: tuple[str, str]) -> float:
        return sum(
            rate
            * sum(
                1 + len(a.calls) * self.visits[key][a.name]
                for a in self.tasks[key[0]].entry(key[1]).activities
            )
            for key, rate in self.requests(source).items()
        )

    def per_request(self, source: tuple[str, str]) -> dict[str, float]:
        """Return the load of every resource per request and second."""
        loads: dict[str, float] = {}

        def add(name: str, amount: float) -> None:
            loads[name] = loads.get(name, 0.0) + amount

        for (name, entry_name), rate in self.requests(source).items():
            task = self.tasks[name]
            entry = task.entry(entry_name)
            work = sum(self.visits[name, entry_name][a.name] * _mean(a.demand) for a in entry.activities)
            if task.front is not None:
                front = _mean(task.front.request) + _mean(task.front.reply)
                work += front
                add(f"front {name}", rate * INFLATION * front / self.speed(task.processor) / task.replicas)
            place = task.processor
            while place is not None:
                processor = self.processors[place]
                if processor.discipline != "infinite":
                    # Threads may be stuck to one core, so one is all to count on.
                    cores = 1 if processor.discipline == "cores" else processor.cores
                    add(place, rate * work / self.speed(task.processor) / cores)
                place = processor.parent
            if task.is_reference or task.threads == math.inf:
                continue
            held = self.hold(name, entry_name)
            if entry.token:
                user = self.tasks[self.user]
                work = [a for e in user.entries for a in e.activities if a.name in self.sections]
                held += INFLATION * max((self.hold_of(a, user.name) for a in work), default=0.0)
            places = 1 if entry.token in LOCK else task.threads  # a writer has all of them
            add(f"threads {name}", rate * held / (places * task.replicas))
        return loads


def _mean(distribution: Distribution | None) -> float:
    return 0.0 if distribution is None else distribution.mean


def elements_used(model: Model) -> set[str]:
    """Return the names of ``ELEMENTS`` that occur in a model."""
    found: set[str] = set()
    for processor in model.processors:
        found.add(processor.discipline if processor.cores < math.inf else "infinite")
        found.update(
            name
            for name, there in (
                ("migration", processor.migration is not None),
                ("parent", processor.parent is not None),
                ("grandparent", processor.parent and model.processor(processor.parent).parent),
                ("speed", processor.speed != 1),
                ("multicore", 1 < processor.cores < math.inf and processor.discipline != "cores"),
            )
            if there
        )
    for task in model.tasks:
        found |= _task_elements(task)
    for _, entry, activity in model.walk():
        found |= _activity_elements(activity)
        found |= {name for name, there in (("forward", entry.forwards), ("waits", entry.waits)) if there}
        found |= {"semaphore"} if entry.token else set()
        for precedence in entry.precedences:
            found |= _precedence_elements(precedence)
        found |= {"unjoined"} if _unjoined(entry) else set()
        found |= {"overlap"} if _overlapping(entry) and not _unjoined(entry) else set()
    if sum(t.is_reference for t in model.tasks) > 1:
        found.add("several-clients")
    return found


def _family(distribution: Distribution | None) -> set[str]:
    """Return the family of a time as an element; exponential and no time at all are none."""
    if distribution is None or distribution == ZERO or isinstance(distribution, Exponential):
        return set()
    return {distribution.family}


def _task_elements(task: Task) -> set[str]:
    found = _family(task.think)
    front = task.front
    if front is not None:
        found |= _family(front.request) | _family(front.reply)
    for entry in task.entries:
        found |= _family(entry.arrivals)
    found.update(
        name
        for name, there in (
            ("front", front is not None),
            ("replicas", task.replicas > 1),
            (
                "pool",
                not task.is_reference and task.threads < math.inf and not any(e.token for e in task.entries),
            ),
            (f"admission-{task.admission}", task.admission != "fifo"),
            ("priority", task.priority != 0 or any(e.priority != 0 for e in task.entries)),
            ("open-reference", task.is_open),
            ("open-entry", not task.is_reference and any(e.arrivals is not None for e in task.entries)),
            ("think", task.think is not None and not task.is_open),
        )
        if there
    )
    return found


def _activity_elements(activity: Activity) -> set[str]:
    found = _family(activity.demand) | _family(activity.delay)
    for call in activity.calls:
        found |= {call.kind} - {"synchronous"}
        if call.count != ONCE and call.count is not None:
            found.add(f"count-{call.count.family}")
    found.update(
        name
        for name, there in (
            ("interleaved", activity.interleaved),
            ("second-phase", activity.replies),
            ("detached", activity.detached),
            ("think-activity", activity.kind == "think"),
            ("delay", activity.kind != "think" and activity.delay is not None and activity.delay != ZERO),
        )
        if there
    )
    return found


def _precedence_elements(precedence: Precedence) -> set[str]:
    found: set[str] = {"or", "and"} & {precedence.join, precedence.fork}
    if precedence.quorum is not None:
        found.add("quorum")
    if len(precedence.counts) > 1:
        found.add("loop-bodies")
    return found | {f"loop-{c.family}" for c in precedence.counts if c is not None}


def _unjoined(entry: Entry) -> bool:
    """Tell whether a branch of an AND fork reaches no AND join."""
    after = {name: p for p in entry.precedences for name in p.pre}

    def joins(name: str) -> bool:
        precedence = after.get(name)
        if precedence is None:
            return False
        return precedence.join == "and" or any(joins(n) for n in precedence.post)

    return any(not joins(n) for p in entry.precedences if p.fork == "and" for n in p.post)


def _overlapping(entry: Entry) -> bool:
    """Tell whether an AND join combines branches of different forks and nothing else explains it."""
    forked = {n: i for i, p in enumerate(entry.precedences) if p.fork == "and" for n in p.post}
    return any(
        p.join == "and" and len({forked[n] for n in p.pre if n in forked}) > 1 for p in entry.precedences
    )


# Shrinking


def shrink(model: Model, fails: Callable[[Model], bool], *, limit: int = 3000) -> Model:
    """Return a smaller model that still fails: no single simplification leads to another one that does.

    Args:
        model: One for which ``fails`` holds.
        fails: Must not raise; it is asked about every candidate that is a valid model.
        limit: How many candidates to ask about at most.
    """
    asked = 0
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _simpler(model):
            if asked >= limit:
                return model
            asked += 1
            if fails(candidate):
                model, shrunk = candidate, True
                break
    return model


def _simpler(model: Model) -> Iterator[Model]:
    """Yield valid models that are simpler in one respect, the boldest steps first."""
    for edit in (_without_tasks, _without_entries, _smaller_graphs, _plainer_entries, _plainer_tasks,
                 _plainer_processors, _plainer_activities):  # fmt: skip
        steps = edit(model)
        while True:
            try:
                candidate = _pruned(next(steps))
            except StopIteration:
                break
            except ModelError:
                # A generator that raised is over: the edits build plain tuples, only _pruned may raise.
                continue
            if candidate != model and any(t.is_reference for t in candidate.tasks):
                yield candidate


@dataclass(frozen=True)
class _Draft:
    """Processors and tasks that may not be a valid model yet."""

    processors: tuple[Processor, ...]
    tasks: tuple[Task, ...]


def _pruned(draft: _Draft, name: str = "shrunk") -> Model:
    """Drop what is not reached, and calls to what is gone.

    Raises:
        ModelError: The rest breaks a rule.
    """
    tasks = {t.name: t for t in draft.tasks}
    there = {(t.name, e.name) for t in draft.tasks for e in t.entries}

    def cut(entry: Entry) -> Entry:
        return replace(
            entry,
            activities=tuple(
                replace(a, calls=tuple(c for c in a.calls if (c.task, c.entry) in there))
                for a in entry.activities
            ),
            forwards=tuple(f for f in entry.forwards if (f.task, f.entry) in there),
        )

    entries = {(t.name, e.name): cut(e) for t in draft.tasks for e in t.entries}
    reached: set[tuple[str, str]] = set()
    waiting = [k for k, e in entries.items() if tasks[k[0]].is_reference or e.arrivals is not None]
    while waiting:
        key = waiting.pop()
        if key in reached:
            continue
        reached.add(key)
        entry = entries[key]
        waiting += [(c.task, c.entry) for a in entry.activities for c in a.calls]
        waiting += [(f.task, f.entry) for f in entry.forwards]
    kept = []
    for task in draft.tasks:
        named = [(task.name, e.name) for e in task.entries]
        if any(e.token in LOCK for e in task.entries) and not reached.isdisjoint(named):
            reached.update(named)  # a lock has entries of all kinds
        mine = tuple(entries[name] for name in named if name in reached)
        if mine:
            kept.append(replace(task, entries=mine))
    used = {t.processor for t in kept}
    grows = True
    while grows:
        more = {p.parent for p in draft.processors if p.name in used} - used
        used |= more
        grows = bool(more)
    processors = tuple(p for p in draft.processors if p.name in used)
    return Model(name=name, processors=processors, tasks=tuple(kept))


def _without_tasks(model: Model) -> Iterator[_Draft]:
    for task in model.tasks:
        yield _Draft(model.processors, tuple(t for t in model.tasks if t.name != task.name))


def _without_entries(model: Model) -> Iterator[_Draft]:
    for task in model.tasks:
        for entry in task.entries:
            if len(task.entries) > 1:
                rest = tuple(e for e in task.entries if e.name != entry.name)
                yield _with_task(model, replace(task, entries=rest))


def _with_task(model: Model, task: Task) -> _Draft:
    return _Draft(model.processors, tuple(task if t.name == task.name else t for t in model.tasks))


def _with_entry(model: Model, task: Task, entry: Entry) -> _Draft:
    entries = tuple(entry if e.name == entry.name else e for e in task.entries)
    return _with_task(model, replace(task, entries=entries))


def _smaller_graphs(model: Model) -> Iterator[_Draft]:
    for task in model.tasks:
        for entry in task.entries:
            only = tuple(a for a in entry.activities if a.name == entry.start)
            if entry.precedences:
                yield _with_entry(model, task, replace(entry, activities=only, precedences=()))
            for activity in entry.activities:
                for simpler in (_dropped(entry, activity.name), _bypassed(entry, activity.name)):
                    if simpler is not None:
                        yield _with_entry(model, task, simpler)


def _reachable(entry: Entry, start: str, without: str = "") -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in reached and name != without:
            reached.add(name)
            waiting += [n for p in entry.precedences if name in p.pre for n in p.post]
    return reached


def _dropped(entry: Entry, name: str) -> Entry | None:
    """Remove an activity with everything only it leads to."""
    if name == entry.start:
        return None
    kept = _reachable(entry, entry.start, without=name)
    precedences = []
    for precedence in entry.precedences:
        pre = tuple(n for n in precedence.pre if n in kept)
        post = tuple(n for n in precedence.post if n in kept)
        if not pre or not post:
            continue
        changed = replace(precedence, pre=pre, post=post)
        if len(pre) == 1:
            changed = replace(changed, join="sequence", quorum=None)
        elif precedence.quorum is not None:
            changed = replace(changed, quorum=min(precedence.quorum, len(pre) - 1))
        if precedence.repeats:
            pairs = zip(precedence.post, precedence.counts, strict=False)
            counts = tuple(c for n, c in pairs if n in kept)
            changed = replace(changed, counts=counts)
            if not counts:
                changed = replace(changed, fork="sequence", first=None, limit=None)
        elif len(post) == 1:
            changed = replace(changed, fork="sequence", probabilities=None)
        elif precedence.probabilities is not None:
            odds = [p for n, p in zip(precedence.post, precedence.probabilities, strict=True) if n in kept]
            total = sum(odds)
            changed = replace(
                changed, probabilities=tuple(p / total if total else 1 / len(odds) for p in odds)
            )
        precedences.append(changed)
    activities = tuple(a for a in entry.activities if a.name in kept)
    return replace(entry, activities=activities, precedences=tuple(precedences))


def _bypassed(entry: Entry, name: str) -> Entry | None:
    """Remove an activity and connect what is before it with what is behind it."""
    before = next((p for p in entry.precedences if name in p.post), None)
    behind = next((p for p in entry.precedences if name in p.pre), None)
    activities = tuple(a for a in entry.activities if a.name != name)
    if behind is None:
        return None  # dropping it does the same
    if behind.pre == (name,) and len(behind.post) == 1 and behind.fork == "sequence":
        rest = tuple(
            replace(p, post=tuple(behind.post[0] if n == name else n for n in p.post))
            for p in entry.precedences
            if p is not behind
        )
        start = behind.post[0] if entry.start == name else entry.start
        return replace(entry, start=start, activities=activities, precedences=rest)
    if before is not None and before.post == (name,) and before.fork == "sequence":
        if behind.pre == (name,):
            merged = replace(behind, pre=before.pre, join=before.join, quorum=before.quorum)
        elif len(before.pre) == 1:
            merged = replace(behind, pre=tuple(before.pre[0] if n == name else n for n in behind.pre))
        else:
            return None
        rest = tuple(merged if p is behind else p for p in entry.precedences if p is not before)
        return replace(entry, activities=activities, precedences=rest)
    return None


def _plainer_times(time: Distribution | None) -> list[Distribution]:
    """Return simpler distributions instead of this one: none, constant, exponential, a rounder mean."""
    if time is None or time == ZERO:
        return []
    options: list[Distribution] = [
        ZERO,
        Constant(1.0),
        Constant(time.mean),
        Exponential(1.0),
        Exponential(time.mean),
    ]
    options.append(
        type(time)(float(f"{time.mean:.1g}")) if isinstance(time, Constant | Exponential) else ZERO
    )
    rank = next((i for i, o in enumerate(options) if o == time), len(options))
    return options[:rank]


def _plainer_counts(count: Distribution | None) -> list[Distribution]:
    if count is None or count == ONCE:
        return []
    options: list[Distribution] = [ONCE, Constant(2), Geometric(1.0)]
    return options[: options.index(count)] if count in options else options


def _plainer_entries(model: Model) -> Iterator[_Draft]:
    for task in model.tasks:
        for entry in task.entries:
            simpler = [replace(entry, forwards=())]
            simpler += [
                replace(entry, forwards=tuple(f for f in entry.forwards if f is not gone))
                for gone in entry.forwards
            ]
            simpler += [replace(entry, priority=0), replace(entry, waits=False)]
            if not task.is_reference:
                simpler.append(replace(entry, arrivals=None))
            simpler += [replace(entry, arrivals=a) for a in _plainer_times(entry.arrivals) if a != ZERO]
            for index, precedence in enumerate(entry.precedences):
                for changed in _plainer_precedences(precedence):
                    arcs = (*entry.precedences[:index], changed, *entry.precedences[index + 1 :])
                    simpler.append(replace(entry, precedences=arcs))
            for candidate in simpler:
                yield _with_entry(model, task, candidate)


def _plainer_precedences(precedence: Precedence) -> Iterator[Precedence]:
    if precedence.quorum is not None:
        yield replace(precedence, quorum=None)
    if precedence.probabilities is not None:
        even = (1 / len(precedence.post),) * len(precedence.post)
        yield replace(precedence, probabilities=even)
    for index, count in enumerate(precedence.counts):
        for plainer in _plainer_counts(count):
            yield replace(
                precedence, counts=(*precedence.counts[:index], plainer, *precedence.counts[index + 1 :])
            )


def _plainer_tasks(model: Model) -> Iterator[_Draft]:
    for task in model.tasks:
        simpler = [
            replace(task, processor=None),
            replace(task, front=None),
            replace(task, replicas=1),
            replace(task, admission="fifo"),
            replace(task, priority=0),
        ]
        if task.front is not None:
            simpler += [
                replace(task, front=replace(task.front, request=t))
                for t in _plainer_times(task.front.request)
            ]
            simpler += [
                replace(task, front=replace(task.front, reply=t)) for t in _plainer_times(task.front.reply)
            ]
        if not task.is_reference:
            simpler.append(replace(task, threads=math.inf))
        if 1 < task.threads < math.inf:
            simpler += [replace(task, threads=n) for n in (1, task.threads // 2, task.threads - 1)]
        if task.think is not None:
            simpler.append(replace(task, think=None))
            simpler += [replace(task, think=t) for t in _plainer_times(task.think) if t != ZERO]
        for candidate in simpler:
            yield _with_task(model, candidate)


def _plainer_processors(model: Model) -> Iterator[_Draft]:
    for processor in model.processors:
        plain = replace(processor, parent=None, migration=None)
        simpler = [
            replace(plain, discipline="ps"),
            replace(processor, parent=None),
            replace(processor, migration=None),
            replace(processor, cores=1),
            replace(processor, speed=1.0),
        ]
        if processor.cores not in (1, math.inf):
            simpler.append(replace(processor, cores=processor.cores - 1))
        if processor.migration is not None:
            simpler += [
                replace(processor, migration=replace(processor.migration, **{name: 0.0}))
                for name in ("wake", "steal", "balance")
            ]
        for candidate in simpler:
            if candidate.parent is None or candidate.discipline in ("ps", "fcfs"):
                others = tuple(candidate if p.name == candidate.name else p for p in model.processors)
                yield _Draft(others, model.tasks)


def _plainer_activities(model: Model) -> Iterator[_Draft]:
    for task, entry, activity in model.walk():
        simpler = [
            replace(activity, replies=False),
            replace(activity, detached=False),
            replace(activity, interleaved=False),
            replace(activity, kind="local"),
        ]
        calls = activity.calls
        for index, call in enumerate(calls):
            options: list[tuple[Call, ...]] = [(), (replace(call, kind="synchronous"),)]
            options += [(replace(call, count=count),) for count in _plainer_counts(call.count)]
            simpler += [replace(activity, calls=(*calls[:index], *o, *calls[index + 1 :])) for o in options]
        if activity.interleaved:
            simpler += [
                replace(activity, calls=tuple(replace(c, count=ONCE) for c in calls)),
                replace(activity, calls=tuple(replace(c, count=Geometric(1.0)) for c in calls))
                if any(isinstance(c.count, Geometric) for c in calls)
                else activity,
            ]
        simpler += [replace(activity, demand=t) for t in _plainer_times(activity.demand)]
        simpler += [replace(activity, delay=t) for t in _plainer_times(activity.delay)]
        for candidate in simpler:
            changed = tuple(candidate if a.name == activity.name else a for a in entry.activities)
            yield _with_entry(model, task, replace(entry, activities=changed))


# Printing


def describe(model: Model) -> str:
    """Return a model as a few lines of text; everything that has its default value is left out."""
    lines = [_describe_processor(p) for p in model.processors]
    for task in model.tasks:
        what = "clients" if task.is_reference else "threads"
        parts = [f"task {task.name}: {task.threads:g} {what}"]
        parts += [f"x {task.replicas} replicas"] if task.replicas > 1 else []
        parts += [f"on {task.processor}"] if task.processor else []
        parts += [f"admission {task.admission}"] if task.admission != "fifo" else []
        parts += [f"priority {task.priority}"] if task.priority else []
        parts += [f"think {_show(task.think)}"] if task.think is not None else []
        if task.front is not None:
            parts.append(f"front {_show(task.front.request)} / {_show(task.front.reply)}")
        lines.append(", ".join(parts))
        for entry in task.entries:
            lines += _describe_entry(entry)
    return "\n".join(lines)


def _show(time: Distribution | None) -> str:
    if time is None:
        return "?"
    data = time.to_json()
    family = data.pop("family")
    if family == "constant":
        return f"{time.mean:g}"
    return f"{family}({', '.join(f'{v:g}' if isinstance(v, int | float) else str(v) for v in data.values())})"


def _describe_processor(processor: Processor) -> str:
    parts = [f"processor {processor.name}: {processor.discipline}"]
    parts += [f"{processor.cores:g} cores"] if processor.cores != 1 else []
    parts += [f"speed {processor.speed:g}"] if processor.speed != 1 else []
    if processor.migration is not None:
        moves = processor.migration
        parts.append(f"migration wake {moves.wake:g} steal {moves.steal:g} balance {moves.balance:g}")
    parts += [f"part of {processor.parent}"] if processor.parent else []
    return ", ".join(parts)


def _describe_entry(entry: Entry) -> Iterator[str]:
    parts = [f"  entry {entry.name}: starts {entry.start}"]
    parts += [f"arrivals {_show(entry.arrivals)}"] if entry.arrivals is not None else []
    parts += [f"priority {entry.priority}"] if entry.priority else []
    parts += [f"token {entry.token}"] if entry.token else []
    parts += ["waits"] if entry.waits else []
    parts += [f"forwards to {f.task}.{f.entry} with {f.probability:g}" for f in entry.forwards]
    yield ", ".join(parts)
    for activity in entry.activities:
        parts = [activity.kind] if activity.kind != "local" else []
        parts += [f"demand {_show(activity.demand)}"] if activity.demand != ZERO else []
        parts += [f"delay {_show(activity.delay)}"] if activity.delay != ZERO else []
        for call in activity.calls:
            kind = "" if call.kind == "synchronous" else f"{call.kind} "
            count = "" if call.count == ONCE else f" x {_show(call.count)}"
            parts.append(f"{kind}calls {call.task}.{call.entry}{count}")
        parts += [word for word in ("interleaved", "replies", "detached") if getattr(activity, word)]
        yield f"    {activity.name}: {', '.join(parts) or 'nothing'}"
    for precedence in entry.precedences:
        pre, post = ", ".join(precedence.pre), ", ".join(precedence.post)
        if precedence.join != "sequence":
            some = f"{precedence.quorum} of " if precedence.quorum is not None else ""
            pre = f"{precedence.join} {some}({pre})"
        if precedence.fork == "loop":
            post = ", ".join(
                f"{n} x {_show(c)}" for n, c in zip(precedence.post, precedence.counts, strict=False)
            )
            post = f"loop ({post})" + (f" then {precedence.continuation}" if precedence.continuation else "")
        elif precedence.fork == "fan-out":
            how = "".join(
                f" {name} {value}"
                for name in ("first", "limit")
                if (value := getattr(precedence, name)) is not None
            )
            behind = f" then {precedence.continuation}" if precedence.continuation else ""
            post = f"fan-out ({precedence.post[0]} x {_show(precedence.counts[0])}){how}{behind}"
        elif precedence.fork != "sequence":
            odds = f" {precedence.probabilities}" if precedence.probabilities is not None else ""
            post = f"{precedence.fork} ({post}){odds}"
        yield f"    {pre} -> {post}"
