"""Learn services that are not exponential: flows, and a squared coefficient of variation of every station.

Indirect inference: the network is simulated from the observed beginnings, and its parameters are moved by
what its means miss, in units of the noise, until they miss no more than noise (``service_problem``). Steps
are damped: whole ones go back and forth, because stations that share clients make up for each other.

Several parameters can explain traces nearly as well: a service that is longer than a trace is hardly seen,
and rare long ones look like a quicker station that varies less. So the search begins at several degrees of
variation, in every family of shapes. Its results are refined and compared on all traces, those held back
too, in the same units of noise. What traces cannot tell from the best widens its intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.learning.explanations import alike
from analyzer.learning.left_out import half_width, rows_kept
from analyzer.learning.network_correction import whole_starts
from analyzer.learning.service_families import FAMILIES, Family
from analyzer.learning.service_noise import whitening
from analyzer.learning.service_problem import (
    BATCHES,
    SPREAD_OF_SCV,
    Linear,
    Point,
    Problem,
    closure_around,
    loss,
)
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Pairs, fluid_sensitivities, stable_cells
from simulator.networks.service_fluid import service_fluid, steps_for
from simulator.networks.simulation import transient_means

__all__ = ["LearnedServices", "learn_services", "variation_score"]

BEGUN = (0.2, 1.5, 8.0, 25.0)
"""Squared coefficients of variation where the search begins."""
SEARCHED, REFINED = 8, 8
"""Simulations of one search, and to refine what it leads to."""
AVERAGED = 3
"""Of the refinements, the last ones."""
DAMPING = 0.5
"""What part of a step is gone."""
SEARCH_SHARE, SIFT_SHARE, REFINE_SHARE, CHOICE_SHARE = 0.2, 0.1, 0.35, 0.35
"""Of the events: to search, to find the searches worth refining, to refine these, to choose one."""
FINALISTS = 4
CLOSE = 1.15
"""What a search may miss, in terms of the best one, to be refined, if it leads elsewhere."""
ELSEWHERE_RATE, ELSEWHERE_SCV = 0.1, 0.4
"""Differences of logarithms by which two results are not the same."""
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
        others: Other explanations that the traces cannot tell from this one; within the intervals.
        misses: Mean squared differences to all traces, in units of the noise.
        misses_exponential: The same of the best network with exponential services.
    """

    network: ClosedNetwork
    family: Family
    rates_half: FloatArray | None
    routing_half: FloatArray | None
    scv_half: FloatArray | None
    likely: tuple[ClosedNetwork, ...]
    others: tuple[ClosedNetwork, ...]
    misses: float
    misses_exponential: float

    @property
    def better(self) -> bool:
        """Whether the shapes explain the traces better than exponential services."""
        return self.misses < DECISIVE * self.misses_exponential


@dataclass(frozen=True, slots=True)
class _Result:
    """Where a search ended."""

    problem: Problem
    point: Point

    @property
    def network(self) -> ClosedNetwork:
        return self.problem.network(self.point)

    def elsewhere(self, other: _Result) -> bool:
        """Return whether rates or variation differ from those of another one."""
        ours, theirs = self.network, other.network
        apart = np.abs(np.log(np.maximum(ours.rates, 1e-300) / np.maximum(theirs.rates, 1e-300)))
        shaped = np.abs(np.log(ours.scv / theirs.scv))
        return bool((apart > ELSEWHERE_RATE).any() or (shaped > ELSEWHERE_SCV).any())


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
    begun = [(Problem(learn, servers, pairs, family, runs), scv) for family in FAMILIES for scv in BEGUN]
    batch = _batch(SEARCH_SHARE * events / len(begun) / SEARCHED, per_run)
    found = [
        _Result(problem, _searched(problem, flows, scv, batch, seed=(seed * 50 + number) * 50))
        for number, (problem, scv) in enumerate(begun)
    ]
    batch = _batch(SIFT_SHARE * events / 2 / len(found), per_run)
    finalists = _sifted(found, _misses(found, both, batch, seed=seed * 50 + 11).mean(axis=1))
    batch = _batch(REFINE_SHARE * events / (REFINED + 1) / len(finalists), per_run)
    finalists = [
        _Result(f.problem, _refined(f.problem, f.point, batch, seed=(seed * 50 + 12 + number) * 50))
        for number, f in enumerate(finalists)
    ]
    # Stages of variation 1 are exponential.
    plain = _Result(begun[0][0], Point(flows, np.ones(len(servers))))
    batch = _batch(CHOICE_SHARE * events / 2 / (len(finalists) + 1), per_run)
    misses = _misses([*finalists, plain], both, batch, seed=seed * 50 + 17)
    kept = alike(misses[:-1])
    around = [
        finalists[k].problem.improved(finalists[k].point, batch, seed=(seed * 50 + 18 + k) * 50)[1]
        for k in kept
    ]
    return _summary([finalists[k] for k in kept], around, misses[kept[0]], misses[-1], seed)


def _searched(problem: Problem, flows: FloatArray, scv: float, batch: int, *, seed: int) -> Point:
    """Return what a short search leads to from exponential services and a degree of variation."""
    # Services that vary begin with short ones, so exponential ones seem quicker than they are.
    slower = (scv + 1) / (2 * scv) if scv > 1 else 1.0
    some = np.maximum(flows, 1e-3 * float(flows.max()))
    point = Point(some * slower, np.full(len(problem.servers), scv))
    return _steps(problem, point, SEARCHED, batch, seed)[-1]


