"""Orders, with coroutines all the way down."""

from __future__ import annotations

import asyncio

from clients import cart_rows, confirm, pay, price_list, profile, reservation
from model import CartError, entries_of, total_of

from mup import EP, MS, Communication
from mup.errors import CallError

SHELVES = ("new", "popular", "reduced")


class Orders(MS):
    """Carts become orders here."""

    pool_size = 50
    runtime = "async"

    @EP("/cart/")
    async def cart(self, comm: Communication) -> None:
        """Show a cart: everything that is needed for it is asked for at once."""
        user = comm.params["user"]
        rows, prices, person = await asyncio.gather(
            cart_rows(comm, user), price_list(comm), profile(comm, user)
        )
        try:
            entries = entries_of(rows, prices)
        except CartError as error:
            comm.respond({"error": str(error)}, status=409)
            return
        comm.respond({"for": person["name"], "total": total_of(entries)})

    @EP("/order/")
    async def order(self, comm: Communication) -> None:
        user = comm.params["user"]
        rows = await cart_rows(comm, user)
        if not rows:
            comm.respond({"error": "the cart is empty"}, status=400)
            return
        prices = await price_list(comm, comm.params.get("region", "eu"))
        total = total_of(entries_of(rows, prices))
        try:
            async with reservation(comm, user) as number:
                paid = await pay(comm, user, total["gross"])
                if not paid:
                    raise CartError("payment failed")
                await comm.query(
                    "orders", "insert", "orders", {"$command": "insert", "documents": [{"_id": number}]}
                )
        except CartError as error:
            comm.respond({"error": str(error)}, status=402)
        except CallError as error:
            comm.respond({"error": f"out of stock: {error}"}, status=409)
        else:
            confirm(comm, user, number)
            comm.respond({"order": number, **total}, status=201)

    @EP("/front/")
    async def front(self, comm: Communication) -> None:
        """Show the front page: a profile in the background, shelves side by side."""
        person = asyncio.create_task(profile(comm, comm.params.get("user", "")))
        shelves = await asyncio.gather(*(self._shelf(comm, name) for name in SHELVES))
        comm.respond({"name": (await person)["name"], "shelves": dict(zip(SHELVES, shelves, strict=True))})

    async def _shelf(self, comm: Communication, name: str) -> list[str]:
        return [
            row["_id"] for row in await comm.query("articles", f"shelf_{name}", "shelves", {"name": name})
        ]

    @EP("/orders/")
    async def orders(self, comm: Communication) -> None:
        """List orders with where they are, one after the other: there are few."""
        found = []
        for order in await comm.query("orders", "of_user", "orders", {"user": comm.params["user"]}):
            if order["status"] == "shipped":
                where = await comm.call("Stock", "/track/", {"order": order["_id"]})
                found.append({**order, "where": where["place"]})
            else:
                found.append(order)
        comm.respond({"orders": found})

    @EP("/cancel/")
    async def cancel(self, comm: Communication) -> None:
        number = comm.params["order"]
        matching = await comm.query("orders", "by_number", "orders", {"_id": number})
        match matching:
            case []:
                comm.respond(status=404)
            case [{"status": "shipped"}]:
                comm.respond({"error": "too late"}, status=409)
            case [{"status": "paid", "user": user}]:
                released = comm.call("Stock", "/release/", {"reservation": number})
                refund = comm.call("Payments", "/refund/", {"user": user, "order": number})
                await released
                await refund
                comm.respond({"cancelled": number})
            case _:
                await comm.call("Stock", "/release/", {"reservation": number})
                comm.respond({"cancelled": number})
