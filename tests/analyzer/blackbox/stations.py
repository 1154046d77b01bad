"""Stations of known servers and service times that answer in computed time."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from analyzer.blackbox.inversion import FloatArray, Trace
from analyzer.blackbox.station import LoadStep

Draw = Callable[[np.random.Generator, int], FloatArray]

MEAN = 0.02
TIMES: dict[str, Draw] = {
    "exponential": lambda rng, n: rng.exponential(MEAN, n),
    "constant": lambda rng, n: np.full(n, MEAN),
    "uniform": lambda rng, n: rng.uniform(0.5 * MEAN, 1.5 * MEAN, n),
    "erlang": lambda rng, n: rng.gamma(4, MEAN / 4, n),
    "hyperexponential": lambda rng, n: rng.exponential(np.where(rng.random(n) < 0.1, 5.5 * MEAN, 0.5 * MEAN)),
}
"""All of the same mean, from no variability to a cv of 2.1."""


def simulated(
    rng: np.random.Generator,
    rate: float,
    size: int,
    servers: int,
    draw: Draw,
    latency: float = 0.0,
    jitter: float = 0.0,
) -> tuple[Trace, FloatArray]:
    """Return a trace of an M/G/K station that was empty, and the service times behind it."""
    arrivals = np.cumsum(rng.exponential(1 / rate, size))
    service = draw(rng, size)
    free = [-np.inf] * servers
    leave = np.empty(size)
    for i in range(size):
        leave[i] = max(arrivals[i] + latency, heapq.heappop(free)) + service[i]
        heapq.heappush(free, leave[i])
    noise = rng.exponential(jitter, size) if jitter else 0.0
    return Trace.of(arrivals, leave + noise - arrivals), service


class SimulatedInjector:
    """An injector into such a station; remembers the loads it was asked for."""

    def __init__(self, servers: int, draw: Draw, *, latency: float = 0.001, jitter: float = 0.0002) -> None:
        self.servers, self.draw, self.latency, self.jitter = servers, draw, latency, jitter
        self.rates: list[float] = []

    def inject(self, rate: float, seconds: float, seed: int) -> LoadStep:
        self.rates.append(rate)
        rng = np.random.default_rng(seed)
        size = int(rng.poisson(rate * seconds))
        trace, _ = simulated(rng, rate, size, self.servers, self.draw, self.latency, self.jitter)
        return LoadStep(rate, trace, seconds)
