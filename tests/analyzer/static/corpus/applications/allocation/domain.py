from dataclasses import dataclass, field
from datetime import date


class Message:
    pass


class Command(Message):
    pass


class Event(Message):
    pass


@dataclass
class CreateBatch(Command):
    ref: str
    sku: str
    qty: int
    eta: str | None = None


@dataclass
class Allocate(Command):
    order: str
    sku: str
    qty: int


@dataclass
class ChangeQuantity(Command):
    ref: str
    qty: int


@dataclass
class Allocated(Event):
    order: str
    sku: str
    batch: str


@dataclass
class OutOfStock(Event):
    sku: str


class InvalidSku(Exception):
    pass


@dataclass
class Batch:
    ref: str
    sku: str
    qty: int
    eta: date | None = None

    def can_allocate(self, qty: int) -> bool:
        return self.qty >= qty

    def __gt__(self, other: "Batch") -> bool:
        return (self.eta or date.min) > (other.eta or date.min)


@dataclass
class Product:
    sku: str
    batches: list[Batch]
    events: list[Event] = field(default_factory=list)

    def allocate(self, order: str, qty: int) -> str | None:
        try:
            batch = next(b for b in sorted(self.batches) if b.can_allocate(qty))
        except StopIteration:
            self.events.append(OutOfStock(self.sku))
            return None
        batch.qty -= qty
        self.events.append(Allocated(order, self.sku, batch.ref))
        return batch.ref
