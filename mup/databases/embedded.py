"""The database server of a project that names none of its own.

``python -m mup.databases.embedded``: the MongoDB wire protocol on SQLite, in memory, on a free loopback port.
Prints one JSON line when ready, ``{"port", "sqlite"}`` or ``{"error"}``, and ends when its standard input
ends, that is with the process that started it, however that one dies.

It runs the server of the package nx-27017 in this process instead of through its command, which would pick a
port before binding it and leave a log file and a pid file behind. All its requests go through one lock: the
model treats it as one server.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Serve until standard input ends."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    # Ctrl-C reaches the whole foreground group; the launcher decides when its database goes.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # By name: the package has no type information.
        sqlite3 = importlib.import_module("neosqlite._sqlite").sqlite3
        from nx_27017.handler import NeoSQLiteHandler  # noqa: PLC0415
    except ImportError as error:
        _say(error=f"the package {error.name} is not installed")
        return
    problem = _problem(importlib.import_module("neosqlite"))
    if problem:
        _say(error=f"{problem} with SQLite {sqlite3.sqlite_version}, which is what {sqlite3.__name__} has")
        return
    asyncio.run(_serve(NeoSQLiteHandler(":memory:"), sqlite3.sqlite_version))


def _problem(neosqlite: Any) -> str:
    """Return what the embedded database does wrong with its build of SQLite, or "".

    neosqlite keeps ids in a column of type ``JSONB`` where SQLite has the function ``jsonb()`` (from 3.45
    on), else in one of type ``TEXT``, in which integers become texts and 10 comes before 9.
    """
    try:
        with neosqlite.Connection(":memory:") as connection:
            connection.ids.insert_many([{"_id": 10}, {"_id": 9}])
            found = [document["_id"] for document in connection.ids.find({}).sort("_id", 1)]
    except Exception as error:  # noqa: BLE001 - a build without JSON, say
        return f"it fails ({type(error).__name__}: {error})"
    return "" if found == [9, 10] else f"it sorts the ids 9 and 10 as {found}"


async def _serve(handler: object, sqlite_version: str) -> None:
    from nx_27017.server import handle_client  # noqa: PLC0415

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handle_client(reader, writer, handler)

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    _say(port=server.sockets[0].getsockname()[1], sqlite=sqlite_version)
    ended = asyncio.Event()

    def read() -> None:
        if not os.read(0, 4096):
            ended.set()

    asyncio.get_running_loop().add_reader(0, read)
    await ended.wait()
    # Nothing to save: connections may be cut in any state.
    os._exit(0)


def _say(**message: object) -> None:
    try:
        print(json.dumps(message), flush=True)  # noqa: T201 - the protocol with the parent
    except BrokenPipeError:
        # Who started this database has gone, and with it the reason to serve.
        os._exit(1)


if __name__ == "__main__":
    main()
