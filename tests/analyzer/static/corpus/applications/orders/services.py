import functools
import itertools
import random
import time
from operator import itemgetter

from core import (
    CallError,
    CallTimeoutError,
    Conflict,
    DomainError,
    HttpGateway,
    MupError,
    NotFound,
    OrderState,
    Repository,
    Saga,
    TtlCache,
    chunks,
    handled,
    log,
    requires,
    transaction,
    walk_tree,
)
from mup import EP, MS, Communication


class Orders(MS):
    pool_size = 4

    def setup(self) -> None:
        self.cache = TtlCache(5.0)
        self.limits = {"free": 3, "pro": 30}
        self._transitions = {
            OrderState.NEW: (OrderState.PAID, OrderState.CANCELLED),
            OrderState.PAID: (OrderState.SHIPPED, OrderState.CANCELLED),
        }

    @EP("/orders/{key}", method="GET")
    @handled
    def get(self, comm: Communication, key: str) -> None:
        order = Repository(comm, "orders").one(key)
        order["customer"] = HttpGateway(comm, "Customers").fetch(order["customer"])
        comm.respond(order)

    @EP("/orders", method="POST")
    @handled
    @requires("customer")
    def create(self, comm: Communication, items: list, customer: str = "") -> None:
        if not items:
            raise DomainError("no items", detail={"field": "items"})
        stock = comm.call("Stock", "/levels", {"skus": [i["sku"] for i in items]}).get()
        missing = [i["sku"] for i in items if stock.get(i["sku"], 0) < i.get("n", 1)]
        if missing:
            raise Conflict("out of stock", detail={"missing": missing})
        with transaction(comm):
            Repository(comm, "orders").save({"items": items, "customer": customer, "state": "new"})
            for item in items:
                comm.query("shop", "take", "stock", {"sku": item["sku"]}).get()
        comm.respond({"ok": True}, status=201)

    @EP("/orders/{key}/state", method="POST")
    @handled
    def move(self, comm: Communication, key: str, state: str) -> None:
        order = Repository(comm, "orders").one(key)
        try:
            wanted = OrderState(state)
        except ValueError:
            raise DomainError(f"no state {state}") from None
        if wanted not in self._transitions.get(OrderState(order["state"]), ()):
            raise Conflict(f"cannot go from {order['state']} to {state}")
        handler = {
            OrderState.PAID: self._pay,
            OrderState.SHIPPED: self._ship,
            OrderState.CANCELLED: self._cancel,
        }[wanted]
        handler(comm, order)
        comm.respond({"state": wanted.value})

    def _pay(self, comm, order):
        comm.call("Payment", "/charge", {"order": order["_id"]}).get()
        self._note(comm, order, "paid")

    def _ship(self, comm, order):
        label, slot = comm.call("Shipping", "/label", {}), comm.call("Shipping", "/slot", {})
        self._note(comm, order, f"{label.get()} {slot.get()}")

    def _cancel(self, comm, order):
        if order["state"] == "paid":
            comm.call("Payment", "/refund", {"order": order["_id"]}).get()
        self._note(comm, order, "cancelled")

    def _note(self, comm, order, text):
        comm.query("shop", "note", "orders", {"filter": order["_id"], "text": text}).get()

    @EP("/checkout", method="POST")
    def checkout(self, comm: Communication, cart: str) -> None:
        saga = Saga(comm)
        try:
            saga.step(
                lambda: comm.call("Stock", "/reserve", {"cart": cart}).get(),
                lambda: comm.call("Stock", "/release", {"cart": cart}).get(),
            )
            saga.step(
                lambda: comm.call("Payment", "/charge", {"cart": cart}).get(),
                lambda: comm.call("Payment", "/refund", {"cart": cart}).get(),
            )
            saga.step(lambda: comm.call("Shipping", "/label", {"cart": cart}).get())
        except CallError as error:
            saga.compensate()
            comm.respond({"error": str(error)}, status=409)
            return
        comm.respond({"ok": True})

    @EP("/customers/{key}", method="GET")
    def customer(self, comm: Communication, key: str) -> None:
        found = self.cache.get(key)
        if found is None:
            found = comm.call("Customers", "/item", {"key": key}).get()
            self.cache.put(key, found)
        comm.respond(found)

    @EP("/export", method="GET")
    def export(self, comm: Communication) -> None:
        total = 0
        for order in Repository(comm, "orders"):
            total += len(order.get("items", ()))
        comm.respond({"items": total})

    @EP("/import", method="POST")
    def bulk(self, comm: Communication, rows: list) -> None:
        saved = failed = 0
        for chunk in chunks(rows, 50):
            try:
                comm.query("shop", "bulk", "orders", {"$insert": chunk}).get()
            except MupError:
                failed += len(chunk)
            else:
                saved += len(chunk)
        comm.respond({"saved": saved, "failed": failed}, status=207 if failed else 200)

    @EP("/tree/{root}", method="GET")
    def tree(self, comm: Communication, root: str) -> None:
        comm.respond(sorted(walk_tree(comm, root)))

    @EP("/quote", method="POST")
    def quote(self, comm: Communication, sku: str, plan: str = "free") -> None:
        n = self.limits.get(plan, 1)
        offers = [comm.call("Vendors", "/offer", {"sku": sku, "n": i}) for i in range(n)]
        best = None
        for offer in offers:
            try:
                price = offer.get()["price"]
            except MupError:
                continue
            best = price if best is None else min(best, price)
        if best is None:
            comm.respond({"error": "no offers"}, status=503)
        else:
            comm.respond({"price": best})

    @EP("/poll/{job}", method="GET")
    def poll(self, comm: Communication, job: str) -> None:
        delay = 0.05
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            state = comm.call("Jobs", "/state", {"job": job}).get()
            if state["done"]:
                comm.respond(state)
                return
            time.sleep(delay)
            delay = min(delay * 2, 1)
        comm.respond({"error": "not done"}, status=202)

    @EP("/top", method="GET")
    def top(self, comm: Communication, n: int = 3) -> None:
        scores = comm.query("shop", "scores", "scores", {}).get()
        best = sorted(scores, key=itemgetter("score"), reverse=True)[:n]
        names = {s["id"]: comm.call("Customers", "/item", {"key": s["id"]}) for s in best}
        comm.respond([{**s, **names[s["id"]].get()} for s in best])

    @EP("/available/{sku}", method="GET")
    def available(self, comm: Communication, sku: str) -> None:
        shops = ("north", "south", "east")
        found = next(
            (
                shop
                for shop in shops
                if comm.call("Stock", "/level", {"shop": shop, "sku": sku}).get()["n"] > 0
            ),
            None,
        )
        if found is None:
            comm.respond({"error": "nowhere"}, status=404)
        else:
            comm.respond({"shop": found})

    @EP("/health", method="GET")
    def health(self, comm: Communication) -> None:
        checks = {
            "db": lambda: comm.query("shop", "ping", "tx", {}).get(),
            "stock": lambda: comm.call("Stock", "/ping", {}).get(),
            "payment": lambda: comm.call("Payment", "/ping", {}).get(),
        }
        report = {}
        for name, check in checks.items():
            try:
                check()
                report[name] = "up"
            except MupError as error:
                report[name] = f"down: {error}"
        status = 200 if all(v == "up" for v in report.values()) else 503
        comm.respond(report, status=status)

    @EP("/dispatch/{kind}", method="POST")
    def dispatch(self, comm: Communication, kind: str) -> None:
        method = getattr(self, "handle_" + kind.replace("-", "_"), None)
        if method is None:
            comm.respond({"error": "unknown"}, status=404)
            return
        comm.respond(method(comm))

    def handle_price_change(self, comm):
        comm.query("shop", "price", "prices", {}).get()
        return {"ok": 1}

    def handle_restock(self, comm):
        f = comm.call("Stock", "/restock", {})
        comm.query("shop", "restock", "stock", {}).get()
        return f.get()

    @EP("/batch", method="POST")
    def batch(self, comm: Communication, keys: list) -> None:
        results = {}
        for group in itertools.batched(keys, 10) if hasattr(itertools, "batched") else chunks(keys, 10):
            futures = [(k, comm.call("Customers", "/item", {"key": k})) for k in group]
            results.update({k: f.get() for k, f in futures})
        comm.respond(results)

    @EP("/match/{key}", method="GET")
    def match(self, comm: Communication, key: str) -> None:
        answer = comm.call("Customers", "/item", {"key": key}).get(check=False)
        match answer.status:
            case 200:
                comm.respond(answer.body)
            case 404 | 410:
                comm.query("shop", "forget", "customers", {"_id": key}).get()
                comm.respond({"error": "gone"}, status=404)
            case status if status >= 500:
                backup = comm.call("CustomersBackup", "/item", {"key": key}).get()
                comm.respond(backup)
            case _:
                comm.respond({"error": "?"}, status=500)

    @EP("/lottery", method="GET")
    def lottery(self, comm: Communication) -> None:
        if random.random() < 0.1:
            comm.call("Audit", "/sample", {})
        winners = [w for w in comm.query("shop", "tickets", "tickets", {}).get() if random.random() < 0.5]
        comm.respond(winners)

    @EP("/report/{year}", method="GET")
    def report(self, comm: Communication, year: int) -> None:
        months = [comm.query("shop", "month", "orders", {"year": year, "month": m}) for m in range(1, 13)]
        totals = list(map(lambda f: sum(r.get("total", 0) for r in f.get()), months))
        comm.respond({"year": year, "total": sum(totals), "best": max(range(12), key=totals.__getitem__) + 1})

    @EP("/sync", method="POST")
    def sync(self, comm: Communication, sources: list | None = None) -> None:
        comm.respond({"accepted": True}, status=202)
        for source in sources or ["a", "b"]:
            try:
                rows = comm.call("Feeds", "/pull", {"source": source}).get()
            except CallTimeoutError:
                log.info("skip %s", source)
                continue
            if rows:
                comm.query("shop", "merge", "feed", {"$insert": rows}).get()

    @EP("/discount", method="POST")
    def discount(self, comm: Communication, code: str = "", total: float = 0.0) -> None:
        rules = [self._coupon, self._loyalty, functools.partial(self._volume, threshold=100)]
        best = max((rule(comm, code, total) for rule in rules), default=0)
        comm.respond({"discount": best})

    def _coupon(self, comm, code, total):
        if not code:
            return 0
        rows = comm.query("shop", "coupon", "coupons", {"_id": code}).get()
        return rows[0].get("percent", 0) * total / 100 if rows else 0

    def _loyalty(self, comm, code, total):
        return comm.call("Customers", "/loyalty", {}).get().get("bonus", 0)

    def _volume(self, comm, code, total, threshold):
        return total * 0.05 if total > threshold else 0


class Customers(MS):
    @EP("/item")
    def item(self, comm: Communication, key: str = "") -> None:
        rows = comm.query("crm", "one", "customers", {"_id": key}).get()
        comm.respond(rows[0] if rows else {}, status=200 if rows else 404)

    @EP("/loyalty")
    def loyalty(self, comm: Communication) -> None:
        comm.respond({"bonus": 1})
