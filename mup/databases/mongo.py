"""MongoDB for blocking workers.

Workers use PyMongo's blocking client, on which motor is built: motor's own pool of threads would be a
queue inside the worker that no model knows of.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import bson
import pymongo
from bson.errors import BSONError, InvalidId
from pymongo.errors import ConnectionFailure, PyMongoError, ServerSelectionTimeoutError

from mup.databases.address import checked_uri, database_of, server_of
from mup.databases.command import Command
from mup.databases.driver import ANSWER_SECONDS, CONNECT_SECONDS
from mup.errors import DatabaseDownError, QueryError, QueryTimeoutError

__all__ = ["MongoDriver", "Plan", "as_query_error", "client_options", "plan"]

_DEFAULTS: dict[str, Any] = {
    "serverSelectionTimeoutMS": int(CONNECT_SECONDS * 1000),
    "connectTimeoutMS": int(CONNECT_SECONDS * 1000),
    # Not PyMongo's timeout for whole operations: with it, one on a server that is gone would look for it all
    # that time.
    "socketTimeoutMS": int(ANSWER_SECONDS * 1000),
    # A bound would be a queue inside the driver; 0 = none. There are as many connections as queries were
    # under way at once, which the pool of workers and their code decide; what a burst leaves is closed.
    "maxPoolSize": 0,
    "maxIdleTimeMS": 60_000,
    "appname": "mup",
}

# What to call on a collection, and how to turn what comes back into documents.
Plan = tuple[str, tuple[Any, ...], dict[str, Any], Callable[[Any], list[dict[str, Any]]] | None]


class MongoDriver:
    """A blocking MongoDB client for one database; see `mup.databases.driver.Driver`.

    Not to be created before a fork: PyMongo's locks and sockets do not survive one.
    """

    def __init__(self, name: str, uri: str) -> None:
        self._name = name
        self._uri = uri
        try:
            self._client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(
                checked_uri(uri), **client_options(uri)
            )
            self._database = self._client[database_of(uri) or name]
        except (PyMongoError, ValueError) as error:
            raise QueryError(f"database {name!r}: {error}", where=server_of(uri)) from error

    def execute(self, collection: str, command: Command) -> list[dict[str, Any]]:
        """Carry out one command; see `mup.databases.driver.Driver.execute`."""
        try:
            method, args, options, convert = plan(command)
            answer = getattr(self._database[collection], method)(*args, **options)
            return [plain(document) for document in answer] if convert is None else convert(answer)
        except (PyMongoError, BSONError, TypeError, ValueError, OverflowError) as error:
            raise as_query_error(error, self._name, self._uri, collection, command) from error

    def close(self) -> None:
        """Close every connection."""
        self._client.close()


def client_options(uri: str) -> dict[str, Any]:
    """Return the options of a client but those the URI has: PyMongo would prefer ours."""
    given = {option.partition("=")[0].lower() for option in uri.partition("?")[2].split("&")}
    return {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}


def plan(command: Command) -> Plan:
    """Return which driver method carries out a command, and how its answer becomes documents.

    The converter is None where the answer is a cursor over documents. Blocking and asynchronous clients
    share method names and arguments, so one plan serves both.
    """
    fields = {name: _from_json(value) for name, value in command.fields.items()}
    where = fields.get("filter", {})
    match command.kind:
        case "find":
            options: dict[str, Any] = {
                name: fields[name] for name in ("projection", "skip", "limit") if name in fields
            }
            if "sort" in fields:
                options["sort"] = _pairs(fields["sort"])
            return "find", (where,), options, None
        case "aggregate":
            return "aggregate", (fields["pipeline"],), {}, None
        case "insert":
            return "insert_many", (fields["documents"],), {}, _inserted
        case "update":
            method = "update_many" if fields.get("many") else "update_one"
            return method, (where, fields["update"]), {"upsert": fields.get("upsert", False)}, _updated
        case "delete":
            return "delete_many" if fields.get("many") else "delete_one", (where,), {}, _deleted
        case "count":
            return "count_documents", (where,), {}, lambda count: [{"count": count}]
        case _:
            values = {"key": fields["field"], "filter": where}
            return "distinct", (), values, lambda found: [{"values": plain(found)}]


def as_query_error(error: Exception, name: str, uri: str, collection: str, command: Command) -> QueryError:
    """Return the error a service sees: which database, which command, and why."""
    where = f"{name}.{collection}"
    if isinstance(error, ServerSelectionTimeoutError):
        return DatabaseDownError(
            f"database {name!r}: no server answers at {server_of(uri)} (waited {CONNECT_SECONDS:g} s)",
            where=where,
            hint="is the database running? its address is in the project's mup.toml",
        )
    if isinstance(error, PyMongoError) and error.timeout:
        return QueryTimeoutError(
            f"database {name!r}: {command.kind} was not answered in time: {_reason(error)}", where=where
        )
    kind = DatabaseDownError if isinstance(error, ConnectionFailure) else QueryError
    return kind(f"database {name!r}: {command.kind} failed: {_reason(error)}", where=where)


def _reason(error: Exception) -> str:
    return str(error).partition(", full error:")[0].partition(" (configured timeouts")[0]


def plain(value: Any) -> Any:
    """Return a value of a document as JSON knows it: ids, dates and the like become text."""
    kind = type(value)
    if kind in (str, int, float, bool, type(None)):
        return value
    if kind is dict:
        return {key: plain(item) for key, item in value.items()}
    if kind is list:
        return [plain(item) for item in value]
    if isinstance(value, int | float):
        # bson.Int64 and the like.
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _from_json(value: Any) -> Any:
    """Return a value with ``{"$oid": text}`` and ``{"$date": text}`` as the types they stand for.

    Also a copy: the driver adds ``_id`` to documents it inserts, on another thread than the caller's.
    """
    if isinstance(value, Mapping):
        if len(value) == 1:
            ((key, text),) = value.items()
            if key == "$oid" and isinstance(text, str):
                return _object_id(text)
            if key == "$date" and isinstance(text, str):
                return dt.datetime.fromisoformat(text)
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value


def _object_id(text: str) -> bson.ObjectId:
    try:
        return bson.ObjectId(text)
    except InvalidId as error:
        raise ValueError(f"$oid: {error}") from error


def _pairs(sort: Any) -> list[tuple[str, int]]:
    return [(key, direction) for key, direction in (sort.items() if isinstance(sort, dict) else sort)]


def _inserted(answer: Any) -> list[dict[str, Any]]:
    return [{"inserted": len(answer.inserted_ids), "ids": plain(list(answer.inserted_ids))}]


def _updated(answer: Any) -> list[dict[str, Any]]:
    return [
        {
            "matched": answer.matched_count,
            "modified": answer.modified_count,
            "upserted": plain(answer.upserted_id),
        }
    ]


def _deleted(answer: Any) -> list[dict[str, Any]]:
    return [{"deleted": answer.deleted_count}]
