"""Carts and orders. A cart belongs to the browser: it comes with a request and goes back with the answer."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

import msgspec

from mup import EP, MS, Communication


class Line(msgspec.Struct, rename="camel"):
    """One line of a cart."""

    product: dict[str, Any]
    item: dict[str, Any]
    in_stock: bool
    quantity: int
    total: float


class Cart(msgspec.Struct, rename="camel"):
    """What a customer is about to buy."""

    item_list: list[Line] = []
    sub_total: float = 0.0

    def add_up(self) -> None:
        """Compute all totals."""
        for line in self.item_list:
            line.total = round(line.quantity * line.item["listPrice"], 2)
        self.sub_total = round(sum(line.total for line in self.item_list), 2)


class Change(msgspec.Struct, rename="camel"):
    """A cart, and the item it is about."""

    cart: Cart
    working_item_id: str


class Quantities(msgspec.Struct):
    """A cart, and how many of each item there should be: texts, as a form has them."""

    cart: Cart
    data: dict[str, str]


class Order(msgspec.Struct):
    """A filled-in form, what to buy, and the buyer."""

    form: dict[str, str]
    cart: Cart
    username: str


class CartService(MS):
    """Changes carts, and keeps what became an order."""

    pool_size = 1
    port = 9120

    @EP("/add", method="POST")
    def add(self, comm: Communication, change: Change) -> None:
        """Append a line for an item, also if there is one already."""
        found = comm.call("catalog", "/getItem/", {"itemId": change.working_item_id}).get(check=False)
        if found.status != 200:
            comm.respond(found.body, status=found.status)
            return
        change.cart.item_list.append(Line(**found.body, in_stock=True, quantity=1, total=0.0))
        change.cart.add_up()
        comm.respond(change.cart)

    @EP("/remove", method="POST")
    def remove(self, comm: Communication, change: Change) -> None:
        """Remove all lines of an item."""
        lines = change.cart.item_list
        lines[:] = [line for line in lines if line.item["itemId"] != change.working_item_id]
        change.cart.add_up()
        comm.respond(change.cart)

    @EP("/update", method="POST")
    def update(self, comm: Communication, change: Quantities) -> None:
        """Set quantities; a line with none is removed."""
        lines = change.cart.item_list
        for line in lines:
            wanted = change.data.get(line.item["itemId"], "")
            if wanted.isdecimal():
                line.quantity = int(wanted)
        lines[:] = [line for line in lines if line.quantity > 0]
        change.cart.add_up()
        comm.respond(change.cart)

    @EP("/order", method="POST")
    def order(self, comm: Communication, order: Order) -> None:
        """Keep an order and its lines; return its number."""
        number = secrets.randbits(48)
        header = {
            "_id": number,
            "userid": order.username,
            "orderdate": datetime.now(UTC).date().isoformat(),
            "totalprice": order.cart.sub_total,
            **order.form,
        }
        comm.query("jps", "insertOrder", "orders", {"$command": "insert", "documents": [header]}).get()
        for index, line in enumerate(order.cart.item_list, start=1):
            row = {
                "_id": f"{number}-{index}",
                "orderid": number,
                "linenum": index,
                "itemid": line.item["itemId"],
                "quantity": line.quantity,
                "unitprice": line.item["listPrice"],
            }
            comm.query("jps", "insertLine", "lineitem", {"$command": "insert", "documents": [row]}).get()
        comm.respond({"orderId": number})

    @EP("/getorder", method="GET")
    def get_order(self, comm: Communication, number: int) -> None:
        """Return an order with its lines."""
        orders = comm.query("jps", "findOrder", "orders", {"_id": number}).get()
        if not orders:
            comm.respond({"error": f"no order {number}"}, status=404)
            return
        rows = {"$command": "find", "filter": {"orderid": number}, "sort": {"linenum": 1}}
        lines = comm.query("jps", "linesOfOrder", "lineitem", rows).get()
        for line in lines:
            item = comm.query("jps", "itemOfLine", "item", {"_id": line["itemid"]}).get()[0]
            product = comm.query("jps", "productOfLine", "product", {"_id": item["productid"]}).get()[0]
            line["description"] = f"{item['attr1']} {product['name']}"
        comm.respond({"order": orders[0], "lines": lines})

    @EP("/getorders", method="GET")
    def get_orders(self, comm: Communication, username: str) -> None:
        """Return the orders of a user."""
        comm.respond(comm.query("jps", "ordersOfUser", "orders", {"userid": username}).get())
