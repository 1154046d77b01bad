"""The interface of a database driver, and the choice of one by URI."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from mup.databases.address import scheme_of
from mup.databases.command import Command
from mup.errors import QueryError

__all__ = ["AsyncDriver", "Driver", "load_drivers", "open_async_driver", "open_driver"]

CONNECT_SECONDS = 2.0
"""How long a driver looks for its server before it gives up."""
ANSWER_SECONDS = 30.0
"""How long a driver waits for the next bytes of an answer."""


class Driver(Protocol):
    """A blocking connection pool to one database; used by several threads at once."""

    def execute(self, collection: str, command: Command) -> list[dict[str, Any]]:
        """Carry out one command.

        Returns:
            JSON-able documents; commands that do not read return one document of counts.

        Raises:
            QueryError: The server is unreachable, was lost on the way, was too slow, or refused.
        """
        ...

    def close(self) -> None:
        """Close every connection; the driver cannot be used afterwards."""
        ...


class AsyncDriver(Protocol):
    """The same for code that runs on an event loop."""

    async def execute(self, collection: str, command: Command) -> list[dict[str, Any]]:
        """Carry out one command; returns and raises like `Driver.execute`."""
        ...

    async def close(self) -> None:
        """Close every connection; the driver cannot be used afterwards."""
        ...


def open_driver(name: str, uri: str) -> Driver:
    """Return a blocking driver for a database; connects at the first command.

    Args:
        name: What the project calls the database; for messages.
        uri: Server and database, ``mongodb://host:port/database``.

    Raises:
        QueryError: No driver serves the scheme, or the URI is wrong.
    """
    if scheme_of(uri) in ("mongodb", "mongodb+srv"):
        # Drivers are imported when they are used: a project without databases carries none.
        from mup.databases.mongo import MongoDriver  # noqa: PLC0415

        return MongoDriver(name, uri)
    raise _unserved(name, uri)


def open_async_driver(
    name: str, uri: str, *, queries: int, client: Literal["motor", "pymongo"] = "motor"
) -> AsyncDriver:
    """Return a driver for code on the running event loop; else like `open_driver`.

    Args:
        name: What the project calls the database; for messages.
        uri: Server and database.
        queries: How many queries may be under way at once without queueing inside the driver.
        client: Which one to talk to MongoDB with: motor, or PyMongo's own asynchronous one.
    """
    if scheme_of(uri) in ("mongodb", "mongodb+srv"):
        from mup.databases.mongo_async import open_motor, open_pymongo  # noqa: PLC0415

        return open_motor(name, uri, queries=queries) if client == "motor" else open_pymongo(name, uri)
    raise _unserved(name, uri)


def load_drivers(*, awaited: bool) -> None:
    """Import all that a first query needs, to be called before worker processes are forked.

    PyMongo takes some 0.2 s of CPU to import. A worker that did so at its first query would keep one request
    waiting for that long, whenever the queue first reaches this worker, and each its own copy in memory.

    Args:
        awaited: Whether queries will be those of code on an event loop.
    """
    if awaited:
        import mup.databases.mongo_async  # noqa: PLC0415
    else:
        import mup.databases.mongo  # noqa: PLC0415
        import mup.databases.runner  # noqa: F401, PLC0415


def _unserved(name: str, uri: str) -> QueryError:
    return QueryError(
        f"database {name!r}: no driver for {scheme_of(uri) or uri!r}",
        hint="use a mongodb:// URI, or uri = 'embedded' in mup.toml",
    )