def _refined(problem: Problem, point: Point, batch: int, *, seed: int) -> Point:
    """Return the mean of the last of some steps: the noise of simulations averages out."""
    last = _steps(problem, point, REFINED, batch, seed)[-AVERAGED:]
    return Point(
        np.mean([p.flows for p in last], axis=0),
        np.exp(np.mean([np.log(p.scv) for p in last], axis=0)),
    )


def _steps(problem: Problem, point: Point, many: int, batch: int, seed: int) -> list[Point]:
    points = []
    for k in range(many):
        after, _ = problem.improved(point, batch, seed=seed + k)
        point = after.back(point, DAMPING)
        points.append(point)
    return points


def _sifted(found: Sequence[_Result], misses: FloatArray) -> list[_Result]:
    """Return the best search of each family, and others that miss little more and lead elsewhere."""
    kept: list[_Result] = []
    families: set[Family] = set()
    for k in np.argsort(misses):
        result = found[k]
        if result.problem.family not in families:
            families.add(result.problem.family)
            kept.append(result)
    for k in np.argsort(misses):
        close = misses[k] < CLOSE * misses.min() and len(kept) < FINALISTS
        same = [other for other in kept if other.problem.family == found[k].problem.family]
        if close and all(found[k].elsewhere(other) for other in same):
            kept.append(found[k])
    return kept


def _misses(found: Sequence[_Result], traces: Traces, batch: int, seed: int) -> FloatArray:
    """Return what each result misses of each trace in all their units of noise; shape (C, R), 1 at best."""
    simulated = [f.problem.on(traces).simulated(f.point, batch, seed) for f in found]
    each = []
    for result, own in zip(found, simulated, strict=True):
        white = whitening(result.network, own, result.problem.runs)
        each.append(loss(white(traces.x - np.array([s.x for s in simulated]))).mean(axis=2))
    # Whichever result has the units, what results miss in terms of each other counts the same.
    units = np.mean(each, axis=(1, 2), keepdims=True)
    misses: FloatArray = (np.array(each) / units).mean(axis=0) * np.exp(np.log(units).mean())
    return misses


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
    problem = Problem(learn, exponential.servers, kept, "stages", runs)
    point = Point(flows[kept[:, 0], kept[:, 1]], np.ones(m))
    simulated = problem.simulated(point, _batch(events, _events_of_a_run(exponential, learn, seed)), seed)
    closure = closure_around(simulated)
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


def _summary(
    results: Sequence[_Result],
    around: Sequence[Linear],
    misses: FloatArray,
    plain: FloatArray,
    seed: int,
) -> LearnedServices:
    """Return the first of some results that explain traces alike, with intervals that hold all of them.

    Args:
        results: The results.
        around: What traces miss around each.
        misses: Of the first one, by trace.
        plain: Of exponential services.
        seed: Of the groups of traces.
    """
    best, level = results[0], float(misses.mean())
    halves = [
        _halves(result, linear, best.network, level, seed)
        for result, linear in zip(results, around, strict=True)
    ]
    known = [h for h in halves if h is not None]
    rates, routing, scv = (
        (np.max([h[k] for h in known], axis=0) for k in range(3)) if known else (None, None, None)
    )
    shares = [LIKELY // len(results) + (k < LIKELY % len(results)) for k in range(len(results))]
    return LearnedServices(
        network=best.network,
        family=best.problem.family,
        rates_half=rates,
        routing_half=routing,
        scv_half=scv,
        likely=tuple(
            network
            for k, (result, linear) in enumerate(zip(results, around, strict=True))
            for network in _likely(result, linear, shares[k], [seed, 2, k])
        ),
        others=tuple(result.network for result in results[1:] if result.elsewhere(best)),
        misses=level,
        misses_exponential=float(plain.mean()),
    )


def _halves(
    result: _Result, linear: Linear, best: ClosedNetwork, misses: float, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return how far rates, routing and variation may be from the best ones if a result is right.

    Where traces miss more than noise, the model is not quite right, and no trace left out tells by how much:
    intervals get wider by the root of it (Birge, "The calculation of errors by the method of least squares",
    Physical Review 40, 1932).
    """
    problem, point = result.problem, result.point
    without = [
        problem.network(point.moved(problem.step(point, linear.select(rows))))
        for rows in rows_kept(len(problem.traces.x), seed)
    ]
    if not without:
        return None
    wider, here = math.sqrt(max(1.0, misses)), result.network
    return (
        wider * half_width([n.rates for n in without]) + np.abs(here.rates - best.rates),
        wider * half_width([n.routing for n in without]) + np.abs(here.routing - best.routing),
        wider * half_width([n.scv for n in without]) + np.abs(here.scv - best.scv),
    )


def _likely(result: _Result, linear: Linear, many: int, seed: list[int]) -> list[ClosedNetwork]:
    """Return networks drawn around a result as the noise of the traces lets it scatter."""
    slopes = linear.slopes.reshape(-1, linear.slopes.shape[-1])
    information = slopes.T @ slopes
    p = len(result.point.flows)
    information[p:, p:] += np.eye(len(information) - p) / SPREAD_OF_SCV**2
    values, vectors = np.linalg.eigh(information)
    spread = vectors / np.sqrt(np.maximum(values, 1e-9 * values[-1]))
    drawn = np.random.default_rng(seed).standard_normal((many, len(values)))
    return [result.problem.network(result.point.moved(spread @ z)) for z in drawn]


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
