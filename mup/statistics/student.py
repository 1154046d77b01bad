"""What are the quantiles of Student's t distribution?

There are two functions on purpose. ``t_quantile`` is exact, for any level and any degrees of freedom, and
needs scipy, whose import takes some tenths of a second. ``quick_t_quantile`` is the one level of all our
intervals to 0.2 %, without scipy: a load test needs nothing else of it, and should start at once.
"""

from __future__ import annotations

__all__ = ["quick_t_quantile", "t_quantile"]

_FEW = (12.7062, 4.3027, 3.1824, 2.7764)
_NORMAL = 1.959964
_MOST = 1e9
"""Degrees of freedom beyond which the distribution is the normal one."""


def t_quantile(freedom: float, level: float = 0.95) -> float:
    """Return the two-sided quantile: the half-width of an interval, in standard errors."""
    from scipy.special import stdtrit  # noqa: PLC0415 - see above

    return float(stdtrit(min(freedom, _MOST), 0.5 + level / 2))


def quick_t_quantile(freedom: int) -> float:
    """Return the two-sided 95 % quantile to 0.2 %.

    From five degrees of freedom on by the usual expansion around the normal quantile (Abramowitz and Stegun,
    26.7.5).
    """
    if freedom <= len(_FEW):
        return _FEW[freedom - 1]
    z = _NORMAL
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
