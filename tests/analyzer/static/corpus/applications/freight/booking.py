"""Bookings: the aggregate, commands, events, and their handlers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from gateways import CarrierDesk
from kernel import (
    Aggregate,
    Command,
    Conflict,
    Event,
    Handler,
    MessageBus,
    Repository,
    Saga,
    UnitOfWork,
    principal,
)
from mup import Communication


class BookingStatus(StrEnum):
    DRAFT = "draft"
    CONFIRMED = "confirmed"
    IN_TRANSIT = "in_transit"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


TRANSITIONS: Mapping[tuple[BookingStatus, str], BookingStatus] = {
    (BookingStatus.DRAFT, "confirm"): BookingStatus.CONFIRMED,
    (BookingStatus.DRAFT, "cancel"): BookingStatus.CANCELLED,
    (BookingStatus.CONFIRMED, "cancel"): BookingStatus.CANCELLED,
    (BookingStatus.CONFIRMED, "depart"): BookingStatus.IN_TRANSIT,
    (BookingStatus.IN_TRANSIT, "deliver"): BookingStatus.DELIVERED,
}


@dataclass(frozen=True)
class StatusChanged(Event):
    booking: str
    status: BookingStatus


@dataclass(kw_only=True)
class Booking(Aggregate):
    carrier: str
    weight: float = 1.0
    status: BookingStatus = BookingStatus.DRAFT
    confirmation: str = ""

    def fire(self, trigger: str) -> None:
        try:
            self.status = TRANSITIONS[self.status, trigger]
        except KeyError:
            raise Conflict(f"cannot {trigger} a booking that is {self.status}") from None
        self.record(StatusChanged(self.id, self.status))

    @classmethod
    def load(cls, row: Mapping[str, Any]) -> Booking:
        known = {name: row[name] for name in ("version", "weight", "confirmation") if name in row}
        status = BookingStatus(row.get("status", "draft"))
        return cls(id=row["id"], carrier=row.get("carrier", "dhl"), status=status, **known)


def bookings_of(comm: Communication) -> UnitOfWork[Booking]:
    return UnitOfWork(comm, Repository(comm, "BookingStore", Booking.load))


@dataclass(frozen=True)
class CreateBooking(Command):
    quote: str
    carrier: str
    weight: float = 1.0


@dataclass(frozen=True)
class CancelBooking(Command):
    booking_id: str
    reason: str = ""


@dataclass(frozen=True)
class AmendBooking(Command):
    booking_id: str
    weight: float


@dataclass(frozen=True)
class AdvanceBooking(Command):
    booking_id: str
    trigger: str


def audited(handler: Handler) -> Handler:
    @functools.wraps(handler)
    def wrapper(command: Command, uow: UnitOfWork[Any]) -> Any:
        try:
            return handler(command, uow)
        finally:
            uow.comm.call("Audit", "/append", {"action": type(command).__name__, "payload": asdict(command)})

    return wrapper


bus = MessageBus(audited)


@bus.handles(CreateBooking)
def create_booking(command: CreateBooking, uow: UnitOfWork[Booking]) -> Booking:
    comm = uow.comm
    desk = CarrierDesk(comm, command.carrier)
    saga = (
        Saga("booking")
        .step(
            "credit",
            lambda state: comm.call(
                "Credit", "/hold", {"tenant": principal().tenant, "quote": command.quote}
            ).get(),
            undo=lambda state: comm.call("Credit", "/release", {"hold": state["credit"].get("hold")}).get(),
        )
        .step(
            "space",
            lambda _: desk.book(command.quote, command.weight),
            lambda state: desk.cancel(state["space"]),
        )
        .step(
            "number",
            lambda state: comm.call("Numbers", "/next", {"series": "booking"}).get().get("number", "B0"),
        )
    )
    state = saga.run()
    booking = uow.items.add(
        Booking(
            id=state["number"], carrier=command.carrier, weight=command.weight, confirmation=state["space"]
        )
    )
    booking.fire("confirm")
    return booking


@bus.handles(CancelBooking)
def cancel_booking(command: CancelBooking, uow: UnitOfWork[Booking]) -> Booking:
    booking = uow.items.get(command.booking_id)
    was_confirmed = booking.status is BookingStatus.CONFIRMED
    booking.fire("cancel")
    if was_confirmed:
        CarrierDesk(uow.comm, booking.carrier).cancel(booking.confirmation)
    return booking


@bus.handles(AmendBooking)
def amend_booking(command: AmendBooking, uow: UnitOfWork[Booking]) -> Booking:
    booking = uow.items.get(command.booking_id)
    if booking.status is not BookingStatus.CONFIRMED:
        raise Conflict("only confirmed bookings can be amended")
    extra = command.weight - booking.weight
    if extra > 0:
        answer = uow.comm.call("Pricing", "/surcharge", {"carrier": booking.carrier, "extra": extra}).get()
        uow.comm.call(
            "Ledger", "/charge", {"booking": booking.id, "amount": answer.get("amount", 10.0)}
        ).get()
    booking.weight = command.weight
    booking.record(StatusChanged(booking.id, booking.status))
    return booking


@bus.handles(AdvanceBooking)
def advance_booking(command: AdvanceBooking, uow: UnitOfWork[Booking]) -> Booking:
    booking = uow.items.get(command.booking_id)
    booking.fire(command.trigger)
    return booking


@bus.on(StatusChanged)
def notify_customer(event: StatusChanged, uow: UnitOfWork[Any]) -> None:
    uow.comm.call(
        "Notifications", "/send", {"booking": event.booking, "template": f"booking_{event.status}"}
    ).get()


@bus.on(StatusChanged)
def bill_when_delivered(event: StatusChanged, uow: UnitOfWork[Any]) -> None:
    if event.status is BookingStatus.DELIVERED:
        uow.comm.call("Ledger", "/accrue", {"booking": event.booking}).get()
    elif event.status is BookingStatus.CANCELLED:
        uow.comm.call("Ledger", "/reverse", {"booking": event.booking}).get()


EXPANSIONS: dict[str, Callable[[Communication, Booking], Any]] = {
    "tracking": lambda comm, booking: comm.call(
        "Tracking", "/shipments/{shipment_id}/timeline", {"shipment_id": booking.id}
    ),
    "invoices": lambda comm, booking: comm.call("InvoiceStore", "/find", {"booking": booking.id}),
    "documents": lambda comm, booking: comm.call("Documents", "/list", {"booking": booking.id}),
}
