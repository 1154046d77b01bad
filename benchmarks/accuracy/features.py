"""Features of each system of the wide bed, dealt so that both halves have all of them.

Seeds 300 to 311 are one half, 400 to 411 the other; any other hundred makes twelve new systems. For each half
every feature is dealt to so many of its twelve systems, chosen by chance; the halves share nothing but the
numbers of the deal.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Final, Literal

from accuracy.system import Database

__all__ = ["FEATURES", "SYSTEMS", "Plan", "plan"]

SYSTEMS: Final = 12
"""Of a half."""

Runtimes = Literal["process", "thread", "async", "mixture"]

RUNTIMES: Final[Mapping[Runtimes, int]] = {"process": 3, "thread": 2, "async": 2, "mixture": 5}
DATABASES: Final[Mapping[Database, int]] = {"": 6, "embedded": 2, "mongod": 4}
DEALT: Final[Mapping[str, int]] = {
    "cold cache": 3,
    "filled cache": 3,
    "heavy tail": 4,
    "bounded Pareto": 4,
    "bimodal": 4,
    "fan-out": 5,
    "retries": 3,
    "own retries": 3,
    "after response": 5,
    "two kinds of users": 4,
    "open arrivals": 4,
    "millisecond": 3,
    "data in memory": 4,
}
"""Systems of a half that have a feature."""

APART: Final = (("cold cache", "filled cache"), ("retries", "own retries"))
"""Not both in one system."""

SEVERAL: Final = ("fan-out", "retries", "own retries")
"""What takes more than one service."""

FEATURES: Final = (*RUNTIMES, *DEALT, "embedded database", "MongoDB")
"""Everything a system is listed under."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one system has.

    Attributes:
        runtimes: Of its services.
        database: Of its queries.
        dealt: Keys of ``DEALT``.
    """

    runtimes: Runtimes
    database: Database
    dealt: frozenset[str]

    @property
    def alone(self) -> bool:
        """Whether one service is enough for everything."""
        return not self.database and self.runtimes != "mixture" and not self.dealt & set(SEVERAL)

    @property
    def features(self) -> tuple[str, ...]:
        """What the system is listed under, in the order of ``FEATURES``."""
        queried = {"embedded": "embedded database", "mongod": "MongoDB"}.get(self.database, "")
        return tuple(f for f in FEATURES if f in self.dealt or f in (self.runtimes, queried))


def plan(seed: int) -> Plan:
    """Return what the system of a seed has; the last two digits are below ``SYSTEMS``."""
    half, number = divmod(seed, 100)
    return _deal(half)[number]


@cache
def _deal(half: int) -> tuple[Plan, ...]:
    names = (f"wide half {half}" + f", again {attempt}" * (attempt > 0) for attempt in count())
    dealt = map(_dealt, map(random.Random, names))
    return next(filter(None, dealt))


def _dealt(rng: random.Random) -> tuple[Plan, ...] | None:
    """Return the systems of a half; None if no system is left for what has to be alone."""
    runtimes = [kind for kind, number in RUNTIMES.items() for _ in range(number)]
    databases = [kind for kind, number in DATABASES.items() for _ in range(number)]
    rng.shuffle(runtimes)
    rng.shuffle(databases)
    dealt: dict[str, set[int]] = {}
    for feature, number in DEALT.items():
        others = {n for pair in APART if feature == pair[1] for n in dealt[pair[0]]}
        found = rng.sample([n for n in range(SYSTEMS) if n not in others], number)
        if feature == "millisecond":
            # One of them is a single service without a database: a thousand requests per second need that.
            several = {n for other in SEVERAL for n in dealt[other]}
            alone = [n for n in range(SYSTEMS) if not databases[n] and runtimes[n] != "mixture"]
            free = [n for n in alone if n not in several and n not in found[1:]]
            if not free:
                return None
            found[0] = rng.choice(free)
        dealt[feature] = set(found)
    return tuple(
        Plan(runtimes[n], databases[n], frozenset(f for f, systems in dealt.items() if n in systems))
        for n in range(SYSTEMS)
    )
