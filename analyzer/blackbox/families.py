"""Families of distributions that a sample of times may come from.

The Kolmogorov-Smirnov distance to a family whose parameters were set by the same sample is smaller than to
a distribution that was known before; its usual p-values accept too much. Here the p-value comes from a
parametric bootstrap (as Lilliefors' test of 1967 for the normal, for any family): samples of the fitted
member are fitted and measured in the same way, and the p-value is the share of them that are at least as
far from their own fit.

Harbaoui et al. (RR-7027, section 4.4) test small random samples, because large ones reject everything that
is not exact, and keep families of p > 0.1; so do we.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analyzer.blackbox.draws import draws
from analyzer.blackbox.inversion import FloatArray
from analyzer.calibration.fitting import CANDIDATES, fit, member
from mup.lqn.distributions import Constant, Distribution

__all__ = ["ALPHA", "CONSTANT_CV", "Family", "choose_family", "p_value"]

ALPHA = 0.1
TESTED = 300
"""Size of the random sample that is tested."""
RESAMPLES = 99
CONSTANT_CV = 0.1
"""Below it times count as constant: waiting depends on the cv by (1 + cv^2) / 2, here by half a percent."""


@dataclass(frozen=True, slots=True)
class Family:
    """The distribution that stands for a sample.

    Attributes:
        distribution: Its mean is the sample's.
        p_values: Of every family tried, on a part of the sample; 0 where it has no member of its moments.
        reason: One sentence for people.
    """

    distribution: Distribution
    p_values: Mapping[str, float]
    reason: str

    @property
    def accepted(self) -> tuple[str, ...]:
        """Families that are not rejected."""
        return tuple(name for name, p in self.p_values.items() if p > ALPHA)

    def to_json(self) -> dict[str, Any]:
        """Return what was decided, and why, as JSON values."""
        return {"reason": self.reason, "p_values": dict(self.p_values), "accepted": list(self.accepted)}


def choose_family(times: ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES) -> Family:
    """Return the distribution that stands for a sample.

    Among the families that are not rejected Schwarz's criterion decides (`analyzer.calibration.fitting`); if
    all are, the sample itself is kept, condensed.

    Args:
        times: Seconds >= 0, shape (n,), n >= 10.
        seed: Of the tests.
        resamples: Of each test.
    """
    values = np.asarray(times, dtype=np.float64)
    mean = float(values.mean())
    if mean == 0 or values.std() < CONSTANT_CV * mean:
        cv = float(values.std()) / mean if mean else 0.0
        return Family(
            Constant(mean), {"constant": 1.0}, f"constant: the cv is {cv:.3f}, below {CONSTANT_CV:g}"
        )
    rng = np.random.default_rng([seed, 1])
    tested = rng.choice(values, min(TESTED, values.size), replace=False)
    p_values = {name: p_value(tested, name, rng, resamples) for name in CANDIDATES}
    accepted = [name for name, p in p_values.items() if p > ALPHA]
    found = fit(values, families=accepted)
    return Family(found.distribution, p_values, found.reason if accepted else _rejected(p_values))


def p_value(sample: FloatArray, family: str, rng: np.random.Generator, resamples: int = RESAMPLES) -> float:
    """Return the p-value of a sample under the hypothesis of a family with unknown parameters.

    Args:
        sample: Seconds, shape (n,), not all equal.
        family: One of `analyzer.calibration.fitting.CANDIDATES`.
        rng: Of the resamples.
        resamples: How many.
    """
    found = member(sample, family)
    if found is None:
        return 0.0
    distribution, distance = found
    beyond = 0
    for _ in range(resamples):
        again = member(draws(distribution, sample.size, rng), family)
        # A resample whose moments no member has is as far off as can be.
        beyond += again is None or again[1] >= distance
    return (1 + beyond) / (1 + resamples)


def _rejected(p_values: Mapping[str, float]) -> str:
    nearest = max(p_values, key=lambda name: p_values[name])
    return (
        f"the sample itself: every family is rejected (the nearest is {nearest}, p = {p_values[nearest]:.2f})"
    )
