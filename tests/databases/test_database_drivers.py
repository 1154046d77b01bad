"""Both drivers, on a real MongoDB and on the embedded server, carry out every command alike."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import json
import socket
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import bson
import pytest
from mongods import OwnMongod

from mup.databases.command import parse_command
from mup.databases.driver import open_async_driver, open_driver
from mup.errors import QueryError

pytestmark = pytest.mark.services

Execute = Callable[..., list[dict[str, Any]]]


def _blocking(uri: str) -> Iterator[Execute]:
    driver = open_driver("db", uri)
    try:
        yield lambda text, collection="c": driver.execute(collection, parse_command(text))
    finally:
        driver.close()


def _asynchronous(uri: str, client: Literal["motor", "pymongo"]) -> Iterator[Execute]:
    with asyncio.Runner() as runner:

        async def start() -> Any:
            return open_async_driver("db", uri, queries=16, client=client)

        driver = runner.run(start())
        try:
            yield lambda text, collection="c": runner.run(driver.execute(collection, parse_command(text)))
        finally:
            runner.run(driver.close())
    if client == "pymongo":
        # PyMongo loses the socket of an attempt to connect that `close` cancels (`_async_create_connection`);
        # found later, it would be the failure of another test.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


DRIVERS = {
    "blocking": _blocking,
    "motor": lambda uri: _asynchronous(uri, "motor"),
    "pymongo-async": lambda uri: _asynchronous(uri, "pymongo"),
}


@pytest.fixture(params=list(DRIVERS))
def execute(request: pytest.FixtureRequest, database_uri: str) -> Iterator[Execute]:
    """Carries out one ``qry_txt`` on an empty database."""
    yield from DRIVERS[request.param](database_uri)


def _fill(execute: Execute) -> None:
    documents = [{"_id": i, "kind": "even" if i % 2 == 0 else "odd", "n": i * 10} for i in range(12)]
    execute({"$command": "insert", "documents": documents})


def test_find_with_a_filter(execute: Execute) -> None:
    """A filter returns the matching documents; no match is an empty list."""
    _fill(execute)
    assert execute({"_id": 3}) == [{"_id": 3, "kind": "odd", "n": 30}]
    assert execute('{"_id": 99}') == []


def test_find_sorts_integer_ids_as_numbers(execute: Execute) -> None:
    """Sort, skip, limit and projection are honoured, and 10 comes after 9."""
    _fill(execute)
    found = execute({"$command": "find", "sort": {"_id": 1}, "skip": 8, "limit": 3, "projection": {"_id": 1}})
    assert found == [{"_id": 8}, {"_id": 9}, {"_id": 10}]
    assert [d["_id"] for d in execute({"$command": "find", "sort": [["_id", -1]], "limit": 2})] == [11, 10]


def test_more_documents_than_one_batch(execute: Execute) -> None:
    """A long result is complete, not just its first batch."""
    execute({"$command": "insert", "documents": [{"_id": i} for i in range(350)]})
    assert len(execute({})) == 350


def test_aggregate(execute: Execute) -> None:
    """A pipeline returns its documents."""
    _fill(execute)
    pipeline = [{"$group": {"_id": "$kind", "sum": {"$sum": "$n"}}}, {"$sort": {"_id": 1}}]
    assert execute({"$command": "aggregate", "pipeline": pipeline}) == [
        {"_id": "even", "sum": 300},
        {"_id": "odd", "sum": 360},
    ]


def test_insert_reports_ids_as_text(execute: Execute) -> None:
    """Generated ids come back as text, and find their document again through $oid."""
    (answer,) = execute({"$command": "insert", "documents": [{"word": "a"}]})
    assert answer["inserted"] == 1
    (identity,) = answer["ids"]
    assert isinstance(identity, str)
    assert execute({"_id": {"$oid": identity}}) == [{"_id": identity, "word": "a"}]


def test_insert_leaves_the_callers_documents_alone(execute: Execute) -> None:
    """The driver's _id is not written into what the service still holds."""
    document = {"word": "a"}
    execute({"$command": "insert", "documents": [document]})
    assert document == {"word": "a"}


def test_update_one_and_many(execute: Execute) -> None:
    """Updates report what they matched and changed."""
    _fill(execute)
    change = {"$set": {"n": 0}}
    assert execute({"$command": "update", "filter": {"kind": "odd"}, "update": change}) == [
        {"matched": 1, "modified": 1, "upserted": None}
    ]
    (answer,) = execute({"$command": "update", "filter": {"kind": "even"}, "update": change, "many": True})
    assert answer["matched"] == 6
    (answer,) = execute({"$command": "update", "filter": {"_id": 77}, "update": change, "upsert": True})
    assert answer["upserted"] == 77


def test_delete_count_distinct(execute: Execute) -> None:
    """Counts are documents of their own."""
    _fill(execute)
    assert execute({"$command": "delete", "filter": {"_id": 0}}) == [{"deleted": 1}]
    assert execute({"$command": "delete", "filter": {"kind": "odd"}, "many": True}) == [{"deleted": 6}]
    assert execute({"$command": "count"}) == [{"count": 5}]
    assert execute({"$command": "count", "filter": {"n": {"$gt": 50}}}) == [{"count": 3}]
    (answer,) = execute({"$command": "distinct", "field": "kind"})
    assert answer == {"values": ["even"]}


