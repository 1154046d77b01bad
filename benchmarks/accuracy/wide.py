"""Generate a system of the wide bed from a seed: features and sizes of real services.

Drawn until the nominal figures say that one user is answered within 1 to 65 ms, and that few enough users
fill something: the host, the workers of a service, or the one core of a replica of threads or an event loop.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from accuracy.features import Plan, plan
from accuracy.nominal import CORES, Nominal, nominal
from accuracy.rework import with_scaled_work
from accuracy.system import (
    Ask,
    Burn,
    Cache,
    Cached,
    CallTo,
    Choice,
    Endpoint,
    Find,
    Kind,
    Operation,
    Pause,
    Runtime,
    Scan,
    Service,
    Shape,
    Step,
    System,
    Think,
)

__all__ = ["PREFIX", "RESPONSE_MS", "deployed", "log_uniform", "wide"]

PREFIX: Final = "w"
MAIN, SIDE = "/main/", "/side/"
NAMES = "ABCDEF"

RESPONSE_MS = (1.0, 65.0)
CPU_MS = (2.0, 30.0)
QUICK_CPU_MS = (0.9, 2.4)
ALONE_CPU_MS = (0.9, 1.3)
QUICK_RESPONSE_MS = 4.0
SMALLEST_MS = 0.05
PAUSE_MS = (2.0, 25.0)
KNEE = (6.0, 32.0)
"""Users at which something is full."""
QUICK_KNEE = (12.0, 32.0)
LEAST_THINK, MOST_THINK = 0.005, 0.2
"""Seconds. Longer ones would leave few cycles for a window of seconds."""
MOST_WORKERS = 24
REFUSED = (0.02, 0.06)
"""Share of requests; less than what the budget of retries allows."""
ATTEMPTS = 3
KEYS = (100, 400)
POPULARITY: Final = 1.1
"""Exponent of Zipf's law."""
CACHE = (0.1, 0.4)
"""Size as a share of the keys."""
SHAPES: tuple[Shape, ...] = ("constant", "uniform", "exponential", "lognormal")
TAILS: dict[str, Shape] = {"heavy tail": "heavy", "bounded Pareto": "pareto", "bimodal": "bimodal"}
RUNTIMES: tuple[Runtime, ...] = ("process", "thread", "async")


def wide(seed: int) -> System:
    """Return the system of a seed, the same on every machine."""
    rng = random.Random(f"wide {seed}")
    planned = plan(seed)
    quick = "millisecond" in planned.dealt
    cpu_ms = log_uniform(rng, *(CPU_MS if not quick else ALONE_CPU_MS if planned.alone else QUICK_CPU_MS))
    while True:
        found = deployed(rng, _Draft(rng, planned).system(seed, cpu_ms), quick=quick)
        if found is not None:
            return found


