"""Typed clients and repositories in front of the back ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from support import Conflict, NotFound, best_effort, retry

from mup import Communication, MupFuture
from mup.errors import CallError, CommunicationError


class Client:
    """Base of clients; subclasses say whom they talk to."""

    service: ClassVar[str]
    timeout: ClassVar[float | None] = None

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def send(self, path: str, **params: Any) -> MupFuture:
        return self.comm.call(self.service, path, params, timeout=self.timeout)

    def ask(self, path: str, **params: Any) -> Any:
        return self.send(path, **params).get()


@dataclass(frozen=True)
class SeatLock:
    id: str
    train: str
    seats: list[str] = field(default_factory=list)


class Inventory(Client):
    service = "Inventory"
    timeout = 2.0

    def seatmap(self, train: str) -> list[dict[str, Any]]:
        return self.ask("/seatmap", train=train).get("seats", [])

    def lock(self, train: str, count: int, preferred: list[str] | None = None) -> SeatLock:
        try:
            answer = self.ask("/lock", train=train, count=count, preferred=preferred or [])
        except CallError as exc:
            if exc.status == 409:
                raise Conflict("sold out", train=train) from exc
            raise
        if not answer.get("lock"):
            raise Conflict("sold out", train=train)
        return SeatLock(answer["lock"], train, answer.get("seats", []))

    def confirm(self, lock: str) -> None:
        self.ask("/confirm", lock=lock)

    def release(self, lock: str) -> None:
        with best_effort("release of seats"):
            self.ask("/release", lock=lock)


class PaymentDeclined(Conflict):
    status, code = 402, "payment_declined"


class Payments(Client):
    service = "Payments"
    timeout = 5.0

    def authorize(self, customer: str, cents: int, method: str = "card") -> str:
        answer = self.ask("/authorize", customer=customer, cents=cents, method=method)
        if answer.get("status") == "declined":
            raise PaymentDeclined(answer.get("reason", "declined"))
        return answer.get("id", "")

    def capture(self, authorization: str) -> None:
        retry(lambda: self.ask("/capture", id=authorization), attempts=2)

    def void(self, authorization: str) -> None:
        with best_effort("void"):
            self.ask("/void", id=authorization)

    def refund(self, payment: str, cents: int) -> dict[str, Any]:
        return retry(lambda: self.ask("/refund", id=payment, cents=cents))


@dataclass
class Booking:
    id: str
    customer: str
    state: str = "held"
    train: str = ""
    locks: list[str] = field(default_factory=list)
    payment: str = ""
    cents: int = 0
    version: int = 0

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Booking:
        known = {k: v for k, v in row.items() if k in cls.__dataclass_fields__}
        return cls(**{"id": "", "customer": "", **known})


class BookingRepository:
    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def get(self, booking_id: str) -> Booking:
        try:
            row = self.comm.call("BookingStore", "/get", {"id": booking_id}).get()
        except CallError as exc:
            if exc.status == 404:
                raise NotFound(f"no booking {booking_id}") from exc
            raise
        if not row:
            raise NotFound(f"no booking {booking_id}")
        return Booking.from_row(row)

    def add(self, booking: Booking) -> Booking:
        booking.id = self.comm.call("BookingStore", "/insert", asdict(booking)).get().get("id", "")
        return booking

    def save(self, booking: Booking) -> None:
        answer = self.comm.call("BookingStore", "/update", asdict(booking)).get()
        if answer.get("conflict"):
            raise Conflict("booking was changed by somebody else", version=answer.get("version"))
        booking.version += 1

    def of_customer(self, customer: str, **paging: int) -> dict[str, Any]:
        return self.comm.call("BookingStore", "/list", {"customer": customer, **paging}).get()


class EventStore(Client):
    service = "EventStore"

    def stream(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield all events of a stream, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.ask("/read", stream=name, cursor=cursor)
            yield from page.get("events", [])
            cursor = page.get("next")

    def append(self, name: str, kind: str, **data: Any) -> int:
        return self.ask("/append", stream=name, kind=kind, data=data).get("version", 0)


class Flags(Client):
    service = "Flags"
    timeout = 0.2

    def enabled(self, flag: str, subject: str = "", default: bool = False) -> bool:
        try:
            return bool(self.ask("/evaluate", flag=flag, subject=subject).get("on", default))
        except CommunicationError:
            return default


class UnitOfWork:
    """Collects writes and sends them in one commit, unless the block fails."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.writes: list[dict[str, Any]] = []

    def __enter__(self) -> UnitOfWork:
        self.id = self.comm.call("BookingStore", "/begin").get().get("tx", "")
        return self

    def write(self, table: str, **row: Any) -> None:
        self.writes.append({"table": table, "row": row})

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None or not self.writes:
            self.comm.call("BookingStore", "/rollback", {"tx": self.id})
        else:
            self.comm.call("BookingStore", "/commit", {"tx": self.id, "writes": self.writes}).get()


class Saga:
    """Steps, each with what undoes it."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def step(self, action: Callable[[], Any], undo: Callable[[Any], Any] | None = None) -> Any:
        try:
            result = action()
        except Exception:
            self.compensate()
            raise
        if undo is not None:
            self._undo.append(lambda: undo(result))
        return result

    def compensate(self) -> None:
        while self._undo:
            self._undo.pop()()
