"""Closed networks of first-come first-served stations with any service, simulated event by event.

Shares nothing with what is tested: a heap, queues of clients, and numpy's variates.
"""

from __future__ import annotations

import heapq
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
    routes = np.cumsum(routing, axis=1)
    x = np.array(
        [
            np.mean(
                [_run(start, rates, servers, routes, draw, samples, dt, generator) for _ in range(runs)],
                axis=0,
            )
            for start in starts.tolist()
        ]
    )
    return Traces(x=x, dt=dt, names=names, servers=np.array(servers), runs=np.array(runs))


def _run(
    start: Sequence[int],
    rates: Sequence[float],
    servers: Sequence[float],
    routes: npt.NDArray[np.float64],
    draw: Draw,
    samples: int,
    dt: float,
    generator: np.random.Generator,
) -> npt.NDArray[np.float64]:
    """Return the queue lengths of one run; shape (H, M)."""
    m = len(start)
    end = (samples - 1) * dt
    times: list[float] = []
    choices: list[float] = []
    queue = list(start)
    ends: list[tuple[float, int]] = []
    lines = np.zeros((samples + 1, m))
    lines[0] = start

    def serve(station: int, now: float) -> None:
        if not times:
            times.extend(draw(generator, 256).tolist())
            choices.extend(generator.uniform(size=256).tolist())
        heapq.heappush(ends, (now + times.pop() / rates[station], station))

    for station, many in enumerate(start):
        for _ in range(int(min(many, servers[station]))):
            serve(station, 0.0)
    while ends and ends[0][0] <= end:
        now, station = heapq.heappop(ends)
        if queue[station] > servers[station]:
            serve(station, now)
        if not choices:
            choices.extend(generator.uniform(size=256).tolist())
        to = int(np.searchsorted(routes[station], choices.pop(), side="right"))
        queue[station] -= 1
        queue[to] += 1
        if queue[to] <= servers[to]:
            serve(to, now)
        sample = math.ceil(now / dt)
        lines[sample, station] -= 1
        lines[sample, to] += 1
    return lines[:samples].cumsum(axis=0)