class _Draft:
    """Draws which service calls which, and what endpoints do; pools and think times come later."""

    def __init__(self, rng: random.Random, planned: Plan) -> None:
        self.rng = rng
        self.plan = planned
        self.has = planned.dealt
        self.quick = "millisecond" in self.has
        self.tails = [shape for feature, shape in TAILS.items() if feature in self.has]
        self.names = NAMES[: self._size()]
        self.callees: dict[str, list[str]] = {name: [] for name in self.names}
        for number, name in enumerate(self.names[1:], start=1):
            # A fan-out has all it can at the first service, and goes on below one of those.
            wide_at = 0 if number <= 3 else rng.randrange(1, number)
            caller = wide_at if "fan-out" in self.has else rng.randrange(number)
            self.callees[self.names[caller]].append(name)
        self.runtimes = self._runtimes()
        self.keys = rng.randint(*KEYS) if self._caches else 0
        self.refusing = rng.choice(self.names[1:]) if self._retries else ""
        self.caching = self._one_of(self.names) if self._caches else ""
        self.querying = {self._one_of(self.names), self.names[-1]} if planned.database else set()
        self.scanning = self._one_of(self.names) if "data in memory" in self.has else ""
        self.going_on = {self._one_of(self.names), self.names[0]} if "after response" in self.has else set()

    @property
    def _caches(self) -> bool:
        return bool({"cold cache", "filled cache"} & self.has)

    @property
    def _retries(self) -> bool:
        return bool({"retries", "own retries"} & self.has)

    def _size(self) -> int:
        if self.quick:
            return 1 if self.plan.alone else 3 if "fan-out" in self.has else 2
        return self.rng.randint(4 if "fan-out" in self.has else 2, 5)

    def _one_of(self, names: Sequence[str]) -> str:
        return self.rng.choice(names)

    def _runtimes(self) -> dict[str, Runtime]:
        if self.plan.runtimes != "mixture":
            return dict.fromkeys(self.names, self.plan.runtimes)
        first = self.rng.sample(RUNTIMES, len(RUNTIMES))
        # The first services differ, so that callers and callees do.
        return {name: first[n] if n < 3 else self.rng.choice(RUNTIMES) for n, name in enumerate(self.names)}

    def system(self, seed: int, cpu_ms: float) -> System:
        services = tuple(map(self._service, self.names))
        scenario: tuple[Step, ...] = (Ask((CallTo(self.names[0], MAIN),)),)
        other = None
        if "two kinds of users" in self.has:
            calls: tuple[Step, ...] = (Ask((CallTo(self.names[0], SIDE),)),)
            if self.rng.random() < 0.5:
                calls = (*calls, *scenario)
            other = Kind(round(self.rng.uniform(0.2, 0.5), 2), calls, Think(1.0, "exponential"))
        drawn = System(
            seed,
            services,
            scenario,
            None,
            self.plan.database,
            "host",
            prefix=PREFIX,
            other=other,
            keys=self.keys,
            arrivals="open arrivals" in self.has,
            features=self.plan.features,
        )
        figures = nominal(drawn)
        factor = max(0.05 * figures.work, cpu_ms - (figures.cpu - figures.work)) / figures.work
        return with_scaled_work(drawn, factor, SMALLEST_MS)

    def _service(self, name: str) -> Service:
        rng = self.rng
        after = self._burn() if name in self.going_on else None
        refused = round(rng.uniform(*REFUSED), 3) if name == self.refusing else 0.0
        endpoints = [Endpoint(MAIN, self._main(name), after, refused)]
        if name == self.names[0] and "two kinds of users" in self.has:
            endpoints.append(Endpoint(SIDE, self._side(name)))
        calls_refusing = self.refusing in self.callees[name]
        cache = None
        if name == self.caching:
            size = max(4, round(self.keys * rng.uniform(*CACHE)))
            cache = Cache(size, filled="filled cache" in self.has)
            endpoints = [replace(e, steps=_with_hits(e.steps, self.keys, size)) for e in endpoints]
        return Service(
            name,
            rng.choice((4, 8, 16)) if self.runtimes[name] == "async" else rng.randint(1, 6),
            rng.choice((1, 1, 1, 2)),
            tuple(endpoints),
            runtime=self.runtimes[name],
            cache=cache,
            retries=calls_refusing and "retries" in self.has,
        )

    def _main(self, name: str) -> tuple[Step, ...]:
        rng = self.rng
        calls = self._calls(self.callees[name])
        steps: list[Step] = [self._burn(), *calls]
        if name in self.querying:
            steps.append(Ask((self._find(),)))
        if name == self.scanning:
            steps.append(Scan(self._ms()))
        if not self.quick and rng.random() < 0.5:
            steps.insert(rng.randint(1, len(steps)), self._pause())
        if rng.random() < 0.3:
            steps.append(self._burn())
        if not self.quick and not calls and rng.random() < 0.3:
            steps[-1] = Choice(round(rng.uniform(0.1, 0.9), 2), (steps[-1],), ())
        if name == self.caching:
            return self._cached(name, steps)
        return tuple(steps)

    def _cached(self, name: str, steps: list[Step]) -> tuple[Step, ...]:
        """Return steps of which some are left out for what is in the cache."""
        own = [s for s in steps[1:] if isinstance(s, Ask) and isinstance(s.operations[0], Find)]
        left_out: tuple[Step, ...]
        if name in self.querying and own:
            left_out = (Ask((Find("by_id"),)), self._burn())
            rest = [s for s in steps if s is not own[-1]]
        elif self.callees[name] and "fan-out" not in self.has:
            left_out = tuple(steps[1:])
            rest = steps[:1]
        else:
            left_out = (replace(self._burn(), ms=4 * self._ms()),)
            rest = steps
        return (rest[0], Cached(0.0, (), left_out), *rest[1:])

    def _side(self, name: str) -> tuple[Step, ...]:
        steps: list[Step] = [self._burn()]
        if name in self.querying:
            steps.append(Ask((self._find(),)))
        elif self.callees[name]:
            steps += self._calls(self.callees[name][:1])
        return tuple(steps)

    def _calls(self, callees: Sequence[str]) -> list[Step]:
        """Return the calls of one flow: one after the other, or several at once."""
        rng = self.rng
        left = list(callees)
        steps: list[Step] = []
        while left:
            many = len(left) > 1 and ("fan-out" in self.has or rng.random() < 0.4)
            # What is tried again by a loop is called alone.
            alone = "own retries" in self.has and left[0] == self.refusing
            group = left[:1] if alone or not many else [n for n in left if not self._tried(n)]
            left = [n for n in left if n not in group]
            targets: list[Operation] = [CallTo(name, MAIN) for name in group]
            meanwhile = self._burn() if not alone and rng.random() < 0.3 else None
            steps.append(Ask(tuple(targets), meanwhile, ATTEMPTS if self._tried(group[0]) else 1))
        return steps

    def _tried(self, name: str) -> bool:
        return "own retries" in self.has and name == self.refusing

    def _ms(self) -> float:
        return log_uniform(self.rng, 0.3, 5.0)

    def _burn(self) -> Burn:
        rng = self.rng
        shape = rng.choice(self.tails) if self.tails and rng.random() < 0.6 else rng.choice(SHAPES)
        return Burn(self._ms(), shape, rng.choice(("burn", "burn", "digest", "render")))

    def _pause(self) -> Pause:
        ms = round(log_uniform(self.rng, *PAUSE_MS), 1)
        return Pause(ms, self.rng.choice(("constant", "uniform", "exponential")))

    def _find(self) -> Find:
        return Find(self.rng.choice(("by_id", "by_shelf")))


