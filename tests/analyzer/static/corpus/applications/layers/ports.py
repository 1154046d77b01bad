"""What the application needs from outside, and who provides it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from mup import Communication
from mup.errors import CallError, QueryError

T = TypeVar("T")


class NotFound(Exception):
    pass


class Conflict(Exception):
    pass


@dataclass
class Ok(Generic[T]):
    value: T


@dataclass
class Err:
    reason: str


Result = Ok[T] | Err


class Stock(Protocol):
    def reserve(self, sku: str, n: int) -> bool: ...

    def release(self, sku: str) -> None: ...


class RemoteStock:
    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def reserve(self, sku: str, n: int) -> bool:
        return self._comm.call("Warehouse", "/reserve", {"sku": sku, "n": n}).get(check=False).ok

    def release(self, sku: str) -> None:
        self._comm.call("Warehouse", "/release", {"sku": sku}).get()


class Repository(Generic[T]):
    """CRUD of one collection."""

    collection = ""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def _query(self, name: str, text: Any) -> list[dict[str, Any]]:
        return self._comm.query("erp", f"{self.collection}_{name}", self.collection, text).get()

    def get(self, id: str) -> T:
        rows = self._query("get", {"_id": id})
        if not rows:
            raise NotFound(f"{self.collection}/{id}")
        return self.made(rows[0])

    def add(self, entity: T) -> None:
        try:
            self._query("add", {"$insert": [self.row(entity)]})
        except QueryError as error:
            raise Conflict(str(error)) from error

    def update(self, id: str, **values: Any) -> None:
        self._query("update", {"$update": {"filter": {"_id": id}, "update": {"$set": values}}})

    def made(self, row: dict[str, Any]) -> T:
        raise NotImplementedError

    def row(self, entity: T) -> dict[str, Any]:
        return dict(vars(entity))


@dataclass
class Order:
    id: str
    sku: str = ""
    n: int = 1
    state: str = "new"
    events: list[str] = field(default_factory=list)

    def confirm(self) -> None:
        if self.state != "new":
            raise Conflict(f"order is {self.state}")
        self.state = "confirmed"
        self.events.append("confirmed")


class Orders(Repository[Order]):
    collection = "orders"

    def made(self, row):
        return Order(row["_id"], row.get("sku", ""), row.get("n", 1), row.get("state", "new"))

    def row(self, entity):
        return {"_id": entity.id, "sku": entity.sku, "n": entity.n, "state": entity.state}


class Customers(Repository[dict]):
    collection = "customers"

    def made(self, row):
        return row


class Container:
    """Everything of one request, made when it is needed first."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @cached_property
    def orders(self) -> Orders:
        return Orders(self.comm)

    @cached_property
    def customers(self) -> Customers:
        return Customers(self.comm)

    @property
    def stock(self) -> Stock:
        return RemoteStock(self.comm)


class Pipeline:
    """Steps that get what the one before has returned, until one fails."""

    def __init__(self, *steps) -> None:
        self.steps = steps

    def __or__(self, step) -> "Pipeline":
        return Pipeline(*self.steps, step)

    def __call__(self, value):
        for step in self.steps:
            result = step(value)
            if isinstance(result, Err):
                return result
            value = result.value
        return Ok(value)


def price_of(comm: Communication, sku: str) -> Result[float]:
    try:
        return Ok(comm.call("Warehouse", "/price", {"sku": sku}).get()["price"])
    except CallError as error:
        return Err(f"no price: {error.status}")
