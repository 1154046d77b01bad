"""Discounts as strategies; those that are known register themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache, reduce
from typing import Any, Protocol

from support import Invalid

from mup import Communication
from mup.errors import CommunicationError


@dataclass(frozen=True)
class Fare:
    cents: int
    passengers: int = 1
    klass: int = 2
    notes: tuple[str, ...] = ()

    def off(self, fraction: float, note: str) -> Fare:
        return replace(self, cents=round(self.cents * (1 - fraction)), notes=(*self.notes, note))


class Discount(Protocol):
    def applies(self, request: dict[str, Any]) -> bool: ...

    def apply(self, fare: Fare, request: dict[str, Any]) -> Fare: ...


DISCOUNTS: dict[str, Callable[[Communication], Discount]] = {}


def discount(name: str):
    def register(cls):
        DISCOUNTS[name] = cls
        return cls

    return register


@discount("group")
@dataclass
class GroupDiscount:
    comm: Communication
    sizes: dict[int, float] = field(default_factory=lambda: {6: 0.2, 10: 0.3})

    def applies(self, request: dict[str, Any]) -> bool:
        return int(request.get("passengers", 1)) >= min(self.sizes)

    def apply(self, fare: Fare, request: dict[str, Any]) -> Fare:
        return fare.off(max(off for size, off in self.sizes.items() if fare.passengers >= size), "group")


@discount("railcard")
@dataclass
class RailcardDiscount:
    comm: Communication

    def applies(self, request: dict[str, Any]) -> bool:
        return bool(request.get("railcard"))

    def apply(self, fare: Fare, request: dict[str, Any]) -> Fare:
        try:
            card = self.comm.call("Railcards", "/check", {"number": request["railcard"]}, timeout=1).get()
        except CommunicationError:
            return replace(fare, notes=(*fare.notes, "railcard not checked"))
        if not card.get("valid"):
            return fare
        return fare.off({"50": 0.5, "25": 0.25}.get(card.get("kind", ""), 0.1), "railcard")


@discount("voucher")
@dataclass
class VoucherDiscount:
    comm: Communication

    def applies(self, request: dict[str, Any]) -> bool:
        return "voucher" in request and request.get("class", 2) != 1

    def apply(self, fare: Fare, request: dict[str, Any]) -> Fare:
        voucher = self.comm.call("Vouchers", "/validate", {"code": request["voucher"]}).get()
        if voucher.get("used"):
            raise Invalid("voucher is used up", code=request["voucher"])
        worth = int(voucher.get("cents", 0))
        return replace(fare, cents=max(0, fare.cents - worth), notes=(*fare.notes, "voucher"))


def discounted(comm: Communication, fare: Fare, request: dict[str, Any]) -> Fare:
    strategies = (make(comm) for make in DISCOUNTS.values())
    applicable = [s for s in strategies if s.applies(request)]
    return reduce(lambda so_far, strategy: strategy.apply(so_far, request), applicable, fare)


@lru_cache(maxsize=512)
def parse_date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise Invalid(f"not a date: {text!r}") from exc


def refundable_share(hours_before: float, flexible: bool) -> float:
    if flexible:
        return 1.0 if hours_before >= 0 else 0.5
    return next((share for limit, share in ((72, 0.9), (24, 0.5)) if hours_before >= limit), 0.0)
