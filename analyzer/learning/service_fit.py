"""Learn services that are not exponential: flows, and a squared coefficient of variation of every station.

Indirect inference: the network is simulated from the observed beginnings, and its parameters are moved by
what its means miss, in units of the noise, until they miss no more than noise. In which direction, the fluid
with general services tells (``simulator.networks.service_fluid``); it need not be exact, for what is matched
is the simulation.

Several parameters can explain traces nearly as well (a service that is longer than a trace is hardly seen),
so the search begins at several degrees of variation, in every family of shapes, and how well candidates do
is compared on all traces, those held back too, in the same units of noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear

from analyzer.learning.left_out import half_width, rows_kept
from analyzer.learning.network_correction import whole_starts
from analyzer.learning.service_families import FAMILIES, HIGHEST, LOWEST, Family, shape_of
from analyzer.learning.service_noise import Simulated, whitening
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Closure, Pairs, fluid_sensitivities, stable_cells
from simulator.networks.service_fluid import service_fluid, steps_for
from simulator.networks.simulation import transient_means

__all__ = ["LearnedServices", "learn_services", "variation_score"]

BEGUN = (0.2, 1.5, 8.0)
"""Squared coefficients of variation where the search begins."""
SEARCHED, REFINED = 4, 6
"""Simulations of one search, and to refine its best result."""
STEPS = 2
"""Along the fluid, for one simulation."""
AVERAGED = 3
"""Of the refinements, the last ones."""
BATCHES = 20
SEARCH_SHARE, SIFT_SHARE, REFINE_SHARE, CHOICE_SHARE = 0.2, 0.1, 0.3, 0.4
"""Of the events: to search, to find the best search of each family, to refine these, to choose one."""
DAMPING = 0.7
"""What part of a step is gone when refining."""
SPREAD_OF_SCV = 2.0
"""Standard deviation of the logarithm of a squared coefficient of variation, before any trace was seen."""
FAR_FLOW, FAR_SCV = 0.3, 0.7
"""The farthest a step goes: parts of a flow, and logarithms."""
LITTLE = 0.05
"""Flows below this part of the greatest move as far as it does."""
STRANGE = 4.0
"""Standard deviations beyond which a difference does not count for more: where all services end at the same
moment a small error of the time is a great one of the queue."""
LIKELY = 10
"""Networks that the traces could as well have been explained by."""
FEWEST, MOST = 3, 100
"""Runs of a trace in one batch."""
LONGEST = 120
"""Samples of a trace that are compared."""
DECISIVE = 0.99
"""Other shapes have to miss less than this part of what exponential services miss: more parameters alone do
not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedServices:
    """A network with shapes of services.

    Attributes:
        network: Learned.
        family: Of the shapes.
        rates_half, routing_half, scv_half: Half-widths of 95 % intervals; shapes (M,), (M, M), (M,). None if
            there are too few traces.
        likely: Networks as likely as the traces leave them, for what predictions do not know.
        misses: Mean squared differences to all traces, in units of the noise.
        misses_exponential: The same of the best network with exponential services.
    """

    network: ClosedNetwork
    family: Family
    rates_half: FloatArray | None
    routing_half: FloatArray | None
    scv_half: FloatArray | None
    likely: tuple[ClosedNetwork, ...]
    misses: float
    misses_exponential: float

    @property
    def better(self) -> bool:
        """Whether the shapes explain the traces better than exponential services."""
        return self.misses < DECISIVE * self.misses_exponential


@dataclass(frozen=True, slots=True)
class _Point:
    """Flows by pairs, and squared coefficients of variation."""

    flows: FloatArray
    scv: FloatArray

    def moved(self, step: FloatArray) -> _Point:
        p = len(self.flows)
        flows = np.maximum(self.flows + step[:p], 0.0)
        return _Point(flows, np.clip(self.scv * np.exp(step[p:]), LOWEST, HIGHEST))

    def back(self, earlier: _Point, part: float) -> _Point:
        """Return a point between an earlier one (0) and this (1)."""
        flows = earlier.flows + part * (self.flows - earlier.flows)
        return _Point(flows, earlier.scv * (self.scv / earlier.scv) ** part)


