"""What a fleet service knows: vehicles, trips, tariffs."""

import abc
import functools
import math
import typing as t
from dataclasses import dataclass, field

from mup import Communication
from mup.errors import CallError, CallTimeoutError, MupError, QueryError

Json = dict[str, t.Any]
P = t.ParamSpec("P")
R = t.TypeVar("R")


class Maybe(t.Generic[R]):
    __slots__ = ("_value",)

    def __init__(self, value: R | None) -> None:
        self._value = value

    def map(self, f: t.Callable[[R], t.Any]) -> "Maybe":
        return self if self._value is None else Maybe(f(self._value))

    def or_else(self, default: t.Any) -> t.Any:
        return default if self._value is None else self._value

    def __bool__(self) -> bool:
        return self._value is not None


class Table:
    """A collection with the queries that everything needs."""

    def __init__(self, name: str, db: str = "fleet") -> None:
        self.name = name
        self.db = db

    def __get__(self, instance, owner):
        return self if instance is None else Bound(self, instance.comm)


class Bound:
    def __init__(self, table: Table, comm: Communication) -> None:
        self._table = table
        self._comm = comm

    def find(self, **where: t.Any) -> list[Json]:
        return self._comm.query(self._table.db, "find", self._table.name, where).get()

    def first(self, **where: t.Any) -> Maybe[Json]:
        return Maybe(next(iter(self.find(**where)), None))

    def insert(self, *rows: Json) -> None:
        if rows:
            self._comm.query(self._table.db, "insert", self._table.name, {"$insert": list(rows)}).get()

    def count(self, **where: t.Any) -> int:
        return len(self.find(**where))


class Session:
    vehicles = Table("vehicles")
    trips = Table("trips")
    drivers = Table("drivers")

    def __init__(self, comm: Communication) -> None:
        self.comm = comm


class Tariff(abc.ABC):
    registry: t.ClassVar[dict[str, "Tariff"]] = {}

    def __init_subclass__(cls, code: str, **kwargs: t.Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.registry[code] = cls()

    @abc.abstractmethod
    def price(self, session: Session, km: float) -> float: ...


class Flat(Tariff, code="flat"):
    def price(self, session, km):
        return 10 + km


class Dynamic(Tariff, code="dynamic"):
    def price(self, session, km):
        surge = session.comm.call("Surge", "/factor", {"km": km}).get()["factor"]
        return (10 + km) * surge


class Contract(Tariff, code="contract"):
    def price(self, session, km):
        rows = session.trips.find(kind="contract")
        return min((r["price"] for r in rows), default=km)


def logged(fn: t.Callable[P, R]) -> t.Callable[P, R]:
    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        print("begin", fn.__name__)
        try:
            return fn(*args, **kwargs)
        finally:
            print("end", fn.__name__)

    return wrapper


def fallback(value: t.Any, *kinds: type[Exception]):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            try:
                return fn(*args, **kwargs)
            except kinds or (MupError,):
                return value() if callable(value) else value

        return wrapper

    return decorate


@dataclass(order=True)
class Offer:
    price: float
    vehicle: str = field(compare=False)


class Router:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self._cache: dict[tuple[str, str], float] = {}

    @fallback(math.inf, CallTimeoutError)
    def distance(self, a: str, b: str) -> float:
        key = min((a, b), (b, a))
        if key not in self._cache:
            self._cache[key] = self.comm.call("Maps", "/route", {"from": a, "to": b}, timeout=1.0).get()["km"]
        return self._cache[key]

    def __call__(self, *stops: str) -> float:
        return sum(self.distance(a, b) for a, b in zip(stops, stops[1:]))


class Step(t.NamedTuple):
    service: str
    path: str
    undo: str | None = None


BOOKING: t.Final = (
    Step("Drivers", "/hold", "/release"),
    Step("Payments", "/authorize", "/void"),
    Step("Vehicles", "/reserve", "/free"),
)
