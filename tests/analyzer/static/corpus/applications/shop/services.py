import logging
import random
import time
import uuid

from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, CommunicationError, MupError

logger = logging.getLogger("shop")


class Payment(MS):
    @EP("/health", method="GET")
    def health(self, comm: Communication) -> None:
        comm.respond("OK")

    @EP("/pay/{user}", method="POST")
    def pay(self, comm: Communication, user: str) -> None:
        logger.info("payment for %s", user)
        cart = comm.params
        answer = comm.call("Gateway", "/authorise", {"total": cart.get("total", 0)}).get(check=False)
        logger.info("gateway returned %s", answer.status)
        order = str(uuid.uuid4())
        self.queue(comm, {"order": order, "user": user, "items": cart.get("items", [])})
        if not user.startswith("anonymous"):
            history = comm.call("User", "/order/{user}", {"user": user, "order": order}).get(check=False)
            logger.info("order history returned %s", history.status)
        comm.call("Cart", "/cart/{user}", {"user": user}, method="DELETE").get(check=False)
        comm.respond({"order": order})

    def queue(self, comm, order):
        comm.call("Dispatch", "/queue", order)


class Gateway(MS):
    @EP("/authorise", method="POST")
    def authorise(self, comm: Communication) -> None:
        time.sleep(0.01)
        comm.respond({"authorised": random.random() < 2})


class Dispatch(MS):
    @EP("/queue", method="POST")
    def queue(self, comm: Communication) -> None:
        comm.respond({"queued": True}, status=202)
        comm.query("dispatch", "insert", "orders", {"$insert": [dict(comm.params)]}).get()


class User(MS):
    @EP("/user/{name}", method="GET")
    def user(self, comm: Communication, name: str) -> None:
        users = comm.query("users", "by_name", "users", {"name": name}).get()
        if len(users) == 1:
            comm.respond(users[0])
        else:
            comm.respond({"error": "user not found"}, status=404)

    @EP("/users", method="GET")
    def users(self, comm: Communication) -> None:
        comm.respond(comm.query("users", "all", "users", {}).get())

    @EP("/order/{user}", method="POST")
    def order(self, comm: Communication, user: str) -> None:
        rows = comm.query("users", "by_name", "users", {"name": user}).get()
        if not rows:
            comm.respond({"error": "name not found"}, status=404)
            return
        history = comm.query("users", "history", "orders", {"name": user}).get()
        if history:
            change = {
                "$update": {"filter": {"name": user}, "update": {"$push": {"history": dict(comm.params)}}}
            }
            comm.query("users", "append_history", "orders", change).get()
        else:
            first = {"name": user, "history": [dict(comm.params)]}
            comm.query("users", "insert_history", "orders", {"$insert": [first]}).get()
        comm.respond("OK")

    @EP("/history/{user}", method="GET")
    def history(self, comm: Communication, user: str) -> None:
        rows = comm.query("users", "history", "orders", {"name": user}).get()
        comm.respond(rows[0] if rows else {"history": []})

    @EP("/uniqueid", method="GET")
    def uniqueid(self, comm: Communication) -> None:
        comm.respond({"uuid": f"anonymous-{uuid.uuid4().hex[:6]}"})


class Catalogue(MS):
    pool_size = 4

    @EP("/products", method="GET")
    def products(self, comm: Communication) -> None:
        comm.respond(comm.query("catalogue", "products", "products", {}).get())

    @EP("/product/{sku}", method="GET")
    def product(self, comm: Communication, sku: str) -> None:
        time.sleep(0.001)
        found = comm.query("catalogue", "by_sku", "products", {"sku": sku}).get()
        if found:
            comm.respond(found[0])
        else:
            comm.respond({"error": "SKU not found"}, status=404)

    @EP("/categories", method="GET")
    def categories(self, comm: Communication) -> None:
        rows = comm.query("catalogue", "products", "products", {}).get()
        comm.respond(sorted({c for row in rows for c in row.get("categories", ())}))

    @EP("/search/{text}", method="GET")
    def search(self, comm: Communication, text: str) -> None:
        comm.respond(comm.query("catalogue", "search", "products", {"name": {"$regex": text}}).get())


