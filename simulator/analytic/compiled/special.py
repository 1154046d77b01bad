"""Incomplete gamma and beta functions, for times that are compared (``entry_times``).

Series and continued fractions as in Press, Teukolsky, Vetterling and Flannery, "Numerical Recipes", sections
6.2 and 6.4 (modified Lentz).
"""

from __future__ import annotations

import math
from typing import Final

from mup.native.binding import internal

__all__ = ["lower_gamma", "regular_beta"]

ENOUGH: Final = 1e-15
"""Relative size of a term that is the last."""
LEAST: Final = 1e-300
TERMS: Final = 100_000
"""Terms at most: about as many as ten roots of the largest shape, 1e6."""


@internal
def lower_gamma(shape: float, x: float) -> float:
    """Return how likely a gamma time of a shape, and scale 1, is below x."""
    if x <= 0.0:
        return 0.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        term = 1.0 / shape
        total = term
        above = shape
        for _n in range(TERMS):
            above += 1.0
            term *= x / above
            total += term
            if term < total * ENOUGH:
                break
        return min(total * front, 1.0)
    b = x + 1.0 - shape
    c = 1.0 / LEAST
    d = 1.0 / b
    found = d
    for n in range(1, TERMS):
        a = -float(n) * (float(n) - shape)
        b += 2.0
        d = a * d + b
        if abs(d) < LEAST:
            d = LEAST
        c = b + a / c
        if abs(c) < LEAST:
            c = LEAST
        d = 1.0 / d
        factor = d * c
        found *= factor
        if abs(factor - 1.0) < ENOUGH:
            break
    return max(1.0 - front * found, 0.0)


@internal
def regular_beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function of x, given 1 - x as well."""
    if x <= 0.0:
        return 0.0
    if rest <= 0.0:
        return 1.0
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    front = math.exp(logs)
    if x < (a + 1.0) / (a + b + 2.0):
        return min(front * _fraction(a, b, x) / a, 1.0)
    return max(1.0 - front * _fraction(b, a, rest) / b, 0.0)


@internal
def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function."""
    both, more, less = a + b, a + 1.0, a - 1.0
    c = 1.0
    d = 1.0 - both * x / more
    if abs(d) < LEAST:
        d = LEAST
    d = 1.0 / d
    found = d
    for n in range(1, TERMS):
        m = float(n)
        term = m * (b - m) * x / ((less + 2.0 * m) * (a + 2.0 * m))
        d = 1.0 + term * d
        if abs(d) < LEAST:
            d = LEAST
        c = 1.0 + term / c
        if abs(c) < LEAST:
            c = LEAST
        d = 1.0 / d
        found *= d * c
        term = -(a + m) * (both + m) * x / ((a + 2.0 * m) * (more + 2.0 * m))
        d = 1.0 + term * d
        if abs(d) < LEAST:
            d = LEAST
        c = 1.0 + term / c
        if abs(c) < LEAST:
            c = LEAST
        d = 1.0 / d
        factor = d * c
        found *= factor
        if abs(factor - 1.0) < ENOUGH:
            break
    return found
