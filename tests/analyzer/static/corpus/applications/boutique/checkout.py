import logging
import uuid
from dataclasses import dataclass

import msgspec
from mup import EP, MS, Communication
from mup.errors import CommunicationError

log = logging.getLogger(__name__)


class Unavailable(Exception):
    pass


class Address(msgspec.Struct):
    street: str
    city: str = ""


class PlaceOrder(msgspec.Struct):
    user: str
    currency: str
    address: Address
    card: str
    email: str = ""


@dataclass
class Money:
    currency: str
    units: float

    def __add__(self, other: "Money") -> "Money":
        if self.currency != other.currency:
            raise ValueError("mismatching currencies")
        return Money(self.currency, self.units + other.units)

    def times(self, n: int) -> "Money":
        return Money(self.currency, self.units * n)


@dataclass
class Prepared:
    items: list
    cart: list
    shipping: Money


class Clients:
    """What checkout needs from others."""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def cart(self, user: str) -> list:
        try:
            return self._comm.call("CartService", "/cart", {"user": user}).get()
        except CommunicationError as error:
            raise Unavailable("cart failure") from error

    def product(self, id: str) -> dict:
        try:
            return self._comm.call("ProductCatalog", "/product", {"id": id}).get()
        except CommunicationError as error:
            raise Unavailable(f"failed to get product {id}") from error

    def convert(self, money: Money, currency: str) -> Money:
        params = {"from": money.currency, "units": money.units, "to": currency}
        try:
            answer = self._comm.call("Currency", "/convert", params).get()
        except CommunicationError as error:
            raise Unavailable("failed to convert currency") from error
        return Money(currency, answer["units"])

    def quote(self, address: Address, items: list) -> Money:
        try:
            answer = self._comm.call("Shipping", "/quote", {"city": address.city, "count": len(items)}).get()
        except CommunicationError as error:
            raise Unavailable("shipping quote failure") from error
        return Money("USD", answer["cost"])

    def charge(self, amount: Money, card: str) -> str:
        params = {"amount": amount.units, "currency": amount.currency, "card": card}
        return self._comm.call("Payment", "/charge", params).get()["transaction"]

    def ship(self, address: Address, items: list) -> str:
        return self._comm.call("Shipping", "/ship", {"city": address.city, "items": items}).get()["tracking"]

    def empty_cart(self, user: str) -> None:
        self._comm.call("CartService", "/empty", {"user": user}).get()

    def confirm(self, email: str, order: dict) -> None:
        self._comm.call("Email", "/confirmation", {"email": email, "order": order}).get()


class Checkout(MS):
    pool_size = 8

    @EP("/order", method="POST")
    def place(self, comm: Communication, order: PlaceOrder) -> None:
        clients = Clients(comm)
        id = uuid.uuid4().hex
        try:
            prepared = self._prepare(clients, order)
        except Unavailable as error:
            comm.respond({"error": str(error)}, status=500)
            return
        total = Money(order.currency, 0) + prepared.shipping
        for item in prepared.items:
            total = total + item["cost"].times(item["quantity"])
        try:
            transaction = clients.charge(total, order.card)
        except CommunicationError as error:
            comm.respond({"error": f"failed to charge card: {error}"}, status=500)
            return
        log.info("payment went through: %s", transaction)
        try:
            tracking = clients.ship(order.address, prepared.cart)
        except CommunicationError as error:
            comm.respond({"error": f"shipping error: {error}"}, status=503)
            return
        try:
            clients.empty_cart(order.user)
        except CommunicationError:
            log.warning("the cart is not empty")
        result = {"id": id, "tracking": tracking}
        try:
            clients.confirm(order.email, result)
        except CommunicationError:
            log.warning("failed to send order confirmation to %r", order.email)
        else:
            log.info("order confirmation email sent")
        comm.respond(result)

    def _prepare(self, clients: Clients, order: PlaceOrder) -> Prepared:
        cart = clients.cart(order.user)
        items = self._items(clients, cart, order.currency)
        shipping = clients.convert(clients.quote(order.address, cart), order.currency)
        return Prepared(items, cart, shipping)

    def _items(self, clients: Clients, cart: list, currency: str) -> list:
        items = []
        for line in cart:
            product = clients.product(line["product"])
            price = clients.convert(Money("USD", product["price"]), currency)
            items.append({"quantity": line["quantity"], "cost": price})
        return items

    @EP("/preview", method="POST")
    def preview(self, comm: Communication, order: PlaceOrder) -> None:
        try:
            prepared = self._prepare(Clients(comm), order)
        except Unavailable as error:
            return comm.respond({"error": str(error)}, status=500)
        comm.respond({"shipping": prepared.shipping.units, "items": len(prepared.items)})


class CartService(MS):
    @EP("/cart")
    def cart(self, comm: Communication, user: str) -> None:
        comm.respond(comm.query("carts", "of_user", "carts", {"user": user}).get())

    @EP("/empty")
    def empty(self, comm: Communication, user: str) -> None:
        comm.query("carts", "empty", "carts", {"$delete": {"filter": {"user": user}}}).get()
        comm.respond({})


class ProductCatalog(MS):
    @EP("/product")
    def product(self, comm: Communication, id: str) -> None:
        for product in comm.query("products", "all", "products", {}).get():
            if product["_id"] == id:
                comm.respond(product)
                return
        comm.respond({"error": f"no product with ID {id}"}, status=404)


class Currency(MS):
    RATES = {"EUR": 1.0, "USD": 1.13, "JPY": 126.4}

    @EP("/convert")
    def convert(self, comm: Communication) -> None:
        p = comm.params
        try:
            euros = p["units"] / self.RATES[p["from"]]
            comm.respond({"units": round(euros * self.RATES[p["to"]], 2)})
        except KeyError as error:
            comm.respond({"error": f"unknown currency {error}"}, status=400)

    @EP("/currencies", method="GET")
    def currencies(self, comm: Communication) -> None:
        comm.respond(sorted(self.RATES))


class Shipping(MS):
    @EP("/quote")
    def quote(self, comm: Communication, count: int = 0) -> None:
        comm.respond({"cost": 8.99 if count else 0})

    @EP("/ship")
    def ship(self, comm: Communication) -> None:
        comm.respond({"tracking": f"{uuid.uuid4()}"})


class Payment(MS):
    @EP("/charge")
    def charge(self, comm: Communication, amount: float, card: str) -> None:
        digits = [int(c) for c in card if c.isdigit()]
        if len(digits) < 4 or sum(digits) % 2:
            comm.respond({"error": "invalid card"}, status=400)
            return
        comm.respond({"transaction": f"{uuid.uuid4()}"})


class Email(MS):
    @EP("/confirmation")
    def confirmation(self, comm: Communication, email: str = "") -> None:
        if "@" not in email:
            raise ValueError("no address")
        comm.respond({})
