"""Correct busy servers where only queue lengths were observed.

The fluid takes ``min(mean(X), servers)`` for ``mean(min(X, servers))`` and so believes servers busier than
they are, most of all where a station is about as full as it has servers. A fit of the fluid bends rates and
routing until that shows no more, and the model is wrong elsewhere.

How busy they really are can be simulated, with the flows learned so far and from the same starting points,
and so can how that changes with the number of clients there (``network_prediction.Closure``). The regression
then is as good as if busy times had been observed; the flows it finds are simulated again, until they stay.
This is indirect inference with the busy time as what is matched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analyzer.learning.network_regression import regress, resolvable
from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.fluid import Pairs
from simulator.networks.prediction import closed_busy, closure_of, simulated_parts, slope_of

__all__ = ["Correction", "correct", "whole_starts"]

ROUNDS = 6
AVERAGED = 3
"""Of the rounds, the last ones: the noise of a simulation is in the next one's flows, and averages out."""
DAMPING = 0.6
"""What part of the way to the new flows is gone, after the first round: going all of it overshoots."""
FEWEST, MOST = 4, 200
"""Runs per starting point in one round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What a correction found.

    Attributes:
        flows: Per second and busy server; shape (M, M).
        busy: Integral of busy servers that belongs to the traces, from time 0; shape (R, H, M).
        runs: Simulated per starting point in each round.
    """

    flows: FloatArray
    busy: FloatArray
    runs: int


def correct(
    traces: Traces,
    servers: FloatArray,
    pairs: Pairs,
    flows: FloatArray,
    instruments: FloatArray,
    *,
    events: float,
    seed: int,
) -> Correction:
    """Learn again with simulated busy times instead of the fluid's.

    Args:
        traces: To learn from; R of them.
        servers: Shape (M,).
        pairs: Between which stations clients may move; shape (P, 2).
        flows: To begin with; shape (M, M).
        instruments: Integrals of busy servers as the fluid predicts them; shape (R, H, M).
        events: To simulate in all, roughly.
        seed: Same seed, same result.
    """
    starts = whole_starts(traces)
    # What the flows carry in the time of a trace.
    per_run = float((flows.sum(axis=1) * instruments[:, -1]).sum())
    runs = int(np.clip(events / ROUNDS / max(per_run, 1.0), FEWEST, MOST))
    times: list[FloatArray] = []
    slopes: list[FloatArray] = []
    for number in range(ROUNDS):
        simulated = simulated_parts(
            ClosedNetwork.of_flows(flows, traces.names, servers),
            starts,
            dt=traces.dt,
            samples=traces.x.shape[1],
            runs=runs,
            parts=2,
            seed=seed * ROUNDS + number,
        )
        times.append(closed_busy(traces.x, closure_of(simulated, slopes), traces.dt))
        found = resolvable(regress(traces.x, times[-1], pairs, instruments), traces.dt)
        flows = found if number == 0 else flows + DAMPING * (found - flows)
        if number > 0:  # the network of the first round was another one
            slopes += [slope_of(part) for part in simulated]
    busy = np.mean(times[-AVERAGED:], axis=0)
    flows = resolvable(regress(traces.x, busy, pairs, instruments), traces.dt)
    return Correction(flows=flows, busy=busy, runs=runs)


def whole_starts(traces: Traces) -> FloatArray:
    """Return the starting points in whole clients, their number rounded; shape (R, M).

    Of executions that did not begin in exactly the same state the mean is known, which is no state.
    """
    starts = traces.starts
    whole = np.floor(starts + 1e-9)
    for row, exact in zip(whole, starts, strict=True):
        missing = round(float(exact.sum())) - int(row.sum())
        row[np.argsort(row - exact, kind="stable")[:missing]] += 1
    return whole
