"""How does an ``async def`` endpoint see its request and reach others? The same operations, but awaited."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from mup.databases.command import Command, parse_command
from mup.databases.driver import AsyncDriver, open_async_driver
from mup.errors import CallTimeoutError, CommunicationError, QueryError, UsageError
from mup.events.record import FAILED, Event
from mup.future import MupFuture
from mup.runtime.client.awaited import AwaitedCall
from mup.runtime.client.events import Operation
from mup.runtime.client.network import Network
from mup.runtime.client.request import call_path, call_seconds
from mup.runtime.wire import Request
from mup.runtime.worker_communication import WorkerCommunication
from mup.runtime.worker_tools import Channel, WorkerTools

__all__ = ["AwaitedCommunication", "AwaitedTools"]

QUERIES = 256
"""Queries that may be under way at once without queueing inside a driver."""


class AwaitedTools:
    """What the requests of one event loop share.

    Args:
        tools: As for a worker that blocks.
        network: Sends the calls.
    """

    def __init__(self, tools: WorkerTools, network: Network) -> None:
        self.tools = tools
        self.network = network
        self._drivers: dict[str, tuple[str, AsyncDriver]] = {}
        self._queries: set[asyncio.Task[None]] = set()

    async def driver(self, database: str) -> AsyncDriver:
        """Return the driver of a database, opening it where the registry says it is.

        Raises:
            CommunicationError: Nobody knows the database.
        """
        resolver = self.tools.resolver
        uri = resolver.fresh_database(database)
        if uri is None:
            # The registry may take its time, which is nobody else's.
            uri = await asyncio.to_thread(resolver.database, database)
        known = self._drivers.get(database)
        if known is None or known[0] != uri:
            driver = open_async_driver(database, uri, queries=QUERIES)
            self._drivers[database] = uri, driver
            if known is not None:
                # The database has moved.
                await known[1].close()
            return driver
        return known[1]

    def start(self, work: Any) -> None:
        """Let a query run until it is complete, even if nobody waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._queries.add(task)
        task.add_done_callback(self._queries.discard)

    async def close(self) -> None:
        """Close every connection to a database."""
        for _, driver in self._drivers.values():
            await driver.close()


class AwaitedCommunication(WorkerCommunication):
    """One request on an event loop."""

    def __init__(
        self,
        request: Request,
        endpoint: str,
        tools: AwaitedTools,
        channel: Channel,
        names: Sequence[str] = (),
    ) -> None:
        super().__init__(request, endpoint, tools.tools, channel, names)
        self._shared = tools

    def call(
        self,
        dest_ms: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        method: str = "",
        idempotent: bool | None = None,
    ) -> MupFuture:
        """Call an endpoint and return at once; ``await`` what it returns. See `Communication.call`."""
        complete, seconds = self._complete(headers), call_seconds(timeout, self._tools.patience)
        plain = call_path(path)
        site = self._log.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who calls
        self._seq += 1
        network = self._shared.network
        return AwaitedCall(
            network,
            self._operation(self._seq, site, f"{dest_ms}{plain}", seconds, awaited=True),
            dest_ms,
            path,
            params,
            complete,
            method,
            sampled=self._request.sampled,
            retries=network.retries,
            idempotent=idempotent,
        )

    def query(
        self, db_name: str, qry_name: str, coll_name: str, qry_txt: str | bytes | Mapping[str, Any]
    ) -> MupFuture:
        """Query a database and return at once; ``await`` what it returns. See `Communication.query`."""
        site = self._log.site(sys._getframe(1))  # noqa: SLF001 - the only way to see who calls
        self._seq += 1
        operation = self._operation(self._seq, site, f"{db_name}.{qry_name}", self._tools.patience)
        operation.log(Event.COMM_START)
        try:
            command = parse_command(qry_txt)
        except BaseException:
            operation.finish(FAILED)
            raise
        return AwaitedQuery(operation, self._shared, db_name, coll_name, command)


class AwaitedQuery(MupFuture):
    """A query under way; ``await`` gives its documents, or raises what went wrong."""

    def __init__(
        self, operation: Operation, tools: AwaitedTools, db: str, collection: str, command: Command
    ) -> None:
        self._operation = operation
        self._tools = tools
        self._answer: asyncio.Future[list[dict[str, Any]]] = asyncio.get_running_loop().create_future()
        # Nobody need ever ask for it.
        self._answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        tools.start(self._run(db, collection, command))

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
        operation = self._operation
        operation.wait(Event.WAIT_START, 0, site)
        flags = FAILED
        try:
            documents = await asyncio.shield(self._answer)
            flags = 0
        finally:
            operation.wait(Event.WAIT_END, flags, site)
        return documents

    async def _run(self, db: str, collection: str, command: Command) -> None:
        operation = self._operation
        try:
            driver = await self._tools.driver(db)
            operation.contact()
            async with asyncio.timeout(max(0.001, operation.deadline - time.monotonic())):
                documents = await driver.execute(collection, command)
        except CommunicationError as error:
            self._fail(error)
        except TimeoutError:
            self._fail(CallTimeoutError(f"{operation.name}: no answer in time"))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
            self._fail(QueryError(f"database {db!r}: {type(error).__name__}: {error}"))
        else:
            operation.finish()
            self._answer.set_result(documents)

    def _fail(self, error: CommunicationError) -> None:
        self._operation.contact()
        self._operation.finish(FAILED)
        self._answer.set_exception(error)
