"""Networks of very many customers: beyond what keeps the slowest station busy, more of them only queue there.

Asymptotic analysis (Muntz and Wong, "Asymptotic properties of closed queueing network models", 1974): with
ever more customers the throughput is what the slowest station can do, and all others have the queues of an
open network of that throughput. So a network of 10^6 customers is solved with those who are elsewhere, and
some more.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from simulator.analytic.approximations.convolution import FloatArray, extended

__all__ = ["LARGEST", "customers_needed"]

FEW: Final = 600
"""Customers up to which all are told apart."""
LARGEST: Final = 2000
"""Customers beyond which a network without delays is cut, and from which on the throughput to scale by has to
come from bounds."""
DEVIATIONS: Final = 6
"""Standard deviations of the customers elsewhere (Poisson) that are added to their mean."""
MORE: Final = 50
"""Customers that are added besides, at the slowest station."""


def customers_needed(
    population: int, delay: float, visits: list[float], rates: list[FloatArray]
) -> tuple[int, int]:
    """Return how many customers keep the slowest station busy, at most all, and which station that is.

    Args:
        population: How many there are.
        delay: Seconds per cycle that no customer contends for.
        visits: Per station, visits per cycle.
        rates: Per station, visits per second with 1, 2, ... customers there.
    """
    if not rates or population <= FEW:
        return population, 0
    capacities = [float(r[-1]) / v for v, r in zip(visits, rates, strict=True)]
    slowest = int(np.argmin(capacities))
    most = capacities[slowest]
    elsewhere = delay * most
    for k, (v, r) in enumerate(zip(visits, rates, strict=True)):
        if k != slowest:
            weights = np.exp(np.cumsum(np.log(v * most / extended(r, FEW))))
            elsewhere += float(weights @ np.arange(1.0, FEW + 1)) / (1 + float(weights.sum()))
    needed = math.ceil(elsewhere + DEVIATIONS * math.sqrt(elsewhere)) + len(rates[slowest]) + MORE
    if delay <= 0:
        needed = min(needed, LARGEST)
    return min(needed, population), slowest
