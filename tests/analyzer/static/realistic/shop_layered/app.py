"""The services of the shop: endpoints only, everything else is in layers below."""

from __future__ import annotations

from typing import Any

from shop.domain import OrderError
from shop.services import Application

from mup import EP, MS, Communication


class Shop(MS):
    """What the browser talks to."""

    pool_size = 8
    replicas = 2

    @EP("/category/")
    def category(self, comm: Communication) -> None:
        page = Application(comm).catalog.page(comm.params["category"])
        comm.respond(page)

    @EP("/compare/")
    def compare(self, comm: Communication) -> None:
        try:
            result = Application(comm).catalog.compare(comm.params["first"], comm.params["second"])
        except OrderError as error:
            comm.respond({"error": error.reason}, status=error.status)
            return
        comm.respond(result)

    @EP("/order/", name="order")
    def order(self, comm: Communication) -> None:
        application = Application(comm)
        payment = application.payment(comm.params)
        try:
            order = application.orders.place(
                customer=comm.params["customer"],
                sku=comm.params["sku"],
                quantity=int(comm.params.get("quantity", 1)),
                payment=payment,
            )
        except OrderError as error:
            comm.respond({"error": error.reason}, status=error.status)
        else:
            comm.respond({"total": order.total}, status=201)

    @EP("/history/")
    def history(self, comm: Communication) -> None:
        comm.respond({"orders": Application(comm).orders.history(comm.params["customer"])})

    @EP("/cancel/")
    def cancel(self, comm: Communication) -> None:
        done = Application(comm).orders.cancel(comm.params["number"])
        comm.respond({"cancelled": done}, status=200 if done else 409)


class Payment(MS):
    """Takes money."""

    pool_size = 4

    @EP("/charge/")
    def charge(self, comm: Communication) -> None:
        account = comm.query("bank", "account", "accounts", {"customer": comm.params["customer"]}).get()
        if not account or account[0]["balance"] < comm.params["amount"]:
            comm.respond({"error": "refused"}, status=402)
            return
        comm.query("bank", "book", "accounts", _booking(comm.params)).get()
        comm.respond({"reference": account[0]["_id"]})

    @EP("/rating/", name="rating")
    def rating(self, comm: Communication) -> None:
        rows = comm.query("bank", "rating", "ratings", {"customer": comm.params["customer"]}).get()
        comm.respond({"limit": rows[0]["limit"] if rows else 0})


class Warehouse(MS):
    """Packs and ships."""

    @EP("/announce/")
    def announce(self, comm: Communication) -> None:
        comm.respond({"lines": len(comm.params["lines"])})

    @EP("/ship/")
    def ship(self, comm: Communication) -> None:
        comm.query("stock", "pick", "bins", {"order": comm.params["order"]}).get()
        comm.respond({"tracking": f"T{comm.params['order']}"})


class BackOffice(Shop):
    """The shop as its staff sees it: everything customers can do, and shipping."""

    pool_size = 2
    replicas = 1

    @EP("/ship/")
    def ship(self, comm: Communication) -> None:
        try:
            tracking = Application(comm).orders.ship(comm.params["number"])
        except OrderError as error:
            comm.respond({"error": error.reason}, status=404)
            return
        comm.respond({"tracking": tracking})


def _booking(params: dict[str, Any]) -> dict[str, Any]:
    change = {"$inc": {"balance": -params["amount"]}}
    return {"$command": "update", "filter": {"customer": params["customer"]}, "update": change}
