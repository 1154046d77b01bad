"""Mean queues of a closed network over time, if its clients are treated as a fluid.

    dx_k/dt = sum_i flows[i, k] u_i - sum_j flows[k, j] u_k,    u_i = min(x_i, servers_i)

with ``flows[i, j] = rates[i] * routing[i, j]``: linear in the flows, which is why they are what is learned.
A recurrent *cell* takes the state from one moment to the next: ``euler`` is the papers' cell, ``heun`` is of
second order. The sensitivities are those of the cells, not of the equation, so they are exact derivatives of
what is computed.

The fluid takes the minimum of the mean for the mean of the minimum, and so believes servers to be busier
than they are. A ``Closure`` says how busy they are instead, if that is known (``network_prediction``).

Sources: Garbi's thesis, equations 2.4, 3.1 and 3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mup.native.binding import compiled, internal
from mup.native.shapes import Floats1, Floats2, Floats3, Floats4, Longs1, Longs2
from simulator.networks.closed_network import ClosedNetwork, FloatArray

__all__ = [
    "Cell",
    "Closure",
    "Pairs",
    "fluid_means",
    "fluid_sensitivities",
    "misplaced_gradient",
    "stable_cells",
]

Cell = Literal["euler", "heun"]
Pairs = npt.NDArray[np.int64]
"""Flows by their ends: (from, to); shape (P, 2)."""

REACH = 0.5
"""Of one cell, in units of the fastest time constant: stable, and accurate to a percent within it."""


@dataclass(frozen=True, slots=True)
class Closure:
    """How many servers are busy on average, close to a known state: ``slope * x + offset``.

    Attributes:
        slope, offset: Between a sample and the next; shape (R, H - 1, M).
    """

    slope: FloatArray
    offset: FloatArray


def stable_cells(flows: FloatArray, seconds: float) -> int:
    """Return how many cells a step of time needs to be followed well."""
    return max(1, math.ceil(seconds * float(flows.sum(axis=1).max()) / REACH))


def fluid_means(
    network: ClosedNetwork,
    starts: FloatArray,
    *,
    dt: float,
    samples: int,
    cells: int | None = None,
    cell: Cell = "heun",
    closure: Closure | None = None,
) -> FloatArray:
    """Return the fluid's queue lengths at 0, dt, 2 dt, ...; shape (R, samples, M).

    Args:
        network: What to follow.
        starts: Clients at each station at time 0; shape (R, M).
        dt: Seconds between samples.
        samples: How many, the one at time 0 included.
        cells: Per dt; None = as many as the rates need.
        cell: How one goes to the next.
        closure: How busy servers are; None = as the fluid believes.
    """
    flows = network.flows
    many = stable_cells(flows, dt) if cells is None else cells
    x, _ = fluid_sensitivities(
        flows,
        network.servers,
        starts,
        np.zeros((0, 2), dtype=np.int64),
        dt=dt,
        samples=samples,
        cells=many,
        cell=cell,
        closure=closure,
    )
    return x


def fluid_sensitivities(
    flows: FloatArray,
    servers: FloatArray,
    starts: FloatArray,
    pairs: Pairs,
    *,
    dt: float,
    samples: int,
    cells: int,
    cell: Cell = "heun",
    closure: Closure | None = None,
    moments: npt.NDArray[np.int64] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return queue lengths and their derivatives with respect to some of the flows.

    Args:
        flows: Per second; shape (M, M), the diagonal is ignored.
        servers: Per station, may be ``inf``; shape (M,).
        starts: Clients at time 0; shape (R, M).
        pairs: With respect to which flows; shape (P, 2).
        dt: Seconds between samples.
        samples: H.
        cells: Per dt.
        cell: How one goes to the next.
        closure: How busy servers are; None = as the fluid believes.
        moments: Which of the samples are returned, ascending, the first is 0; None = all.

    Returns:
        x, shape (R, H, M), and its derivatives, shape (R, H, M, P), where H counts the samples returned.
    """
    many, m = starts.shape
    given = closure or Closure(np.zeros((many, 0, m)), np.zeros((many, 0, m)))
    kept = np.arange(samples) if moments is None else moments
    x = np.empty((many, len(kept), m))
    s = np.empty((many, len(kept), m, len(pairs)))
    _integrate(
        np.ascontiguousarray(starts, dtype=np.float64),
        np.ascontiguousarray(flows, dtype=np.float64),
        np.ascontiguousarray(servers, dtype=np.float64),
        np.ascontiguousarray(pairs, dtype=np.int64),
        np.ascontiguousarray(given.slope, dtype=np.float64),
        np.ascontiguousarray(given.offset, dtype=np.float64),
        np.ascontiguousarray(kept, dtype=np.int64),
        dt / cells,
        cells,
        2 if cell == "heun" else 1,
        x,
        s,
        np.zeros((5, m)),
        np.zeros((4, m, len(pairs))),
    )
    return x, s


@internal
def _slope(
    flows: Any,
    servers: Any,
    pairs: Any,
    gain: Any,
    offset: Any,
    closed: bool,
    x: Any,
    s: Any,
    busy: Any,
    dx: Any,
    ds: Any,
) -> None:
    """Write the time derivatives of ``x`` to ``dx`` and of ``s`` to ``ds``."""
    m, parameters = s.shape
    for i in range(m):
        busy[i] = min(x[i], servers[i])
        if closed:
            busy[i] = min(busy[i], max(0.0, gain[i] * x[i] + offset[i]))
        dx[i] = 0.0
        for p in range(parameters):
            ds[i, p] = 0.0
    for i in range(m):
        # Where all servers are busy, one client more or less makes no difference.
        moved = gain[i] if closed else 1.0 * (x[i] < servers[i])
        leaving = 0.0
        for j in range(m):
            rate = flows[i, j]
            if i == j or rate == 0.0:
                continue
            leaving += rate
            dx[j] += rate * busy[i]
            if moved > 0.0:
                for p in range(parameters):
                    ds[j, p] += rate * moved * s[i, p]
        dx[i] -= leaving * busy[i]
        if moved > 0.0:
            for p in range(parameters):
                ds[i, p] -= leaving * moved * s[i, p]
    for p in range(parameters):
        ds[pairs[p, 1], p] += busy[pairs[p, 0]]
        ds[pairs[p, 0], p] -= busy[pairs[p, 0]]


