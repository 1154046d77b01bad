from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, TypedDict

from mup import EP, MS, Communication
from mup.errors import CallError

log = logging.getLogger(__name__)
T = TypeVar("T")


class Result(Generic[T]):
    def __init__(self, value: T | None = None, error: str | None = None):
        self.value = value
        self.error = error

    @property
    def ok(self) -> bool:
        return self.error is None

    def unwrap_or(self, default: T) -> T:
        return self.value if self.ok else default


class Row(TypedDict):
    id: str
    price: float


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    size: int = 20

    @classmethod
    def of(cls, params: dict[str, Any]) -> "Page":
        return cls(int(params.get("page", 1)), min(int(params.get("size", 20)), 100))

    @property
    def skip(self) -> int:
        return (self.number - 1) * self.size


class NotFound(Exception):
    status = 404


class Forbidden(Exception):
    status = 403


def errors(fn):
    async def inner(self, comm: Communication):
        try:
            await fn(self, comm)
        except (NotFound, Forbidden) as error:
            comm.respond({"error": str(error)}, status=error.status)
        except CallError as error:
            comm.respond({"error": "upstream"}, status=502)

    return inner


async def fetch(comm: Communication, service: str, path: str, default: Any = None) -> Result:
    try:
        return Result(await comm.call(service, path))
    except CallError as error:
        log.warning("%s%s: %s", service, path, error)
        return Result(error=str(error))


async def retry(make: Callable[[], Awaitable[T]], times: int = 3) -> T:
    for attempt in itertools.count(1):
        try:
            return await make()
        except CallError:
            if attempt >= times:
                raise
            await asyncio.sleep(0.01 * 2**attempt)


class Repository:
    def __init__(self, comm: Communication):
        self._comm = comm

    async def get(self, key: str) -> dict:
        rows = await self._comm.query("db", "get", "things", {"_id": key})
        if not rows:
            raise NotFound(key)
        return rows[0]

    async def page(self, page: Page) -> list[dict]:
        return await self._comm.query("db", "page", "things", {"skip": page.skip, "limit": page.size})

    def each(self, keys: Iterable[str]) -> list[Awaitable[dict]]:
        return [self.get(key) for key in keys]


class UnitOfWork:
    def __init__(self, comm: Communication):
        self.comm = comm
        self.dirty: list[dict] = []

    async def __aenter__(self) -> "UnitOfWork":
        return self

    async def __aexit__(self, kind, error, trace) -> bool:
        if kind is None and self.dirty:
            await self.comm.query("db", "save", "things", {"$insert": self.dirty})
        return False

    def add(self, thing: dict) -> None:
        self.dirty.append(thing)