def _with_hits(steps: tuple[Step, ...], keys: int, size: int) -> tuple[Step, ...]:
    """Return the steps with the share of requests that ask for one of the most popular keys."""

    def weight(count: int) -> float:
        return sum(rank**-POPULARITY for rank in range(1, count + 1))

    hits = round(weight(size) / weight(keys), 3)
    return tuple(replace(s, hits=hits) if isinstance(s, Cached) else s for s in steps)


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def deployed(rng: random.Random, drawn: System, *, quick: bool) -> System | None:
    """Return the system with think times such that a drawn number of users fills it; None if none do."""
    figures = nominal(drawn)
    longest = max(figures.cpu / CORES, *(_held(drawn, s, figures) for s in drawn.services))
    think = log_uniform(rng, *(QUICK_KNEE if quick else KNEE)) * longest - figures.response
    seconds = round(think / 1000, 3)
    workers = sum(s.pool * s.replicas for s in drawn.services if drawn.runtime_of(s) == "process")
    if (
        not RESPONSE_MS[0] <= figures.response <= (QUICK_RESPONSE_MS if quick else RESPONSE_MS[1])
        or figures.cpu > (2.0 * QUICK_CPU_MS[1] if quick else 1.3 * CPU_MS[1])
        or not LEAST_THINK <= seconds <= MOST_THINK
        or workers > MOST_WORKERS
    ):
        return None
    meant = "host" if longest == figures.cpu / CORES else "pool"
    shape = rng.choice(("constant", "exponential", "exponential"))
    found = replace(drawn, meant_to_fill=meant, think=Think(seconds, shape))
    if drawn.other is None:
        return found
    # The second kind thinks longer or shorter; the mean over all cycles stays as it was.
    ratio = rng.uniform(0.3, 1.6)
    other = round(seconds * ratio, 3)
    share = drawn.other.share
    first = round((seconds - share * other) / (1 - share), 3)
    return replace(
        found,
        think=Think(first, shape),
        other=replace(drawn.other, think=Think(other, "exponential")),
    )


def _held(system: System, service: Service, figures: Nominal) -> float:
    """Return the time per cycle for which a worker, or the one core of a replica, is not free."""
    workers = figures.held[service.name] / (service.pool * service.replicas)
    if system.runtime_of(service) == "process":
        return workers
    return max(workers, figures.used[service.name] / service.replicas)
