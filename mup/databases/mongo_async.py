"""How does code on an event loop talk to MongoDB?

Through motor, which runs PyMongo on a pool of threads. The size of that pool is read from the environment
when motor is imported; left alone it would be a small hidden queue in front of the database.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bson.errors import BSONError
from pymongo.errors import PyMongoError

from mup.databases.address import checked_uri, database_of, server_of
from mup.databases.command import Command
from mup.databases.mongo import CLIENT_OPTIONS, as_query_error, plain, plan
from mup.errors import QueryError

if TYPE_CHECKING:
    from motor.motor_asyncio import AsyncIOMotorClient

__all__ = ["MotorDriver", "open_motor"]


def open_motor(name: str, uri: str, *, queries: int) -> MotorDriver:
    """Return a motor driver with room for this many queries at once.

    The first call of a process decides: motor reads the size of its pool once.
    """
    os.environ.setdefault("MOTOR_MAX_WORKERS", str(queries))
    from motor.motor_asyncio import AsyncIOMotorClient  # noqa: PLC0415

    try:
        return MotorDriver(name, uri, AsyncIOMotorClient(checked_uri(uri), **CLIENT_OPTIONS))
    except (PyMongoError, ValueError) as error:
        raise QueryError(f"database {name!r}: {error}", where=server_of(uri)) from error


class MotorDriver:
    """An asynchronous MongoDB client for one database; see `mup.databases.driver.AsyncDriver`."""

    def __init__(self, name: str, uri: str, client: AsyncIOMotorClient[dict[str, Any]]) -> None:
        self._name = name
        self._uri = uri
        self._client = client
        self._database = client[database_of(uri) or name]

    async def execute(self, collection: str, command: Command) -> list[dict[str, Any]]:
        """Carry out one command; see `mup.databases.driver.AsyncDriver.execute`."""
        try:
            method, args, options, convert = plan(command)
            pending = getattr(self._database[collection], method)(*args, **options)
            if convert is None:
                return [plain(document) for document in await pending.to_list(None)]
            return convert(await pending)
        except (PyMongoError, BSONError, TypeError, ValueError, OverflowError) as error:
            raise as_query_error(error, self._name, self._uri, collection, command) from error

    def close(self) -> None:
        """Close every connection."""
        self._client.close()
