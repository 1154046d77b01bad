"""Generate the system of a seed: random topology, work, waits, branches, pools and users.

Drawn until the nominal figures say that the system is worth measuring: one user's cycle takes 5 to 500 ms,
and a load of few enough users fills the host, or a pool of workers, whichever was drawn beforehand.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Literal

from accuracy.nominal import CORES, nominal
from accuracy.rework import with_burns
from accuracy.system import (
    Ask,
    Burn,
    CallTo,
    Choice,
    Database,
    Endpoint,
    Find,
    Operation,
    Pause,
    Runtime,
    Service,
    Shape,
    Step,
    System,
    Think,
)

__all__ = ["system"]

NAMES = "ABCDEF"
MAIN, SIDE = "/main/", "/side/"

SEGMENT_MS = (0.2, 20.0)
PAUSE_MS = (3.0, 50.0)
CYCLE_CPU_MS = (3.0, 40.0)
CYCLE_MS = (5.0, 500.0)
KNEE = (5.0, 32.0)
"""Users at which the system is to be about full."""
FEWEST = 3.0
"""The same where users do not think, so that only waiting and several workers make room for more of them."""
MOST_THINK = 1.0
MOST_WORKERS = 24
"""Each is a process: more would measure the machine's memory."""
CLEARLY = 1.4
"""The resource that is to be full first needs this much more time per cycle than the other kind."""
SHAPES: tuple[Shape, ...] = ("constant", "uniform", "exponential", "lognormal")


def system(seed: int, runtime: Runtime = "process") -> System:
    """Return the system of a seed, the same on every machine and, but for its workers, in every runtime."""
    rng = random.Random(f"accuracy {seed}")
    fill: Literal["host", "pool"] = rng.choice(("host", "pool"))
    services = rng.randint(1, len(NAMES))
    thinks, waits = rng.random() < 0.85, rng.random() < 0.5
    while True:
        found = _deployed(rng, _Draft(rng, services, waits=waits).system(seed, fill), thinks=thinks)
        if found is not None:
            return replace(found, runtime=runtime)


class _Draft:
    """Draws which service calls which, and what endpoints do; pools and think times come later."""

    def __init__(self, rng: random.Random, services: int, *, waits: bool) -> None:
        self.rng = rng
        self.pauses = 0.8 if waits else 0.3
        self.names = NAMES[:services]
        self.database: Database = rng.choice(("", "embedded", "mongod"))
        self.callees: dict[str, list[str]] = {name: [] for name in self.names}
        self.roots = [self.names[0]]
        shape = rng.choice(("chain", "star", "star", "tree"))
        for number, name in enumerate(self.names[1:], start=1):
            caller = {"chain": number - 1, "star": 0, "tree": rng.randrange(number)}[shape]
            if rng.random() < 0.1:
                self.roots.append(name)
            else:
                self.callees[self.names[caller]].append(name)
            # Another service calls it, too.
            others = [n for n in self.names[:number] if name not in self.callees[n]]
            if others and rng.random() < 0.15:
                self.callees[rng.choice(others)].append(name)
        self.sides = {name for name in self.names if rng.random() < 0.2}

    def system(self, seed: int, fill: Literal["host", "pool"]) -> System:
        services = tuple(
            Service(name, self.rng.randint(1, 8), self.rng.choice((1, 1, 1, 2, 3)), self._endpoints(name))
            for name in self.names
        )
        steps = self._calls(self.roots, work=False)
        uses = any("by_" in repr(s) for s in services)
        drawn = System(seed, services, tuple(steps), None, self.database if uses else "", fill)
        return _sized(drawn, _log_uniform(self.rng, *CYCLE_CPU_MS))

    def _endpoints(self, name: str) -> tuple[Endpoint, ...]:
        main = Endpoint(MAIN, self._main(name), self._burn() if self.rng.random() < 0.12 else None)
        if name not in self.sides:
            return (main,)
        steps: list[Step] = [self._burn()]
        if self.database and self.rng.random() < 0.5:
            steps.append(Ask((self._find(),)))
        return (main, Endpoint(SIDE, tuple(steps)))

    def _main(self, name: str) -> tuple[Step, ...]:
        rng = self.rng
        steps: list[Step] = [self._burn(), *self._calls(self.callees[name], work=True)]
        for _ in range(2):
            if rng.random() < self.pauses:
                steps.insert(rng.randint(1, len(steps)), self._pause())
        if self.database and rng.random() < 0.5:
            meanwhile = self._burn() if rng.random() < 0.3 else None
            steps.insert(rng.randint(0, len(steps)), Ask((self._find(),), meanwhile))
        if rng.random() < 0.45:
            index = rng.randrange(len(steps))
            chance = round(rng.uniform(0.1, 0.9), 2)
            other: tuple[Step, ...] = (self._burn(),) if rng.random() < 0.5 else ()
            steps[index] = Choice(chance, (steps[index],), other)
        return tuple(steps)

    def _calls(self, callees: list[str], *, work: bool) -> list[Step]:
        """Return the calls one flow makes: one after the other, or several at once."""
        rng = self.rng
        left = callees[:]
        rng.shuffle(left)
        steps: list[Step] = []
        while left:
            width = rng.randint(2, min(3, len(left))) if len(left) > 1 and rng.random() < 0.7 else 1
            group, left = left[:width], left[width:]
            targets: list[Operation] = [CallTo(name, MAIN) for name in group]
            if width == 1 and work and self.database and rng.random() < 0.15:
                targets.append(self._find())
            meanwhile = self._burn() if work and rng.random() < 0.35 else None
            ask = Ask(tuple(targets), meanwhile)
            if len(targets) == 1 and group[0] in self.sides:
                # Some requests go to the other endpoint instead.
                chance = round(rng.uniform(0.2, 0.8), 2)
                steps.append(Choice(chance, (ask,), (Ask((CallTo(group[0], SIDE),)),)))
            else:
                steps.append(ask)
            if work and left and rng.random() < 0.4:
                steps.append(self._burn())
        return steps

    def _burn(self) -> Burn:
        return Burn(_log_uniform(self.rng, *SEGMENT_MS), self.rng.choice(SHAPES))

    def _pause(self) -> Pause:
        ms = round(_log_uniform(self.rng, *PAUSE_MS), 1)
        return Pause(ms, self.rng.choice(("constant", "uniform")))

    def _find(self) -> Find:
        return Find(self.rng.choice(("by_id", "by_shelf")))


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _sized(drawn: System, cycle_ms: float) -> System:
    """Scale all work such that one cycle needs about this much, within the limits of a segment."""
    factor = max(0.05, cycle_ms - (nominal(drawn).cpu - nominal(drawn).work)) / nominal(drawn).work

    def burn(step: Burn) -> Burn:
        ms = min(max(step.ms * factor, SEGMENT_MS[0]), SEGMENT_MS[1])
        return replace(step, ms=round(ms, 2))

    return with_burns(drawn, burn)


