import logging

from domain import (
    Allocate,
    Allocated,
    Batch,
    ChangeQuantity,
    Command,
    CreateBatch,
    Event,
    InvalidSku,
    OutOfStock,
    Product,
)
from mup import EP, MS, Communication

logger = logging.getLogger(__name__)


class Repository:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.seen: list[Product] = []

    def get(self, sku: str) -> Product | None:
        rows = self.comm.query("stock", "batches", "batches", {"sku": sku}).get()
        if not rows:
            return None
        product = Product(sku, [Batch(r["_id"], sku, r["qty"]) for r in rows])
        self.seen.append(product)
        return product

    def add(self, batch: Batch) -> None:
        row = {"_id": batch.ref, "sku": batch.sku, "qty": batch.qty}
        self.comm.query("stock", "add_batch", "batches", {"$insert": [row]}).get()

    def save(self, batch: str, qty: int) -> None:
        change = {"filter": {"_id": batch}, "update": {"$set": {"qty": qty}}}
        self.comm.query("stock", "save_batch", "batches", {"$update": change}).get()


class UnitOfWork:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.committed = False

    def __enter__(self) -> "UnitOfWork":
        self.products = Repository(self.comm)
        return self

    def __exit__(self, *error) -> None:
        if not self.committed:
            self.rollback()

    def commit(self) -> None:
        self.comm.query("stock", "commit", "transactions", {}).get()
        self.committed = True

    def rollback(self) -> None:
        self.comm.query("stock", "rollback", "transactions", {}).get()

    def collect_new_events(self):
        for product in self.products.seen:
            while product.events:
                yield product.events.pop(0)


def add_batch(command: CreateBatch, uow: UnitOfWork) -> None:
    with uow:
        uow.products.add(Batch(command.ref, command.sku, command.qty))
        uow.commit()


def allocate(command: Allocate, uow: UnitOfWork) -> str | None:
    with uow:
        product = uow.products.get(command.sku)
        if product is None:
            raise InvalidSku(f"invalid sku {command.sku}")
        batch = product.allocate(command.order, command.qty)
        uow.commit()
        return batch


def change_quantity(command: ChangeQuantity, uow: UnitOfWork) -> None:
    with uow:
        uow.products.save(command.ref, command.qty)
        uow.commit()


def notify(event: OutOfStock, uow: UnitOfWork) -> None:
    uow.comm.call("Mail", "/send", {"to": "stock@example.org", "text": f"out of stock: {event.sku}"}).get()


def publish(event: Allocated, uow: UnitOfWork) -> None:
    uow.comm.call("Broker", "/publish", {"channel": "allocated", "order": event.order})


EVENTS = {Allocated: [publish], OutOfStock: [notify]}
COMMANDS = {CreateBatch: add_batch, Allocate: allocate, ChangeQuantity: change_quantity}


class MessageBus:
    def __init__(self, uow: UnitOfWork) -> None:
        self.uow = uow
        self.queue = []

    def handle(self, message) -> None:
        self.queue = [message]
        while self.queue:
            message = self.queue.pop(0)
            if isinstance(message, Event):
                self.handle_event(message)
            elif isinstance(message, Command):
                self.handle_command(message)
            else:
                raise TypeError(f"{message} is neither an event nor a command")

    def handle_event(self, event: Event) -> None:
        for handler in EVENTS[type(event)]:
            try:
                handler(event, self.uow)
                self.queue.extend(self.uow.collect_new_events())
            except Exception:
                logger.exception("cannot handle %s", event)
                continue

    def handle_command(self, command: Command) -> None:
        handler = COMMANDS[type(command)]
        handler(command, self.uow)
        self.queue.extend(self.uow.collect_new_events())


class Allocation(MS):
    pool_size = 4

    @EP("/batches", method="POST")
    def add(self, comm: Communication, ref: str, sku: str, qty: int) -> None:
        MessageBus(UnitOfWork(comm)).handle(CreateBatch(ref, sku, qty))
        comm.respond("OK", status=201)

    @EP("/allocate", method="POST")
    def allocate(self, comm: Communication, order: str, sku: str, qty: int) -> None:
        try:
            MessageBus(UnitOfWork(comm)).handle(Allocate(order, sku, qty))
        except InvalidSku as error:
            comm.respond({"message": str(error)}, status=400)
            return
        comm.respond("OK", status=202)

    @EP("/allocate-directly", method="POST")
    def allocate_directly(self, comm: Communication, order: str, sku: str, qty: int) -> None:
        uow = UnitOfWork(comm)
        try:
            batch = allocate(Allocate(order, sku, qty), uow)
        except InvalidSku as error:
            comm.respond({"message": str(error)}, status=400)
            return
        if batch is None:
            notify(OutOfStock(sku), uow)
            comm.respond({"message": "out of stock"}, status=409)
            return
        publish(Allocated(order, sku, batch), uow)
        comm.respond({"batch": batch}, status=201)

    @EP("/batches/{ref}", method="PATCH")
    def change(self, comm: Communication, ref: str, qty: int) -> None:
        with UnitOfWork(comm) as uow:
            uow.products.save(ref, qty)
            uow.commit()
        comm.respond("OK")

    @EP("/allocations/{order}", method="GET")
    def view(self, comm: Communication, order: str) -> None:
        rows = comm.query("views", "allocations", "allocations", {"order": order}).get()
        if not rows:
            comm.respond("not found", status=404)
            return
        comm.respond(rows)


class Mail(MS):
    @EP("/send")
    def send(self, comm: Communication) -> None:
        comm.respond(None, status=204)


class Broker(MS):
    @EP("/publish")
    def publish(self, comm: Communication, channel: str) -> None:
        subscribers = comm.query("broker", "subscribers", "subscribers", {"channel": channel}).get()
        comm.respond({"receivers": len(subscribers)})
