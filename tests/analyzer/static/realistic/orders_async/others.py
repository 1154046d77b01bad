"""The services behind the orders."""

from __future__ import annotations

import asyncio
import random

from mup import EP, MS, Client, Communication


class AsyncService(MS):
    """What all of them have in common."""

    runtime = "async"
    pool_size = 20


class Prices(AsyncService):
    """Prices by region."""

    @EP("/list/")
    async def list_prices(self, comm: Communication) -> None:
        rows = await comm.query("prices", "all", "prices", {"region": comm.params["region"]})
        comm.respond({"prices": {row["_id"]: row["price"] for row in rows}})


class Users(AsyncService):
    """Who is who."""

    @EP("/profile/")
    async def profile(self, comm: Communication) -> None:
        found = await comm.query("users", "by_id", "users", {"_id": comm.params["user"]})
        if found:
            comm.respond(found[0])
        else:
            comm.respond({"error": "nobody"}, status=404)


class Stock(AsyncService):
    """What is on the shelves, and on its way."""

    @EP("/reserve/")
    async def reserve(self, comm: Communication) -> None:
        for _attempt in range(3):
            taken = await comm.query("stock", "take", "stock", {"user": comm.params["user"]})
            if taken:
                comm.respond({"reservation": taken[0]["_id"]})
                return
            await asyncio.sleep(0.01)
        comm.respond({"error": "out of stock"}, status=409)

    @EP("/release/")
    async def release(self, comm: Communication) -> None:
        await comm.query("stock", "give_back", "stock", {"_id": comm.params["reservation"]})
        comm.respond()

    @EP("/track/")
    async def track(self, comm: Communication) -> None:
        comm.respond({"place": "on its way"})


class Payments(AsyncService):
    """Money."""

    @EP("/pay/")
    async def pay(self, comm: Communication) -> None:
        await comm.query("bank", "book", "accounts", {"user": comm.params["user"]})
        comm.respond()

    @EP("/refund/")
    async def refund(self, comm: Communication) -> None:
        await comm.query("bank", "refund", "accounts", {"user": comm.params["user"]})
        comm.respond()


class Mail(AsyncService):
    """Sends mails, after it has answered."""

    pool_size = 2

    @EP("/send/")
    async def send(self, comm: Communication) -> None:
        comm.respond(status=202)
        await comm.query(
            "mail", "log", "sent", {"$command": "insert", "documents": [{"to": comm.params["user"]}]}
        )


class Shopper(Client):
    """Looks around, fills a cart, and orders sometimes."""

    async def scenario(self, comm: Communication) -> None:
        await comm.call("Orders", "/front/", {"user": "u1"})
        await self.think(2.0)
        await comm.call("Orders", "/cart/", {"user": "u1"})
        await self.think(5.0, "exponential")
        if random.random() < 0.2:
            await comm.call("Orders", "/order/", {"user": "u1"})
