"""What the requests of one worker share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mup.communication import DEFAULT_TIMEOUT
from mup.runtime.client.events import EventLog
from mup.runtime.client.resolver import Resolver
from mup.runtime.client.sockets import ConnectionPool
from mup.runtime.protocol.wire import Answer, FromWorker

if TYPE_CHECKING:
    from mup.databases.runner import QueryRunner

__all__ = ["Channel", "Tools", "WorkerTools"]


class Channel(Protocol):
    """Where answers go."""

    def send(self, message: FromWorker) -> None:
        """Send one message."""

    def hold(self, answer: Answer) -> None:
        """Send an answer together with the news that the worker is free, which comes next."""


@dataclass(slots=True, kw_only=True)
class Tools:
    """What the requests of one worker share, or those of one event loop.

    Attributes:
        service: Name of the service.
        log: Of the requests that are logged.
        silent: Of the others.
        patience: Seconds an operation may take unless it says otherwise.
        production: Whether clients are told nothing of what goes wrong.
    """

    service: str
    log: EventLog
    silent: EventLog
    patience: float = DEFAULT_TIMEOUT
    production: bool = False


@dataclass(slots=True, kw_only=True)
class WorkerTools(Tools):
    """What the requests of one worker share that blocks.

    Attributes:
        resolver: Knows where others are.
        pool: Connections to them.
        queries: Runs queries; None before the first one.
    """

    resolver: Resolver
    pool: ConnectionPool
    queries: QueryRunner | None = None

    def query_runner(self) -> QueryRunner:
        """Return the runner of queries, loading the database drivers at the first query."""
        if self.queries is None:
            from mup.databases.runner import QueryRunner  # noqa: PLC0415

            self.queries = QueryRunner(self.resolver.database)
        return self.queries