def learn_services(
    learn: Traces,
    held: Traces,
    servers: FloatArray,
    pairs: Pairs,
    exponential: ClosedNetwork,
    *,
    runs: float,
    events: float,
    seed: int,
) -> LearnedServices:
    """Learn rates, routing and shapes of services.

    Args:
        learn: Traces to learn from, of runs that began in the same state.
        held: Traces that help to choose the family.
        servers: Shape (M,).
        pairs: Between which stations clients may move; shape (P, 2).
        exponential: The network with exponential services that explains the traces best.
        runs: Averaged in a trace.
        events: To simulate in all, roughly.
        seed: Same seed, same result.
    """
    learn, held = _thinned(learn), _thinned(held)
    both = _joined(learn, held)
    per_run = _events_of_a_run(exponential, learn, seed)
    flows = exponential.flows[pairs[:, 0], pairs[:, 1]]
    searches = [(_Problem(learn, servers, pairs, family, runs), scv) for family in FAMILIES for scv in BEGUN]
    batch = _batch(SEARCH_SHARE * events / len(searches) / SEARCHED, per_run)
    found = [
        (problem, _searched(problem, flows, scv, batch, seed=(seed * 50 + number) * 50))
        for number, (problem, scv) in enumerate(searches)
    ]
    batch = _batch(SIFT_SHARE * events / 2 / len(found), per_run)
    misses = _compared([(p.on(both), point) for p, point in found], batch, seed=seed * 50 + 11)
    refining = _batch(REFINE_SHARE * events / (REFINED + 1) / len(FAMILIES), per_run)
    finalists = []
    for number, family in enumerate(FAMILIES):
        mine = [k for k, (problem, _) in enumerate(found) if problem.family == family]
        problem, point = found[min(mine, key=lambda k: float(misses[k]))]
        point = _refined(problem, point, refining, seed=(seed * 50 + 12 + number) * 50)
        finalists.append((problem, point))
    # Stages of variation 1 are exponential.
    finalists.append((searches[0][0], _Point(flows, np.ones(len(servers)))))
    batch = _batch(CHOICE_SHARE * events / 2 / len(finalists), per_run)
    misses = _compared([(p.on(both), point) for p, point in finalists], batch, seed=seed * 50 + 14)
    best = int(np.argmin(misses[:-1]))
    problem, point = finalists[best]
    _, last = problem.improved(point, refining, seed=(seed * 50 + 15) * 50)
    return _summary(problem, point, last, misses[best], misses[-1], seed)


def _searched(problem: _Problem, flows: FloatArray, scv: float, batch: int, *, seed: int) -> _Point:
    """Return what a short search leads to from exponential services and a degree of variation."""
    # Services that vary begin with short ones, so exponential ones seem quicker than they are.
    slower = (scv + 1) / (2 * scv) if scv > 1 else 1.0
    some = np.maximum(flows, 1e-3 * float(flows.max()))
    point = _Point(some * slower, np.full(len(problem.servers), scv))
    for k in range(SEARCHED):
        point, _ = problem.improved(point, batch, seed=seed + k)
    return point


def _refined(problem: _Problem, point: _Point, batch: int, *, seed: int) -> _Point:
    """Return the mean of the last of some damped steps: the noise of simulations averages out."""
    points = []
    for k in range(REFINED):
        after, _ = problem.improved(point, batch, seed=seed + k)
        point = after.back(point, DAMPING)
        points.append(point)
    last = points[-AVERAGED:]
    return _Point(
        np.mean([p.flows for p in last], axis=0),
        np.exp(np.mean([np.log(p.scv) for p in last], axis=0)),
    )