class Gate(MS):
    runtime = "async"

    @EP("/thing")
    @errors
    async def thing(self, comm: Communication) -> None:
        comm.respond(await Repository(comm).get(comm.params["id"]))

    @EP("/page")
    @errors
    async def page(self, comm: Communication) -> None:
        page = Page.of(comm.params)
        rows = await Repository(comm).page(page)
        comm.respond({"rows": rows, **asdict(page)})

    @EP("/both")
    async def both(self, comm: Communication) -> None:
        stock, price = await asyncio.gather(fetch(comm, "Stock", "/level"), fetch(comm, "Price", "/quote"))
        if not stock.ok and not price.ok:
            comm.respond(status=503)
            return
        comm.respond({"stock": stock.unwrap_or(0), "price": price.unwrap_or(None)})

    @EP("/retry")
    async def retry_(self, comm: Communication) -> None:
        try:
            value = await retry(lambda: comm.call("Price", "/quote"))
        except CallError:
            comm.respond(status=502)
        else:
            comm.respond(value)

    @EP("/many")
    @errors
    async def many(self, comm: Communication) -> None:
        things = await asyncio.gather(*Repository(comm).each(comm.params["ids"][:10]))
        comm.respond(things)

    @EP("/work")
    async def work(self, comm: Communication) -> None:
        async with UnitOfWork(comm) as unit:
            for item in comm.params.get("items", []):
                price = await comm.call("Price", "/quote", item)
                unit.add({**item, "price": price})
        comm.respond({"saved": len(unit.dirty)})

    @EP("/stream")
    async def stream(self, comm: Communication) -> None:
        rows = [row async for row in self._pages(comm, 3)]
        comm.respond(rows)

    async def _pages(self, comm: Communication, most: int) -> AsyncIterator[dict]:
        for number in range(most):
            rows = await comm.query("db", "page", "things", {"page": number})
            for row in rows:
                yield row
            if len(rows) < 20:
                return

    @EP("/timeout")
    async def timeout(self, comm: Communication) -> None:
        try:
            async with asyncio.timeout(0.5):
                value = await comm.call("Price", "/quote")
        except TimeoutError:
            value = None
        comm.respond(value)

    @EP("/wait-for")
    async def wait_for(self, comm: Communication) -> None:
        try:
            value = await asyncio.wait_for(comm.call("Price", "/quote"), timeout=1)
        except asyncio.TimeoutError:
            comm.respond(status=504)
            return
        comm.respond(value)

    @EP("/group")
    async def group(self, comm: Communication) -> None:
        found: dict[str, Any] = {}

        async def load(name: str, service: str, path: str) -> None:
            found[name] = await comm.call(service, path)

        async with asyncio.TaskGroup() as group:
            group.create_task(load("stock", "Stock", "/level"))
            group.create_task(load("price", "Price", "/quote"))
        comm.respond(found)

    @EP("/chunks")
    async def chunks(self, comm: Communication) -> None:
        ids = comm.params["ids"]
        rows = []
        for at in range(0, len(ids), 50):
            rows += await comm.query("db", "some", "things", {"_id": {"$in": ids[at : at + 50]}})
        comm.respond(rows)

    @EP("/cached")
    async def cached(self, comm: Communication) -> None:
        now = datetime.now()
        if self.until and self.until > now:
            comm.respond(self.value)
            return
        async with self.lock:
            self.value = await comm.call("Price", "/quote")
            self.until = now + timedelta(seconds=30)
        comm.respond(self.value)

    def setup(self) -> None:
        self.until: datetime | None = None
        self.value = None
        self.lock = asyncio.Lock()

    @EP("/saga")
    async def saga(self, comm: Communication) -> None:
        undo: list[tuple[str, str]] = []
        try:
            await comm.call("Stock", "/level", {"reserve": 1})
            undo.append(("Stock", "/level"))
            await comm.call("Price", "/quote", {"charge": 1})
            undo.append(("Price", "/quote"))
        except CallError:
            for service, path in reversed(undo):
                await comm.call(service, path, {"undo": 1})
            comm.respond(status=409)
            return
        comm.respond({"ok": True})

    @EP("/fan-dict")
    async def fan_dict(self, comm: Communication) -> None:
        wanted = {"stock": ("Stock", "/level"), "price": ("Price", "/quote")}
        answers = await asyncio.gather(
            *(comm.call(*place) for place in wanted.values()), return_exceptions=True
        )
        comm.respond({name: a for name, a in zip(wanted, answers) if not isinstance(a, BaseException)})

    @EP("/flag")
    async def flag(self, comm: Communication) -> None:
        tasks = [comm.call("Stock", "/level")]
        if comm.params.get("price"):
            tasks.append(comm.call("Price", "/quote"))
        answers = await asyncio.gather(*tasks)
        comm.respond(answers)

    @EP("/bg")
    async def bg(self, comm: Communication) -> None:
        comm.respond({"accepted": True}, status=202)
        with contextlib.suppress(CallError):
            await comm.call("Stock", "/level")


class Stock(MS):
    runtime = "async"

    @EP("/level")
    async def level(self, comm: Communication) -> None:
        comm.respond({"value": 3})


class Price(MS):
    runtime = "async"

    @EP("/quote")
    async def quote(self, comm: Communication) -> None:
        comm.respond(await comm.query("db", "find", "prices", {}))
