"""Exact simulation of a closed network's queues from a given state, and their mean.

Where services are exponential, Gillespie's direct method: the time to the next service and the station it
ends at are drawn from the rates of all stations, and nothing else happens in between. Other services are
simulated event by event (``service_simulation``). Runs are independent; their mean at the points of a grid is
the transient mean, with an interval, and the time servers were busy is integrated between the points.

Source: Gillespie, "Stochastic simulation of chemical kinetics", 2007; thesis, equation 2.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mup.errors import UsageError
from mup.native.binding import compiled
from mup.native.shapes import Floats1, Floats2, Floats3, Longs1, Longs2, Word
from mup.statistics.student import t_quantile
from simulator.machine.variates import client_stream, tables, uniform
from simulator.networks.closed_network import ClosedNetwork, FloatArray
from simulator.networks.service_simulation import simulate_services

__all__ = ["TransientMeans", "transient_means"]

MOST_CLIENTS = 1 << 40
"""Stands for infinitely many servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransientMeans:
    """Means over independent runs, for each of R starting states at H moments at M stations.

    Attributes:
        x: Clients at each station; shape (R, H, M).
        half: Half-width of the 95 % interval of each; same shape.
        busy: Integral of the busy servers from time 0, server-seconds; same shape.
        free: Probability that one client more would be served at once; same shape.
        dt: Seconds between moments.
        events: Services simulated.
    """

    x: FloatArray
    half: FloatArray
    busy: FloatArray
    free: FloatArray
    dt: float
    events: int


def transient_means(
    network: ClosedNetwork,
    starts: npt.NDArray[Any],
    *,
    dt: float,
    samples: int,
    runs: int,
    seed: int,
) -> TransientMeans:
    """Simulate a network from given states.

    Args:
        network: What to simulate.
        starts: Clients at each station at time 0, whole numbers; shape (R, M).
        dt: Seconds between samples.
        samples: Moments 0, dt, 2 dt, ...; H.
        runs: Independent runs per starting state, at least 2.
        seed: Same seed, same numbers. Run k from the r-th state sees the same random numbers whatever the
            others are.

    Raises:
        UsageError: A starting state is no number of clients, or there are too few runs or samples.
    """
    states = np.asarray(starts)
    if states.ndim != 2 or states.shape[1] != len(network.names):
        raise UsageError(f"starts: must have the shape (states, {len(network.names)}), got {states.shape}")
    if (states < 0).any() or (states != np.floor(states)).any():
        raise UsageError("starts: must be whole numbers of clients >= 0")
    if runs < 2 or samples < 1 or not 0 < dt < math.inf:
        raise UsageError(f"needs 2 runs, 1 sample and dt > 0, got {runs}, {samples} and {dt!r}")
    shape = (len(states), samples, len(network.names))
    total, square, busy, free = np.zeros((4, *shape))
    m = len(network.names)
    begin = states.astype(np.int64)
    servers = np.minimum(network.servers, MOST_CLIENTS).astype(np.int64)
    routing, routes = np.ascontiguousarray(network.routing), np.cumsum(network.routing, axis=1)
    if network.exponential:
        events = _simulate(
            begin,
            network.rates,
            servers,
            routing,
            routes,
            dt,
            runs,
            np.uint64(seed),
            total,
            square,
            busy,
            free,
            np.zeros((2, m), dtype=np.int64),
            np.zeros((4, m)),
        )
    else:
        services = tables(network.services())
        clients = max(1, int(begin.sum(axis=1).max(initial=0)))
        events = simulate_services(
            begin,
            network.rates,
            servers,
            routing,
            routes,
            services.kinds,
            services.parameters,
            services.data,
            dt,
            runs,
            np.uint64(seed),
            total,
            square,
            busy,
            free,
            np.zeros((2, m), dtype=np.int64),
            np.zeros((2, m)),
            np.zeros(clients),
            np.zeros(clients, dtype=np.int64),
        )
    mean = total / runs
    spread = np.sqrt(np.maximum(square / runs - mean**2, 0.0) / (runs - 1))
    half = t_quantile(runs - 1) * spread
    return TransientMeans(x=mean, half=half, busy=busy / runs, free=free / runs, dt=dt, events=int(events))


@compiled
def _simulate(
    starts: Longs2,
    rates: Floats1,
    servers: Longs1,
    routing: Floats2,
    routes: Floats2,
    dt: float,
    runs: int,
    seed: Word,
    total: Floats3,
    square: Floats3,
    busy: Floats3,
    free: Floats3,
    counts: Longs2,
    sums: Floats2,
) -> int:
    """Add all runs to ``total``, ``square``, ``busy`` and ``free``; return the number of events.

    Work space: ``counts`` (clients, busy servers), ``sums`` (rate, since when, server-seconds,
    rate of this and the stations before).
    """
    many, samples, m = total.shape
    x, serving = counts[0], counts[1]
    speed, since, area, below = sums[0], sums[1], sums[2], sums[3]
    events = 0
    for r in range(many):
        for run in range(runs):
            state = client_stream(seed, np.uint64(r), np.uint64(run))
            for i in range(m):
                x[i] = starts[r, i]
                serving[i] = min(x[i], servers[i])
                speed[i] = rates[i] * serving[i]
                since[i] = 0.0
                area[i] = 0.0
            now = 0.0
            h = 0
            while True:
                # Summed anew each time: differences would pile up rounding errors.
                whole = 0.0
                for i in range(m):
                    whole += speed[i]
                    below[i] = whole
                if whole > 0.0:
                    state, u = uniform(state)
                    now -= math.log(1.0 - u) / whole
                else:
                    now = math.inf
                while h < samples and h * dt <= now:
                    moment = h * dt
                    for i in range(m):
                        area[i] += serving[i] * (moment - since[i])
                        since[i] = moment
                        total[r, h, i] += x[i]
                        square[r, h, i] += x[i] * x[i]
                        busy[r, h, i] += area[i]
                        # With as many clients as servers the answer changes: half way.
                        free[r, h, i] += 0.5 * ((x[i] < servers[i]) + (x[i] <= servers[i]))
                    h += 1
                if h == samples:
                    break
                events += 1
                state, u = uniform(state)
                # Counted without a branch: a processor cannot guess where a search ends.
                chosen = u * whole
                i = 0
                for k in range(m - 1):
                    i += chosen >= below[k]
                while speed[i] == 0.0:  # rounding led past the last busy station
                    i -= 1
                state, u = uniform(state)
                j = 0
                for k in range(m - 1):
                    j += u >= routes[i, k]
                while routing[i, j] == 0.0:
                    j -= 1
                if i == j:
                    continue
                area[i] += serving[i] * (now - since[i])
                area[j] += serving[j] * (now - since[j])
                since[i] = now
                since[j] = now
                x[i] -= 1
                x[j] += 1
                serving[i] = min(x[i], servers[i])
                serving[j] = min(x[j], servers[j])
                speed[i] = rates[i] * serving[i]
                speed[j] = rates[j] * serving[j]
    return events