def variation_score(
    learn: Traces,
    pairs: Pairs,
    exponential: ClosedNetwork,
    *,
    runs: float,
    events: float,
    seed: int,
) -> float:
    """Return how many standard errors the variation of some station is from that of exponential services.

    A score test: one step from the exponential network, along rates, routing and variation.

    Args:
        learn: Traces learned from, of runs that began in the same state.
        pairs: Between which stations clients may move; shape (P, 2).
        exponential: The network learned.
        runs: Averaged in a trace.
        events: To simulate, roughly.
        seed: Same seed, same result.
    """
    learn = _thinned(learn)
    m = len(learn.names)
    kept = pairs[exponential.flows[pairs[:, 0], pairs[:, 1]] > 0]
    flows = exponential.flows
    problem = _Problem(learn, exponential.servers, kept, "stages", runs)
    point = _Point(flows[kept[:, 0], kept[:, 1]], np.ones(m))
    simulated = problem.simulated(point, _batch(events, _events_of_a_run(exponential, learn, seed)), seed)
    closure = _closure(simulated)
    _, by_flow = fluid_sensitivities(
        flows,
        exponential.servers,
        learn.starts,
        kept,
        dt=learn.dt,
        samples=learn.x.shape[1],
        cells=stable_cells(flows, learn.dt),
        closure=closure,
    )
    changed = [problem.network(point.moved(step)) for step in 0.1 * np.eye(len(kept) + m)[len(kept) :]]
    steps = steps_for(exponential, learn.dt, learn.x.shape[1])
    x = service_fluid([exponential, *changed], learn.starts, closure, steps)
    white = whitening(exponential, simulated, runs)
    slopes = np.concatenate((np.moveaxis(by_flow, -1, 0), (x[1:] - x[0]) / 0.1))
    slopes = white(slopes).reshape(len(slopes), -1)
    off = white(learn.x - simulated.x).reshape(-1)
    scale = np.sqrt(np.maximum(np.square(slopes).sum(axis=1), 1e-300))
    inverse = np.linalg.pinv(slopes @ slopes.T / np.outer(scale, scale), rcond=1e-9, hermitian=True)
    step = inverse @ (slopes @ off / scale)
    errors = np.sqrt(np.maximum(np.diag(inverse), 1e-300))
    return float(np.abs(step / errors)[len(kept) :].max())


def _closure(simulated: Simulated) -> Closure:
    slope = (simulated.free[:, 1:] + simulated.free[:, :-1]) / 2
    middle = (simulated.x[:, 1:] + simulated.x[:, :-1]) / 2
    return Closure(slope, np.diff(simulated.busy, axis=1) / simulated.dt - slope * middle)


@dataclass(frozen=True, slots=True)
class _Linear:
    """What traces miss around a point, white; shapes (R, D) and (R, D, K)."""

    off: FloatArray
    slopes: FloatArray

    def select(self, rows: npt.NDArray[np.int64]) -> _Linear:
        """Return the same of some traces."""
        return _Linear(self.off[rows], self.slopes[rows])


@dataclass(frozen=True, slots=True)
class _Problem:
    """Traces and a family of shapes to fit to them."""

    traces: Traces
    servers: FloatArray
    pairs: Pairs
    family: Family
    runs: float

    def on(self, traces: Traces) -> _Problem:
        """Return the same problem for other traces."""
        return _Problem(traces, self.servers, self.pairs, self.family, self.runs)

    def network(self, point: _Point) -> ClosedNetwork:
        """Return the network of a point."""
        m = len(self.servers)
        flows = np.zeros((m, m))
        flows[self.pairs[:, 0], self.pairs[:, 1]] = point.flows
        shapes = tuple(shape_of(self.family, c) for c in point.scv.tolist())
        return ClosedNetwork.of_flows(flows, self.traces.names, self.servers, shapes)

    def simulated(self, point: _Point, batch: int, seed: int) -> Simulated:
        """Simulate the traces in batches of so many runs."""
        network, traces = self.network(point), self.traces
        starts = whole_starts(traces)
        parts = [
            transient_means(
                network, starts, dt=traces.dt, samples=traces.x.shape[1], runs=batch, seed=seed * BATCHES + b
            )
            for b in range(BATCHES)
        ]
        return Simulated.of(parts, batch)

    def improved(self, point: _Point, batch: int, *, seed: int) -> tuple[_Point, _Linear]:
        """Return a better point, and what traces miss around the first one."""
        simulated = self.simulated(point, batch, seed)
        white = whitening(self.network(point), simulated, self.runs)
        closure = _closure(simulated)
        x, slopes = self._slopes(point, closure)
        shift = simulated.x - x
        first = _Linear(white(self.traces.x - simulated.x), np.moveaxis(white(slopes), 0, -1))
        better = point.moved(self.step(point, first))
        for _ in range(STEPS - 1):
            x, slopes = self._slopes(better, closure)
            linear = _Linear(white(self.traces.x - shift - x), np.moveaxis(white(slopes), 0, -1))
            better = better.moved(self.step(better, linear))
        return better, first

    def step(self, point: _Point, linear: _Linear) -> FloatArray:
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

    def _slopes(self, point: _Point, closure: Closure) -> tuple[FloatArray, FloatArray]:
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


