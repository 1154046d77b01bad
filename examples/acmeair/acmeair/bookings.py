"""A customer's bookings, which are kept with the customer."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from mup import Communication


def add_booking(comm: Communication, customer: str, flight: str) -> str:
    """Book a flight; return the number of the booking."""
    number = secrets.token_hex(12)
    booking = {"_id": number, "flightId": flight, "dateOfBooking": datetime.now(UTC).isoformat()}
    # As the number is new, adding to the set of bookings appends to them.
    _update(comm, "addBooking", customer, {"$addToSet": {"bookings": booking}})
    return number


def bookings_of(comm: Communication, customer: str) -> list[dict[str, Any]]:
    """Return all bookings."""
    found = comm.query(
        "aair",
        "findBookings",
        "n_customer",
        {"$command": "find", "filter": {"_id": customer}, "projection": ["bookings"]},
    ).get()
    bookings = found[0]["bookings"] if found else []
    return [{"customerId": customer, **booking} for booking in bookings]


def remove_booking(comm: Communication, customer: str, number: str) -> None:
    """Cancel a booking."""
    _update(comm, "removeBooking", customer, {"$pull": {"bookings": {"_id": number}}})


def _update(comm: Communication, name: str, customer: str, update: dict[str, Any]) -> None:
    comm.query(
        "aair", name, "n_customer", {"$command": "update", "filter": {"_id": customer}, "update": update}
    ).get()
