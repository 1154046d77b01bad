"""Flow-equivalent service: a pool is one station, as fast as its threads get through what they visit.

Chandy, Herzog and Woo, "Parametric analysis of queueing networks" (1975): a subnetwork is replaced by one
station whose speed with n customers is the throughput of the subnetwork with n. Here the subnetwork is what
a thread visits while it is held, and n threads are its customers. Exact for product form; beyond it the
error is small as long as the subnetwork changes faster than what comes from outside (Courtois,
"Decomposability", 1977).
"""

from __future__ import annotations

import numpy as np

from simulator.analytic.approximations.convolution import FloatArray, rising
from simulator.analytic.operating_point import VISITS, WORK, Customers, OperatingPoint

__all__ = ["busy_servers", "elasticity", "hold", "job_rates"]


def job_rates(point: OperatingPoint, releases: list[float], at: int, pace: FloatArray) -> FloatArray:
    """Return the jobs per second that a station completes with 1, 2, ... jobs there.

    Args:
        point: Operating point.
        releases: Per plan, how often a request gives up its thread on the way.
        at: The station.
        pace: How many servers are busy with 1, 2, ... jobs there, as it should be taken for the rate.
    """
    mean = point.total[WORK, at] / point.total[VISITS, at]
    pool = point.pools.get(at)
    if pool is None or pool.network is None:
        return np.asarray(pace / mean)
    held = hold(point, releases, at)
    # More threads never do less, though it may look like it at numbers that hardly ever occur.
    weights = pool.busy[1:] if len(pool.busy) == len(pool.network.throughput) + 1 else None
    reached = rising(pool.network.throughput, weights)
    speeds = np.concatenate(((0.0,), reached)) * held
    top = len(speeds) - 1
    found = np.interp(pace, np.arange(top + 1.0), speeds)
    return np.asarray(np.where(pace > top, speeds[-1] * pace / top, found) / mean)


def hold(point: OperatingPoint, releases: list[float], at: int) -> float:
    """Return the mean time a server of a pool is held, per visit."""
    if point.stations[at].parent is not None:
        return float(point.total[WORK, at] / point.total[VISITS, at])
    time = cycles = 0.0
    for index in point.plans_of[at]:
        time += point.rates[index] * point.times[index].hold[0]
        cycles += point.rates[index] * (1 + releases[index])
    return time / cycles


def busy_servers(point: OperatingPoint, pool: Customers, occupancy: FloatArray, at: int) -> FloatArray:
    """Return how likely 0, 1, ... servers of a pool are busy, from how many requests are there."""
    queue = point.queues[at]
    found = np.zeros(pool.population + 1)
    if occupancy.sum() <= 0:
        found[0] = 1.0
        return found
    occupancy = occupancy / occupancy.sum()
    found[0] = occupancy[0]
    busy = np.minimum(queue.busy, pool.population)
    low = np.floor(busy).astype(int)
    above = busy - low
    np.add.at(found, low, occupancy[1:] * (1 - above))
    np.add.at(found, np.minimum(low + 1, pool.population), occupancy[1:] * above)
    return found


def elasticity(point: OperatingPoint, at: int) -> float:
    """Return how far the servers themselves limit a station, 0 to 1: not if what they visit is full.

    It is the relative growth of the throughput of the subnetwork per relative growth of its population.
    """
    pool = point.pools.get(at)
    if pool is None or pool.network is None or pool.population == 1:
        return 1.0
    # Where a request waits, its own replica is full and the others are as busy as usual.
    station = point.stations[at]
    busy = station.servers + (station.replicas - 1) * float(point.total[WORK, at]) / station.replicas
    reached = np.concatenate(((0.0,), pool.network.throughput))
    growth = np.diff(reached) / reached[1:] * np.arange(1.0, len(reached))
    found = float(np.interp(busy, np.arange(1.0, len(reached)), growth))
    return min(max(found, 0.0), 1.0)
