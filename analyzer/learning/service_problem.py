"""Traces, and a network with one family of services to explain them.

What it misses a simulation tells. In which direction less would be missed, the fluid with general services
tells (``simulator.networks.service_fluid``); it need not be exact, for what is matched is the simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear

from analyzer.learning.network_correction import whole_starts
from analyzer.learning.service_families import HIGHEST, LOWEST, Family, shape_of
from analyzer.learning.service_noise import Simulated, whitening
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Closure, Pairs
from simulator.networks.service_fluid import service_fluid, steps_for
from simulator.networks.simulation import TransientMeans, transient_means

__all__ = ["SPREAD_OF_SCV", "Linear", "Point", "Problem", "closure_around", "loss"]

STEPS = 2
"""Along the fluid, for one simulation."""
BATCHES = 20
SPREAD_OF_SCV = 2.0
"""Standard deviation of the logarithm of a squared coefficient of variation, before any trace was seen."""
FAR_FLOW, FAR_SCV = 0.3, 0.7
"""The farthest a step goes: parts of a flow, and logarithms."""
LITTLE = 0.05
"""Flows below this part of the greatest move as far as it does."""
STRANGE = 4.0
"""Standard deviations beyond which a difference does not count for more: where all services end at the same
moment a small error of the time is a great one of the queue."""


@dataclass(frozen=True, slots=True)
class Point:
    """Flows by pairs, shape (P,), and squared coefficients of variation, shape (M,)."""

    flows: FloatArray
    scv: FloatArray

    def moved(self, step: FloatArray) -> Point:
        """Return the point behind a step: of flows, and of logarithms of variation."""
        p = len(self.flows)
        flows = np.maximum(self.flows + step[:p], 0.0)
        return Point(flows, np.clip(self.scv * np.exp(step[p:]), LOWEST, HIGHEST))

    def back(self, earlier: Point, part: float) -> Point:
        """Return a point between an earlier one (0) and this (1)."""
        flows = earlier.flows + part * (self.flows - earlier.flows)
        return Point(flows, earlier.scv * (self.scv / earlier.scv) ** part)


def closure_around(simulated: Simulated) -> Closure:
    """Return how busy servers are near a simulation."""
    slope = (simulated.free[:, 1:] + simulated.free[:, :-1]) / 2
    middle = (simulated.x[:, 1:] + simulated.x[:, :-1]) / 2
    return Closure(slope, np.diff(simulated.busy, axis=1) / simulated.dt - slope * middle)


def loss(off: FloatArray) -> FloatArray:
    """Return the square of differences in units of noise; of strange ones less (Huber's)."""
    size = np.abs(off)
    return np.where(size < STRANGE, size**2, 2 * STRANGE * size - STRANGE**2)


@dataclass(frozen=True, slots=True)
class Linear:
    """What traces miss around a point, white; shapes (R, D) and (R, D, K)."""

    off: FloatArray
    slopes: FloatArray

    def select(self, rows: npt.NDArray[np.int64]) -> Linear:
        """Return the same of some traces."""
        return Linear(self.off[rows], self.slopes[rows])


@dataclass(frozen=True, slots=True)
class Problem:
    """Traces and a family of shapes to fit to them."""

    traces: Traces
    servers: FloatArray
    pairs: Pairs
    family: Family
    runs: float

    def on(self, traces: Traces) -> Problem:
        """Return the same problem for other traces."""
        return Problem(traces, self.servers, self.pairs, self.family, self.runs)

    def network(self, point: Point) -> ClosedNetwork:
        """Return the network of a point."""
        m = len(self.servers)
        flows = np.zeros((m, m))
        flows[self.pairs[:, 0], self.pairs[:, 1]] = point.flows
        shapes = tuple(shape_of(self.family, c) for c in point.scv.tolist())
        return ClosedNetwork.of_flows(flows, self.traces.names, self.servers, shapes)

    def simulated(self, point: Point, batch: int, seed: int) -> Simulated:
        """Simulate the traces in batches of so many runs."""
        return Simulated.of(self._batches(point, batch, seed), batch)

    def _batches(self, point: Point, batch: int, seed: int) -> list[TransientMeans]:
        network, traces = self.network(point), self.traces
        starts = whole_starts(traces)
        return [
            transient_means(
                network, starts, dt=traces.dt, samples=traces.x.shape[1], runs=batch, seed=seed * BATCHES + b
            )
            for b in range(BATCHES)
        ]

    def improved(self, point: Point, batch: int, *, seed: int) -> tuple[Point, Linear]:
        """Return a better point, and what traces miss around the first one."""
        parts = self._batches(point, batch, seed)
        # One half says in which direction and in what units, the other one how far: the noise of the same
        # simulation in both would not cancel, and lead to somewhere else.
        units, simulated = Simulated.of(parts[::2], batch), Simulated.of(parts[1::2], batch)
        white = whitening(self.network(point), units, self.runs)
        closure = closure_around(units)
        x, slopes = self._slopes(point, closure)
        shift = simulated.x - x
        first = Linear(white(self.traces.x - simulated.x), np.moveaxis(white(slopes), 0, -1))
        better = point.moved(self.step(point, first))
        for _ in range(STEPS - 1):
            x, slopes = self._slopes(better, closure)
            linear = Linear(white(self.traces.x - shift - x), np.moveaxis(white(slopes), 0, -1))
            better = better.moved(self.step(better, linear))
        return better, first

    def step(self, point: Point, linear: Linear) -> FloatArray:
        """Return the best step of limited length."""
        off = linear.off.reshape(-1)
        slopes = linear.slopes.reshape(len(off), -1)
        weights = np.sqrt(np.minimum(1.0, STRANGE / np.maximum(np.abs(off), 1e-12)))
        off, slopes = off * weights, slopes * weights[:, None]
        p, m = len(point.flows), len(point.scv)
        slopes = np.vstack((slopes, np.hstack((np.zeros((m, p)), np.eye(m) / SPREAD_OF_SCV))))
        off = np.concatenate((off, -np.log(point.scv) / SPREAD_OF_SCV))
        reach = FAR_FLOW * np.maximum(point.flows, LITTLE * point.flows.max())
        low = np.concatenate(
            (-np.minimum(point.flows, reach), np.maximum(-FAR_SCV, np.log(LOWEST / point.scv)))
        )
        high = np.concatenate((reach, np.minimum(FAR_SCV, np.log(HIGHEST / point.scv))))
        # Normal equations: thousands of rows, some dozens of columns.
        scale = 1 / np.sqrt(np.maximum(np.square(slopes).sum(axis=0), 1e-300))
        half = np.asarray(np.linalg.qr(np.column_stack((slopes * scale, off)), mode="r"))
        few = half[:, :-1]
        found = lsq_linear(few, half[:, -1], bounds=((low - 1e-12) / scale, (high + 1e-12) / scale))
        step: FloatArray = found.x * scale
        return step

    def _slopes(self, point: Point, closure: Closure) -> tuple[FloatArray, FloatArray]:
        """Return the fluid at a point, shape (R, H, M), and its derivatives, shape (K, R, H, M)."""
        steps = np.concatenate((np.maximum(0.02 * point.flows, 1e-3 * point.flows.max()), _nudge(point.scv)))
        points = [point] + [
            point.moved(np.where(np.arange(len(steps)) == k, s, 0.0)) for k, s in enumerate(steps)
        ]
        networks = [self.network(p) for p in points]
        traces = self.traces
        x = service_fluid(
            networks, traces.starts, closure, steps_for(networks[0], traces.dt, traces.x.shape[1])
        )
        return x[0], (x[1:] - x[0]) / steps[:, None, None, None]


def _nudge(scv: FloatArray) -> FloatArray:
    """Return steps of logarithms that stay on the same side of exponential, and within bounds."""
    return np.where((scv >= 1) & (scv * math.exp(0.1) < HIGHEST) | (scv * math.exp(-0.1) < LOWEST), 0.1, -0.1)
