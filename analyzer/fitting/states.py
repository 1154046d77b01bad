"""Transformed states of a filter, log or logit, so that parameters stay within bounds.

Times, rates and speeds are positive, and drift in proportion to what they are: the state is the logarithm, of
which a drift of 0.02 is 2 %. A probability is between 0 and 1: the state is log(p / (1 - p)), so that its
odds drift by 2 %, and with them it and its complement by less than that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analyzer.fitting.parameters import Parameter

__all__ = ["States"]

FloatArray = npt.NDArray[np.float64]


class States:
    """States x of parameters, and back; all of shape (n,) or (.., n).

    Args:
        parameters: The n parameters; whole numbers have no state.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._odds = np.array([p.kind == "probability" for p in parameters])
        low, high = np.array([p.low for p in parameters]), np.array([p.high for p in parameters])
        with np.errstate(divide="ignore"):
            self._low, self._high = self.of(low), self.of(high)

    def of(self, values: FloatArray) -> FloatArray:
        """Return the states of values."""
        found: FloatArray = np.log(values)
        found -= np.where(self._odds, np.log1p(-np.where(self._odds, values, 0.0)), 0.0)
        return found

    def values(self, states: FloatArray) -> FloatArray:
        """Return the values of states."""
        # Beyond e^+-500 nothing is left to tell apart, and nothing overflows.
        inside = np.clip(states, -500.0, 500.0)
        found: FloatArray = np.where(self._odds, 1 / (1 + np.exp(-inside)), np.exp(inside))
        return found

    def slopes(self, states: FloatArray) -> FloatArray:
        """Return by how much values grow per unit of state."""
        values = self.values(states)
        found: FloatArray = values * np.where(self._odds, 1 - values, 1.0)
        return found

    def clipped(self, states: FloatArray) -> FloatArray:
        """Return states within the bounds of their parameters."""
        found: FloatArray = np.clip(states, self._low, self._high)
        return found
