"""Prices from several shops: blocking code that makes calls first and waits later."""

import functools
import itertools
import operator
from collections import defaultdict
from dataclasses import dataclass

from mup import EP, MS, Communication, MupFuture
from mup.errors import CommunicationError, MupError

SHOPS = ("/north", "/south", "/west")


@dataclass
class Pending:
    sku: str
    future: MupFuture

    def result(self):
        return {"sku": self.sku, **self.future.get()}


class Prices(MS):
    runtime = "thread"
    pool_size = 16

    @EP("/basket", method="POST")
    def basket(self, comm: Communication, skus: list[str]) -> None:
        futures = [comm.call("Stores", "/price", {"sku": sku}) for sku in skus]
        comm.respond([f.get() for f in futures])

    @EP("/basket/dict", method="POST")
    def basket_dict(self, comm: Communication, skus: list[str]) -> None:
        futures = {sku: comm.call("Stores", "/price", {"sku": sku}) for sku in skus}
        prices = {}
        for sku, future in futures.items():
            try:
                prices[sku] = future.get()["price"]
            except CommunicationError:
                prices[sku] = None
        comm.respond(prices)

    @EP("/basket/loop", method="POST")
    def basket_loop(self, comm: Communication, skus: list[str]) -> None:
        pending = []
        for sku in skus:
            if sku.startswith("x"):
                continue
            pending.append((sku, comm.call("Stores", "/price", {"sku": sku})))
        comm.respond({sku: future.get() for sku, future in pending})

    @EP("/basket/objects", method="POST")
    def basket_objects(self, comm: Communication, skus: list[str]) -> None:
        pending = [Pending(sku, comm.call("Stores", "/price", {"sku": sku})) for sku in skus]
        comm.respond([p.result() for p in pending])

    @EP("/basket/three", method="POST")
    def basket_three(self, comm: Communication, skus: list[str]) -> None:
        futures = [comm.call("Stores", "/price", {"sku": sku}) for sku in skus[:3]]
        comm.respond(sum(f.get()["price"] for f in futures))

    @EP("/basket/islice", method="POST")
    def basket_islice(self, comm: Communication, skus: list[str]) -> None:
        futures = [comm.call("Stores", "/price", {"sku": s}) for s in itertools.islice(skus, 3)]
        comm.respond([f.get()["price"] for f in futures])

    @EP("/basket/total", method="POST")
    def basket_total(self, comm: Communication, skus: list[str]) -> None:
        futures = [comm.call("Stores", "/price", {"sku": sku}) for sku in skus]
        comm.respond(functools.reduce(lambda total, f: total + f.get()["price"], futures, 0))

    @EP("/basket/one-by-one", method="POST")
    def one_by_one(self, comm: Communication, skus: list[str]) -> None:
        total = 0
        for sku in skus:
            total += comm.call("Stores", "/price", {"sku": sku}).get()["price"]
        comm.respond(total)

    @EP("/compare/{sku}", method="GET")
    def compare(self, comm: Communication, sku: str) -> None:
        futures = [comm.call("Stores", shop, {"sku": sku}) for shop in SHOPS]
        prices = [f.get()["price"] for f in futures]
        comm.respond({"lowest": min(prices)})

    @EP("/compare/{sku}/tolerant", method="GET")
    def compare_tolerant(self, comm: Communication, sku: str) -> None:
        futures = {shop: comm.call("Stores", shop, {"sku": sku}) for shop in SHOPS}
        prices = {}
        for shop, future in futures.items():
            answer = future.get(check=False)
            if answer.ok:
                prices[shop] = answer.body["price"]
        if not prices:
            comm.respond({"error": "no offer"}, status=404)
            return
        comm.respond(min(prices.items(), key=operator.itemgetter(1)))

    @EP("/compare/{sku}/sorted", method="GET")
    def compare_sorted(self, comm: Communication, sku: str) -> None:
        offers = sorted(
            ((shop, comm.call("Stores", shop, {"sku": sku})) for shop in SHOPS), key=lambda offer: offer[0]
        )
        comm.respond([future.get() for _, future in offers])

    @EP("/compare/{sku}/chained", method="GET")
    def compare_chained(self, comm: Communication, sku: str) -> None:
        near = [comm.call("Stores", shop, {"sku": sku}) for shop in SHOPS[:1]]
        far = [comm.call("Stores", shop, {"sku": sku}) for shop in SHOPS[1:]]
        comm.respond([f.get() for f in itertools.chain(near, far)])

    @EP("/compare/{sku}/reduced", method="GET")
    def compare_reduced(self, comm: Communication, sku: str) -> None:
        futures = [comm.call("Stores", shop, {"sku": sku}) for shop in SHOPS]
        comm.respond(functools.reduce(lambda best, f: min(best, f.get()["price"]), futures, float("inf")))

    @EP("/compare/{sku}/mapped", method="GET")
    def compare_mapped(self, comm: Communication, sku: str) -> None:
        futures = map(lambda shop: comm.call("Stores", shop, {"sku": sku}), SHOPS)
        comm.respond(sum(map(operator.itemgetter("price"), [f.get() for f in list(futures)])))

    @EP("/compare/{sku}/grouped", method="GET")
    def compare_grouped(self, comm: Communication, sku: str, currencies: list[str] = []) -> None:
        futures = defaultdict(list)
        for shop, currency in itertools.product(SHOPS, ("EUR", "USD")):
            futures[currency].append(comm.call("Stores", shop, {"sku": sku, "currency": currency}))
        comm.respond({currency: [f.get()["price"] for f in some] for currency, some in futures.items()})

    @EP("/compare/{sku}/first", method="GET")
    def compare_first(self, comm: Communication, sku: str) -> None:
        futures = [comm.call("Stores", shop, {"sku": sku}) for shop in SHOPS]
        answer = next((f.get() for f in futures), None)
        comm.respond(answer)

    @EP("/compare/{sku}/zip", method="GET")
    def compare_zip(self, comm: Communication, sku: str) -> None:
        futures = [comm.call("Stores", shop, {"sku": sku}) for shop in SHOPS]
        comm.respond({shop: f.get() for shop, f in zip(SHOPS, futures, strict=True)})

    @EP("/pairs", method="POST")
    def pairs(self, comm: Communication, skus: list[str]) -> None:
        """At most three, by a counter."""
        futures = [comm.call("Stores", "/price", {"sku": sku, "rank": n}) for n, sku in zip(range(3), skus)]
        comm.respond([f.get() for f in futures])

    @EP("/chunks", method="POST")
    def chunks(self, comm: Communication, skus: list[str]) -> None:
        """Two at a time."""
        prices = []
        for start in range(0, len(skus), 2):
            futures = [comm.call("Stores", "/price", {"sku": s}) for s in skus[start : start + 2]]
            prices.extend(f.get()["price"] for f in futures)
        comm.respond(prices)

    @EP("/window", method="POST")
    def window(self, comm: Communication, skus: list[str]) -> None:
        """The next call is made before the last one is waited for."""
        prices, last = [], None
        for sku in skus:
            current = comm.call("Stores", "/price", {"sku": sku})
            if last is not None:
                prices.append(last.get())
            last = current
        if last is not None:
            prices.append(last.get())
        comm.respond(prices)

    @EP("/report", method="POST")
    def report(self, comm: Communication, skus: list[str]) -> None:
        prices = [comm.call("Stores", "/price", {"sku": sku}) for sku in skus]
        stock = [comm.query("stock", "level", "levels", {"sku": sku}) for sku in skus]
        rows = []
        for sku, price, level in zip(skus, prices, stock, strict=True):
            try:
                rows.append((sku, price.get()["price"], len(level.get())))
            except MupError:
                rows.append((sku, None, None))
        comm.respond(rows)


class Stores(MS):
    @EP("/price")
    def price(self, comm: Communication, sku: str) -> None:
        rows = comm.query("stock", "price", "prices", {"sku": sku}).get()
        if rows:
            comm.respond({"price": rows[0].get("price", 1)})
        else:
            comm.respond({"error": "no price"}, status=404)

    @EP("/north")
    def north(self, comm: Communication, sku: str) -> None:
        comm.respond({"price": 3})

    @EP("/south")
    def south(self, comm: Communication, sku: str) -> None:
        comm.respond({"price": 4})

    @EP("/west")
    def west(self, comm: Communication, sku: str) -> None:
        comm.respond({"price": 5})
