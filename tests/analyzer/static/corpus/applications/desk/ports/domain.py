from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any, ClassVar, Self


class Status(StrEnum):
    DRAFT = auto()
    OPEN = auto()
    CLOSED = auto()


@dataclass(frozen=True, kw_only=True)
class Event:
    at: dt.datetime = field(default_factory=dt.datetime.now)
    topic: ClassVar[str] = "event"

    def payload(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True, kw_only=True)
class TicketOpened(Event):
    topic = "ticket.opened"
    ticket: str


@dataclass(frozen=True, kw_only=True)
class TicketClosed(Event):
    topic = "ticket.closed"
    ticket: str
    reason: str = ""


@dataclass
class Ticket:
    id: str
    title: str
    status: Status = Status.DRAFT
    assignee: str | None = None
    events: list[Event] = field(default_factory=list, repr=False)

    @classmethod
    def new(cls, title: str) -> Self:
        return cls(uuid.uuid4().hex, title)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        return cls(row["_id"], row.get("title", ""), Status(row.get("status", "draft")), row.get("assignee"))

    def open(self) -> None:
        if self.status is not Status.DRAFT:
            raise InvalidTransition(self.status, Status.OPEN)
        self.status = Status.OPEN
        self.events.append(TicketOpened(ticket=self.id))

    def close(self, reason: str) -> None:
        if self.status is Status.CLOSED:
            return
        self.status = Status.CLOSED
        self.events.append(TicketClosed(ticket=self.id, reason=reason))


class InvalidTransition(Exception):
    def __init__(self, source: Status, target: Status) -> None:
        super().__init__(f"{source} -> {target}")
