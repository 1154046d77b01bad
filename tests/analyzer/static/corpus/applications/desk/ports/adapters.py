from __future__ import annotations

import abc
import functools
import logging
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from mup import Communication
from mup.errors import CommunicationError, QueryError

from ports.domain import Event, Ticket, TicketClosed, TicketOpened

log = logging.getLogger(__name__)
E = TypeVar("E", bound=Event)


class TicketStore(abc.ABC):
    @abc.abstractmethod
    def get(self, id: str) -> Ticket | None: ...

    @abc.abstractmethod
    def put(self, ticket: Ticket) -> None: ...


class MongoTickets(TicketStore):
    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    def get(self, id: str) -> Ticket | None:
        match self._comm.query("desk", "ticket", "tickets", {"_id": id}).get():
            case []:
                return None
            case [row, *_]:
                return Ticket.from_row(row)

    def put(self, ticket: Ticket) -> None:
        change = {"filter": {"_id": ticket.id}, "update": {"$set": {"status": str(ticket.status)}}}
        self._comm.query("desk", "put", "tickets", {"$update": change}).get()

    def open_for(self, user: str) -> Iterator[Ticket]:
        for row in self._comm.query("desk", "open", "tickets", {"assignee": user}).get():
            yield Ticket.from_row(row)


class MemoryTickets(TicketStore):
    def __init__(self) -> None:
        self.rows: dict[str, Ticket] = {}

    def get(self, id: str) -> Ticket | None:
        return self.rows.get(id)

    def put(self, ticket: Ticket) -> None:
        self.rows[ticket.id] = ticket


class Publisher(Protocol):
    def publish(self, event: Event) -> None: ...


class BrokerPublisher:
    def __init__(self, comm: Communication, *, strict: bool = False) -> None:
        self._comm = comm
        self._strict = strict

    def publish(self, event: Event) -> None:
        future = self._comm.call("Broker", "/publish", {"topic": event.topic})
        if self._strict:
            future.get()


class UnitOfWork:
    """Tickets, and what happened to them."""

    def __init__(self, comm: Communication, store: type[TicketStore] = MongoTickets) -> None:
        self._comm = comm
        self._store = store
        self._touched: list[Ticket] = []

    def __enter__(self) -> UnitOfWork:
        self.tickets = self._store(self._comm)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._publish()

    def add(self, ticket: Ticket) -> None:
        self._touched.append(ticket)
        self.tickets.put(ticket)

    def _publish(self) -> None:
        publisher = BrokerPublisher(self._comm)
        for ticket in self._touched:
            for event in ticket.events:
                publisher.publish(event)


class Notifications:
    def __init__(self, comm: Communication) -> None:
        self._comm = comm
        self._routes: dict[type[Event], Callable[[Event], None]] = {
            TicketOpened: self._opened,
            TicketClosed: self._closed,
        }

    def __call__(self, event: Event) -> None:
        self._routes[type(event)](event)

    def _opened(self, event: Event) -> None:
        self._comm.call("Mail", "/send", {"template": "opened"}).get()

    def _closed(self, event: Event) -> None:
        self._comm.call("Mail", "/send", {"template": "closed"}).get()
        self._comm.call("Survey", "/invite", {})


def retry_on(*kinds: type[Exception], times: int = 3):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            for left in reversed(range(times)):
                try:
                    return fn(*args, **kwargs)
                except kinds:
                    if not left:
                        raise
                    log.info("%d attempts left", left)

        return wrapper

    return decorate


class Users:
    def __init__(self, comm: Communication) -> None:
        self._comm = comm

    @retry_on(CommunicationError, times=2)
    def find(self, id: str) -> dict:
        return self._comm.call("Users", "/user", {"id": id}).get()

    def __getitem__(self, id: str) -> dict:
        return self.find(id)

    def __contains__(self, id: str) -> bool:
        return self._comm.call("Users", "/exists", {"id": id}).get()["exists"]

    def many(self, ids: Iterable[str]) -> list[dict]:
        futures = [self._comm.call("Users", "/user", {"id": id}) for id in ids]
        return [f.get() for f in futures]


class Container:
    """What a request needs, made when it is asked for."""

    def __init__(self, comm: Communication) -> None:
        self.comm = comm

    @functools.cached_property
    def users(self) -> Users:
        return Users(self.comm)

    @functools.cached_property
    def notify(self) -> Notifications:
        return Notifications(self.comm)

    def uow(self) -> UnitOfWork:
        return UnitOfWork(self.comm)
