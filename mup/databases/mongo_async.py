"""MongoDB for code on an event loop.

Through motor, which runs PyMongo on a pool of threads. Motor's own pool would be a small hidden queue in
front of the database, and what its threads do would be in no event log; so it gets another one. Or through
PyMongo's asynchronous client, which has no threads.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pymongo
from bson.errors import BSONError
from pymongo.errors import PyMongoError

from mup.databases.address import checked_uri, database_of, server_of
from mup.databases.command import Command
from mup.databases.driver_threads import DriverThreads
from mup.databases.mongo import as_query_error, client_options, plain, plan
from mup.errors import QueryError

__all__ = ["AsyncMongoDriver", "open_motor", "open_pymongo"]


def open_motor(name: str, uri: str, *, queries: int) -> AsyncMongoDriver:
    """Return a driver on motor with room for this many queries at once.

    The first call of a process decides: motor has one pool for all its clients.
    """
    from motor.frameworks import asyncio as framework  # noqa: PLC0415
    from motor.motor_asyncio import AsyncIOMotorClient  # noqa: PLC0415

    if not isinstance(framework._EXECUTOR, DriverThreads):  # noqa: SLF001 - motor has no other way to set it
        framework._EXECUTOR = DriverThreads(queries, "mup-motor")  # noqa: SLF001
    return AsyncMongoDriver(name, uri, AsyncIOMotorClient)


def open_pymongo(name: str, uri: str) -> AsyncMongoDriver:
    """Return a driver on PyMongo's asynchronous client."""
    return AsyncMongoDriver(name, uri, pymongo.AsyncMongoClient)


class AsyncMongoDriver:
    """An asynchronous MongoDB client for one database; see `mup.databases.driver.AsyncDriver`.

    Args:
        name: What the project calls the database.
        uri: Server and database.
        kind: Class of the client; motor and PyMongo name their methods alike.

    Raises:
        QueryError: The URI is wrong.
    """

    def __init__(self, name: str, uri: str, kind: Any) -> None:
        self._name = name
        self._uri = uri
        try:
            self._client = kind(checked_uri(uri), **client_options(uri))
            self._database = self._client[database_of(uri) or name]
        except (PyMongoError, ValueError) as error:
            raise QueryError(f"database {name!r}: {error}", where=server_of(uri)) from error

    async def execute(self, collection: str, command: Command) -> list[dict[str, Any]]:
        """Carry out one command; see `mup.databases.driver.AsyncDriver.execute`."""
        try:
            method, args, options, convert = plan(command)
            pending = getattr(self._database[collection], method)(*args, **options)
            if convert is not None:
                return convert(await pending)
            # PyMongo's cursor over a pipeline comes with the first answer, all others at once.
            cursor = await pending if asyncio.iscoroutine(pending) else pending
            return [plain(document) for document in await cursor.to_list(None)]
        except (PyMongoError, BSONError, TypeError, ValueError, OverflowError) as error:
            raise as_query_error(error, self._name, self._uri, collection, command) from error

    async def close(self) -> None:
        """Close every connection."""
        closing = self._client.close()
        if asyncio.iscoroutine(closing):
            await closing