def test_results_are_jsonable(execute: Execute) -> None:
    """Dates, object ids, bytes and 64-bit numbers become JSON values, nested ones too."""
    when = dt.datetime(2024, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
    value = {"_id": 1, "at": [when], "sub": {"id": bson.ObjectId()}, "raw": b"ab", "big": 2**40}
    execute({"$command": "insert", "documents": [value]})
    (found,) = execute({"_id": 1})
    assert json.loads(json.dumps(found)) == found
    assert found["at"] == ["2024-02-03T04:05:06"]
    assert found["sub"]["id"] == str(value["sub"]["id"])
    assert found["big"] == 2**40


def test_the_servers_refusal_is_a_query_error(execute: Execute) -> None:
    """A duplicate key is refused with database, command and reason in the message."""
    execute({"$command": "insert", "documents": [{"_id": 1}]})
    with pytest.raises(QueryError, match="database 'db': insert failed") as caught:
        execute({"$command": "insert", "documents": [{"_id": 1}]})
    assert caught.value.where == "db.c"


@pytest.mark.parametrize("text", [{"_id": {"$oid": "zz"}}, {"_id": {1, 2}}, {"n": 2**70}])
def test_values_the_driver_cannot_send(execute: Execute, text: Any) -> None:
    """What cannot be encoded is a QueryError too."""
    with pytest.raises(QueryError, match="find failed"):
        execute(text)


@pytest.mark.parametrize("kind", list(DRIVERS))
def test_a_dead_server_is_reported_within_three_seconds(kind: str) -> None:
    """Nothing listens: an error that names the address, soon."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    for execute in DRIVERS[kind](f"mongodb://{address}/d"):
        start = time.monotonic()
        with pytest.raises(QueryError, match=f"no server answers at {address}"):
            execute({})
        assert time.monotonic() - start < 3.0


@pytest.mark.parametrize("kind", list(DRIVERS))
def test_a_server_that_hangs_costs_the_time_given(kind: str, own_mongod: OwnMongod) -> None:
    """A query on a server that hangs ends in an error when its time is over; later queries are answered."""
    for execute in DRIVERS[kind](f"{own_mongod.uri}/d?socketTimeoutMS=500&retryReads=false"):
        assert execute({}) == []
        own_mongod.stop()
        try:
            start = time.monotonic()
            with pytest.raises(QueryError, match=r"not answered in time|failed"):
                execute({})
            assert time.monotonic() - start < 3.0
        finally:
            own_mongod.go_on()
        assert _recovered(execute) < 2.0


@pytest.mark.parametrize("kind", list(DRIVERS))
def test_an_attempt_to_connect_is_given_up_with_the_driver(kind: str) -> None:
    """A server that does not even accept connections holds up neither the query nor the end of the driver."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # what waits to be accepted fills its queue
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        for execute in DRIVERS[kind](f"mongodb://127.0.0.1:{full.getsockname()[1]}/d"):
            start = time.monotonic()
            with pytest.raises(QueryError, match="no server answers"):
                execute({})
        assert time.monotonic() - start < 5.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(DRIVERS))
def test_a_server_that_restarts_is_found_again(kind: str, own_mongod: OwnMongod) -> None:
    """A killed server is an error within 3 s; once it is back, queries work again within 2 s."""
    for execute in DRIVERS[kind](f"{own_mongod.uri}/d"):
        execute({"$command": "insert", "documents": [{"_id": 1}]})
        own_mongod.kill()
        start = time.monotonic()
        with pytest.raises(QueryError, match=r"no server answers|failed"):
            execute({})
        assert time.monotonic() - start < 3.0
        own_mongod.start()
        assert _recovered(execute) < 2.0


def _recovered(execute: Execute) -> float:
    """Return how many seconds it takes until queries work again; nothing is on the disk of these servers."""
    start = time.monotonic()
    while time.monotonic() - start < 10:
        try:
            assert execute({}) == []
            break
        except QueryError:
            continue
    return time.monotonic() - start


@pytest.mark.parametrize("kind", list(DRIVERS))
@pytest.mark.parametrize(
    "uri",
    [
        pytest.param("mongodb://u:hush@%zz/d", id="host"),
        pytest.param("mongodb://u:hu/sh@h/d", id="slash"),
        pytest.param("mongodb://u:hush:hush@h/d", id="colon"),
        pytest.param("mongodb://u:hush#1@h/d", id="hash"),
    ],
)
def test_a_malformed_uri_shows_no_password(kind: str, uri: str) -> None:
    """What is said about a URI with a mistake names neither user nor password."""
    with pytest.raises(QueryError) as caught:
        next(DRIVERS[kind](uri))
    assert "hush" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("open_any", [open_driver, lambda n, u: open_async_driver(n, u, queries=1)])
def test_a_scheme_without_a_server(open_any: Callable[[str, str], Any]) -> None:
    """An unknown scheme or a malformed URI is refused when the driver is opened."""
    with pytest.raises(QueryError, match="no driver for 'redis'"):
        open_any("db", "redis://h/0")
