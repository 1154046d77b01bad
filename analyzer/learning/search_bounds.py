"""Learned values that ended at a bound of the search: they are that bound's, not the data's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.learning.traces import FloatArray

__all__ = ["rates_at_bound", "times_at_bound"]

NEAR = 0.02
"""Logarithms closer to a bound than this are on it."""


def times_at_bound(names: Sequence[str], logs: FloatArray, bounds: tuple[float, float]) -> dict[int, str]:
    """Return what to say of learned times that a search would have taken further, by their places.

    Args:
        names: Of the times; P.
        logs: Logarithms of the learned times, in seconds; shape (P,).
        bounds: Logarithms of the shortest and the longest time that is looked for.
    """
    found = {}
    for i, log in enumerate(logs.tolist()):
        for bound, word in zip(bounds, ("shortest", "longest"), strict=True):
            if abs(log - bound) < NEAR:
                found[i] = (
                    f"{names[i]} ended at {np.exp(bound):.3g} s, the {word} time that is looked for: the"
                    f" traces ask for a {word[:-3] + 'er'} one; is dt in seconds, and does the"
                    " structure fit?"
                )
    return found


def rates_at_bound(names: Sequence[str], rates: FloatArray, fastest: float) -> list[str]:
    """Return what to say of stations whose rate is at least the fastest that is looked for.

    Args:
        names: Of the stations; M.
        rates: Of the fitted fluid, per second; shape (M,).
        fastest: Bound of the search, per second.
    """
    return [
        f"the rate of station {name!r} ended at a bound of the search: the fluid's is {rate:.3g} per second,"
        f" and {fastest:.3g} the fastest that samples so far apart show; take them more often"
        for name, rate in zip(names, rates.tolist(), strict=True)
        if rate >= fastest * (1 - NEAR)
    ]
