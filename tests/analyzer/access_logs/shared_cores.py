"""An independent event simulation: open arrivals to cores that all requests in process share.

It has nothing in common with the estimators: no model, no engine, a loop over the next event.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Served:
    """A request: when it came and left, its class, and the work it really was."""

    begin: float
    end: float
    kind: int
    work: float


def served(
    *, rates: Sequence[float], draw: Callable[[random.Random, int], float], cores: int, count: int, seed: int
) -> list[Served]:
    """Return requests in the order in which they ended, from an empty station on.

    Args:
        rates: Arrivals per second of each class.
        draw: Work of a request of a class, s.
        cores: Shared evenly.
        count: Requests that end.
        seed: Same seed, same requests.
    """
    rng = random.Random(seed)
    now = 0.0
    following = [rng.expovariate(rate) for rate in rates]
    inside: list[list[float]] = []  # left, begin, kind, work
    done: list[Served] = []
    while len(done) < count:
        share = min(1.0, cores / len(inside)) if inside else 1.0
        ends = now + min(one[0] for one in inside) / share if inside else math.inf
        kind = min(range(len(rates)), key=lambda r: following[r])
        moment = min(ends, following[kind])
        for one in inside:
            one[0] -= (moment - now) * share
        now = moment
        if ends <= following[kind]:
            last = min(inside, key=lambda one: one[0])
            inside.remove(last)
            done.append(Served(last[1], now, int(last[2]), last[3]))
        else:
            work = draw(rng, kind)
            inside.append([work, now, kind, work])
            following[kind] = now + rng.expovariate(rates[kind])
    return done


def exponential(means: Sequence[float]) -> Callable[[random.Random, int], float]:
    """Return a source of exponential work."""
    return lambda rng, kind: rng.expovariate(1 / means[kind])
