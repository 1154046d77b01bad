from functools import partial
from operator import attrgetter, methodcaller

import msgspec
from handlers import HANDLERS, STRATEGIES, Notifier
from mup import EP, MS, Communication
from ports import Conflict, Container, Err, NotFound, Ok, Order, Pipeline, price_of


class OrderBody(msgspec.Struct, tag="order"):
    sku: str
    n: int = 1


class CancelBody(msgspec.Struct, tag="cancel"):
    id: str


class Sales(MS):
    pool_size = 4

    @EP("/orders", method="POST")
    def create(self, comm: Communication, body: OrderBody) -> None:
        c = Container(comm)
        if not c.stock.reserve(body.sku, body.n):
            comm.respond({"error": "sold out"}, status=409)
            return
        order = Order(comm.request_id, body.sku, body.n)
        try:
            c.orders.add(order)
        except Conflict as error:
            c.stock.release(body.sku)
            comm.respond({"error": str(error)}, status=409)
            return
        comm.respond({"id": order.id}, status=201)

    @EP("/orders/{id}", method="GET")
    def order(self, comm: Communication, id: str) -> None:
        try:
            order = Container(comm).orders.get(id)
        except NotFound as error:
            comm.respond({"error": str(error)}, status=404)
        else:
            comm.respond({"id": order.id, "state": order.state})

    @EP("/orders/{id}/confirm", method="POST")
    def confirm(self, comm: Communication, id: str) -> None:
        c = Container(comm)
        try:
            order = c.orders.get(id)
            order.confirm()
            c.orders.update(id, state=order.state)
            for event in order.events:
                c.comm.query("erp", "event", "events", {"$insert": [{"order": id, "event": event}]}).get()
        except NotFound:
            comm.respond(None, status=404)
        except Conflict as error:
            comm.respond({"error": str(error)}, status=409)
        else:
            comm.respond({"state": "confirmed"})

    @EP("/customers/{id}", method="PATCH")
    def customer(self, comm: Communication, id: str) -> None:
        customers = Container(comm).customers
        known = customers.get(id)
        changes = {k: v for k, v in comm.params.items() if k != "id" and known.get(k) != v}
        if changes:
            customers.update(id, **changes)
        comm.respond({**known, **changes})

    @EP("/quote", method="POST")
    def quote(self, comm: Communication, sku: str, n: int = 1) -> None:
        match price_of(comm, sku):
            case Ok(value=price):
                comm.respond({"total": price * n})
            case Err(reason=reason):
                comm.respond({"error": reason}, status=422)

    @EP("/pipeline", method="POST")
    def pipeline(self, comm: Communication, sku: str) -> None:
        steps = Pipeline(partial(price_of, comm)) | (lambda price: Ok(price * 1.19)) | self._rounded
        result = steps(sku)
        if isinstance(result, Err):
            comm.respond({"error": result.reason}, status=422)
            return
        comm.respond({"gross": result.value})

    def _rounded(self, price):
        return Ok(round(price, 2)) if price < 1000 else Err("too expensive")

    @EP("/command/{name}", method="POST")
    def command(self, comm: Communication, name: str) -> None:
        handler = HANDLERS.get(name)
        if handler is None:
            comm.respond({"error": f"no command {name}"}, status=404)
            return
        comm.respond(handler(comm, comm.params))

    @EP("/notify/{kind}", method="POST")
    def notify(self, comm: Communication, kind: str) -> None:
        try:
            strategy = STRATEGIES[kind]
        except KeyError:
            comm.respond({"error": "unknown kind"}, status=400)
            return
        strategy.send(comm, "hello")
        comm.respond({})

    @EP("/notify-registered/{kind}", method="POST")
    def notify_registered(self, comm: Communication, kind: str) -> None:
        notifier = Notifier.registry[kind]()
        notifier.send(comm, "hello")
        comm.respond({})

    @EP("/notify-all", method="POST")
    def notify_all(self, comm: Communication) -> None:
        for notifier in STRATEGIES.values():
            notifier.send(comm, "hello")
        comm.respond({})

    @EP("/tagged", method="POST")
    def tagged(self, comm: Communication, body: OrderBody | CancelBody) -> None:
        match body:
            case OrderBody(sku=sku):
                comm.respond(comm.call("Warehouse", "/reserve", {"sku": sku, "n": body.n}).get())
            case CancelBody(id=id):
                comm.query("erp", "cancel", "orders", {"$delete": {"filter": {"_id": id}}}).get()
                comm.respond(None, status=204)

    @EP("/operators", method="POST")
    def operators(self, comm: Communication) -> None:
        futures = [comm.call("Warehouse", "/price", {"sku": s}) for s in ("a", "b")]
        prices = list(map(methodcaller("get"), futures))
        orders = sorted((Order(str(n), n=n) for n in range(3)), key=attrgetter("n"))
        comm.respond({"prices": prices, "orders": [o.id for o in orders]})


class Outbox(MS):
    @EP("/mail")
    def mail(self, comm: Communication) -> None:
        comm.respond({})

    @EP("/chat")
    def chat(self, comm: Communication) -> None:
        comm.respond({})


class Warehouse(MS):
    @EP("/reserve")
    def reserve(self, comm: Communication, sku: str = "", n: int = 1) -> None:
        rows = comm.query("warehouse", "stock", "stock", {"sku": sku}).get()
        if len(rows) < n:
            comm.respond({"error": "not enough"}, status=409)
            return
        comm.query("warehouse", "reserve", "stock", {"$delete": {"filter": {"sku": sku}}}).get()
        comm.respond({"reserved": n})

    @EP("/release")
    def release(self, comm: Communication, sku: str = "") -> None:
        comm.query("warehouse", "release", "stock", {"$insert": [{"sku": sku}]}).get()
        comm.respond({})

    @EP("/price")
    def price(self, comm: Communication, sku: str) -> None:
        rows = comm.query("warehouse", "price", "prices", {"_id": sku}).get()
        if not rows:
            comm.respond({"error": "no price"}, status=404)
            return
        comm.respond({"price": rows[0].get("price", 1.0)})