@compiled
def _integrate(
    starts: Floats2,
    flows: Floats2,
    servers: Floats1,
    pairs: Longs2,
    gain: Floats3,
    offset: Floats3,
    moments: Longs1,
    step: float,
    cells: int,
    stages: int,
    out_x: Floats3,
    out_s: Floats4,
    state: Floats2,
    sensitivity: Floats3,
) -> None:
    """Follow all starting states; ``state`` and ``sensitivity`` are work space."""
    many, _, m = out_x.shape
    samples = moments[-1] + 1
    parameters = out_s.shape[3]
    x, busy, dx, ahead, dx_ahead = state[0], state[1], state[2], state[3], state[4]
    s, ds, s_ahead, ds_ahead = sensitivity[0], sensitivity[1], sensitivity[2], sensitivity[3]
    closed = gain.shape[1] > 0
    for r in range(many):
        for i in range(m):
            x[i] = starts[r, i]
            for p in range(parameters):
                s[i, p] = 0.0
        k = 0
        for h in range(samples):
            if h == moments[k]:
                for i in range(m):
                    out_x[r, k, i] = x[i]
                    for p in range(parameters):
                        out_s[r, k, i, p] = s[i, p]
                k += 1
            if h == samples - 1:
                break
            # Not looked at unless closed.
            g = gain[r, h] if closed else servers
            o = offset[r, h] if closed else servers
            for _ in range(cells):
                _slope(flows, servers, pairs, g, o, closed, x, s, busy, dx, ds)
                weight = step
                if stages == 2:
                    for i in range(m):
                        ahead[i] = x[i] + step * dx[i]
                        for p in range(parameters):
                            s_ahead[i, p] = s[i, p] + step * ds[i, p]
                    _slope(flows, servers, pairs, g, o, closed, ahead, s_ahead, busy, dx_ahead, ds_ahead)
                    weight = step / 2
                    for i in range(m):
                        dx[i] += dx_ahead[i]
                        for p in range(parameters):
                            ds[i, p] += ds_ahead[i, p]
                for i in range(m):
                    x[i] += weight * dx[i]
                    for p in range(parameters):
                        s[i, p] += weight * ds[i, p]


def misplaced_gradient(
    flows: FloatArray, servers: FloatArray, observed: FloatArray, *, dt: float
) -> tuple[FloatArray, FloatArray]:
    """Return the papers' error of each trace, and the derivatives of its mean by the flows.

    The error is the largest part of the clients misplaced at any time (thesis, equation 3.2), predicted with
    Euler cells of one ``dt``. Derivatives are propagated back through the cells.

    Args:
        flows: Per second; shape (M, M).
        servers: Shape (M,).
        observed: Queue lengths; shape (R, H, M).
        dt: Seconds between samples.

    Returns:
        Errors as parts of the clients, shape (R,), and derivatives, shape (M, M).
    """
    many, samples, m = observed.shape
    errors, gradient = np.zeros(many), np.zeros((m, m))
    _propagate_back(
        np.ascontiguousarray(flows, dtype=np.float64),
        np.ascontiguousarray(servers, dtype=np.float64),
        np.ascontiguousarray(observed, dtype=np.float64),
        dt,
        errors,
        gradient,
        np.zeros((samples, m)),
        np.zeros((2, m)),
    )
    return errors, gradient / many


@compiled
def _propagate_back(
    flows: Floats2,
    servers: Floats1,
    observed: Floats3,
    dt: float,
    errors: Floats1,
    gradient: Floats2,
    x: Floats2,
    work: Floats2,
) -> None:
    """Add up the derivatives of all traces; ``x`` and ``work`` are work space."""
    many, samples, m = observed.shape
    back, earlier = work[0], work[1]
    for r in range(many):
        clients = 0.0
        for i in range(m):
            x[0, i] = observed[r, 0, i]
            clients += x[0, i]
        worst, when = 0.0, 0
        for h in range(1, samples):
            for i in range(m):
                x[h, i] = x[h - 1, i]
            for i in range(m):
                busy = dt * min(x[h - 1, i], servers[i])
                for j in range(m):
                    if i != j:
                        x[h, j] += flows[i, j] * busy
                        x[h, i] -= flows[i, j] * busy
            wrong = 0.0
            for i in range(m):
                wrong += abs(x[h, i] - observed[r, h, i])
            if wrong > worst:
                worst, when = wrong, h
        errors[r] = worst / (2 * clients)
        for i in range(m):
            off = x[when, i] - observed[r, when, i]
            back[i] = (1.0 if off > 0 else -1.0) / (2 * clients) if off != 0 else 0.0
        for h in range(when - 1, -1, -1):
            for i in range(m):
                busy = dt * min(x[h, i], servers[i])
                earlier[i] = back[i]
                for j in range(m):
                    if i != j:
                        gradient[i, j] += busy * (back[j] - back[i])
                        if x[h, i] < servers[i]:
                            earlier[i] += dt * flows[i, j] * (back[j] - back[i])
            for i in range(m):
                back[i] = earlier[i]
