import itertools
from contextlib import ExitStack, suppress

from base import (
    ALLOWED,
    FEATURES,
    RETRIES,
    Context,
    CrudMixin,
    Point,
    Prices,
    Result,
    Users,
    Visitor,
    audited,
    log,
    safe,
)
from mup import EP, MS, Communication
from mup.errors import CallError, CallTimeoutError, MupError, NoReplicaError


class Accounts(CrudMixin, MS):
    collection = "accounts"


class Legacy(MS):
    runtime = "thread"
    pool_size = 8
    endpoints = ("/primary", "/secondary")

    @EP("/order", method="POST")
    @audited(kind="order")
    def order(self, comm: Communication, user: str, sku: str) -> None:
        with Context(comm, user) as context:
            if not ALLOWED.check(context):
                comm.respond({"error": "not allowed"}, status=403)
                return
            price = context.prices.current(sku=sku)["price"]
            price -= price * context.prices.rebate(user) / 100
            comm.query("legacy", "store", "orders", {"$insert": [{"sku": sku, "price": price}]}).get()
        comm.respond({"price": price})

    @EP("/names", method="POST")
    @audited
    def names(self, comm: Communication, ids: list) -> None:
        comm.respond(Users(comm).names(ids))

    @EP("/sum", method="POST")
    def total(self, comm: Communication, nodes: list) -> None:
        visitor = Visitor(comm)
        for node in nodes:
            visitor.visit(node)
        comm.respond(visitor.total)

    @EP("/sum-fixed")
    def total_fixed(self, comm: Communication) -> None:
        visitor = Visitor(comm)
        for node in (1, "a", 2, "b"):
            visitor.visit(node)
        comm.respond(visitor.total)

    @EP("/failover")
    def failover(self, comm: Communication) -> None:
        for path in self.endpoints:
            with suppress(CallTimeoutError, NoReplicaError):
                comm.respond(comm.call("Backend", path, {}).get())
                break
        else:
            comm.respond({"error": "all down"}, status=503)

    @EP("/retry")
    def retry(self, comm: Communication) -> None:
        attempt = 0
        while True:
            attempt += 1
            try:
                value = comm.call("Backend", "/primary", {"attempt": attempt}).get()
                break
            except CallError as error:
                if error.status < 500 or attempt > RETRIES:
                    comm.respond({"error": error.status}, status=502)
                    return
        comm.respond(value)

    @EP("/table")
    def table(self, comm: Communication) -> None:
        prices = Prices(comm)
        first, second = prices.table, prices.table
        comm.respond({"a": first, "b": second})

    @EP("/queue")
    def queue(self, comm: Communication) -> None:
        done = 0
        for rows in iter(lambda: comm.query("legacy", "next", "queue", {}).get(), []):
            for row in rows:
                with suppress(MupError):
                    comm.call("Worker", "/work", {"id": row["_id"]}).get()
                    done += 1
        comm.respond(done)

    @EP("/resources")
    def resources(self, comm: Communication) -> None:
        with ExitStack() as stack:
            for name in ("a", "b"):
                comm.call("Locks", "/take", {"name": name}).get()
                stack.callback(lambda name=name: comm.call("Locks", "/give", {"name": name}).get())
            comm.query("legacy", "both", "things", {}).get()
        comm.respond({})

    @EP("/grid")
    def grid(self, comm: Communication) -> None:
        points = [Point(x, y) for x, y in itertools.product(range(2), range(2))]
        tiles = [comm.call("Tiles", "/tile", {"x": p.x, "y": p.y}) for p in points]
        comm.respond([t.get() for t in tiles])

    @EP("/result/{key}")
    def result(self, comm: Communication, key: str) -> None:
        match self._attempt(comm, key):
            case Result(ok=True, value=value):
                comm.respond(value)
            case Result(error="missing"):
                comm.respond(None, status=404)
            case Result(error=text):
                comm.call("Audit", "/write", {"text": text})
                comm.respond({"error": text}, status=500)

    def _attempt(self, comm, key) -> Result:
        try:
            value = comm.call("Backend", "/primary", {"key": key}).get()
        except CallError as error:
            return Result(False, error="missing" if error.status == 404 else str(error))
        if not value:
            return Result(False, error="empty")
        return Result(True, value)

    @EP("/nested/{id}")
    def nested(self, comm: Communication, id: str) -> None:
        comm.respond(self._resolve(comm, id, 0))

    def _resolve(self, comm, id, depth):
        node = comm.call("Tree", "/node", {"id": id}).get()
        if depth < 3 and node.get("parent"):
            node["parent"] = self._resolve(comm, node["parent"], depth + 1)
        return node

    @EP("/flags")
    def flags(self, comm: Communication) -> None:
        parts = {"base": comm.query("legacy", "base", "things", {})}
        if FEATURES["recommendations"]:
            parts["recommended"] = comm.call("Recommend", "/for", {})
        if FEATURES["audit"]:
            parts["audit"] = comm.call("Audit", "/write", {})
        comm.respond({k: v.get() for k, v in parts.items()})

    @EP("/thunks")
    def thunks(self, comm: Communication) -> None:
        thunks = [lambda p=p: comm.call("Backend", p, {}).get() for p in self.endpoints]
        comm.respond([t() for t in thunks])

    @EP("/best")
    def best(self, comm: Communication) -> None:
        offers = sorted(
            (
                {"shop": s, "price": comm.call("Prices", "/current", {"shop": s}).get()["price"]}
                for s in "abc"
            ),
            key=lambda o: o["price"],
        )
        comm.respond(offers[0])

    @EP("/paginate")
    def paginate(self, comm: Communication) -> None:
        rows, cursor = [], 0
        while cursor is not None:
            page = comm.call("Backend", "/primary", {"cursor": cursor}).get()
            rows.extend(page.get("rows", []))
            cursor = page.get("next")
        comm.respond(len(rows))

    @EP("/guarded", method="POST")
    def guarded(self, comm: Communication, amount: float = 0) -> None:
        if not 0 < amount <= 1000:
            comm.respond({"error": "amount"}, status=422)
            return
        try:
            hold = comm.call("Bank", "/hold", {"amount": amount}).get()
            try:
                comm.query("legacy", "book", "bookings", {"amount": amount}).get()
            except MupError:
                comm.call("Bank", "/release", {"hold": hold}).get()
                raise
            comm.call("Bank", "/capture", {"hold": hold}).get()
        except CallError as error:
            comm.respond({"error": error.body}, status=error.status)
        except MupError:
            comm.respond({"error": "later"}, status=503)
        else:
            comm.respond({"ok": True})

    @EP("/merge")
    def merge(self, comm: Communication) -> None:
        ours = comm.query("legacy", "ours", "things", {})
        theirs = comm.call("Backend", "/secondary", {})
        merged = {r["_id"]: r for r in itertools.chain(ours.get(), theirs.get())}
        if any(r.get("dirty") for r in merged.values()):
            comm.query("legacy", "clean", "things", {}).get()
        comm.respond(sorted(merged))

    @EP("/optional")
    def optional(self, comm: Communication) -> None:
        extra = comm.call("Recommend", "/for", {}) if comm.params.get("extra") else None
        base = comm.query("legacy", "base", "things", {}).get()
        comm.respond({"base": base, "extra": extra and extra.get()})

    @EP("/counter")
    def counter(self, comm: Communication) -> None:
        failures = 0

        def attempt(path):
            nonlocal failures
            try:
                return comm.call("Backend", path, {}).get()
            except MupError:
                failures += 1
                return None

        answers = [attempt(p) for p in self.endpoints]
        comm.respond({"answers": answers, "failures": failures}, status=200 if failures < 2 else 503)
