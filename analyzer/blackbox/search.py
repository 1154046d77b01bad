"""Search for the positive parameters at which something is least."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize

from analyzer.blackbox.inversion import FloatArray

__all__ = ["least"]


def least(
    distance: Callable[[list[float]], float],
    start: Sequence[float],
    *,
    evaluations: int,
    step: float,
    furthest: float,
    tolerance: float,
) -> tuple[list[float], float]:
    """Return the parameters, and how much it is there, by the method of Nelder and Mead (1965).

    Args:
        distance: Of parameters, all > 0.
        start: Where to begin.
        evaluations: How many at most.
        step: First change of each parameter, as a logarithm.
        furthest: Largest change, as a logarithm.
        tolerance: Difference of distances below which the search ends.
    """
    begin = np.log(start)

    def of_logs(logs: FloatArray) -> float:
        further = float(np.abs(logs - begin).max())
        return 1e9 * further if further > furthest else distance(np.exp(logs).tolist())

    simplex = np.vstack([begin, *(begin + step * unit for unit in np.eye(len(begin)))])
    found = minimize(
        of_logs, begin, method="Nelder-Mead",
        options={"maxfev": evaluations, "initial_simplex": simplex, "xatol": 0.01, "fatol": tolerance},
    )  # fmt: skip
    return np.exp(found.x).tolist(), float(found.fun)
