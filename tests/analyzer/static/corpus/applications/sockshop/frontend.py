import asyncio
import logging

from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError

log = logging.getLogger("front-end")


class NotLoggedIn(Exception):
    pass


def customer_of(comm):
    customer = comm.cookies.get("logged_in")
    if not customer:
        raise NotLoggedIn
    return customer


class FrontEnd(MS):
    runtime = "async"
    pool_size = 64

    @EP("/orders", method="GET")
    async def orders(self, comm: Communication) -> None:
        customer = customer_of(comm)
        try:
            orders = await comm.call("Orders", "/search", {"customer": customer, "sort": "date"})
        except CallError as error:
            if error.status != 404:
                raise
            orders = []
        comm.respond(orders, status=201)

    @EP("/orders", method="POST")
    async def order(self, comm: Communication) -> None:
        try:
            customer = customer_of(comm)
        except NotLoggedIn:
            comm.respond({"error": "user not logged in"}, status=401)
            return
        links = await comm.call("Users", "/customers/{id}", {"id": customer})
        order = {"customer": customer, "address": None, "card": None, "items": f"/carts/{customer}/items"}

        async def address():
            found = await comm.call("Users", "/addresses/{id}", {"id": links["address"]})
            if found.get("street"):
                order["address"] = found

        async def card():
            found = await comm.call("Users", "/cards/{id}", {"id": links["card"]})
            if found.get("number"):
                order["card"] = found

        await asyncio.gather(address(), card())
        log.info("posting order %s", order)
        placed = await comm.call("Orders", "/orders", order)
        comm.respond(placed, status=201)

    @EP("/orders/{id}", method="GET")
    async def one(self, comm: Communication, id: str) -> None:
        comm.respond(await comm.call("Orders", "/orders/{id}", {"id": id}, method="GET"))

    @EP("/catalogue", method="GET")
    async def catalogue(self, comm: Communication, page: int = 1, size: int = 6, tags: str = "") -> None:
        params = {"page": page, "size": size}
        if tags:
            params["tags"] = tags
        comm.respond(await comm.call("Catalogue", "/catalogue", params))

    @EP("/cart", method="POST")
    async def add(self, comm: Communication) -> None:
        item = comm.params.get("id")
        if item is None:
            comm.respond({"error": "must pass id of item to add"}, status=400)
            return
        customer = comm.cookies.get("logged_in") or comm.request_id
        product = await comm.call("Catalogue", "/catalogue/{id}", {"id": item})
        line = {"customer": customer, "item": product["id"], "price": product["price"]}
        answer = await comm.call("Carts", "/carts/{customer}/items", line, method="POST")
        if answer.get("status") != "created":
            comm.respond({"error": "unable to add to cart"}, status=500)
            return
        comm.respond(None, status=201)

    @EP("/cart", method="DELETE")
    async def clear(self, comm: Communication) -> None:
        await comm.call("Carts", "/carts/{customer}", {"customer": customer_of(comm)}, method="DELETE")
        comm.respond(None, status=204)

    @EP("/login", method="GET")
    async def login(self, comm: Communication) -> None:
        user = await comm.call("Users", "/login", {"authorization": comm.headers.get("authorization", "")})
        try:
            await comm.call("Carts", "/merge", {"customer": user["id"], "session": comm.request_id})
        except CommunicationError:
            log.warning("the carts were not merged")
        comm.respond("cookie is set", cookies={"logged_in": user["id"]})

    @EP("/customers/{id}/full", method="GET")
    async def full(self, comm: Communication, id: str) -> None:
        customer, cards, addresses = await asyncio.gather(
            comm.call("Users", "/customers/{id}", {"id": id}),
            comm.call("Users", "/cards/{id}", {"id": id}),
            comm.call("Users", "/addresses/{id}", {"id": id}),
        )
        comm.respond({**customer, "cards": cards, "addresses": addresses})


class Orders(MS):
    runtime = "async"

    @EP("/search")
    async def search(self, comm: Communication, customer: str = "") -> None:
        rows = await comm.query("orders", "of_customer", "orders", {"customer": customer})
        if rows:
            comm.respond(rows)
        else:
            comm.respond({"error": "none"}, status=404)

    @EP("/orders", method="POST", name="place")
    async def place(self, comm: Communication) -> None:
        order = dict(comm.params)
        if not order.get("address") or not order.get("card"):
            comm.respond({"error": "invalid order"}, status=406)
            return
        payment = await comm.call("PaymentAuth", "/paymentAuth", {"amount": 5})
        if not payment["authorised"]:
            comm.respond({"error": "payment declined"}, status=406)
            return
        shipment = comm.call("Shipping", "/shipping", {"name": order["customer"]})
        order["shipment"] = await shipment
        await comm.query("orders", "insert", "orders", {"$insert": [order]})
        comm.respond(order, status=201)

    @EP("/orders/{id}", method="GET", name="order")
    async def one(self, comm: Communication, id: str) -> None:
        rows = await comm.query("orders", "by_id", "orders", {"_id": id})
        comm.respond(rows[0] if rows else None, status=200 if rows else 404)


