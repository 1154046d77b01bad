"""Whether a learned closed network explains traces; the test itself is ``goodness``.

The prediction is uncertain because the network was learned from traces that scatter. By how much, networks
learned from simulated traces tell. Those of a jackknife would not do: if the model is wrong, they scatter as
much as it is wrong, and nothing would ever be noticed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from analyzer.learning.goodness import GoodnessOfFit, fluctuations, goodness_of_fit, runs_of
from analyzer.learning.misplaced import misplaced
from analyzer.learning.network_correction import whole_starts
from analyzer.learning.network_regression import fluid_busy, regress
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Pairs, fluid_means
from simulator.networks.prediction import closed_busy, closure_of
from simulator.networks.service_fluid import service_fluid, steps_for
from simulator.networks.simulation import TransientMeans, transient_means

__all__ = ["GOODNESS_EVENTS", "Learned", "network_goodness"]

GOODNESS_EVENTS = 16e6
"""Simulated at most, roughly."""
HELD_BACK = 0.75
"""Of these events are of the traces held back."""
REPLICAS, RELEARNED = 20, 10
"""Independent simulations of the traces held back, and of those to learn from."""
COMPARED = 20
"""Traces at most."""
MOST_RUNS = 50
"""In one simulation; more runs scatter less, and how much less is known."""
SAME = 0.05
"""Clients a beginning may be off whole numbers; beyond it, runs of a trace began in different states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """How a network was learned, to do it again.

    Attributes:
        network: What was learned.
        traces: From what; R of them.
        pairs: Between which stations clients may move; shape (P, 2).
        instruments: Integrals of busy servers as the fluid predicts them; shape (R, H, M).
        observed: Whether the busy times were observed.
        likely: Networks that learning could as well have found; () if it is repeated to find some.
    """

    network: ClosedNetwork
    traces: Traces
    pairs: Pairs
    instruments: FloatArray
    observed: bool
    likely: tuple[ClosedNetwork, ...] = ()


def network_goodness(
    learned: Learned, held: Traces, *, seed: int, events: float = GOODNESS_EVENTS
) -> GoodnessOfFit | None:
    """Test a network on traces it was not learned from.

    Args:
        learned: The network, and from what.
        held: The traces held back.
        seed: Same seed, same result.
        events: To simulate in all, roughly.

    Returns:
        None if no trace begins in whole numbers of clients: its runs did not begin in the same state.
    """
    begun = whole_starts(held)
    same = np.flatnonzero((np.abs(held.starts - begun) <= SAME).all(axis=1))[:COMPARED]
    if not len(same):
        return None
    held, network = held.select(same), learned.network
    parts = _simulated(network, held, REPLICAS, events=HELD_BACK * events, seed=2 * seed)
    # Plain means: the fluid with closures has less noise, but within a step of time it is not exact, and
    # that would be taken for an error of the network where noise is small.
    means = np.array([p.x for p in parts])
    noise = fluctuations(means, _runs(network, held, REPLICAS, HELD_BACK * events))
    off = held.x - means.mean(axis=0)
    runs = held.runs
    if runs is None:
        runs = np.full(len(held.x), runs_of(held.x, off, noise))
    again = _again(learned, held, parts, float(runs.mean()), events, seed)
    uncertain = (
        _directions(means, math.sqrt(1 / (REPLICAS * (REPLICAS - 1)))),
        _directions(again, math.sqrt(1 / (len(again) - 1))),
    )
    return goodness_of_fit(
        off,
        noise,
        runs=runs,
        runs_known=held.runs is not None,
        uncertain=np.concatenate(uncertain),
        error=_error(held),
        seed=seed,
    )


def _again(
    learned: Learned, held: Traces, parts: list[TransientMeans], runs: float, events: float, seed: int
) -> list[FloatArray]:
    """Return predictions of other networks that could have been learned; shapes (R, H, M)."""
    starts, samples = whole_starts(held), held.x.shape[1]
    if learned.likely:
        return list(
            service_fluid(
                list(learned.likely),
                starts,
                closure_of(parts),
                steps_for(learned.network, held.dt, samples),
            )
        )
    others = _relearned(learned, runs, events=(1 - HELD_BACK) * events, seed=2 * seed + 1)
    return [fluid_means(other, starts, dt=held.dt, samples=samples) for other in others]


def _relearned(learned: Learned, runs: float, *, events: float, seed: int) -> list[ClosedNetwork]:
    """Return networks learned from traces that the network could have made, each the mean of some runs."""
    network, traces = learned.network, learned.traces
    parts = _simulated(network, traces, RELEARNED, events=events, seed=seed)
    each = _runs(network, traces, RELEARNED, events)
    scale = math.sqrt(each / runs)
    x = np.mean([p.x for p in parts], axis=0)
    noises = fluctuations(np.array([p.x for p in parts]), each).around * scale
    if learned.observed:
        busy = np.mean([p.busy for p in parts], axis=0)
        times = busy + fluctuations(np.array([p.busy for p in parts]), each).around * scale
    else:
        closure = closure_of(parts)
        times = np.array([closed_busy(x + noise, closure, traces.dt) for noise in noises])
    return [
        ClosedNetwork.of_flows(
            regress(x + noise, time, learned.pairs, learned.instruments), network.names, network.servers
        )
        for noise, time in zip(noises, times, strict=True)
    ]


def _simulated(
    network: ClosedNetwork, traces: Traces, many: int, *, events: float, seed: int
) -> list[TransientMeans]:
    """Return independent simulations of traces."""
    return [
        transient_means(
            network,
            whole_starts(traces),
            dt=traces.dt,
            samples=traces.x.shape[1],
            runs=_runs(network, traces, many, events),
            seed=seed * (REPLICAS + RELEARNED) + k,
        )
        for k in range(many)
    ]


def _runs(network: ClosedNetwork, traces: Traces, many: int, events: float) -> int:
    """Return how many runs each of many simulations can have."""
    x = fluid_means(network, traces.starts, dt=traces.dt, samples=traces.x.shape[1])
    per_run = float((fluid_busy(x, network.servers, traces.dt)[:, -1] * network.rates).sum())
    most = MOST_RUNS if traces.runs is None else min(MOST_RUNS, int(traces.runs.min()))
    return int(np.clip(events / many / max(per_run, 1.0), 2, max(2, most)))


def _directions(paths: Sequence[FloatArray] | FloatArray, factor: float) -> FloatArray:
    scattered: FloatArray = (np.array(paths) - np.mean(paths, axis=0)) * factor
    return scattered


def _error(traces: Traces) -> Callable[[FloatArray], FloatArray]:
    return lambda off: misplaced(traces.x, traces.x - off)
