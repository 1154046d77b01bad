"""Closed networks of first-come first-served stations with any service, simulated event by event.

Shares nothing with what is tested: all runs side by side, places of servers, and numpy's variates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from analyzer.learning.traces import Traces

__all__ = ["SERVICES", "observe", "three_stations"]

Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]
"""Service times of mean 1."""


def _hyperexponential(scv: float) -> Draw:
    p = (1 + math.sqrt((scv - 1) / (scv + 1))) / 2

    def draw(generator: np.random.Generator, many: int) -> npt.NDArray[np.float64]:
        means = np.where(generator.uniform(size=many) < p, 1 / (2 * p), 1 / (2 * (1 - p)))
        return means * generator.standard_exponential(many)

    return draw


def _lognormal(scv: float) -> Draw:
    sigma = math.sqrt(math.log(1 + scv))
    return lambda generator, many: generator.lognormal(-(sigma**2) / 2, sigma, many)


SERVICES: dict[str, Draw] = {
    "exponential": lambda generator, many: generator.standard_exponential(many),
    "erlang-5": lambda generator, many: generator.gamma(5, 1 / 5, many),
    "constant": lambda _generator, many: np.ones(many),
    "lognormal-4": _lognormal(4),
    "h2-2": _hyperexponential(2),
    "h2-10": _hyperexponential(10),
}


def three_stations(
    service: str, *, traces: int = 40, runs: int = 50, seconds: float = 3.0, dt: float = 0.05, seed: int = 0
) -> Traces:
    """Clients think (2 per second), then are at A (6 servers, 12/s) and perhaps B (5 servers, 9/s)."""
    starts = np.random.default_rng([seed, 0]).integers(0, 31, (traces, 3))
    return observe(
        starts,
        rates=(2.0, 12.0, 9.0),
        servers=(math.inf, 6, 5),
        routing=((0, 1, 0), (0.4, 0, 0.6), (1, 0, 0)),
        names=("W", "A", "B"),
        draw=SERVICES[service],
        runs=runs,
        samples=round(seconds / dt) + 1,
        dt=dt,
        seed=seed,
    )


def observe(
    starts: npt.NDArray[np.int64],
    *,
    rates: Sequence[float],
    servers: Sequence[float],
    routing: Sequence[Sequence[float]],
    names: tuple[str, ...],
    draw: Draw,
    runs: int,
    samples: int,
    dt: float,
    seed: int,
) -> Traces:
    """Return mean queue lengths; all services begin at time 0."""
    generator = np.random.default_rng([seed, 1])
    each = _queues(
        np.repeat(starts, runs, axis=0),
        np.array(rates),
        np.array(servers),
        np.cumsum(routing, axis=1),
        draw,
        samples,
        dt,
        generator,
    )
    x = each.reshape(samples, len(starts), runs, len(names)).mean(axis=2).transpose(1, 0, 2)
    return Traces(x=x, dt=dt, names=names, servers=np.array(servers), runs=np.array(runs))


def _queues(
    starts: npt.NDArray[np.int64],
    rates: npt.NDArray[np.float64],
    servers: npt.NDArray[np.float64],
    routes: npt.NDArray[np.float64],
    draw: Draw,
    samples: int,
    dt: float,
    generator: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Return the queue lengths of N runs, each of which does its next event in every step; shape (H, N, M).

    Clients at a station are alike: how many there are, and when the services going on end, is all of a state.
    """
    many, m = starts.shape
    places = np.minimum(servers, starts.sum(axis=1).max()).astype(np.int64)
    station = np.repeat(np.arange(m), places)
    # Invariant: a place is free where its end is infinite.
    rank = np.concatenate([np.arange(n) for n in places])
    serving = rank < starts[:, station]
    ends = np.full(serving.shape, np.inf)
    ends[serving] = draw(generator, int(serving.sum())) / rates[station[np.nonzero(serving)[1]]]
    queue = starts.copy()
    changes = np.zeros((samples + 1, many, m), dtype=np.int64)
    changes[0] = starts
    end = (samples - 1) * dt
    runs = np.arange(many)
    while len(runs):
        place = ends[runs].argmin(axis=1)
        now = ends[runs, place]
        more = now <= end
        runs, place, now = runs[more], place[more], now[more]
        left, to = (
            station[place],
            (routes[station[place]] <= generator.uniform(size=(len(runs), 1))).sum(axis=1),
        )
        follows = queue[runs, left] > servers[left]
        services = draw(generator, len(runs)) / rates[left]
        ends[runs, place] = np.where(follows, now + services, np.inf)
        queue[runs, left] -= 1
        queue[runs, to] += 1
        served = queue[runs, to] <= servers[to]
        at, where = runs[served], to[served]
        free = (np.isinf(ends[at]) & (station == where[:, None])).argmax(axis=1)
        ends[at, free] = now[served] + draw(generator, len(at)) / rates[where]
        sample = np.ceil(now / dt).astype(np.int64)
        changes[sample, runs, left] -= 1
        changes[sample, runs, to] += 1
    return changes[:samples].cumsum(axis=0)
