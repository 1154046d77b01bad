"""A shop whose every sale crosses three services, one of each runtime, and a database."""

from __future__ import annotations

from mup import EP, MS, Communication


class Shop(MS):
    """Sells: asks the stock and keeps the order, at the same time."""

    pool_size = 4

    @EP("/buy/")
    def buy(self, comm: Communication) -> None:
        """Answer only when the order has been written."""
        order = comm.params["order"]
        taken = comm.call("Stock", "/take/", {"order": order}, timeout=25)
        kept = comm.call("Orders", "/keep/", {"order": order}, timeout=25)
        comm.respond({"left": taken.get()["left"], "kept": kept.get()["kept"]})


class Stock(MS):
    """Knows what is left."""

    runtime = "thread"
    pool_size = 2
    replicas = 2

    @EP("/take/")
    def take(self, comm: Communication) -> None:
        """Return how much is left after this order."""
        comm.respond({"left": len(comm.params["order"])})


class Orders(MS):
    """Keeps orders."""

    runtime = "async"
    pool_size = 4

    @EP("/keep/")
    async def keep(self, comm: Communication) -> None:
        """Write an order down."""
        order = {"_id": comm.params["order"]}
        rows = await comm.query("db", "keep", "orders", {"$command": "insert", "documents": [order]})
        comm.respond({"kept": rows[0]["inserted"]})


class Echo(MS):
    """Says what it was sent."""

    pool_size = 2

    @EP("/echo/")
    def echo(self, comm: Communication) -> None:
        """Return the number of bytes."""
        comm.respond({"bytes": len(comm.body)})