def _deployed(rng: random.Random, drawn: System, *, thinks: bool) -> System | None:
    """Return the system with pools and think time that fill it up as it is meant to; None if nothing does."""
    figures = nominal(drawn)
    host = figures.cpu / CORES
    services = drawn.services
    if drawn.meant_to_fill == "host":
        services = tuple(_held_for(s, figures.held[s.name], host / CLEARLY) for s in services)
    else:
        # The service whose workers are held longest gets few of them, the others enough.
        tight = max(services, key=lambda s: figures.held[s.name])
        threads = int(figures.held[tight.name] / (host * CLEARLY))
        if threads < 1:
            return None
        replicas = min(tight.replicas, threads)
        pool = max(1, min(8, threads // replicas, rng.randint(1, 8)))
        each = figures.held[tight.name] / (pool * replicas)
        services = tuple(
            replace(s, pool=pool, replicas=replicas)
            if s is tight
            else _held_for(s, figures.held[s.name], each / CLEARLY)
            for s in services
        )
    found = replace(drawn, services=services)
    fullest = figures.fullest_pool(found)
    longest = max(host, fullest)
    ratio = fullest / host if drawn.meant_to_fill == "pool" else host / fullest
    think = _log_uniform(rng, *KNEE) * longest - figures.response
    seconds = round(min(max(think / 1000, 0.01), MOST_THINK), 2) if thinks else 0.0
    knee = (figures.response + 1000 * seconds) / longest
    if (
        not CYCLE_MS[0] <= figures.response <= CYCLE_MS[1]
        or not CYCLE_CPU_MS[0] <= figures.cpu <= CYCLE_CPU_MS[1] * 1.1
        or not (KNEE[0] if thinks else FEWEST) <= knee <= KNEE[1]
        or found.workers > MOST_WORKERS
        or ratio < CLEARLY * 0.99
    ):
        return None
    shape: Literal["constant", "exponential"] = rng.choice(("constant", "exponential", "exponential"))
    return replace(found, think=Think(seconds, shape) if seconds else None)


def _held_for(service: Service, held: float, most: float) -> Service:
    """Return the service with as many more workers as it takes to hold each at most so long per cycle."""
    needed = math.ceil(held / most / service.replicas)
    return replace(service, pool=min(8, max(service.pool, needed)))