class Cart(MS):
    def _load(self, comm, user):
        rows = comm.query("carts", "load", "carts", {"_id": user}).get()
        return rows[0] if rows else None

    def _save(self, comm, user, cart):
        cart["total"] = sum(i["price"] * i["qty"] for i in cart["items"])
        change = {"filter": {"_id": user}, "update": {"$set": cart}, "upsert": True}
        comm.query("carts", "save", "carts", {"$update": change}).get()
        return cart

    @EP("/cart/{user}", method="GET")
    def get(self, comm: Communication, user: str) -> None:
        cart = self._load(comm, user)
        if cart is None:
            comm.respond({"error": "cart not found"}, status=404)
        else:
            comm.respond(cart)

    @EP("/cart/{user}", method="DELETE")
    def delete(self, comm: Communication, user: str) -> None:
        comm.query("carts", "delete", "carts", {"$delete": {"filter": {"_id": user}}}).get()
        comm.respond("OK")

    @EP("/rename/{old}/{new}", method="POST")
    def rename(self, comm: Communication, old: str, new: str) -> None:
        cart = self._load(comm, old)
        if cart is None:
            comm.respond({"error": "cart not found"}, status=404)
            return
        comm.respond(self._save(comm, new, cart))

    @EP("/add/{user}/{sku}/{qty}", method="POST")
    def add(self, comm: Communication, user: str, sku: str, qty: int) -> None:
        if qty < 1:
            comm.respond({"error": "quantity has to be greater than zero"}, status=400)
            return
        try:
            product = comm.call("Catalogue", "/product/{sku}", {"sku": sku}).get()
        except CallError as error:
            comm.respond({"error": "product not found"}, status=404 if error.status == 404 else 500)
            return
        if not product.get("instock", 0):
            comm.respond({"error": "out of stock"}, status=404)
            return
        cart = self._load(comm, user) or {"items": []}
        for item in cart["items"]:
            if item["sku"] == sku:
                item["qty"] += qty
                break
        else:
            cart["items"].append({"sku": sku, "qty": qty, "price": product["price"]})
        comm.respond(self._save(comm, user, cart))

    @EP("/update/{user}/{sku}/{qty}", method="POST")
    def update(self, comm: Communication, user: str, sku: str, qty: int) -> None:
        if qty < 0:
            return comm.respond({"error": "negative quantity"}, status=400)
        cart = self._load(comm, user)
        if not cart:
            return comm.respond({"error": "cart not found"}, status=404)
        match = [i for i in cart["items"] if i["sku"] == sku]
        if not match:
            return comm.respond({"error": "not in cart"}, status=404)
        if qty == 0:
            cart["items"].remove(match[0])
        else:
            match[0]["qty"] = qty
        return comm.respond(self._save(comm, user, cart))

    @EP("/shipping/{user}", method="POST")
    def shipping(self, comm: Communication, user: str) -> None:
        missing = {"distance", "cost", "location"} - comm.params.keys()
        if missing:
            comm.respond({"error": "shipping data missing"}, status=400)
            return
        cart = self._load(comm, user)
        if cart is None:
            comm.respond({"error": "cart not found"}, status=404)
            return
        entry = {"sku": "SHIP", "qty": 1, "price": comm.params["cost"]}
        index = next((i for i, item in enumerate(cart["items"]) if item["sku"] == "SHIP"), None)
        if index is None:
            cart["items"].append(entry)
        else:
            cart["items"][index] = entry
        comm.respond(self._save(comm, user, cart))


class Ratings(MS):
    @EP("/fetch/{sku}", method="GET")
    def fetch(self, comm: Communication, sku: str) -> None:
        rows = comm.query("ratings", "of_sku", "ratings", {"sku": sku}).get()
        comm.respond(rows[0] if rows else {"avg": 0, "count": 0})

    @EP("/rate/{sku}/{score}", method="PUT")
    def rate(self, comm: Communication, sku: str, score: int) -> None:
        score = min(max(score, 1), 5)
        known = comm.call("Catalogue", "/product/{sku}", {"sku": sku}).get(check=False)
        if not known.ok:
            comm.respond({"error": "product not found"}, status=404)
            return
        rows = comm.query("ratings", "of_sku", "ratings", {"sku": sku}).get()
        if rows:
            row = rows[0]
            count = row["count"] + 1
            average = (row["avg"] * row["count"] + score) / count
            query = {
                "$update": {"filter": {"sku": sku}, "update": {"$set": {"avg": average, "count": count}}}
            }
            comm.query("ratings", "update", "ratings", query).get()
        else:
            comm.query(
                "ratings", "insert", "ratings", {"$insert": [{"sku": sku, "avg": score, "count": 1}]}
            ).get()
        comm.respond({"success": True})


class Web(MS):
    runtime = "thread"
    pool_size = 32

    @EP("/page/{sku}", method="GET")
    def page(self, comm: Communication, sku: str) -> None:
        product = comm.call("Catalogue", "/product/{sku}", {"sku": sku})
        rating = comm.call("Ratings", "/fetch/{sku}", {"sku": sku})
        try:
            stars = rating.get(timeout=0.5)
        except CallTimeoutError:
            stars = None
        except MupError:
            logger.warning("no ratings")
            stars = {"avg": 0}
        comm.respond({"product": product.get(), "rating": stars})

    @EP("/checkout/{user}", method="POST")
    def checkout(self, comm: Communication, user: str) -> None:
        cart = comm.call("Cart", "/cart/{user}", {"user": user}, method="GET").get()
        if not any(item["sku"] == "SHIP" for item in cart["items"]):
            comm.respond({"error": "no shipping"}, status=409)
            return
        for attempt in range(3):
            try:
                paid = comm.call("Payment", "/pay/{user}", {"user": user, "total": cart["total"]}).get()
            except CommunicationError:
                time.sleep(0.1 * 2**attempt)
                continue
            comm.respond(paid)
            return
        comm.respond({"error": "payment is not available"}, status=503)
