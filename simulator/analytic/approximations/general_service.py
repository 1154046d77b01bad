"""First come first served with services that are not exponential: speeds that depend on the queue.

Marie, "An approximate analytical method for general queueing networks" (1979): the station is replaced by
one of exponential services whose speed with n requests follows from the rate at which requests arrive while
n are there. One server: mean length of Pollaczek and Khinchine. Several: between light traffic, where it
counts which of their residual services ends first (Burman and Smith, "A light-traffic theorem for
multi-server queues", 1983), and heavy traffic, where (1 + scv) / 2 does (Koellerstroem, "Heavy traffic
theory for queues with several servers", 1974).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from simulator.analytic.approximations.convolution import ROUNDING, TINY, FloatArray
from simulator.analytic.approximations.replicas import Replicas

__all__ = ["Queue"]

LONG: Final = 0.8
"""Part of the lengths told apart from which on a queue that can be longer is taken as full."""
RELAXATION: Final = 0.7
"""Part of a change of the speeds of a queue that is made at once: how soon it converges, not where."""
MOST: Final = 3.0
"""Load offered to a busy server beyond which it makes no more difference; more than any request waits for.
One model in ten depends on it, by half a percentage point of response time where errors are largest."""
FIRST: Final = 2.0
"""Factor on the speed with all servers busy and no request waiting, or its inverse, at most; for services so
variable that their queue is more than that many times as long as with exponential ones, so many times. It is
needed: with 1, which leaves that speed alone, response times are several percentage points worse. Twice as
much changes next to nothing."""
LEAST_LIGHT: Final = 0.05
"""Factor on the wait in light traffic at least: a guard, far below what services of equal length have."""
EXPONENTIAL: Final = 1e-3
"""Difference of the squared coefficient of variation from 1 up to which services are exponential ones: it
saves time."""


class Queue:
    """A queue in front of servers, in ``replicas`` identical copies between which requests choose at random.

    Args:
        servers: Of each replica.
        replicas: How many there are.
        length: Numbers of requests that are told apart.
        cut: There can be more requests.

    Attributes:
        busy: Mean number of busy servers, all replicas together, with 1, 2, ... requests there.
        pace: The same, as it should be taken for the rate: it differs from ``busy`` where service times
            are less or more variable than exponential ones.
    """

    def __init__(self, servers: float, replicas: int, length: int, *, cut: bool) -> None:
        self.servers = servers
        self.replicas = replicas
        self.length = length
        self._cut = cut
        self._steps = np.minimum(np.arange(1.0, length + 1), servers)
        self._speeds = self._steps
        self._spread = Replicas(self._speeds, replicas)
        self.busy = self.pace = self._spread.speeds
        # Speeds with more requests than servers, and with as many, relative to exponential services.
        self._shape = np.ones(length - int(min(servers, length)))
        self._level = self._first = 1.0

    def adapt(self, variability: float, occupancy: FloatArray) -> None:
        """Correct the pace for service times whose squared coefficient of variation is not 1.

        A queue of general service times behaves like one of exponential times whose speed depends on
        the load: with more variable ones it is slower while few arrive and faster while many do. The
        factor below makes the mean length of an open queue that of Pollaczek and Khinchine (one server),
        and its slope that of the heavy-traffic limit; here it is applied to the rate of arrivals at each
        length, as in Marie's method. The speed with exactly as many requests as servers is set such
        that servers are as busy as the throughput demands.

        Args:
            variability: Squared coefficient of variation of the service time.
            occupancy: Probability of 0, 1, ... requests, all replicas together.
        """
        c = self.servers
        if c >= self.length or abs(variability - 1) < EXPONENTIAL:
            return
        at = int(c)  # index of the length with all servers busy and none waiting
        single = self._spread.single(occupancy)
        # Load offered while all servers are busy: arrivals at that length, times service time, per server.
        usable = (single[at:-1] > TINY) & (single[at + 1 :] > TINY)
        lengths = np.flatnonzero(usable)
        if not len(lengths):
            return
        seen = single[at + 1 :][lengths] * self._speeds[at:][lengths] / single[at:-1][lengths]
        load = np.interp(np.arange(len(usable)), lengths, seen)
        load = np.minimum(load / c, MOST)
        light = max(1 + (variability - 1) / (c + 1), LEAST_LIGHT)
        heavy = (1 + variability) / 2
        mix = np.minimum(load, 1.0)
        excess = 1 / ((1 - mix) * light + mix * heavy) - 1
        beyond = (load > 1) & (excess > 0)
        factor = np.where(beyond, 1 / (1 + np.where(beyond, load - 1, 0.0) * excess), 1 + (1 - load) * excess)
        if self._cut:
            # The last length stands for all longer ones, and what is right there is not for those. A queue
            # as long as that is never empty: how much services vary makes no difference to its throughput.
            factor **= 1 - float(single[int(LONG * self.length) :].sum())
        old = 1 - RELAXATION
        self._shape = self._shape**old * factor**RELAXATION
        exact, above = float(single[at]), float(single[at + 1 :].sum())
        given = float(single[at + 1 :] @ self._shape)
        first = 1.0
        if exact > ROUNDING:
            first = min(max(1 + (above - given) / exact, 1 / FIRST), max(FIRST, heavy))
        self._first = self._first**old * first**RELAXATION
        if given > ROUNDING:
            # Where all requests queue at once, the factor is that of the greatest load.
            level = min(max((exact + above - first * exact) / given, 1 / MOST), MOST)
            # The queue of a full station follows its level: the speeds where the queue then is differ
            # ``heavy`` times as much. A correction of all of that would overshoot, ever more.
            new = min(RELAXATION, 1 / heavy)
            self._level = self._level ** (1 - new) * level**new
        self._speeds = self._steps.copy()
        self._speeds[at:] = c * self._shape * self._level
        self._speeds[at - 1] = c * self._first
        self._spread = Replicas(self._speeds, self.replicas)
        self.pace = self._spread.speeds
