"""Typed clients, bank connectors and repositories: everything that wraps ``comm.call``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, ClassVar, Generic, TypeVar

from banking_core import NotFound, ValidationError, iter_pages, retry, to_json
from banking_domain import Account, Consent, Payment, StandingOrder

from mup import Communication
from mup.errors import CallError, CommunicationError
from mup.future import MupFuture

E = TypeVar("E")


class ServiceClient:
    service: ClassVar[str] = ""
    timeout: ClassVar[float] = 2.0

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    def send(self, path: str, **params: Any) -> MupFuture:
        return self.comm.call(self.service, path, to_json(params), timeout=self.timeout)

    def ask(self, path: str, **params: Any) -> Any:
        return self.send(path, **params).get()


class BankConnector(ServiceClient):
    """One class per bank interface; new banks register themselves by being defined."""

    registry: ClassVar[dict[str, type[BankConnector]]] = {}

    def __init_subclass__(cls, bank: str, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        BankConnector.registry[bank] = cls

    @classmethod
    def of(cls, bank: str, comm: Communication) -> BankConnector:
        if bank not in cls.registry:
            raise ValidationError(f"unknown bank {bank!r}")
        return cls.registry[bank](comm)

    def start_accounts(self, consent_id: str) -> MupFuture:
        return self.send("/accounts", consent=consent_id)

    def balances(self, account_id: str) -> dict[str, Any]:
        return self.ask("/balances", account=account_id)

    def transactions(self, account_id: str, cursor: str = "") -> dict[str, Any]:
        return self.ask("/transactions", account=account_id, cursor=cursor)

    def create_consent(self, user: str, permissions: list[str]) -> dict[str, Any]:
        return self.ask("/consent", user=user, permissions=permissions)

    def revoke_consent(self, consent_id: str) -> None:
        try:
            self.ask("/revoke", consent=consent_id)
        except CallError as error:
            if error.status not in (404, 410):  # gone already is fine
                raise

    def pay(self, payment: Payment) -> dict[str, Any]:
        return self.ask("/pay", debtor=payment.debtor, creditor=payment.creditor, amount=payment.amount)

    @retry(attempts=2)
    def payment_status(self, reference: str) -> str:
        return self.ask("/payment", reference=reference).get("status", "unknown")


class NordConnector(BankConnector, bank="nord"):
    service = "NordBank"
    timeout = 1.0


class SparwellConnector(BankConnector, bank="sparwell"):
    service = "Sparwell"

    def transactions(self, account_id: str, cursor: str = "") -> dict[str, Any]:
        # Sparwell counts pages instead of handing out cursors.
        page = int(cursor or 1)
        answer = self.ask("/transactions", account=account_id, page=page)
        return {"items": answer.get("rows", []), "next": str(page + 1) if answer.get("more") else ""}


class HeritageConnector(BankConnector, bank="heritage"):
    """The old core banking interface: a session per operation."""

    service = "HeritageBank"
    timeout = 5.0

    @contextmanager
    def session(self) -> Iterator[str]:
        ticket = self.ask("/login", client="aggregator").get("ticket", "")
        try:
            yield ticket
        finally:
            self.send("/logout", ticket=ticket)

    def balances(self, account_id: str) -> dict[str, Any]:
        with self.session() as ticket:
            return self.ask("/balances", account=account_id, ticket=ticket)

    def pay(self, payment: Payment) -> dict[str, Any]:
        with self.session() as ticket:
            return self.ask("/pay", ticket=ticket, order=payment.id, amount=payment.amount)


class LedgerClient(ServiceClient):
    service = "Ledger"

    def hold(self, account: str, amount: Any) -> str:
        return self.ask("/hold", account=account, amount=amount).get("hold_id", "")

    def release(self, hold_id: str) -> None:
        self.ask("/release", hold_id=hold_id)

    def post(self, payment: Payment) -> None:
        self.ask("/post", payment_id=payment.id, hold_id=payment.hold_id, amount=payment.amount)

    def entries(self, account: str, period: str = "") -> Iterator[dict[str, Any]]:
        return iter_pages(lambda cursor: self.ask("/entries", account=account, period=period, cursor=cursor))


def notify(comm: Communication, user: str, template: str, **values: Any) -> None:
    """Fire and forget: nobody waits for a notification."""
    comm.call("Notifications", "/send", {"user": user, "template": template, "values": to_json(values)})


class Repository(ServiceClient, Generic[E]):
    model: ClassVar[type]

    def _load(self, record: dict[str, Any]) -> E:
        known = {each.name for each in fields(self.model)}
        return self.model(**{key: value for key, value in record.items() if key in known})

    def get(self, key: str, user: str | None = None) -> E:
        item = self.ask("/get", id=key).get("item")
        if item is None or (user is not None and item["user"] != user):
            raise NotFound(f"no {self.model.__name__} {key}")  # do not tell strangers it exists
        return self._load(item)

    def find(self, **criteria: Any) -> list[E]:
        return [self._load(item) for item in self.ask("/find", **criteria).get("items", [])]

    def save(self, entity: E) -> E:
        self.ask("/save", item=to_json(entity))
        return entity


class AccountRepository(Repository[Account]):
    service, model = "AccountStore", Account


class ConsentRepository(Repository[Consent]):
    service, model = "ConsentStore", Consent


class PaymentRepository(Repository[Payment]):
    service, model = "PaymentStore", Payment


class OrderRepository(Repository[StandingOrder]):
    service, model = "OrderStore", StandingOrder

    def append(self, order_id: str, kind: str, **data: Any) -> None:
        self.ask("/append", id=order_id, event={"type": kind, **data})


class UnitOfWork:
    """Several payments written together or not at all."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm
        self.dirty: list[Payment] = []

    def __enter__(self) -> UnitOfWork:
        self.transaction = self.comm.call("PaymentStore", "/begin").get().get("tx", "")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None and self.dirty:
            try:
                self.comm.call(
                    "PaymentStore", "/commit", {"tx": self.transaction, "items": to_json(self.dirty)}
                ).get()
                return
            except CommunicationError:
                self.comm.call("PaymentStore", "/rollback", {"tx": self.transaction})
                raise
        self.comm.call("PaymentStore", "/rollback", {"tx": self.transaction}).get()
