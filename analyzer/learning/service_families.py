"""Shapes of services by one number: families of distributions of mean 1 by squared coefficient of variation.

- ``stages``: below 1 gamma (Erlang stages where 1/scv is whole, close to constant at the least), above 1
  hyperexponential of two phases with balanced means, each of which has half of the work.
- ``lognormal``: what measured service times often are. It begins later and ends later than the other, so
  which of them services follow makes a difference to their mean, too.
"""

from __future__ import annotations

import math
from typing import Literal

from mup.lqn.distributions import Distribution, Exponential, Gamma, Hyperexponential, Lognormal

__all__ = ["FAMILIES", "HIGHEST", "LOWEST", "Family", "ServiceKind", "shape_of"]

Family = Literal["stages", "lognormal"]
ServiceKind = Literal["auto", "exponential"]
"""Whether shapes are learned where exponential services do not explain the traces."""

FAMILIES: tuple[Family, ...] = ("stages", "lognormal")
LOWEST, HIGHEST = 1e-3, 50.0
"""Squared coefficients of variation that are learned."""


def shape_of(family: Family, scv: float) -> Distribution:
    """Return the distribution of mean 1 with this squared coefficient of variation > 0."""
    if family == "lognormal":
        return Lognormal(1.0, scv)
    if scv == 1:
        return Exponential(1.0)
    if scv < 1:
        return Gamma(1.0, scv)
    often = (1 + math.sqrt((scv - 1) / (scv + 1))) / 2
    return Hyperexponential((often, 1 - often), (1 / (2 * often), 1 / (2 * (1 - often))))
