from http import HTTPStatus

import msgspec

from lib import Problem, clients, endpoint_errors, paged, require
from lib.clients import Pricing, Stock, Users
from mup import EP, MS, Communication
from mup.errors import CallError, CommunicationError, MupError, QueryError


class Line(msgspec.Struct):
    sku: str
    n: int = 1


class Cart(msgspec.Struct, kw_only=True):
    lines: list[Line] = []
    coupon: str | None = None


class Mart(MS):
    pool_size = 8

    @EP("/level/{sku}", method="GET")
    @endpoint_errors
    def level(self, comm: Communication, sku: str) -> object:
        return {"n": Stock(comm).level(sku)}

    @EP("/quote/{sku}", method="GET")
    @endpoint_errors
    def quote(self, comm: Communication, sku: str, currency: str = "EUR") -> object:
        try:
            price = Pricing(comm).quote(sku, currency)
        except ValueError as error:
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"no currency {error}") from error
        return {"price": price}

    @EP("/cart", method="POST")
    @endpoint_errors
    def cart(self, comm: Communication, cart: Cart) -> object:
        require(cart.lines, 422, "empty")
        user = Users(comm).me(comm.headers.get("authorization"))
        require(user, 401, "log in")
        stock, held = Stock(comm), []
        try:
            for line in cart.lines:
                require(stock.level(line.sku) >= line.n, 409, f"no {line.sku}")
                held.append(stock.reserve(line.sku, line.n))
        except Problem:
            for id in held:
                stock.release(id)
            raise
        comm.query("mart", "save", "carts", {"$insert": [{"held": held}]}).get()
        return HTTPStatus.CREATED, {"held": held}

    @EP("/any/{sku}", method="GET")
    def by_attribute(self, comm: Communication, sku: str) -> None:
        comm.respond({"n": clients(comm).stock.level(sku)})

    @EP("/orders", method="GET")
    @endpoint_errors
    def orders(self, comm: Communication) -> object:
        def fetch(page: int) -> list:
            return comm.query("mart", "orders", "orders", {"page": page}).get()

        return [o["_id"] for o in paged(fetch) if o.get("open")]

    @EP("/orders/{id}", method="GET")
    def order(self, comm: Communication, id: str) -> None:
        etag = comm.headers.get("if-none-match")
        rows = comm.query("mart", "order", "orders", {"_id": id}).get()
        match rows, etag:
            case [], _:
                comm.respond({"detail": "no order"}, status=404)
            case [{"version": version}], seen if str(version) == seen:
                comm.respond(status=304)
            case [order], _:
                order["lines"] = comm.query("mart", "lines", "lines", {"order": id}).get()
                comm.respond(order, headers={"ETag": str(order.get("version", 0))})
            case _:
                comm.respond({"detail": "twice"}, status=500)

    @EP("/orders/{id}/{action}", method="POST")
    @endpoint_errors
    def act(self, comm: Communication, id: str, action: str) -> object:
        try:
            method = getattr(self, f"_do_{action}")
        except AttributeError:
            raise Problem(404, f"no action {action}") from None
        return method(comm, id)

    def _do_pay(self, comm, id):
        from lib.clients import ServiceClient

        class Bank(ServiceClient):
            name = "Bank"

        return Bank(comm).post("/pay", {"id": id})

    def _do_cancel(self, comm, id):
        rows = comm.query("mart", "held", "carts", {"order": id}).get()
        stock = Stock(comm)
        for row in rows:
            for held in row.get("held", ()):
                stock.release(held)
        return {"cancelled": len(rows)}

    @EP("/import", method="POST")
    def bulk(self, comm: Communication, rows: list) -> None:
        good, bad = [], []
        for row in rows:
            (good if row.get("sku") else bad).append(row)
        results = {"bad": len(bad)}
        if good:
            try:
                answer = comm.query("mart", "bulk", "items", {"$insert": good}).get()
            except QueryError as error:
                comm.respond({"detail": str(error)}, status=500)
                return
            results["good"] = len(answer)
        comm.respond(results, status=207 if bad else 200)

    @EP("/compare", method="GET")
    def compare(self, comm: Communication, sku: str = "a") -> None:
        prices = {c: comm.call("Pricing", "/quote", {"sku": sku, "currency": c}) for c in ("EUR", "USD")}
        try:
            eur, usd = (prices[c].get()["price"] for c in ("EUR", "USD"))
        except (CallError, KeyError):
            comm.respond({"detail": "no price"}, status=404)
            return
        comm.respond({"ratio": eur / usd})

    @EP("/warm", method="POST")
    def warm(self, comm: Communication) -> None:
        skus = comm.query("mart", "popular", "items", {}).get()
        comm.respond({"warming": len(skus)}, status=202)
        missed = 0
        for row in skus[:50]:
            try:
                comm.call("Pricing", "/quote", {"sku": row["_id"]}).get()
            except MupError:
                missed += 1
            if missed > 3:
                break
        else:
            comm.query("mart", "warmed", "runs", {"$insert": [{"missed": missed}]}).get()

    @EP("/feed.xml", method="GET")
    def feed(self, comm: Communication) -> None:
        items = comm.query("mart", "new", "items", {"limit": 10}).get()
        lines = ["<rss>", *(f"<item>{i['_id']}</item>" for i in items), "</rss>"]
        comm.respond("\n".join(lines), headers={"Content-Type": "application/rss+xml"})
