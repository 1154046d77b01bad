"""Entities, state machines and rules; nothing here talks to other services."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from banking_core import Conflict, ValidationError


class PaymentStatus(StrEnum):
    DRAFT = "draft"
    PENDING_SCA = "pending_sca"
    SUBMITTED = "submitted"
    SETTLED = "settled"
    REJECTED = "rejected"


FINAL = {PaymentStatus.SETTLED, PaymentStatus.REJECTED}

CONSENT_FLOW = {
    ("awaiting", "authorise"): "authorised",
    ("awaiting", "reject"): "rejected",
    ("authorised", "revoke"): "revoked",
    ("authorised", "renew"): "authorised",
}
ORDER_FLOW = {
    ("active", "pause"): "paused",
    ("paused", "resume"): "active",
    ("active", "cancel"): "cancelled",
    ("paused", "cancel"): "cancelled",
}


def advance(flow: dict[tuple[str, str], str], state: str, event: str) -> str:
    try:
        return flow[state, event]
    except KeyError:
        raise Conflict(f"cannot {event} while {state}") from None


def money(value: Any) -> Decimal:
    try:
        return Decimal(str(value)).quantize(Decimal("0.01"))
    except InvalidOperation:
        raise ValidationError("not an amount") from None


@dataclass
class Account:
    id: str
    user: str
    bank: str
    currency: str = "EUR"
    consent_id: str = ""


@dataclass
class Consent:
    id: str
    user: str
    bank: str
    status: str = "awaiting"
    permissions: list[str] = field(default_factory=lambda: ["accounts"])

    def allows(self, permission: str) -> bool:
        return self.status == "authorised" and permission in self.permissions


@dataclass
class Payment:
    id: str
    user: str
    bank: str
    debtor: str
    creditor: str
    amount: Decimal = Decimal(0)
    status: str = PaymentStatus.DRAFT
    hold_id: str = ""
    reference: str = ""
    challenge_id: str = ""

    def __post_init__(self) -> None:
        self.amount = money(self.amount)

    def moved_to(self, status: PaymentStatus, **changes: Any) -> Payment:
        return replace(self, status=status, **changes)

    @classmethod
    def from_request(cls, key: str, user: str, params: dict[str, Any], maximum: int) -> Payment:
        errors = {name: "required" for name in ("bank", "debtor", "creditor") if not params.get(name)}
        amount = money(params.get("amount"))
        if not 0 < amount <= maximum:
            errors["amount"] = f"between 0 and {maximum}"
        if errors:
            raise ValidationError("invalid payment", fields=errors)
        return cls(key, user, params["bank"], params["debtor"], params["creditor"], amount)


@dataclass
class StandingOrder:
    id: str
    user: str
    bank: str
    debtor: str
    creditor: str
    amount: str = "0"
    state: str = "active"
    next_run: str = ""
    failures: int = 0


RULES: list[Callable[[Payment], int]] = []


def rule(func: Callable[[Payment], int]) -> Callable[[Payment], int]:
    RULES.append(func)
    return func


@rule
def large_amount(payment: Payment) -> int:
    return 40 if payment.amount >= 5000 else 0


@rule
def risky_destination(payment: Payment) -> int:
    return 50 if payment.creditor[:2].upper() in {"XX", "ZZ"} else 0


def replay(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """State of a standing order after its events."""
    state: dict[str, Any] = {"state": "active", "paid": Decimal(0), "failures": 0}
    for event in events:
        match event:
            case {"type": "executed", "amount": amount}:
                state |= {"paid": state["paid"] + money(amount), "failures": 0}
            case {"type": "failed"}:
                state["failures"] += 1
            case {"type": "pause" | "resume" | "cancel" as action}:
                state["state"] = advance(ORDER_FLOW, state["state"], action)
    return state