class Users(MS):
    runtime = "async"

    @EP("/customers/{id}")
    async def customer(self, comm: Communication, id: str) -> None:
        (row,) = await comm.query("users", "customer", "customers", {"_id": id})
        comm.respond(row)

    @EP("/addresses/{id}")
    async def address(self, comm: Communication, id: str) -> None:
        comm.respond((await comm.query("users", "address", "addresses", {"_id": id}))[0])

    @EP("/cards/{id}")
    async def card(self, comm: Communication, id: str) -> None:
        rows = await comm.query("users", "card", "cards", {"_id": id})
        for row in rows:
            row["number"] = "*" * 12 + row["number"][-4:]
        comm.respond(rows)

    @EP("/login")
    async def login(self, comm: Communication, authorization: str) -> None:
        if not authorization.startswith("Basic "):
            comm.respond({"error": "unauthorized"}, status=401)
            return
        rows = await comm.query("users", "by_login", "customers", {"login": authorization[6:]})
        if len(rows) != 1:
            comm.respond({"error": "unauthorized"}, status=401)
            return
        comm.respond({"id": rows[0]["_id"]})


class Catalogue(MS):
    runtime = "async"

    @EP("/catalogue")
    async def list(self, comm: Communication, page: int = 1, size: int = 6, tags: str = "") -> None:
        query = {"tag": {"$in": tags.split(",")}} if tags else {}
        rows = await comm.query("catalogue", "list", "socks", query)
        comm.respond(rows[(page - 1) * size : page * size])

    @EP("/catalogue/{id}")
    async def one(self, comm: Communication, id: str) -> None:
        rows = await comm.query("catalogue", "one", "socks", {"_id": id})
        if not rows:
            return comm.respond({"error": "not found"}, 404)
        comm.respond(rows[0])


class Carts(MS):
    runtime = "async"

    @EP("/carts/{customer}/items", method="POST")
    async def add(self, comm: Communication, customer: str, item: str, price: float) -> None:
        rows = await comm.query("carts", "cart", "carts", {"_id": customer})
        items = rows[0]["items"] if rows else []
        items.append({"item": item, "price": price})
        change = {"filter": {"_id": customer}, "update": {"$set": {"items": items}}, "upsert": True}
        await comm.query("carts", "save", "carts", {"$update": change})
        comm.respond({"status": "created"}, status=201)

    @EP("/carts/{customer}", method="DELETE")
    async def delete(self, comm: Communication, customer: str) -> None:
        await comm.query("carts", "delete", "carts", {"$delete": {"filter": {"_id": customer}}})
        comm.respond(None, status=204)

    @EP("/merge")
    async def merge(self, comm: Communication, customer: str, session: str) -> None:
        if customer == session:
            comm.respond(None, 204)
            return
        old, new = await asyncio.gather(
            comm.query("carts", "cart", "carts", {"_id": session}),
            comm.query("carts", "cart", "carts", {"_id": customer}),
        )
        if not old:
            comm.respond(None, 204)
            return
        items = [i for cart in (*old, *new) for i in cart["items"]]
        change = {"filter": {"_id": customer}, "update": {"$set": {"items": items}}, "upsert": True}
        await asyncio.gather(
            comm.query("carts", "save", "carts", {"$update": change}),
            comm.query("carts", "delete", "carts", {"$delete": {"filter": {"_id": session}}}),
        )
        comm.respond(None, 202)


class PaymentAuth(MS):
    @EP("/paymentAuth")
    def auth(self, comm: Communication, amount: float) -> None:
        if amount <= 0:
            comm.respond({"authorised": False, "message": "zero"})
        elif amount > 100:
            comm.respond({"authorised": False, "message": "over limit"})
        else:
            comm.respond({"authorised": True})


class Shipping(MS):
    @EP("/shipping")
    def ship(self, comm: Communication) -> None:
        comm.respond({"id": comm.request_id}, status=201)
