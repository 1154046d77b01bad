"""Quantiles of Student's t distribution.

``t_quantile`` is for any level and any degrees of freedom. At its usual level, of whole degrees of freedom
and of any from three on, it is right to 2e-6 without scipy, whose import takes some tenths of a second.
``near_t_quantile`` is any level, nearly, where only a threshold is needed.
"""

from __future__ import annotations

from typing import Final

__all__ = ["near_t_quantile", "t_quantile"]

_NORMAL = 1.9599639845400545
_USUAL: Final = 0.95
_MOST = 1e9
"""Degrees of freedom beyond which the distribution is the normal one."""

_EXACT: Final = (
    12.706204736174694, 4.302652729749462, 3.1824463052837078, 2.7764451051977934, 2.5705818356363146,
    2.4469118511449786, 2.364624251592784, 2.306004135204166, 2.262157162798205, 2.228138851986274,
    2.200985160091639, 2.1788128296672284, 2.1603686564627913, 2.144786687917804, 2.131449545559776,
    2.1199052992212546, 2.1098155778333156, 2.1009220402410382, 2.0930240544083087, 2.085963447265864,
    2.0796138447276795, 2.0738730679040254, 2.0686576104190486, 2.0638985616280245, 2.0595385527532972,
    2.0555294386428735, 2.0518305164802846, 2.0484071417952454, 2.045229642132703, 2.0422724563012378,
    2.039513446396408, 2.0369333434601016, 2.0345152974493383, 2.0322445093177186, 2.030107928250343,
    2.0280940009804502, 2.0261924630291093, 2.0243941639119694, 2.022690920036761, 2.021075390306273,
    2.019540970441376, 2.0180817028184443, 2.016692199227824, 2.0153675744437636, 2.014103388880846,
    2.012895598919429, 2.0117405137297655, 2.010634757624232, 2.0095752371292392, 2.008559112100761,
    2.007583770315836, 2.006646805061688, 2.0057459953178687, 2.0048792881880564, 2.0040447832891455,
    2.003240718847872, 2.002465459291007, 2.0017174841452356, 2.000995378088267, 2.0002978220142604,
    1.999623584994939, 1.9989715170333788, 1.998340542520741, 1.997729654317693,
)  # fmt: skip
"""``t_quantile`` at its usual level for 1, 2, ... degrees of freedom, as scipy computes it: the
intervals of a simulation need no more."""

_WHOLE: Final = range(1, len(_EXACT) + 1)
_LEAST: Final = 3
"""Degrees of freedom from which on numbers between the whole ones are interpolated."""
_NODES: Final = 6
"""Of the polynomial between whole degrees of freedom."""


def t_quantile(freedom: float, level: float = 0.95) -> float:
    """Return the two-sided quantile: the half-width of an interval, in standard errors."""
    if level == _USUAL and freedom in _WHOLE:
        return _EXACT[int(freedom) - 1]
    if level == _USUAL and freedom >= _LEAST:
        return _expanded(_NORMAL, freedom) if freedom > len(_EXACT) else _interpolated(freedom)
    from scipy.special import stdtrit  # noqa: PLC0415 - see above

    return float(stdtrit(min(freedom, _MOST), 0.5 + level / 2))


def near_t_quantile(freedom: int, level: float) -> float:
    """Return the two-sided quantile of any level to about a percent, from ten degrees of freedom on."""
    from statistics import NormalDist  # noqa: PLC0415 - takes some milliseconds, which few need

    return _expanded(NormalDist().inv_cdf(0.5 + level / 2), freedom)


def _interpolated(freedom: float) -> float:
    """Return the usual quantile between whole degrees of freedom: Lagrange's polynomial in their inverse."""
    first = max(1, min(int(freedom) - _NODES // 2 + 1, len(_EXACT) + 1 - _NODES))
    nodes = range(first, first + _NODES)
    found = 0.0
    for node in nodes:
        weight = 1.0
        for other in nodes:
            if other != node:
                weight *= (1 / freedom - 1 / other) / (1 / node - 1 / other)
        found += weight * _EXACT[node - 1]
    return found


def _expanded(z: float, freedom: float) -> float:
    """Return the quantile whose normal one is ``z`` (Abramowitz and Stegun, 26.7.5)."""
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
