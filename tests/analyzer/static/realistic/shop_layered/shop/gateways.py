"""Other services, behind interfaces of our own."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from mup import Communication
from mup.errors import CallError, CommunicationError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Receipt:
    """What a payment left behind."""

    accepted: bool
    reference: str = ""


class PaymentGateway(ABC):
    """Something that takes money."""

    @abstractmethod
    def charge(self, customer: str, amount: int) -> Receipt:
        """Take an amount, in cents."""


class CardPayment(PaymentGateway):
    """Payment by card, through the payment service."""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def charge(self, customer: str, amount: int) -> Receipt:
        try:
            answer = self._comm.call("Payment", "/charge/", {"customer": customer, "amount": amount}).get()
        except CallError as error:
            log.warning("payment of %s refused: %s", customer, error)
            return Receipt(accepted=False)
        return Receipt(accepted=True, reference=answer["reference"])


class InvoicePayment(PaymentGateway):
    """Payment later: costs a look at the customer's record."""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def charge(self, customer: str, amount: int) -> Receipt:
        rating = self._comm.call("Payment", "rating", {"customer": customer}).get()
        return Receipt(accepted=rating["limit"] >= amount, reference="invoice")


class Warehouse:
    """The warehouse service."""

    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def announce(self, lines: list[dict[str, Any]]) -> None:
        """Tell the warehouse what is coming, without waiting for it."""
        self._comm.call("Warehouse", "/announce/", {"lines": lines})

    def ship(self, number: str, attempts: int = 2) -> str | None:
        """Return the tracking number, None if the warehouse does not answer."""
        for attempt in range(attempts):
            try:
                return self._comm.call("Warehouse", "/ship/", {"order": number}).get()["tracking"]
            except CommunicationError:
                log.info("warehouse did not answer, attempt %d", attempt + 1)
        return None
