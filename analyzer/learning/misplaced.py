"""Error of a predicted trace: the part of the clients at another station than predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from analyzer.learning.traces import FloatArray

__all__ = ["ErrorSummary", "misplaced", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Errors of several traces, percent of the clients.

    Attributes:
        mean, worst: Over the traces.
        traces: How many.
    """

    mean: float
    worst: float
    traces: int

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"mean": self.mean, "worst": self.worst, "traces": self.traces}


def misplaced(observed: FloatArray, predicted: FloatArray) -> FloatArray:
    """Return the error of each trace, percent: the most clients misplaced at any time.

    Each of them is missing in one queue and too much in another, so half of the sum counts.

    Args:
        observed: Queue lengths; shape (R, H, M).
        predicted: The same, predicted.

    Returns:
        Shape (R,).

    Source: Garbi's thesis, equation 3.2.
    """
    wrong = np.abs(observed - predicted).sum(axis=2)[:, 1:].max(axis=1) / 2
    error: FloatArray = 100 * wrong / observed[:, 0].sum(axis=1)
    return error


def summary(errors: FloatArray) -> ErrorSummary:
    """Return mean and maximum of the errors of traces."""
    return ErrorSummary(mean=float(errors.mean()), worst=float(errors.max()), traces=len(errors))
