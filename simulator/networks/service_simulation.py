"""Simulation of a closed network whose services have any distribution, event by event.

What ``simulation`` does with rates alone: services that began keep the time that was drawn for them, so their
ends are in a heap. Clients are served in the order they come; at time 0 every service begins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mup.native.binding import compiled, internal
from mup.native.shapes import Floats1, Floats2, Floats3, Longs1, Longs2, Word
from simulator.machine.variates import Parameters, client_stream, draw, uniform

__all__ = ["simulate_services"]


@internal
def _push(times: Any, places: Any, size: int, time: float, place: int) -> None:
    """Add the end of a service to a heap of ``size`` ends."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if time >= times[above]:
            break
        times[at] = times[above]
        places[at] = places[above]
        at = above
    times[at] = time
    places[at] = place


@internal
def _sink(times: Any, places: Any, size: int, time: float, place: int) -> None:
    """Put the end of a service where the first of ``size`` ends was."""
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[at] = times[below]
        places[at] = places[below]
        at = below
    times[at] = time
    places[at] = place


@compiled
def simulate_services(
    starts: Longs2,
    rates: Floats1,
    servers: Longs1,
    routing: Floats2,
    routes: Floats2,
    kinds: Longs1,
    parameters: Parameters,
    data: Floats1,
    dt: float,
    runs: int,
    seed: Word,
    total: Floats3,
    square: Floats3,
    busy: Floats3,
    free: Floats3,
    counts: Longs2,
    sums: Floats2,
    times: Floats1,
    places: Longs1,
) -> int:
    """Add all runs to ``total``, ``square``, ``busy`` and ``free``; return the number of events.

    Stations of rate 0 serve nothing. Work space: ``counts`` (clients, busy servers), ``sums`` (since when,
    server-seconds), ``times`` and ``places`` (the heap, one place per client).
    """
    many, samples, m = total.shape
    x, serving = counts[0], counts[1]
    since, area = sums[0], sums[1]
    events = 0
    for r in range(many):
        for run in range(runs):
            state = client_stream(seed, np.uint64(r), np.uint64(run))
            size = 0
            for i in range(m):
                x[i] = starts[r, i]
                serving[i] = min(x[i], servers[i])
                since[i] = 0.0
                area[i] = 0.0
                if rates[i] > 0.0:
                    for _ in range(serving[i]):
                        state, time = draw(kinds, parameters, data, i, state)
                        _push(times, places, size, time, i)
                        size += 1
            h = 0
            while True:
                now = times[0] if size > 0 else math.inf
                while h < samples and h * dt < now:
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
                i = places[0]
                state, u = uniform(state)
                j = 0
                for k in range(m - 1):
                    j += u >= routes[i, k]
                while routing[i, j] == 0.0:
                    j -= 1
                area[i] += serving[i] * (now - since[i])
                since[i] = now
                area[j] += serving[j] * (now - since[j])
                since[j] = now
                x[i] -= 1
                x[j] += 1
                vacant = True
                if x[i] >= servers[i]:  # the next one waited; a client that stays is behind it
                    state, time = draw(kinds, parameters, data, i, state)
                    _sink(times, places, size, now + time, i)
                    vacant = False
                if x[j] <= servers[j] and (i != j or vacant) and rates[j] > 0.0:
                    state, time = draw(kinds, parameters, data, j, state)
                    if vacant:
                        _sink(times, places, size, now + time, j)
                        vacant = False
                    else:
                        _push(times, places, size, now + time, j)
                        size += 1
                if vacant:
                    size -= 1
                    if size > 0:
                        _sink(times, places, size, times[size], places[size])
                serving[i] = min(x[i], servers[i])
                serving[j] = min(x[j], servers[j])
    return events
