"""Requests spread at random over identical queues.

In equilibrium n requests are at ``count`` replicas as in a network of product form: the weight of a state is
the product of the weights of its replicas. Weights of hundreds of requests span more orders of magnitude than
numbers do, so they are kept as logarithms; factors of the form ``x ** n`` cancel and are taken out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Replicas"]

FloatArray = npt.NDArray[np.float64]

SAFE = 300.0
"""Range of logarithms up to which products of two such weights, and their ratios, are normal numbers."""


class Replicas:
    """Identical queues.

    Args:
        speeds: Of one with 1, 2, ... requests there.
        count: How many there are.

    Attributes:
        speeds: Of all together with 1, 2, ... requests there, on average over how these are spread.
    """

    def __init__(self, speeds: FloatArray, count: int) -> None:
        self.speeds = speeds
        self._count = count
        if count == 1:
            return
        self._one = -np.concatenate(((0.0,), np.cumsum(np.log(speeds))))
        tilt = self._one[-1] / (len(self._one) - 1)
        self._one -= tilt * np.arange(len(self._one))
        self._rest = _power(self._one, count - 1)
        self._all = _convolved(self._one, self._rest)
        self.speeds = count * np.exp(self._all[:-1] - self._all[1:] - tilt)

    def single(self, occupancy: FloatArray) -> FloatArray:
        """Return how likely 0, 1, ... requests are at one replica, for such probabilities of all together."""
        occupancy = occupancy[: len(self.speeds) + 1]
        if self._count == 1:
            return occupancy
        one, rest, every = self._one, self._rest, self._all
        if max(float(np.ptp(logs)) for logs in (one, rest, every)) <= SAFE:
            share, others = occupancy / np.exp(every - every.max()), np.exp(rest - rest.max())
            found = np.exp(one) * np.correlate(share, others, mode="full")[len(occupancy) - 1 :]
        else:
            found = occupancy @ np.exp(_pairs(one, rest) - every[:, None])
        return np.asarray(found / found.sum())


def _power(logs: FloatArray, times: int) -> FloatArray:
    """Return the logarithms of the convolution of so many times the same."""
    if times == 1:
        return logs
    half = _power(logs, times // 2)
    found = _convolved(half, half)
    return _convolved(found, logs) if times % 2 else found


def _convolved(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the logarithms of the convolution of what two arrays are logarithms of, in their length."""
    if max(float(np.ptp(first)), float(np.ptp(second))) <= SAFE:
        top, other = first.max(), second.max()
        sums = np.convolve(np.exp(first - top), np.exp(second - other))[: len(first)]
        return np.asarray(np.log(sums) + top + other)
    pairs = _pairs(first, second)
    tops = pairs.max(axis=1)
    return np.asarray(np.log(np.exp(pairs - tops[:, None]).sum(axis=1)) + tops)


def _pairs(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return ``first[i] + second[n - i]`` in row n and column i; minus infinity where there is none."""
    size = np.arange(len(first))
    others = size[:, None] - size[None, :]
    return np.where(others >= 0, first[None, :] + second[np.maximum(others, 0)], -np.inf)
