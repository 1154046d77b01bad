"""The papers' training of the same cell, to compare with: gradient descent on their error.

Routing weights are clamped to [0, inf) and rows divided by their sum, rates are clamped; Adam (Kingma and Ba)
with the papers' learning rate, until the error on the traces held back has not improved by 0.01 percent
points in 50 iterations. Two things the papers do not say: weights start at random, rates at the mean movement
of clients per busy server.

Source: Garbi's thesis, sections 3.1.2, 3.1.4 and 3.2.1.
"""

from __future__ import annotations

import numpy as np

from analyzer.learning.traces import FloatArray, Traces
from simulator.networks.fluid import Pairs, misplaced_gradient

__all__ = ["LEARNING_RATE", "train"]

LEARNING_RATE = 0.05
DECAY = (0.9, 0.999)
TINY = 1e-8
PATIENCE = 50
IMPROVEMENT = 1e-4
"""Of the error as a part of the clients: 0.01 %."""
LONGEST = 20_000
"""Steps after which a fit has to end that its own rule does not."""


def train(
    traces: Traces, held: Traces, pairs: Pairs, *, seed: int, rate: float = LEARNING_RATE
) -> FloatArray:
    """Return the flows training ends with; shape (M, M).

    Args:
        traces: To learn from, with servers.
        held: To decide when to stop by.
        pairs: Between which stations clients may move; shape (P, 2).
        seed: Of the weights to start with.
        rate: Learning rate.

    Raises:
        ValueError: The traces have no servers.
    """
    servers = traces.servers
    if servers is None:
        raise ValueError("the traces have no servers")
    m = len(traces.names)
    allowed = np.zeros((m, m))
    allowed[pairs[:, 0], pairs[:, 1]] = 1.0
    weights = np.random.default_rng(seed).uniform(size=(m, m)) * allowed
    moved = np.abs(np.diff(traces.x, axis=1)).sum(axis=(0, 1))
    rates = moved / np.maximum(np.minimum(traces.x, servers).sum(axis=(0, 1)) * traces.dt, 1e-9)
    state = np.concatenate((weights.reshape(-1), rates))
    first, second = np.zeros_like(state), np.zeros_like(state)
    best, kept, patience = np.inf, state, PATIENCE
    for step in range(1, LONGEST + 1):
        weights, rates = state[: m * m].reshape(m, m), state[m * m :]
        routing = _rows(weights, allowed)
        flows = rates[:, None] * routing
        judged, _ = misplaced_gradient(flows, servers, held.x, dt=held.dt)
        error = float(judged.mean())
        if error < best - IMPROVEMENT:
            best, kept, patience = error, state, PATIENCE
        patience -= 1
        if patience < 0:
            break
        _, slope = misplaced_gradient(flows, servers, traces.x, dt=traces.dt)
        gradient = _by_weights(slope, weights, rates, routing, allowed)
        first = DECAY[0] * first + (1 - DECAY[0]) * gradient
        second = DECAY[1] * second + (1 - DECAY[1]) * gradient**2
        change = (first / (1 - DECAY[0] ** step)) / (np.sqrt(second / (1 - DECAY[1] ** step)) + TINY)
        state = np.maximum(state - rate * change, 0.0)
    weights, rates = kept[: m * m].reshape(m, m), kept[m * m :]
    result: FloatArray = rates[:, None] * _rows(weights, allowed)
    return result


def _rows(weights: FloatArray, allowed: FloatArray) -> FloatArray:
    """Return the rows divided by their sums; a row that was clamped away goes everywhere alike."""
    sums = weights.sum(axis=1, keepdims=True)
    equal = allowed / allowed.sum(axis=1, keepdims=True)
    rows: FloatArray = np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), equal)
    return rows


def _by_weights(
    slope: FloatArray, weights: FloatArray, rates: FloatArray, routing: FloatArray, allowed: FloatArray
) -> FloatArray:
    """Return the gradient by weights and rates, given that by the flows."""
    by_routing = slope * rates[:, None]
    sums = np.maximum(weights.sum(axis=1, keepdims=True), TINY)
    by_weight = (by_routing - (by_routing * routing).sum(axis=1, keepdims=True)) / sums * allowed
    return np.concatenate((by_weight.reshape(-1), (slope * routing).sum(axis=1)))
