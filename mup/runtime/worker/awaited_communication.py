"""``Communication`` of an ``async def`` endpoint: the same operations, but awaited."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from mup.databases.command import Command, parse_command
from mup.databases.driver import AsyncDriver, open_async_driver
from mup.databases.driver_threads import ThreadTime, timed_threads
from mup.errors import CallTimeoutError, CommunicationError, QueryError, UsageError
from mup.events.record import FAILED
from mup.future import AwaitedFuture, MupFuture
from mup.runtime.client.awaited import AwaitedCall
from mup.runtime.client.events import Operation, Waiting
from mup.runtime.client.exchange import Call
from mup.runtime.client.network import Network
from mup.runtime.client.request import Words
from mup.runtime.endpoint.served_request import ServedRequest
from mup.runtime.endpoint.worker_tools import Tools

__all__ = ["AwaitedCommunication", "AwaitedTools"]

QUERIES = 256
"""Queries that may be under way at once without queueing inside a driver."""


@dataclass(slots=True, kw_only=True)
class AwaitedTools(Tools):
    """What the requests of one event loop share.

    Attributes:
        network: Knows where others are, and sends the calls.
        drivers: The URI and the driver of every database that was queried.
    """

    network: Network
    drivers: dict[str, tuple[str, AsyncDriver]] = field(default_factory=dict)

    async def driver(self, database: str) -> AsyncDriver:
        """Return the driver of a database, opening it where the registry says it is.

        Raises:
            CommunicationError: The database is not registered.
        """
        uri = await self.network.database(database)
        known = self.drivers.get(database)
        if known is not None and known[0] == uri:
            return known[1]
        driver = open_async_driver(database, uri, queries=QUERIES)
        self.drivers[database] = uri, driver
        if known is not None:
            # The database has moved.
            await known[1].close()
        return driver

    async def close(self) -> None:
        """Give up what is under way, and close every connection."""
        await self.network.close()
        for _, driver in self.drivers.values():
            await driver.close()


class AwaitedCommunication(ServedRequest):
    """One request on an event loop."""

    _tools: AwaitedTools
    _on_loop = True

    def query(
        self, db_name: str, qry_name: str, coll_name: str, qry_txt: str | bytes | Mapping[str, Any]
    ) -> MupFuture:
        """Query a database and return at once; ``await`` what it returns. See `Communication.query`."""
        operation = self._operation(f"{db_name}.{qry_name}", sys._getframe(1))  # noqa: SLF001
        with operation.beginning():
            command = parse_command(qry_txt)
        return AwaitedQuery(operation, self._tools, db_name, coll_name, command)

    def _begin(self, operation: Operation, service: str, words: Words, idempotent: bool | None) -> MupFuture:
        network = self._tools.network
        return AwaitedCall(
            network, Call(operation, service, None, network, network.retries, idempotent, words)
        )


class AwaitedQuery(AwaitedFuture):
    """A query under way; ``await`` gives its documents, or raises what went wrong."""

    def __init__(
        self, operation: Operation, tools: AwaitedTools, db: str, collection: str, command: Command
    ) -> None:
        self._operation = operation
        self._tools = tools
        self._answer = tools.network.start(self._run(db, collection, command))
        # The result need not be asked for.
        self._answer.add_done_callback(lambda done: done.cancelled() or done.exception())

    def get(self, timeout: float | None = None, *, check: bool = True) -> Any:  # noqa: ARG002
        """Return what has been awaited; before that, refuse: blocking would stop all other requests."""
        if not self._answer.done():
            raise UsageError(
                f"an event loop must not block on {self._operation.name}", hint="write 'await' first"
            )
        return self._answer.result()

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the documents. Not a generator itself, so that the frame above is the one that awaits."""
        events = self._operation.events
        return self._wait(events.waiting_site(1) if events.writer is not None else 0).__await__()

    async def _wait(self, site: int) -> list[dict[str, Any]]:
        with Waiting(self._operation, site):
            return await asyncio.shield(self._answer)

    async def _run(self, db: str, collection: str, command: Command) -> list[dict[str, Any]]:
        operation = self._operation
        flags = FAILED
        threads: ThreadTime | None = None
        try:
            driver = await self._tools.driver(db)
            operation.contact()
            logged = operation.events.writer is not None
            with timed_threads() if logged else nullcontext() as threads:
                async with asyncio.timeout(max(0.001, operation.deadline - time.monotonic())):
                    documents = await driver.execute(collection, command)
            flags = 0
        except CommunicationError:
            raise
        except TimeoutError as error:
            raise CallTimeoutError(f"{operation.name}: no answer in time") from error
        except Exception as error:
            raise QueryError(f"database {db!r}: {type(error).__name__}: {error}") from error
        finally:
            operation.contact()
            if threads is not None and threads.nanoseconds:
                operation.worked(threads.nanoseconds)
            operation.finish(flags)
        return documents
