"""The noise of means of runs, taken out of what a network misses.

Noise of queue lengths is correlated: from moment to moment, and between stations. Two steps make it white.
The first looks at what is new in every interval, as if services were exponential, in units of the clients
that move by chance. What correlation remains where they are not is the same for all traces, roughly, and is
estimated from simulated runs, shrunk towards none (Ledoit, Wolf, "A well-conditioned estimator for
large-dimensional covariance matrices", 2004).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from analyzer.learning.traces import FloatArray
from simulator.networks.closed_network import ClosedNetwork
from simulator.networks.simulation import TransientMeans

__all__ = ["Simulated", "Whitening", "whitening"]

FAINT = 1e-3
"""Directions in which clients move by a smaller part of the chance of the best one have no noise."""
HALVINGS = 4
"""Of an interval, for the exponential of a matrix by squaring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A simulation of traces in independent batches of runs.

    Attributes:
        x, busy, free: As in ``TransientMeans``, of all runs; shape (R, H, M).
        noise: Deviations of the batches, scaled to those of single runs; shape (B, R, H, M).
        runs: In all.
        dt: Seconds between samples.
    """

    x: FloatArray
    busy: FloatArray
    free: FloatArray
    noise: FloatArray
    runs: int
    dt: float

    @staticmethod
    def of(parts: list[TransientMeans], each: int) -> Simulated:
        """Return what batches of ``each`` runs say."""
        x = np.array([part.x for part in parts])
        many = len(parts)
        return Simulated(
            x=x.mean(axis=0),
            busy=np.mean([part.busy for part in parts], axis=0),
            free=np.mean([part.free for part in parts], axis=0),
            noise=(x - x.mean(axis=0)) * math.sqrt(many / (many - 1) * each),
            runs=many * each,
            dt=parts[0].dt,
        )


@dataclass(frozen=True, slots=True)
class Whitening:
    """How to see differences of queue lengths in units of their noise.

    Attributes:
        carried: What is left of a difference after one interval; shape (R, H - 1, M, M).
        units: Takes what is new to units of the noise; same shape, the first row has no noise.
        root: Of the covariance that remains; shape (D, D), D = (H - 1)(M - 1).
    """

    carried: FloatArray
    units: FloatArray
    root: FloatArray

    def __call__(self, off: FloatArray) -> FloatArray:
        """Return differences of shape (..., R, H, M) as shape (..., R, D), with unit noise."""
        flat = _flat(self.carried, self.units, off)
        rows = flat.reshape(-1, flat.shape[-1])
        white: FloatArray = solve_triangular(self.root, rows.T, lower=True).T.reshape(flat.shape)
        return white


def whitening(network: ClosedNetwork, simulated: Simulated, runs: float) -> Whitening:
    """Return the whitening of observed less simulated queue lengths.

    Args:
        network: What was simulated.
        simulated: The simulation.
        runs: Averaged in an observed trace.
    """
    carried, units = _innovations(network, simulated)
    noise = _flat(carried, units, simulated.noise)
    rows = noise.reshape(-1, noise.shape[-1])
    covariance = _shrunk(rows) * (1 / runs + 1 / simulated.runs)
    return Whitening(carried, units, np.asarray(np.linalg.cholesky(covariance), dtype=np.float64))


def _flat(carried: FloatArray, units: FloatArray, off: FloatArray) -> FloatArray:
    new = off[..., 1:, :] - np.einsum("rhij,...rhj->...rhi", carried, off[..., :-1, :])
    # Clients are conserved: one direction has neither noise nor signal.
    seen: FloatArray = np.einsum("rhij,...rhj->...rhi", units[:, :, 1:], new)
    return seen.reshape(*seen.shape[:-2], -1)


def _innovations(network: ClosedNetwork, simulated: Simulated) -> tuple[FloatArray, FloatArray]:
    m = len(network.names)
    slope = (simulated.free[:, 1:] + simulated.free[:, :-1]) / 2
    drift = (network.routing.T - np.eye(m)) * network.rates
    carried = _exponential(drift * slope[:, :, None, :] * simulated.dt)
    halfway = _exponential(drift * slope[:, :, None, :] * (simulated.dt / 2))
    flows = network.flows
    served = np.maximum(np.diff(simulated.busy, axis=1), 0.0)
    moves = np.zeros((*served.shape, m))
    for i, j in np.argwhere(flows > 0):
        jump = np.zeros(m)
        jump[i], jump[j] = -1.0, 1.0
        moves += flows[i, j] * served[:, :, i, None, None] * np.outer(jump, jump)
    values, vectors = np.linalg.eigh(halfway @ moves @ halfway.transpose(0, 1, 3, 2))
    known = values > FAINT * np.maximum(values[..., -1:], 1e-300)
    scale = np.where(known, 1 / np.sqrt(np.maximum(values, 1e-300)), 0.0)
    return carried, scale[..., None] * vectors.transpose(0, 1, 3, 2)


def _exponential(matrices: FloatArray) -> FloatArray:
    """Return the exponentials of matrices of a size of about one."""
    small = matrices / 2**HALVINGS
    found: FloatArray = np.eye(matrices.shape[-1]) + small + small @ small / 2
    for _ in range(HALVINGS):
        found = found @ found
    return found


def _shrunk(rows: FloatArray) -> FloatArray:
    """Return the covariance of independent rows of mean 0; shape (N, D)."""
    many, size = rows.shape
    covariance = rows.T @ rows / many
    level = max(float(np.trace(covariance)) / size, 1e-12)
    apart = float(np.square(covariance - level * np.eye(size)).sum())
    scatter = float((np.square(np.square(rows).sum(axis=1)).mean() - np.square(covariance).sum()) / many)
    part = min(1.0, max(1e-3, scatter / apart)) if apart > 0 else 1.0
    shrunk: FloatArray = (1 - part) * covariance + part * level * np.eye(size)
    return shrunk
