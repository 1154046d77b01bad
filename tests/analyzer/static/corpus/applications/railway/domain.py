"""Rules of the business, apart from HTTP."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import ExitStack
from enum import Enum
from typing import Any

from clients import Booking, BookingRepository, Flags, Inventory, Payments, Saga, SeatLock
from support import Conflict, Forbidden, User

from mup import Communication


class State(str, Enum):
    HELD = "held"
    PAID = "paid"
    TRAVELLED = "travelled"
    CANCELLED = "cancelled"


TRANSITIONS: dict[State, set[State]] = {
    State.HELD: {State.PAID, State.CANCELLED},
    State.PAID: {State.TRAVELLED, State.CANCELLED},
}


def move(booking: Booking, state: State) -> None:
    if state not in TRANSITIONS.get(State(booking.state), set()):
        raise Conflict(f"a {booking.state} booking cannot become {state.value}")
    booking.state = state.value


class BookingService:
    """What may be done with bookings, apart from HTTP."""

    def __init__(self, comm: Communication, user: User) -> None:
        self.comm = comm
        self.user = user
        self.bookings = BookingRepository(comm)
        self.inventory = Inventory(comm)
        self.payments = Payments(comm)

    def owned(self, booking_id: str) -> Booking:
        booking = self.bookings.get(booking_id)
        if booking.customer != self.user.id and not self.user.can("agent"):
            raise Forbidden("not your booking")
        return booking

    def hold(self, trains: list[str], seats: int) -> Booking:
        with ExitStack() as undo:
            locks: list[SeatLock] = []
            for train in trains:
                locks.append(self.inventory.lock(train, seats))
                undo.callback(self.inventory.release, locks[-1].id)
            booking = self.bookings.add(
                Booking("", self.user.id, train=trains[0], locks=[lock.id for lock in locks])
            )
            undo.pop_all()
        return booking

    def pay(self, booking: Booking, cents: int, method: str) -> Booking:
        move(booking, State.PAID)
        saga = Saga()
        booking.payment = saga.step(
            lambda: self.payments.authorize(self.user.id, cents, method), undo=self.payments.void
        )
        for lock in booking.locks:
            saga.step(lambda: self.inventory.confirm(lock), undo=lambda _: self.inventory.release(lock))  # noqa: B023
        saga.step(lambda: self.payments.capture(booking.payment))
        booking.cents = cents
        saga.step(lambda: self.bookings.save(booking))
        return booking


def fold_claim(claim: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    match event.get("kind"):
        case "opened":
            return {**claim, **event.get("data", {}), "state": "open"}
        case "approved" | "denied" | "paid" as state:
            return {**claim, "state": state}
        case _:
            return claim


class Payout:
    """How money goes back."""

    def __init__(self, comm: Communication, customer: str) -> None:
        self.comm = comm
        self.customer = customer

    def pay(self, cents: int) -> dict[str, Any]:
        raise NotImplementedError


class CardPayout(Payout):
    def pay(self, cents: int) -> dict[str, Any]:
        return Payments(self.comm).refund(self.customer, cents)


class VoucherPayout(Payout):
    def pay(self, cents: int) -> dict[str, Any]:
        bonus = round(cents * 1.1)
        return self.comm.call("Vouchers", "/issue", {"customer": self.customer, "cents": bonus}).get()


class PointsPayout(Payout):
    def pay(self, cents: int) -> dict[str, Any]:
        return self.comm.call("Loyalty", "/earn", {"member": self.customer, "points": cents // 10}).get()


PAYOUTS: dict[str, type[Payout]] = {"card": CardPayout, "voucher": VoucherPayout, "points": PointsPayout}


SECTIONS: list[Any] = []


def section(function):
    """Register a part of the digest."""
    SECTIONS.append(function)
    return function


@section
def upcoming(comm: Communication, customer: str) -> str:
    trips = comm.call("BookingStore", "/upcoming", {"customer": customer}).get().get("trips", [])
    return "\n".join(f"{t.get('train')}: {t.get('departs')}" for t in trips)


@section
def points(comm: Communication, customer: str) -> str:
    account = comm.call("Loyalty", "/accounts/{member_id}", {"member_id": customer}).get()
    return f"{account['balance']} points" if account.get("balance") else ""


@section
def offers(comm: Communication, customer: str) -> str:
    if not Flags(comm).enabled("digest-offers", customer):
        return ""
    return ", ".join(comm.call("Offers", "/for", {"customer": customer}).get().get("offers", []))


TIERS = [(0, "blue"), (1000, "silver"), (5000, "gold")]


def tier_of(balance: int) -> str:
    return TIERS[max(0, bisect_right(TIERS, (balance, "~")) - 1)][1]
