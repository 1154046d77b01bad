"""Factors that fall as the utilization rises, where measurements show beyond doubt that they do."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from statistics import fmean
from typing import Final

from scipy.special import chdtrc

from analyzer.host.estimates import Estimate

__all__ = ["falling", "tail_probability"]

SIGNIFICANCE: Final = 0.05
"""Probability at which chance may show a fall that is not there."""
HALF_WIDTH: Final = 2.0
"""Half-width of a 95 % interval, in standard errors."""


def falling(points: Sequence[tuple[float, Estimate]]) -> tuple[tuple[float, float], ...]:
    """Return factors that do not rise with the utilization, relative to the last one.

    What rises is chance: neighbouring levels are averaged until it does not (the pool-adjacent-violators
    algorithm; Ayer et al., 1955). So may be what falls: the result is empty unless the same factor everywhere
    is refuted (Bartholomew's test of ordered alternatives, Biometrika 46, 1959). Levels are measured alike:
    their standard errors are pooled, and larger where the rises say so. Without errors nothing is tested.

    Args:
        points: Utilization and factor, by ascending utilization.
    """
    factors = [factor.mean for _, factor in points]
    pools = _pooled(factors)
    fitted = [mean for mean, levels in pools for _ in range(levels)]
    halves = [factor.half for _, factor in points if factor.half]
    if len(halves) == len(points) and halves:
        variance = fmean((half / HALF_WIDTH) ** 2 for half in halves)
        overall = fmean(factors)
        fall = sum((f - overall) ** 2 for f in fitted) / variance
        rises = sum((f - g) ** 2 for f, g in zip(factors, fitted, strict=True)) / variance
        spread = max(1.0, rises / max(1, len(points) - len(pools)))
        if tail_probability(fall / spread, len(points)) > SIGNIFICANCE:
            return ()
    return tuple((level, round(f / fitted[-1], 4)) for (level, _), f in zip(points, fitted, strict=True))


def _pooled(factors: Sequence[float]) -> list[tuple[float, int]]:
    """Return means of neighbours that fall, and of how many levels each is."""
    pools: list[tuple[float, int]] = []
    for factor in factors:
        pools.append((factor, 1))
        while len(pools) > 1 and pools[-2][0] < pools[-1][0]:
            (one, many), (other, more) = pools[-2:]
            pools[-2:] = [((one * many + other * more) / (many + more), many + more)]
    return pools


def tail_probability(statistic: float, levels: int) -> float:
    """Return the probability that Bartholomew's statistic is larger if all levels are alike.

    It is a mixture of chi-square distributions: l different means are fitted to k levels with the probability
    abs(s(k, l)) / k!, where s are Stirling numbers of the first kind (Barlow, Bartholomew, Bremner and Brunk,
    Statistical Inference under Order Restrictions, 1972, section 3.3).
    """
    counts = [1.0]  # of permutations of n things, by their number of cycles
    for n in range(levels):
        counts = [n * one + other for one, other in zip([*counts, 0.0], [0.0, *counts], strict=True)]
    shares = [count / factorial(levels) for count in counts]
    return sum(shares[k] * float(chdtrc(k - 1, statistic)) for k in range(2, levels + 1))
