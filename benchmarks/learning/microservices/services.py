"""The microservices of the thesis, section 4.3.2, as far as their structure is public: see ``topologies.py``.

Work is waiting for a random time, so that any number of requests can be in service at once. Threads are given
to waiting requests in random order, as in the thesis.
"""

from __future__ import annotations

import asyncio
import random

from mup import EP, MS, Communication

READ_SHARE = 0.6


async def work(mean: float) -> None:
    """Take a random time, ``mean`` seconds on average."""
    await asyncio.sleep(random.expovariate(1 / mean))


class Router(MS):
    """Passes requests on."""

    runtime = "async"
    admission = "random"
    pool_size = 25

    @EP("/home/")
    async def home(self, comm: Communication) -> None:
        """The start page."""
        await work(0.010)
        comm.respond(await comm.call("Front", "/home/", {}))

    @EP("/catalogue/")
    async def catalogue(self, comm: Communication) -> None:
        """What there is to buy."""
        await work(0.012)
        comm.respond(await comm.call("Front", "/catalogue/", {}))

    @EP("/cart/")
    async def cart(self, comm: Communication) -> None:
        """The cart: look at it, or put something in."""
        await work(0.015)
        comm.respond(await comm.call("Front", "/cart/", {}))


class Front(MS):
    """Makes the pages."""

    runtime = "async"
    admission = "random"
    pool_size = 12

    @EP("/home/")
    async def home(self, comm: Communication) -> None:
        """Answer without calling another service."""
        await work(0.040)
        comm.respond({})

    @EP("/catalogue/")
    async def catalogue(self, comm: Communication) -> None:
        """A list, and one item of it."""
        await work(0.030)
        await comm.call("Catalogue", "/list/", {})
        comm.respond(await comm.call("Catalogue", "/item/", {}))

    @EP("/cart/")
    async def cart(self, comm: Communication) -> None:
        """Read it or write to it."""
        await work(0.030)
        if random.random() < READ_SHARE:
            comm.respond(await comm.call("Carts", "/get/", {}))
        else:
            comm.respond(await comm.call("Carts", "/add/", {}))


class Catalogue(MS):
    """Knows what can be bought."""

    runtime = "async"
    admission = "random"
    pool_size = 6

    @EP("/list/")
    async def list(self, comm: Communication) -> None:
        """Everything."""
        await work(0.050)
        comm.respond(await comm.call("CatalogueDb", "/query/", {}))

    @EP("/item/")
    async def item(self, comm: Communication) -> None:
        """One."""
        await work(0.040)
        comm.respond(await comm.call("CatalogueDb", "/query/", {}))


class Carts(MS):
    """Knows who wants to buy what."""

    runtime = "async"
    admission = "random"
    pool_size = 6

    @EP("/get/")
    async def get(self, comm: Communication) -> None:
        """Read."""
        await work(0.030)
        comm.respond(await comm.call("CartsDb", "/find/", {}))

    @EP("/add/")
    async def add(self, comm: Communication) -> None:
        """Write."""
        await work(0.050)
        comm.respond(await comm.call("CartsDb", "/write/", {}))


class CatalogueDb(MS):
    """Stands for a database."""

    runtime = "async"
    admission = "random"
    pool_size = 5

    @EP("/query/")
    async def query(self, comm: Communication) -> None:
        """Look something up."""
        await work(0.040)
        comm.respond({})


class CartsDb(MS):
    """Stands for a database."""

    runtime = "async"
    admission = "random"
    pool_size = 4

    @EP("/find/")
    async def find(self, comm: Communication) -> None:
        """Read."""
        await work(0.030)
        comm.respond({})

    @EP("/write/")
    async def write(self, comm: Communication) -> None:
        """Write."""
        await work(0.060)
        comm.respond({})
