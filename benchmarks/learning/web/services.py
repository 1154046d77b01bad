"""The load-balanced web system of the thesis, section 3.2.2: a balancer and three servers, no two alike.

Work is waiting for a random time, as in the thesis, so that any number of requests can be in service at once.
"""

from __future__ import annotations

import asyncio
import os
import random

from mup import EP, MS, Communication

SERVERS = ("C1", "C2", "C3")


class Balancer(MS):
    """Sends every request to one of the servers, at random with given weights."""

    runtime = "async"
    pool_size = 1000

    def setup(self) -> None:
        """Read the weights: ``MUP_WEIGHTS``, separated by commas."""
        self.weights = [float(word) for word in os.environ.get("MUP_WEIGHTS", "1,1,1").split(",")]

    @EP("/ask/")
    async def ask(self, comm: Communication) -> None:
        """Have a server work; ``to`` names one, which is how an experiment begins in a given state."""
        to = comm.params.get("to") or random.choices(SERVERS, self.weights)[0]
        comm.respond(await comm.call(to, "/work/", {}))


class Server(MS):
    """Works for a random time, in one of its workers."""

    runtime = "async"
    mean = 0.1  # s

    @EP("/work/")
    async def work(self, comm: Communication) -> None:
        """Work."""
        await asyncio.sleep(random.expovariate(1 / self.mean))
        comm.respond({})


class C1(Server):
    """Nine workers, fast."""

    pool_size = 9
    mean = 0.12


class C2(Server):
    """Five workers: the first to be full."""

    pool_size = 5
    mean = 0.15


class C3(Server):
    """Twelve workers, slow."""

    pool_size = 12
    mean = 0.2