def _compared(found: Sequence[tuple[_Problem, _Point]], batch: int, seed: int) -> FloatArray:
    """Return how well candidates do in each other's units of noise: a mean square, 1 at best."""
    simulated = [problem.simulated(point, batch, seed) for problem, point in found]
    misses = np.zeros(len(found))
    for (problem, point), own in zip(found, simulated, strict=True):
        white = whitening(problem.network(point), own, problem.runs)
        off = white(problem.traces.x - np.array([s.x for s in simulated]))
        size = np.abs(off)
        rho = np.where(size < STRANGE, size**2, 2 * STRANGE * size - STRANGE**2)
        misses += np.log(rho.mean(axis=(1, 2)))
    return np.exp(misses / len(found))


def _summary(
    problem: _Problem,
    point: _Point,
    last: _Linear,
    misses: float,
    plain: float,
    seed: int,
) -> LearnedServices:
    network = problem.network(point)
    without = [
        problem.network(point.moved(problem.step(point, last.select(rows))))
        for rows in rows_kept(len(problem.traces.x), seed)
    ]
    return LearnedServices(
        network=network,
        family=problem.family,
        rates_half=half_width([n.rates for n in without]) if without else None,
        routing_half=half_width([n.routing for n in without]) if without else None,
        scv_half=half_width([n.scv for n in without]) if without else None,
        likely=_likely(problem, point, last, seed),
        misses=float(misses),
        misses_exponential=float(plain),
    )


def _likely(problem: _Problem, point: _Point, last: _Linear, seed: int) -> tuple[ClosedNetwork, ...]:
    """Return networks drawn around a point as the noise of the traces lets it scatter."""
    slopes = last.slopes.reshape(-1, last.slopes.shape[-1])
    information = slopes.T @ slopes
    p = len(point.flows)
    information[p:, p:] += np.eye(len(information) - p) / SPREAD_OF_SCV**2
    values, vectors = np.linalg.eigh(information)
    spread = vectors / np.sqrt(np.maximum(values, 1e-9 * values[-1]))
    drawn = np.random.default_rng([seed, 2]).standard_normal((LIKELY, len(values)))
    return tuple(problem.network(point.moved(spread @ z)) for z in drawn)


def _batch(events: float, per_run: float) -> int:
    return int(np.clip(events / BATCHES / max(per_run, 1.0), FEWEST, MOST))


def _events_of_a_run(network: ClosedNetwork, traces: Traces, seed: int) -> float:
    found = transient_means(
        network, whole_starts(traces), dt=traces.dt, samples=traces.x.shape[1], runs=2, seed=seed
    )
    return found.events / 2


def _thinned(traces: Traces) -> Traces:
    """Return traces with fewer samples, if they have very many."""
    stride = math.ceil((traces.x.shape[1] - 1) / LONGEST)
    return Traces(
        x=traces.x[:, ::stride],
        dt=traces.dt * stride,
        names=traces.names,
        servers=traces.servers,
        runs=traces.runs,
    )


def _joined(one: Traces, two: Traces) -> Traces:
    return Traces(x=np.concatenate((one.x, two.x)), dt=one.dt, names=one.names, servers=one.servers)
